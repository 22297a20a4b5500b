"""Stopping an emulator ends its workers, too; its keys are random, and its owner's alone."""

from __future__ import annotations

import json
import os
import select
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from local import emulator
from local.emulator import Emulator, Keys

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


def test_keys_are_random_and_not_shown() -> None:
    keys = [Keys.random() for _ in range(100)]
    assert len({key.access_key_id for key in keys}) == 100
    assert len({key.secret_access_key for key in keys}) == 100
    running = Emulator("test", 1, 4566, keys[0])
    assert keys[0].secret_access_key not in f"{running} {keys[0]}"
    assert running.environment["AWS_ACCESS_KEY_ID"] == keys[0].access_key_id
    assert running.environment["AWS_SECRET_ACCESS_KEY"] == keys[0].secret_access_key


def test_only_the_owner_may_read_the_state_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever the umask is, and whatever mode an earlier run's file has."""
    monkeypatch.setattr(emulator, "STATE", tmp_path)
    monkeypatch.setattr(Emulator, "alive", lambda _: True)
    file = tmp_path / "test" / "emulator.json"
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o644)
    written = Emulator("test", 1, 4566, Keys.random())
    umask = os.umask(0)
    try:
        emulator._write_state(written)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert emulator.find("test") == written


def test_an_emulator_that_takes_known_keys_is_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An earlier version of the template has started it."""
    monkeypatch.setattr(emulator, "STATE", tmp_path)
    stopped: list[int] = []
    monkeypatch.setattr(Emulator, "stop", lambda running: stopped.append(running.pid))
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "emulator.json").write_text(json.dumps({"pid": 7, "port": 4566}))
    assert emulator.find("test") is None
    assert stopped == [7]
