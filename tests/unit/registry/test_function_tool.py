"""Functions as tools: what clients are offered, and which declarations are refused."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any

import pytest
from pydantic import Field

from mcp_tasks import TaskContext, ToolResult, tool
from mcp_tasks.crash_report import crash_report
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.registry.schema import InvalidArguments


def declared(function: Callable[..., Any], **options: Any) -> FunctionTool:
    declaration: FunctionTool = getattr(tool(**options)(function), DECLARATION)
    return declaration


def add(a: int, b: Annotated[int, Field(description="The second")] = 1) -> int:
    """Add two numbers.

    The second is 1 unless given.
    """
    return a + b


def test_the_decorator_returns_the_function() -> None:
    assert tool(add) is add
    assert tool(task="optional")(add) is add
    assert add(1, 2) == 3


def test_a_tools_definition_comes_from_its_function() -> None:
    definition = declared(add).definition()
    assert definition["name"] == "add"
    assert definition["description"] == "Add two numbers.\n\nThe second is 1 unless given."
    assert definition["inputSchema"]["required"] == ["a"]
    assert definition["inputSchema"]["properties"]["b"]["description"] == "The second"
    assert definition["outputSchema"] == {"type": "integer"}
    assert "title" not in definition
    assert "annotations" not in definition


def test_a_declaration_can_say_more() -> None:
    declaration = declared(add, name="plus", title="Plus", annotations={"readOnlyHint": True})
    definition = declaration.definition()
    assert (definition["name"], definition["title"]) == ("plus", "Plus")
    assert definition["annotations"] == {"readOnlyHint": True}


def test_a_tool_runs_within_the_request_unless_it_says_otherwise() -> None:
    assert declared(add).task_support == "forbidden"
    assert declared(add, task="required").task_support == "required"


def test_a_function_gets_its_context_and_clients_do_not_see_it() -> None:
    def who(name: str, task: TaskContext) -> str:
        """Say who."""
        return f"{name} {task.task_id}"

    declaration = declared(who)
    assert "task" not in declaration.definition()["inputSchema"]["properties"]
    result = declaration.run({"name": "Ada"}, TaskContext(task_id="c1-0"))
    assert result["content"][0]["text"] == "Ada c1-0"


def test_a_result_of_ones_own_has_no_schema() -> None:
    def draw() -> ToolResult:
        """Draw."""
        return ToolResult([])

    assert "outputSchema" not in declared(draw).definition()


def test_arguments_are_checked() -> None:
    assert declared(add).check_arguments({"a": 1}) == {"a": 1, "b": 1}
    with pytest.raises(InvalidArguments, match="a:"):
        declared(add).check_arguments({})


def undocumented() -> str:
    return ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "with space"}, "'with space'.*A-Z"),
        ({"name": "x" * 49}, "48"),
        ({"name": "ключ"}, "A-Z"),
        ({"name": "a\n"}, "A-Z"),
        ({"name": "a/b"}, "A-Z"),
        ({"ttl": timedelta(0)}, "ttl"),
        ({"ttl": timedelta(days=-1)}, "ttl"),
        ({"poll_every": timedelta(0)}, "poll_every"),
        ({"timeout": timedelta(milliseconds=999)}, "1 second to 15 minutes"),
        ({"timeout": timedelta(minutes=15, seconds=1)}, "workflow_tool"),
    ],
)
def test_a_declaration_that_cannot_be_offered_says_why(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tool(**options)(add)


def test_a_tool_needs_words_for_a_model() -> None:
    with pytest.raises(ValueError, match=r"undocumented: .*docstring"):
        tool(undocumented)


def test_an_error_of_a_declaration_names_its_tool() -> None:
    for options in ({"ttl": timedelta(0)}, {"timeout": timedelta(0)}):
        with pytest.raises(ValueError, match=r"^add: "):
            tool(**options)(add)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        (Annotated[float, Field(json_schema_extra={"x-mcp-header": "A"})], "string, integer"),
        (Annotated[str, Field(json_schema_extra={"x-mcp-header": "a b"})], "HTTP token"),
        (Annotated[str | None, Field(json_schema_extra={"x-mcp-header": "A"})], "string, integer"),
    ],
)
def test_a_header_annotation_that_clients_refuse_is_refused_here(
    annotation: Any, says: str
) -> None:
    """tools.mdx, "x-mcp-header": clients leave the tool out of their list, without an error."""

    def function(a: str) -> str:
        """Take one."""
        return a

    function.__annotations__["a"] = annotation
    with pytest.raises(ValueError, match=says):
        tool(function)


def test_a_header_annotation_is_a_mirrored_parameter() -> None:
    def function(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})], other: str
    ) -> str:
        """Take two."""
        return region + other

    (mirrored,) = declared(function).mirrored
    assert (mirrored.header, mirrored.path, mirrored.type) == ("Region", ("region",), "string")


@pytest.mark.parametrize(
    "name",
    ["json", "copy", "schema", "model_name", "model_config", "model_dump", "_hidden", "self"],
)
def test_a_parameter_may_have_any_name(name: str) -> None:
    """Also names that pydantic's models use themselves."""
    namespace: dict[str, Any] = {}
    exec(f'def function({name}: int) -> int:\n    """Take one."""\n    return {name}', namespace)
    declaration = declared(namespace["function"])
    values = declaration.check_arguments({name: 5})
    assert declaration.run(values, TaskContext())["structuredContent"] == 5


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_function_that_ends_its_process_has_crashed(asynchronous: bool) -> None:
    def leave() -> None:
        """Leave."""
        sys.exit("a secret")

    async def leave_later() -> None:
        """Leave."""
        await asyncio.sleep(0)
        sys.exit("a secret")

    leaving = declared(leave_later if asynchronous else leave)
    with pytest.raises(RuntimeError, match=r"sys\.exit") as crash:
        leaving.run({}, TaskContext())
    report = crash_report(crash.value)
    assert report["raised_in"].endswith("leave_later" if asynchronous else "leave")
    assert report["cause"]["exception"] == "SystemExit"
    assert "a secret" not in json.dumps(report)
