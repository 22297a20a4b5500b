"""Servers that answer wrongly, and one that does not answer at all."""

from __future__ import annotations

from typing import Any

import pytest

from operations.verify import endpoint_checks
from operations.verify.check import Outcome, outcome_of
from operations.verify.credentials import AccessToken, Credentials, NoCredentials
from operations.verify.deployed import Deployed, ToolCall
from operations.verify.endpoint import Endpoint
from tests.unit.operations.verify.serving import Answers, serving

CHECKS = {check.title: check for check in endpoint_checks.CHECKS}
CHALLENGE = {"WWW-Authenticate": 'Bearer resource_metadata="{url}/metadata"'}


def _check(
    title: str,
    answers: Answers,
    credentials: Credentials | None = None,
) -> Outcome:
    with serving(answers) as url:
        deployed = Deployed(Endpoint(url, credentials or NoCredentials()), False, None)
        return outcome_of(CHECKS[title], deployed)


def _result(**result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def test_a_server_without_the_extension_is_found() -> None:
    answer = _result(supportedVersions=["2026-07-28"], capabilities={})
    outcome = _check("Discover the server", {"server/discover": (200, {}, answer)})
    assert outcome.verdict == "FAILED"
    assert outcome.seen == "it does not declare io.modelcontextprotocol/tasks"


def test_an_error_is_shown_as_the_server_words_it() -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal error"}}
    outcome = _check("Discover the server", {"server/discover": (500, {}, error)})
    assert (outcome.verdict, outcome.seen) == ("FAILED", "HTTP 500, -32603: Internal error")


def test_a_server_that_does_not_listen_is_found() -> None:
    with serving({}) as url:
        pass
    outcome = outcome_of(CHECKS["List the tools"], Deployed(Endpoint(url), False, None))
    assert outcome.verdict == "FAILED"
    assert "ConnectionRefusedError" in outcome.seen


def test_all_pages_of_tools_are_read() -> None:
    pages: Answers = {"tools/list": (200, {}, _result(tools=[{"name": "a"}]))}
    with serving(pages) as url:
        deployed = Deployed(Endpoint(url), False, None)
        assert outcome_of(CHECKS["List the tools"], deployed).seen == "1 tools"
        assert deployed.offered(ToolCall("a")) == ToolCall("a")


@pytest.mark.parametrize(
    ("title", "answers", "seen"),
    [
        (
            "Answer unknown paths with 404",
            {"GET": (403, {}, {})},
            "GET of .well-known/openid-configuration: HTTP 403, not 404",
        ),
        (
            "Answer unknown paths with 404",
            {"GET": (404, {}, {}), "PUT": (404, {}, {}), "DELETE": (403, {}, {})},
            "DELETE of no-such-path: HTTP 403, not 404",
        ),
        (
            "Refuse unknown methods",
            {"PUT": (405, {"Allow": "POST"}, {}), "PATCH": (403, {}, {})},
            "PATCH: HTTP 403, not 405",
        ),
        ("Refuse unknown methods", {"PUT": (405, {}, {})}, "PUT: Allow names no POST"),
        (
            "Refuse pages of other sites",
            {"ping": (200, {}, {})},
            "an unknown Origin gets HTTP 200, not 403",
        ),
    ],
)
def test_what_a_stranger_should_not_get_is_found(title: str, answers: Answers, seen: str) -> None:
    outcome = _check(title, answers)
    assert (outcome.verdict, outcome.seen) == ("FAILED", seen)


@pytest.mark.parametrize(
    ("status", "headers", "resource", "seen"),
    [
        (200, {}, "", "without a token: HTTP 200, not 401"),
        (401, {}, "", "WWW-Authenticate names no metadata: ''"),
        (401, CHALLENGE, "https://other.example", "resource is https://other.example, not the end"),
    ],
)
def test_a_door_that_is_open_or_mislabelled_is_found(
    status: int, headers: dict[str, str], resource: str, seen: str
) -> None:
    document = {"resource": resource, "authorization_servers": ["https://issuer.example"]}
    answers = {
        "tools/list": (status, headers, {}),
        "GET /metadata": (200, {}, document),
    }
    outcome = _check("Refuse strangers", answers, AccessToken("good"))
    assert outcome.verdict == "FAILED"
    assert seen in outcome.seen


def test_a_door_that_names_its_issuer_passes() -> None:
    document = {"resource": "{url}/v1/mcp", "authorization_servers": ["https://issuer.example"]}
    answers = {"tools/list": (401, CHALLENGE, {}), "GET /metadata": (200, {}, document)}
    outcome = _check("Refuse strangers", answers, AccessToken("good"))
    assert outcome.verdict == "passed", outcome
    assert outcome.seen.endswith("/metadata names https://issuer.example")


def test_what_only_aws_can_tell_is_not_tried_on_the_emulator() -> None:
    deployed = Deployed(Endpoint("http://127.0.0.1:1/mcp"), True, None)
    outcome = outcome_of(CHECKS["Answer unknown paths with 404"], deployed)
    assert (outcome.verdict, outcome.seen) == ("only AWS can tell", "")
