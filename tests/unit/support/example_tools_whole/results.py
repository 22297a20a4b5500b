"""Tools that run within the request, one for each shape of a result."""

from __future__ import annotations

from typing import Any

from mcp_tasks import TaskContext, ToolError, ToolResult, content, tool


@tool(
    title="Sum up",
    annotations={"readOnlyHint": True},
    icons=[{"src": "https://example.com/sum.png"}],
    meta={"example.com/group": "numbers"},
)
def totals(numbers: list[int]) -> dict[str, int]:
    """Add numbers up."""
    return {"total": sum(numbers)}


@tool
def doubled(numbers: list[int]) -> list[int]:
    """Double numbers."""
    return [2 * number for number in numbers]


@tool(
    input_schema={"type": "object", "properties": {"a": {"type": "integer"}}},
    output_schema={"type": "array", "items": {"type": "integer"}},
)
def written(arguments: dict[str, Any]) -> Any:
    """Return what a written schema allows."""
    return [arguments.get("a", 0)]


@tool
def everything() -> ToolResult:
    """Return a block of every type."""
    return ToolResult(
        [
            content.text("Look:"),
            content.image(b"image", "image/png"),
            content.audio(b"audio", "audio/wav"),
            {**content.resource_link("docs://handbook", "handbook"), "title": "The handbook"},
            {**content.embedded_resource("docs://a", "text"), "_meta": {"example.com/a": 1}},
        ],
        structured_content=["a", "b"],
    )


@tool
def noisy(
    task: TaskContext, steps: int = 2, level: str = "info", fail: str = "", count: bool = False
) -> str:
    """Report, log, and perhaps fail."""
    for step in range(steps):
        task.report(f"step {step}", None if count else (step + 1) / (steps + 1))
    task.log(level, {"steps": steps}, "noisy")  # type: ignore[arg-type]
    if fail == "tool":
        raise ToolError("Failed on purpose")
    if fail:
        raise KeyError(fail)
    return "done"
