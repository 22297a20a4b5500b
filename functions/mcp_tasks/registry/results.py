"""From a tool's return value to a CallToolResult (tools.mdx, "Tool Result")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from . import content
from .content import ContentBlock, is_block
from .schema import WrittenSchema

MAX_TEXT_COPY: Final = 64_000
"""Characters."""


NO_COPY: Final = "The result is in structuredContent:"
"""How the text begins that stands for a copy too large."""

RESULT_MEMBERS: Final = ("content", "structuredContent", "isError", "_meta")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result with content of its author's own: images, audio, resource links, several texts.

    `content` holds blocks as `mcp_tasks.content` makes them.
    """

    content: Sequence[ContentBlock]
    structured_content: Any = None
    is_error: bool = False

    def as_result(self) -> dict[str, Any]:
        """The CallToolResult, without the envelope that a protocol revision puts around it.

        Raises ValueError or TypeError for a block that no client could read, or what is not JSON.
        """
        if not all(map(is_block, self.content)):
            raise ValueError("content holds what is not a content block")
        result: dict[str, Any] = {"content": [dict(block) for block in self.content]}
        if self.structured_content is not None:
            result["structuredContent"] = self.structured_content
        if self.is_error:
            result["isError"] = True
        json.dumps(result, allow_nan=False)
        return result


def returned(value: Any, declared: TypeAdapter[Any] | WrittenSchema | None) -> dict[str, Any]:
    """The result of a Python function: text, content of its own, or structured content.

    Structured content is checked against what was declared. Raises ValueError when it differs.
    """
    if isinstance(value, ToolResult):
        if declared is not None and not value.is_error:
            _checked(value.structured_content, declared)
        return value.as_result()
    if declared is None:
        return text_result(value) if isinstance(value, str) else _untyped(value)
    return structured_result(_checked(value, declared))


def workflow_output(
    output: Any, declared: TypeAdapter[Any] | WrittenSchema | None
) -> dict[str, Any]:
    """The result of an execution: its output is structured content, unless it is a result already.

    With a declared result type the output is checked against it. Without one, an object whose
    `content` is a list of content blocks is the result.

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
    """A tool execution error: what went wrong, for a model that may try again."""
    return {**text_result(message), "isError": True}


def structured_result(value: Any) -> dict[str, Any]:
    """Structured content, with a copy as text for clients that do not read it.

    The copy is a SHOULD (tools.mdx, "Structured Content"); a large one is left out and said so,
    because a task's row has to hold both. Raises ValueError for NaN and infinity.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(text) > MAX_TEXT_COPY:
        text = f"{NO_COPY} {len(text)} characters of JSON"
    return {**text_result(text), "structuredContent": value}


def _checked(value: Any, declared: TypeAdapter[Any] | WrittenSchema) -> Any:
    """Structured content of the declared shape, as JSON values. Raises ValueError."""
    if isinstance(declared, WrittenSchema):
        declared.check(value, "the result")
        return value
    # Checked, because pydantic writes a value of another type with no more than a warning.
    checked = declared.validate_python(value)
    return declared.dump_python(checked, mode="json", by_alias=True)


def _untyped(value: Any) -> dict[str, Any]:
    return {"content": []} if value is None else structured_result(value)


def _is_result(output: Any) -> bool:
    """Whether a client could read this as a CallToolResult; somebody's CMS has `content` too."""
    if not isinstance(output, Mapping) or not isinstance(output.get("content"), list):
        return False
    if not isinstance(output.get("isError", False), bool):
        return False
    return all(map(is_block, output["content"]))
