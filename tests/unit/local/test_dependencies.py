"""`make add`: within the bounds of Lambda's runtime, all or nothing, and in uv's own words.

On a small project and a package index of its own on 127.0.0.1, with the uv that is installed.
"""

from __future__ import annotations

import hashlib
import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from local import dependencies
from local.console import CommandError
from tests.paths import ROOT
from tests.wheels import write_wheel

PYPROJECT = """
[project]
name = "project"
version = "1"
requires-python = ">=3.11"
dependencies = []

[dependency-groups]
lambda-runtime = {runtime}
tests = []

[tool.uv]
package = false
default-groups = []
"""


class Index(SimpleHTTPRequestHandler):
    """A folder of wheels as a package index ("Simple repository API")."""

    def do_GET(self) -> None:
        """Answer `/simple/NAME/` with links to its wheels, and all else as a file."""
        if not self.path.startswith("/simple/"):
            super().do_GET()
            return
        module = self.path.split("/")[2].replace("-", "_")
        links = [
            f'<a href="/{wheel.name}#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}">'
            f"{wheel.name}</a>"
            for wheel in Path(self.directory).glob(f"{module}-*.whl")
        ]
        body = "\n".join(links).encode()
        self.send_response(200 if links else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder behind the only package index that uv knows."""
    folder = tmp_path / "wheels"
    write_wheel(folder, "jmespath", "1.1.0")
    write_wheel(folder, "python-dateutil", "2.9.0")
    write_wheel(folder, "python-dateutil", "4.0")
    write_wheel(folder, "urllib3", "2.8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Index, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{server.server_port}/simple/")
        monkeypatch.setenv("UV_NO_CACHE", "1")
        monkeypatch.delenv("UV_LOCKED", raising=False)  # .ci/run sets it
        yield folder
        server.shutdown()
        thread.join()


@pytest.fixture
def project(tmp_path: Path, wheels: Path, uv_on_path: None) -> Path:
    """A locked project with this repository's bounds."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    (tmp_path / "pyproject.toml").write_text(PYPROJECT.format(runtime=groups["lambda-runtime"]))
    dependencies.lock(tmp_path)
    return tmp_path


def _files(project: Path) -> dict[str, str]:
    return {name: (project / name).read_text() for name in dependencies.FILES}


def test_a_package_is_added_at_versions_that_lambdas_boto3_can_use(
    project: Path, wheels: Path
) -> None:
    """As pandas was not: it takes any python-dateutil, and botocore none from 3 on."""
    write_wheel(wheels, "frames", "3.1.2", "python-dateutil>=2.8")
    assert dependencies.add(project, "frames") == ["frames 3.1.2"]
    content = tomllib.loads((project / "pyproject.toml").read_text())
    assert content["project"]["dependencies"] == ["frames>=3.1.2,<4.0.0"]
    locked = {
        package["name"]: package["version"]
        for package in tomllib.loads((project / "uv.lock").read_text())["package"]
    }
    assert (locked["frames"], locked["python-dateutil"]) == ("3.1.2", "2.9.0")


def test_a_package_can_be_added_to_a_group(project: Path, wheels: Path) -> None:
    write_wheel(wheels, "checker", "1.0")
    assert dependencies.add(project, "checker", "tests") == ["checker 1.0"]
    content = tomllib.loads((project / "pyproject.toml").read_text())
    assert content["project"]["dependencies"] == []
    assert content["dependency-groups"]["tests"] == ["checker>=1.0,<2.0"]


def test_a_conflict_is_shown_as_uv_says_it_and_changes_nothing(project: Path, wheels: Path) -> None:
    write_wheel(wheels, "future-frames", "1.0", "python-dateutil>=4")
    before = _files(project)
    with pytest.raises(CommandError) as raised:
        dependencies.add(project, "future-frames")
    said = " ".join(str(raised.value).split())
    assert "all versions of future-frames depend on python-dateutil>=4" in said
    assert "lambda-runtime depends on python-dateutil>=2.1,<3" in said
    assert _files(project) == before


def test_a_package_that_lambda_cannot_have_changes_nothing(project: Path, wheels: Path) -> None:
    """Its only wheel is for another machine, so no bundle could be built."""
    write_wheel(wheels, "native", "1.0", tag="cp313-cp313-macosx_11_0_arm64")
    before = _files(project)
    with pytest.raises(CommandError, match=r"(?s)native.*needs a wheel"):
        dependencies.add(project, "native")
    assert _files(project) == before


def test_an_interrupted_command_changes_nothing(
    project: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(project: Path) -> None:
        raise KeyboardInterrupt

    write_wheel(wheels, "frames", "3.1.2")
    monkeypatch.setattr(dependencies, "_check_wheels", interrupted)
    before = _files(project)
    with pytest.raises(KeyboardInterrupt):
        dependencies.add(project, "frames")
    assert _files(project) == before


def test_locking_again_takes_the_newest_versions(project: Path, wheels: Path) -> None:
    write_wheel(wheels, "urllib3", "2.9")
    assert "urllib3 v2.8 -> v2.9" in dependencies.lock(project)
