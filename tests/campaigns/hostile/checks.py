"""What holds for every answer, whatever was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tests.campaigns.hostile.attempts import Attempt
from tests.campaigns.hostile.http1 import Reply
from tests.campaigns.hostile.scene import Scene

STATUSES: Final = frozenset({200, 202, 400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 429, 431})
"""Of answers to HTTP, however wrong what it carries."""
BROKEN_STATUSES: Final = STATUSES | {408, 411, 414, 417, 426}
"""Of answers to what is not even HTTP."""
EMULATORS_405: Final = (405, "{}")
"""A mock integration without a template answers with nothing on AWS, with this on the emulator."""
STREAMED_202: Final = (202, "\n")
"""A streamed answer has a body, so that every runtime and gateway ends it."""
THROTTLED: Final = 429

SECRETS: Final = re.compile(
    r'Traceback|File \\?"|\.py\b|\b[A-Z]\w*(?:Error|Exception|Warning)\b|\badministered\b'
)
"""What tells of the server's inside, and what a tool says that nobody may call."""


def faults(attempt: Attempt, reply: Reply | None, scene: Scene) -> list[str]:
    """What is wrong with an answer."""
    if reply is None:
        return [] if attempt.expected == "broken" else ["closed without an answer"]
    return [*_status(attempt, reply), *_form(attempt, reply), *_told(attempt, reply, scene)]


def messages(reply: Reply) -> list[Any]:
    """The JSON-RPC messages of an answer. Raises ValueError for what is none."""
    text = reply.body.decode()
    if not text or (reply.status, text) in (EMULATORS_405, STREAMED_202):
        return []
    if reply.kind == "text/event-stream":
        *events, rest = text.split("\n\n")
        events = [event for event in events if not event.startswith(":")]
        if rest or not all(event.startswith("event: message\ndata: ") for event in events):
            raise ValueError("not the events that they should be")
        found = [json.loads(event.partition("\ndata: ")[2]) for event in events]
    elif reply.kind == "application/json":
        decoded = json.loads(text)
        found = decoded if isinstance(decoded, list) else [decoded]
    else:
        raise ValueError(f"the media type {reply.kind!r}")
    if not found or not all(map(_is_json_rpc, found)):
        raise ValueError("not JSON-RPC")
    return found


def task_made(reply: Reply) -> str | None:
    """The id of the task that an answer acknowledges (tasks.md, "Task Creation")."""
    try:
        found = messages(reply)
    except ValueError:
        return None
    for message in found:
        result = message.get("result")
        if isinstance(result, dict) and result.get("resultType") == "task":
            return str(result["taskId"])
    return None


def _status(attempt: Attempt, reply: Reply) -> Iterator[str]:
    known = BROKEN_STATUSES if attempt.expected == "broken" else STATUSES
    if reply.status not in known and not unknown_coding(attempt, reply):
        yield f"the status {reply.status}"
    if attempt.expected == "answered" and reply.status not in (200, 202, THROTTLED):
        yield f"a correct request is answered with {reply.status}"
    if attempt.expected == "refused" and reply.status < 400:
        yield f"it is not refused, but answered with {reply.status}"


def _form(attempt: Attempt, reply: Reply) -> Iterator[str]:
    try:
        found = messages(reply)
    except ValueError as error:
        if attempt.expected != "broken" or reply.status < 400:
            yield f"neither JSON-RPC nor empty: {error}"
        return
    errors = [message for message in found if "error" in message]
    if reply.status >= 400 and len(errors) < len(found):
        yield f"the status {reply.status} with a result"
    if attempt.expected == "answered" and reply.status != THROTTLED and errors:
        yield f"a correct request is answered with {errors[0]['error']}"


def _told(attempt: Attempt, reply: Reply, scene: Scene) -> Iterator[str]:
    headers = "".join(f"{name}: {value}\n" for name, value in reply.headers)
    body = reply.body.decode(errors="replace")
    if scene.canary in headers + body:
        yield "it tells what is in another's task"
    if any(part in headers + body for part in attempt.secrets):
        yield "it repeats a part of a token"
    said = SECRETS.search(body)
    if said is not None and said[0].encode() not in attempt.sent.data:
        yield f"it tells {said[0]!r}"
    foreign = set(scene.victims.values()) & set(_task_ids(reply))
    if foreign:
        yield f"it takes {foreign} for the caller's"


def _task_ids(reply: Reply) -> Iterator[str]:
    """Of the tasks that an answer says something of."""
    try:
        found = messages(reply)
    except ValueError:
        return
    for message in found:
        for said in (message.get("result"), message.get("params")):
            if isinstance(said, dict):
                yield str(said.get("taskId"))
                yield from said.get("notifications", {}).get("taskIds", ())


def unknown_coding(attempt: Attempt, reply: Reply) -> bool:
    """RFC 9112, section 6.1: a transfer coding that a server does not know SHOULD be answered with
    501. It comes from the HTTP library, before there is a request."""
    coded = any(name.lower() == "transfer-encoding" for name, _ in attempt.sent.headers)
    return coded and attempt.expected == "broken" and reply.status == 501


def _is_json_rpc(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    error = message.get("error")
    if isinstance(error, dict):
        known = isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
        return known and "result" not in message
    return isinstance(message.get("result"), dict) or isinstance(message.get("method"), str)
