"""The `Idempotency-Key` header: a repeated `tools/call` with the same key gets the same task.

In the tasks extension the server makes the task ids. A client whose `tools/call` got no response
cannot know whether there is a task, so it repeats the call with the same key. The key is a header
(IETF draft, "The Idempotency-Key HTTP Header Field"), or a member of `_meta` for clients that
cannot set headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .errors import invalid_params
from .headers import Headers

HEADER: Final = "Idempotency-Key"
META_KEY: Final = "mcp-tasks/idempotencyKey"
MAX_KEY_CHARACTERS: Final = 255


def idempotency_key(headers: Headers, meta: Mapping[str, Any]) -> str | None:
    """The idempotency key of a request, if it has one. Raises ProtocolError (-32602)."""
    sent = headers.all(HEADER)
    if META_KEY in meta:
        sent = [*sent, meta[META_KEY]]
    if not sent:
        return None
    key = sent[0]
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_CHARACTERS:
        raise invalid_params(
            f"{HEADER} and _meta.{META_KEY} must be strings of 1 to {MAX_KEY_CHARACTERS} characters"
        )
    if any(other != key for other in sent):
        raise invalid_params(f"{HEADER} and _meta.{META_KEY} were sent with different values")
    return key
