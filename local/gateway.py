"""A local API Gateway that streams: `python -m local.gateway --emulator NAME --stack NAME`.

The emulator buffers every answer. This runs the API function's deployed code in processes of its
own, on the runtime loop that streams, and passes each chunk on as it comes (API Gateway developer
guide, "Stream the integration response for your proxy integrations"); for all else the function
talks to the emulator.

The rest is as the emulator's API Gateway has it: the methods, what is answered without a function,
and the authorizer, which is asked on the emulator.

Where it differs from AWS: when a client goes, API Gateway lets the function run on and discards the
answer; here its instance is killed, to spare the machine. There are no accounts and no throttling
but the number of instances, and a stream that is silent for five minutes is not cut.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from queue import Empty
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from .console import fail, say
from .deployment import LocalStack, find, stack_name
from .environment import EMULATOR_VENV
from .function_instances import MAX_INSTANCES, BusyError, Fleet, Function
from .gateway_authorizer import DeniedError
from .gateway_process import url_of
from .http_server import Body, Server, cut
from .proxy_event import STAGE, Request
from .rest_api import Answer, RestApi
from .runtime_api import FunctionError, Invocation, Part, Prelude

RESOURCE: Final = "/mcp"
MAX_BODY: Final = 10 * 1024 * 1024
START_SECONDS: Final = 60
SESSION_SECONDS: Final = 30 * 24 * 60 * 60
"""How long the function's credentials last; the emulator knows no limit."""
STREAMING_SECONDS: Final = 15 * 60
"""How long a function may take with `-c streaming=true`."""
CLIENT_CHECK_SECONDS: Final = 0.5
"""How often a silent answer's client is looked after."""
HOP_BY_HOP: Final = ("connection", "content-length", "keep-alive", "transfer-encoding")
"""Headers of an answer that are not the function's to set."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """What the gateway puts in place of the emulator's."""

    api: RestApi
    function: Function


class Gateway:
    """The server, on a port of 127.0.0.1, with the function's instances."""

    def __init__(
        self, deployed: Deployed, port: int = 0, max_instances: int = MAX_INSTANCES
    ) -> None:
        self._server = _Server(("127.0.0.1", port), _Handler)
        self.fleet = Fleet(deployed.function, max_instances)
        self._server.api, self._server.fleet = deployed.api, self.fleet
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
        return url_of(self._server.server_port)

    def close(self) -> None:
        """Cut what is open, and kill all instances."""
        self._server.shutdown()
        self.fleet.close()
        self._server.close()


def deployed(stack: LocalStack, aws: Callable[[str], Any]) -> Deployed:
    """The API and its function as they are deployed: code and configuration.

    `aws` makes boto3's clients for the emulator. Raises ValueError for an API that checks
    signatures.
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
    function = Function(
        name=configuration["FunctionName"],
        arn=configuration["FunctionArn"],
        bundle=assembly / resource["Metadata"]["aws:asset:path"],
        interpreter=EMULATOR_VENV / "bin" / "python",
        environment={
            **configuration["Environment"]["Variables"],
            **stack.emulator.environment,
            **_credentials(aws("sts"), configuration["Role"]),
        },
        # The stack on the emulator, which buffers, is without `-c streaming=true`.
        timeout_seconds=STREAMING_SECONDS,
        memory_mb=configuration["MemorySize"],
        log=stack.folder / "gateway.log",
    )
    return Deployed(RestApi.read(stack.outputs["ApiId"], aws), function)


def _credentials(sts: Any, role: str) -> dict[str, str]:
    """What the function calls AWS with: its own role, not the emulator's root."""
    answer = sts.assume_role(
        RoleArn=role, RoleSessionName="local-gateway", DurationSeconds=SESSION_SECONDS
    )
    return {
        "AWS_ACCESS_KEY_ID": answer["Credentials"]["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": answer["Credentials"]["SecretAccessKey"],
        "AWS_SESSION_TOKEN": answer["Credentials"]["SessionToken"],
    }


class _Server(Server):
    api: RestApi
    fleet: Fleet


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def __getattr__(self, name: str) -> Any:
        """http.server calls `do_<method>`: an API decides about every method."""
        if name.startswith("do_"):
            return self._do
        raise AttributeError(name)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server finds wrong with a request: in the gateway's words, not in HTML."""
        self.close_connection = True
        self.request_version = self.protocol_version  # that of a broken request line is none
        self._refuse("DEFAULT_4XX", message or "Bad Request", status=code if code < 500 else 400)

    def _do(self) -> None:
        try:
            body = self._body()
        except ValueError as error:
            self.send_error(HTTPStatus.BAD_REQUEST, str(error))
            return
        stage, url = f"/{STAGE}", urlsplit(self.path)
        resource = url.path.removeprefix(stage) if url.path.startswith(stage) else ""
        method = self.server.api.methods.get((resource, self.command))
        if method is None:
            self._refuse("MISSING_AUTHENTICATION_TOKEN", "Missing Authentication Token")
            return
        request = Request(
            api_id=self.server.api.api_id,
            http_method=self.command,
            resource=resource,
            headers=self._headers(),
            query=parse_qs(url.query, keep_blank_values=True),
            source_ip=self.client_address[0],
        )
        if body is None:
            self._refuse("REQUEST_TOO_LARGE")
        elif method.answer is not None:
            self._answer(method.answer)
        else:
            try:
                context = method.authorizer.decide(request) if method.authorizer else None
            except DeniedError as denied:
                self._refuse(denied.kind, denied.message, denied.context)
            else:
                self._call(request.to_function(body, context), request.request_id)

    def _call(self, event: Mapping[str, Any], request_id: str) -> None:
        try:
            invocation = self.server.fleet.invoke(event)
        except BusyError:
            self._refuse("THROTTLED")
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
            self._refuse("DEFAULT_5XX", status=502)
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

    def _headers(self) -> dict[str, list[str]]:
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        return headers

    def _refuse(
        self,
        kind: str,
        message: str | None = None,
        context: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> None:
        self._answer(self.server.api.refuse(kind, message, context, status))

    def _answer(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:
        """The function logs a line per request."""


def main() -> int:
    """Serve a stack of a running emulator until a signal."""
    import boto3

    from . import emulator as emulators

    parser = argparse.ArgumentParser(prog="python -m local.gateway")
    parser.add_argument("--emulator", default="up")
    parser.add_argument("--stack", default=stack_name())
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
    try:
        found = deployed(stack, lambda service: client(service, endpoint_url=running.url))
    except ValueError as error:
        return fail(f"{error}: only the emulator itself checks signatures")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Gateway(found, options.port) as gateway:
        try:
            gateway.fleet.wait_until_warm(START_SECONDS)
        except FunctionError as error:
            return fail(
                f"the function does not start ({error}); its output is in {found.function.log}"
            )
        say(gateway.url)
        while True:
            signal.pause()


if __name__ == "__main__":
    sys.exit(main())
