"""The endpoint, asked without a token: who may call it, and whom its challenge names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from .web import Answer, Web

REQUESTS: Final = {
    "2026-07-28": "server/discover",
    "2025-11-25": "initialize",
}
"""What a client of a revision sends first."""
_META: Final = "io.modelcontextprotocol"
_PARAMETER: Final = re.compile(r'resource_metadata\s*=\s*(?:"([^"]*)"|([^\s,]+))', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the endpoint said."""

    url: str
    answers: dict[str, Answer]
    """Revision -> the answer to its first request."""

    @classmethod
    def ask(cls, url: str, web: Web) -> Endpoint:
        """Send each revision's first request."""
        return cls(url, {version: _first(url, version, web) for version in REQUESTS})

    @property
    def challenges(self) -> list[str]:
        """The `WWW-Authenticate` of both answers, as far as they have one."""
        found = (answer.headers.get("WWW-Authenticate") for answer in self.answers.values())
        return [value for value in found if value]

    @property
    def metadata_url(self) -> str | None:
        """The URL that the challenge names (RFC 9728, section 5.1)."""
        found = (_PARAMETER.search(challenge) for challenge in self.challenges)
        return next((match[1] or match[2] for match in found if match), None)

    @property
    def open(self) -> bool:
        """Whether it answers without a token."""
        return any(answer.status == 200 for answer in self.answers.values())

    @property
    def trouble(self) -> str:
        """Why discovery cannot begin, and what to do; empty when it can."""
        answers = self.answers.values()
        if failure := next((a.failure for a in answers if a.failure), ""):
            return f"{failure}. Is the URL that of make connect, and is the server up?"
        statuses = {answer.status for answer in answers}
        if 401 in statuses:
            return self._bad_challenge()
        if any(_is_signature(answer) for answer in answers):
            return (
                "the endpoint wants signatures (auth=iam): callers sign with SigV4, and clients "
                "cannot find that out. Use a signing proxy, or deploy with auth=oauth"
            )
        shown = ", ".join(str(status) for status in sorted(statuses))
        return (
            f"the endpoint answers {shown} and no 401: clients do not ask for a login. Is the URL "
            "the endpoint's, with /mcp at its end? If a firewall or CDN is in front, let it pass "
            "requests without a token"
        )

    def _bad_challenge(self) -> str:
        if self.metadata_url:
            return ""
        renamed = any(
            "x-amzn-remapped-www-authenticate" in a.headers for a in self.answers.values()
        )
        if renamed:
            return (
                "the 401 has no WWW-Authenticate: API Gateway has renamed it, because a function "
                "sent it. Only a gateway response keeps it (infra/gateway_responses.py)"
            )
        return ""


def _is_signature(answer: Answer) -> bool:
    """Whether API Gateway has refused a call that IAM has to allow."""
    kind = answer.headers.get("x-amzn-ErrorType", "")
    return answer.status == 403 and kind.startswith(
        ("MissingAuth", "IncompleteSig", "AccessDenied")
    )


def _first(url: str, version: str, web: Web) -> Answer:
    method = REQUESTS[version]
    info = {"name": "doctor", "version": "1"}
    message = {"jsonrpc": "2.0", "id": 1, "method": method}
    if method == "initialize":
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        return web.post(url, {**message, "params": params}, {})
    meta = {
        f"{_META}/protocolVersion": version,
        f"{_META}/clientInfo": info,
        f"{_META}/clientCapabilities": {},
    }
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    return web.post(url, {**message, "params": {"_meta": meta}}, headers)
