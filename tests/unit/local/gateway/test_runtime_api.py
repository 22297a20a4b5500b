"""The Runtime API refuses what Lambda refuses; the deployed runtime loop never sends that.

Sources: Lambda developer guide, "Using the Lambda runtime API"; "Building a custom runtime",
"Enabling response streaming".
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import pytest

from local.gateway.invocation import FunctionError, Invocation
from local.gateway.runtime_api import RuntimeApi
from local.gateway.runtime_api_handler import API_PATH, STREAM_CONTENT_TYPE


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    with RuntimeApi() as running:
        yield running


def invocation(**event: Any) -> Invocation:
    return Invocation(event, deadline_ms=int(time.time() * 1000) + 60_000)


def body_of(answered: Invocation) -> bytes:
    return b"".join(answered.chunks())


STREAMED = {
    "Lambda-Runtime-Function-Response-Mode": "streaming",
    "Transfer-Encoding": "chunked",
    "Content-Type": STREAM_CONTENT_TYPE,
}
TRAILER = "Lambda-Runtime-Function-Error-Type"
PRELUDE = b'{"statusCode": 200}' + bytes(8)


@pytest.fixture
def runtime(api: RuntimeApi) -> Iterator[HTTPConnection]:
    """A connection from a runtime to the Runtime API."""
    connection = HTTPConnection(api.address, timeout=5)
    yield connection
    connection.close()


def post(
    runtime: HTTPConnection, path: str, headers: dict[str, str], *chunks: bytes, trailers: str = ""
) -> int:
    runtime.putrequest("POST", f"{API_PATH}/{path}")
    for name, value in headers.items():
        runtime.putheader(name, value)
    runtime.endheaders()
    if "Transfer-Encoding" in headers:
        for chunk in chunks:
            runtime.send(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        runtime.send(f"0\r\n{trailers}\r\n".encode())
    response = runtime.getresponse()
    response.read()
    return response.status


def take(api: RuntimeApi, runtime: HTTPConnection) -> Invocation:
    taken = api.invoke(invocation())
    runtime.request("GET", f"{API_PATH}/invocation/next")
    assert runtime.getresponse().read() == b"{}"
    return taken


@pytest.mark.parametrize(
    ("headers", "chunks", "status", "error_type"),
    [
        ({}, [PRELUDE], 202, None),
        ({"Lambda-Runtime-Function-Response-Mode": "buffered"}, [PRELUDE], 400, "Mode"),
        ({"Content-Type": "text/event-stream"}, [PRELUDE], 400, "InvalidContentType"),
        ({}, [PRELUDE[:-1]], 400, "InvalidPrelude"),
        ({}, [b"no JSON" + bytes(8)], 400, "InvalidPrelude"),
        ({}, [b'{"headers": {}}' + bytes(8)], 400, "InvalidPrelude"),
    ],
)
def test_a_malformed_response_is_refused(
    api: RuntimeApi,
    runtime: HTTPConnection,
    headers: dict[str, str],
    chunks: list[bytes],
    status: int,
    error_type: str | None,
) -> None:
    taken = take(api, runtime)
    path = f"invocation/{taken.request_id}/response"
    assert post(runtime, path, {**STREAMED, **headers}, *chunks) == status
    if error_type is None:
        assert body_of(taken) == b""
        return
    with pytest.raises(FunctionError, match=error_type):
        body_of(taken)


def test_a_prelude_may_come_in_pieces(api: RuntimeApi, runtime: HTTPConnection) -> None:
    taken = take(api, runtime)
    pieces = [PRELUDE[:5], PRELUDE[5:-3], PRELUDE[-3:] + b"body"]
    post(runtime, f"invocation/{taken.request_id}/response", STREAMED, *pieces)
    assert taken.prelude().status == 200
    assert body_of(taken) == b"body"


@pytest.mark.parametrize("named", [True, False])
def test_only_a_trailer_that_was_announced_counts(
    api: RuntimeApi, runtime: HTTPConnection, named: bool
) -> None:
    taken = take(api, runtime)
    headers = {**STREAMED, **({"Trailer": TRAILER} if named else {})}
    path = f"invocation/{taken.request_id}/response"
    assert post(runtime, path, headers, PRELUDE, trailers=f"{TRAILER}: Broken\r\n") == 202
    if named:
        with pytest.raises(FunctionError, match="Broken"):
            body_of(taken)
    else:
        assert body_of(taken) == b""


def test_an_event_gets_one_response_by_its_id(api: RuntimeApi, runtime: HTTPConnection) -> None:
    taken = take(api, runtime)
    path = f"invocation/{taken.request_id}/response"
    assert post(runtime, "invocation/another/response", STREAMED, PRELUDE) == 400
    assert post(runtime, path, STREAMED, PRELUDE) == 202
    assert post(runtime, path, STREAMED, PRELUDE) == 400
    assert post(runtime, path.replace("response", "error"), {}) == 400


def test_an_instance_gets_no_event_before_its_response_has_ended(
    api: RuntimeApi, runtime: HTTPConnection
) -> None:
    taken = take(api, runtime)
    runtime.request("GET", f"{API_PATH}/invocation/next")
    refused = runtime.getresponse()
    refused.read()
    assert refused.status == 403
    assert post(runtime, "init/error", {}) == 403
    api.close()
    with pytest.raises(FunctionError, match=r"Runtime\.ExitError"):
        taken.prelude()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example", "Content-Type": "text/plain"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "invocation/next"),
        ("POST", "invocation/{}/response"),
        ("POST", "invocation/{}/error"),
        ("POST", "init/error"),
        ("OPTIONS", "invocation/next"),
    ],
)
def test_a_web_page_is_refused(
    api: RuntimeApi, runtime: HTTPConnection, headers: dict[str, str], method: str, path: str
) -> None:
    """It could take the function's events and forge its responses."""
    taken = take(api, runtime)
    page = HTTPConnection(api.address, timeout=5)
    page.request(method, f"{API_PATH}/{path.format(taken.request_id)}", b"{}", headers)
    response = page.getresponse()
    assert response.status == 403
    assert "invocation" not in response.read().decode()
    assert response.getheader("Access-Control-Allow-Origin") is None
    page.close()
    assert post(runtime, f"invocation/{taken.request_id}/response", STREAMED, PRELUDE) == 202
    assert body_of(taken) == b""
