"""`make audit` against a service on this machine: what it finds, and that silence is an error."""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

from . import live
from .advisories import Accepted, Snapshot
from .locks import Package, lock_files, locked

HASH = "--hash=sha256:" + "0" * 64
LOCK = """
[[package]]
name = "idna"
version = "3.20"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "pyjwt"
version = "2.3.0"
source = { registry = "https://pypi.org/simple" }
"""
ADVISORY = {
    "id": "X-1",
    "schema_version": "1.6.0",
    "modified": "2026-01-01T00:00:00Z",
    "summary": "Bad\nin two lines",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "PyJWT"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.4.0"}]}],
        }
    ],
}


class Osv(ThreadingHTTPServer):
    """A service that answers as told."""

    status = 200
    queries: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/query"


class Handler(BaseHTTPRequestHandler):
    server: Osv

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.queries.append(query)
        concerns = query["package"] == {"ecosystem": "PyPI", "name": "pyjwt"}
        answer: dict[str, Any] = {"vulns": [ADVISORY]} if concerns else {}
        if concerns and "version" not in query and "page_token" not in query:
            answer = {"vulns": [{**ADVISORY, "id": "X-0"}], "next_page_token": "more"}
        body = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def osv() -> Iterator[Osv]:
    with Osv(("127.0.0.1", 0), Handler) as server:
        server.queries = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.txt"
    file.write_text(f"idna==3.20 \\\n    {HASH}\npyjwt==2.3.0 \\\n    {HASH}\n")
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project of two packages."""
    (tmp_path / "uv.lock").write_text(LOCK)
    return tmp_path


def test_pip_audit_reports_what_the_service_knows(osv: Osv, requirements: Path) -> None:
    assert live.pip_audit(requirements, osv=osv.url) == ["pyjwt 2.3.0: X-1"]
    accepted = Accepted("X-1", "pyjwt", "not used", datetime.date.max)
    assert live.pip_audit(requirements, [accepted], osv.url) == []


def test_every_package_that_is_installed_here_is_asked_about(osv: Osv) -> None:
    """Of the functions, the commands, the tests and the emulator."""
    (found,) = live.uv_audit(ROOT / "uv.lock", osv=osv.url)
    assert found.startswith("pyjwt ")
    asked = {query["package"]["name"] for query in osv.queries}
    assert {"pydantic", "aws-cdk-lib", "pytest", "ministack"} <= asked
    assert asked <= {package.name for package in locked("PyPI")}


def test_a_lock_file_that_uv_cannot_read_is_no_pass(osv: Osv, root: Path) -> None:
    with pytest.raises(live.NotAuditedError, match="version"):
        live.uv_audit(root / "uv.lock", osv=osv.url)


@pytest.mark.parametrize("status", [404, 500])
def test_a_service_that_does_not_know_the_question_is_no_pass(
    osv: Osv, requirements: Path, root: Path, status: int
) -> None:
    osv.status = status
    with pytest.raises(live.NotAuditedError):
        live.pip_audit(requirements, osv=osv.url)
    with pytest.raises(live.NotAuditedError, match=str(status)):
        live.renew(root / "advisories.json", root, osv.url)
    assert not (root / "advisories.json").exists()


def test_a_service_that_cannot_be_reached_is_no_pass(requirements: Path, root: Path) -> None:
    nowhere = "http://127.0.0.1:9/v1/query"
    with pytest.raises(live.NotAuditedError, match=r"127\.0\.0\.1"):
        live.pip_audit(requirements, osv=nowhere)
    with pytest.raises(live.NotAuditedError, match=r"127\.0\.0\.1"):
        live.renew(root / "advisories.json", root, nowhere)


def test_a_requirement_without_a_hash_is_no_pass(osv: Osv, requirements: Path) -> None:
    requirements.write_text("pyjwt==2.15.1\n")
    with pytest.raises(live.NotAuditedError, match="hash"):
        live.pip_audit(requirements, osv=osv.url)


def test_a_renewed_snapshot_holds_every_page_for_every_locked_package(osv: Osv, root: Path) -> None:
    file = root / "advisories.json"
    live.renew(file, root, osv.url)
    snapshot = Snapshot.load(file)
    assert snapshot.sources["PyPI"]["packages"] == ["idna", "pyjwt"]
    assert snapshot.sources["npm"]["packages"] == []
    found = sorted(snapshot.findings([Package("PyPI", "pyjwt", "2.3.0")]))
    assert [str(finding) for finding in found] == ["pyjwt 2.3.0: X-0 Bad", "pyjwt 2.3.0: X-1 Bad"]
    assert snapshot.findings([Package("PyPI", "pyjwt", "2.4.0")]) == set()


def test_the_command_fails_and_names_each_lock_file_that_was_not_audited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(*_: object) -> list[str]:
        raise live.NotAuditedError("nobody answers")

    for name in ("uv_audit", "npm_audit", "renew"):
        monkeypatch.setattr(live, name, unreachable)
    assert live.main() == 1
    printed = capsys.readouterr().out
    for lock in [*lock_files("PyPI"), *lock_files("npm")]:
        assert f"error: {lock.relative_to(ROOT)} was not audited: nobody answers" in printed
    assert "advisories.json stays as it was: nobody answers" in printed
