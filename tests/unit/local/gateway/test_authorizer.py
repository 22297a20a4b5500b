"""A gateway with a Lambda authorizer: who may call, and how the others are refused.

Sources: API Gateway developer guide, "Use API Gateway Lambda authorizers", "Input to an API Gateway
Lambda authorizer", "Output from an API Gateway Lambda authorizer" and "Gateway response types".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from email.message import Message
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError

from local.gateway import DeployedApi, Gateway
from local.gateway.lambda_instances import LambdaFunction
from local.gateway.rest_api import RestApi
from tests.unit.support.rest_api import API_ID, CHALLENGE, DOCUMENT, WELL_KNOWN, Aws, Decide

ARN = f"arn:aws:execute-api:us-east-1:000000000000:{API_ID}/v1/POST/mcp"
STRONGER = 'Bearer error="insufficient_scope", scope="a b"'


def policy(effect: str = "Allow", resource: Any = ARN, **context: Any) -> dict[str, Any]:
    statement = {"Action": "execute-api:Invoke", "Effect": effect, "Resource": resource}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    return {"principalId": "ada", "policyDocument": document, "context": context}


class Guarded:
    """A gateway whose authorizer decides as `decide` does."""

    def __init__(self, function: LambdaFunction) -> None:
        self.decide: Decide = lambda event: policy()
        self.aws = Aws(lambda event: self.decide(event))
        self.gateway = Gateway(DeployedApi(RestApi.read(API_ID, self.aws), function))

    def ask(
        self, *headers: tuple[str, str], method: str = "POST", path: str = "/v1/mcp"
    ) -> tuple[int, Message, Any]:
        """Status, headers and JSON of the answer."""
        with closing(HTTPConnection(urlsplit(self.gateway.url).netloc, timeout=10)) as connection:
            connection.putrequest(method, path)
            for name, value in headers:
                connection.putheader(name, value)
            connection.putheader("Content-Length", "2")
            connection.endheaders(b"[]")
            response = connection.getresponse()
            return response.status, response.headers, json.load(response)


TOKEN = ("Authorization", "Bearer abc")


@pytest.fixture(scope="module")
def shared(function: LambdaFunction) -> Iterator[Guarded]:
    guarded = Guarded(function)
    with guarded.gateway:
        yield guarded


@pytest.fixture
def guarded(shared: Guarded) -> Guarded:
    shared.decide = lambda event: policy()
    shared.aws.events.clear()
    return shared


def is_refused(answer: tuple[int, Message, Any], status: int, challenge: str | None) -> None:
    found, headers, body = answer
    assert (found, headers["WWW-Authenticate"]) == (status, challenge)
    assert headers["Content-Type"] == "application/json"
    assert (body["jsonrpc"], set(body)) == ("2.0", {"jsonrpc", "error"}), "not the function's"


def raising(error: Exception) -> Decide:
    def decide(event: dict[str, Any]) -> Any:
        raise error

    return decide


def test_the_authorizer_is_asked_with_the_event_of_a_request(guarded: Guarded) -> None:
    headers = [TOKEN, ("authorization", "Bearer other"), ("Mcp-Name", "greet")]
    guarded.ask(*headers, path="/v1/mcp?access_token=abc&x=1&x=2&y=")
    (event,) = guarded.aws.events
    assert (event["type"], event["methodArn"]) == ("REQUEST", ARN)
    assert (event["resource"], event["path"], event["httpMethod"]) == ("/mcp", "/mcp", "POST")
    assert event["multiValueHeaders"]["authorization"] == ["Bearer abc", "Bearer other"]
    assert event["headers"]["authorization"] == "Bearer other"
    assert event["headers"]["mcp-name"] == "greet"
    assert event["queryStringParameters"] == {"access_token": "abc", "x": "2", "y": ""}
    assert event["multiValueQueryStringParameters"]["x"] == ["1", "2"]
    assert event["requestContext"]["identity"]["sourceIp"] == "127.0.0.1"
    assert "body" not in event


def test_the_authorizers_context_reaches_the_function_as_strings(guarded: Guarded) -> None:
    guarded.decide = lambda event: policy(principal="i|ada", scopes="a b", number=1, good=True)
    status, _, event = guarded.ask(TOKEN)
    assert status == 200
    said = event["requestContext"]["authorizer"]
    assert isinstance(said.pop("integrationLatency"), str)
    assert said == {
        "principalId": "ada",
        "principal": "i|ada",
        "scopes": "a b",
        "number": "1",
        "good": "true",
    }


@pytest.mark.parametrize("resource", [[ARN], "*", ARN.replace("POST/mcp", "*/*")], ids=str)
def test_a_policy_may_allow_more_than_the_method(guarded: Guarded, resource: Any) -> None:
    guarded.decide = lambda event: policy(resource=resource)
    assert guarded.ask(TOKEN)[0] == 200


@pytest.mark.parametrize("headers", [[], [("Authorization", "")]], ids=["none", "empty"])
def test_a_request_without_a_token_is_refused_without_the_authorizer(
    guarded: Guarded, headers: list[tuple[str, str]]
) -> None:
    is_refused(guarded.ask(*headers), 401, CHALLENGE)
    assert guarded.aws.events == []


def test_an_authorizer_that_raises_unauthorized_is_401(guarded: Guarded) -> None:
    guarded.decide = raising(Exception("Unauthorized"))
    is_refused(guarded.ask(TOKEN), 401, CHALLENGE)


@pytest.mark.parametrize(
    "decide",
    [
        raising(LookupError("no keys")),
        raising(ClientError({"Error": {"Code": "TooManyRequestsException"}}, "Invoke")),
        lambda event: None,
        lambda event: {"principalId": "ada"},
        lambda event: {**policy(), "context": {"list": [1]}},
        lambda event: {**policy(), "policyDocument": {"Statement": [{}]}},
    ],
    ids=["raised", "throttled", "nothing", "no policy", "no text", "no effect"],
)
def test_without_a_decision_nobody_may_call(guarded: Guarded, decide: Decide) -> None:
    guarded.decide = decide
    is_refused(guarded.ask(TOKEN), 503, None)


def test_a_denial_is_403_with_the_authorizers_challenge(guarded: Guarded) -> None:
    guarded.decide = lambda event: policy("Deny", challenge=STRONGER)
    is_refused(guarded.ask(TOKEN), 403, STRONGER)


@pytest.mark.parametrize(
    "answer",
    [policy("Deny"), policy(resource=ARN.replace("POST", "GET")), policy(resource=[])],
    ids=["denied", "another method", "nothing"],
)
def test_what_is_not_allowed_is_denied(guarded: Guarded, answer: dict[str, Any]) -> None:
    """A header whose variable has no value is left out."""
    guarded.decide = lambda event: answer
    is_refused(guarded.ask(TOKEN), 403, None)


def test_a_denial_outweighs_what_is_allowed(guarded: Guarded) -> None:
    both = policy("Deny")
    both["policyDocument"]["Statement"] += policy()["policyDocument"]["Statement"]
    guarded.decide = lambda event: both
    is_refused(guarded.ask(TOKEN), 403, None)


def test_everybody_may_read_the_metadata(guarded: Guarded) -> None:
    status, headers, document = guarded.ask(method="GET", path=f"/v1{WELL_KNOWN}")
    assert (status, document, headers["Cache-Control"]) == (200, DOCUMENT, "public")
    assert headers["Content-Type"] == "application/json"
    assert guarded.aws.events == []


@pytest.mark.parametrize(
    "changed",
    [{"authorizerResultTtlInSeconds": 300}, {"authorizerUri": "arn:aws:cognito-idp:userpool/x"}],
    ids=str,
)
def test_an_authorizer_with_a_cache_or_without_a_function_is_refused(
    changed: dict[str, Any],
) -> None:
    with pytest.raises(ValueError, match="is not a Lambda authorizer without a cache"):
        RestApi.read(API_ID, Aws(lambda event: policy(), **changed))


def test_an_api_that_checks_signatures_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway cannot check signatures, and nobody may call without one."""
    aws = Aws()
    pages: list[dict[str, Any]] = list(aws.paginate(API_ID, ["methods"]))
    pages[1]["items"][0]["resourceMethods"]["POST"]["authorizationType"] = "AWS_IAM"
    monkeypatch.setattr(Aws, "paginate", lambda *_, **__: pages)
    with pytest.raises(ValueError, match="POST /mcp: AWS_IAM"):
        RestApi.read(API_ID, aws)
