"""`requestState`: the answers so far of a multi round-trip request, kept by its client (mrtr.mdx).

The client could change the state, so the server encrypts it with AES-256-GCM and a key of the
deployment. The principal, the method, the target and the arguments are authenticated with it. A
state that was changed, has expired, or comes with another caller or request is refused, always with
the same words.

A state can be used more than once until it expires ("do not by themselves guarantee single-use").
It holds answers and no permissions, so a second use only repeats the client's own request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from typing import Any, Final

from ...protocol.errors import invalid_params
from ..sealed import derived_key

LIFETIME_MS: Final = 30 * 60 * 1000
"""How long a person may take to answer the questions of one response."""

MAX_CHARACTERS: Final = 400_000
"""Of a state, which so fits into a request (1 MiB by default) together with new answers."""

_FORMAT: Final = b"\x01"
_NONCE_BYTES: Final = 12


class RequestStateCipher:
    """Encrypts and decrypts states with one key: a secret of at least 32 random characters."""

    def __init__(self, secret: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(derived_key(secret, b"requestState"))

    def seal(self, state: dict[str, Any], digest: str, now: int) -> str:
        """Encrypt a state for the request of that digest.

        Raises ProtocolError (-32602) when it is too large.
        """
        expiring = {"state": state, "expires": now + LIFETIME_MS}
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, json.dumps(expiring).encode(), digest.encode())
        text = base64.urlsafe_b64encode(_FORMAT + nonce + sealed).decode()
        if len(text) > MAX_CHARACTERS:
            raise invalid_params("All answers of this request together are too large")
        return text

    def open(self, text: str, digest: str, now: int) -> dict[str, Any]:
        """Decrypt a state.

        Raises ProtocolError (-32602), with the same words for every reason.
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
            found = json.loads(self._cipher.decrypt(nonce, sealed, digest.encode()))
        except InvalidTag:
            raise refusal from None
        if now >= found["expires"]:
            raise refusal
        state: dict[str, Any] = found["state"]
        return state


def request_digest(principal: str, method: str, target: str, arguments: Any) -> str:
    """A hash of the request that a state belongs to."""
    text = json.dumps([principal, method, target, arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
