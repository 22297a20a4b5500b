"""The instances of a function: started when needed, used again, killed when time runs out."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import IncompleteRead
from pathlib import Path

import pytest

from local.gateway import Gateway
from local.gateway.invocation import FunctionError
from local.gateway.lambda_instances import LambdaFunction
from tests.unit.local.gateway.small_function import (
    BROKEN,
    bundle,
    do,
    is_error,
    runs,
    sent,
    serving,
    until,
)


def test_an_instance_that_runs_out_of_time_is_killed_and_replaced(function: LambdaFunction) -> None:
    with serving(replace(function, timeout_seconds=0.5)) as gateway:
        with do(gateway, "time") as response:
            assert 0 < int(response.read()) <= 500
        with do(gateway, "hang") as response:
            pid = int(response.headers["X-Pid"])
            with pytest.raises(IncompleteRead):
                response.read()
        until(lambda: not runs(pid))
        with sent(gateway) as response:
            assert response.status == 200


def test_the_instance_of_a_client_that_disconnects_is_killed(gateway: Gateway) -> None:
    with do(gateway, "hang") as response:
        pid = int(response.headers["X-Pid"])
        assert response.read1() == b"so far"
        assert pid in gateway.instances.process_ids
    until(lambda: pid not in gateway.instances.process_ids)
    assert not runs(pid)


def test_an_instance_answers_one_request_at_a_time_and_one_is_spare(
    function: LambdaFunction, tmp_path: Path
) -> None:
    file = tmp_path / "go"
    with serving(function) as gateway, contextlib.ExitStack() as stack:
        asked = [stack.enter_context(do(gateway, "stream", wait_for=[str(file)])) for _ in range(4)]
        pids = {int(response.headers["X-Pid"]) for response in asked}
        assert len(pids) == 4
        until(lambda: len(gateway.instances.process_ids) == 5)
        file.touch()
        assert {response.read() for response in asked} == {str(file).encode()}
        with sent(gateway) as response:
            assert int(response.headers["X-Pid"]) in gateway.instances.process_ids


def test_a_burst_is_answered_by_more_instances_than_start_at_a_time(
    function: LambdaFunction,
) -> None:
    with serving(function) as gateway, ThreadPoolExecutor(12) as pool:

        def ask(_: int) -> bytes:
            with do(gateway, "stream", wait_for=["/"]) as response:
                return response.read()

        assert set(pool.map(ask, range(40))) == {b"/"}


def test_clients_that_disconnect_early_do_not_disturb_the_others(function: LambdaFunction) -> None:
    """An instance may ask for its next event just before it is killed."""
    with serving(function) as gateway, ThreadPoolExecutor(12) as pool:

        def ask(number: int) -> bytes:
            with do(gateway, "stream", wait_for=["/"]) as response:
                return response.read() if number % 2 else b"/"

        assert set(pool.map(ask, range(60))) == {b"/"}


def test_more_requests_than_instances_are_throttled(function: LambdaFunction) -> None:
    with serving(function, max_instances=1) as gateway, do(gateway, "hang") as hanging:
        assert hanging.status == 200
        with sent(gateway) as response:
            is_error(response, 429, -32603)


def test_a_function_that_does_not_start_fails_each_request(tmp_path: Path) -> None:
    with serving(bundle(tmp_path / "code", BROKEN)) as gateway:
        with pytest.raises(FunctionError, match="ImportError"):
            gateway.instances.wait_until_warm(10)
        for _ in range(2):
            with sent(gateway) as response:
                is_error(response, 502, -32603)


def test_an_instance_has_the_functions_environment_and_not_the_gateways(
    gateway: Gateway, function: LambdaFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    with do(gateway, "environment") as response:
        variables = json.load(response)
    assert function.environment.items() <= variables.items()
    assert variables["AWS_LAMBDA_FUNCTION_NAME"] == function.name
    assert variables["LAMBDA_TASK_ROOT"] == str(function.bundle)
    assert "AWS_PROFILE" not in variables
    assert "AWS_DEFAULT_REGION" not in variables  # this test's own, set in every unit test


def test_no_instance_runs_after_the_gateway_is_closed(function: LambdaFunction) -> None:
    with serving(function) as gateway, do(gateway, "hang"):
        processes = gateway.instances.process_ids
        gateway.close()
    assert len(processes) >= 2
    assert not any(map(runs, processes))
