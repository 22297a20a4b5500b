"""A small function behind a gateway, and the requests that tests send to it."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from local.gateway import DeployedApi, Gateway
from local.gateway.lambda_instances import LambdaFunction
from local.gateway_process import PATH
from tests.paths import ROOT
from tests.unit.support.rest_api import rest_api

FUNCTIONS = ROOT / "functions"


SECRET = "what somebody asked"


STREAMING = """
import json, os, signal, time
from mcp_tasks.aws.streaming_runtime import serve

def handler(event, context, response):
    def start():
        response.start(200, {"Content-Type": "text/event-stream", "X-Pid": str(os.getpid())})
    ask = json.loads(event["body"]) if event["body"][:1] == "{" else {}
    match ask.get("do"):
        case "stream":
            start()
            for file in ask["wait_for"]:
                response.write(file.encode())
                while not os.path.exists(file):
                    time.sleep(0.005)
        case "fail":
            raise LookupError("what somebody asked")
        case "exit":
            os._exit(3)
        case "break":
            start()
            response.write(b"so far")
            raise LookupError("what somebody asked")
        case "vanish":
            start()
            response.write(b"so far")
            os._exit(3)
        case "hang":
            start()
            response.write(b"so far")
            signal.pause()
        case "time":
            start()
            response.write(b"%d" % context.get_remaining_time_in_millis())
        case "environment":
            start()
            response.write(json.dumps(dict(os.environ)).encode())
        case _:
            start()
            response.write(json.dumps(event).encode())

serve(lambda: handler)
"""


BROKEN = """
from mcp_tasks.aws.streaming_runtime import serve

def load():
    raise ImportError("what somebody asked")

serve(load)
"""


def bundle(folder: Path, streaming: str) -> LambdaFunction:
    """A small function in `folder`, with the deployed runtime loop and start script."""
    (folder / "api").mkdir(parents=True)
    (folder / "mcp_tasks" / "aws").mkdir(parents=True)
    shutil.copy(FUNCTIONS / "api" / "exec_wrapper", folder / "api")
    shutil.copy(
        FUNCTIONS / "mcp_tasks" / "aws" / "streaming_runtime.py", folder / "mcp_tasks" / "aws"
    )
    (folder / "api" / "streaming.py").write_text(streaming)
    return LambdaFunction(
        name="mcp-test-ApiFunction-1",
        arn="arn:aws:lambda:us-east-1:000000000000:function:mcp-test-ApiFunction-1",
        bundle=folder,
        interpreter=Path(sys.executable),
        environment={"TASKS_TABLE": "tasks", "AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
        timeout_seconds=60,
        memory_mb=256,
        log=folder / "gateway.log",
    )


def serving(function: LambdaFunction, **options: Any) -> Gateway:
    return Gateway(DeployedApi(rest_api(), function), **options)


@contextlib.contextmanager
def sent(
    gateway: Gateway,
    method: str = "POST",
    body: bytes | Iterator[bytes] = b"",
    path: str = PATH,
) -> Iterator[HTTPResponse]:
    """Send a request on a connection of its own; gives the response while it arrives."""
    with closing(HTTPConnection(urlsplit(gateway.url).netloc, timeout=10)) as connection:
        connection.request(method, path, body)
        with connection.getresponse() as response:
            yield response


def do(gateway: Gateway, what: str, **more: Any) -> contextlib.AbstractContextManager[HTTPResponse]:
    return sent(gateway, body=json.dumps({"do": what, **more}).encode())


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def runs(pid: int) -> bool:
    shown = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return bool(shown.strip()) and not shown.startswith("Z")


def is_error(response: HTTPResponse, status: int, code: int) -> None:
    assert response.status == status
    assert response.headers["Content-Type"] == "application/json"
    answer = json.load(response)
    assert answer["jsonrpc"] == "2.0"
    assert answer["error"]["code"] == code
    assert SECRET not in answer["error"]["message"]
