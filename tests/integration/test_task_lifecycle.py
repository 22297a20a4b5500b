"""A call becomes a task, which runs, asks, is answered, and ends."""

from __future__ import annotations

import time

from tests.integration.support.client import REVISION, TASKS, Client, accept
from tests.integration.support.traces import Traces


def test_discover_declares_revisions_and_extensions(client: Client) -> None:
    result = client.request("server/discover").result
    assert result["supportedVersions"] == [REVISION, "2025-11-25", "2025-06-18", "2025-03-26"]
    # Exactly {}: a client reads any other settings as "no tasks".
    assert result["capabilities"]["extensions"][TASKS] == {}
    assert "tasks" not in result["capabilities"]


def test_tools_are_listed_in_a_stable_order(client: Client) -> None:
    first, second = (client.request("tools/list").result["tools"] for _ in range(2))
    names = [tool["name"] for tool in first]
    assert names == sorted(names)
    assert first == second
    assert {"hello", "tally_columns", "estimate_savings", "legacy_report"} <= set(names)


def test_a_tool_without_a_task_answers_within_the_request(client: Client, traces: Traces) -> None:
    before = traces.rows()
    result = client.call("hello", name="Ada").result
    assert result["content"] == [{"type": "text", "text": "Hello, Ada!"}]
    assert "taskId" not in result
    assert traces.rows() == before


def test_a_workflow_asks_and_returns(client: Client) -> None:
    text = "city,inhabitants\n" + "".join(
        f"{'Ulm' if n % 3 else 'Bonn'},{n}\n" for n in range(3000)
    )
    task_id = client.start("tally_columns", csv=text)
    key = client.until_asked(task_id, "publish")["publish"]
    request = client.get(task_id)["inputRequests"][key]
    assert request["method"] == "elicitation/create"
    assert "3000 rows" in request["params"]["message"]

    client.update(task_id, {key: accept(show_values=True, title="Cities")})
    task = client.end(task_id)

    assert task["status"] == "completed"
    tally = task["result"]["structuredContent"]
    assert (tally["title"], tally["rows"]) == ("Cities", 3000)
    cities, inhabitants = tally["columns"]
    assert cities["most_frequent"][0] == {"value": "Ulm", "count": 2000}
    assert inhabitants["distinct"] == 3000


def test_a_declined_question_hides_the_values(client: Client) -> None:
    task_id = client.start("tally_columns", csv="colour,n\nred,1\nred,2\n")
    key = client.until_asked(task_id, "publish")["publish"]
    client.update(task_id, {key: {"action": "decline"}})
    columns = client.end(task_id)["result"]["structuredContent"]["columns"]
    assert all(column["most_frequent"] is None for column in columns)


def test_a_function_reports_its_status_asks_and_returns(client: Client) -> None:
    task_id = client.start("estimate_savings", monthly=100, years=10, runs=50_000)
    key = client.until_asked(task_id, "answer")["answer"]
    client.update(task_id, {key: accept(share_of_stocks=0.25)})
    reported = client.until(task_id, lambda task: "estimated" in task.get("statusMessage", ""))
    assert reported["status"] == "working"
    task = client.end(task_id)
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"]["paid_in"] == 12000


def test_a_task_is_readable_as_soon_as_its_handle_is_returned(client: Client) -> None:
    """tasks.md, "Task Creation": tasks/get for the returned id must resolve."""
    for _ in range(5):
        assert client.get(client.start("refuse", reason="x"))["status"] in ("working", "completed")


def test_an_optional_tool_runs_within_the_request_of_a_client_without_tasks(
    plain_client: Client, traces: Traces
) -> None:
    before = traces.rows()
    result = plain_client.call("estimate_savings", monthly=1, years=1, share_of_stocks=0).result
    assert result["resultType"] == "complete"
    assert result["structuredContent"]["paid_in"] == 12
    assert traces.rows() == before


def test_a_question_within_the_request_needs_the_clients_capability(plain_client: Client) -> None:
    answer = plain_client.call("estimate_savings", monthly=1, years=1)
    assert (answer.status, answer.error["code"]) == (400, -32021)


def test_a_state_machine_that_existed_before_is_a_tool(client: Client, traces: Traces) -> None:
    task_id = client.start("legacy_report", quarter="Q3")
    task = client.end(task_id)
    assert task["result"]["structuredContent"] == {"quarter": "Q3", "revenue": 1234.5}
    assert traces.row(task_id)["stateMachineArn"]["S"].endswith(":legacy-report")


def test_content_that_is_no_text_arrives_unchanged(client: Client) -> None:
    result = client.end(client.start("picture"))["result"]
    assert result["content"] == [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]
    assert result["structuredContent"] == {"width": 1}


def test_cancel_ends_the_task_and_its_execution(client: Client, traces: Traces) -> None:
    task_id = client.start("ask_choice")
    client.until_asked(task_id, "answer")
    assert set(client.cancel(task_id).result) == {"resultType", "_meta"}
    assert client.get(task_id)["status"] == "cancelled"
    traces.until_execution(task_id, "ABORTED")
    # A second cancel and a later answer are acknowledged, and change nothing.
    assert set(client.cancel(task_id).result) == {"resultType", "_meta"}
    assert set(client.update(task_id, {"x": accept()}).result) == {"resultType", "_meta"}
    assert client.get(task_id)["status"] == "cancelled"


def test_a_task_expires(client: Client, traces: Traces) -> None:
    """DynamoDB deletes expired rows days later; clients cannot read them any more."""
    task_id = client.start("short_lived")
    deadline = time.monotonic() + 10
    while (answer := client.request("tasks/get", {"taskId": task_id})).status == 200:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert answer.error["code"] == -32602
    assert client.cancel(task_id).error["code"] == -32602
    assert client.update(task_id, {}).error["code"] == -32602
    assert traces.row(task_id)
