"""A request's own notifications: progress and log messages, sent before its response.

`send` takes each as it happens. A carrier that buffers collects them; one that streams writes them
at once. Nothing here depends on which.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from ..protocol import notifications
from ..protocol.notifications import LOG_LEVELS, ProgressToken

MAX_CHARACTERS: Final = 1_000_000
"""Of a request's notifications: what Lambda may answer is limited, and the result comes last."""


class RequestNotifications:
    """The notifications of one request. Without a token or a level, it sends none of that kind."""

    def __init__(
        self,
        send: Callable[[dict[str, Any]], None],
        token: ProgressToken | None = None,
        level: str | None = None,
    ) -> None:
        self._send = send
        self._token = token
        self._threshold = len(LOG_LEVELS) if level is None else LOG_LEVELS.index(level)
        self._progress: float | None = None
        self._counts = True
        self._room = MAX_CHARACTERS

    def report(self, message: str, fraction: float | None) -> None:
        """Send progress: a percentage, or, as long as there is none, the number of the report.

        Progress must increase (progress.mdx, "Progress Flow"): what does not is left out.
        """
        if self._token is None:
            return
        if fraction is not None:
            self._counts = False
        elif not self._counts:
            return
        value = (self._progress or 0) + 1 if fraction is None else round(fraction * 100, 2)
        if self._progress is not None and value <= self._progress:
            return
        self._progress = value
        total = None if fraction is None else 100
        self._emit(notifications.progress(self._token, value, total, message))

    def log(self, level: str, data: Any, logger: str | None) -> None:
        """Send a log message, when it is at least as severe as the client asked for.

        Raises ValueError for a level that there is not.
        """
        if LOG_LEVELS.index(level) >= self._threshold:
            self._emit(notifications.log_message(level, data, logger))

    def _emit(self, notification: dict[str, Any]) -> None:
        self._room -= len(json.dumps(notification, allow_nan=False))
        if self._room >= 0:
            self._send(notification)
