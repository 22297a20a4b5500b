"""What is asked of a stack in a month."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_type_hints

Auth = Literal["iam", "oauth", "none"]
Encryption = Literal["aws", "customer"]
Switch = Literal["on", "off"]


@dataclass(frozen=True, slots=True)
class Load:
    """A month. Each field is an option of `make cost`; the defaults are those of the documentation:
    tasks of one function that takes no `TaskContext`, with ten polls."""

    tasks: int = 1_000_000
    polls: int = 10
    """Of each task."""
    reports: int = 0
    """Of each task: how often it changes its status message."""
    transitions: int = 2
    """Of each task: 2 without a TaskContext, 4 with one, more for what is durable."""
    writes: int = 0
    """Of each task, to its journal: one for a step (docs/durable-functions.md)."""
    auth: Auth = "iam"
    encryption: Encryption = "aws"
    alarms: Switch = "on"
    dashboard: Switch = "on"
    log_messages: Switch = "off"
    worker_ms: int = 100
    """How long a tool runs."""
    worker_mb: int = 512
    api_ms: int = 12
    """How long a request takes in `api`, which has 1024 MB."""
    background_ms: int = 30
    """How long `finish`, `publish`, `deliver` and the authorizer take for one call each."""
    row_kb: int = 1
    """A task's row, with its arguments and result."""
    response_kb: int = 1
    ttl_days: int = 1

    @classmethod
    def of(cls, arguments: dict[str, str]) -> Load:
        """A load from options. Raises ValueError for a value that an option does not take."""
        hints: dict[str, Any] = get_type_hints(cls)
        values: dict[str, Any] = {}
        for name, text in arguments.items():
            choices = getattr(hints.get(name), "__args__", None)
            if name not in hints:
                known = ", ".join(field.name for field in fields(cls))
                raise ValueError(f"{name}={text}: there is {known}")
            if choices is not None and text not in choices:
                raise ValueError(f"{name}={text}: one of {', '.join(choices)}")
            if choices is None and not text.isdecimal():
                raise ValueError(f"{name}={text}: a whole number")
            values[name] = text if choices is not None else int(text)
        return cls(**values)
