"""Headers that are wrong, contradict each other or the body, or that HTTP does not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tests.campaigns.fuzz.requests import request, sentinel
from tests.campaigns.fuzz.spoiling import NASTY
from tests.campaigns.hostile.attempts import Attempt, Draft, Expectation, Way
from tests.campaigns.hostile.bodies import INJECTIONS
from tests.campaigns.hostile.http1 import Sent

EARLIER: Final = "2025-11-25"
KEY: Final = "Idempotency-Key"
LONG: Final = "a" * 8192
CONTROLS: Final = ("\x00", "\x01", "\x08", "\x0b", "\x0c", "\x1b", "\x7f", "\r", "\n", "\r\n x: ")
"""What no field value may hold (RFC 9110, section 5.5)."""
MEANT_FOR_US: Final = ("mcp-protocol-version", "mcp-method", "mcp-name", "content-type", "accept")

OTHERS: Final = (
    *(("Origin", value) for value in ("https://evil.example", "null", "", "http://localhost.evil")),
    *(("Origin", value) for value in ("http://127.0.0.1:1", "file://", "http://localhost:80@evil")),
    *(("Content-Type", value) for value in ("text/plain", "text/xml", "multipart/form-data", "")),
    ("Content-Type", "application/x-www-form-urlencoded"),
    ("Content-Type", "application/json; charset=utf-16"),
    *(("Content-Encoding", value) for value in ("gzip", "br", "identity", "x")),
    *(("Accept", value) for value in ("text/event-stream", "application/json", "image/png", "")),
    *(("Accept", value) for value in ("*/*;q=0", "text/*", "a" * 3000)),
    ("Accept-Encoding", "gzip, br, *;q=0"),
    ("Expect", "100-continue"),
    ("Upgrade", "h2c"),
    ("Range", "bytes=0-5"),
    ("If-None-Match", "*"),
    ("Cookie", f"session={'a' * 4000}"),
    ("X-HTTP-Method-Override", "DELETE"),
    ("X-Forwarded-For", "127.0.0.1, ::1"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Original-URL", "/v1/admin"),
    ("X-Amz-Target", "DynamoDB_20120810.Scan"),
    ("X-Amz-Security-Token", "token"),
    ("X-Amzn-Trace-Id", "Root=1-0-0;Parent=x;Sampled=\u2028"),
    ("X-Amz-Invocation-Type", "Event"),
    ("Mcp-Session-Id", "\u00e9"),
    ("Last-Event-ID", "-1"),
    ("traceparent", "00-0-0-00"),
    ("tracestate", "a=" + "b" * 600),
    ("baggage", "principal=victim"),
    ("principal", "victim"),
    ("X-Principal-Id", "victim"),
    ("Mcp-Param-Text", "hello"),
    ("Mcp-Param-", "x"),
    ("Forwarded", 'for="_x";by=unknown'),
)


def dropped(draft: Draft) -> Attempt:
    """A header that is due is missing."""
    name = draft.rng.choice([*MEANT_FOR_US, "host", "connection"])
    return _attempt(draft, f"without {name}", draft.post().without(name), expected="any")


def doubled(draft: Draft) -> Attempt:
    """A header comes twice, alike or not."""
    rng, sent = draft.rng, draft.post()
    name, value = rng.choice([p for p in sent.headers if p[0].lower() in (*MEANT_FOR_US, "host")])
    other = rng.choice([value, value.upper(), "", "x", sentinel(value), f"{value}, {value}"])
    pair = rng.choice([(name.upper(), other), (name.lower(), other), (name, other)])
    both = [pair, *sent.headers] if rng.random() < 0.5 else [*sent.headers, pair]
    return _attempt(draft, f"{name} twice", Sent("POST", sent.target, both, sent.body))


def mismatching(draft: Draft) -> Attempt:
    """A header says something else than the body."""
    rng = draft.rng
    name = rng.choice(["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Name"])
    printable = [text for text in (*NASTY, *INJECTIONS) if text.isprintable() and text.isascii()]
    value = rng.choice(
        [
            rng.choice(printable),
            sentinel(rng.choice(NASTY)),
            draft.scene.victims[rng.choice(list(draft.scene.victims))],
            rng.choice(["say", "note", "tools/list", "tasks/get", "2026-07-28", "2025-11-25"]),
        ]
    )
    return _attempt(draft, f"{name}: {value[:40]!r}", draft.post().having((name, value)))


def broken_base64(draft: Draft) -> Attempt:
    """The form for what a header cannot carry, spoiled."""
    rng, sent = draft.rng, draft.post()
    value = dict(sent.headers).get("Mcp-Name", "say")
    good = sentinel(value)
    made = rng.choice(
        [
            good,  # which is right
            good[:-2],
            good.replace("=?=", "?="),
            good.replace("base64", "BASE64"),
            good.replace("base64", "q"),
            sentinel(good),
            "=?base64??=",
            "=?base64?!!!!?=",
            "=?base64?/w==?=",  # a byte that is no UTF-8
            "=?base64?7aCA?=",  # half of a surrogate pair
            f"=?base64?{'A' * 8000}?=",
            f"{good} {good}",
            good.replace("?base64?", "?base64? "),
        ]
    )
    return _attempt(draft, "Base64", sent.having(("Mcp-Name", made)))


def control(draft: Draft) -> Attempt:
    """Characters that a header must not have."""
    rng = draft.rng
    harmless = draft.of("tools/list", {})
    name = rng.choice(["Mcp-Name", "Mcp-Method", "X-Anything", "User-Agent", KEY, "Authorization"])
    character = rng.choice(CONTROLS)
    value = f"a{character}b"
    if name == "Authorization":
        value = f"Bearer {character}{draft.caller.token}"
    sent = harmless.post().having((name, value))
    return _attempt(draft, f"{character!r} in {name}", sent, "broken")


def names(draft: Draft) -> Attempt:
    """Header names that are none."""
    name = draft.rng.choice(
        ["", " ", "a b", "a:b", "\u00e9", "(x)", "\x00", "[]", "Mcp-Name ", "@"]
    )
    sent = draft.of("tools/list", {}).post()
    spoiled = Sent("POST", sent.target, [*sent.headers, (name, "x")], sent.body)
    return _attempt(draft, f"the name {name!r}", spoiled, "broken")


def strange(draft: Draft) -> Attempt:
    """Headers that this server does not know, or takes from few."""
    pairs = draft.rng.sample(OTHERS, draft.rng.choice([1, 1, 2, 4]))
    sent = draft.post().having(*pairs)
    return _attempt(draft, ", ".join(name for name, _ in pairs), sent)


def hosts(draft: Draft) -> Attempt:
    """A name under which nobody should find this server (DNS rebinding)."""
    value = draft.rng.choice(
        [
            *("evil.example", "localhost.evil.example:1", "127.0.0.1.evil.example", "", "a b"),
            *("[::1]", "127.0.0.1:99999", "LOCALHOST:1", "x.execute-api.localhost.evil:1", "*"),
            *("127.0.0.1@evil.example:1", "evil.example:127.0.0.1", "\u0131ocalhost:1", "a" * 5000),
        ]
    )
    how = f"Host {value[:40]!r}"
    broken: Expectation = "broken" if value in ("", "a b") or not value.isascii() else "any"
    return _attempt(draft, how, draft.of("tools/list", {}).post().having(("Host", value)), broken)


def long(draft: Draft) -> Attempt:
    """As much as API Gateway lets through (its quota is 10,240 bytes of headers), and many."""
    rng = draft.rng
    pairs = rng.choice(
        [
            [(rng.choice(["Mcp-Name", "Mcp-Method", KEY, "User-Agent", "X-Long"]), LONG)],
            [("Accept", f"{LONG}, text/event-stream")],
            [(f"X-{number}", "a") for number in range(90)],
            [("X-" + "n" * 4000, "a")],
        ]
    )
    return _attempt(draft, f"long {pairs[0][0][:20]}", draft.post().having(*pairs), "any")


def idempotency(draft: Draft) -> Attempt:
    """Keys that are none, that contradict each other, or that somebody else uses, too."""
    rng = draft.rng
    meta: dict[str, Any] = rng.choice(
        [{}, {}, {"mcp-tasks/idempotencyKey": rng.choice(["a", 1, None, "", {}])}]
    )
    text = rng.choice(["hello", "other"])
    params = {"name": "note", "arguments": {"text": text}, "_meta": meta}
    keys = rng.choice(
        [
            *([""], [" "], ["a" * 255], ["a" * 256], ["a", "a"], ["a", "b"], ["a, b"], ['"a"']),
            *(["\u00e9"], ["victim"], ["key-1"], [*map(str, range(50))], [sentinel("a")], ["\t"]),
            *([INJECTIONS[0]], [f"victim|{draft.scene.victim.name}"], ["#"], ["../a"], ["null"]),
        ]
    )
    sent = draft.of("tools/call", params).post()
    both = [*sent.headers, *((KEY, key) for key in keys)]
    how = f"{KEY} {str(keys)[:40]}, {str(meta)[:60]}"
    return _attempt(draft, how, Sent("POST", sent.target, both, sent.body))


def another_tool(draft: Draft) -> Attempt:
    """A tool that needs a scope, under the name of one that needs none."""
    rng = draft.rng
    call = {"name": rng.choice(["administer", "publish_report"]), "arguments": {}}
    sent = draft.of("tools/call", call).post()
    # Earlier revisions name no tool in a header: only the body tells.
    earlier = replace(draft, revision=EARLIER, body=request("tools/call", call, EARLIER)).post()
    made = rng.choice(
        [
            sent,
            sent.without("mcp-name"),
            sent.without("mcp-name", "mcp-method", "mcp-protocol-version"),
            sent.having(("Mcp-Name", "say")),
            sent.having(("Mcp-Name", sentinel("say"))),
            sent.having(("Mcp-Method", "tools/list")),
            sent.having(("MCP-Protocol-Version", EARLIER)),
            earlier,
            earlier.having(("Mcp-Name", "say"), ("Mcp-Method", "tools/call")),
        ]
    )
    return _attempt(draft, "a tool beyond the scopes", made, "refused")


def _attempt(draft: Draft, how: str, sent: Sent, expected: Expectation = "any") -> Attempt:
    return Attempt("headers", how, draft.door, draft.caller, sent, expected)


WAYS: Final[dict[Way, int]] = {
    dropped: 2,
    doubled: 3,
    mismatching: 3,
    broken_base64: 3,
    control: 3,
    names: 1,
    strange: 4,
    hosts: 2,
    long: 2,
    idempotency: 2,
    another_tool: 2,
}
"""How to spoil headers, and how often."""
