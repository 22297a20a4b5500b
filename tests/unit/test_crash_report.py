"""What a log says of a crash: enough to find the line, and nothing that the tool was given."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import pytest

from mcp_tasks import TaskContext
from mcp_tasks.crash_report import (
    MAX_EXCEPTIONS,
    MAX_FRAMES,
    crash_report,
    reference_in,
    with_reference,
    without_reference,
)
from mcp_tasks.registry import function_tool
from mcp_tasks.registry.durable_errors import StepFailed, SubtaskFailed
from tests.unit.support.author import author_module

SECRET: Final = "hunter2"
CODE: Final = """\
import asyncio
import json
from botocore.exceptions import ClientError


def parse(text):
    return json.loads(text)


def sync(text):
    return parse(text)


async def part(text):
    await asyncio.sleep(0)
    parse(text)


async def one(text):
    await part(text)


async def several(text):
    async with asyncio.TaskGroup() as group:
        group.create_task(part(text))


class Orders:
    def charge(self, text):
        try:
            parse(text)
        except ValueError as error:
            raise RuntimeError(text) from error


def handled(text):
    try:
        parse(text)
    except ValueError:
        raise KeyError(text)


def hidden(text):
    try:
        parse(text)
    except ValueError:
        raise KeyError(text) from None


def forever(text):
    return forever(text)


def chain(text, length):
    try:
        if length:
            chain(text, length - 1)
    finally:
        raise ValueError(text)


def generated(text):
    exec(compile("raise ValueError(text)", text, "exec"), {"text": text, "__name__": "tools.x"})


def denied(text):
    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": text}}, "GetItem")
"""


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return author_module(tmp_path_factory.mktemp("bundle"), "orders", CODE)


def line(of: str) -> int:
    """The number of the first line of CODE that has a text."""
    return next(n for n, text in enumerate(CODE.splitlines(), 1) if of in text)


def crashed(function: Any, *arguments: Any) -> dict[str, Any]:
    """The report of what a function raises. It has nothing that the function was given."""
    try:
        function(*arguments)
    except Exception as error:
        report = crash_report(error)
        assert SECRET not in json.dumps(report)
        return report
    raise AssertionError("it has not raised")


def test_every_frame_of_the_author_is_named_the_innermost_first(orders: Any) -> None:
    report = crashed(orders.sync, SECRET)
    assert report["exception"] == "JSONDecodeError"
    assert report["frames"] == ["tools/orders.py:7 parse", "tools/orders.py:11 sync"]
    assert report["place"] == "tools/orders.py:7 parse"


def test_a_librarys_line_is_told_apart(orders: Any) -> None:
    """`botocore/client.py:1094` alone says nothing of which call it was."""
    assert crashed(orders.sync, SECRET)["raised_in"].startswith("json/decoder.py:")


def test_an_async_function_has_its_frames_too(orders: Any) -> None:
    report = crashed(lambda: asyncio.run(orders.one(SECRET)))
    names = [frame.split(" ")[1] for frame in report["frames"]]
    assert names == ["parse", "part", "one"]


def test_the_exceptions_of_a_task_group_are_reported_each(orders: Any) -> None:
    report = crashed(lambda: asyncio.run(orders.several(SECRET)))
    assert report["exception"] == "ExceptionGroup"
    (inner,) = report["exceptions"]
    assert inner["exception"] == "JSONDecodeError"
    assert report["place"] == inner["place"] == "tools/orders.py:7 parse"
    assert report["frames"] == [f"tools/orders.py:{line('async with')} several"]


def test_the_cause_is_reported_and_a_method_has_its_class(orders: Any) -> None:
    report = crashed(orders.Orders().charge, SECRET)
    assert (report["exception"], report["cause"]["exception"]) == (
        "RuntimeError",
        "JSONDecodeError",
    )
    assert report["place"].endswith(" Orders.charge")
    assert report["cause"]["place"] == "tools/orders.py:7 parse"


def test_what_was_being_handled_is_the_context(orders: Any) -> None:
    assert crashed(orders.handled, SECRET)["context"]["exception"] == "JSONDecodeError"


def test_what_the_author_has_hidden_is_left_out(orders: Any) -> None:
    """As in Python's own traceback: `from None`."""
    assert {"cause", "context"} & crashed(orders.hidden, SECRET).keys() == set()


def test_a_recursion_is_shortened_in_the_middle(orders: Any) -> None:
    frames = crashed(orders.forever, SECRET)["frames"]
    assert len(frames) == MAX_FRAMES + 1
    assert frames[MAX_FRAMES // 2].endswith(" more")


def test_a_long_chain_ends(orders: Any) -> None:
    report, exceptions = crashed(orders.chain, SECRET, 100), 1
    while "context" in report:
        report, exceptions = report["context"], exceptions + 1
    assert exceptions == MAX_EXCEPTIONS


def test_exceptions_in_a_circle_end() -> None:
    first, second = ValueError(), KeyError()
    first.__cause__, second.__cause__ = second, first
    report = crash_report(first)
    assert report["cause"]["exception"] == "KeyError"
    assert "cause" not in report["cause"]


def test_a_file_that_code_was_made_from_is_not_named(orders: Any) -> None:
    """It may be named after anything: `compile(source, filename)`."""
    assert crashed(orders.generated, SECRET)["frames"][0] == "generated code:1 <module>"


def test_an_error_of_aws_has_its_code(orders: Any) -> None:
    assert crashed(orders.denied, SECRET)["code"] == "AccessDeniedException"


def test_without_a_line_of_the_authors_the_librarys_are_named() -> None:
    """A result that has not the declared type is found after the tool has returned."""

    def count(text: str) -> int:
        """Count."""
        return text  # type: ignore[return-value]

    tool = function_tool.tool(count).__mcp_declaration__  # type: ignore[attr-defined]
    report = crashed(tool.run, {"text": SECRET}, TaskContext())
    assert report["place"].startswith("mcp_tasks/registry/")


@pytest.mark.parametrize(
    "error",
    [
        StepFailed("charge", "KeyError", SECRET, "0123456789ab"),
        SubtaskFailed("order", "failed", "The tool failed: KeyError (reference 0123456789ab)"),
    ],
)
def test_the_reference_of_a_failed_step_or_subtask_is_kept(error: Exception) -> None:
    """One reference finds the line of the tool, and that of the step."""
    outer = RuntimeError()
    outer.__cause__ = error
    assert crash_report(outer)["reference"] == "0123456789ab"


def test_a_reference_is_new_for_each_crash() -> None:
    assert len({crash_report(ValueError())["reference"] for _ in range(100)}) == 100


def test_a_message_has_a_reference_and_loses_it() -> None:
    message = with_reference("It failed", "0123456789ab")
    assert message == "It failed (reference 0123456789ab)"
    assert reference_in(message) == "0123456789ab"
    assert without_reference(message) == "It failed"
    assert with_reference("It failed", None) == without_reference("It failed") == "It failed"
