"""Synthesize several apps in one process, because the CDK takes longer to start than for all.

    python -m tests.infra.synthesize <jobs.json> <outcomes.json>

Each job has `out`, a folder for the assembly, `context`, and `accept`: with false, findings of
cdk-nag that `infra` accepts are recorded and not accepted. Each outcome has `error`, the message of
what the app raised, and `accepted`, pairs of construct path and finding.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from aws_cdk import Acknowledgment, App

from infra import cdk_nag_findings as nag
from infra.app import synthesize


class Recorder:
    """In place of `aws_cdk.Validations`: notes what is accepted, and accepts nothing."""

    def __init__(self) -> None:
        self.accepted: list[tuple[str, str]] = []
        self._path = ""

    def of(self, construct: Any) -> Recorder:
        """The construct to accept on."""
        self._path = construct.node.path
        return self

    def acknowledge(self, acknowledgment: Acknowledgment) -> None:
        """Note it."""
        self.accepted.append((self._path, acknowledgment.id))


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Synthesize one app."""
    recorder = Recorder()
    accepting = nullcontext() if job["accept"] else patch.object(nag, "Validations", recorder)
    error = None
    try:
        with accepting:
            synthesize(App(outdir=job["out"], context=job["context"]))
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    return {"error": error, "accepted": recorder.accepted}


if __name__ == "__main__":
    jobs, outcomes = map(Path, sys.argv[1:])
    outcomes.write_text(json.dumps([run(job) for job in json.loads(jobs.read_text())]))
