"""What a caller may do, by the scopes of its access token (`-c auth=oauth`).

The authorizer has checked the token, and the scopes as far as the headers tell what is called. Here
the body is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..protocol.errors import InsufficientScope
from .call import Call


@dataclass(frozen=True, slots=True)
class ScopeCheck:
    """What every request needs, and where clients read how to get it."""

    scopes: tuple[str, ...] = ()
    resource_metadata: str = ""

    def check(self, call: Call, scopes: Iterable[str]) -> None:
        """Raise InsufficientScope for a token that lacks one of `scopes`.

        Callers without tokens have no scopes to check: a deployment with `-c auth=iam` has no tools
        that need one, and with `-c auth=none` anybody may do anything.
        """
        needed = tuple(dict.fromkeys((*self.scopes, *scopes)))
        if call.scopes is not None and not call.scopes.issuperset(needed):
            raise InsufficientScope(needed, self.resource_metadata)
