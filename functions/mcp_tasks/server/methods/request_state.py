"""`requestState`: what the server remembers between two rounds, kept by the client (mrtr.mdx).

It comes back from outside, so it is sealed: AES-256-GCM under a key of the deployment's own, with
everything that it must not be moved away from as associated data: the principal, the method and the
arguments. Whoever changes it, or presents it as somebody else, for something else or too late, gets
the same refusal.

Sealed state can be used more than once until it expires ("do not by themselves guarantee
single-use"): it holds answers, not permissions; to use it again repeats the client's own request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from typing import Any, Final

from ...protocol.errors import invalid_params

LIFETIME_MS: Final = 30 * 60 * 1000
"""How long somebody may take to answer one round."""

MAX_CHARACTERS: Final = 400_000
"""The state and as much again of new answers fit into one request."""

_FORMAT: Final = b"\x01"
_NONCE_BYTES: Final = 12


class RequestStateCipher:
    """Seals and opens states with one key: a secret of at least 32 random characters."""

    def __init__(self, secret: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        if len(secret) < 32:
            raise ValueError("the key of request states is shorter than 32 characters")
        derived = HKDF(SHA256(), length=32, salt=None, info=b"requestState").derive(secret.encode())
        self._cipher = AESGCM(derived)

    def seal(self, state: dict[str, Any], subject: str, now: int) -> str:
        """Encrypt and bind a state. Raises ProtocolError (-32602) when it is too large."""
        expiring = {"state": state, "expires": now + LIFETIME_MS}
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, json.dumps(expiring).encode(), subject.encode())
        text = base64.urlsafe_b64encode(_FORMAT + nonce + sealed).decode()
        if len(text) > MAX_CHARACTERS:
            raise invalid_params("The answers of all rounds together are too large")
        return text

    def open(self, text: str, subject: str, now: int) -> dict[str, Any]:
        """Verify, decrypt, and check the time.

        Raises ProtocolError (-32602), the same for every reason.
        """
        from cryptography.exceptions import InvalidTag

        refusal = invalid_params(
            "params.requestState is not valid, has expired, or belongs to another request; "
            "send the request again without it"
        )
        try:
            data = base64.b64decode(text, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise refusal from None
        nonce, sealed = data[1 : 1 + _NONCE_BYTES], data[1 + _NONCE_BYTES :]
        if data[:1] != _FORMAT or len(nonce) < _NONCE_BYTES:
            raise refusal
        try:
            found = json.loads(self._cipher.decrypt(nonce, sealed, subject.encode()))
        except InvalidTag:
            raise refusal from None
        if now >= found["expires"]:
            raise refusal
        state: dict[str, Any] = found["state"]
        return state


def subject(principal: str, method: str, target: str, arguments: Any) -> str:
    """What a state belongs to: who asked, and for what, to the letter."""
    text = json.dumps([principal, method, target, arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
