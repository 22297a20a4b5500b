"""What http.server leaves out of HTTP/1.1: bodies in chunks, trailers, and an end to connections.

Standard library only.
"""

from __future__ import annotations

import contextlib
import re
import socket
import sys
import threading
from collections.abc import Iterator
from email.message import Message
from http.server import ThreadingHTTPServer
from io import BufferedIOBase
from typing import Any, Final

MAX_LINE: Final = 65536
MAX_PIECE: Final = 1 << 20


class Server(ThreadingHTTPServer):
    """A server that can cut the connections that it has."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *arguments: Any) -> None:
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(*arguments)

    def close(self) -> None:
        """Stop listening, and cut what is connected: the other sides must notice the end."""
        self.server_close()
        self.cut_connections()

    def cut_connections(self) -> None:
        """End what is connected now."""
        with self._changed:
            for connection in self._connections:
                cut(connection)

    def wait_for_connections(self, seconds: float) -> None:
        """Wait until all have been read to their end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._connections, seconds)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Keep the connection in mind."""
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget it."""
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that the other side ended is no error of ours."""
        if not isinstance(sys.exception(), OSError | EOFError):
            super().handle_error(request, client_address)


def cut(connection: socket.socket) -> None:
    """End a connection on both sides."""
    with contextlib.suppress(OSError):  # it has ended
        connection.shutdown(socket.SHUT_RDWR)


class Body:
    """The body of an HTTP/1.1 request, which http.server leaves to its users.

    Iterating gives the pieces as they arrive. Raises ValueError for a body that is no HTTP, or
    whose end two readers could find in two places (RFC 9112, section 6.3), and EOFError for one
    that breaks off.
    """

    def __init__(self, headers: Message, stream: BufferedIOBase) -> None:
        codings = [coding.lower() for coding in headers.get_all("Transfer-Encoding", [])]
        lengths = headers.get_all("Content-Length", [])
        if codings not in ([], ["chunked"]) or (codings and lengths):
            raise ValueError("a body is chunked, or has a length")
        if len(set(lengths)) > 1 or not all(re.fullmatch("[0-9]{1,18}", n) for n in lengths):
            raise ValueError("a body has one length")
        self.chunked = bool(codings)
        self.trailers: dict[str, str] = {}
        """Their names in lower case; known when all has been read."""
        self._length = int(lengths[0]) if lengths else 0
        self._stream = stream
        self._pieces = self._read_chunks() if self.chunked else self._read_length()

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def skip(self) -> None:
        """Read the rest, so that the other side gets to read the answer."""
        for _ in self._pieces:
            pass

    def _read_length(self) -> Iterator[bytes]:
        while self._length > 0:
            piece = self._stream.read(min(self._length, MAX_PIECE))
            if not piece:
                raise EOFError
            self._length -= len(piece)
            yield piece

    def _read_chunks(self) -> Iterator[bytes]:
        """RFC 9112, section 7.1."""
        while size := self._chunk_size():
            while size:
                piece = self._stream.read(min(size, MAX_PIECE))
                if not piece:
                    raise EOFError
                size -= len(piece)
                yield piece
            if self._line():
                raise ValueError("a chunk is longer than its size")
        while line := self._line():
            name, _, value = line.partition(":")
            self.trailers[name.strip().lower()] = value.strip()

    def _chunk_size(self) -> int:
        size = self._line().partition(";")[0].strip()
        if not re.fullmatch("[0-9A-Fa-f]{1,8}", size):
            raise ValueError("a chunk has no size")
        return int(size, 16)

    def _line(self) -> str:
        line = self._stream.readline(MAX_LINE)
        if not line.endswith(b"\n"):
            raise EOFError
        return line.decode("latin-1").rstrip("\r\n")
