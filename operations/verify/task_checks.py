"""The life of a task, over the endpoint alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from threading import Timer
from typing import Any, Final

from .check import Check, NotTried, Problem, expect
from .deployed import Deployed
from .endpoint_checks import initialize

TASK_SECONDS: Final = 120.0
LARGE_BYTES: Final = 256 * 1024
"""More than Step Functions hands on (Step Functions developer guide, "Quotas")."""
QUIET_SECONDS: Final = 40.0
MAX_POLLS: Final = 200
"""Enough for the default of `max_polls`: 2 a second, and a burst 30 times as large."""


def run(deployed: Deployed) -> str:
    """A task is readable before its handle is returned, and ends with its result."""
    call, begun = deployed.offered(deployed.calls.task), time.monotonic()
    task = deployed.endpoint.create(call.tool, call.arguments)
    created = time.monotonic() - begun
    deployed.endpoint.get(task["taskId"])
    ended = deployed.endpoint.until(task, TASK_SECONDS, "completed")
    expect("result" in ended, "a completed task has no result")
    return f"created in {created:.2f} s, completed after {time.monotonic() - begun:.1f} s"


def answer_a_question(deployed: Deployed) -> str:
    """`input_required`, `tasks/update`, and the result."""
    call = deployed.offered(deployed.calls.question)
    task = _asked(deployed)
    (key,) = task["inputRequests"]
    answer = {"action": "accept", "content": dict(deployed.calls.answer)}
    update = {"taskId": task["taskId"], "inputResponses": {key: answer}}
    deployed.endpoint.request("tasks/update", update).raise_for_error()
    deployed.endpoint.until(task, TASK_SECONDS, "completed")
    return f"{call.tool} asked, and went on"


def cancel(deployed: Deployed) -> str:
    """A task that waits for an answer is cancelled, and its execution is stopped."""
    deployed.offered(deployed.calls.question)
    task = _asked(deployed)
    deployed.endpoint.request("tasks/cancel", {"taskId": task["taskId"]}).raise_for_error()
    ended = deployed.endpoint.until(task, TASK_SECONDS, "cancelled")
    expect("inputRequests" not in ended, "a cancelled task still asks")
    return "cancelled while it waited"


def _asked(deployed: Deployed) -> Mapping[str, Any]:
    call = deployed.calls.question
    task = deployed.endpoint.create(call.tool, call.arguments)
    return deployed.endpoint.until(task, TASK_SECONDS, "input_required")


def store_a_large_result(deployed: Deployed) -> str:
    """A result of more than 256 KiB goes through the payloads bucket."""
    if deployed.calls.large is None:
        raise NotTried("no sample returns so much; large='TOOL {...}' names one that does")
    call = deployed.offered(deployed.calls.large)
    task = deployed.endpoint.create(call.tool, call.arguments)
    deployed.endpoint.until(task, TASK_SECONDS, "completed")
    answer = deployed.endpoint.request("tasks/get", {"taskId": task["taskId"]})
    size = len(answer.body)
    # A result too large for an answer is a link to the bucket, which a client downloads.
    linked = b'"resource_link"' in answer.body
    expect(linked or size > LARGE_BYTES, f"the result has {size} bytes only")
    return "a link" if linked else f"{size} bytes"


def listen(deployed: Deployed) -> str:
    """`subscriptions/listen` in its carrier: the acknowledgment, and the task's changes to its end.

    A buffered subscription ends with what has changed, and the client subscribes again.
    """
    call = deployed.offered(deployed.calls.task)
    task = deployed.endpoint.create(call.tool, call.arguments)
    wanted = {"notifications": {"taskIds": [task["taskId"]]}}
    begun, requests, statuses = time.monotonic(), 0, list[str]()
    while "completed" not in statuses:
        answer = deployed.endpoint.request("subscriptions/listen", wanted)
        answer.raise_for_error()
        acknowledged, *changes = answer.messages[:-1]
        method = acknowledged.get("method")
        expect(method == "notifications/subscriptions/acknowledged", f"{method} comes first")
        statuses += [change["params"]["status"] for change in changes]
        requests += 1
        late = f"the end was not told; the changes were {statuses}"
        expect(time.monotonic() < begun + TASK_SECONDS, late)
    seconds = time.monotonic() - begun
    return f"{len(statuses)} changes by {requests} subscriptions in {seconds:.1f} s"


def stream(deployed: Deployed) -> str:
    """With `streaming=true`, each piece comes when it is written: the acknowledgment first, and not
    when the next piece pushes it out.
    """
    if not deployed.streams:
        raise NotTried("answers are buffered, or subscriptions have an API of their own")
    deployed.offered(deployed.calls.question)
    task = _asked(deployed)
    wanted = {"notifications": {"taskIds": [task["taskId"]]}}
    cancel = {"taskId": task["taskId"]}
    # The subscription ends with its task. Until then only comments come, one every 15 seconds.
    ending = Timer(QUIET_SECONDS, deployed.endpoint.request, ["tasks/cancel", cancel])
    ending.start()
    try:
        answer = deployed.endpoint.request("subscriptions/listen", wanted)
    finally:
        ending.join()
    first = next((piece.at for piece in answer.pieces if b"acknowledged" in piece.data), None)
    expect(first is not None and first < 10, f"the acknowledgment came after {first} s")
    quiet = [b.at - a.at for a, b in zip(answer.pieces, answer.pieces[1:], strict=False)]
    return f"acknowledged after {first:.1f} s; longest silence {max(quiet, default=0):.0f} s"


def resume(deployed: Deployed) -> str:
    """A client of 2025-11-25 is asked on its call's stream, loses it, and gets the rest by
    `Last-Event-ID`.
    """
    call, endpoint = deployed.offered(deployed.calls.question), deployed.endpoint
    session = initialize(endpoint, {"elicitation": {"form": {}}})
    endpoint.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    params = {"name": call.tool, "arguments": dict(call.arguments)}
    answer = endpoint.post(endpoint.message("tools/call", params), session)
    connections, deadline = 1, time.monotonic() + TASK_SECONDS
    while not any("result" in message for message in answer.messages):
        expect(time.monotonic() < deadline, "the call did not end")
        failed = [message["error"] for message in answer.messages if "error" in message]
        expect(not failed, f"the call failed: {failed}")
        for asked in answer.messages:
            if asked.get("method") == "elicitation/create":
                content = {"action": "accept", "content": dict(deployed.calls.answer)}
                endpoint.post({"jsonrpc": "2.0", "id": asked["id"], "result": content}, session)
        place = answer.last_event_id
        if place is None:
            raise Problem("the events of a call have no ids, so that no client can resume it")
        headers = {**session, "Accept": "text/event-stream", "Last-Event-ID": place}
        answer, connections = endpoint.send("GET", headers=headers), connections + 1
    endpoint.send("DELETE", headers=session)
    return f"asked, answered and ended over {connections} connections"


def throttle(deployed: Deployed) -> str:
    """Polls over `max_polls` get 429 with `Retry-After`, and the task stays as it is."""
    deployed.offered(deployed.calls.question)
    task = _asked(deployed)
    try:
        for number in range(1, MAX_POLLS + 1):
            answer = deployed.endpoint.request("tasks/get", {"taskId": task["taskId"]})
            if answer.status == 429:
                expect("retry-after" in answer.headers, "a 429 has no Retry-After")
                return f"429 at poll {number}"
        raise NotTried(f"{MAX_POLLS} polls were let through (max_polls is high, or 0)")
    finally:
        deployed.endpoint.request("tasks/cancel", {"taskId": task["taskId"]})


CHECKS: Final = (
    Check("Run a task", run),
    Check("Answer a task's question", answer_a_question),
    Check("Cancel a task", cancel),
    Check("Store a large result", store_a_large_result),
    Check("Follow a task by subscription", listen),
    Check("Stream what is written", stream, only_aws=True),
    Check("Resume a call", resume),
    Check("Throttle polls", throttle),
)
