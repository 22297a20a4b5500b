"""The check of an access token's scopes against what a tool needs (`-c auth=oauth`).

The gateway's authorizer has checked the token, and the scopes of the tool that the `Mcp-Name`
header names. This check goes by the tool that the body names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..protocol.errors import InsufficientScope
from ..protocol.scope_names import ONE_NAME, ScopeNames
from .call import Call


@dataclass(frozen=True, slots=True)
class ScopeCheck:
    """Compares a caller's scopes with those that a request needs."""

    scopes: tuple[str, ...] = ()
    """The scopes that every request needs."""
    resource_metadata: str = ""
    """The URL of the protected resource metadata (RFC 9728), for the challenge."""
    names: ScopeNames = ONE_NAME
    """By which names a client asks for scopes."""

    def check(self, call: Call, scopes: Iterable[str]) -> None:
        """Raise InsufficientScope (HTTP 403) for a token that lacks one of `scopes`.

        Callers without tokens pass: a deployment with `-c auth=iam` has no tools that need a scope,
        and with `-c auth=none` everybody may do everything.
        """
        needed = tuple(dict.fromkeys((*self.scopes, *scopes)))
        if call.scopes is not None and not call.scopes.issuperset(needed):
            raise InsufficientScope(self.names.long(needed), self.resource_metadata)
