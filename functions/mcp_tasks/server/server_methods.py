"""What a deployment offers to clients of any revision: its methods, and what it lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..registry.catalogue import Catalogue
from ..server_identity import ServerIdentity
from .call import Method, MethodTable


@dataclass(frozen=True, slots=True)
class ServerMethods:
    """Every revision puts these methods under the names of its own, in the shapes of its own."""

    identity: ServerIdentity
    catalogue: Catalogue
    call_tool: Method
    read_resource: Method
    get_prompt: Method
    complete_argument: Method
    tasks: MethodTable
    """The methods of the tasks extension."""
    listen: Method

    def capabilities(self) -> dict[str, Any]:
        """ServerCapabilities, as far as all revisions share them: what there is, is declared."""
        found: dict[str, Any] = {"tools": {}, "logging": {}}
        if self.catalogue.resources:
            found["resources"] = {}
        if self.catalogue.prompts:
            found["prompts"] = {}
        if self.catalogue.resources or self.catalogue.prompts:
            found["completions"] = {}
        return found
