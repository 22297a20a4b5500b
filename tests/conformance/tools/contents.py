"""The tools that the conformance suite's `tools-*` scenarios expect of the server under test."""

from __future__ import annotations

import base64
import struct
import time
from typing import Annotated, Any

from pydantic import Field

from mcp_tasks import TaskContext, ToolError, ToolResult, content, tool

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
"""One red pixel."""
WAV = (
    b"RIFF"
    + struct.pack("<I", 36)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH4sI", 16, 1, 1, 8000, 8000, 1, 8, b"data", 0)
)
"""No sound at all."""

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool
def test_simple_text() -> str:
    """Answer with text."""
    return "This is a simple text response for testing."


@tool
def test_image_content() -> ToolResult:
    """Answer with an image."""
    return ToolResult([content.image(PNG, "image/png")])


@tool
def test_audio_content() -> ToolResult:
    """Answer with a sound."""
    return ToolResult([content.audio(WAV, "audio/wav")])


@tool
def test_embedded_resource() -> ToolResult:
    """Answer with a resource and its contents."""
    text = "This is an embedded resource content."
    return ToolResult([content.embedded_resource("test://embedded-resource", text, "text/plain")])


@tool
def test_multiple_content_types() -> ToolResult:
    """Answer with several contents."""
    document = '{"test":"data","value":123}'
    return ToolResult(
        [
            content.text("Multiple content types test:"),
            content.image(PNG, "image/png"),
            content.embedded_resource(
                "test://mixed-content-resource", document, "application/json"
            ),
        ]
    )


@tool
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool
def test_tool_with_progress(task: TaskContext) -> str:
    """Report three times."""
    for done in (0.0, 0.5, 1.0):
        task.report(f"{done:.0%} done", progress=done)
        time.sleep(0.05)
    return "Done, with progress"


@tool
def test_tool_with_logging(task: TaskContext) -> str:
    """Log three times."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        task.log("info", message)
        time.sleep(0.05)
    return "Done, with log messages"


@tool
def test_logging_tool(task: TaskContext) -> str:
    """Log something, for those who want it."""
    task.log("info", "test_logging_tool runs", logger="conformance")
    return "Done"


@tool(input_schema=SCHEMA)
def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Take arguments by a JSON Schema that pydantic could not have written."""
    return f"Got {', '.join(sorted(arguments))}"


@tool
def test_custom_headers(
    message: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Message"})],
) -> str:
    """Take an argument that clients repeat in a header."""
    return f"Got: {message}"
