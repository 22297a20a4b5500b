"""HTTP/1.1 byte by byte, wrong where a test wants it wrong: no client library would send it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

SECONDS: Final = 40.0
"""How long an answer may take: an emulator that starts workers is slow, and API Gateway would wait
for 29 seconds."""

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request; headers stand as they are, also Host and Content-Length."""

    method: str
    target: str
    headers: Pairs
    body: bytes
    version: str = "HTTP/1.1"
    ends: bool = False
    """Whether the client says that nothing more comes: a body may be shorter than announced."""

    @property
    def data(self) -> bytes:
        """What goes over the wire."""
        lines = [f"{self.method} {self.target} {self.version}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*lines, "\r\n"]).encode("utf-8", "surrogatepass") + self.body

    def without(self, *names: str) -> Sent:
        """The same, without some headers."""
        kept = [(name, value) for name, value in self.headers if name.lower() not in names]
        return replace(self, headers=kept)

    def having(self, *headers: tuple[str, str]) -> Sent:
        """The same, with these headers in place of those of their names."""
        rest = self.without(*(name.lower() for name, _ in headers))
        return replace(rest, headers=[*rest.headers, *headers])


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    status: int
    headers: Pairs
    body: bytes

    @property
    def kind(self) -> str:
        """Its media type."""
        found = [value for name, value in self.headers if name.lower() == "content-type"]
        return found[-1].partition(";")[0].strip().lower() if found else ""


class Hanging(Exception):
    """No answer, and no end of the connection."""


class NoHttp(Exception):
    """An answer, but none in HTTP/1.1."""


def exchange(address: tuple[str, int], sent: Sent) -> Reply | None:
    """Send a request on a connection of its own; None when it is closed without an answer.

    Raises Hanging, NoHttp.
    """
    overdue = time.monotonic() + SECONDS
    with socket.create_connection(address) as connection:
        # Not the socket's own timeout: a stream says now and then that it is alive.
        cutting = threading.Timer(SECONDS, _cut, [connection])
        cutting.start()
        try:
            return _exchange(connection, sent)
        except (http.client.HTTPException, ConnectionError) as error:
            if time.monotonic() >= overdue:
                raise Hanging(f"no end of the answer within {SECONDS:.0f} seconds") from None
            if isinstance(error, ConnectionError):  # RemoteDisconnected is one, too
                return None
            raise NoHttp(f"no HTTP: {error!r}") from None
        finally:
            cutting.cancel()


def _exchange(connection: socket.socket, sent: Sent) -> Reply:
    # The other side may have heard enough, and have answered already.
    with contextlib.suppress(ConnectionError):
        connection.sendall(sent.data)
        if sent.ends:
            connection.shutdown(socket.SHUT_WR)
    answer = http.client.HTTPResponse(connection, method=sent.method)
    answer.begin()
    return Reply(answer.status, answer.getheaders(), answer.read())


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has ended
        connection.shutdown(socket.SHUT_RDWR)
