"""The bill multiplies what the functions call and log: one task, counted from end to end."""

from __future__ import annotations

import io
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from botocore.client import BaseClient
from moto import mock_aws

from operations.costs.calls import CREATE, END, LOG_BYTES, POLL, REPORT
from tests.unit.support.cloud import PATIENCE, Cloud

REPORTS: Final = 3
TOOL: Final = f"""
from mcp_tasks import TaskContext, tool

@tool(task="required")
def count(task: TaskContext) -> str:
    '''Count.'''
    for number in range({REPORTS}):
        task.report(str(number))
    return "done"
"""
OF_THE_TEST: Final = "stepfunctions:DescribeExecution"
"""On AWS, `finish` gets the end from its event, which the double of EventBridge leaves out."""
OF_THE_TEST_BYTES: Final = 2 * len('"end_from":"DescribeExecution",')
"""What `finish` adds to its line and to that of the audit log because of it."""


FIRST: Final = Counter({"dynamodb:UpdateItem": 1})
"""A caller's first creation takes one call more (tests/unit/server/test_call_counts.py)."""
CLAIMS_BYTES: Final = 200
"""How much longer a line's names are on AWS: the caller's (an issuer and a subject, or the ARN of a
role), and the function's."""


class Counted:
    """The calls to AWS since the last time, and what was logged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._calls: Counter[str] = Counter()
        call = BaseClient._make_api_call  # type: ignore[attr-defined]

        def counted(client: Any, operation: str, arguments: Any) -> Any:
            self._calls[f"{client.meta.service_model.service_name}:{operation}"] += 1
            return call(client, operation, arguments)

        monkeypatch.setattr(BaseClient, "_make_api_call", counted)
        self._log = io.StringIO()
        for handler in logging.getLogger("service_undefined").handlers:
            if isinstance(handler, logging.StreamHandler):
                monkeypatch.setattr(handler, "stream", self._log)

    def calls(self) -> dict[str, int]:
        """What was called since this was asked."""
        calls, self._calls = dict(self._calls), Counter()
        return calls

    def log_bytes(self) -> int:
        """How much was logged since this was asked."""
        length = len(self._log.getvalue().encode())
        self._log.seek(0)
        self._log.truncate()
        return length


@pytest.fixture
def cloud(no_account: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cloud]:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "count.py").write_text(TOOL)
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield Cloud(monkeypatch, tmp_path, tools)


def times(calls: Any, number: int) -> Counter[str]:
    return Counter({name: count * number for name, count in calls.items()})


def run(cloud: Cloud) -> str:
    """Create a task and let it end, without a read of its row."""
    task_id = cloud.start("count", {})
    with cloud._changed:
        assert cloud._changed.wait_for(lambda: task_id in cloud.finished, PATIENCE)
    return task_id


def test_the_calls_and_the_log_of_a_task_are_those_of_the_bill(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    task_id = run(cloud)
    calls = Counter(counted.calls())
    del calls[OF_THE_TEST]
    calls -= FIRST
    assert calls == times(CREATE, 1) + times(REPORT, REPORTS) + times(END, 1)
    logged = sum(LOG_BYTES[what] for what in ("create", "run", "end"))
    written = counted.log_bytes() - OF_THE_TEST_BYTES
    assert written + 3 * CLAIMS_BYTES == pytest.approx(logged, rel=0.1)
    cloud.get(task_id)
    assert counted.calls() == dict(POLL)
    assert counted.log_bytes() + CLAIMS_BYTES == pytest.approx(LOG_BYTES["poll"], rel=0.1)
