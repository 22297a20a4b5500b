"""Access tokens with which nobody comes in, and places where no token belongs."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from tests.campaigns.hostile.attempts import Attempt, Draft, Expectation, Way
from tests.campaigns.hostile.http1 import Sent


def bad(draft: Draft) -> Attempt:
    """Those that the issuer's tests know."""
    name = draft.rng.choice(list(draft.scene.bad_tokens))
    return _with(draft, name, f"Bearer {draft.scene.bad_tokens[name]}")


def flipped(draft: Draft) -> Attempt:
    """A good one with a bit flipped in one of its parts."""
    rng, parts = draft.rng, draft.caller.token.split(".")
    which = rng.randrange(3)
    data = bytearray(base64.urlsafe_b64decode(parts[which] + "=="))
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    parts[which] = base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    return _with(draft, f"a bit of part {which}", f"Bearer {'.'.join(parts)}")


def swapped(draft: Draft) -> Attempt:
    """Parts of two good ones, or of one in another order."""
    rng = draft.rng
    own = draft.caller.token.split(".")
    theirs = draft.scene.victim.token.split(".")
    how, made = rng.choice(
        [
            ("another's claims", [own[0], theirs[1], own[2]]),
            ("another's signature", [own[0], own[1], theirs[2]]),
            ("claims first", [own[1], own[0], own[2]]),
            ("no claims", [own[0], "", own[2]]),
            ("no header", ["", own[1], own[2]]),
            ("no signature", own[:2]),
            ("a part more", [*own, own[2]]),
            ("JWE", [*own, *own[:2]]),
            ("padded", [f"{part}=" for part in own]),
            ("reversed", own[::-1]),
            ("twice", [*own, *own]),
            ("the claims alone", [own[1]]),
        ]
    )
    return _with(draft, how, f"Bearer {'.'.join(made)}")


def presented(draft: Draft) -> Attempt:
    """A good one, presented otherwise than in one `Authorization: Bearer`."""
    rng, token = draft.rng, draft.caller.token
    how = rng.choice(
        [
            *("Basic {}", "{}", "Bearer", "Bearer ", "Bearer{}", "Bearer={}", "Bearer\u00a0{}"),
            *("Token {}", "JWT {}", "DPoP {}", "Bearer {} {}", "Bearer {},Bearer {}", "Bearer: {}"),
            *("Bearer '{}'", 'Bearer "{}"', "Bearer token={}", "", " ", "Negotiate", "Bearer {}x"),
            *(
                "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/execute-api/aws4_request",
                "{}:",
            ),
            "Digest username=x",
        ]
    )
    return _with(draft, how, how.replace("{}", token))


def elsewhere(draft: Draft) -> Attempt:
    """A good one in the query, or in a cookie; with a good header, too."""
    rng, token = draft.rng, draft.caller.token
    sent = draft.post()
    name = rng.choice(["access_token", "access_token", "ACCESS_TOKEN", "access%5Ftoken"])
    queried = replace(sent, target=f"{sent.target}?{name}={quote(token)}")
    how, made = rng.choice(
        [
            ("query", queried.without("authorization")),
            ("query and header", queried),
            ("empty query", replace(sent, target=f"{sent.target}?a=b&access_token=")),
            ("cookie", sent.without("authorization").having(("Cookie", f"access_token={token}"))),
            (
                "header",
                sent.without("authorization").having(("X-Authorization", f"Bearer {token}")),
            ),
            (
                "proxy",
                sent.without("authorization").having(("Proxy-Authorization", f"Bearer {token}")),
            ),
            ("nowhere", sent.without("authorization")),
        ]
    )
    return _attempt(draft, how, made)


def two(draft: Draft) -> Attempt:
    """Two headers: whoever reads the first and whoever reads the last would let in two callers."""
    rng, sent = draft.rng, draft.post()
    other = rng.choice(
        [
            draft.caller.token,
            draft.scene.victim.token,
            rng.choice(list(draft.scene.bad_tokens.values())),
        ]
    )
    pair = rng.choice(["Authorization", "authorization"]), f"Bearer {other}"
    both = [pair, *sent.headers] if rng.random() < 0.5 else [*sent.headers, pair]
    return _attempt(draft, "two headers", Sent("POST", sent.target, both, sent.body))


def weak(draft: Draft) -> Attempt:
    """A good one, but for the scope."""
    return _with(draft, "too few scopes", f"Bearer {draft.rng.choice(draft.scene.weak_tokens)}")


def _with(draft: Draft, how: str, authorization: str) -> Attempt:
    return _attempt(draft, how, draft.post().having(("Authorization", authorization)))


def _attempt(draft: Draft, how: str, sent: Sent, expected: Expectation = "refused") -> Attempt:
    return Attempt("tokens", how, draft.door, draft.caller, sent, expected)


WAYS: Final[dict[Way, int]] = {
    bad: 4,
    flipped: 4,
    swapped: 3,
    presented: 3,
    elsewhere: 3,
    two: 2,
    weak: 1,
}
"""How to come in without a good token, and how often each is tried."""
