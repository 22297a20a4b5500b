"""The sample tools, deployed: what `make demo` shows, `make verify`, and a real file."""

from __future__ import annotations

import csv
import secrets
import statistics
import subprocess
import sys
from pathlib import Path

from local.demo.subtask_checks import airports_in_two_files
from local.deployment import LocalStack
from operations.verify.credentials import NoCredentials
from tests.integration.support.aws import client_of
from tests.integration.support.client import Client, accept
from tests.integration.support.verification import not_tried, verified
from tests.paths import ROOT

AIRPORTS = Path(__file__).with_name("airports.csv")


def test_all_checks_of_the_demo_pass(tools_stack: LocalStack) -> None:
    """Every check of `make demo`: none is skipped."""
    done = subprocess.run(
        [sys.executable, "-m", "local.demo", tools_stack.url],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


def test_a_real_file_is_profiled(tools_stack: LocalStack) -> None:
    client, text = Client(tools_stack.url), AIRPORTS.read_text(encoding="utf-8")
    task_id = client.start("profile_dataset", csv=text)
    key = client.until_asked(task_id, "publish")["publish"]
    request = client.get(task_id)["inputRequests"][key]
    assert "3376 rows" in request["params"]["message"]
    client.update(task_id, {key: accept(show_values=True, title="US airports")})
    task = client.end(task_id)

    assert task["status"] == "completed"
    profile = task["result"]["structuredContent"]
    rows = list(csv.DictReader(text.splitlines()))
    assert (profile["title"], profile["rows"]) == ("US airports", len(rows))
    columns = {column["name"]: column for column in profile["columns"]}
    latitudes = [float(row["latitude"]) for row in rows]
    assert columns["latitude"]["minimum"] == min(latitudes)
    assert abs(columns["latitude"]["mean"] - statistics.fmean(latitudes)) < 1e-5
    assert abs(columns["latitude"]["standard_deviation"] - statistics.pstdev(latitudes)) < 1e-5
    assert columns["state"]["distinct"] == len({row["state"] for row in rows})
    assert columns["state"]["most_frequent"][0] == {
        "value": "AK",
        "count": sum(row["state"] == "AK" for row in rows),
    }


def test_a_dataset_that_the_user_does_not_approve_leaves_nothing(tools_stack: LocalStack) -> None:
    """In Parameter Store itself, which the demo sees through a resource."""
    client, name = Client(tools_stack.url), f"airports-{secrets.token_hex(3)}"
    files = airports_in_two_files(AIRPORTS.read_text(encoding="utf-8"))
    task_id = client.start("publish_dataset", name=name, files=files)
    working = client.until(task_id, lambda task: len(task.get("childTaskIds", ())) == 2)
    for child in working["childTaskIds"]:
        key = client.until_asked(child, "publish")["publish"]
        client.update(child, {key: accept(show_values=False)})
    key = client.until_asked(task_id, "answer")["answer"]
    assert parameters(tools_stack, name) == 1
    client.update(task_id, {key: {"action": "decline"}})

    task = client.end(task_id)
    assert task["result"]["isError"] is True
    assert [client.get(child)["status"] for child in task["childTaskIds"]] == ["completed"] * 2
    assert parameters(tools_stack, name) == 0


def parameters(stack: LocalStack, name: str) -> int:
    """How many entries of that name the catalogue has."""
    ssm = client_of(stack.emulator)("ssm")
    return len(ssm.get_parameters(Names=[f"/datasets/{name}"])["Parameters"])


def test_the_samples_are_verified(tools_stack: LocalStack) -> None:
    """`make verify` calls them. The limits are those of the tests, which poll more often than
    anybody may.
    """
    outcomes = verified(tools_stack, client_of(tools_stack.emulator), NoCredentials())
    of_tokens = {"Let pages read the challenge", "Let pages read the metadata", "Refuse strangers"}
    assert not_tried(outcomes) == of_tokens | {"Store a large result", "Throttle polls"}
