"""What http.server lacks of HTTP/1.1: chunked bodies, trailers, and a way to end connections."""

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

MAX_LINE_BYTES: Final = 65536
MAX_PIECE_BYTES: Final = 1 << 20


class Server(ThreadingHTTPServer):
    """A server that can end its open connections."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, *arguments: Any) -> None:
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(*arguments)

    def close(self) -> None:
        """Stop listening and end all connections, so that the other sides notice."""
        self.server_close()
        self.shut_down_connections()

    def shut_down_connections(self) -> None:
        """End all connections that are open now."""
        with self._changed:
            for connection in self._connections:
                shut_down(connection)

    def wait_for_connections(self, seconds: float) -> None:
        """Wait until all connections have been read to their end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._connections, seconds)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, so that it can be ended."""
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection."""
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that the other side has ended."""
        if not isinstance(sys.exception(), OSError | EOFError):
            super().handle_error(request, client_address)


def shut_down(connection: socket.socket) -> None:
    """End a connection in both directions."""
    with contextlib.suppress(OSError):  # it has ended already
        connection.shutdown(socket.SHUT_RDWR)


class Body:
    """The body of an HTTP/1.1 request, which http.server does not read.

    Iterating yields the body's pieces as they arrive. Raises ValueError for a malformed body and
    for one whose length is ambiguous (RFC 9112, section 6.3), and EOFError when the connection ends
    within the body.
    """

    def __init__(self, headers: Message, stream: BufferedIOBase) -> None:
        codings = [coding.lower() for coding in headers.get_all("Transfer-Encoding", [])]
        lengths = headers.get_all("Content-Length", [])
        if codings not in ([], ["chunked"]) or (codings and lengths):
            raise ValueError("a body is chunked or has a length, not both")
        if len(set(lengths)) > 1 or not all(re.fullmatch("[0-9]{1,18}", n) for n in lengths):
            raise ValueError("Content-Length is not one number")
        self.chunked = bool(codings)
        self.trailers: dict[str, str] = {}
        """Names are in lower case. Empty until the body has been read to its end."""
        self._length = int(lengths[0]) if lengths else 0
        self._stream = stream
        self._pieces = self._read_chunks() if self.chunked else self._read_length()

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def skip(self) -> None:
        """Read the rest: a client may read the response only after it has sent its body."""
        for _ in self._pieces:
            pass

    def _read_length(self) -> Iterator[bytes]:
        while self._length > 0:
            piece = self._stream.read(min(self._length, MAX_PIECE_BYTES))
            if not piece:
                raise EOFError
            self._length -= len(piece)
            yield piece

    def _read_chunks(self) -> Iterator[bytes]:
        """Yield the chunks' data and keep the trailers (RFC 9112, section 7.1)."""
        while size := self._chunk_size():
            while size:
                piece = self._stream.read(min(size, MAX_PIECE_BYTES))
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
            raise ValueError("a chunk's size is missing or malformed")
        return int(size, 16)

    def _line(self) -> str:
        line = self._stream.readline(MAX_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise EOFError
        return line.decode("latin-1").rstrip("\r\n")
