"""The campaign of `make chaos` with a few tasks: calls to AWS fail, functions are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.deployment import LocalStack
from tests.campaigns.chaos.evidence import Evidence
from tests.campaigns.chaos.run import campaign
from tests.integration.support.aws import functions, listed, variables
from tests.integration.support.stacks import Stacks

TASKS = 25
EXPIRING = frozenset({"outlive", "unheard", "lapses"})
"""Kinds whose tasks take minutes to expire."""


@pytest.fixture(scope="module")
def chaotic(stacks: Stacks, aws: Any) -> Iterator[LocalStack]:
    """A stack of its own: its functions call AWS through a proxy that ends with the test."""
    stack: LocalStack = stacks["chaotic"]
    yield stack
    scheduler = aws("scheduler")
    for schedule in list(listed(scheduler, "list_schedules", "Schedules", NamePrefix=stack.name)):
        scheduler.delete_schedule(Name=schedule["Name"], GroupName=schedule["GroupName"])


@pytest.mark.usefixtures("all_deployed")
def test_nothing_is_lost_and_nothing_happens_twice_whatever_fails(
    chaotic: LocalStack, aws: Any, tmp_path: Path
) -> None:
    """The test invokes the sweeper and moves reconcile times, as if minutes had passed."""
    environments = {
        name: variables(function) for name, function in functions(chaotic, aws("lambda")).items()
    }
    evidence = Evidence(chaotic, aws)
    (sweeper,) = (name for name in environments if "-SweepFunction" in name)
    (callers,) = {each["CALLERS_TABLE"] for each in environments.values() if "CELL" in each}

    def sweep() -> None:
        evidence.hurry(callers)
        aws("lambda").invoke(FunctionName=sweeper, Payload=b"{}")

    outcome = campaign(
        chaotic,
        aws,
        tmp_path,
        tasks=TASKS,
        seed=6,
        faulty_seconds=15,
        settle_seconds=120,
        clients=4,
        without=EXPIRING,
        sweep=sweep,
    )
    assert outcome.faults.counts.total() >= TASKS
    assert outcome.killed > 0
    assert outcome.verdict.acknowledged == TASKS
    assert outcome.verdict.lost == {}, outcome.stories
    assert outcome.verdict.twice == {}, outcome.stories
    assert outcome.settled_seconds is not None
    assert outcome.quiet_seconds is not None
