"""`make preflight` finds in a synthesized template what the stack lets its callers ask."""

from __future__ import annotations

from mcp_tasks.limits import Limits
from operations.preflight.stack_load import StackLoad
from tests.infra.assembly import Assembly


def test_the_stack_s_own_numbers_are_found(on_aws: Assembly) -> None:
    assert StackLoad.read(on_aws.template) == StackLoad(
        rate=500, burst=1000, limits=Limits(), streams=False, customer_key=False
    )


def test_those_that_an_operator_chose_are_found(fork: Assembly) -> None:
    load = StackLoad.read(fork.template)
    assert (load.rate, load.burst, load.limits.max_open_tasks) == (50, 60, 7)


def test_streams_and_a_customer_s_key_are_found(
    on_aws: Assembly, assemblies: dict[str, Assembly]
) -> None:
    assert StackLoad.read(assemblies["streaming"].template).streams
    assert not StackLoad.read(on_aws.template).streams
    assert StackLoad.read(assemblies["given key"].template).customer_key
