"""The notifications that come before a request's response: progress and log messages.

Sources: 2026-07-28 basic/patterns/progress.mdx and server/utilities/logging.mdx. Every revision
since 2025-03-26 has the same.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

ProgressToken = str | int

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

LOG_LEVELS: Final[tuple[str, ...]] = get_args(LogLevel)
"""Least severe first (RFC 5424)."""


def notification(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """A JSON-RPC notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def progress(
    token: ProgressToken, value: float, total: float | None, message: str | None
) -> dict[str, Any]:
    """`notifications/progress`."""
    params: dict[str, Any] = {"progressToken": token, "progress": value}
    if total is not None:
        params["total"] = total
    if message:
        params["message"] = message
    return notification("notifications/progress", params)


def log_message(level: str, data: Any, logger: str | None) -> dict[str, Any]:
    """`notifications/message`."""
    params: dict[str, Any] = {"level": level, "data": data}
    if logger is not None:
        params["logger"] = logger
    return notification("notifications/message", params)
