"""No arguments cost more than 2 seconds or 300 MB, and no refusal is larger than 8 KB.

The arguments are those that were found to do so, and some of those that `make hostile` makes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final

import pytest

from tests.campaigns.hostile.arguments import (
    BATCH,
    Report,
    call,
    cost_of_body,
    declaration,
    hostile_arguments,
    with_written_schema,
)
from tests.campaigns.hostile.known_arguments import KNOWN
from tests.campaigns.hostile.peak import cost_of

SEED: Final = 20260728
BODIES: Final = 60


@pytest.fixture(scope="module")
def process() -> Iterator[Executor]:
    """A process with little in its memory, as a function has. The garbage collector would go
    through all that pytest holds, and new objects would fit into memory that pytest has freed.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", KNOWN)
def test_what_was_expensive_is_cheap(name: str, process: Executor) -> None:
    report = process.submit(_known, name).result()
    assert report.faults == []
    assert report.refused


def test_a_batch_costs_no_more_than_one_request(process: Executor) -> None:
    assert process.submit(_batch, "a recursive union").result().faults == []


def test_random_arguments_are_cheap(process: Executor) -> None:
    report = process.submit(hostile_arguments, SEED, range(BODIES)).result()
    assert report.faults == []
    assert 0 < report.refused < report.bodies == BODIES


def test_costs_are_measured(process: Executor) -> None:
    """A megabyte is a megabyte, and a process that is killed has no cost."""
    cost = process.submit(cost_of, _megabytes).result()
    assert cost is not None
    assert 60 < cost.peak_megabytes < 200
    assert cost.cpu_seconds > 0
    assert process.submit(cost_of, _nothing).result() is None


def _known(name: str) -> Report:
    """The cost of known arguments, for a tool that has annotations and one that has a schema."""
    known, report = KNOWN[name], Report()
    declared = declaration(known.source)
    body = json.dumps(call(declared, {"a": known.value()}), separators=(",", ":")).encode()
    for tool in (declared, with_written_schema(declared.input_schema)):
        report.add(tool.name, body, cost_of_body(tool, body))
    return report


def _batch(name: str) -> Report:
    """The cost of known arguments in each message of a batch."""
    known, report = KNOWN[name], Report()
    declared = declaration(known.source)
    message = call(declared, {"a": known.value()})
    body = json.dumps([message] * BATCH).encode()
    report.add("batch", body, cost_of_body(declared, body))
    return report


def _megabytes() -> str:
    return str(len(bytes(64 * 1024 * 1024).replace(b"\0", b"1")))


def _nothing() -> str:
    return str(1 // 0)
