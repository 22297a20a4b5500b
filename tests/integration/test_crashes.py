"""From the reference that a client is told to the line of the log that says where it crashed."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_tasks.crash_report import reference_in
from tests.integration.support.aws import log_groups, log_lines
from tests.integration.support.client import Client

WAIT_SECONDS: Final = 20


def as_task(name: str, **more: str) -> Callable[[Client, str], dict[str, Any]]:
    """Call a tool that runs as a task."""

    def run(client: Client, text: str) -> dict[str, Any]:
        task = client.end(client.start(name, **(more or {"text": text})))
        assert task["statusMessage"] == task["error"]["message"]
        return dict(task["error"])

    return run


def request(method: str, params: Callable[[str], dict[str, Any]]) -> Any:
    """Make a request that crashes."""
    return lambda client, text: client.request(method, params(text)).error


COMPLETION: Final = {"ref": {"type": "ref/prompt", "name": "crashing_prompt"}}
CRASHES: Final[dict[str, tuple[Any, str, str]]] = {
    "async tool": (as_task("crash_in_group"), "crash_in_group", "parse"),
    "step": (as_task("crash_in_step"), "crash_in_step", "parse"),
    "item of a map": (as_task("crash_in_map"), "crash_in_map", "parse"),
    "tool that is undone": (as_task("crash_in_undone"), "crash_in_undone", "parse"),
    "state of a workflow": (as_task("broken_flow", how="step_crash"), "broken_flow", "end"),
    "tool within a request": (
        lambda client, text: client.call("crash_at_once", text=text).error,
        "crash_at_once",
        "parse",
    ),
    "prompt": (
        request(
            "prompts/get", lambda text: {"name": "crashing_prompt", "arguments": {"text": text}}
        ),
        "crashing_prompt",
        "parse",
    ),
    "resource": (
        request("resources/read", lambda text: {"uri": f"note://quoted/{text}"}),
        "note://quoted/{text}",
        "quoted_note",
    ),
    "completion": (
        request(
            "completion/complete",
            lambda text: {**COMPLETION, "argument": {"name": "text", "value": text}},
        ),
        "crashing_prompt",
        "parse",
    ),
}
"""What crashes -> how, what the log calls it, and the innermost function of the author's."""


@pytest.mark.parametrize("what", CRASHES)
def test_the_clients_reference_finds_the_line_that_crashed(
    client: Client, aws: Any, what: str
) -> None:
    crash, name, function = CRASHES[what]
    secret, since = secrets.token_hex(8), int(time.time() * 1000)
    error = crash(client, secret)
    reference = error["data"]["reference"]
    assert reference_in(error["message"]) == reference
    assert secret not in json.dumps(error)
    lines = lines_with(reference, aws("logs"), since)
    first = lines[0]
    assert name in (first.get("tool"), first.get("prompt"), first.get("resource"))
    assert first["place"].endswith(f" {function}"), first
    assert first["place"].startswith("tools/"), first
    assert secret not in json.dumps(lines)
    if "in_" in name:
        assert all(each["task_id"] for each in lines)


def lines_with(reference: str, logs: Any, since: int) -> list[dict[str, Any]]:
    """The lines of all logs that have a reference, in their order."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        found = [
            json.loads(line)
            for group in log_groups(logs)
            for line in log_lines(logs, group, startTime=since)
            if f'"reference":"{reference}"' in line
        ]
        if found:
            return sorted(found, key=lambda line: str(line["timestamp"]))
        assert time.monotonic() < deadline, f"no line has {reference}"
        time.sleep(0.2)
