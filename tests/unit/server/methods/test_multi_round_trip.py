"""Multi round-trip requests, as a client sees them (basic/patterns/mrtr.mdx)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from mcp_tasks.server.methods import multi_round_trip as rounds
from mcp_tasks.server.methods.request_state import LIFETIME_MS
from mcp_tasks.tasks.task import now_ms
from tests.unit.support.aws import Calls
from tests.unit.support.stack import Answer, Stack
from tests.unit.support.whole import ALL_AND_TASKS, ALL_KINDS, accept, whole_stack

INVALID_PARAMS: Final = -32602
MISSING_CAPABILITY: Final = -32021

TRIP: Final = {"name": "trip", "arguments": {"name": "Ada"}}
ROME: Final = {"place": accept(place="Rome")}
WEEK: Final = {"days": accept(days=7)}
WRITTEN: Final = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m1"}

ASKING: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "a tool": ("tools/call", TRIP),
    "a prompt": ("prompts/get", {"name": "plan", "arguments": {"name": "Ada"}}),
    "a resource": ("resources/read", {"uri": "trips://Ada"}),
}


@pytest.fixture
def server(aws: Calls) -> Iterator[Stack]:
    """A server; a multi round-trip request writes nothing."""
    stack = whole_stack(aws)
    yield stack
    assert stack.rows == []
    assert set(aws.operations) <= {"get_secret_value", "create_table"}


def send(server: Stack, method: str, params: dict[str, Any], **options: Any) -> Answer:
    return server.post(method, params, **{"capabilities": ALL_KINDS, **options})


def again(server: Stack, asked: Answer, responses: Any, **options: Any) -> Answer:
    """The request, repeated with answers."""
    return server.repeat(
        "tools/call", TRIP, asked, responses, **{"capabilities": ALL_KINDS, **options}
    )


def keys(answer: Answer) -> set[str]:
    """What is asked for."""
    assert answer.result["resultType"] == "input_required", answer.result
    return set(answer.result["inputRequests"])


def said(answer: Answer) -> str:
    """What a tool says."""
    text: str = answer.result["content"][0]["text"]
    return text


# What is asked


@pytest.mark.parametrize("asking", ASKING)
def test_tools_prompts_and_resources_ask(server: Stack, asking: str) -> None:
    """mrtr.mdx, "Supported Requests"."""
    asked = send(server, *ASKING[asking])
    assert asked.status == 200
    assert asked.result["inputRequests"] == {
        "place": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "Where to?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"place": {"type": "string", "title": "Place"}},
                    "required": ["place"],
                },
            },
        }
    }


@pytest.mark.parametrize(
    ("asking", "end"),
    [
        ("a prompt", "messages"),
        ("a resource", "contents"),
    ],
)
def test_the_last_answer_ends_a_multi_round_trip_request(
    server: Stack, asking: str, end: str
) -> None:
    method, params = ASKING[asking]
    asked = send(server, method, params)
    result = server.repeat(method, params, asked, ROME, capabilities=ALL_KINDS).result
    assert "Rome" in json.dumps(result[end])


def test_the_state_holds_all_answers_so_far(server: Stack) -> None:
    first = send(server, "tools/call", TRIP)
    second = again(server, first, ROME)
    assert (keys(first), keys(second)) == ({"place"}, {"days"})
    request = second.result["inputRequests"]["days"]
    assert request["params"]["message"] == "How long in Rome?"
    assert said(again(server, second, WEEK)) == "Ada: 7 days in Rome"


def test_each_kind_of_question_is_a_request_of_the_clients(server: Stack) -> None:
    call = {"name": "needs", "arguments": {"kinds": ["form", "url", "sampling", "roots"]}}
    asked = send(server, "tools/call", call)
    requests = asked.result["inputRequests"]
    assert requests["url"] == {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Pay here", "url": "https://pay.example.com/1"},
    }
    assert requests["sampling"] == {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi"}}],
            "maxTokens": 5,
        },
    }
    assert requests["roots"] == {"method": "roots/list"}
    answers = {
        "form": accept(place="Rome"),
        "url": {"action": "accept"},
        "sampling": WRITTEN,
        "roots": {"roots": [{"uri": "file:///a"}]},
    }
    result = server.repeat("tools/call", call, asked, answers, capabilities=ALL_KINDS).result
    form, url, model, roots = result["structuredContent"]
    assert "Rome" in form
    assert url == "url: None"
    assert "m1" in model
    assert "file:///a" in roots


# What counts as an answer


@pytest.mark.parametrize(("asking", "end"), [("a prompt", "messages"), ("a resource", "contents")])
def test_a_client_that_knows_the_question_may_answer_at_once(
    server: Stack, asking: str, end: str
) -> None:
    method, params = ASKING[asking]
    result = send(server, method, {**params, "inputResponses": ROME}).result
    assert "Rome" in json.dumps(result[end])


def test_answers_in_the_first_request_need_no_second_one(server: Stack) -> None:
    done = send(server, "tools/call", {**TRIP, "inputResponses": {**ROME, **WEEK}})
    assert said(done) == "Ada: 7 days in Rome"


def test_an_answer_that_came_too_early_is_not_carried_on(server: Stack) -> None:
    """The state holds what the function took, and the client repeats the rest."""
    first = send(server, "tools/call", {**TRIP, "inputResponses": WEEK})
    second = again(server, first, ROME)
    assert (keys(first), keys(second)) == ({"place"}, {"days"})


def test_an_earlier_answer_cannot_be_changed_later(server: Stack) -> None:
    """What the first answer led to was perhaps shown to somebody."""
    second = again(server, send(server, "tools/call", TRIP), ROME)
    changed = {"place": accept(place="Oslo"), **WEEK}
    assert said(again(server, second, changed)) == "Ada: 7 days in Rome"


def test_unknown_keys_are_ignored(server: Stack) -> None:
    """ "the server SHOULD ignore any information it does not recognize or need"."""
    first = send(server, "tools/call", TRIP)
    second = again(server, first, {**ROME, "other": 5, "": None, "Place": accept(place="Oslo")})
    assert said(again(server, second, {**WEEK, "more": []})) == "Ada: 7 days in Rome"


@pytest.mark.parametrize(
    "responses",
    [
        {},
        {"other": accept(place="Rome")},
        {"place": None},
        {"place": "Rome"},
        {"place": {}},
        {"place": {"action": "yes"}},
        {"place": {"action": "accept"}},
        {"place": accept()},
        {"place": accept(place=5)},
        {"place": {"action": "accept", "content": "Rome"}},
    ],
    ids=json.dumps,
)
def test_what_is_missing_or_cannot_be_used_is_asked_for_again(
    server: Stack, responses: dict[str, Any]
) -> None:
    """mrtr.mdx, "Error Handling". The new state is good for another try."""
    first = send(server, "tools/call", TRIP)
    once_more = again(server, first, responses)
    assert once_more.result["inputRequests"] == first.result["inputRequests"]
    assert keys(again(server, once_more, ROME)) == {"days"}


def test_one_of_several_answers_that_is_missing_is_asked_for_alone(server: Stack) -> None:
    call = {"name": "needs", "arguments": {"kinds": ["form", "roots"]}}
    asked = send(server, "tools/call", call)
    options: Any = {"capabilities": ALL_KINDS}
    rest = server.repeat("tools/call", call, asked, {"form": accept(place="Rome")}, **options)
    assert keys(rest) == {"roots"}
    done = server.repeat("tools/call", call, rest, {"roots": {"roots": []}}, **options)
    assert "Rome" in done.result["structuredContent"][0]


def test_an_answer_that_turned_out_unusable_is_not_carried_on(server: Stack) -> None:
    call = {"name": "needs", "arguments": {"kinds": ["form", "roots"]}}
    asked = send(server, "tools/call", call)
    answers: dict[str, Any] = {"form": accept(place=5), "roots": {"roots": []}}
    rest = server.repeat("tools/call", call, asked, answers, capabilities=ALL_KINDS)
    assert keys(rest) == {"form"}
    done = server.repeat("tools/call", call, rest, {"form": ROME["place"]}, capabilities=ALL_KINDS)
    assert "Rome" in done.result["structuredContent"][0]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_may_say_no(server: Stack, action: str) -> None:
    declined = again(server, send(server, "tools/call", TRIP), {"place": {"action": action}})
    assert declined.result["isError"] is True
    assert action in said(declined)


def test_a_tool_may_go_on_without_an_answer(server: Stack) -> None:
    call = {"name": "polite", "arguments": {}}
    asked = send(server, "tools/call", call)
    responses = {"answer": {"action": "decline"}}
    done = server.repeat("tools/call", call, asked, responses, capabilities=ALL_KINDS)
    assert said(done) == "without: decline"
    assert "isError" not in done.result


@pytest.mark.parametrize("asking", ["a prompt", "a resource"])
def test_who_declines_gets_neither_prompt_nor_resource(server: Stack, asking: str) -> None:
    method, params = ASKING[asking]
    asked = send(server, method, params)
    responses = {"place": {"action": "decline"}}
    declined = server.repeat(method, params, asked, responses, capabilities=ALL_KINDS)
    assert (declined.status, declined.code) == (400, -32602)
    assert "Where to?" in declined.error["message"]


# What is malformed


@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("responses", [[], "Rome", 5, True, 0, False, ""], ids=repr)
def test_responses_that_are_no_object_are_refused(
    server: Stack, asking: str, responses: Any
) -> None:
    method, params = ASKING[asking]
    assert send(server, method, {**params, "inputResponses": responses}).code == INVALID_PARAMS


@pytest.mark.parametrize("asking", ASKING)
@pytest.mark.parametrize("state", [[], {}, 5, True, 0, False], ids=repr)
def test_a_state_that_is_no_string_is_refused(server: Stack, asking: str, state: Any) -> None:
    method, params = ASKING[asking]
    assert send(server, method, {**params, "requestState": state}).code == INVALID_PARAMS


def test_null_stands_for_none(server: Stack) -> None:
    call = {**TRIP, "inputResponses": None, "requestState": None}
    first = send(server, "tools/call", call)
    assert keys(first) == {"place"}
    state = first.result["requestState"]
    assert keys(send(server, "tools/call", {**call, "requestState": state})) == {"place"}


@pytest.mark.parametrize("state", ["", "abc", "e30=", "\u00e4"])
def test_a_state_that_was_made_up_is_refused(server: Stack, state: str) -> None:
    refused = send(server, "tools/call", {**TRIP, "requestState": state, "inputResponses": ROME})
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert "requestState" in refused.error["message"]


# What a state belongs to


def test_the_state_of_another_principal_is_refused(server: Stack) -> None:
    alice, bob = (
        {"user_arn": f"arn:aws:iam::123456789012:user/{name}"} for name in ("alice", "bob")
    )
    first = send(server, "tools/call", TRIP, **alice)
    assert again(server, first, ROME, **bob).code == INVALID_PARAMS
    assert again(server, first, ROME).code == INVALID_PARAMS
    assert keys(again(server, first, ROME, **alice)) == {"days"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "voyage", "arguments": {"name": "Ada"}}),
        ("tools/call", {"name": "trip", "arguments": {"name": "Eve"}}),
        ("tools/call", {"name": "trip", "arguments": {"name": "Ada", "past": False}}),
        ("prompts/get", {"name": "plan", "arguments": {"name": "Ada"}}),
        ("resources/read", {"uri": "trips://Ada"}),
    ],
    ids=json.dumps,
)
def test_the_state_of_another_request_is_refused(
    server: Stack, method: str, params: dict[str, Any]
) -> None:
    first = send(server, "tools/call", TRIP)
    moved = server.repeat(method, params, first, ROME, capabilities=ALL_KINDS)
    assert (moved.status, moved.code) == (400, INVALID_PARAMS)


def test_a_resources_state_belongs_to_its_uri(server: Stack) -> None:
    asked = send(server, "resources/read", {"uri": "trips://Ada"})
    other = {"uri": "trips://Eve"}
    assert (
        server.repeat("resources/read", other, asked, ROME, capabilities=ALL_KINDS).code
        == INVALID_PARAMS
    )


def test_a_prompts_state_belongs_to_its_arguments(server: Stack) -> None:
    method, params = ASKING["a prompt"]
    other = {**params, "arguments": {"name": "Eve"}}
    asked = send(server, method, params)
    assert server.repeat(method, other, asked, ROME, capabilities=ALL_KINDS).code == INVALID_PARAMS


def test_a_state_expires(server: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    first = send(server, "tools/call", TRIP)
    monkeypatch.setattr(rounds, "now_ms", lambda: now_ms() + LIFETIME_MS)
    assert again(server, first, ROME).code == INVALID_PARAMS


def test_another_instance_goes_on_where_the_first_one_stopped(server: Stack) -> None:
    """ "the server processing the retry does not need any information beyond what is directly
    present in the retry request"."""
    first = send(server, "tools/call", TRIP)
    server.serve()
    assert keys(again(server, first, ROME)) == {"days"}


def test_the_key_is_fetched_once_and_not_before_somebody_asks(server: Stack) -> None:
    server.calls.forget()
    send(server, "tools/list", {})
    send(server, "resources/read", {"uri": "trips://quiet/Ada"})
    send(server, "tools/call", {"name": "doubled", "arguments": {"numbers": [1]}})
    assert server.calls.operations == []
    second = again(server, send(server, "tools/call", TRIP), ROME)
    again(server, second, WEEK)
    assert server.calls.operations == ["get_secret_value"]


def test_a_state_may_be_sent_again(server: Stack) -> None:
    """A lost answer: it holds answers, not permissions."""
    first = send(server, "tools/call", TRIP)
    assert keys(again(server, first, ROME)) == keys(again(server, first, ROME)) == {"days"}


# What the client can do


@pytest.mark.parametrize(
    ("kinds", "capabilities", "required"),
    [
        (["form"], {}, {"elicitation": {"form": {}}}),
        (["form"], {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (["url"], {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (["url"], {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        (["sampling"], {"elicitation": {}, "roots": {}}, {"sampling": {}}),
        (["roots"], {"sampling": {}}, {"roots": {}}),
        (["form", "url"], {}, {"elicitation": {"form": {}, "url": {}}}),
        (
            ["roots", "form", "sampling"],
            {"roots": {}},
            {"elicitation": {"form": {}}, "roots": {}, "sampling": {}},
        ),
    ],
    ids=json.dumps,
)
def test_a_client_is_not_asked_for_what_it_did_not_declare(
    server: Stack, kinds: list[str], capabilities: dict[str, Any], required: dict[str, Any]
) -> None:
    """-32021 with what it would have to declare (basic/index.mdx, "Error Codes")."""
    call = {"name": "needs", "arguments": {"kinds": kinds}}
    refused = send(server, "tools/call", call, capabilities=capabilities)
    assert (refused.status, refused.code) == (400, MISSING_CAPABILITY)
    assert refused.error["data"] == {"requiredCapabilities": required}
    assert keys(send(server, "tools/call", call, capabilities=required)) == set(kinds)


@pytest.mark.parametrize("asking", ASKING)
def test_prompts_and_resources_respect_what_a_client_can_do(server: Stack, asking: str) -> None:
    refused = send(server, *ASKING[asking], capabilities={})
    assert (refused.status, refused.code) == (400, MISSING_CAPABILITY)


def test_what_is_answered_needs_no_capability_any_more(server: Stack) -> None:
    call = {"name": "needs", "arguments": {"kinds": ["sampling", "roots"]}}
    asked = send(server, "tools/call", call)
    options: Any = {"capabilities": {"roots": {}}}
    rest = server.repeat("tools/call", call, asked, {"sampling": WRITTEN}, **options)
    assert keys(rest) == {"roots"}


def cached(answer: Answer) -> tuple[int, str]:
    return answer.result["ttlMs"], answer.result["cacheScope"]


def test_a_result_that_depends_on_answers_is_not_cached(server: Stack) -> None:
    """caching.mdx, "Cache Key": "requests carrying `inputResponses` or `requestState`"."""
    method, params = ASKING["a resource"]
    asked = send(server, method, params)
    assert not {"ttlMs", "cacheScope"} & set(asked.result)
    answered = server.repeat(method, params, asked, ROME, capabilities=ALL_KINDS)
    at_once = send(server, method, {**params, "inputResponses": ROME})
    assert cached(answered) == cached(at_once) == (0, "private")
    assert cached(send(server, method, {"uri": "trips://quiet/Ada"})) == (60_000, "public")


def test_multi_round_trip_requests_need_no_tasks_and_make_none(server: Stack) -> None:
    second = again(server, send(server, "tools/call", TRIP, capabilities=ALL_AND_TASKS), ROME)
    assert keys(second) == {"days"}


# Questions before a task


@pytest.fixture
def station(aws: Calls) -> Stack:
    """A server whose tools ask first and then become tasks."""
    return whole_stack(aws)


SURE: Final = {"sure": accept(sure=True)}
PAID: Final = {"again": accept(sure=True), "page": {"action": "accept"}}
BECOMING: Final = ("depart", "arrive", "travel")


def asked_twice(station: Stack, tool: str) -> tuple[dict[str, Any], Answer]:
    """A tool's call, and its last questions."""
    call = {"name": tool, "arguments": {"place": "Rome"}}
    options: Any = {"capabilities": ALL_AND_TASKS}
    first = station.post("tools/call", call, **options)
    assert keys(first) == {"sure"}
    second = station.repeat("tools/call", call, first, SURE, **options)
    assert keys(second) == {"again", "page"}
    return call, second


@pytest.mark.parametrize("tool", BECOMING)
def test_all_questions_are_answered_before_the_task_is_made(station: Stack, tool: str) -> None:
    """tasks.md, "Task Creation"; a task has no `requestState`."""
    station.calls.forget()
    call, asked = asked_twice(station, tool)
    assert station.rows == []
    assert station.calls.operations == ["get_secret_value"]
    created = station.repeat("tools/call", call, asked, PAID, capabilities=ALL_AND_TASKS).result
    assert created["resultType"] == "task"
    assert not {"inputRequests", "requestState"} & set(created)
    assert len(station.rows) == 1


def execution_input(station: Stack) -> Any:
    (start,) = [call for call in station.calls.made if call.operation == "start_execution"]
    return json.loads(start.arguments["input"])


@pytest.mark.parametrize("tool", ["depart", "arrive"])
def test_a_functions_execution_holds_the_answers(station: Stack, tool: str) -> None:
    call, asked = asked_twice(station, tool)
    station.repeat("tools/call", call, asked, PAID, capabilities=ALL_AND_TASKS)
    found = execution_input(station)
    assert found["arguments"] == {"place": "Rome"}
    assert found["answers"] == {**SURE, **PAID}
    assert found["client_can"] == ["form", "roots", "sampling", "url"]


def test_a_workflows_execution_holds_the_answers_beside_its_arguments(station: Stack) -> None:
    call, asked = asked_twice(station, "travel")
    station.repeat("tools/call", call, asked, PAID, capabilities=ALL_AND_TASKS)
    about = {"schema": 2, "answers": {**SURE, **PAID}}
    assert execution_input(station) == {"place": "Rome", "_meta": about}


def test_a_state_machine_that_existed_before_gets_its_arguments_alone(station: Stack) -> None:
    trace = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    params = {"name": "sail", "arguments": {"place": "Rome"}, "_meta": trace}
    created = station.post("tools/call", params, capabilities=ALL_AND_TASKS)
    assert created.result["resultType"] == "task"
    assert execution_input(station) == {"place": "Rome"}


@pytest.mark.parametrize("tool", BECOMING)
@pytest.mark.parametrize(
    "answer", [{"action": "decline"}, {"action": "cancel"}, accept(sure=False)], ids=json.dumps
)
def test_who_does_not_want_to_gets_an_error_result_and_no_task(
    station: Stack, tool: str, answer: dict[str, Any]
) -> None:
    call = {"name": tool, "arguments": {"place": "Rome"}}
    first = station.post("tools/call", call, capabilities=ALL_AND_TASKS)
    responses = {"sure": answer}
    ended = station.repeat("tools/call", call, first, responses, capabilities=ALL_AND_TASKS).result
    assert (ended["resultType"], ended["isError"]) == ("complete", True)
    assert station.rows == []
    assert "start_execution" not in station.calls.operations


def test_what_asks_first_may_refuse_without_asking(station: Stack) -> None:
    refused = station.call("arrive", {"place": "Atlantis"}, capabilities=ALL_AND_TASKS).result
    assert refused["isError"] is True
    assert refused["content"][0]["text"] == "Atlantis cannot be reached"
    assert station.rows == []


def test_what_asks_first_may_crash_and_says_nothing_of_why(station: Stack) -> None:
    crashed = station.call("arrive", {"place": "nowhere"}, capabilities=ALL_AND_TASKS)
    assert (crashed.status, crashed.code) == (500, -32603)
    assert "nowhere" not in crashed.error["message"]
    assert station.rows == []


def test_a_client_that_cannot_be_asked_first_gets_no_task(station: Stack) -> None:
    refused = station.call(
        "arrive",
        {"place": "Rome"},
        capabilities={"elicitation": {"url": {}}, "extensions": ALL_AND_TASKS["extensions"]},
    )
    assert refused.code == MISSING_CAPABILITY
    assert refused.error["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}
    assert station.rows == []


def test_an_optional_task_of_a_client_without_tasks_asks_within_the_request(
    station: Stack,
) -> None:
    call = {"name": "depart", "arguments": {"place": "Rome"}}
    options: Any = {"capabilities": ALL_KINDS}
    first = station.post("tools/call", call, **options)
    second = station.repeat("tools/call", call, first, SURE, **options)
    done = station.repeat("tools/call", call, second, PAID, **options)
    assert said(done) == "Departed for Rome"
    assert station.rows == []


def test_a_client_without_tasks_is_not_asked_for_a_tool_that_needs_them(station: Stack) -> None:
    refused = station.call("arrive", {"place": "Rome"}, capabilities=ALL_KINDS)
    assert refused.code == MISSING_CAPABILITY
    assert refused.error["data"]["requiredCapabilities"] == {
        "extensions": ALL_AND_TASKS["extensions"]
    }


def test_invalid_arguments_are_reported_before_anything_is_asked(station: Stack) -> None:
    wrong = station.call("depart", {"place": 5}, capabilities=ALL_AND_TASKS).result
    assert wrong["isError"] is True


def test_a_tool_without_questions_becomes_a_task_at_once_and_ignores_a_state(
    station: Stack,
) -> None:
    params = {"name": "rest", "arguments": {"hours": 1}}
    created = station.post("tools/call", params, capabilities=ALL_AND_TASKS)
    assert created.result["resultType"] == "task"


def test_what_asks_first_comes_first_within_a_request_too(station: Stack) -> None:
    """A client must not get past the question by not declaring tasks, or being an older one."""
    call = {"name": "fly", "arguments": {"place": "Rome"}}
    asked = station.post("tools/call", call, capabilities=ALL_KINDS)
    assert keys(asked) == {"sure"}
    responses = {"sure": accept(sure=False)}
    refused = station.repeat("tools/call", call, asked, responses, capabilities=ALL_KINDS)
    assert said(refused) == "Then not"
    older = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"MCP-Protocol-Version": "2025-06-18"}
    answer = station.send(json.dumps(older), headers, method="tools/call", revision="2025-06-18")
    assert answer.code == -32600


@pytest.mark.parametrize("tool", ["rest", "depart", "travel"])
def test_no_client_puts_answers_into_an_execution(station: Stack, tool: str) -> None:
    arguments = {"place": "Rome", "_meta": {"answers": {"sure": accept(sure=True)}}}
    refused = station.call(tool, arguments, capabilities=ALL_AND_TASKS)
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert station.rows == []


def test_a_state_is_checked_even_by_a_tool_that_asks_nothing_first(station: Stack) -> None:
    call = {"name": "rest", "arguments": {"hours": 1}, "requestState": "garbage"}
    refused = station.post("tools/call", call, capabilities=ALL_AND_TASKS)
    assert (refused.status, refused.code) == (400, INVALID_PARAMS)
    assert station.rows == []
