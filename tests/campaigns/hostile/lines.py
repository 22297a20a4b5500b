"""Request lines and framing: methods, paths, queries, and bodies whose length is a lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.campaigns.hostile.attempts import Attempt, Draft, Expectation, Way
from tests.campaigns.hostile.http1 import Sent

SEGMENTS: Final = (
    *(
        "//mcp",
        "/mcp/",
        "/mcp/..",
        "/mcp/../mcp",
        "/./mcp",
        "/mcp%2f",
        "/%6dcp",
        "/MCP",
        "/mcp;a=b",
    ),
    *(
        "/mcp/x",
        "/mcp%00",
        "/mcp%ff",
        "/mcp\\",
        "/mcp/%2e%2e/%2e%2e/admin",
        "",
        "/",
        "/favicon.ico",
    ),
    *("/mcp.json", "/mcp/tasks/get", "/mcp//", f"/{'a' * 4000}", "/{proxy+}", "/mcp*", "/_aws/mcp"),
    *("/.well-known/", "/.well-known/oauth-protected-resource/..", "/.well-known/../mcp"),
)
QUERIES: Final = (
    *(
        "?",
        "?a=b",
        "?a=b&a=c",
        "?%00",
        "?%ff=%fe",
        "?a[]=1",
        f"?{'q' * 4000}",
        "?=",
        "?&&&",
        "?a;b",
    ),
    *("?method=tools/list", "?principal=victim", "?a=<script>", "?_method=GET", "#fragment"),
)
CHUNKS: Final = (
    *(
        b"0\r\n\r\n",
        b"zz\r\n\r\n",
        b"-1\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"1\r\n",
        b"0x5\r\nhello",
    ),
    *(
        b"5 ;a=b\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\n0\n\n",
        b"1\r\nab\r\n0\r\n\r\n",
        b"",
        b"\r\n\r\n",
    ),
)


def methods(draft: Draft) -> Attempt:
    """All but POST; what has a body has the correct one."""
    method = draft.rng.choice(
        [
            *("GET", "GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT"),
            *("PROPFIND", "post", "Post", "X", "M-SEARCH", "PURGE", "A" * 300),
        ]
    )
    sent = draft.post()
    if method in ("GET", "HEAD", "DELETE", "OPTIONS", "TRACE") and draft.rng.random() < 0.7:
        sent = replace(sent, body=b"").without("content-length", "content-type")
    if method == "OPTIONS":
        asked = ("Origin", "https://evil.example"), ("Access-Control-Request-Method", "POST")
        sent = sent.having(*asked)
    # ASGI, on which the emulator is built, knows methods in upper case only.
    expected: Expectation = "any" if method.upper() == "POST" else "refused"
    return _attempt(draft, f"the method {method[:20]}", replace(sent, method=method), expected)


def paths(draft: Draft) -> Attempt:
    """Other paths within the API: beyond it, an emulator has AWS's own APIs."""
    target = draft.door.stage + draft.rng.choice(SEGMENTS)
    method = draft.rng.choice(["POST", "POST", "GET"])
    sent = replace(draft.post(), target=target, method=method)
    return _attempt(draft, f"{method} {target[-60:]}", sent)


def queries(draft: Draft) -> Attempt:
    """Queries, which mean nothing here."""
    query = draft.rng.choice(QUERIES)
    return _attempt(draft, f"{query[:40]}", replace(draft.post(), target=draft.door.path + query))


def versions(draft: Draft) -> Attempt:
    """Protocol versions, and request lines that are none."""
    harmless = draft.of("tools/list", {}).post()
    version = draft.rng.choice(
        ["HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9", "HTTP", "ICY/1.0", "HTTP/1.1 x", "http/1.1"]
    )
    return _attempt(draft, version, replace(harmless, version=version, ends=True), "broken")


def chunked(draft: Draft) -> Attempt:
    """Bodies in chunks, correctly: whoever cannot know the length may send so."""
    sent, size = draft.post(), draft.rng.choice([1, 7, 100, 10_000])
    pieces = [sent.body[at : at + size] for at in range(0, len(sent.body), size)]
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    named = sent.without("content-length").having(("Transfer-Encoding", "chunked"))
    return _attempt(draft, f"chunks of {size}", replace(named, body=body))


def bad_chunks(draft: Draft) -> Attempt:
    """Chunks that are none, and encodings that nobody knows."""
    rng = draft.rng
    sent = draft.of("tools/list", {}).post()
    coding = rng.choice(
        ["chunked", "chunked", "gzip, chunked", "chunked, chunked", "identity", "x"]
    )
    coded = sent.having(("Transfer-Encoding", coding))
    if rng.random() < 0.5:
        coded = coded.without("content-length")
    body = rng.choice([*CHUNKS, sent.body])
    how = f"Transfer-Encoding: {coding}, {body[:12]!r}"
    return _attempt(draft, how, replace(coded, body=body, ends=True), "broken")


def lengths(draft: Draft) -> Attempt:
    """Lengths that are wrong, twice, or no numbers."""
    rng = draft.rng
    sent = draft.of("tools/list", {}).post()
    size = len(sent.body)
    values = rng.choice(
        [
            *([str(size + 50)], [str(size - 5)], ["0"], ["-1"], ["abc"], [""], [f"+{size}"]),
            *([f"0x{size:x}"], [f"{size}, {size}"], [f"{size}", f"{size}"], [f"{size}", "1"]),
            *(["1", f"{size}"], ["9" * 30], [f"{size}.0"], [f" {size} "], [f"{size};"], ["\u0661"]),
        ]
    )
    pairs = [*sent.without("content-length").headers, *(("Content-Length", v) for v in values)]
    spoiled = Sent("POST", sent.target, pairs, sent.body, ends=True)
    return _attempt(draft, f"Content-Length {values}", spoiled, "broken")


def _attempt(draft: Draft, how: str, sent: Sent, expected: Expectation = "any") -> Attempt:
    return Attempt("lines", how, draft.door, draft.caller, sent, expected)


WAYS: Final[dict[Way, int]] = {
    methods: 4,
    paths: 4,
    queries: 2,
    versions: 1,
    chunked: 2,
    bad_chunks: 2,
    lengths: 2,
}
"""How to spoil request lines and framing, and how often."""
