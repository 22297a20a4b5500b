"""What the server hands out instead of keeping it: encrypted, so that no client can read or change
it.

A session id and an event id hold what the next request needs. Both are sealed with AES-256-GCM and
keys that are derived from one secret of the deployment. Whom and what for a text was sealed is
authenticated with it: a text of another caller, of another purpose, or of none does not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAX_CHARACTERS: Final = 6_000
"""Of a sealed text: API Gateway takes 10,240 bytes of headers (developer guide, "Quotas")."""

_NONCE_BYTES: Final = 12
_SEALED: Final = re.compile(r"([a-z0-9]{1,16})-([A-Za-z0-9_-]+)")


def derived_key(secret: str, purpose: bytes) -> bytes:
    """A key of 256 bits for one purpose, of a secret of at least 32 random characters (HKDF)."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if len(secret) < 32:
        raise ValueError("the deployment's secret is shorter than 32 characters")
    return HKDF(SHA256(), length=32, salt=None, info=purpose).derive(secret.encode())


class Unsealable(ValueError):
    """The text was not sealed for this purpose and owner, or has expired."""


@dataclass(frozen=True)
class Seal:
    """Seals and opens texts for one purpose: `<cell>-<base64url>`.

    `secret` is read when it is first needed: it costs a call to Secrets Manager. The cell is
    readable, so that a router can tell which stack sealed a text.
    """

    secret: Callable[[], str]
    purpose: str
    cell: str

    def seal(self, value: dict[str, Any], owner: str, expires_at: int) -> str:
        """Seal JSON for an owner, until a time in milliseconds since the epoch.

        Raises ValueError when the text is longer than a header may be.
        """
        nonce = secrets.token_bytes(_NONCE_BYTES)
        plain = json.dumps([expires_at, value], separators=(",", ":")).encode()
        sealed = nonce + self._cipher.encrypt(nonce, plain, owner.encode())
        text = f"{self.cell}-{base64.urlsafe_b64encode(sealed).decode().rstrip('=')}"
        if len(text) > MAX_CHARACTERS:
            raise ValueError("the sealed text is too long for a header")
        return text

    def open(self, text: str, owner: str, now: int) -> tuple[dict[str, Any], int]:
        """What was sealed for this owner, and until when it is good. Raises Unsealable."""
        from cryptography.exceptions import InvalidTag

        match = _SEALED.fullmatch(text) if len(text) <= MAX_CHARACTERS else None
        if match is None or match[1] != self.cell:
            raise Unsealable
        try:
            sealed = base64.b64decode(match[2] + "=" * (-len(match[2]) % 4), b"-_", validate=True)
            nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
            expires_at, value = json.loads(self._cipher.decrypt(nonce, rest, owner.encode()))
        except (binascii.Error, ValueError, InvalidTag):
            raise Unsealable from None
        if now >= expires_at:
            raise Unsealable
        return value, expires_at

    @cached_property
    def _cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(derived_key(self.secret(), self.purpose.encode()))


@dataclass(frozen=True)
class DerivedIds:
    """Ids of tasks and calls that follow from what a client has chosen, such as its request's id.

    The same text gives the same id on every instance, so nothing has to be stored to find the task
    or the call again. Without the deployment's secret, nobody can tell an id from a random one.
    """

    secret: Callable[[], str]
    cell: str

    def derive(self, *chosen: str) -> str:
        """The id for these texts, in the form of every task id."""
        text = json.dumps(chosen).encode()
        return f"{self.cell}-{hmac.new(self._key, text, hashlib.sha256).hexdigest()[:32]}"

    @cached_property
    def _key(self) -> bytes:
        return derived_key(self.secret(), b"taskId")
