"""HTTP requests whose failures are words: what a client sees, and why it sees nothing."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

TIMEOUT_SECONDS: Final = 10.0
MAX_BYTES: Final = 1024 * 1024
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request."""

    url: str
    status: int = 0
    """0 when there was no answer."""
    headers: Message = field(default_factory=Message)
    body: bytes = b""
    failure: str = ""
    """Why there was no answer."""

    @property
    def document(self) -> dict[str, Any] | None:
        """The body as a JSON object; None when it is none, or the status is not 200."""
        if self.status != 200:
            return None
        try:
            found = json.loads(self.body)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    @property
    def summary(self) -> str:
        """The answer in a few words."""
        if self.failure:
            return self.failure
        kind = self.headers.get_content_type() if "Content-Type" in self.headers else "no type"
        return f"{self.status} {kind}" if self.status != 200 or self.document is None else "200"


class Web:
    """Fetches each document once, however many clients ask for it."""

    def __init__(self, timeout: float = TIMEOUT_SECONDS) -> None:
        self._timeout = timeout
        self._fetched: dict[str, Answer] = {}

    def get(self, url: str) -> Answer:
        """Fetch a document, following redirects as clients do."""
        if url not in self._fetched:
            self._fetched[url] = self._send(url, None, {"Accept": "application/json"})
        return self._fetched[url]

    def post(self, url: str, message: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
        """Send a JSON-RPC message without a token."""
        kinds = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        return self._send(url, json.dumps(message).encode(), {**kinds, **headers})

    def _send(self, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        if refusal := refused(url):
            return Answer(url, failure=refusal)
        request = urllib.request.Request(url, body, dict(headers))  # noqa: S310  see `refused`
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:  # noqa: S310
                return Answer(url, response.status, response.headers, response.read(MAX_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(url, error.code, error.headers, error.read(MAX_BYTES))
        except (OSError, HTTPException, ValueError) as error:
            return Answer(url, failure=words_of(error, urlsplit(url).hostname or url))


def refused(url: str) -> str:
    """Why a client does not ask for a URL at all; empty for one that it asks for."""
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        return "not asked: http:// is taken for this machine only, clients want https://"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "not asked: it is no https:// URL"
    return ""


def words_of(error: Exception, host: str) -> str:
    """A failure of the network in words that somebody would search for."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    match reason:
        case socket.gaierror():
            return f"no answer: the name {host} does not resolve (DNS)"
        case ssl.SSLCertVerificationError():
            return f"no answer: the certificate of {host} is not accepted: {reason.verify_message}"
        case ssl.SSLError():
            return f"no answer: TLS with {host} failed: {reason.reason or reason}"
        case TimeoutError():
            return f"no answer: {host} did not answer in time"
        case ConnectionRefusedError():
            return f"no answer: nothing listens at {host} (connection refused)"
        case HTTPException() | ConnectionError():
            return f"no answer: {host} broke the connection off, or does not speak HTTP"
        case _:
            return f"no answer from {host}: {reason}"
