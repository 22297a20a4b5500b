"""Arguments that cost as much as possible, for tools with arbitrary annotations.

Each body is within the limits. It is answered in a process of its own. Number N of a seed is always
the same.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any, Final

from local.console import say
from mcp_tasks.deployment import Deployment
from mcp_tasks.limits import Limits
from mcp_tasks.protocol.headers import Headers
from mcp_tasks.registry.catalogue import Catalogue, ToolEntry
from mcp_tasks.registry.decorated_function import DECLARATION
from mcp_tasks.registry.function_tool import tool
from mcp_tasks.registry.tool import Tool
from mcp_tasks.server.caller import Caller
from mcp_tasks.server.http.endpoint import Endpoint
from mcp_tasks.server.http.messages import HttpRequest
from mcp_tasks.server.server import mcp_server
from mcp_tasks.server_identity import ServerIdentity
from tests.campaigns.hostile.annotations import ATTEMPTS, Source
from tests.campaigns.hostile.hostile_values import HostileValues
from tests.campaigns.hostile.peak import Cost, cost_of

MAX_CPU_SECONDS: Final = 2.0
MAX_PEAK_MEGABYTES: Final = 300.0
MAX_REFUSAL_BYTES: Final = 8 * 1024
BODIES_OF_A_TOOL: Final = 5
BATCH: Final = 50
"""Messages in a batch, at most."""
SHOWN: Final = 300
"""Bytes of a body that are printed."""


@dataclass(slots=True)
class Report:
    """What came of a run."""

    bodies: int = 0
    refused: int = 0
    cpu_seconds: float = 0.0
    peak_megabytes: float = 0.0
    faults: list[str] = field(default_factory=list)

    def add(self, name: str, body: bytes, cost: Cost | None) -> None:
        """Add a body, and what it has cost."""
        self.bodies += 1
        if cost is None:
            self.faults.append(f"{name}: the process has ended")
            return
        self.cpu_seconds = max(self.cpu_seconds, cost.cpu_seconds)
        self.peak_megabytes = max(self.peak_megabytes, cost.peak_megabytes)
        self.refused += is_refusal(cost.answer)
        self.faults += [f"{name}: {each}\n  {body[:SHOWN]!r}" for each in faults(cost)]


class _LoadedTool(ToolEntry):
    """A tool of a module that is no file."""

    def load(self) -> Tool:
        return _LOADED[self.name]


_LOADED: dict[str, Tool] = {}


def hostile_arguments(seed: int, numbers: Iterable[int]) -> Report:
    """Send the bodies of these numbers."""
    report = Report()
    for number in numbers:
        declared, body = attempt(seed, number)
        report.add(f"arguments {number} of seed {seed}", body, cost_of_body(declared, body))
    return report


def show_costs(report: Report) -> None:
    """Print what the most expensive bodies have cost, and what was wrong."""
    say(
        f"{report.bodies} bodies of arguments, {report.refused} refused, "
        f"{len(report.faults)} faults"
    )
    say(f"at most {report.cpu_seconds:.1f} s of CPU and {report.peak_megabytes:.0f} MB over idle")
    for fault in report.faults:
        say(f"\n{fault}")


def cost_of_body(declared: Tool, body: bytes) -> Cost | None:
    """What it costs to answer a body; None when the process that answers it has ended."""
    return cost_of(partial(_answer, server(declared), body))


def call(declared: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """A request that calls a tool, in a revision that wants no headers."""
    params = {"name": declared.name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def attempt(seed: int, number: int) -> tuple[Tool, bytes]:
    """One of a run's tools, and a body for it."""
    declared = _tool(seed, number // BODIES_OF_A_TOOL)
    rng = random.Random(f"{seed} {number}")
    message = call(declared, HostileValues(rng, declared.input_schema).arguments())
    body = json.dumps(message).encode()
    if len(body) < Limits().max_body_bytes // BATCH - 2 and rng.random() < 0.5:
        return declared, json.dumps([message] * BATCH).encode()
    return declared, body


def server(declared: Tool) -> Endpoint:
    """A server with one tool, and no AWS."""
    _LOADED[declared.name] = declared
    entry = _LoadedTool(
        name=declared.name,
        definition={},
        module="",
        attribute="",
        kind="function",
        task_support="forbidden",
        without_tasks="task",
        asks_first=False,
        ttl_ms=1,
        poll_interval_ms=1,
        timeout_ms=1,
        sequential=True,
        mirrored=(),
        state_machine_arn=None,
    )
    environment = {"AUTH": "none", "CELL": "c1", "STATE_MACHINE_PREFIX": "arn:"}
    environment["LIMITS"] = Limits(max_open_calls=0).to_json()  # counting calls needs AWS
    environment |= dict.fromkeys(
        ("TASKS_TABLE", "MAILBOXES_TABLE", "CALLERS_TABLE", "PAYLOADS_BUCKET"), "none"
    )
    identity = ServerIdentity("hostile", "1")
    return mcp_server(Deployment(environment, _no_aws, Catalogue([entry]), identity))


def _no_aws(*_: Any, **__: Any) -> None:
    """A client that has no operation: arguments alone lead to none."""


def _tool(seed: int, number: int) -> Tool:
    """A tool that can be declared; every fourth with its schema written by its author."""
    for attempt_number in range(ATTEMPTS):
        source = Source(random.Random(f"{seed} {number} {attempt_number}")).module()
        try:
            declared = declaration(source)
        except Exception:
            continue  # Not every annotation is one that pydantic takes, or has a schema of.
        if number % 4 == 3:
            return with_written_schema(declared.input_schema)
        return declared
    raise AssertionError(f"none of {ATTEMPTS} sources can be declared")


def declaration(source: str) -> Tool:
    """The tool `hostile` of a module's source. Raises whatever its declaration does."""
    module = ModuleType("hostile_module")
    sys.modules[module.__name__] = module
    exec(compile(source, module.__name__, "exec"), module.__dict__)
    declared: Tool = getattr(module.hostile, DECLARATION)
    return declared


def with_written_schema(schema: dict[str, Any]) -> Tool:
    """A tool whose author wrote this schema."""

    @tool(input_schema=schema)
    def hostile(arguments: dict[str, Any]) -> None:
        """Take anything."""

    declared: Tool = getattr(hostile, DECLARATION)
    return declared


def _answer(endpoint: Endpoint, body: bytes) -> str:
    headers = Headers({"Content-Type": ["application/json"], "Accept": ["application/json"]})
    response = endpoint.answer(HttpRequest(headers, body, Caller("anybody")))
    return response.message or ""


def is_refusal(answer: str) -> bool:
    """Whether the arguments were wrong, or too much."""
    return '"error"' in answer or '"isError": true' in answer


def faults(cost: Cost) -> list[str]:
    """What is wrong with an answer, and with what it has cost."""
    found = []
    if cost.cpu_seconds > MAX_CPU_SECONDS:
        found.append(f"{cost.cpu_seconds:.1f} s")
    if cost.peak_megabytes > MAX_PEAK_MEGABYTES:
        found.append(f"{cost.peak_megabytes:.0f} MB")
    answers = json.loads(cost.answer)
    for answer in answers if isinstance(answers, list) else [answers]:
        text = json.dumps(answer)
        if is_refusal(text) and len(text) > MAX_REFUSAL_BYTES:
            found.append(f"a refusal of {len(text)} bytes")
        if answer.get("error", {}).get("code") == -32603:
            found.append(f"an unexpected error: {text[:200]}")
    return found
