"""`completion/complete` (server/utilities/completion.mdx)."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from ...protocol.errors import invalid_params
from ...redaction import client_errors_redacted
from ...registry.catalogue import Catalogue, PromptEntry, ResourceEntry
from ..call import Call, Complete, Method, Outcome
from .prompts import text_map

MAX_VALUES: Final = 100
"""In one answer ("Completion Results")."""

MAX_COUNTED: Final = 10_000
"""How many values are counted for `total`; beyond, it is left out."""


def complete_argument(catalogue: Catalogue) -> Method:
    """The method `completion/complete`."""

    def answer(call: Call) -> Outcome:
        entry = _referenced(call.params.get("ref"), catalogue)
        argument = call.params.get("argument")
        if not isinstance(argument, dict):
            raise invalid_params("params.argument must be an object with a name and a value")
        name, typed = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(typed, str):
            raise invalid_params("params.argument.name and .value must be strings")
        context = call.params.get("context", {})
        if not isinstance(context, dict):
            raise invalid_params("params.context must be an object")
        others = text_map(context.get("arguments"), "params.context.arguments")
        completer = entry.load().complete.get(name)
        if completer is None:
            raise invalid_params(f"Unknown argument: {name[:64]}")
        with client_errors_redacted("completion"):
            values = list(islice(completer(typed, others), MAX_COUNTED + 1))
            if not all(isinstance(value, str) for value in values):
                raise TypeError(name)
        completion: dict[str, Any] = {
            "values": values[:MAX_VALUES],
            "hasMore": len(values) > MAX_VALUES,
        }
        if len(values) <= MAX_COUNTED:
            completion["total"] = len(values)
        return Complete({"completion": completion})

    return answer


def _referenced(ref: Any, catalogue: Catalogue) -> PromptEntry | ResourceEntry:
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
