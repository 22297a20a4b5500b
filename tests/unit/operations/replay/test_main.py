"""`make replay`: what it prints, and its exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.server_toml import ServerFile
from operations.deployed_stack import NotDeployed, outputs_of
from operations.replay import __main__ as program
from operations.replay.__main__ import replay
from tests.paths import ROOT
from tests.unit.operations.replay.cloud import ENDED, SECRET, Cloud, event


@pytest.mark.parametrize("failing", [True, False])
def test_no_content_is_printed(
    cloud: Cloud, capsys: pytest.CaptureFixture[str], failing: bool
) -> None:
    cloud.send(cloud.source("Finish"), {**ENDED, "detail": {"output": SECRET}})
    cloud.lambda_.fails = ["ValueError" if failing else None]
    cloud.replay()
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err


def test_a_queue_that_cannot_be_read_does_not_hold_up_the_others(
    cloud: Cloud, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.send(cloud.source("Finish"), ENDED)
    cloud.outputs["ADeadLetterQueueUrl"] = "https://sqs.us-east-1.amazonaws.com/123456789012/gone"
    reports = replay(cloud.outputs, cloud.clients)
    del cloud.outputs["ADeadLetterQueueUrl"]
    assert [(t.queue, t.found, t.left, t.emptied) for t in reports] == [
        ("gone", 0, 0, False),
        ("mcp-tasks-FinishDeadLetterQueueUrl", 1, 0, True),
    ]
    assert "not read: gone: ReceiveMessage: " in capsys.readouterr().out


class CloudFormation:
    def __init__(self, outputs: dict[str, str]) -> None:
        self._outputs = outputs

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        if StackName != ServerFile.read(ROOT).stack:
            raise ClientError(
                {"Error": {"Code": "ValidationError", "Message": "no such stack"}}, ""
            )
        pairs = [{"OutputKey": k, "OutputValue": v} for k, v in self._outputs.items()]
        return {"Stacks": [{"Outputs": pairs}]}


@pytest.fixture
def run(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The program, with its arguments."""

    def client(service: str) -> Any:
        if service == "cloudformation":
            return CloudFormation(cloud.outputs)
        return cloud.clients(service)

    def program_with(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["replay", *arguments])
        monkeypatch.setattr(program, "clients_of", lambda profile: client)
        return program.main()

    return program_with


def test_the_program_prints_a_table_and_fails_when_something_is_left(
    cloud: Cloud, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.send(cloud.source("Finish"), ENDED)
    cloud.send(cloud.source("Sweep"), event("sweep"))
    cloud.lambda_.fails = ["KeyError"]
    assert run() == 1
    _, *table = capsys.readouterr().out.splitlines()
    assert [line.split() for line in table] == [
        ["queue", "found", "replayed", "left"],
        ["mcp-tasks-FinishDeadLetterQueueUrl", "1", "0", "1"],
        ["mcp-tasks-SweepDeadLetterQueueUrl", "1", "1", "0"],
    ]
    assert run() == 0


def test_a_stack_that_is_not_there_is_an_error(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--stack", "other") == 1
    assert "no such stack" in capsys.readouterr().err


def test_a_stack_without_such_outputs_is_an_error(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 1
    assert "no output that ends in DeadLetterQueueUrl" in capsys.readouterr().err


def test_a_stack_that_is_not_there_is_named() -> None:
    """CloudFormation's words, for a stack that was never created or is gone."""

    class Missing:
        def describe_stacks(self, **_: Any) -> Any:
            message = "Stack with id x does not exist"
            error = {"Error": {"Code": "ValidationError", "Message": message}}
            raise ClientError(error, "DescribeStacks")  # type: ignore[arg-type]

    with pytest.raises(NotDeployed, match=r"^the account has no stack x in this region$"):
        outputs_of(Missing(), "x")


def test_outputs_of_a_stack_that_has_none() -> None:
    class None_:
        def describe_stacks(self, StackName: str) -> dict[str, Any]:
            return {"Stacks": [{}]}

    assert outputs_of(None_(), "x") == {}


def test_without_a_local_stack_the_way_to_one_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["replay", "--profile", "local"])
    monkeypatch.setattr("local.emulator.find", lambda name: None)
    assert program.main() == 1
    assert "`make up` starts one" in capsys.readouterr().err
