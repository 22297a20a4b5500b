"""Which uv runs: the one on the PATH when it is new enough, or the one that uv.lock pins."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import uv
from local.console import CommandError
from tests.paths import ROOT

PINNED = next(
    package["version"]
    for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    if package["name"] == "uv"
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty .local, and an empty folder as the PATH."""
    monkeypatch.setattr(uv, "STATE", tmp_path / "state")
    monkeypatch.setattr(uv, "FOLDER", tmp_path / "state" / "uv")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    uv.program.cache_clear()
    yield tmp_path / "state"
    uv.program.cache_clear()


def _on_path(script: str) -> Path:
    file = Path(os.environ["PATH"]) / "uv"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("version", [PINNED, "99.0.0"])
def test_a_uv_on_the_path_is_used(version: str) -> None:
    file = _on_path(f"echo 'uv {version} (x86_64-unknown-linux-gnu)'")
    assert uv.program() == file


@pytest.mark.parametrize(
    "script", ["echo 'uv 0.4.30'", "echo 'uv: command not found' >&2; exit 127"]
)
def test_a_uv_that_is_too_old_or_does_not_run_is_not_used(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _on_path(script)
    _pip(monkeypatch)
    assert uv.program() == uv.FOLDER / "bin" / "uv"


def test_a_uv_that_was_installed_for_an_earlier_lock_file_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (uv.FOLDER / "bin").mkdir(parents=True)
    _on_path("echo 'uv 0.13.0'").rename(uv.FOLDER / "bin" / "uv")
    assert len(_pip(monkeypatch)) == 0
    program = uv.program()
    assert PINNED in program.read_text()


def _pip(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """Let pip install a script; the result are its commands and requirements, as they come."""
    runs: list[tuple[list[str], str]] = []

    def run(parts: list[str | Path], **_: object) -> str:
        command = [str(part) for part in parts]
        runs.append((command, Path(command[command.index("--requirement") + 1]).read_text()))
        folder = Path(command[command.index("--target") + 1]) / "bin"
        folder.mkdir(parents=True)
        _on_path(f"echo 'uv {PINNED}'").rename(folder / "uv")
        return ""

    monkeypatch.setattr(uv, "run", run)
    return runs


def test_uv_is_installed_from_the_lock_file_and_with_its_hashes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = _pip(monkeypatch)
    assert uv.program().is_file()
    uv.program.cache_clear()
    assert uv.program().is_file()
    ((command, requirements),) = runs
    assert {"--require-hashes", "--only-binary=:all:"} <= set(command)
    pin, *hashes = requirements.split()
    assert pin == f"uv=={PINNED}"
    assert len(hashes) > 1, "one a platform"
    assert all(value.startswith("--hash=sha256:") for value in hashes)
    assert [path.name for path in uv.STATE.iterdir()] == ["uv"]


def test_an_installation_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def pip(command: object, **_: object) -> str:
        raise CommandError("no network")

    monkeypatch.setattr(uv, "run", pip)
    with pytest.raises(CommandError, match="no network"):
        uv.program()
    assert not list(uv.STATE.iterdir())
