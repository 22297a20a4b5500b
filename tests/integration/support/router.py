"""A custom domain of API Gateway on this machine, with the routing rules of templates.

The emulator has no routing rules. This router does what the developer guide says ("Routing rules to
connect API stages to a custom domain name for REST APIs"): the matching rule with the lowest
priority applies; all of a rule's conditions have to match; header names match in any case, and
values as a whole, with `*` at either end. Other rules raise ValueError.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import urlsplit

from local.gateway import HOP_BY_HOP_HEADERS
from local.http_server import Body, Server, shut_down

RULE: Final = "AWS::ApiGatewayV2::RoutingRule"
MAX_PRIORITY: Final = 1_000_000
SILENCE_SECONDS: Final = 60.0
"""After this time without data, an API counts as broken."""


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """A header, and a glob for its value."""

    header: str
    glob: str

    def __post_init__(self) -> None:
        if "*" in self.glob[1:-1]:
            raise ValueError(f"{self.glob}: wildcards are for the beginning and the end of a value")

    def matches(self, headers: Mapping[str, str]) -> bool:
        """Whether `headers`, whose names are in lower case, match."""
        value = headers.get(self.header.lower())
        pattern = re.escape(self.glob).replace(r"\*", ".*")
        return value is not None and re.fullmatch(pattern, value, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    """A routing rule."""

    priority: int
    conditions: tuple[tuple[HeaderMatch, ...], ...]
    """All conditions have to match, each by any of its headers. No condition matches everything."""
    api: str
    """The URL of the API's stage."""

    def matches(self, headers: Mapping[str, str]) -> bool:
        """Whether the rule matches a request with these headers, whose names are in lower case."""
        return all(any(one.matches(headers) for one in condition) for condition in self.conditions)


def rules_of(template: Mapping[str, Any], apis: Mapping[str, str]) -> list[Rule]:
    """A template's rules. `apis` holds the stage URLs of its APIs by their logical ids.

    Raises ValueError for a rule that this router cannot apply.
    """
    resources = template["Resources"].values()
    rules = (resource["Properties"] for resource in resources if resource["Type"] == RULE)
    return [
        Rule(rule["Priority"], tuple(map(_headers, rule["Conditions"])), apis[_api(rule)])
        for rule in rules
    ]


def _headers(condition: Mapping[str, Any]) -> tuple[HeaderMatch, ...]:
    if set(condition) != {"MatchHeaders"}:
        raise ValueError(f"{condition}: this router matches headers only")
    return tuple(
        HeaderMatch(value["Header"], value["ValueGlob"])
        for value in condition["MatchHeaders"]["AnyOf"]
    )


def _api(rule: Mapping[str, Any]) -> str:
    """The logical id of the API that a rule invokes."""
    (action,) = rule["Actions"]
    invoked = action["InvokeApi"]
    if invoked.get("StripBasePath"):
        raise ValueError(f"{invoked}: this router takes paths as they are")
    api: str = invoked["ApiId"]["Ref"]
    return api


class Domain:
    """All rules of a domain. Raises ValueError for priorities that API Gateway refuses."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules = sorted(rules, key=lambda rule: rule.priority)
        priorities = [rule.priority for rule in self._rules]
        if len(set(priorities)) < len(priorities):
            raise ValueError(f"rules of a domain have the same priority: {priorities}")
        if not all(1 <= priority <= MAX_PRIORITY for priority in priorities):
            raise ValueError(f"priorities are 1 to {MAX_PRIORITY}: {priorities}")

    def api(self, headers: Mapping[str, str]) -> str | None:
        """The stage URL for a request with these headers, or None when no rule matches."""
        given = {name.lower(): value for name, value in headers.items()}
        return next((rule.api for rule in self._rules if rule.matches(given)), None)


class Router:
    """The domain's HTTP server, on a port of 127.0.0.1."""

    def __init__(self, domain: Domain) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.domain = domain
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Router:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.close()

    @property
    def url(self) -> str:
        """The MCP endpoint. The rules add the stage to the path."""
        return f"http://127.0.0.1:{self._server.server_port}/mcp"


class _Server(Server):
    domain: Domain


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        body = b"".join(Body(self.headers, self.rfile))
        headers = dict(self.headers.items())
        api = self.server.domain.api(headers)
        if api is None:
            self._forbid()
            return
        for name in set(headers):
            if name.lower() in HOP_BY_HOP_HEADERS:
                del headers[name]
        parts = urlsplit(api)
        with contextlib.closing(
            HTTPConnection(parts.netloc, timeout=SILENCE_SECONDS)
        ) as connection:
            connection.request("POST", parts.path + self.path, body, headers)
            with connection.getresponse() as response:
                self._pass_on(response)

    def _pass_on(self, response: HTTPResponse) -> None:
        """Pass each chunk of the response on as it arrives."""
        self.send_response_only(response.status, response.reason)
        for name, value in response.getheaders():
            if name.lower() not in HOP_BY_HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while chunk := response.read1():
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")
        except HTTPException:
            # The response broke off: this one ends without a last chunk, too.
            self.close_connection = True
            shut_down(self.connection)

    def _forbid(self) -> None:
        """Answer as API Gateway does when no rule matches and there are no API mappings."""
        body = b'{"message":"Forbidden"}'
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no access log: the cells log a line for each request."""
