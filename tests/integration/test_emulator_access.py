"""Whom the emulator answers: programs with this run's keys, and no web page.

The headers are those that Chromium sends (test_web_pages.py). An emulator that let pages in would
let them run code on the developer's machine.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from typing import Any, Final, Literal
from urllib.parse import urlencode, urlsplit

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from local.deployment import LocalStack
from local.emulator import ACCOUNT, REGION, Emulator, Keys
from local.environment import STATE
from local.gateway import Gateway
from tests.integration.support.client import Client
from tests.integration.support.lambda_code import archive, function, invoked

EVIL: Final = "http://evil.example:8000"
PAGES: Final = {
    "a page posts text": {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
    "a page of this machine posts text": {
        "Origin": "http://localhost:8000",
        "Sec-Fetch-Site": "same-site",
    },
    "a page loads an image": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image"},
    "a page leads here": {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    "a page without an origin of its own": {"Origin": "null"},
    "an old browser's page": {"Origin": EVIL},
    "a page whose name leads here": {"Host": "evil.example:4566"},
    "its script": {"Host": "evil.example:4566", "Origin": "http://evil.example:4566"},
    "a page that asks first": {
        "Origin": EVIL,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-amz-target",
        "Sec-Fetch-Site": "cross-site",
    },
}
CREDENTIAL: Final = {"X-Amz-Credential": "test/20260101/us-east-1/sqs/aws4_request"}
REQUESTS: Final = [
    ("GET", "/"),
    ("POST", f"/?{urlencode({'Action': 'CreateQueue', 'QueueName': 'pwned', **CREDENTIAL})}"),
    ("POST", "/2015-03-31/functions"),
    ("POST", "/2015-03-31/functions/pwned/invocations"),
    ("PUT", "/a-bucket/a-key"),
    ("DELETE", "/a-bucket"),
    ("HEAD", "/a-bucket/a-key"),
    ("OPTIONS", "/"),
    ("OPTIONS", "/a-bucket/a-key"),
    ("GET", "/_ministack/health"),
    ("POST", "/_ministack/reset"),
    ("POST", "/_aws/execute-api/a1b2c3d4"),
    ("POST", "/restapis/a1b2c3d4/v1/_user_request_/mcp"),
    ("GET", "//_aws/execute-api/a1b2c3d4/v1/mcp"),
]
"""Methods and paths of the emulator that are none of a REST API's."""
CALLS: Final[dict[str, Callable[[Any], Any]]] = {
    "lambda": lambda client: client.list_functions(),
    "s3": lambda client: client.list_buckets(),
    "dynamodb": lambda client: client.list_tables(),
    "sqs": lambda client: client.list_queues(),
    "sts": lambda client: client.get_caller_identity(),
    "iam": lambda client: client.list_users(),
    "cloudformation": lambda client: client.list_stacks(),
}
PYTHON: Final = f"python3.{sys.version_info[1]}"
ENVIRONMENT: Final = "import os\n\ndef handler(event, context):\n    return dict(os.environ)\n"
BOOTSTRAP: Final = '''\
#!/usr/bin/env python3
"""A function's own runtime. It also asks as a web page would, and returns how it was refused."""
import http.client, json, os

API = "/2018-06-01/runtime/invocation"
PAGES = [{"Origin": "http://e.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "e.example"}]

def ask(method, path, body=None, headers={}):
    connection = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"], timeout=20)
    connection.request(method, API + path, body, headers)
    return connection.getresponse()

while True:
    event = ask("GET", "/next")
    event.read()
    path = "/" + event.headers["Lambda-Runtime-Aws-Request-Id"] + "/response"
    statuses = [ask("POST", path, '"forged"', page).status for page in PAGES]
    statuses += [ask("GET", "/next", None, page).status for page in PAGES]
    ask("POST", path, json.dumps(statuses)).read()
'''


def status_of(emulator: Emulator, method: str, path: str, **headers: str) -> tuple[int, bytes, str]:
    """Ask the emulator; the status, the body, and the names of the headers."""
    with closing(HTTPConnection("127.0.0.1", emulator.port, timeout=30)) as connection:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(), " ".join(response.headers).lower()


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize(("method", "path"), REQUESTS)
def test_a_web_page_is_refused(
    emulator: Emulator, page: dict[str, str], method: str, path: str
) -> None:
    status, body, names = status_of(emulator, method, path, **page)
    assert status == 403
    assert method == "HEAD" or body.startswith(b"403 Forbidden: ")
    assert "access-control-" not in names


@pytest.mark.parametrize("path", ["/", "/_aws/execute-api/a1b2c3d4/v1/mcp"])
def test_a_web_socket_is_refused(emulator: Emulator, path: str) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Origin": EVIL}
    keys = {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert status_of(emulator, "GET", path, **upgrade, **keys)[0] == 403


def test_a_program_gets_no_cors_headers(emulator: Emulator, aws: Any) -> None:
    headers = aws("sqs").list_queues()["ResponseMetadata"]["HTTPHeaders"]
    assert not [name for name in headers if name.lower().startswith("access-control-")]
    for method, path in [("OPTIONS", "/"), ("GET", "/unknown/.well-known/jwks.json")]:
        assert "access-control-" not in status_of(emulator, method, path)[2]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/_ministack/reset"),
        ("POST", "/_ministack/config"),
        ("GET", f"/_ministack/lambda-code/{ACCOUNT}/{REGION}/pwned"),
        ("GET", "/_aws/sqs/messages"),
        ("GET", "/_aws/ses"),
        ("GET", "/_localstack/health"),
    ],
)
def test_the_emulator_s_own_paths_are_not_served(
    emulator: Emulator, method: str, path: str
) -> None:
    """They need no key, and one deletes all state."""
    assert status_of(emulator, method, path)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "sqs.us-east-1.localhost"])
def test_names_of_this_machine_are_answered(emulator: Emulator, host: str) -> None:
    for name in (host, f"{host}:{emulator.port}", f"{host.upper()}:1"):
        assert status_of(emulator, "GET", "/_ministack/health", Host=name)[0] == 200


def client_with(emulator: Emulator, service: str, keys: Keys | None, **config: Any) -> Any:
    """boto3's client with these keys, or without any."""
    if keys is None:
        config["signature_version"] = UNSIGNED
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=emulator.url,
        region_name=REGION,
        aws_access_key_id=keys and keys.access_key_id,
        aws_secret_access_key=keys and keys.secret_access_key,
        config=Config(retries={"total_max_attempts": 1}, **config),
    )


def strangers(emulator: Emulator) -> dict[str, Keys | None]:
    """Who has no keys of this run."""
    return {
        "the key that every emulator takes": Keys("test", "test"),
        "an account's number": Keys(ACCOUNT, "test"),
        "another account's number": Keys("111111111111", "test"),
        "an unknown key": Keys.random(),
        "a key id without its secret": Keys(emulator.keys.access_key_id, "test"),
        "an empty secret": Keys(emulator.keys.access_key_id, "x"),
        "nobody": None,
    }


@pytest.mark.parametrize("service", CALLS)
def test_only_this_run_s_keys_are_taken(emulator: Emulator, service: str) -> None:
    assert CALLS[service](client_with(emulator, service, emulator.keys))
    for who, keys in strangers(emulator).items():
        with pytest.raises(ClientError) as refused:
            pytest.fail(f"{who}: {CALLS[service](client_with(emulator, service, keys))}")
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in (400, 403), who


def test_nobody_assumes_a_role_without_a_key(emulator: Emulator) -> None:
    """AWS checks the token of the identity provider. The emulator would not."""
    about = {"RoleArn": f"arn:aws:iam::{ACCOUNT}:role/any", "RoleSessionName": "any"}
    for keys in (None, Keys("test", "test")):
        client = client_with(emulator, "sts", keys)
        with pytest.raises(ClientError):
            client.assume_role_with_web_identity(**about, WebIdentityToken="eyJhbGciOiJub25lIn0..")


@pytest.mark.parametrize("style", ["path", "virtual"])
def test_links_are_taken_with_a_known_key_s_signature(
    emulator: Emulator, aws: Any, style: Literal["path", "virtual"]
) -> None:
    """Links that name the bucket in the path, and those that name it in the Host."""
    bucket, where = f"links-{style}", {"Bucket": f"links-{style}", "Key": "a"}
    aws("s3").create_bucket(Bucket=bucket)
    aws("s3").put_object(**where, Body=b"text")

    def status(keys: Keys, replace: tuple[str, str] = ("", "")) -> int:
        s3 = boto3.client(
            "s3",
            endpoint_url=f"http://s3.localhost:{emulator.port}",
            region_name=REGION,
            aws_access_key_id=keys.access_key_id,
            aws_secret_access_key=keys.secret_access_key,
            config=Config(s3={"addressing_style": style}, signature_version="s3v4"),
        )
        link = urlsplit(s3.generate_presigned_url("get_object", where).replace(*replace))
        assert link.netloc.startswith(bucket) == (style == "virtual")
        path = f"{link.path}?{link.query}"
        return status_of(emulator, "GET", path, Host=link.netloc)[0]

    assert status(emulator.keys) == 200
    assert status(emulator.keys, ("X-Amz-Expires=3600", "X-Amz-Expires=3601")) == 403
    for who, keys in strangers(emulator).items():
        assert keys is None or status(keys) == 403, who


def test_a_function_knows_its_own_role_s_keys_only(emulator: Emulator, aws: Any) -> None:
    """Nobody can compute them from names, as they could from MiniStack's."""
    code = archive("index.py", ENVIRONMENT)
    with function(aws, "environment", PYTHON, "index.handler", code) as name:
        variables = invoked(aws, name)
        configuration = aws("lambda").get_function_configuration(FunctionName=name)
    names = f"{configuration['FunctionArn']}:{configuration['Role']}"
    computed = f"ASIA{hashlib.sha256(names.encode()).hexdigest()[:16].upper()}"
    assert re.fullmatch("ASIA[0-9A-F]{16}", variables["AWS_ACCESS_KEY_ID"])
    assert variables["AWS_ACCESS_KEY_ID"] != computed
    assert emulator.keys.secret_access_key not in json.dumps(variables)
    assert "PYTHONPATH" not in variables


def test_a_web_page_cannot_answer_for_a_function_with_its_own_runtime(aws: Any) -> None:
    code = archive("bootstrap", BOOTSTRAP)
    with function(aws, "runtime", "provided.al2023", "bootstrap", code) as name:
        assert invoked(aws, name) == [403] * 6


def test_the_mcp_endpoint_checks_origin_and_host_by_itself(
    stack: LocalStack, gateway: Gateway
) -> None:
    for url in (stack.url, gateway.url):
        client = Client(url)
        port = urlsplit(url).port
        assert client.request("tools/list").status == 200
        assert client.request("tools/list", headers={"Host": f"localhost:{port}"}).status == 200
        for page in ({"Host": f"evil.example:{port}"}, {"Origin": EVIL}, {"Origin": "null"}):
            body, headers = client.compose("tools/list")
            answer = client.send(body, {**headers, **page})
            assert (answer.status, answer.error["code"]) == (403, -32600), page
            assert answer.headers["Access-Control-Allow-Origin"] is None


def test_the_api_is_answered_under_its_own_name(stack: LocalStack, emulator: Emulator) -> None:
    """A program may name it by the Host."""
    url = f"{emulator.url}/v1/mcp"
    api = f"{stack.outputs['ApiId']}.execute-api.localhost:{emulator.port}"
    assert Client(url).request("tools/list", headers={"Host": api}).status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(url, b"", {"Host": api, "Origin": EVIL}))


def test_the_keys_are_in_no_log(emulator: Emulator, aws: Any) -> None:
    aws("s3").list_buckets()
    for log in (STATE / emulator.name).glob("**/*.log"):
        assert emulator.keys.secret_access_key not in log.read_text(errors="replace"), log
