"""Keys of a caller's items: a hash of fixed length, because clients choose the texts' length.

pk                                         item of the callers table
tasks#<hash of principal>                  the caller's quota item of tasks (`quotas`)
calls#<hash of principal>                  the caller's quota item of calls (`quotas`)
key#<hash of principal and key>            an idempotency key (`idempotency`)

Mailboxes have a table of their own, in which `caller#<hash of principal>` has the caller's.
"""

from __future__ import annotations

import hashlib
from typing import Any


def caller_key(kind: str, *parts: str) -> dict[str, Any]:
    """The primary key of an item, in DynamoDB's notation."""
    return {"pk": {"S": f"{kind}#{digest(*parts)}"}}


def digest(*parts: str) -> str:
    """A hash of texts, in hexadecimal digits."""
    found = hashlib.sha256()
    for part in parts:
        text = part.encode()
        found.update(b"%d:%b" % (len(text), text))
    return found.hexdigest()
