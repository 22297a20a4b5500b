"""Servers that let pages call, too few pages, or too many."""

from __future__ import annotations

from typing import Any, Final

import pytest

from operations.verify.browser_checks import CHECKS
from operations.verify.check import Outcome, outcome_of
from operations.verify.credentials import AccessToken
from operations.verify.endpoint import Endpoint
from tests.unit.operations.verify.account import Account
from tests.unit.operations.verify.serving import Answering, Answers, serving

ASK, READ, CHALLENGE, METADATA = CHECKS
PAGE: Final = "https://a.example"
"""On the list of `Account`."""
SENT: Final = (
    "authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-param-region, "
    "mcp-protocol-version, mcp-session-id"
)
PERMISSION: Final = {
    "Access-Control-Allow-Origin": PAGE,
    "Access-Control-Allow-Methods": "POST, GET, DELETE",
    "Access-Control-Allow-Headers": SENT,
}
READABLE: Final = {
    "Access-Control-Allow-Origin": PAGE,
    "Access-Control-Expose-Headers": "Mcp-Session-Id, WWW-Authenticate",
    "Vary": "Origin",
}
NAMED: Final = {"WWW-Authenticate": 'Bearer resource_metadata="{url}/metadata"'}
PUBLIC: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET",
    "Access-Control-Allow-Headers": "Mcp-Protocol-Version",
}
RESULT: Final = {"jsonrpc": "2.0", "id": 1, "result": {}}


class _Listing(Answering):
    """Answers the preflights of pages that are not on its list with 403."""

    def do_OPTIONS(self) -> None:
        listed = self.headers["Origin"] == PAGE or self.path == "/metadata"
        self.answer("OPTIONS" if listed else "refused")


def _outcome(check: Any, answers: Answers, origins: str | None = None) -> Outcome:
    account = Account()
    if origins is not None:
        variables = {"Variables": {"ALLOWED_ORIGINS": origins}}
        account.answers["get_function_configuration"] = {"Environment": variables}
    deployed = account.deployed()
    with serving({"refused": (403, {}, {})} | answers, _Listing) as url:
        deployed.endpoint = Endpoint(url, AccessToken("good"))
        return outcome_of(check, deployed)


def test_a_listed_page_is_told_that_it_may_call() -> None:
    outcome = _outcome(ASK, {"OPTIONS": (204, PERMISSION, "")})
    assert (outcome.verdict, outcome.seen) == (
        "passed",
        f"{PAGE} may call, https://attacker.example may not",
    )


@pytest.mark.parametrize(
    ("answers", "seen"),
    [
        ({"OPTIONS": (403, {}, "")}, "the preflight of a POST: HTTP 403"),
        ({"OPTIONS": (200, {}, "")}, f"allows the origin None, not {PAGE}"),
        (
            {"OPTIONS": (200, PERMISSION | {"Access-Control-Allow-Methods": "POST, GET"}, "")},
            "the preflight of a DELETE does not allow the method",
        ),
        (
            {"OPTIONS": (200, PERMISSION | {"Access-Control-Allow-Headers": "accept"}, "")},
            "does not allow Authorization, Content-Type, Last-Event-ID, Mcp-Method",
        ),
        (
            {
                "OPTIONS": (204, PERMISSION, ""),
                "refused": (403, {"Access-Control-Allow-Origin": "https://attacker.example"}, ""),
            },
            "a page that is not on the list is allowed to call: https://attacker.example",
        ),
    ],
)
def test_a_wrong_preflight_is_found(answers: Answers, seen: str) -> None:
    outcome = _outcome(ASK, answers)
    assert outcome.verdict == "FAILED", outcome
    assert seen in outcome.seen


def test_a_listed_page_reads_the_session_and_the_challenge() -> None:
    assert _outcome(READ, {"server/discover": (200, READABLE, RESULT)}).verdict == "passed"


@pytest.mark.parametrize(
    ("header", "value", "seen"),
    [
        ("Access-Control-Allow-Origin", "*", f"allows the origin *, not {PAGE}"),
        ("Access-Control-Expose-Headers", "Retry-After", "does not expose Mcp-Session-Id, WWW-"),
        ("Vary", "", "Vary is ''"),
    ],
)
def test_an_answer_that_no_page_can_read_is_found(header: str, value: str, seen: str) -> None:
    answer = (200, READABLE | {header: value}, RESULT)
    outcome = _outcome(READ, {"server/discover": answer})
    assert outcome.verdict == "FAILED", outcome
    assert seen in outcome.seen


@pytest.mark.parametrize("origin", [PAGE, "*"])
def test_a_page_reads_the_challenge(origin: str) -> None:
    headers = READABLE | {"Access-Control-Allow-Origin": origin}
    outcome = _outcome(CHALLENGE, {"tools/list": (401, headers, {})})
    assert (outcome.verdict, outcome.seen) == ("passed", f"allowed: {origin}")


def test_a_challenge_that_no_page_can_read_is_found() -> None:
    outcome = _outcome(CHALLENGE, {"tools/list": (401, {}, {})})
    assert outcome.verdict == "FAILED"
    assert outcome.seen == f"the answer with HTTP 401 allows the origin None, not {PAGE} or *"


def test_every_page_reads_the_metadata() -> None:
    answers: Answers = {
        "tools/list": (401, NAMED, {}),
        "OPTIONS": (204, PUBLIC, ""),
        "GET /metadata": (200, PUBLIC, {}),
    }
    assert _outcome(METADATA, answers).verdict == "passed"
    answers["GET /metadata"] = (200, {}, {})
    unreadable = _outcome(METADATA, answers)
    assert "the answer with HTTP 200 allows the origin None" in unreadable.seen
    answers["OPTIONS"] = (404, {}, "")
    assert _outcome(METADATA, answers).seen == "the preflight of a GET: HTTP 404"


@pytest.mark.parametrize("check", [ASK, READ, CHALLENGE], ids=lambda check: check.title)
def test_without_a_list_no_page_is_tried(check: Any) -> None:
    outcome = _outcome(check, {}, origins="")
    assert outcome.verdict == "not tried"
    assert "origins=" in outcome.seen


def test_a_page_is_made_of_a_pattern() -> None:
    headers = READABLE | {"Access-Control-Allow-Origin": "http://localhost:8080"}
    outcome = _outcome(
        READ, {"server/discover": (200, headers, RESULT)}, origins="http://localhost:*"
    )
    assert outcome.verdict == "passed", outcome


@pytest.mark.parametrize("check", [CHALLENGE, METADATA], ids=lambda check: check.title)
def test_a_server_without_tokens_challenges_nobody(check: Any) -> None:
    outcome = outcome_of(check, Account().deployed())
    assert (outcome.verdict, "auth=oauth" in outcome.seen) == ("not tried", True)
