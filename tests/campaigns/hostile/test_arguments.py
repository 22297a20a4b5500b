"""No arguments cost more than 2 seconds or 300 MB, and no refusal is larger than 8 KB.

The arguments are those that were found to do so, and some of those that `make hostile` makes.
"""

from __future__ import annotations

import json
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
from tests.campaigns.hostile.known_arguments import KNOWN, Known
from tests.campaigns.hostile.peak import cost_of

SEED: Final = 20260728
BODIES: Final = 60


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_what_was_expensive_is_cheap(known: Known) -> None:
    report, declared = Report(), declaration(known.source)
    body = json.dumps(call(declared, {"a": known.value()}), separators=(",", ":")).encode()
    for tool in (declared, with_written_schema(declared.input_schema)):
        report.add(tool.name, body, cost_of_body(tool, body))
    assert report.faults == []
    assert report.refused


def test_a_batch_costs_no_more_than_one_request() -> None:
    known = KNOWN["a recursive union"]
    declared = declaration(known.source)
    report, message = Report(), call(declared, {"a": known.value()})
    body = json.dumps([message] * BATCH).encode()
    report.add("batch", body, cost_of_body(declared, body))
    assert report.faults == []


def test_random_arguments_are_cheap() -> None:
    report = hostile_arguments(SEED, range(BODIES))
    assert report.faults == []
    assert 0 < report.refused < report.bodies == BODIES


def test_costs_are_measured() -> None:
    """A megabyte is a megabyte, and a process that is killed has no cost."""
    cost = cost_of(lambda: str(len(bytes(64 * 1024 * 1024).replace(b"\0", b"1"))))
    assert cost is not None
    assert 60 < cost.peak_megabytes < 200
    assert cost.cpu_seconds > 0
    assert cost_of(lambda: str(1 // 0)) is None
