"""What stands between the functions and the emulator, and lets calls go wrong.

Requests are passed on byte for byte, their `Host` included, because it is signed.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from local.http_server import Body, Server, shut_down
from mcp_tasks.durable.record import State
from tests.campaigns.chaos.faults import Faults, Kind

HANG: Final = 6.0
"""Seconds after which whoever waits for an answer has given up (botocore's `read_timeout` is 5)."""
ENDED: Final = frozenset({State.DONE.value, State.FAILED.value})
"""What a journal's record says of an operation that has ended."""
BUDGET: Final = 40.0
"""Seconds that the emulator may take for an answer."""
KEPT: Final = 200_000
"""Calls that are kept in mind."""

SERVICES: Final = {
    "DynamoDB_20120810": "dynamodb",
    "AWSStepFunctions": "states",
    "AWSEvents": "events",
}
"""What `X-Amz-Target` begins with."""

THROTTLING: Final = {
    "dynamodb": "ProvisionedThroughputExceededException",
    "states": "ThrottlingException",
    "events": "ThrottlingException",
}
"""What each service says when there was too much (API references, "Common errors")."""

OF_A_CONNECTION: Final = frozenset({"connection", "keep-alive", "transfer-encoding", "expect"})
TASK: Final = re.compile(rb"\b[a-z0-9]+-[0-9a-f]{32}\b")
TOKEN: Final = re.compile(rb'"taskToken": ?"([^"]+)"')


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Noted:
    """A call that came by."""

    at: float
    """Seconds since the epoch."""
    service: str
    operation: str
    kind: Kind | None
    status: int | None
    """What the emulator answered; None when it was not asked."""
    about: frozenset[bytes]
    """The tasks and the tokens that it names."""

    def __str__(self) -> str:
        fault = f", {self.kind}" if self.kind else ""
        return f"{self.at:.2f} {self.service} {self.operation}: {self.status}{fault}"


class Proxy(Server):
    """Listens while it is entered."""

    def __init__(self, port: int, faults: Faults, kill_owner: Callable[[int], None]) -> None:
        self.target = port
        self.faults = faults
        self.kill_owner = kill_owner
        self.over = threading.Event()
        self.noted: deque[Noted] = deque(maxlen=KEPT)
        self.ended: dict[tuple[str, str], float] = {}
        """When a record of a journal was written that says that its operation has ended, by the
        record's key: seconds since the epoch."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """What functions are to take for AWS."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.shutdown()
        self.close()

    def calls_about(self, *names: str) -> list[Noted]:
        """The calls that named one of these tasks or tokens."""
        wanted = {name.encode() for name in names}
        return [noted for noted in list(self.noted) if noted.about & wanted]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: Proxy

    def log_message(self, *_: object) -> None:
        """Say nothing: calls are noted."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._exchange
        raise AttributeError(name)

    def _exchange(self) -> None:
        body = b"".join(Body(self.headers, self.rfile))
        service, operation = named(self.command, self.headers)
        kind = self.server.faults.draw(service, operation)
        at, passed, answer = time.time(), None, None
        try:
            match kind:
                case Kind.CRASH_BEFORE:
                    self.server.kill_owner(self.client_address[1])
                case Kind.CLOSED_BEFORE:
                    pass
                case Kind.HANGING_BEFORE:
                    self.server.over.wait(HANG)
                case Kind.LATE:
                    self.server.over.wait(HANG)
                    passed = self._pass_on(body)
                    self._note_end(operation, body, passed)
                case Kind.PARTIAL:
                    answer = nothing_done(operation, body)
                case Kind.ERROR_BEFORE | Kind.UNAVAILABLE | Kind.THROTTLED:
                    answer = failure(service, kind)
                case _:
                    passed = self._pass_on(body)
                    self._note_end(operation, body, passed)
                    answer = self._after(kind, service, passed, body)
        except (OSError, HTTPException):  # the emulator has ended
            answer = None
        about = frozenset({*TASK.findall(body), *TOKEN.findall(body)})
        status = passed.status if passed else None
        self.server.noted.append(Noted(at, service, operation, kind, status, about))
        if answer is None:
            self.close_connection = True
            shut_down(self.connection)
        else:
            self._answer(answer)

    def _after(self, kind: Kind | None, service: str, passed: Reply, body: bytes) -> Reply | None:
        """What the caller gets when the call has taken effect."""
        match kind:
            case Kind.CRASH_AFTER:
                self.server.kill_owner(self.client_address[1])
                return None
            case Kind.CLOSED_AFTER:
                return None
            case Kind.HANGING_AFTER:
                self.server.over.wait(HANG)
                return None
            case Kind.ERROR_AFTER:
                return failure(service, kind)
            case Kind.REPEATED:
                return self._pass_on(body)
        return passed

    def _note_end(self, operation: str, body: bytes, passed: Reply) -> None:
        """Note when an operation's record was written that has ended, before anybody knows."""
        if operation != "PutItem" or passed.status != 200 or b'"attempts"' not in body:
            return
        item = json.loads(body)["Item"]
        if item["state"]["S"] in ENDED:
            self.server.ended.setdefault((item["pk"]["S"], item["sk"]["S"]), time.time())

    def _pass_on(self, body: bytes) -> Reply:
        connection = HTTPConnection("127.0.0.1", self.server.target, timeout=BUDGET)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                if name.lower() not in OF_A_CONNECTION:
                    connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            headers = {
                name: value
                for name, value in response.getheaders()
                if name.lower() not in OF_A_CONNECTION
            }
            return Reply(response.status, headers, response.read())
        finally:
            connection.close()

    def _answer(self, reply: Reply) -> None:
        self.send_response_only(reply.status)
        headers = {name.lower(): value for name, value in reply.headers.items()}
        if self.command != "HEAD":
            headers["content-length"] = str(len(reply.body))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)
        self.wfile.flush()


def named(method: str, headers: Message) -> tuple[str, str]:
    """A call's service and operation."""
    prefix, _, operation = (headers.get("X-Amz-Target") or "").rpartition(".")
    if operation:
        return SERVICES.get(prefix, prefix), operation
    signed_for = re.search(
        r"Credential=[^/]+/[^/]+/[^/]+/([^/]+)/", headers.get("Authorization") or ""
    )
    return signed_for[1] if signed_for else "", f"{method.capitalize()}Object"


def failure(service: str, kind: Kind) -> Reply:
    """How a service says that a call failed."""
    status, code = 500, "InternalServerError"
    if kind is Kind.UNAVAILABLE:
        status, code = 503, "ServiceUnavailable"
    elif kind is Kind.THROTTLED:
        status, code = 400, THROTTLING.get(service, "ThrottlingException")
    if service == "s3":
        if kind is Kind.THROTTLED:
            status, code = 503, "SlowDown"
        text = f"<Error><Code>{code}</Code><Message>chaos</Message></Error>"
        return Reply(status, {"content-type": "application/xml"}, text.encode())
    error = json.dumps({"__type": code, "message": "chaos"})
    return Reply(status, {"content-type": "application/x-amz-json-1.0"}, error.encode())


def nothing_done(operation: str, body: bytes) -> Reply:
    """The success of a batch of which nothing was done: it is to be asked for again."""
    request = json.loads(body)
    answer: dict[str, Any]
    match operation:
        case "BatchGetItem":
            answer = {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}
        case "BatchWriteItem":
            answer = {"UnprocessedItems": request["RequestItems"]}
        case _:
            refused = {"ErrorCode": THROTTLING["events"], "ErrorMessage": "chaos"}
            entries = [refused] * len(request["Entries"])
            answer = {"FailedEntryCount": len(entries), "Entries": entries}
    text = json.dumps(answer).encode()
    return Reply(200, {"content-type": "application/x-amz-json-1.0"}, text)
