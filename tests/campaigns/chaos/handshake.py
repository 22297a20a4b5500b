"""Honest clients of 2025-11-25: one call each, which they resume and send again until its response.

They know no task. Which one their call became is for `Evidence` to find out.
"""

from __future__ import annotations

import random
import time
import urllib.error
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any, Final

from tests.campaigns.chaos.clients import PATIENCE, PAUSES, GaveUp, Life
from tests.integration.support.session_client import Event, SessionClient

CALL_SECONDS: Final = 300.0
"""After which a client gives up a call that has no response."""


class Handshake(SessionClient):
    """A session that repeats what got no answer, or one that says to come back."""

    def __init__(self, url: str, seed: str) -> None:
        self._dice = random.Random(seed)
        super().__init__(url)

    def live(self, life: Life) -> None:
        """Make a call, and wait for its response."""

        def answer(request: Mapping[str, Any]) -> dict[str, Any]:
            key = str(request["id"]).partition(".")[2]
            name = key.rpartition("-")[0]
            text = life.call.answer(name)
            life.answers[name].add(text)
            life.accepted += 1
            return {"action": "accept", "content": {"text": text}}

        life.sent_at = time.time()
        called = self.call(life.call.kind.tool, life.call.arguments, answer)
        life.over_at = time.time()
        if "result" in called.response:
            life.last = {"status": "completed", "result": called.response["result"]}
        else:
            life.last = {"status": "failed", "error": called.response["error"]}

    def _open(
        self, method: str, body: bytes | None, headers: Mapping[str, str | None] | None
    ) -> Any:
        started, attempt = time.monotonic(), 0
        while True:
            try:
                return super()._open(method, body, headers)
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code not in (409, 429):
                    raise
                came = str(error.code)
                error.close()
            except (OSError, HTTPException) as error:
                came = repr(error)
            if time.monotonic() - started > PATIENCE:
                raise GaveUp(came)
            time.sleep(PAUSES[min(attempt, len(PAUSES) - 1)] * self._dice.uniform(0.5, 1))
            attempt += 1

    def _events(self, response: Any) -> Iterator[Event]:
        """A stream that breaks off has ended."""
        try:
            yield from super()._events(response)
        except (OSError, HTTPException):
            return

    def _again(self, request: Mapping[str, Any], last_id: str | None) -> Any:
        """A stream without an event cannot be resumed, but its request can be sent again."""
        if last_id is not None:
            return super()._again(request, last_id)
        return self._open("POST", self.encoded(request), None)
