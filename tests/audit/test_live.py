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
from .locks import Package, lock_files

HASH = "--hash=sha256:" + "0" * 64
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
def lock(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.txt"
    file.write_text(f"idna==3.20 \\\n    {HASH}\npyjwt==2.3.0 \\\n    {HASH}\n")
    return file


def test_pip_audit_reports_what_the_service_knows(osv: Osv, lock: Path) -> None:
    assert live.pip_audit(lock, osv=osv.url) == ["pyjwt 2.3.0: X-1"]
    accepted = Accepted("X-1", "pyjwt", "not used", datetime.date.max)
    assert live.pip_audit(lock, [accepted], osv.url) == []


@pytest.mark.parametrize("status", [404, 500])
def test_a_service_that_does_not_know_the_question_is_no_pass(
    osv: Osv, lock: Path, status: int
) -> None:
    osv.status = status
    with pytest.raises(live.NotAuditedError):
        live.pip_audit(lock, osv=osv.url)
    with pytest.raises(live.NotAuditedError, match=str(status)):
        live.renew(lock.parent / "advisories.json", lock.parent, osv.url)
    assert not (lock.parent / "advisories.json").exists()


def test_a_service_that_cannot_be_reached_is_no_pass(lock: Path) -> None:
    nowhere = "http://127.0.0.1:9/v1/query"
    with pytest.raises(live.NotAuditedError, match=r"127\.0\.0\.1"):
        live.pip_audit(lock, osv=nowhere)
    with pytest.raises(live.NotAuditedError, match=r"127\.0\.0\.1"):
        live.renew(lock.parent / "advisories.json", lock.parent, nowhere)


def test_a_lock_file_without_hashes_is_no_pass(osv: Osv, lock: Path) -> None:
    lock.write_text("pyjwt==2.15.1\n")
    with pytest.raises(live.NotAuditedError, match="hash"):
        live.pip_audit(lock, osv=osv.url)


def test_a_renewed_snapshot_holds_every_page_for_every_locked_package(osv: Osv, lock: Path) -> None:
    file = lock.parent / "advisories.json"
    live.renew(file, lock.parent, osv.url)
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

    for name in ("pip_audit", "npm_audit", "renew"):
        monkeypatch.setattr(live, name, unreachable)
    assert live.main() == 1
    printed = capsys.readouterr().out
    for lock in [*lock_files("PyPI"), *lock_files("npm")]:
        assert f"error: {lock.relative_to(ROOT)} was not audited: nobody answers" in printed
    assert "advisories.json stays as it was: nobody answers" in printed
