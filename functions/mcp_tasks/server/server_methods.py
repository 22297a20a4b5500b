"""The MCP methods and lists of one deployment, as all revisions share them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..registry.catalogue import Catalogue
from ..server_identity import ServerIdentity
from .call import Method, MethodTable
from .methods.companion_tools import CompanionTools
from .session_methods import SessionMethods


@dataclass(frozen=True, slots=True)
class ServerMethods:
    """A revision serves these methods under its own names, in its own shapes."""

    identity: ServerIdentity
    catalogue: Catalogue
    call_tool: Method
    read_resource: Method
    get_prompt: Method
    complete_argument: Method
    tasks: MethodTable
    """The methods of the tasks extension, by name."""
    listen: Method
    only: frozenset[str] = frozenset()
    """The names of the methods that this function answers; empty for all."""
    in_sessions: SessionMethods | None = None
    """None for a function without sessions: it answers each request by what that says itself."""
    companion_tools: CompanionTools | None = None
    """None for a deployment without them, or without a tool that they are for."""

    def capabilities(self, *, tells_lists: bool) -> dict[str, Any]:
        """The members of ServerCapabilities that all revisions have: what the deployment serves.

        `tells_lists` is whether clients are told that a list has changed.
        """
        lists: dict[str, Any] = {"listChanged": True} if tells_lists else {}
        found: dict[str, Any] = {"tools": lists, "logging": {}}
        if self.catalogue.resources:
            found["resources"] = {"subscribe": True, **lists}
        if self.catalogue.prompts:
            found["prompts"] = lists
        if self.catalogue.resources or self.catalogue.prompts:
            found["completions"] = {}
        return found
