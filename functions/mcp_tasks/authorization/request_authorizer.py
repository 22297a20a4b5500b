"""Decides whether a request may reach the API function, from its headers alone.

The API function sees the body too, and checks the scopes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from .. import environment as names
from ..protocol.errors import ProtocolError
from ..protocol.headers import Headers, decode_header
from ..protocol.scope_names import ScopeNames
from ..protocol.www_authenticate import bearer_challenge
from ..registry.catalogue import FILE_NAME, Catalogue
from .bearer import bearer_token
from .jwks import Jwks
from .tokens import Grant, TokenVerifier

BUNDLE: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about a request whose token is valid."""

    grant: Grant
    challenge: str | None
    """The value of `WWW-Authenticate` for a token that lacks a scope; None when it lacks none."""


class RequestAuthorizer:
    """Decides about the requests of one deployment.

    `environment` has ISSUER, AUDIENCE, TOKEN_TYP, SCOPES, SCOPE_PREFIX and RESOURCE_METADATA_URL
    (see `environment.py`).
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        issuer = environment[names.ISSUER]
        self._tokens = TokenVerifier(
            issuer,
            frozenset(environment[names.AUDIENCE].split()),
            Jwks(issuer),
            at_jwt_only=environment.get(names.TOKEN_TYP) == "at+jwt",
        )
        self._scopes = environment[names.SCOPES].split()
        # Lambda replaces a function's code before its environment.
        self._scope_names = ScopeNames(environment.get(names.SCOPE_PREFIX, ""))
        self._resource_metadata = environment[names.RESOURCE_METADATA_URL]

    @cached_property
    def catalogue(self) -> Catalogue:
        """The tools that were deployed."""
        return Catalogue.read(BUNDLE / FILE_NAME)

    def decide(self, event: Mapping[str, Any]) -> Decision:
        """Decide about the event of a REQUEST authorizer (API Gateway developer guide, "Input to a
        Lambda authorizer").

        Raises InvalidToken for a request without a valid token, and KeysUnavailable when the
        issuer's keys cannot be fetched.
        """
        headers = Headers(_all_values(event, "multiValueHeaders", "headers"))
        query = _all_values(event, "multiValueQueryStringParameters", "queryStringParameters")
        found = self._tokens.verify(bearer_token(headers, query))
        grant = replace(found, scopes=self._scope_names.short(found.scopes))
        needed = self._needed_scopes(headers)
        if grant.scopes.issuperset(needed):
            return Decision(grant, None)
        asked = self._scope_names.long(needed)
        return Decision(
            grant, bearer_challenge(self._resource_metadata, asked, "insufficient_scope")
        )

    def _needed_scopes(self, headers: Headers) -> list[str]:
        """All scopes that the request needs, so that one new token suffices for it
        (authorization/index.mdx, "Runtime Insufficient Scope Errors").
        """
        entry = self.catalogue.tools.get(_called_tool(headers))
        return list(dict.fromkeys([*self._scopes, *(entry.scopes if entry else ())]))


def _called_tool(headers: Headers) -> str:
    """The tool that the headers name, or an empty string.

    Malformed headers name no tool here; the API function refuses the request because of them.
    """
    try:
        if headers.get("mcp-method") != "tools/call":
            return ""
        return decode_header(headers.get("mcp-name") or "", "Mcp-Name")
    except ProtocolError:
        return ""


def _all_values(event: Mapping[str, Any], multi: str, single: str) -> Mapping[str, list[str]]:
    """All values of each header or query parameter; some events hold only the last of each."""
    return event.get(multi) or {name: [value] for name, value in (event.get(single) or {}).items()}
