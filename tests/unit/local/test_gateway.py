"""The gateway of `make up STREAMING=true`, before a tiny function of the test's own.

What API Gateway does is in its developer guide: "Stream the integration response for your proxy
integrations", "Lambda proxy integrations", "Gateway responses".
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from local import gateway_process
from local.console import CommandError
from local.deployment import LocalStack
from local.emulator import Emulator
from local.gateway import MAX_BODY_BYTES, DeployedApi, Gateway, handler
from local.gateway.invocation import FunctionError
from local.gateway.lambda_instances import LambdaFunction
from local.gateway_process import PATH
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.http.api_gateway import from_api_gateway
from mcp_tasks.tasks.task import ANYONE
from tests.paths import ROOT
from tests.unit.support.rest_api import API_ID, Aws, rest_api

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
    """A function of its own, with the runtime loop and the start script as they are deployed."""
    (folder / "api").mkdir(parents=True)
    (folder / "mcp_tasks" / "aws").mkdir(parents=True)
    shutil.copy(FUNCTIONS / "api" / "stream", folder / "api")
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


@pytest.fixture(scope="module")
def function(tmp_path_factory: pytest.TempPathFactory) -> LambdaFunction:
    return bundle(tmp_path_factory.mktemp("bundle") / "code", STREAMING)


def serving(function: LambdaFunction, **options: Any) -> Gateway:
    return Gateway(DeployedApi(rest_api(), function), **options)


@pytest.fixture(scope="module")
def gateway(function: LambdaFunction) -> Iterator[Gateway]:
    with serving(function) as running:
        yield running


@pytest.fixture(autouse=True)
def attentive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway looks after its clients often."""
    monkeypatch.setattr(handler, "CLIENT_CHECK_SECONDS", 0.02)


@contextlib.contextmanager
def sent(
    gateway: Gateway,
    method: str = "POST",
    body: bytes | Iterator[bytes] = b"",
    path: str = PATH,
) -> Iterator[HTTPResponse]:
    """A request on a connection of its own, and the answer to it while it comes."""
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


def test_each_chunk_reaches_the_client_before_the_function_writes_the_next(
    gateway: Gateway, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("one", "two", "three")]
    with do(gateway, "stream", wait_for=list(map(str, files))) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/event-stream"
        assert response.headers["Transfer-Encoding"] == "chunked"
        for file in files:
            assert response.read1() == str(file).encode()
            file.touch()
        assert response.read() == b""


def test_the_function_gets_the_event_of_a_proxy_integration(gateway: Gateway) -> None:
    with closing(HTTPConnection(urlsplit(gateway.url).netloc, timeout=10)) as connection:
        connection.putrequest("POST", PATH)
        for name, value in [("Mcp-Name", "a"), ("X-Twice", "1"), ("X-Twice", "2")]:
            connection.putheader(name, value)
        connection.putheader("Content-Length", "2")
        connection.endheaders(b"[]")
        event = json.load(connection.getresponse())
    assert (event["httpMethod"], event["resource"], event["path"]) == ("POST", "/mcp", "/mcp")
    assert event["multiValueHeaders"]["x-twice"] == ["1", "2"]
    assert event["headers"]["x-twice"] == "2"
    assert "authorizer" not in event["requestContext"]
    assert event["requestContext"]["stage"] == "v1"
    assert event["requestContext"]["identity"]["sourceIp"] == "127.0.0.1"
    request = from_api_gateway(event, "none")
    assert (request.body, request.caller) == (b"[]", Caller(ANYONE))
    assert request.headers.get("mcp-name") == "a"


@pytest.mark.parametrize("body", [b"[1]", "[\u00fc]".encode(), b"\xff\x00"])
def test_a_body_arrives_as_it_was_sent(gateway: Gateway, body: bytes) -> None:
    """Also in chunks, and also when it is no text: then in Base64."""
    for sending in (body, iter([body[:1], body[1:]])):
        with sent(gateway, body=sending) as response:
            event = json.load(response)
        assert from_api_gateway(event, "none").body == body
        assert event["isBase64Encoded"] is (body == b"\xff\x00")


def test_a_connection_takes_one_request_after_the_other(gateway: Gateway) -> None:
    with closing(HTTPConnection(urlsplit(gateway.url).netloc, timeout=10)) as connection:
        for method, path, status in [
            ("POST", PATH, 200),
            ("GET", PATH, 405),
            ("POST", "/other", 403),
            ("POST", PATH, 200),
        ]:
            connection.request(method, path, b"[]")
            response = connection.getresponse()
            response.read()
            assert response.status == status


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_are_not_allowed(gateway: Gateway, method: str) -> None:
    """streamable-http.mdx, "Earlier Streamable HTTP Revisions"."""
    with sent(gateway, method) as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST"
        assert response.read() == b""


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/mcp"), ("POST", "/v1"), ("GET", "/"), ("PUT", PATH), ("OPTIONS", PATH)],
)
def test_what_the_api_does_not_have_is_forbidden(gateway: Gateway, method: str, path: str) -> None:
    with sent(gateway, method, path=path) as response:
        is_error(response, 403, -32600)


def test_a_body_above_ten_megabytes_is_too_large(gateway: Gateway) -> None:
    with sent(gateway, body=bytes(MAX_BODY_BYTES + 1)) as response:
        is_error(response, 413, -32600)


@pytest.mark.parametrize("what", ["fail", "exit"])
def test_a_function_that_fails_before_its_answer_is_a_bad_gateway(
    gateway: Gateway, what: str
) -> None:
    with do(gateway, what) as response:
        is_error(response, 502, -32603)
    with sent(gateway) as response:
        assert response.status == 200


@pytest.mark.parametrize("what", ["break", "vanish"])
def test_an_answer_that_breaks_off_lacks_its_last_chunk(gateway: Gateway, what: str) -> None:
    with do(gateway, what) as response:
        assert response.status == 200
        with pytest.raises(IncompleteRead) as broken:
            response.read()
        assert broken.value.partial == b"so far"


def test_an_instance_that_runs_out_of_time_is_killed_and_replaced(function: LambdaFunction) -> None:
    with serving(replace(function, timeout_seconds=0.5)) as gateway:
        with do(gateway, "time") as response:
            assert 0 < int(response.read()) <= 500
        with do(gateway, "hang") as response:
            pid = int(response.headers["X-Pid"])
            with pytest.raises(IncompleteRead):
                response.read()
        until(lambda: not runs(pid))
        with sent(gateway) as response:
            assert response.status == 200


def test_the_instance_of_a_client_that_goes_is_killed(gateway: Gateway) -> None:
    with do(gateway, "hang") as response:
        pid = int(response.headers["X-Pid"])
        assert response.read1() == b"so far"
        assert pid in gateway.instances.process_ids
    until(lambda: pid not in gateway.instances.process_ids)
    assert not runs(pid)


def test_an_instance_answers_one_request_at_a_time_and_one_is_spare(
    function: LambdaFunction, tmp_path: Path
) -> None:
    file = tmp_path / "go"
    with serving(function) as gateway, contextlib.ExitStack() as stack:
        asked = [stack.enter_context(do(gateway, "stream", wait_for=[str(file)])) for _ in range(4)]
        pids = {int(response.headers["X-Pid"]) for response in asked}
        assert len(pids) == 4
        until(lambda: len(gateway.instances.process_ids) == 5)
        file.touch()
        assert {response.read() for response in asked} == {str(file).encode()}
        with sent(gateway) as response:
            assert int(response.headers["X-Pid"]) in gateway.instances.process_ids


def test_a_burst_is_answered_by_more_instances_than_start_at_a_time(
    function: LambdaFunction,
) -> None:
    with serving(function) as gateway, ThreadPoolExecutor(12) as pool:

        def ask(_: int) -> bytes:
            with do(gateway, "stream", wait_for=["/"]) as response:
                return response.read()

        assert set(pool.map(ask, range(40))) == {b"/"}


def test_clients_that_go_early_spoil_nothing_for_the_others(function: LambdaFunction) -> None:
    """An instance may ask for its next event in the moment in which it is killed."""
    with serving(function) as gateway, ThreadPoolExecutor(12) as pool:

        def ask(number: int) -> bytes:
            with do(gateway, "stream", wait_for=["/"]) as response:
                return response.read() if number % 2 else b"/"

        assert set(pool.map(ask, range(60))) == {b"/"}


def test_too_many_at_a_time_are_told_to_come_again(function: LambdaFunction) -> None:
    with serving(function, max_instances=1) as gateway, do(gateway, "hang") as hanging:
        assert hanging.status == 200
        with sent(gateway) as response:
            is_error(response, 429, -32603)


def test_a_function_that_does_not_start_fails_each_request(tmp_path: Path) -> None:
    with serving(bundle(tmp_path / "code", BROKEN)) as gateway:
        with pytest.raises(FunctionError, match="ImportError"):
            gateway.instances.wait_until_warm(10)
        for _ in range(2):
            with sent(gateway) as response:
                is_error(response, 502, -32603)


def test_an_instance_sees_the_functions_variables_and_none_of_the_callers(
    gateway: Gateway, function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    with do(gateway, "environment") as response:
        variables = json.load(response)
    assert function.environment.items() <= variables.items()
    assert variables["AWS_LAMBDA_FUNCTION_NAME"] == function.name
    assert variables["LAMBDA_TASK_ROOT"] == str(function.bundle)
    assert "AWS_PROFILE" not in variables
    assert "AWS_DEFAULT_REGION" not in variables  # this test's own, set in every unit test


def test_nothing_runs_after_the_end(function: LambdaFunction) -> None:
    with serving(function) as gateway, do(gateway, "hang"):
        processes = gateway.instances.process_ids
        gateway.close()
    assert len(processes) >= 2
    assert not any(map(runs, processes))


MAIN = """
import sys
from pathlib import Path, PosixPath
from local import deployment, emulator
from local.gateway import DeployedApi
from local.gateway.__main__ import main
from local.gateway.lambda_instances import InstancePool, LambdaFunction
from local.gateway.rest_api import RestApi

emulator.find = lambda name: emulator.Emulator(name, 1, 1)
deployment.STATE = Path({state!r})
DeployedApi.read = lambda stack, aws: DeployedApi(RestApi("a1b2", {{}}, {{}}), {function!r})
wait_until_warm = InstancePool.wait_until_warm
def wait_and_print(pool, seconds):
    wait_until_warm(pool, seconds)
    print(*pool.process_ids, flush=True)
InstancePool.wait_until_warm = wait_and_print
sys.exit(main())
"""


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL])
def test_instances_end_with_the_gateway(
    function: LambdaFunction, tmp_path: Path, ended_by: signal.Signals
) -> None:
    """Also when it is killed: then they notice that their Runtime API is gone."""
    (tmp_path / "up" / "mcp-tasks").mkdir(parents=True)
    (tmp_path / "up" / "mcp-tasks" / "outputs.json").write_text('{"mcp-tasks": {}}')
    program = MAIN.format(state=str(tmp_path), function=function)
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(ended_by)
    assert process.returncode == (0 if ended_by == signal.SIGTERM else -ended_by)
    assert len(pids) >= 2
    until(lambda: not any(map(runs, pids)))


BACKGROUND = """
import signal, sys
from pathlib import Path

if not Path({state!r}, "fine").exists():
    sys.exit("what went wrong")
port = int(sys.argv[sys.argv.index("--port") + 1]) or 8765
print(f"http://127.0.0.1:{{port}}/v1/mcp", flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.pause()
"""


def test_up_starts_a_gateway_and_down_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second `up` replaces it, at the same address."""
    (tmp_path / "background_gateway.py").write_text(BACKGROUND.format(state=str(tmp_path)))
    (tmp_path / "up").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(gateway_process, "MODULE", "background_gateway")
    monkeypatch.setattr(gateway_process, "STATE", tmp_path)
    monkeypatch.setattr(gateway_process, "python", lambda: Path(sys.executable))
    stack = LocalStack(Emulator("up", 1, 4566), "mcp-tasks", {})
    with pytest.raises(CommandError, match="what went wrong"):
        gateway_process.start(stack)
    assert gateway_process.find("up") is None
    (tmp_path / "fine").touch()
    first = gateway_process.start(stack)
    assert gateway_process.find("up") == first
    second = gateway_process.start(stack)
    assert second.url == first.url == "http://127.0.0.1:8765/v1/mcp"
    assert not runs(first.pid)
    second.stop()
    assert gateway_process.find("up") is None
    assert not runs(second.pid)


class Lambda:
    """As much of boto3's client as is asked."""

    def get_paginator(self, operation: str) -> Lambda:
        assert operation == "list_functions"
        return self

    def paginate(self) -> Iterator[dict[str, Any]]:
        for name in (
            "mcp-test-Finish1-X",
            "mcp-test-two-ApiFunction9-X",
            "mcp-test-ApiFunction2-X",
        ):
            function = {
                "FunctionName": name,
                "FunctionArn": f"arn:{name}",
                "Timeout": 30,
                "MemorySize": 1024,
                "Environment": {"Variables": {"CELL": "c1"}},
                "Role": f"arn:role/{name}",
            }
            yield {"Functions": [function]}

    def assume_role(self, **request: Any) -> dict[str, Any]:
        names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
        return {"Credentials": {name: f"{name} of {request['RoleArn']}" for name in names}}


def test_the_function_is_run_as_it_is_deployed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older bundles stay in the same folder: the template tells which one counts."""
    monkeypatch.setattr("local.deployment.STATE", tmp_path)
    assembly = tmp_path / "test" / "mcp-test" / "cdk.out"
    assembly.mkdir(parents=True)
    function = {"Type": "AWS::Lambda::Function"}
    template = {
        "Resources": {
            "Finish1": {**function, "Metadata": {"aws:asset:path": "asset.finish"}},
            "ApiFunction2": {**function, "Metadata": {"aws:asset:path": "asset.api"}},
            "ApiFunctionLogs3": {"Type": "AWS::Logs::LogGroup"},
        }
    }
    (assembly / "mcp-test.template.json").write_text(json.dumps(template))
    emulator = Emulator("test", 1, 4566)
    stack, api = LocalStack(emulator, "mcp-test", {"ApiId": API_ID}), Aws()
    both = DeployedApi.read(stack, lambda service: api if service == "apigateway" else Lambda())
    assert both.api == rest_api()
    found = both.function
    assert found.name == "mcp-test-ApiFunction2-X"
    assert found.bundle == assembly / "asset.api"
    assert (found.timeout_seconds, found.memory_mb) == (15 * 60, 1024)
    role = "arn:role/mcp-test-ApiFunction2-X"
    assert found.environment == {
        "CELL": "c1",
        **emulator.environment,
        "AWS_ACCESS_KEY_ID": f"AccessKeyId of {role}",
        "AWS_SECRET_ACCESS_KEY": f"SecretAccessKey of {role}",
        "AWS_SESSION_TOKEN": f"SessionToken of {role}",
    }
