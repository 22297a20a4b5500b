"""From a tool's return value to a CallToolResult (tools.mdx, "Tool Result")."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from . import content, schema
from .content import ContentBlock, is_block
from .schema import WrittenSchema

MAX_TEXT_COPY_CHARACTERS: Final = 64_000
"""The size up to which structured content is repeated as text."""

OMITTED_COPY_PREFIX: Final = "The result is in structuredContent:"
"""The beginning of the text that stands in place of a larger copy."""

RESULT_MEMBERS: Final = ("content", "structuredContent", "isError", "_meta")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result whose content blocks the tool makes itself: images, audio, links, several texts.

    `content` holds blocks as the functions of `mcp_tasks.content` return them.
    """

    content: Sequence[ContentBlock]
    structured_content: Any = None
    is_error: bool = False

    def as_result(self) -> dict[str, Any]:
        """The CallToolResult, without the envelope that a protocol revision puts around it.

        Raises ValueError for a block that no client could read, and ValueError or TypeError for a
        value that is not JSON.
        """
        if not all(map(is_block, self.content)):
            raise ValueError("content holds a value that is not a content block")
        result: dict[str, Any] = {"content": [dict(block) for block in self.content]}
        if self.structured_content is not None:
            result["structuredContent"] = self.structured_content
        if self.is_error:
            result["isError"] = True
        json.dumps(result, allow_nan=False)
        return result


def function_result(
    value: Any, declared: TypeAdapter[Any] | WrittenSchema | None
) -> dict[str, Any]:
    """The CallToolResult of a Python function's return value.

    The value is a ToolResult, text, or any other value, which becomes structured content and is
    checked against the declared type. Raises ValueError when it does not have that type.
    """
    if isinstance(value, ToolResult):
        if declared is not None and not value.is_error:
            _checked(value.structured_content, declared)
        return value.as_result()
    if declared is None:
        return text_result(value) if isinstance(value, str) else _untyped(value)
    return structured_result(_checked(value, declared))


def returned_value(
    result: Mapping[str, Any], declared: TypeAdapter[Any] | WrittenSchema | None
) -> Any:
    """What a tool returned, from its CallToolResult: a value of its declared type, other structured
    content as JSON values, text, None, or a ToolResult of several content blocks.
    """
    if "structuredContent" in result:
        value = result["structuredContent"]
        return declared.validate_python(value) if isinstance(declared, TypeAdapter) else value
    blocks = result.get("content", [])
    if not blocks:
        return None
    if len(blocks) == 1 and blocks[0].get("type") == "text":
        return blocks[0]["text"]
    return ToolResult(blocks)


def workflow_result(
    output: Any, declared: TypeAdapter[Any] | WrittenSchema | None
) -> dict[str, Any]:
    """The CallToolResult of an execution's output.

    With a declared result type, the output is structured content and is checked against the type.
    Without one, an object whose `content` is a list of content blocks is the result itself.

    Raises ValueError when the output does not have the declared type.
    """
    if declared is not None:
        try:
            return structured_result(_checked(output, declared))
        except ValidationError as error:
            raise ValueError(
                f"{error.error_count()} fields differ from the declared type"
            ) from None
    if _is_result(output):
        return {name: output[name] for name in RESULT_MEMBERS if name in output}
    return text_result(output) if isinstance(output, str) else _untyped(output)


def text_result(text: str) -> dict[str, Any]:
    """One block of text."""
    return {"content": [content.text(text)]}


def error_result(message: str) -> dict[str, Any]:
    """A tool execution error. The message says what went wrong; the client's model may read it."""
    return {**text_result(message), "isError": True}


def structured_result(value: Any) -> dict[str, Any]:
    """Structured content, with a copy as text for clients that do not read structured content.

    The copy is a SHOULD (tools.mdx, "Structured Content"). A task's row has to hold both, so the
    text only gives the size of a large copy. Raises ValueError for NaN and infinity.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(text) > MAX_TEXT_COPY_CHARACTERS:
        text = f"{OMITTED_COPY_PREFIX} {len(text)} characters of JSON"
    return {**text_result(text), "structuredContent": value}


def result_type(function: Callable[..., Any]) -> TypeAdapter[Any] | None:
    """The type of a function's structured content, by its return annotation.

    None for text, for ToolResult, and without an annotation: such results are not checked.
    """
    hint = schema.hints(function).get("return")
    return None if hint is ToolResult else schema.result_adapter(hint)


def _checked(value: Any, declared: TypeAdapter[Any] | WrittenSchema) -> Any:
    """Structured content of the declared shape, as JSON values. Raises ValueError."""
    if isinstance(declared, WrittenSchema):
        declared.check(value, "the result")
        return value
    # Validated first, because pydantic dumps a value of another type with only a warning.
    checked = declared.validate_python(value)
    return declared.dump_python(checked, mode="json", by_alias=True)


def _untyped(value: Any) -> dict[str, Any]:
    return {"content": []} if value is None else structured_result(value)


def _is_result(output: Any) -> bool:
    """Whether the output is a CallToolResult, and not an object that has a member `content` too."""
    if not isinstance(output, Mapping) or not isinstance(output.get("content"), list):
        return False
    if not isinstance(output.get("isError", False), bool):
        return False
    return all(map(is_block, output["content"]))
