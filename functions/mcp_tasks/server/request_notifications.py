"""A request's own notifications: progress and log messages, which come before its response.

`send` of the request's response channel takes each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from ..protocol import notifications
from ..protocol.notifications import LOG_LEVELS, ProgressToken

MAX_CHARACTERS: Final = 1_000_000
"""Of one request's notifications: a Lambda response is limited, and the result comes last."""


class RequestNotifications:
    """The notifications of one request.

    Without a progress token it sends no progress, and without a log level no log messages.
    """

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
        self._counts_reports = True
        self._budget_characters = MAX_CHARACTERS

    def report(self, message: str, fraction: float | None) -> None:
        """Send progress: a percentage, or the number of the report until there is a fraction.

        Progress must increase (progress.mdx, "Progress Flow"): other reports are not sent.
        """
        if self._token is None:
            return
        if fraction is not None:
            self._counts_reports = False
        elif not self._counts_reports:
            return
        value = (self._progress or 0) + 1 if fraction is None else round(fraction * 100, 2)
        if self._progress is not None and value <= self._progress:
            return
        self._progress = value
        total = None if fraction is None else 100
        self._emit(notifications.progress(self._token, value, total, message))

    def log(self, level: str, data: Any, logger: str | None) -> None:
        """Send a log message that is at least as severe as the level that the client asked for.

        Raises ValueError for an unknown level.
        """
        if LOG_LEVELS.index(level) >= self._threshold:
            self._emit(notifications.log_message(level, data, logger))

    def _emit(self, notification: dict[str, Any]) -> None:
        self._budget_characters -= len(json.dumps(notification, allow_nan=False))
        if self._budget_characters >= 0:
            self._send(notification)
