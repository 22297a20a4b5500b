"""The sample tools, deployed: what `make demo` shows, and a real file."""

from __future__ import annotations

import csv
import statistics
import subprocess
import sys
from pathlib import Path

from local.deployment import LocalStack
from tests.integration.support.client import Client, accept
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
