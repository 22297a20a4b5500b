"""Stopping an emulator ends its workers, too."""

from __future__ import annotations

import select
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from local import emulator
from local.emulator import Emulator

WORKER: Final = "print(flush=True); import time; time.sleep(60)"
PROGRAM: Final = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORKER!r}])"


def test_stopping_an_emulator_ends_its_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Even a worker that does not notice the emulator's end."""
    monkeypatch.setattr(emulator, "STATE", tmp_path)
    (tmp_path / "test").mkdir()
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n", "the worker has started"
        monkeypatch.setitem(emulator._CHILDREN, process.pid, process)
        Emulator("test", process.pid, 1).stop()
        # The pipe ends when no process can write to it any more.
        ended, _, _ = select.select([process.stdout], [], [], 10)
        assert ended
        assert process.stdout.read() == b""
