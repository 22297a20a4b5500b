"""`tasks/get`, `tasks/update`, `tasks/cancel` (tasks.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_tasks.server.methods import task_operations
from mcp_tasks.server.methods import tasks as tasks_extension
from mcp_tasks.server.methods.task_operations import UPDATE_ATTEMPTS
from mcp_tasks.tasks.errors import Conflict
from mcp_tasks.tasks.questions import (
    Ask,
    FormQuestion,
    Question,
    RootsQuestion,
    SamplingQuestion,
    UrlQuestion,
    open_ask,
)
from mcp_tasks.tasks.task import now_ms
from tests.unit.support.aws import TABLE, real, refusing
from tests.unit.support.stack import TASKS, WITH_TASKS, Stack

PARAMS, INTERNAL, CAPABILITY = -32602, -32603, -32021
METHODS: Final = ["tasks/get", "tasks/update", "tasks/cancel"]
FORM: Final = {
    "type": "object",
    "properties": {
        "sure": {"type": "boolean"},
        "count": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "enum": ["red", "blue"]},
    },
    "required": ["sure"],
}
SAMPLING: Final[dict[str, Any]] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
    "maxTokens": 9,
}
EVERYTHING: Final[dict[str, Any]] = {
    **WITH_TASKS,
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}
YES: Final = {"action": "accept", "content": {"sure": True}}
HOUR: Final = 3_600_000

each_method = pytest.mark.parametrize("method", METHODS)


def asked(stack: Stack, task_id: str, *names: str, token: str = "token") -> Ask:
    """Let the task ask, as the ask function does."""
    questions = {name: FormQuestion(f"{name}?", FORM) for name in names or ("sure",)}
    ask = open_ask(token, questions)
    stack.deployment.task_table.ask(task_id, ask, now_ms())
    return ask


@pytest.fixture
def sent(stack: Stack) -> list[tuple[str, Any]]:
    """What was sent to waiting states: token and output."""
    taken: list[tuple[str, Any]] = []

    def send(*, taskToken: str, output: str) -> dict[str, Any]:
        taken.append((taskToken, json.loads(output)))
        return {}

    stack.calls.instead["send_task_success"] = send
    return taken


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the server's clock go forward by so many milliseconds."""

    def forward(ms: int) -> None:
        for module in (tasks_extension, task_operations):
            monkeypatch.setattr(module, "now_ms", lambda: now_ms() + ms)

    return forward


# what holds for all three


@each_method
@pytest.mark.parametrize(
    "capabilities",
    [{}, {"extensions": {}}, {"extensions": {TASKS: None}}, {"tasks": {}}],
)
def test_a_client_without_the_extension_is_refused(
    stack: Stack, method: str, capabilities: dict[str, Any]
) -> None:
    """tasks.md, "Capability Negotiation"; even a task of its own."""
    task_id = stack.created("count", {"upto": 1})
    stack.calls.forget()
    answer = stack.post(
        method, {"taskId": task_id, "inputResponses": {}}, capabilities=capabilities
    )
    assert (answer.status, answer.code) == (400, CAPABILITY)
    assert answer.error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    assert stack.calls.made == []


@each_method
@pytest.mark.parametrize("task_id", [None, 5, ["c1"], {}, True])
def test_a_task_id_that_is_no_string_is_invalid_params(
    stack: Stack, method: str, task_id: object
) -> None:
    answer = stack.post(method, {"taskId": task_id, "inputResponses": {}})
    assert (answer.status, answer.code) == (400, PARAMS)
    assert "taskId" in answer.error["message"]
    assert stack.calls.made == []


MALFORMED: Final = {
    "empty": "",
    "a word": "nonsense",
    "10 kB": "c1-" + "0" * 10_000,
    "capitals": f"C1-{'0' * 32}",
    "too short": f"c1-{'0' * 31}",
    "no cell": "0" * 32,
    "a line break": f"c1-{'0' * 32}\n",
    "an injection": "c1-' OR 1=1",
}


@each_method
@pytest.mark.parametrize("task_id", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_task_id_is_unknown_and_costs_no_read(
    stack: Stack, method: str, task_id: str
) -> None:
    answer = stack.post(
        method, {"taskId": task_id, "inputResponses": {}}, headers={"Mcp-Name": None}
    )
    assert (answer.status, answer.code) == (400, PARAMS)
    assert "not found" in answer.error["message"]
    assert len(answer.error["message"]) < 200
    assert stack.calls.made == []


@each_method
@pytest.mark.parametrize("cell", ["c2", "c", "c11", "0"])
def test_a_task_of_another_cell_is_not_looked_for(stack: Stack, method: str, cell: str) -> None:
    """Whoever set up the routes has to know it; nobody learns whether it exists."""
    mine = stack.created("count", {"upto": 1})
    stack.calls.forget()
    answer = stack.post(method, {"taskId": mine.replace("c1", cell, 1), "inputResponses": {}})
    assert (answer.status, answer.code) == (400, PARAMS)
    assert "of another cell" in answer.error["message"]
    assert "header Mcp-Name" in answer.error["message"], "what a client that left it out can do"
    assert "Mcp-Name" in answer.error["message"]
    assert set(answer.error) == {"code", "message"}
    for secret in (mine.partition("-")[2], f"{cell}-", "c1"):
        assert secret not in answer.error["message"]
    assert stack.calls.made == []


@each_method
def test_unknown_expired_and_anothers_tasks_look_alike(
    stack: Stack, method: str, clock: Callable[[int], None]
) -> None:
    """tasks.md, "Security Considerations": nothing tells that somebody else's task exists."""
    mine = stack.created("count", {"upto": 1}, user_arn="arn:aws:iam::1:user/alice")
    before = stack.rows

    def ask(task_id: str, user: str) -> dict[str, Any]:
        params = {"taskId": task_id, "inputResponses": {"key": YES}}
        answer = stack.post(method, params, user_arn=f"arn:aws:iam::1:user/{user}")
        assert answer.status == 400
        return answer.error

    unknown = ask(f"c1-{'0' * 32}", "alice")
    anothers = ask(mine, "mallory")
    clock(HOUR + 1)
    expired = ask(mine, "alice")
    assert unknown == anothers == expired
    assert unknown["code"] == PARAMS
    assert stack.rows == before
    assert "stop_execution" not in stack.calls.operations


@each_method
def test_anothers_row_that_cannot_be_read_looks_like_no_task(stack: Stack, method: str) -> None:
    """As after a rollback of two versions: nobody's row is looked into for anybody else."""
    task_id = stack.created("count", {"upto": 3}, user_arn="arn:aws:iam::1:user/alice")
    (row,) = stack.rows
    real("dynamodb").put_item(TableName=TABLE, Item=row | {"schemaVersion": {"N": "99"}})
    params = {"taskId": task_id, "inputResponses": {}}
    answer = stack.post(method, params, user_arn="arn:aws:iam::1:user/bob")
    assert (answer.status, answer.code) == (400, PARAMS)
    assert stack.post(method, params, user_arn="arn:aws:iam::1:user/alice").status == 500


@each_method
def test_its_principal_reaches_a_task(stack: Stack, method: str) -> None:
    alice = "arn:aws:iam::1:user/alice"
    task_id = stack.created("count", {"upto": 1}, user_arn=alice)
    assert (
        stack.post(method, {"taskId": task_id, "inputResponses": {}}, user_arn=alice).status == 200
    )


# tasks/get


def test_a_task_is_polled_less_often_the_older_it_gets(
    stack: Stack, clock: Callable[[int], None]
) -> None:
    """tasks.md, "Task Polling": as often as it is worth, and at once where it waits for answers."""
    task_id = stack.created("count", {"upto": 1})
    intervals = []
    for age in (0, 20_000, 100_000, 30 * 60_000):
        clock(age)
        intervals.append(round(stack.task(task_id)["pollIntervalMs"], -3))
    assert intervals == [3_000, 3_000, 10_000, 60_000]
    stack.deployment.task_table.ask(
        task_id, open_ask("token", {"sure": FormQuestion("Sure?", FORM)}), now_ms() + 30 * 60_000
    )
    assert stack.task(task_id)["pollIntervalMs"] == 3_000


def test_a_working_task_shows_its_message(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 1})
    assert "statusMessage" not in stack.task(task_id)
    stack.deployment.task_table.report(task_id, "half-way", now_ms())
    task = stack.task(task_id)
    assert (task["status"], task["statusMessage"]) == ("working", "half-way")


def test_a_task_that_asks_shows_all_open_questions(stack: Stack) -> None:
    """tasks.md, "Task Polling": all outstanding requests."""
    task_id = stack.created("count", {"upto": 1})
    first = asked(stack, task_id, "one", "two", token="a")
    second = asked(stack, task_id, "three", token="b")
    task = stack.task(task_id)
    assert task["status"] == "input_required"
    assert set(task["inputRequests"]) == {*first.questions, *second.questions}
    request = task["inputRequests"][next(iter(second.questions))]
    assert request["method"] == "elicitation/create"
    assert request["params"]["message"] == "three?"
    assert request["params"]["requestedSchema"] == FORM


OTHER_QUESTIONS: Final[dict[str, tuple[Question, dict[str, Any]]]] = {
    "url": (
        UrlQuestion("Pay there", "https://pay.example/1"),
        {
            "method": "elicitation/create",
            "params": {"mode": "url", "message": "Pay there", "url": "https://pay.example/1"},
        },
    ),
    "sampling": (
        SamplingQuestion(SAMPLING),
        {"method": "sampling/createMessage", "params": SAMPLING},
    ),
    "roots": (RootsQuestion(), {"method": "roots/list"}),
}


@pytest.mark.parametrize(("question", "request_"), OTHER_QUESTIONS.values(), ids=OTHER_QUESTIONS)
def test_a_task_asks_for_whatever_its_client_can_do(
    stack: Stack, question: Question, request_: dict[str, Any]
) -> None:
    """mrtr.mdx, "InputRequests": on the wire, a question is one of three requests."""
    task_id = stack.created("count", {"upto": 1}, capabilities=EVERYTHING)
    ask = open_ask("token", {"it": question})
    stack.deployment.task_table.ask(task_id, ask, now_ms())
    assert list(stack.task(task_id)["inputRequests"].values()) == [request_]


def test_a_token_never_leaves_the_server(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 1})
    asked(stack, task_id, token="a-secret-token")
    assert "a-secret-token" not in json.dumps(stack.task(task_id))


def test_a_completed_task_shows_its_result(stack: Stack) -> None:
    """tasks.md, "Task Status": as the call would have returned it, isError included."""
    task_id = stack.created("count", {"upto": 1})
    result = {"content": [{"type": "text", "text": "no"}], "isError": True}
    stack.deployment.task_table.complete(task_id, result, now_ms())
    task = stack.task(task_id)
    assert task["status"] == "completed"
    assert task["result"] == {"resultType": "complete", **result}


def test_a_failed_task_shows_its_error(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 1})
    error = {"code": INTERNAL, "message": "broken"}
    stack.deployment.task_table.fail(task_id, error, now_ms())
    task = stack.task(task_id)
    assert (task["status"], task["error"], task["statusMessage"]) == ("failed", error, "broken")


def test_a_poll_of_an_ended_task_always_says_the_same(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 1})
    stack.cancel(task_id)
    assert stack.task(task_id) == stack.task(task_id)


# tasks/update


def test_an_answer_reaches_the_waiting_state(stack: Stack, sent: list[tuple[str, Any]]) -> None:
    task_id = stack.created("count", {"upto": 1})
    (key,) = asked(stack, task_id, "sure", token="token").questions
    answer = stack.update(task_id, {key: YES})
    assert set(answer.result) == {"resultType", "_meta"}
    assert sent == [("token", {"sure": YES})]
    task = stack.task(task_id)
    assert task["status"] == "working"
    assert "inputRequests" not in task


def test_a_partial_answer_leaves_the_rest_open(stack: Stack, sent: list[tuple[str, Any]]) -> None:
    """tasks.md, "Task Update Requests": the task stays input_required until all have arrived."""
    task_id = stack.created("count", {"upto": 1})
    first, second = asked(stack, task_id, "one", "two").questions
    stack.update(task_id, {first: YES})
    assert sent == []
    assert set(stack.task(task_id)["inputRequests"]) == {second}
    stack.update(task_id, {second: {"action": "decline"}})
    assert sent == [("token", {"one": YES, "two": {"action": "decline"}})]


def test_each_ask_is_answered_on_its_own(stack: Stack, sent: list[tuple[str, Any]]) -> None:
    task_id = stack.created("count", {"upto": 1})
    (first,) = asked(stack, task_id, "one", token="a").questions
    (second,) = asked(stack, task_id, "two", token="b").questions
    stack.update(task_id, {second: YES})
    assert sent == [("b", {"two": YES})]
    assert stack.task(task_id)["status"] == "input_required"
    stack.update(task_id, {first: YES})
    assert sent == [("b", {"two": YES}), ("a", {"one": YES})]
    assert stack.task(task_id)["status"] == "working"


def test_unknown_keys_are_ignored(stack: Stack, sent: list[tuple[str, Any]]) -> None:
    task_id = stack.created("count", {"upto": 1})
    (key,) = asked(stack, task_id).questions
    before = stack.rows
    assert stack.update(task_id, {"unknown": YES, "sure": "nonsense", "": 5}).status == 200
    assert stack.rows == before
    assert stack.update(task_id, {"unknown": YES, key: YES}).status == 200
    assert len(sent) == 1


def test_an_answered_key_is_ignored(stack: Stack, sent: list[tuple[str, Any]]) -> None:
    """Whatever the second answer is, the first stands; it may be an invalid one by now."""
    task_id = stack.created("count", {"upto": 1})
    first, second = asked(stack, task_id, "one", "two").questions
    stack.update(task_id, {first: YES})
    assert stack.update(task_id, {first: {"action": "decline"}}).status == 200
    assert stack.update(task_id, {first: "nonsense"}).status == 200
    stack.update(task_id, {second: YES})
    assert stack.update(task_id, {second: {"action": "decline"}}).status == 200
    assert sent == [("token", {"one": YES, "two": YES})]


@pytest.mark.parametrize("responses", [None, [], "yes", 5])
def test_responses_that_are_no_object_are_invalid_params(stack: Stack, responses: object) -> None:
    task_id = stack.created("count", {"upto": 1})
    answer = stack.update(task_id, responses)
    assert (answer.status, answer.code) == (400, PARAMS)
    assert "inputResponses" in answer.error["message"]


BAD_ANSWERS: Final[dict[str, tuple[Any, str]]] = {
    "no object": ("yes", "action"),
    "null": (None, "action"),
    "no action": ({"content": {"sure": True}}, "action"),
    "an unknown action": ({"action": "approve", "content": {"sure": True}}, "action"),
    "an action that is no string": ({"action": ["accept"]}, "action"),
    "no content": ({"action": "accept"}, "content"),
    "null content": ({"action": "accept", "content": None}, "content"),
    "content as a list": ({"action": "accept", "content": [True]}, "content"),
    "a missing field": ({"action": "accept", "content": {}}, "sure"),
    "a string for a boolean": ({"action": "accept", "content": {"sure": "yes"}}, "sure"),
    "a number for a boolean": ({"action": "accept", "content": {"sure": 1}}, "sure"),
    "a number too small": ({"action": "accept", "content": {"sure": True, "count": 0}}, "count"),
    "a fraction": ({"action": "accept", "content": {"sure": True, "count": 1.5}}, "count"),
    "a boolean for a number": (
        {"action": "accept", "content": {"sure": True, "count": True}},
        "count",
    ),
    "no choice": ({"action": "accept", "content": {"sure": True, "color": "green"}}, "color"),
}


@pytest.mark.parametrize(("bad", "says"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_an_answer_that_breaks_its_form_is_refused_and_nothing_is_stored(
    stack: Stack, sent: list[tuple[str, Any]], bad: Any, says: str
) -> None:
    task_id = stack.created("count", {"upto": 1})
    first, second = asked(stack, task_id, "one", "two").questions
    before = stack.rows
    answer = stack.update(task_id, {first: YES, second: bad})
    assert (answer.status, answer.code) == (400, PARAMS)
    assert second in answer.error["message"]
    assert says in answer.error["message"]
    assert stack.rows == before
    assert sent == []


def test_a_refused_answer_is_not_repeated(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 1})
    (key,) = asked(stack, task_id).questions
    answer = stack.update(task_id, {key: {"action": "accept", "content": {"sure": "hunter2"}}})
    assert "hunter2" not in json.dumps(answer.message)


def test_declining_needs_no_content(stack: Stack, sent: list[tuple[str, Any]]) -> None:
    """client/elicitation.mdx, "Response Actions"; content beside it is dropped."""
    task_id = stack.created("count", {"upto": 1})
    first, second = asked(stack, task_id, "one", "two").questions
    stack.update(
        task_id, {first: {"action": "decline"}, second: {"action": "cancel", "content": 5}}
    )
    assert sent == [("token", {"one": {"action": "decline"}, "two": {"action": "cancel"}})]


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_an_answer_to_an_ended_task_is_ignored(
    stack: Stack, sent: list[tuple[str, Any]], end: str
) -> None:
    task_id = stack.created("count", {"upto": 1})
    (key,) = asked(stack, task_id).questions
    rows = stack.deployment.task_table
    match end:
        case "complete":
            rows.complete(task_id, {"content": []}, now_ms())
        case "fail":
            rows.fail(task_id, {"code": INTERNAL, "message": "no"}, now_ms())
        case _:
            stack.cancel(task_id)
    before = stack.rows
    assert stack.update(task_id, {key: YES}).status == 200
    assert stack.rows == before
    assert sent == []


def test_a_task_that_ends_between_read_and_write_is_acknowledged(
    stack: Stack, sent: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = stack.created("count", {"upto": 1})
    (key,) = asked(stack, task_id).questions
    rows = stack.deployment.task_table
    read = rows.get

    def ended_after(*arguments: Any) -> Any:
        task = read(*arguments)
        monkeypatch.setattr(rows, "get", read)
        rows.complete(task_id, {"content": []}, now_ms())
        return task

    monkeypatch.setattr(rows, "get", ended_after)
    assert stack.update(task_id, {key: YES}).status == 200
    assert sent == []
    assert stack.task(task_id)["status"] == "completed"


def test_an_answer_that_meets_another_is_tried_again(
    stack: Stack, sent: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two clients answer at the same moment: both answers count, and the state gets both once."""
    task_id = stack.created("count", {"upto": 1})
    first, second = asked(stack, task_id, "one", "two").questions
    rows = stack.deployment.task_table
    read = rows.get

    def overtaken(*arguments: Any) -> Any:
        task = read(*arguments)
        monkeypatch.setattr(rows, "get", read)
        stack.update(task_id, {first: YES})
        return task

    monkeypatch.setattr(rows, "get", overtaken)
    assert stack.update(task_id, {second: YES}).status == 200
    assert sent == [("token", {"one": YES, "two": YES})]


def test_an_update_gives_up_with_an_error_and_not_silently(
    stack: Stack, sent: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = stack.created("count", {"upto": 1})
    (key,) = asked(stack, task_id).questions
    rows, tries = stack.deployment.task_table, []

    def overtaken(task: Any, *arguments: Any) -> Any:
        tries.append(task)
        raise Conflict(task)

    monkeypatch.setattr(rows, "answer", overtaken)
    answer = stack.update(task_id, {key: YES})
    assert (answer.status, answer.code) == (500, INTERNAL)
    assert "again" in answer.error["message"]
    assert len(tries) == UPDATE_ATTEMPTS
    assert sent == []


def test_an_answer_that_was_stored_but_not_sent_is_sent_by_the_next_update(
    stack: Stack, sent: list[tuple[str, Any]]
) -> None:
    """The client got an error and repeats itself; its answer is not taken twice, but sent again."""
    task_id = stack.created("count", {"upto": 1})
    (key,) = asked(stack, task_id).questions
    send = stack.calls.instead["send_task_success"]
    stack.calls.instead["send_task_success"] = refusing("stepfunctions", "ThrottlingException")
    answer = stack.update(task_id, {key: YES})
    assert (answer.status, answer.code) == (503, INTERNAL)

    stack.calls.instead["send_task_success"] = send
    assert stack.update(task_id, {key: {"action": "decline"}}).status == 200
    assert sent == [("token", {"sure": YES})]
    assert stack.update(task_id, {key: YES}).status == 200
    assert len(sent) == 1


@pytest.mark.parametrize("code", ["TaskTimedOut", "InvalidToken", "TaskDoesNotExist"])
def test_an_answer_to_a_state_that_waits_no_more_is_acknowledged(stack: Stack, code: str) -> None:
    """SendTaskSuccess with a used token: an earlier attempt arrived, or the execution has ended."""
    task_id = stack.created("count", {"upto": 1})
    (key,) = asked(stack, task_id).questions
    stack.calls.instead["send_task_success"] = refusing("stepfunctions", code)
    assert stack.update(task_id, {key: YES}).status == 200
    assert stack.task(task_id)["status"] == "working"


def test_no_answer_stays_in_the_table_once_it_is_delivered(
    stack: Stack, sent: list[tuple[str, Any]]
) -> None:
    task_id = stack.created("count", {"upto": 1})
    (key,) = asked(stack, task_id, token="a-secret-token").questions
    stack.update(task_id, {key: {"action": "accept", "content": {"sure": True, "count": 424242}}})
    assert len(sent) == 1
    assert "424242" not in json.dumps(stack.rows)
    assert "a-secret-token" not in json.dumps(stack.rows)


# tasks/cancel


def test_a_cancelled_task_is_cancelled_and_its_execution_stopped(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 1})
    answer = stack.cancel(task_id)
    assert set(answer.result) == {"resultType", "_meta"}
    assert stack.task(task_id)["status"] == "cancelled"
    assert stack.calls.operations.count("stop_execution") == 1


def test_a_task_that_asks_is_cancelled(stack: Stack) -> None:
    task_id = stack.created("count", {"upto": 1})
    asked(stack, task_id)
    assert stack.cancel(task_id).status == 200
    assert stack.task(task_id)["status"] == "cancelled"


@pytest.mark.parametrize("end", ["complete", "fail"])
def test_cancelling_an_ended_task_is_acknowledged_and_changes_nothing(
    stack: Stack, end: str
) -> None:
    """tasks.md, "Task Cancellation": the same empty acknowledgement."""
    task_id = stack.created("count", {"upto": 1})
    if end == "complete":
        stack.deployment.task_table.complete(task_id, {"content": []}, now_ms())
    else:
        stack.deployment.task_table.fail(task_id, {"code": INTERNAL, "message": "no"}, now_ms())
    before = stack.rows
    assert stack.cancel(task_id).status == 200
    assert stack.rows == before
    assert "stop_execution" not in stack.calls.operations


def test_a_cancel_that_is_repeated_stops_the_execution_if_the_first_did_not(stack: Stack) -> None:
    """The first may have been lost between its write and its stop."""
    task_id = stack.created("count", {"upto": 1})
    stop = stack.calls.instead["stop_execution"]
    stack.calls.instead["stop_execution"] = refusing("stepfunctions", "ThrottlingException")
    assert stack.cancel(task_id).status == 200
    stack.calls.instead["stop_execution"] = stop
    (before,) = stack.rows
    stack.calls.forget()
    assert stack.cancel(task_id).status == 200
    assert "stop_execution" in stack.calls.operations
    (after,) = stack.rows
    assert {**after, "reconcileAt": before["reconcileAt"]} == before


def test_a_cancel_whose_write_is_repeated_by_the_sdk_stops_the_execution(stack: Stack) -> None:
    """The answer to the first attempt was lost; the second one's condition does not hold."""
    task_id = stack.created("count", {"upto": 1})
    update = real("dynamodb").update_item

    def update_twice(**arguments: Any) -> Any:
        del stack.calls.instead["update_item"]
        update(**arguments)
        return update(**arguments)

    stack.calls.instead["update_item"] = update_twice
    assert stack.cancel(task_id).status == 200
    assert stack.calls.operations.count("stop_execution") == 1


def test_a_cancel_that_is_repeated_many_times_stops_the_execution_once_more(stack: Stack) -> None:
    """Step Functions throttles StopExecution for all callers of an account together."""
    task_id = stack.created("count", {"upto": 1})
    assert [stack.cancel(task_id).status for _ in range(6)] == [200] * 6
    assert stack.calls.operations.count("stop_execution") == 2
    stack.calls.forget()
    assert stack.cancel(task_id).status == 200
    assert stack.calls.operations == ["get_item"]


@pytest.mark.parametrize(
    "code", ["ExecutionDoesNotExist", "ThrottlingException", "AccessDeniedException"]
)
def test_a_task_is_cancelled_though_its_execution_cannot_be_stopped(
    stack: Stack, code: str
) -> None:
    """tasks.md, "Task Cancellation": the row first, then the execution, best effort."""
    task_id = stack.created("count", {"upto": 1})
    stack.calls.instead["stop_execution"] = refusing("stepfunctions", code)
    assert stack.cancel(task_id).status == 200
    assert stack.task(task_id)["status"] == "cancelled"


def test_the_execution_of_an_existing_state_machine_is_stopped_by_its_own_arn(
    stack: Stack,
) -> None:
    task_id = stack.created("orders", {"item": "tea"})
    stack.cancel(task_id)
    (stop,) = (call for call in stack.calls.made if call.operation == "stop_execution")
    assert stop.arguments["executionArn"].endswith(f":execution:orders:{task_id}")
