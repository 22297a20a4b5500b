"""A request through the gateway: methods, bodies, streams and failures.

Sources: API Gateway developer guide, "Stream the integration response for your proxy integrations",
"Lambda proxy integrations" and "Gateway responses".
"""

from __future__ import annotations

import json
from contextlib import closing
from http.client import HTTPConnection, IncompleteRead
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from local.gateway import MAX_BODY_BYTES, Gateway
from local.gateway_process import PATH
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.http.api_gateway import from_api_gateway
from mcp_tasks.tasks.task import ANYONE
from tests.unit.local.gateway.small_function import do, is_error, sent
from tests.unit.support.rest_api import WELL_KNOWN


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
    """With a length or in chunks, as text or, when it is no UTF-8, as Base64."""
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
            ("POST", "/v1/other", 404),
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


@pytest.mark.parametrize(("method", "path"), [("POST", "/mcp"), ("POST", "/v1"), ("GET", "/")])
def test_paths_outside_of_the_stage_are_forbidden(gateway: Gateway, method: str, path: str) -> None:
    with sent(gateway, method, path=path) as response:
        is_error(response, 403, -32600)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", PATH),
        ("OPTIONS", PATH),
        ("POST", f"{PATH}/more"),
        ("GET", "/v1/.well-known/openid-configuration"),
        ("POST", f"/v1{WELL_KNOWN}"),
    ],
)
def test_a_greedy_path_takes_what_no_other_path_or_method_takes(
    gateway: Gateway, method: str, path: str
) -> None:
    """API Gateway looks for a resource that has the method, from the most specific on."""
    with sent(gateway, method, path=path) as response:
        is_error(response, 404, -32600)


def test_a_body_above_ten_megabytes_is_too_large(gateway: Gateway) -> None:
    with sent(gateway, body=bytes(MAX_BODY_BYTES + 1)) as response:
        is_error(response, 413, -32600)


@pytest.mark.parametrize("what", ["fail", "exit"])
def test_a_function_that_fails_before_its_response_is_a_bad_gateway(
    gateway: Gateway, what: str
) -> None:
    with do(gateway, what) as response:
        is_error(response, 502, -32603)
    with sent(gateway) as response:
        assert response.status == 200


@pytest.mark.parametrize("what", ["break", "vanish"])
def test_a_response_that_breaks_off_lacks_its_last_chunk(gateway: Gateway, what: str) -> None:
    with do(gateway, what) as response:
        assert response.status == 200
        with pytest.raises(IncompleteRead) as broken:
            response.read()
        assert broken.value.partial == b"so far"
