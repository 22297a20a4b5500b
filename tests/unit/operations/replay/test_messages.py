"""Every message is received once in a run, and deleted only when it was replayed."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ReadTimeoutError

from operations.replay import messages
from operations.replay.__main__ import QueueReport, replay
from tests.unit.operations.replay.cloud import ENDED, Cloud


def test_a_second_run_finds_nothing(cloud: Cloud) -> None:
    cloud.send(cloud.source("Finish"), ENDED)
    cloud.replay()
    assert cloud.replay()["FinishDeadLetterQueueUrl"].found == 0
    assert len(cloud.lambda_.calls) == 1


def test_every_message_is_tried_once_and_what_failed_can_be_seen_again_at_once(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    url = cloud.source("Finish")
    ids = [cloud.send(url, {**ENDED, "id": str(n)}) for n in range(12)]
    cloud.lambda_.fails = [None, "KeyError", ReadTimeoutError(endpoint_url="https://x")]
    report = cloud.replay()["FinishDeadLetterQueueUrl"]
    assert (report.found, report.left, report.emptied) == (12, 2, False)
    called = [call["id"] for _, call in cloud.lambda_.calls]
    assert sorted(called, key=int) == [str(n) for n in range(12)]
    left = {json.loads(body)["id"] for body in cloud.bodies(url)}
    assert left == {called[1], called[2]}
    printed = capsys.readouterr().out
    for n, why in ((called[1], "the function failed: KeyError"), (called[2], "ReadTimeoutError")):
        assert f"mcp-tasks-FinishDeadLetterQueueUrl, message {ids[int(n)]}: {why}\n" in printed


def test_while_one_run_has_a_message_another_does_not_get_it(cloud: Cloud) -> None:
    cloud.send(cloud.source("Finish"), ENDED)
    within: list[QueueReport] = []

    cloud.lambda_.during_call = lambda: within.extend(replay(cloud.outputs, cloud.clients))
    assert cloud.replay()["FinishDeadLetterQueueUrl"].found == 1
    assert [report.found for report in within] == [0]


def test_a_run_ends(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when something fills the queue as fast as it is emptied."""
    monkeypatch.setattr(messages, "MAX_MESSAGES", 15)
    url = cloud.source("Finish")
    for _ in range(3):
        cloud.send(url, ENDED)

    cloud.lambda_.during_call = lambda: cloud.send(url, ENDED)
    assert cloud.replay()["FinishDeadLetterQueueUrl"].found == 15
