"""Every event of tests/tools/events runs through its handler, as by `sam local invoke`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.paths import FUNCTIONS
from tests.unit.support.aws import Calls, create_journal
from tests.unit.support.function_events import Invoke, environment, running_task, write_bundle

EVENTS: Final = Path(__file__).with_name("events")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A functions' bundle with the sample tools."""
    return write_bundle(tmp_path, FUNCTIONS / "tools")


@pytest.fixture
def invoke(aws: Calls, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Call a function's handler on an event."""
    return Invoke(monkeypatch, EVENTS, bundle, FUNCTIONS / "tools", environment("simulate_savings"))


@pytest.mark.parametrize("name", ["api-tools-call", "api-resources-read", "api-prompts-get"])
def test_an_api_event_is_answered(invoke: Invoke, name: str) -> None:
    answer = invoke("api", name)
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["result"]["resultType"] == "complete"


def test_an_api_event_is_asked_back(invoke: Invoke) -> None:
    result = json.loads(invoke("api", "api-tools-call-asks")["body"])["result"]
    assert (result["resultType"], list(result["inputRequests"])) == ("input_required", ["answer"])


def test_a_worker_event_runs_the_function_on_with_the_answer(invoke: Invoke) -> None:
    running_task("simulate_savings")
    result = invoke("worker", "worker-function-answered")["result"]
    assert result["structuredContent"]["paid_in"] == 48000


def test_a_worker_event_runs_a_step(invoke: Invoke) -> None:
    running_task("profile_dataset")
    chunks = invoke("worker", "worker-step", TOOL="profile_dataset")
    assert [chunk["columns"] for chunk in chunks] == [["colour", "n"]]


def test_worker_events_run_a_durable_function_up_to_its_map_and_then_one_of_the_maps_lanes(
    invoke: Invoke,
) -> None:
    running_task("publish_dataset")
    durable = {"TOOL": "publish_dataset", "JOURNAL_TABLE": create_journal()}
    output = invoke("worker", "worker-durable-run", **durable)
    assert output["map"] == {"id": "000001", "lanes": [0, 1]}
    assert invoke("worker", "worker-durable-lane", **durable) == {"lane": "ended"}


def test_every_event_is_tested() -> None:
    here = Path(__file__).read_text()
    assert not [file.stem for file in EVENTS.glob("*.json") if f'"{file.stem}"' not in here]
