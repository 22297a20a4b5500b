"""What is verified: an endpoint, its tools, and the stack where its account may be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..deployed_stack import DeployedStack
from .check import NotTried
from .credentials import NoCredentials
from .endpoint import Endpoint

SAVINGS: Final = {"monthly": 200, "years": 20}
ALL_AT_ONCE: Final = {**SAVINGS, "share_of_stocks": 0.5}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool and the arguments to call it with."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> ToolCall:
        """Read `NAME` or `NAME {"argument": 1}`. Raises ValueError."""
        name, _, arguments = text.strip().partition(" ")
        found = json.loads(arguments) if arguments.strip() else {}
        if not name or not isinstance(found, dict):
            raise ValueError(f"{text!r}: a tool's name, and its arguments as a JSON object")
        return cls(name, found)


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """The calls that the checks make: of the samples, unless the command says otherwise."""

    task: ToolCall = ToolCall("simulate_savings", ALL_AT_ONCE)
    """Of a tool that becomes a task and ends by itself."""
    question: ToolCall = ToolCall("simulate_savings", SAVINGS)
    """Of one that asks, with one question in a form."""
    answer: Mapping[str, Any] = field(default_factory=lambda: {"share_of_stocks": 0.6})
    """To the question."""
    large: ToolCall | None = None
    """Of a task whose result has more than 256 KiB; the samples have none."""
    fails: ToolCall | None = None
    """Of a task that fails."""


@dataclass
class Deployed:
    """A deployment, as the checks get it."""

    endpoint: Endpoint
    on_emulator: bool
    stack: DeployedStack | None
    calls: ToolCalls = field(default_factory=ToolCalls)
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What `tools/list` gave, by name."""
    slow: bool = False
    """Whether the checks run that take minutes."""
    ring: bool = False
    """Whether an alarm may ring."""

    @property
    def stranger(self) -> Endpoint:
        """A caller without credentials."""
        return Endpoint(self.endpoint.url, NoCredentials())

    @property
    def needs_credentials(self) -> bool:
        """Whether the endpoint was called with credentials."""
        return not isinstance(self.endpoint.credentials, NoCredentials)

    @property
    def streams(self) -> bool:
        """Whether the endpoint says that it streams its answers."""
        return self.stack is not None and "AWS_LAMBDA_EXEC_WRAPPER" in self.stack.variables

    def offered(self, call: ToolCall) -> ToolCall:
        """The call, if the server has its tool. Raises NotTried."""
        if call.tool not in self.tools:
            raise NotTried(f"the server has no {call.tool}; docs/verify.md: name another")
        return call

    def account(self) -> DeployedStack:
        """The stack. Raises NotTried where only a URL was given."""
        if self.stack is None:
            raise NotTried("url= was given; stack= or stage= lets it read the account")
        return self.stack
