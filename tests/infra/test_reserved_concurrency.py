"""Which functions have concurrent executions of their own, and how many."""

from __future__ import annotations

import pytest

from infra.reserved_concurrency import ReservedConcurrency
from infra.response_transfer import BUFFERED
from infra.settings import Settings
from infra.sweep import INTERVAL, TIMEOUT
from mcp_tasks.server.methods.call_quota import MAX_CALL_MS
from tests.infra.assembly import Assembly
from tests.paths import ROOT

OWN = {"Finish": 20, "Publish": 20, "Deliver": 20, "Sweep": 3}


def _reserved(assembly: Assembly) -> dict[str, int]:
    return {
        path.removesuffix("/Function"): function["ReservedConcurrentExecutions"]
        for path, function in assembly.resources("AWS::Lambda::Function").items()
        if "ReservedConcurrentExecutions" in function
    }


def test_workers_and_subscriptions_cannot_take_what_ends_tasks(on_aws: Assembly) -> None:
    assert _reserved(on_aws) == OWN


def test_nor_what_checks_tokens(assemblies: dict[str, Assembly]) -> None:
    """A tenth of the requests a second that the gateway lets through."""
    assert _reserved(assemblies["streaming"]) == OWN | {"Authorizer": 50}


def test_a_deployment_may_reserve_nothing(assemblies: dict[str, Assembly]) -> None:
    """Where the account has nothing to reserve."""
    assert _reserved(assemblies["given key"]) == {}


def test_a_tool_and_a_deployment_limit_workers(fork: Assembly) -> None:
    """The tool's own number counts. Every worker reserves for itself: AWS has no total."""
    workers = {
        path.split("/")[1]: count
        for path, count in _reserved(fork).items()
        if path.startswith("Tools/")
    }
    assert workers == {"close_books": 7, "count.words": 2, "count_words": 7, "report": 7}


def test_no_more_batches_are_handed_on_than_there_are_instances(
    on_aws: Assembly, assemblies: dict[str, Assembly]
) -> None:
    """A batch that finds none comes back only after its visibility timeout. Without a limit, Lambda
    hands on up to 1,250 (developer guide, "Setting maximum concurrency for SQS event sources")."""

    def at_once(assembly: Assembly) -> list[int | None]:
        return [
            mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
            for mapping in assembly.resources("AWS::Lambda::EventSourceMapping").values()
            if "Queue" in str(mapping["EventSourceArn"])
        ]

    assert at_once(on_aws) == [OWN["Deliver"]]
    assert at_once(assemblies["given key"]) == [5], "also where nothing is reserved"


def test_runs_of_the_sweeper_that_overlap_fit() -> None:
    reserved = ReservedConcurrency.of_stack(500).of("sweep")
    assert reserved is not None
    assert reserved > TIMEOUT.to_seconds() / INTERVAL.to_seconds()


@pytest.mark.parametrize(("rate", "authorizers"), [(1, 10), (500, 50), (505, 51), (10_000, 1000)])
def test_the_authorizer_keeps_up_with_the_gateway(rate: int, authorizers: int) -> None:
    assert ReservedConcurrency.of_stack(rate).of("authorize") == authorizers


def test_on_the_emulator_every_function_has_a_number() -> None:
    settings = Settings.from_context({"profile": "local"}.get, ROOT)
    assert settings.reserved_concurrency == ReservedConcurrency(default=10)


def test_a_call_is_counted_for_as_long_as_its_function_may_run() -> None:
    assert BUFFERED.timeout.to_milliseconds() == MAX_CALL_MS
