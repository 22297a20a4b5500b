"""A local API Gateway that streams: `python -m infra.local.gateway --emulator NAME --stack NAME`.

The emulator buffers every answer. This runs the API function's deployed code in processes of its
own, on the runtime loop that streams, and passes each chunk on as it comes (API Gateway developer
guide, "Stream the integration response for your proxy integrations"); for all else the function
talks to the emulator.

Where it differs from AWS: when a client goes, API Gateway lets the function run on and discards the
answer; here its instance is killed, to spare the machine. There are no accounts and no throttling
but the number of instances, and a stream that is silent for five minutes is not cut.

Standard library only, but for `main`.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from queue import Empty
from typing import Any, Final
from urllib.parse import urlsplit

from .console import fail, say
from .deployment import LocalStack, find
from .environment import EMULATOR_VENV
from .http11 import Body, Server, cut
from .instances import MAX_INSTANCES, BusyError, Fleet, Function
from .runtime_api import FunctionError, Invocation, Part, Prelude

STAGE: Final = "v1"
RESOURCE: Final = "/mcp"
PATH: Final = f"/{STAGE}{RESOURCE}"
MAX_BODY: Final = 10 * 1024 * 1024
START_SECONDS: Final = 60
STREAMING_SECONDS: Final = 15 * 60
"""How long a function may take with `-c streaming=true`."""
CLIENT_CHECK_SECONDS: Final = 0.5
"""How often a silent answer's client is looked after."""
HOP_BY_HOP: Final = ("connection", "content-length", "keep-alive", "transfer-encoding")
"""Headers of an answer that are not the function's to set."""

INVALID_REQUEST: Final = -32600
INTERNAL_ERROR: Final = -32603


class Gateway:
    """The server, on a port of 127.0.0.1, with the function's instances."""

    def __init__(
        self, function: Function, port: int = 0, max_instances: int = MAX_INSTANCES
    ) -> None:
        self._server = _Server(("127.0.0.1", port), _Handler)
        self.fleet = Fleet(function, max_instances)
        self._server.fleet = self.fleet
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        return f"http://127.0.0.1:{self._server.server_port}{PATH}"

    def close(self) -> None:
        """Cut what is open, and kill all instances."""
        self._server.shutdown()
        self.fleet.close()
        self._server.close()


def deployed(stack: LocalStack, aws: Callable[[str], Any]) -> Function:
    """The API function as it is deployed: its code and its configuration.

    `aws` makes boto3's clients for the emulator.
    """
    assembly = stack.folder / "cdk.out"
    template = json.loads((assembly / f"{stack.name}.template.json").read_text())
    ((logical_id, resource),) = (
        (logical_id, resource)
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Function" and logical_id.startswith("ApiFunction")
    )
    pages = aws("lambda").get_paginator("list_functions").paginate()
    configuration = next(
        function
        for page in pages
        for function in page["Functions"]
        if function["FunctionName"].startswith(f"{stack.name}-{logical_id}")
    )
    return Function(
        name=configuration["FunctionName"],
        arn=configuration["FunctionArn"],
        bundle=assembly / resource["Metadata"]["aws:asset:path"],
        interpreter=EMULATOR_VENV / "bin" / "python",
        environment={
            **configuration["Environment"]["Variables"],
            **stack.emulator.environment,
        },
        # The stack on the emulator, which buffers, is without `-c streaming=true`.
        timeout_seconds=STREAMING_SECONDS,
        memory_mb=configuration["MemorySize"],
        log=stack.folder / "gateway.log",
    )


def proxy_event(
    headers: Mapping[str, list[str]], body: bytes, source_ip: str, request_id: str
) -> dict[str, Any]:
    """A POST as a REST API's proxy integration passes it on ("Input format", payload 1.0)."""
    try:
        text, encoded = body.decode("utf-8"), False
    except UnicodeDecodeError:
        text, encoded = base64.b64encode(body).decode(), True
    return {
        "resource": RESOURCE,
        "path": RESOURCE,
        "httpMethod": "POST",
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": dict(headers),
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "accountId": "000000000000",
            "apiId": "local",
            "httpMethod": "POST",
            "identity": {
                "sourceIp": source_ip,
                "userAgent": headers.get("user-agent", [None])[-1],
                "userArn": None,
            },
            "path": PATH,
            "protocol": "HTTP/1.1",
            "requestId": request_id,
            "requestTimeEpoch": int(time.time() * 1000),
            "resourcePath": RESOURCE,
            "stage": STAGE,
        },
        "body": text,
        "isBase64Encoded": encoded,
    }


class _Server(Server):
    fleet: Fleet


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        body = self._body()
        if urlsplit(self.path).path != PATH:
            self._unknown()
        elif body is None:
            self._error(413, INVALID_REQUEST, "The body is too large")
        else:
            self._call(body)

    def do_GET(self) -> None:
        """Without a function (streamable-http.mdx, "Earlier Streamable HTTP Revisions")."""
        self._body()
        if urlsplit(self.path).path != PATH:
            self._unknown()
        else:
            self._answer(405, b"", {"Allow": "POST"})

    do_DELETE = do_GET

    def do_PUT(self) -> None:
        self._body()
        self._unknown()

    do_PATCH = do_OPTIONS = do_PUT

    def _unknown(self) -> None:
        """What API Gateway says of a path or a method that an API does not have."""
        self._error(403, INVALID_REQUEST, "Missing Authentication Token")

    def _call(self, body: bytes) -> None:
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        request_id = str(uuid.uuid4())
        event = proxy_event(headers, body, self.client_address[0], request_id)
        try:
            invocation = self.server.fleet.invoke(event)
        except BusyError:
            self._error(429, INTERNAL_ERROR, "Too many requests; try again later")
            return
        try:
            self._relay(invocation, request_id)
        except OSError:
            self.server.fleet.abandon(invocation)
            self.close_connection = True

    def _relay(self, invocation: Invocation, request_id: str) -> None:
        """Pass the answer on. Raises OSError when the client is gone."""
        prelude = self._part(invocation)
        if not isinstance(prelude, Prelude):
            self._error(502, INTERNAL_ERROR, "Internal error")
            return
        self.send_response(prelude.status)
        for name, value in prelude.headers.items():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("x-amzn-RequestId", request_id)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while isinstance(part := self._part(invocation), bytes):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        if part is None:
            self.wfile.write(b"0\r\n\r\n")
        else:
            # It is too late for another status: that the last chunk is missing tells the client.
            self.close_connection = True
            cut(self.connection)

    def _part(self, invocation: Invocation) -> Part:
        while True:
            try:
                return invocation.parts.get(timeout=CLIENT_CHECK_SECONDS)
            except Empty:
                self._check_client()

    def _check_client(self) -> None:
        """Raises OSError when the client has closed the connection."""
        with contextlib.suppress(BlockingIOError):  # it is there, and has nothing to say
            if not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                raise ConnectionAbortedError

    def _body(self) -> bytes | None:
        """The request's body, read to its end; None when it is too large."""
        pieces, size = [], 0
        for piece in Body(self.headers, self.rfile):
            size += len(piece)
            if size <= MAX_BODY:
                pieces.append(piece)
        return b"".join(pieces) if size <= MAX_BODY else None

    def _error(self, status: int, code: int, message: str) -> None:
        """An answer of the gateway itself, as infra/gateway.py has API Gateway give them."""
        error = {"jsonrpc": "2.0", "error": {"code": code, "message": message}}
        headers = {"Content-Type": "application/json"}
        self._answer(status, json.dumps(error).encode(), headers)

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(HTTPStatus(status))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The function logs a line per request."""


def main() -> int:
    """Serve a stack of a running emulator until a signal."""
    import boto3

    from . import emulator as emulators

    parser = argparse.ArgumentParser(prog="python -m infra.local.gateway")
    parser.add_argument("--emulator", default="up")
    parser.add_argument("--stack", default="mcp-tasks")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    running = emulators.find(options.emulator)
    if running is None:
        return fail(f"no emulator {options.emulator!r} is running; `make up` starts one")
    stack = find(running, options.stack)
    environment = running.environment
    session = boto3.Session(
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_REGION"],
    )
    client: Any = session.client
    function = deployed(stack, lambda service: client(service, endpoint_url=running.url))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Gateway(function, options.port) as gateway:
        try:
            gateway.fleet.wait_until_warm(START_SECONDS)
        except FunctionError as error:
            return fail(f"the function does not start ({error}); its output is in {function.log}")
        say(gateway.url)
        while True:
            signal.pause()


if __name__ == "__main__":
    sys.exit(main())
