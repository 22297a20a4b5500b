"""A real browser that opens a page, and a hop that serves it and notes what the browser sends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from local.http_server import Body, Server

ATTACKS: Final = Path(__file__).with_name("attacks.html")
ALLOWED_PAGE: Final = Path(__file__).with_name("allowed_page.html")
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome")
EVIL: Final = "evil.example"
"""A name of the attacker's. The browser resolves it to this machine, as after a DNS rebinding."""
PAGE_SECONDS: Final = 60
OWN_PATHS: Final = ("/page", "/report", "/favicon.ico")
"""The paths that the hop serves itself; it passes all others on."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as the browser sent it, and the status that it got."""

    attack: str
    method: str
    host: str
    origin: str | None
    site: str | None
    """The value of `Sec-Fetch-Site`."""
    status: int
    body: bytes
    cors: str | None
    """The value of `Access-Control-Allow-Origin` in the response."""


class Hop(Server):
    """A port of this machine that serves a page and passes all else to the emulator.

    To the browser, the emulator and, under the name EVIL, the attacker's server are at this port.
    """

    def __init__(self, port: int, page: Path) -> None:
        self.emulator_port = port
        self.page = page
        self.sent: list[Sent] = []
        self.report: dict[str, str] = {}
        """What the page's script saw of each attack: a status, or how it failed."""
        self.reported = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def port(self) -> int:
        """The port of 127.0.0.1."""
        return self.server_port


@contextmanager
def hop(port: int, page: Path = ATTACKS) -> Iterator[Hop]:
    """Start a hop to the emulator on a port, and stop it."""
    with Hop(port, page) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()
            running.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hop

    def log_message(self, *_: object) -> None:
        """Write no access log: the hop notes the requests."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._exchange
        raise AttributeError(name)

    def _exchange(self) -> None:
        body = b"".join(Body(self.headers, self.rfile))
        url = urlsplit(self.path)
        if url.path == "/page":
            self._answer(200, {"Content-Type": "text/html"}, self.server.page.read_bytes())
        elif url.path in OWN_PATHS:
            self._answer(204, {}, b"")
            if url.path == "/report":
                self.server.report = json.loads(body)
                self.server.reported.set()
        else:
            self._pass_on(body)

    def _pass_on(self, body: bytes) -> None:
        connection = HTTPConnection("127.0.0.1", self.server.emulator_port, timeout=30)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "connection" or "upgrade" in value.lower():
                connection.putheader(name, value)
        connection.endheaders(body or None)
        response = connection.getresponse()
        answer = b"" if response.status == 101 else response.read()
        headers = dict(response.getheaders())
        attack = parse_qs(urlsplit(self.path).query).get("attack", [self.path])[0]
        self.server.sent.append(
            Sent(
                attack,
                self.command,
                self.headers["Host"],
                self.headers["Origin"],
                self.headers["Sec-Fetch-Site"],
                response.status,
                answer,
                headers.get("Access-Control-Allow-Origin"),
            )
        )
        connection.close()
        self._answer(response.status, headers, answer)

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def find_program() -> str | None:
    """The path of a Chromium; None where none is installed."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


def visit(program: str, url: str, serving: Hop, folder: Path) -> dict[str, str]:
    """Open the page at a URL until its script has reported; returns the report."""
    options = [
        "--headless",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-dev-shm-usage",
        "--disable-sync",
        "--no-first-run",
        f"--user-data-dir={folder}",
        "--host-resolver-rules=MAP *.example 127.0.0.1, MAP * ~NOTFOUND, "
        "EXCLUDE 127.0.0.1, EXCLUDE localhost",
    ]
    if os.geteuid() == 0:  # Chromium does not start its sandbox as root
        options.append("--no-sandbox")
    serving.reported.clear()
    log = folder.with_suffix(".log")
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [program, *options, url],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HOME": str(folder)},
        ) as browser,
    ):
        try:
            reported = serving.reported.wait(PAGE_SECONDS)
        finally:
            browser.terminate()
    assert reported, f"the page did not report; {program} said:\n{log.read_text(errors='replace')}"
    return serving.report
