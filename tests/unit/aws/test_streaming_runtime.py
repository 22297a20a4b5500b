"""The runtime loop that streams, against a Runtime API that takes and refuses what Lambda does.

Lambda developer guide: "Using the Lambda runtime API"; "Building a custom runtime", "Enabling
response streaming".
"""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.gateway.invocation import FunctionError, Invocation
from local.gateway.runtime_api import RuntimeApi
from local.gateway.runtime_api_handler import STREAM_CONTENT_TYPE
from mcp_tasks.aws.streaming_runtime import Context, Response, StreamingHandler, serve
from mcp_tasks.server.http.event_stream import COMMENT, end_stream, streamed_channel
from mcp_tasks.server.http.messages import HttpResponse
from mcp_tasks.server.http.quiet_stream import kept_alive
from tests.paths import ROOT

SECRET = "what somebody asked"
Run = Callable[[StreamingHandler], threading.Thread]


def loop(handler: StreamingHandler) -> threading.Thread:
    """The loop on a thread; a process would end with it."""

    def run() -> None:
        with pytest.raises(SystemExit):
            serve(lambda: handler)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def answer(event: dict[str, Any], context: Context, response: Response) -> None:
    response.start(200, {"Content-Type": "text/plain"})
    response.write(b"one")
    response.write(b"two")


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    with RuntimeApi() as running:
        yield running


@pytest.fixture
def run(api: RuntimeApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a handler on the loop, which ends with the Runtime API."""
    threads: list[threading.Thread] = []
    monkeypatch.setenv("AWS_LAMBDA_RUNTIME_API", api.address)
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "of the test")  # the loop's own is taken back

    def start(handler: StreamingHandler) -> threading.Thread:
        threads.append(loop(handler))
        return threads[-1]

    yield start
    api.close()
    for thread in threads:
        thread.join(5)


def invocation(**event: Any) -> Invocation:
    return Invocation(event, deadline_ms=int(time.time() * 1000) + 60_000)


def body_of(answered: Invocation) -> bytes:
    return b"".join(answered.chunks())


def test_an_answer_has_a_status_headers_and_a_body(api: RuntimeApi, run: Run) -> None:
    run(answer)
    answered = api.invoke(invocation())
    prelude = answered.prelude()
    assert prelude.status == 200
    assert prelude.headers == {"Content-Type": "text/plain"}
    assert body_of(answered) == b"onetwo"


def test_each_chunk_arrives_before_the_next_is_written(api: RuntimeApi, run: Run) -> None:
    heard = threading.Semaphore(0)

    def patient(event: dict[str, Any], context: Context, response: Response) -> None:
        response.start(202, {})
        for number in range(3):
            assert heard.acquire(timeout=5)  # nothing follows before the caller has what was sent
            response.write(b"%d" % number)
        assert heard.acquire(timeout=5)

    run(patient)
    answered = api.invoke(invocation())
    assert answered.prelude().status == 202
    heard.release()
    chunks = []
    for chunk in answered.chunks():
        chunks.append(chunk)
        heard.release()
    assert chunks == [b"0", b"1", b"2"]


def test_a_call_that_says_nothing_is_kept_alive_on_the_wire(api: RuntimeApi, run: Run) -> None:
    """API Gateway ends a response that is idle for five minutes."""
    heard = threading.Event()

    def silent(event: dict[str, Any], context: Context, response: Response) -> None:
        with kept_alive(streamed_channel(response, 0), 0.01):
            assert heard.wait(5)
        end_stream(HttpResponse(200, "{}"), response)

    run(silent)
    answered = api.invoke(invocation())
    assert answered.prelude().headers["Content-Type"] == "text/event-stream"
    chunks = answered.chunks()
    assert [next(chunks), next(chunks)] == [COMMENT, COMMENT]
    heard.set()
    *comments, last = chunks
    assert set(comments) <= {COMMENT}
    assert last == b"event: message\ndata: {}\n\n"


@pytest.mark.parametrize(("status", "sent"), [(202, 202), (204, 200)])
def test_a_response_without_a_message_ends(
    api: RuntimeApi, run: Run, status: int, sent: int
) -> None:
    """After at least one byte: streams of none are reported never to end."""
    run(lambda event, context, response: end_stream(HttpResponse(status), response))
    answered = api.invoke(invocation())
    assert (answered.prelude().status, body_of(answered)) == (sent, b"\n")


def test_events_are_answered_one_after_the_other(api: RuntimeApi, run: Run) -> None:
    def echo(event: dict[str, Any], context: Context, response: Response) -> None:
        response.start(200, {"id": context.aws_request_id})
        response.write(json.dumps(event).encode())

    run(echo)
    for asked in [api.invoke(invocation(number=number)) for number in range(3)]:
        assert asked.prelude().headers == {"id": asked.request_id}
        assert json.loads(body_of(asked)) == asked.event


def test_the_context_tells_what_lambda_tells(
    api: RuntimeApi, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts: list[Context] = []
    traces: list[str] = []

    def keep(event: dict[str, Any], context: Context, response: Response) -> None:
        contexts.append(context)
        traces.append(os.environ["_X_AMZN_TRACE_ID"])
        answer(event, context, response)

    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "api")
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1024")
    run(keep)
    body_of(api.invoke(invocation()))
    (context,) = contexts
    assert context.invoked_function_arn == api.function_arn
    assert (context.function_name, context.memory_limit_in_mb) == ("api", "1024")
    assert 55_000 < context.get_remaining_time_in_millis() <= 60_000
    assert traces[0].startswith("Root=1-")


def test_no_time_remains_after_the_deadline() -> None:
    assert Context("id", "arn", deadline_ms=1).get_remaining_time_in_millis() == 0


def fail_before(event: dict[str, Any], context: Context, response: Response) -> None:
    raise LookupError(SECRET)


def fail_after(event: dict[str, Any], context: Context, response: Response) -> None:
    response.start(200, {})
    response.write(b"so far")
    raise LookupError(SECRET)


def start_nothing(event: dict[str, Any], context: Context, response: Response) -> None:
    """Returns without an answer."""


def start_twice(event: dict[str, Any], context: Context, response: Response) -> None:
    response.start(200, {})
    response.start(500, {})


def write_first(event: dict[str, Any], context: Context, response: Response) -> None:
    response.write(b"too early")


@pytest.mark.parametrize(
    ("handler", "error_type", "body"),
    [
        (fail_before, "LookupError", None),
        (start_nothing, "NoAnswerError", None),
        (write_first, "RuntimeError", None),
        (fail_after, "LookupError", b"so far"),
        (start_twice, "RuntimeError", b""),
    ],
)
def test_a_failure_is_told_by_its_class_alone_and_ends_that_answer_only(
    api: RuntimeApi,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    handler: StreamingHandler,
    error_type: str,
    body: bytes | None,
) -> None:
    """An exception's text may hold arguments and answers: neither the caller nor the log gets it.

    In the middle of an answer the failure goes into the trailers.
    """
    run(lambda event, *rest: (handler if event["first"] else answer)(event, *rest))
    first, second = api.invoke(invocation(first=True)), api.invoke(invocation(first=False))
    if body is not None:
        assert first.prelude().status == 200
    if body:
        assert first.parts.get() == body
    with pytest.raises(FunctionError) as failed:
        body_of(first)
    assert failed.value.error_type == error_type
    assert failed.value.body == {"errorType": error_type, "errorMessage": error_type}
    assert body_of(second) == b"onetwo"
    log = capsys.readouterr().err
    assert log.startswith(f"The handler failed: {error_type} in ")
    assert SECRET not in log


def test_an_empty_chunk_does_not_end_the_answer(api: RuntimeApi, run: Run) -> None:
    def handler(event: dict[str, Any], context: Context, response: Response) -> None:
        response.start(200, {})
        response.write(b"")
        response.write(b"more")

    run(handler)
    assert body_of(api.invoke(invocation())) == b"more"


def test_a_function_that_cannot_be_loaded_says_so_and_ends(
    api: RuntimeApi, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    def load() -> StreamingHandler:
        return authors_module()

    def authors_module() -> StreamingHandler:
        raise ImportError(SECRET)

    with pytest.raises(SystemExit) as ended:
        serve(load)
    assert ended.value.code == 1
    assert api.init_error
    assert api.init_error.error_type == "ImportError"
    assert api.init_error.body == {"errorType": "ImportError", "errorMessage": "ImportError"}
    log = capsys.readouterr().err
    assert SECRET not in log
    raised, called, *_ = re.findall(r"test_streaming_runtime\.py:(\d+)", log)
    assert int(raised) - int(called) == 3, "the line that raised, and the line that led there"


def test_an_answer_that_nobody_takes_does_not_end_the_loop(api: RuntimeApi, run: Run) -> None:
    caught: list[OSError] = []
    cut = threading.Event()

    def persistent(event: dict[str, Any], context: Context, response: Response) -> None:
        response.start(200, {})
        try:
            while event["persistent"] and cut.wait(5):
                response.write(b"more")
        except OSError as error:
            caught.append(error)
            raise

    run(persistent)
    first = api.invoke(invocation(persistent=True))
    first.prelude()
    api.server.shut_down_connections()
    api.server.wait_for_connections(5)
    cut.set()
    with pytest.raises(FunctionError, match=r"Runtime\.TruncatedResponse"):
        body_of(first)
    assert body_of(api.invoke(invocation(persistent=False))) == b""
    assert caught


def test_the_loop_ends_with_the_runtime_api(api: RuntimeApi, run: Run) -> None:
    thread = run(answer)
    body_of(api.invoke(invocation()))
    api.close()
    thread.join(5)
    assert not thread.is_alive()


def test_the_answer_on_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte by byte, as the guide describes it; the fake could share a mistake with the loop."""
    event = (
        b"HTTP/1.1 200 OK\r\nLambda-Runtime-Aws-Request-Id: id-1\r\n"
        b"Lambda-Runtime-Deadline-Ms: 1\r\nContent-Length: 2\r\n\r\n{}"
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("AWS_LAMBDA_RUNTIME_API", f"127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("_X_AMZN_TRACE_ID", "of the test")
        thread = loop(fail_after)
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as stream:
            assert stream.readline() == b"GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\n"
            while stream.readline() != b"\r\n":
                pass
            connection.sendall(event)
            lines = list(iter(stream.readline, b"\r\n"))
            assert lines[0] == b"POST /2018-06-01/runtime/invocation/id-1/response HTTP/1.1\r\n"
            headers = dict(line.decode().strip().split(": ") for line in lines[1:])
            assert headers["Lambda-Runtime-Function-Response-Mode"] == "streaming"
            assert headers["Transfer-Encoding"] == "chunked"
            assert headers["Content-Type"] == STREAM_CONTENT_TYPE
            assert headers["Trailer"] == (
                "Lambda-Runtime-Function-Error-Type, Lambda-Runtime-Function-Error-Body"
            )
            prelude = b'{"statusCode": 200, "headers": {}}' + bytes(8)
            error = b'{"errorType": "LookupError", "errorMessage": "LookupError"}'
            expected = (
                b"2a\r\n" + prelude + b"\r\n6\r\nso far\r\n0\r\n"
                b"Lambda-Runtime-Function-Error-Type: LookupError\r\n"
                b"Lambda-Runtime-Function-Error-Body: " + base64.b64encode(error) + b"\r\n\r\n"
            )
            assert stream.read(len(expected)) == expected
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("variables", "path"),
    [
        ({"LAMBDA_TASK_ROOT": "/t"}, "/t"),
        ({"LAMBDA_TASK_ROOT": "/t", "LAMBDA_RUNTIME_DIR": "/r"}, "/t:/r"),
        ({"LAMBDA_TASK_ROOT": "/t", "LAMBDA_RUNTIME_DIR": "/r", "PYTHONPATH": "/l"}, "/t:/l:/r"),
    ],
)
def test_the_start_script_runs_the_loop_in_place_of_lambdas_own(
    tmp_path: Path, variables: dict[str, str], path: str
) -> None:
    """Lambda developer guide, "Wrapper scripts": it gets the interpreter and the bootstrap."""
    interpreter = tmp_path / "python"
    interpreter.write_text('#!/bin/sh\necho "$PYTHONPATH $PYTHONUNBUFFERED $*"\n')
    interpreter.chmod(0o755)
    script = ROOT / "functions" / "api" / "exec_wrapper"
    environment = {"PATH": os.environ["PATH"], **variables}
    command: list[str | Path] = [script, interpreter, "/var/runtime/bootstrap.py"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == f"{path} 1 -m api.streaming\n"
