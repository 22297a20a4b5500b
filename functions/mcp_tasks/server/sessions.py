"""Sessions of the revisions that begin with a handshake (2025-11-25 basic/transports.mdx, "Session
Management").

The session id is sealed, and holds what `initialize` said: any instance of the function knows it
without a read. What the session table keeps besides costs one read. `notifications`, `ping` and a
poll need nothing of it, and read nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from aws_lambda_powertools import Logger

from ..protocol.capabilities import askable
from ..protocol.errors import ErrorCode, ProtocolError
from ..sessions.session_table import SessionEnded, SessionState, SessionTable
from ..tasks.questions import Kind
from ..tasks.task import now_ms
from .sealed import Seal, Unsealable

logger = Logger()

HEADER: Final = "Mcp-Session-Id"

LIFETIME_MS: Final = 30 * 24 * 3600 * 1000
"""How long a session id is good. Its client then gets HTTP 404, and begins another session."""

QUESTIONS_IN_CONTENT: Final = "mcp-tasks/questionsInContent"
"""A member of `capabilities.experimental`: the client takes questions as content blocks of a result
("MRTR and Tasks", option two)."""

MAX_CLIENT_NAME_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class Session:
    """What a session's id says."""

    key: str
    """128 random bits, by which the table and the ids of tasks tell sessions apart."""
    version: str
    """The protocol revision that was negotiated."""
    client: str
    """The name of the client, as it calls itself."""
    client_can: frozenset[Kind]
    """The kinds of questions that the client can be asked."""
    expires_at: int
    """Milliseconds since the epoch."""
    asked_in_content: bool = False
    """Whether the client takes a task's questions as the content of `tasks/result`
    (QUESTIONS_IN_CONTENT)."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Makes and reads session ids."""

    seal: Seal
    table: SessionTable

    def begin(self, version: str, params: Mapping[str, Any], principal: str) -> str:
        """The id of a new session, which is good for one principal; `params` of `initialize`."""
        client = params.get("clientInfo")
        name = client.get("name") if isinstance(client, dict) else None
        said = {
            "key": secrets.token_hex(16),
            "version": version,
            "client": str(name or "")[:MAX_CLIENT_NAME_CHARACTERS],
            "can": sorted(askable(params["capabilities"])),
            "inContent": _asked_in_content(params["capabilities"]),
        }
        return self.seal.seal(said, principal, now_ms() + LIFETIME_MS)

    def open(self, session_id: str, principal: str) -> Session:
        """What a session id says, without a read.

        Raises SessionNotFound (HTTP 404) for one that this server did not make for the principal,
        or that has expired.
        """
        try:
            said, expires_at = self.seal.open(session_id, principal, now_ms())
        except Unsealable:
            raise SessionNotFound from None
        can = frozenset(map(Kind, said["can"]))
        in_content = said.get("inContent", False)
        return Session(said["key"], said["version"], said["client"], can, expires_at, in_content)

    def state(self, session: Session) -> SessionState:
        """What is remembered of a session. Raises SessionNotFound for one that has ended."""
        with _still_there():
            return self.table.read(session.key)

    def end(self, session: Session) -> None:
        """End a session. Raises SessionNotFound for one that has ended."""
        with _still_there():
            self.table.end(session.key, session.expires_at)

    def set_level(self, session: Session, level: str) -> None:
        """Remember a log level. Raises SessionNotFound."""
        with _still_there():
            self.table.set_level(session.key, session.expires_at, level)

    def mark_resumes(self, session: Session) -> None:
        """Remember that the session's client resumes streams. Raises SessionNotFound."""
        with _still_there():
            self.table.mark_resumes(session.key, session.expires_at)

    def add_task(self, session: Session, task_id: str, until: int) -> None:
        """Remember a task that the client has asked for. Raises SessionNotFound."""
        with _still_there():
            if not self.table.add_task(session.key, session.expires_at, task_id, until):
                logger.warning("The session has too many tasks to remember", task_id=task_id)

    def remove_task(self, session: Session, task_id: str) -> None:
        """Remember a task no longer, which has ended."""
        self.table.remove_task(session.key, task_id)

    def mark_listening(self, session: Session, now: int, versions: Mapping[str, str]) -> None:
        """Remember that the client listens, and which lists it knows. Raises SessionNotFound."""
        with _still_there():
            self.table.mark_listening(session.key, session.expires_at, now, versions)

    def subscribe(self, session: Session, uri: str) -> bool:
        """Subscribe to a resource; whether there was room. Raises SessionNotFound."""
        with _still_there():
            return self.table.subscribe(session.key, session.expires_at, uri)

    def unsubscribe(self, session: Session, uri: str) -> None:
        """Unsubscribe from a resource."""
        self.table.unsubscribe(session.key, uri)


def _asked_in_content(capabilities: Mapping[str, Any]) -> bool:
    experimental = capabilities.get("experimental")
    return isinstance(experimental, dict) and QUESTIONS_IN_CONTENT in experimental


@contextmanager
def _still_there() -> Iterator[None]:
    try:
        yield
    except SessionEnded:
        raise SessionNotFound from None


class SessionNotFound(ProtocolError):
    """HTTP 404: the client has to begin a new session ("Session Management", 4)."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            f"No session has this {HEADER}: it has ended, has expired, or is another caller's; "
            "send initialize without it",
            status=HTTPStatus.NOT_FOUND,
        )
