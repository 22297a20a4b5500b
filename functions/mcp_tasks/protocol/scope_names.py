"""The names of scopes: short where the server and its tools speak of them, long where clients ask.

Some issuers want scopes to be asked for by a name that begins with the API's: Microsoft Entra ID
(`api://3f2b.../mcp`, in whose tokens `scp` has the short name), and Amazon Cognito
(`mcp-server/mcp`, which its tokens repeat).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ScopeNames:
    """What the long names begin with: empty where scopes have one name."""

    prefix: str = ""

    def long(self, scopes: Iterable[str]) -> tuple[str, ...]:
        """The names by which a client asks for these scopes."""
        return tuple(f"{self.prefix}{scope}" for scope in scopes)

    def short(self, scopes: Iterable[str]) -> frozenset[str]:
        """The names of the scopes that a token has, by whichever name it has them."""
        return frozenset(scope.removeprefix(self.prefix) for scope in scopes)


ONE_NAME: Final = ScopeNames()
"""Scopes that are asked for as tools name them."""
