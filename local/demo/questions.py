"""A tool's question: its form on the screen, which the person at the terminal fills in."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from typing import Any

from mcp_types import ElicitRequestFormParams

from .screen import Screen

Content = dict[str, str | int | float | bool | list[str] | None]
"""The content of an answer: a form that is filled in."""


def show_question(screen: Screen, params: ElicitRequestFormParams) -> None:
    """Write the question, and a line for each field of its form."""
    screen.say(f"The tool asks: {params.message}", "bold", indent=6)
    required = params.requested_schema.get("required", [])
    for name, field in params.requested_schema["properties"].items():
        facts = [field["type"], "required" if name in required else "optional"]
        if "default" in field:
            facts.append(f"default {json.dumps(field['default'])}")
        text = f"{name:<16} {field['title']} ({', '.join(facts)}) {field.get('description', '')}"
        screen.say(text.rstrip(), indent=8)


async def fill_in(screen: Screen, schema: dict[str, Any]) -> Content | None:
    """Let the person at the terminal fill in a form. Returns None when they decline, by Ctrl-D."""
    content: Content = {}
    for name, field in schema["properties"].items():
        hint = " [yes/no]" if field["type"] == "boolean" else ""
        while True:
            screen.write(f"      {field['title']}{hint}: ")
            text = await read_line()
            if text is None:
                screen.line()
                return None
            if not text and name not in schema.get("required", []):
                break
            try:
                content[name] = parse_field(text, field)
                break
            except ValueError as error:
                screen.say(str(error), "red", indent=6)
    return content


def parse_field(text: str, field: dict[str, Any]) -> str | float | bool:
    """Convert what the person typed to the field's type, and check the field's limits.

    Handles the fields that the sample tools ask for; the server checks every answer anyway.
    Raises ValueError with a message for the person at the terminal.
    """
    if field["type"] == "boolean":
        if text.lower() not in ("y", "yes", "n", "no"):
            raise ValueError("Please type yes or no")
        return text.lower().startswith("y")
    if field["type"] == "number":
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"Please type a number, not {text!r}") from None
        low, high = field.get("minimum", -math.inf), field.get("maximum", math.inf)
        if not low <= number <= high:
            raise ValueError(f"Please type a number from {low} to {high}")
        return number
    if len(text) > field.get("maxLength", math.inf):
        raise ValueError(f"Please type 1 to {field['maxLength']} characters")
    return text


async def read_line() -> str | None:
    """Read a line from the terminal; None at the end of the input.

    It waits in the event loop and not in a thread: Ctrl-C ends it at once.
    """
    typed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, typed.set)
    try:
        await typed.wait()
    finally:
        loop.remove_reader(sys.stdin)
    line = sys.stdin.readline()
    return line.strip() if line else None
