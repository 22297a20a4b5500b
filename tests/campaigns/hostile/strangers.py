"""Ids, states and answers of others, from callers with good tokens of their own."""

from __future__ import annotations

import base64
from typing import Any, Final

from tests.campaigns.fuzz.requests import encoded, mirrored
from tests.campaigns.fuzz.spoiling import NASTY
from tests.campaigns.hostile.attempts import Attempt, Draft, Expectation, Way
from tests.campaigns.hostile.bodies import INJECTIONS
from tests.campaigns.hostile.http1 import Pairs
from tests.integration.support.client import accept
from tests.wire import LISTEN

METHODS: Final = ("tasks/get", "tasks/update", "tasks/cancel")
LONGEST: Final = 8192
"""Characters of a header that all servers take."""
MANY: Final = 100
"""The ids that one listen may name."""


def ids(draft: Draft) -> Attempt:
    """Of tasks that are others', are elsewhere, or never were."""
    how, task_id = _id(draft)
    return _about(draft, how, task_id)


def strange_ids(draft: Draft) -> Attempt:
    """Texts that are no ids, and what is no text."""
    rng, good = draft.rng, _theirs(draft)
    cell, _, number = good.partition("-")
    made: Any = rng.choice(
        [
            *(
                good.upper(),
                f" {good}",
                f"{good} ",
                f"{good}\n",
                f"{good}\x00",
                good[:-1],
                good + "0",
            ),
            *(
                f"{cell}-{number[::-1]}",
                f"-{number}",
                f"{cell}--{number}",
                number,
                f"{cell}-",
                cell,
            ),
            *(f"{cell}\u2010{number}", f"{good}/../{good}", f"{good},{good}", f"{good}#x", "*"),
            *(good.replace("-", "_"), base64.b64encode(good.encode()).decode(), f"\ufeff{good}"),
            *("".join(chr(0xFEE0 + ord(c)) if c.isdigit() else c for c in good), good * 200),
            *(rng.choice(INJECTIONS), rng.choice(NASTY), f"{cell}-{rng.choice(INJECTIONS)}"),
            *("a" * 100_000, [good], {"S": good}, None, 1, True, [[]], {"taskId": good}, 1.5, ""),
        ]
    )
    return _about(draft, f"the id {str(made)[:40]!r}", made)


def states(draft: Draft) -> Attempt:
    """`requestState` of somebody else, for something else, or changed."""
    rng, own = draft.rng, draft.caller.round
    theirs = rng.choice([other for other in draft.scene.callers if other is not draft.caller]).round
    state = str(own["requestState"])
    at = rng.randrange(len(state) - 4)  # what Base64 ends with may not matter
    other = "A" if state[at] != "A" else "B"
    params: dict[str, Any]
    how, params = rng.choice(
        [
            ("another's", dict(theirs)),
            ("the victim's", dict(draft.scene.victim.round)),
            ("another's, own answers", {**own, "requestState": theirs["requestState"]}),
            ("of another call", {**own, "arguments": {"a": 1}}),
            ("of another tool", {**own, "name": "say", "arguments": {"text": "hello"}}),
            (
                "a character changed",
                {**own, "requestState": f"{state[:at]}{other}{state[at + 1 :]}"},
            ),
            ("cut", {**own, "requestState": state[: at + 1]}),
            ("doubled", {**own, "requestState": state + state}),
            ("nonsense", {**own, "requestState": rng.choice([*NASTY, *INJECTIONS, "A" * 400_000])}),
            ("no text", {**own, "requestState": rng.choice([None, 1, {}, [state], True])}),
        ]
    )
    # A tool that asks nothing may not look at it, and then it opens nothing.
    free = how in ("of another tool", "of another call", "no text")
    return _attempt(
        draft, f"state: {how}", draft.of("tools/call", params), "any" if free else "refused"
    )


def answers(draft: Draft) -> Attempt:
    """Answers to what others were asked, and to what nobody was."""
    rng = draft.rng
    keys = [draft.scene.victim.key, draft.caller.key, "answer-1", "", *INJECTIONS, "a" * 5000]
    values: list[Any] = [accept(name="Mallory"), accept(name=1), {"action": "decline"}, None, {}]
    values += [accept(name="a" * 60_000), {"action": "accept"}, [], "yes", accept(), {"error": {}}]
    responses: Any = {rng.choice(keys): rng.choice(values) for _ in range(rng.choice([1, 1, 2, 9]))}
    responses = rng.choice([responses, responses, responses, [responses], None, "answer-1", {}])
    task_id = _theirs(draft)
    params = {"taskId": task_id, "inputResponses": responses}
    return _attempt(
        draft, "an answer to another's task", draft.of("tasks/update", params), "refused"
    )


def listens(draft: Draft) -> Attempt:
    """To many tasks of others, among them perhaps one of one's own that is over."""
    rng = draft.rng
    size = rng.choice([1, 10, MANY, MANY, MANY, MANY + 1])
    wanted: list[Any] = [_id(draft)[1] for _ in range(size)]
    own = [draft.caller.finished, rng.choice(NASTY), "a" * 10_000]
    wanted[rng.randrange(size)] = rng.choice([_theirs(draft), *own])
    filters: Any = {"taskIds": wanted}
    if rng.random() < 0.2:
        broken = [*wanted[1:], rng.choice([1, None, [], {}])]
        filters = rng.choice([{"taskIds": broken}, {"taskIds": {}}, {"taskIds": wanted[0]}, [], 1])
    params = {"notifications": filters}
    return _attempt(draft, f"a listen to {len(wanted)}", draft.of(LISTEN, params), "any")


def _theirs(draft: Draft) -> str:
    return draft.rng.choice(list(draft.scene.victims.values()))


def _id(draft: Draft) -> tuple[str, str]:
    rng, scene = draft.rng, draft.scene
    number = f"{rng.getrandbits(128):032x}"
    others = [caller for caller in scene.callers if caller is not draft.caller]
    other = rng.choice(others)
    state = rng.choice(list(scene.victims))
    return rng.choice(
        [
            (f"a task that is {state}", scene.victims[state]),
            (f"a task that is {state}", scene.victims[state]),
            ("another caller's", rng.choice([other.finished, other.asking])),
            ("never there", f"{scene.cell}-{number}"),
            ("of another cell", f"{rng.choice(['c1', 'c2', 'zz', '0'])}-{number}"),
            ("of the victim, elsewhere", f"c1-{scene.victims[state].partition('-')[2]}"),
        ]
    )


def _about(draft: Draft, how: str, task_id: Any) -> Attempt:
    """A request about a task, with headers that agree, or that are missing, or name another."""
    rng = draft.rng
    method = rng.choice(METHODS)
    params = {"taskId": task_id}
    if method == "tasks/update":
        answer = accept(name="Mallory")
        params["inputResponses"] = rng.choice([{}, {draft.scene.victim.key: answer}])
    made = draft.of(method, params)
    headers: Pairs = mirrored(made.body, made.revision)
    # What is too long for a header, HTTP's servers refuse themselves.
    headers = [(name, value) for name, value in headers if len(value) < LONGEST]
    if rng.random() < 0.3:
        headers = [(name, value) for name, value in headers if name != "Mcp-Name"]
        name = rng.choice([None, draft.caller.finished, _theirs(draft)])
        headers += [] if name is None else [("Mcp-Name", encoded(name))]
    sent = made.post(headers=headers)
    return Attempt("strangers", f"{method}, {how}", draft.door, draft.caller, sent, "refused")


def _attempt(draft: Draft, how: str, made: Draft, expected: Expectation) -> Attempt:
    return Attempt("strangers", how, draft.door, draft.caller, made.post(), expected)


WAYS: Final[dict[Way, int]] = {ids: 5, strange_ids: 3, states: 3, answers: 2, listens: 3}
"""What to ask of others' tasks, and how often."""
