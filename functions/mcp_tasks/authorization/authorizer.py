"""Whether a request may come in, as far as its headers tell. The api function knows the body, and
checks the scopes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from .. import environment as names
from ..protocol.challenge import challenge
from ..protocol.errors import ProtocolError
from ..protocol.headers import Headers, decode
from ..registry.catalogue import FILE_NAME, Catalogue
from .bearer import bearer_token
from .jwks import Jwks
from .tokens import Grant, TokenVerifier

BUNDLE: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Decision:
    """About a request whose token is good."""

    grant: Grant
    challenge: str | None
    """What `WWW-Authenticate` asks for, when the token lacks a scope."""


class Authorizer:
    """The decision of one deployment.

    `environment` has ISSUER, AUDIENCE, SCOPES and RESOURCE_METADATA_URL (see `environment.py`).
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        issuer = environment[names.ISSUER]
        self._tokens = TokenVerifier(issuer, environment[names.AUDIENCE], Jwks(issuer))
        self._scopes = environment[names.SCOPES].split()
        self._resource_metadata = environment[names.RESOURCE_METADATA_URL]

    @cached_property
    def catalogue(self) -> Catalogue:
        """The tools that were deployed."""
        return Catalogue.read(BUNDLE / FILE_NAME)

    def decide(self, event: Mapping[str, Any]) -> Decision:
        """About the event of a REQUEST authorizer (API Gateway developer guide, "Input to a Lambda
        authorizer").

        Raises InvalidToken, and KeysUnavailable.
        """
        headers = Headers(_many(event, "multiValueHeaders", "headers"))
        query = _many(event, "multiValueQueryStringParameters", "queryStringParameters")
        grant = self._tokens.check(bearer_token(headers, query))
        needed = self._needed(headers)
        if grant.scopes.issuperset(needed):
            return Decision(grant, None)
        text = challenge(self._resource_metadata, needed, "insufficient_scope")
        return Decision(grant, text)

    def _needed(self, headers: Headers) -> list[str]:
        """All scopes that the request needs, so that one new token is enough for it
        (authorization/index.mdx, "Runtime Insufficient Scope Errors").
        """
        entry = self.catalogue.tools.get(_called_tool(headers))
        return list(dict.fromkeys([*self._scopes, *(entry.scopes if entry else ())]))


def _called_tool(headers: Headers) -> str:
    """The tool that the headers name. Headers that are broken are the api function's to refuse."""
    try:
        if headers.get("mcp-method") != "tools/call":
            return ""
        return decode(headers.get("mcp-name") or "", "Mcp-Name")
    except ProtocolError:
        return ""


def _many(event: Mapping[str, Any], many: str, single: str) -> Mapping[str, list[str]]:
    """All values of each name; an event may hold the last of each alone."""
    return event.get(many) or {name: [value] for name, value in (event.get(single) or {}).items()}
