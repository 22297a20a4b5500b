"""`python -m local.gateway`: the URL that it prints, and its end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local.deployment import stack_name
from local.gateway.lambda_instances import LambdaFunction
from tests.paths import ROOT
from tests.unit.local.gateway.small_function import runs, until

MAIN = """
import sys
from pathlib import Path, PosixPath
from local import deployment, emulator
from local.gateway import DeployedApi
from local.gateway.__main__ import main
from local.gateway.lambda_instances import InstancePool, LambdaFunction
from local.gateway.rest_api import RestApi

emulator.find = lambda name: emulator.Emulator(name, 1, 1)
deployment.STATE = Path({state!r})
DeployedApi.read = lambda stack, aws: DeployedApi(RestApi("a1b2", {{}}, {{}}), {function!r})
wait_until_warm = InstancePool.wait_until_warm
def wait_and_print(pool, seconds):
    wait_until_warm(pool, seconds)
    print(*pool.process_ids, flush=True)
InstancePool.wait_until_warm = wait_and_print
sys.exit(main())
"""


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL])
def test_instances_end_with_the_gateway(
    function: LambdaFunction, tmp_path: Path, ended_by: signal.Signals
) -> None:
    """Instances of a killed gateway notice that their Runtime API is gone."""
    outputs = tmp_path / "up" / stack_name() / "outputs.json"
    outputs.parent.mkdir(parents=True)
    outputs.write_text(json.dumps({stack_name(): {}}))
    program = MAIN.format(state=str(tmp_path), function=function)
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(ended_by)
    assert process.returncode == (0 if ended_by == signal.SIGTERM else -ended_by)
    assert len(pids) >= 2
    until(lambda: not any(map(runs, pids)))
