"""Trace context in `_meta` (SEP-414): W3C `traceparent`, `tracestate` and `baggage`.

The keys have no prefix: the specification makes an exception for OpenTelemetry. Clients send them,
and they go into logs and other systems, so only well-formed values are taken. A malformed value is
no error; the trace ends here (W3C Trace Context, section 3.2.2.5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_TRACEPARENT: Final = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
_PRINTABLE: Final = re.compile(r"[\x20-\x7e]+")
MAX_TRACESTATE_CHARACTERS: Final = 512
"""Characters (W3C Trace Context, section 3.3.1.5)."""
MAX_BAGGAGE_BYTES: Final = 8192
"""Bytes (W3C Baggage, section 3.3.2)."""


def trace_context(meta: Mapping[str, Any]) -> dict[str, str]:
    """The well-formed values. `tracestate` is left out without a `traceparent`."""
    trace = {}
    parent = meta.get("traceparent")
    if isinstance(parent, str) and _TRACEPARENT.fullmatch(parent):
        trace["traceparent"] = parent
        if _is_text(meta.get("tracestate"), MAX_TRACESTATE_CHARACTERS):
            trace["tracestate"] = meta["tracestate"]
    if _is_text(meta.get("baggage"), MAX_BAGGAGE_BYTES):
        trace["baggage"] = meta["baggage"]
    return trace


def _is_text(value: object, longest: int) -> bool:
    return (
        isinstance(value, str) and len(value) <= longest and _PRINTABLE.fullmatch(value) is not None
    )


def loggable(trace: Mapping[str, str]) -> dict[str, str]:
    """The part of a trace context that belongs in logs: its ids. `baggage` may hold anything."""
    return {name: value for name, value in trace.items() if name == "traceparent"}
