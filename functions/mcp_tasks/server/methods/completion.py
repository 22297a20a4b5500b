"""`completion/complete` (server/utilities/completion.mdx)."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from aws_lambda_powertools import Logger

from ...protocol.errors import invalid_params
from ...redaction import client_errors_redacted
from ...registry.catalogue import Catalogue, PromptEntry, ResourceEntry
from ..call import Call, Complete, Method, Outcome
from .call_quota import CallQuota
from .prompts import string_map

logger = Logger()

MAX_VALUES: Final = 100
"""In one response ("Completion Results")."""

MAX_COUNTED_VALUES: Final = 10_000
"""`total` counts this many values. With more values, it is left out."""


def complete_argument(catalogue: Catalogue, call_quota: CallQuota) -> Method:
    """The method `completion/complete`."""

    def complete(call: Call) -> Outcome:
        entry = _referenced(call.params.get("ref"), catalogue)
        kind = "prompt" if isinstance(entry, PromptEntry) else "resource"
        logger.append_keys(**{kind: entry.name})
        argument = call.params.get("argument")
        if not isinstance(argument, dict):
            raise invalid_params("params.argument must be an object with a name and a value")
        name, value = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(value, str):
            raise invalid_params("params.argument.name and .value must be strings")
        context = call.params.get("context", {})
        if not isinstance(context, dict):
            raise invalid_params("params.context must be an object")
        others = string_map(context.get("arguments"), "params.context.arguments")
        completer = entry.load().complete.get(name)
        if completer is None:
            raise invalid_params(f"Unknown argument: {name[:64]}")
        # Not at the top: it imports pydantic, which the functions that answer polls do not load.
        from ...registry.decorated_function import finished

        with call_quota.hold(call), client_errors_redacted("completion"):
            values = list(islice(finished(completer(value, others)), MAX_COUNTED_VALUES + 1))
            if not all(isinstance(each, str) for each in values):
                raise TypeError(name)
        completion: dict[str, Any] = {
            "values": values[:MAX_VALUES],
            "hasMore": len(values) > MAX_VALUES,
        }
        if len(values) <= MAX_COUNTED_VALUES:
            completion["total"] = len(values)
        return Complete({"completion": completion})

    return complete


def _referenced(ref: Any, catalogue: Catalogue) -> PromptEntry | ResourceEntry:
    """The prompt or resource template of a `ref`. Raises ProtocolError (-32602)."""
    entry: PromptEntry | ResourceEntry | None = None
    match ref:
        case {"type": "ref/prompt", "name": str(name)}:
            entry = catalogue.prompts.get(name)
        case {"type": "ref/resource", "uri": str(uri)}:
            entry = catalogue.resources.get(uri)
        case _:
            raise invalid_params("params.ref must be a ref/prompt with a name, or a ref/resource")
    if entry is None:
        raise invalid_params("params.ref names no prompt or resource template of this server")
    return entry
