"""What functions and workflows have in common as tools: schemas that an author wrote, `ask_first`,
icons, and the names that arguments must not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from pydantic import BaseModel

from mcp_tasks import TaskContext, ToolResult, content, tool, workflow_tool
from mcp_tasks.json_schema import InvalidSchema
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.registry.schema import InvalidArguments

WRITTEN: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"size": {"$anchor": "size", "enum": ["s", "l"]}},
    "properties": {"size": {"$ref": "#size"}, "count": {"type": "integer"}},
    "if": {"properties": {"size": {"const": "l"}}, "required": ["size"]},
    "then": {"required": ["count"]},
    "additionalProperties": False,
}


class Name(BaseModel):
    name: str


def declared(function: Callable[..., Any], **options: Any) -> FunctionTool:
    declaration: FunctionTool = getattr(tool(**options)(function), DECLARATION)
    return declaration


def order(task: TaskContext, arguments: dict[str, Any]) -> list[str]:
    """Take an order."""
    return sorted(arguments)


def test_a_written_schema_is_shown_as_it_is_written() -> None:
    assert declared(order, input_schema=WRITTEN).definition()["inputSchema"] == WRITTEN


def test_arguments_are_checked_by_the_written_schema_and_passed_as_one() -> None:
    declaration = declared(order, input_schema=WRITTEN)
    values = declaration.check_arguments({"size": "l", "count": 2})
    assert declaration.run(values, TaskContext())["structuredContent"] == ["count", "size"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"size": "s3cret"}, "size"),
        ({"size": "l"}, "count"),
        ({"colour": "s3cret"}, "colour"),
        ({"count": "s3cret"}, "count"),
    ],
)
def test_a_violation_of_the_written_schema_is_named_without_its_value(
    arguments: dict[str, Any], named: str
) -> None:
    declaration = declared(order, input_schema=WRITTEN)
    with pytest.raises(InvalidArguments, match=named) as caught:
        declaration.check_arguments(arguments)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("schema", [{"type": "array"}, {}, {"type": "string"}])
def test_a_written_schema_is_one_of_an_object(schema: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="of the type object"):
        declared(order, input_schema=schema)


def test_a_written_schema_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSchema):
        declared(order, input_schema={"type": "object", "properties": {"a": {"type": "what"}}})


def test_a_function_with_a_written_schema_takes_one_parameter() -> None:
    def two(a: int, b: int) -> int:
        """Two."""
        return a + b

    with pytest.raises(TypeError, match="one parameter"):
        declared(two, input_schema=WRITTEN)


def test_structured_content_is_checked_by_the_written_output_schema() -> None:
    def numbers(n: int) -> Any:
        """Some numbers, or none."""
        return list(range(n)) if n else "none"

    declaration = declared(numbers, output_schema={"type": "array", "maxItems": 2})
    assert declaration.definition()["outputSchema"] == {"type": "array", "maxItems": 2}
    assert declaration.run({"n": 2}, TaskContext())["structuredContent"] == [0, 1]
    for n in (0, 3):
        with pytest.raises(ValueError, match="the value"):
            declaration.run({"n": n}, TaskContext())


def test_content_beside_a_declared_result_has_to_hold_it() -> None:
    def totals(right: bool) -> Name:
        """A result with a picture."""
        structured = {"name": "a"} if right else {"name": 5}
        return ToolResult([content.text("see")], structured)  # type: ignore[return-value]

    declaration = declared(totals)
    assert declaration.run({"right": True}, TaskContext())["structuredContent"] == {"name": "a"}
    with pytest.raises(ValueError, match="name"):
        declaration.run({"right": False}, TaskContext())


def test_icons_and_meta_are_shown() -> None:
    icons = [{"src": "https://example.com/a.png", "mimeType": "image/png", "sizes": ["48x48"]}]
    definition = declared(
        order, input_schema=WRITTEN, icons=icons, meta={"a.example/b": 1}
    ).definition()
    assert (definition["icons"], definition["_meta"]) == (icons, {"a.example/b": 1})


def test_an_argument_called_meta_is_refused() -> None:
    """An execution's input has this name for members that are no arguments."""
    schema = {"type": "object", "properties": {"_meta": {}}}
    with pytest.raises(ValueError, match="_meta"):
        declared(order, input_schema=schema)


def test_ask_first_is_for_tools_that_become_tasks() -> None:
    def ask(task: TaskContext) -> None:
        task.ask("Who?", Name)

    with pytest.raises(ValueError, match="ask_first"):
        declared(order, input_schema=WRITTEN, ask_first=ask)
    assert declared(order, input_schema=WRITTEN, task="optional", ask_first=ask).ask_first is ask


def test_ask_first_takes_the_context_and_those_arguments_that_it_names() -> None:
    taken = []

    def ask(b: int, task: TaskContext) -> None:
        taken.append((b, task.task_id))

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    declared(add, task="required", ask_first=ask).run_ask_first({"a": 1, "b": 2}, TaskContext("id"))
    assert taken == [(2, "id")]


def test_a_wrapped_state_machine_cannot_get_answers() -> None:
    with pytest.raises(ValueError, match="in vain"):
        workflow_tool(
            "flow",
            description="A flow",
            arguments=Name,
            state_machine_arn="arn:aws:states:us-east-1:123456789012:stateMachine:own",
            ask_first=lambda: None,
        )


def test_ask_first_takes_no_more_than_the_tool() -> None:
    def ask(task: TaskContext, colour: str) -> None:
        """Ask."""

    def untyped(task) -> None:  # type: ignore[no-untyped-def]
        """Ask."""

    def add(a: int) -> int:
        """Add."""
        return a

    with pytest.raises(ValueError, match="colour"):
        declared(add, task="required", ask_first=ask)
    with pytest.raises(TypeError, match="annotation"):
        declared(add, task="required", ask_first=untyped)


# how many instances of its worker


def test_a_tool_may_limit_its_worker() -> None:
    assert declared(order, input_schema=WRITTEN, task="optional").max_concurrency is None
    limited = declared(order, input_schema=WRITTEN, task="optional", max_concurrency=3)
    assert limited.max_concurrency == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"task": "required", "max_concurrency": 0}, "at least 1"),
        ({"max_concurrency": 3}, "limits the worker of a tool that runs as a task.*max_calls"),
    ],
    ids=str,
)
def test_a_limit_without_a_worker_or_an_instance_is_refused(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=f"order: max_concurrency.*{says}"):
        declared(order, input_schema=WRITTEN, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 30}, "order: timeout is a timedelta, such as timedelta.*, and not 30"),
        ({"ttl": 3600.0}, "order: ttl is a timedelta, such as .* and not 3600.0"),
        ({"poll_every": None}, "order: poll_every is a timedelta, such as .* and not None"),
        ({"task": True}, 'order: task is "forbidden", "optional" or "required", and not True'),
        ({"task": "always"}, "order: task is .*, and not 'always'"),
    ],
)
def test_an_option_of_another_kind_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        declared(order, **options)
