"""Renew `calls.json` and `evaluations.json` from what the emulator recorded in the last tests of
deployed stacks:

    make test ARGS="tests/integration tests/tools tests/conformance"
    PYTHONPATH=functions .venv/bin/python -m tests.infra.second_opinions.record

What an earlier run has seen is kept, because no run sees all: remove a file to begin anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from infra.state_machine_definition import is_durable
from local.emulator_record import CALLS, EXPRESSIONS, read
from tests.infra.second_opinions.calls import Call, seen
from tests.infra.second_opinions.deployed_definitions import TOOL_FOLDERS, discovered
from tests.paths import EMULATOR_RECORD, PLATFORM_TOOLS, ROOT

HERE: Final = Path(__file__).parent
EVALUATIONS: Final = HERE / "evaluations.json"
EXAMPLES: Final = 3
"""Evaluations that are kept of an expression, as different as they come."""
MAX_CHARACTERS: Final = 4_000
"""Of an evaluation that is kept."""
TEMPORARY: Final = re.compile(r"/[\w./-]*/pytest-\d+/")
"""The temporary folder of a run of the tests."""
FOLDERS: Final = (
    PLATFORM_TOOLS,
    *TOOL_FOLDERS,
    ROOT / "tests" / "integration" / "guarded_tools",
    ROOT / "tests" / "conformance" / "tools",
)


def known_calls() -> list[Call]:
    """What `calls.json` has."""
    return [Call.read(document) for document in _read(HERE / "calls.json")]


def recorded_calls(record: Path) -> list[Call]:
    """What the stacks' roles called. A call that their own policies allow is asked once more of the
    policies of buckets and secrets, which allow nothing: it counts as allowed.
    """
    durable = durable_tools()
    found = {call for entry in read(record / CALLS) if (call := seen(entry, durable))}
    calls = (call for call in found if call.allowed or call.if_allowed() not in found)
    return sorted(calls, key=lambda call: json.dumps(call.as_json()))


def durable_tools() -> set[str]:
    """The tools that take a context, as they are named in logical ids."""
    return {
        "".join(filter(str.isalnum, tool.name))
        for folder in FOLDERS
        for tool in discovered(folder)
        if is_durable(tool)
    }


def examples(evaluations: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Some evaluations of each expression."""
    kept: dict[str, dict[str, dict[str, Any]]] = {}
    for entry in evaluations:
        line = TEMPORARY.sub("/tmp/", json.dumps(entry))
        entry = json.loads(line)
        shapes = kept.setdefault(entry["expression"], {})
        if len(shapes) < EXAMPLES and len(line) <= MAX_CHARACTERS:
            shapes.setdefault(json.dumps(_shape(entry.get("value", entry))), entry)
    for _, shapes in sorted(kept.items()):
        yield from shapes.values()


def _shape(value: Any) -> Any:
    match value:
        case dict():
            return {key: _shape(item) for key, item in value.items()}
        case list():
            return [_shape(item) for item in value[:2]]
        case _:
            return type(value).__name__


def _read(file: Path) -> list[Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else []


def _write(file: Path, entries: Iterable[Any]) -> None:
    lines = ",\n".join(json.dumps(entry, sort_keys=True) for entry in entries)
    file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    calls = {*known_calls(), *recorded_calls(EMULATOR_RECORD)}
    documents = [call.as_json() for call in calls]
    _write(HERE / "calls.json", sorted(documents, key=json.dumps))
    recorded = read(EMULATOR_RECORD / EXPRESSIONS)
    _write(EVALUATIONS, examples([*_read(EVALUATIONS), *recorded]))
