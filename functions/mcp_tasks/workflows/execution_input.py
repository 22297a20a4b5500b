"""The input that a task's execution starts with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..payloads.pointer import payload_prefix, pointer_of
from ..payloads.s3_store import PayloadStore
from ..protocol.errors import invalid_params
from ..protocol.meta import META_MEMBER
from ..registry.catalogue import ToolEntry
from ..tasks.questions import Kind

INPUT_SCHEMA_VERSION: Final = 2
"""The version of the input's shape. An execution may be older than the code that its steps run.
Version 1 had no `schema` member."""

MAX_INLINE_INPUT_BYTES: Final = 100_000
"""Bytes of the input that the task's row keeps beside questions and answers; larger arguments are
stored in S3. (DynamoDB: 400 KB an item; Step Functions: 256 KiB.)"""

MAX_EXECUTION_INPUT_BYTES: Final = 256 * 1024
"""What Step Functions takes (developer guide, "Quotas")."""

OWN_MEMBERS: Final = {
    "function": ("schema", "answers", "client_can", "trace"),
    "workflow": (META_MEMBER,),
}
"""The members of an input that are not arguments, by the kind of tool. State machines read them by
name, so they are never stored in S3."""


def execution_input(
    entry: ToolEntry,
    arguments: dict[str, Any],
    answers: Mapping[str, Any],
    client_can: Iterable[Kind],
    trace: Mapping[str, Any],
) -> dict[str, Any]:
    """The input for a tool's execution.

    `answers` are those to what the tool has asked before it became a task, `client_can` the kinds
    of questions that the client supports, and `trace` is the client's trace context.

    A function tool's input has members of its own. A workflow's input is the arguments, so that its
    author needs to know nothing of MCP. An existing state machine gets the arguments and nothing
    else.
    """
    if entry.kind == "function":
        return {
            "schema": INPUT_SCHEMA_VERSION,
            "arguments": arguments,
            "answers": answers,
            "client_can": sorted(client_can),
            "trace": dict(trace),
        }
    if entry.state_machine_arn is not None:
        return arguments
    about = {"schema": INPUT_SCHEMA_VERSION, **trace}
    if answers:
        about["answers"] = answers
    return {**arguments, META_MEMBER: about}


def encode(value: Any) -> str:
    """JSON text that is the same for the same value: a repeated start must repeat its input."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def with_stored_arguments(text: str, entry: ToolEntry, task_id: str, payloads: PayloadStore) -> str:
    """The input, in which payload pointers stand for arguments that are too large.

    Raises ProtocolError (-32602) for an input that is too large nevertheless.
    """
    if len(text) > MAX_INLINE_INPUT_BYTES and entry.state_machine_arn is None:
        arguments = json.loads(text)
        own = {name: arguments.pop(name) for name in OWN_MEMBERS[entry.kind] if name in arguments}
        budget = max(0, MAX_INLINE_INPUT_BYTES - len(encode(own)))
        stored = payloads.offload(arguments, budget, payload_prefix(entry.name, task_id))
        # State machines read each argument by its name: one pointer cannot stand for all.
        text = encode({**(arguments if pointer_of(stored) else stored), **own})
    if len(text) > MAX_EXECUTION_INPUT_BYTES:
        raise invalid_params(
            f"params exceed the {MAX_EXECUTION_INPUT_BYTES} bytes that an execution takes"
        )
    return text
