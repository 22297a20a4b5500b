"""The gateway of `make up streaming=true` as a process in the background."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from local import gateway_process
from local.console import CommandError
from local.deployment import LocalStack
from local.emulator import Emulator
from tests.unit.local.gateway.small_function import runs

BACKGROUND = """
import signal, sys
from pathlib import Path

if not Path({state!r}, "fine").exists():
    sys.exit("what went wrong")
port = int(sys.argv[sys.argv.index("--port") + 1]) or 8765
print(f"http://127.0.0.1:{{port}}/v1/mcp", flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.pause()
"""


def test_up_starts_a_gateway_and_down_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second `up` replaces the gateway at the same URL."""
    (tmp_path / "background_gateway.py").write_text(BACKGROUND.format(state=str(tmp_path)))
    (tmp_path / "up").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(gateway_process, "MODULE", "background_gateway")
    monkeypatch.setattr(gateway_process, "STATE", tmp_path)
    monkeypatch.setattr(gateway_process, "python", lambda: Path(sys.executable))
    stack = LocalStack(Emulator("up", 1, 4566), "mcp-tasks", {})
    with pytest.raises(CommandError, match="what went wrong"):
        gateway_process.start(stack)
    assert gateway_process.find("up") is None
    (tmp_path / "fine").touch()
    first = gateway_process.start(stack)
    assert gateway_process.find("up") == first
    second = gateway_process.start(stack)
    assert second.url == first.url == "http://127.0.0.1:8765/v1/mcp"
    assert not runs(first.pid)
    second.stop()
    assert gateway_process.find("up") is None
    assert not runs(second.pid)
