"""The key by which a client repeats a call without doing it twice.

SEP-1686 had task ids that clients made; in the extension, servers make them, so a client whose
`tools/call` got no answer cannot know whether there is a task. The key gives that back: the same
key, the same task. It comes as the header `Idempotency-Key` (IETF draft, "The Idempotency-Key HTTP
Header Field"), or in `_meta`, for clients that cannot set headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .errors import invalid_params
from .headers import Headers

HEADER: Final = "Idempotency-Key"
META: Final = "mcp-tasks/idempotencyKey"
MAX_LENGTH: Final = 255


def idempotency_key(headers: Headers, meta: Mapping[str, Any]) -> str | None:
    """The key of a request, if it has one. Raises ProtocolError (-32602)."""
    sent = headers.all(HEADER)
    if META in meta:
        sent = [*sent, meta[META]]
    if not sent:
        return None
    key = sent[0]
    if not isinstance(key, str) or not 0 < len(key) <= MAX_LENGTH:
        raise invalid_params(f"{HEADER}, and _meta.{META}, is a string of 1 to {MAX_LENGTH}")
    if any(other != key for other in sent):
        raise invalid_params(f"{HEADER} and _meta.{META} were sent with different values")
    return key
