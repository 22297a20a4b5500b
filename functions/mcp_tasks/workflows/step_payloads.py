"""What a function tool's runs pass on to each other and to `finish` through Step Functions.

Step Functions carries 256 KiB between two states; what is larger is kept in S3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..payloads.offloading import MAX_OBJECT_BYTES, json_size, json_text
from ..payloads.s3_store import PayloadStore

MAX_INLINE_RESULT_BYTES: Final = 200_000
"""A larger result of a function tool is kept in S3."""
MAX_INLINE_ANSWERS_BYTES: Final = 40_000
"""More answers than these are kept in S3 between two runs of a function tool: its arguments (100
KB) and the answers to what it asks next (100 KB) are carried beside them."""
MAX_STEP_OUTPUT_BYTES: Final = 60_000
"""Of a workflow tool's step. Less than 256 KiB, because a state may combine several outputs; a
state within a Map or a Parallel is given a smaller limit (`infra/state_machine_definition.py`)."""


def all_answers(event: Mapping[str, Any], payloads: PayloadStore, prefix: str) -> dict[str, Any]:
    """All answers that a function tool was given, by key.

    In the worker's event, `earlier_answers` are those that were stored, `answers` those since then.
    """
    parts = [event.get("earlier_answers") or {}, event.get("answers") or {}]
    earlier, since = payloads.resolve(parts, prefix, MAX_OBJECT_BYTES)
    return {**earlier, **since}


def store_answers(
    event: Mapping[str, Any], answers: Mapping[str, Any], payloads: PayloadStore, prefix: str
) -> dict[str, Any]:
    """Store all answers as one object, where those of this run's event are many.

    Returns the member that the next run's event needs for them, if any.
    """
    if json_size(event.get("answers") or {}) <= MAX_INLINE_ANSWERS_BYTES:
        return {}
    return {"earlier_answers": payloads.put(prefix, json_text(answers)).as_json()}


def offload_result(output: dict[str, Any], payloads: PayloadStore, prefix: str) -> dict[str, Any]:
    """What `run_function` returned, with a pointer in the place of a large result.

    The whole result is stored, so that no function has to load it on the way to its client.
    """
    if "result" not in output:
        return output
    text = json_text(output["result"])
    if len(text) <= MAX_INLINE_RESULT_BYTES and json_size(output) <= MAX_INLINE_RESULT_BYTES:
        return output
    return {"result": payloads.put(prefix, text).as_json()}
