"""Whatever comes in, what goes out is right: property tests of the whole request path.

`server.py` says what "right" means, for every answer; each test says what is sent.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from aws_lambda_powertools import Logger
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from mcp_tasks.registry.catalogue import PACKAGE, Catalogue
from tests.campaigns.fuzz import spoiling
from tests.campaigns.fuzz.requests import (
    CALLS,
    HANDSHAKE,
    MODEL,
    NEW_CALLS,
    OLD_CALLS,
    WHO,
    Pairs,
    Post,
    correct,
    mirrored,
    request,
)
from tests.campaigns.fuzz.server import GONE, KEYS, SOMEBODY, TASKS, Server
from tests.unit.support.aws import REGION
from tests.wire import LISTEN, MODERN

TOOLS: Final = Path(__file__).with_name("tools")
LOGGER: Final = Logger()
"""The function's own logger; the library's loggers are its children."""

BUDGETS: Final[dict[str, int]] = {}
"""Test -> how many answers it has checked when it passes."""

Sent = TypeVar("Sent")
Test = Callable[[Server], None]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with something of every kind, in an account of moto's."""
    before = {name: sys.modules.pop(name) for name in _tools()}
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        logging.disable()
        # A listen is told what there is, and not held.
        patch.setattr("mcp_tasks.server.methods.subscriptions.BUFFERED_MS", 0)
        with mock_aws():
            yield Server(Catalogue.discover(TOOLS))
        logging.disable(logging.NOTSET)
    for name in _tools():
        del sys.modules[name]
    sys.modules.update(before)


def _tools() -> list[str]:
    return [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]


def sends(
    cases: int, strategy: Callable[[Server], st.SearchStrategy[Sent]], *reached: int | None
) -> Callable[[Callable[[Server, Sent], object]], Test]:
    """Make a test of a function that sends a request, at least, for each of so many examples.

    The test fails when it checked fewer answers, or when none of them had one of the codes
    `reached` (None for a result): then the requests do not reach what they are meant for.
    """

    def declare(send: Callable[[Server, Sent], object]) -> Test:
        def test(server: Server) -> None:
            checked, codes = server.checked, server.codes.copy()

            @settings(
                max_examples=cases,
                derandomize=True,
                database=None,
                deadline=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            )
            @given(strategy(server))
            def example(drawn: Sent) -> None:
                send(server, drawn)

            example()
            assert server.checked - checked >= cases
            assert set(reached) <= set(server.codes - codes)

        test.__name__ = test.__qualname__ = send.__name__
        test.__doc__ = send.__doc__
        BUDGETS[send.__name__] = cases
        return test

    return declare


LISTS_ONLY: Final = {"toolsListChanged": True, "resourceSubscriptions": ["notes://all"]}


def requests(revision: str) -> list[dict[str, Any]]:
    """A correct request of everything that a revision has."""
    if revision != MODERN:
        own = OLD_CALLS
    else:
        ours = [task_id for name, task_id in TASKS.items() if name not in GONE]
        own = [
            *NEW_CALLS,
            *(("tasks/get", {"taskId": task_id}) for task_id in ours),
            *(("tasks/cancel", {"taskId": task_id}) for task_id in ours),
            *(("tasks/update", {"taskId": task_id, "inputResponses": {}}) for task_id in ours),
            ("tasks/update", {"taskId": TASKS["asking"], "inputResponses": {KEYS[0]: WHO}}),
            *((LISTEN, {"notifications": filters}) for filters in (LISTS_ONLY, {"taskIds": ours})),
            (LISTEN, {"notifications": {**LISTS_ONLY, "taskIds": [*TASKS.values(), ours[0]]}}),
        ]
    return [request(method, params, revision) for method, params in (*CALLS, *own)]


def version(revision: str) -> list[tuple[str, str]]:
    """The only header that the older revisions have."""
    return [("MCP-Protocol-Version", revision)]


def test_at_least_ten_thousand_answers_are_checked() -> None:
    """Each of the tests below fails when it checked fewer than it says."""
    assert sum(BUDGETS.values()) >= 10_000
    assert all(name in globals() and name.startswith("test_") for name in BUDGETS)


# what a correct client sends


@pytest.mark.parametrize("revision", [MODERN, *HANDSHAKE])
def test_requests_that_nobody_spoiled_are_answered_with_results(
    server: Server, revision: str
) -> None:
    """Else the tests below were of refusals only."""
    for body in requests(revision):
        answer = server.send(Post(spoiling.text(body), mirrored(body, revision)))
        assert answer.code is None, (body, answer.message)


# what nobody should send


@sends(400, lambda server: st.binary(max_size=300), -32700)
def test_a_body_may_be_any_bytes(server: Server, body: bytes) -> None:
    server.send(Post(body, []))


@sends(200, lambda server: st.text(max_size=60), -32700)
def test_a_body_may_be_text_that_is_said_to_be_bytes(server: Server, body: str) -> None:
    server.send(Post(body, [], binary=True))


@sends(
    800,
    lambda server: st.builds(
        Post,
        st.builds(spoiling.text, spoiling.values, st.sampled_from(spoiling.RAW_VALUES)),
        st.sampled_from([[], *map(version, (MODERN, *HANDSHAKE))]),
    ),
    *(-32600, -32700),
)
def test_a_body_may_be_any_json(server: Server, post: Post) -> None:
    server.send(post)


@sends(
    800,
    lambda server: st.builds(
        lambda body, own, more: Post(spoiling.text(body), [*own, *more]),
        st.sampled_from([r for revision in (MODERN, *HANDSHAKE) for r in requests(revision)]),
        st.sampled_from([[], *map(version, (MODERN, *HANDSHAKE))]),
        spoiling.arbitrary_headers,
    ),
    *(None, -32600, -32020, -32022),
)
def test_headers_may_have_any_names_and_values(server: Server, post: Post) -> None:
    server.send(post)


@sends(
    4000,
    lambda server: spoiling.spoiled_posts(requests(MODERN), MODERN, [None, None, SOMEBODY]),
    *(None, -32700, -32600, -32601, -32602, -32020, -32021, -32022),
)
def test_a_request_may_be_wrong_in_any_place(server: Server, post: Post) -> None:
    server.send(post)


@sends(
    2400,
    lambda server: st.sampled_from(HANDSHAKE).flatmap(
        lambda revision: spoiling.spoiled_posts(
            [*requests(revision), *(request(*call, revision) for call in NEW_CALLS)],
            revision,
            [None],
        )
    ),
    *(None, -32700, -32600, -32601, -32602, -32002, -32022),
)
def test_a_request_of_an_older_revision_may_be_wrong_in_any_place(
    server: Server, post: Post
) -> None:
    """Or be one of a later revision."""
    server.send(post)


PING: Final = request("ping", {}, HANDSHAKE[-1])
NOTIFICATIONS: Final = [
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
]


@sends(
    500,
    lambda server: st.builds(
        lambda bodies, raw, headers: Post(spoiling.text(bodies, raw), headers),
        st.one_of(
            st.lists(
                st.one_of(
                    st.sampled_from([*requests(HANDSHAKE[-1]), *NOTIFICATIONS]),
                    st.builds(
                        lambda body, id_: {**body, "id": id_},
                        st.sampled_from(requests(HANDSHAKE[-1])),
                        spoiling.scalars,
                    ),
                    st.sampled_from(requests(HANDSHAKE[-1])).flatmap(spoiling.spoiled_json),
                    spoiling.values,
                ),
                max_size=5,
            ),
            st.sampled_from([[PING] * 50, [PING] * 51, NOTIFICATIONS, [[PING]]]),
        ),
        st.sampled_from(spoiling.RAW_VALUES),
        st.sampled_from([[], version(HANDSHAKE[-1]), version(HANDSHAKE[0]), version(MODERN)]),
    ),
    *(None, -32600, -32700),
)
def test_a_batch_may_hold_anything(server: Server, post: Post) -> None:
    server.send(post)


# what somebody sends who looks for a way in

ANSWERS: Final[list[Any]] = [
    *(WHO, MODEL, {"action": "decline"}, {"action": "cancel"}, {"roots": [{"uri": "file:///"}]}),
    {"action": "accept", "content": {"name": "a" * 99_000}},
    {**MODEL, "content": {"type": "text", "text": "a" * 99_000}},
    {"roots": [{"uri": "file:///", "name": "a" * 99_000}]},
]
answers: Final = st.one_of(st.sampled_from(ANSWERS), spoiling.values)
FULL: Final = {
    "form": ANSWERS[-3],
    "essay": ANSWERS[-3],
    "model": ANSWERS[-2],
    "roots": ANSWERS[-1],
    "page": {"action": "accept"},
}


@st.composite
def task_requests(draw: st.DrawFn) -> tuple[str, str | None, Post]:
    """A task's id, a caller, and what the caller does with the task."""
    method = draw(st.sampled_from(["tasks/get", "tasks/cancel", "tasks/update", "tasks/update"]))
    known = st.sampled_from(list(TASKS.values()))
    made_up = st.from_regex(r"[a-z0-9]{1,17}-[0-9a-f]{32}", fullmatch=True)
    task_id = draw(st.one_of(known, known, known.flatmap(spoiling.spoiled_text), made_up))
    params: dict[str, Any] = {"taskId": task_id}
    if method == "tasks/update":
        keys = st.one_of(st.sampled_from(KEYS), st.sampled_from(KEYS), spoiling.texts)
        params["inputResponses"] = draw(st.dictionaries(keys, answers, max_size=6))
    caller = draw(st.sampled_from([None, None, SOMEBODY]))
    return task_id, caller, correct(method, params, caller)


@sends(1000, lambda server: task_requests(), None, -32602)
def test_a_task_is_there_for_its_owner_only(
    server: Server, drawn: tuple[str, str | None, Post]
) -> None:
    """tasks.md, "Security Considerations"."""
    task_id, caller, post = drawn
    answer = server.send(post)
    name = next((name for name, known in TASKS.items() if known == task_id), None)
    if name is None or (name in GONE if caller is None else name != "theirs"):
        assert answer.code in (-32602, -32700)
        assert answer.message["error"]["message"].startswith(("Task not found", "The body"))


filters: Final = st.dictionaries(
    st.one_of(st.sampled_from([*LISTS_ONLY, "promptsListChanged", "mcp-tasks/x"]), spoiling.texts),
    st.one_of(st.booleans(), spoiling.values),
    max_size=3,
)


@st.composite
def listens(draw: st.DrawFn) -> tuple[list[str], str | None, Post]:
    """Ids, a caller, and the caller's listen to them."""
    known = st.sampled_from(list(TASKS.values()))
    made_up = st.from_regex(r"[a-z0-9]{1,17}-[0-9a-f]{32}", fullmatch=True)
    some = st.lists(st.one_of(known, known, known.flatmap(spoiling.spoiled_text), made_up))
    many = st.builds(lambda task_ids, n: task_ids * n, some, st.integers(2, 40))
    task_ids = draw(st.one_of(some, some, some, many))
    caller = draw(st.sampled_from([None, None, SOMEBODY]))
    params = {"notifications": {**draw(filters), "taskIds": task_ids}}
    body = request(LISTEN, params, MODERN) | {"id": draw(st.one_of(st.text(), st.integers()))}
    return task_ids, caller, Post(spoiling.text(body), mirrored(body, MODERN), caller)


def _is_filter(post: Post) -> bool:
    """Whether what a listen asks for besides tasks has the right types."""
    wanted = json.loads(post.body)["params"]["notifications"]
    uris = wanted.get("resourceSubscriptions", [])
    flags = [wanted.get(f"{name}ListChanged", False) for name in ("tools", "prompts", "resources")]
    texts = isinstance(uris, list) and all(isinstance(uri, str) for uri in uris)
    return texts and len(uris) <= 100 and all(isinstance(flag, bool) for flag in flags)


@sends(300, lambda server: listens(), None, -32602)
def test_a_listen_tells_its_caller_of_its_own_tasks_only(
    server: Server, drawn: tuple[list[str], str | None, Post]
) -> None:
    """tasks.md, "Task Status Notifications"; each state once, as nothing changes meanwhile."""
    task_ids, caller, post = drawn
    answer = server.send(post)
    if answer.code is not None:
        wrong = len(task_ids) > 100 or not _is_filter(post)
        assert answer.code == -32700 or (answer.code, wrong) == (-32602, True)
        return
    names = {task_id: name for name, task_id in TASKS.items()}
    theirs = [
        task_id
        for task_id in dict.fromkeys(task_ids)
        if task_id in names
        and (names[task_id] not in GONE if caller is None else names[task_id] == "theirs")
    ]
    acknowledged, *states = [message["params"] for message in answer.notifications]
    assert acknowledged["notifications"].pop("resourceSubscriptions", []) == []
    assert acknowledged["notifications"] == {"taskIds": theirs}
    assert sorted(state["taskId"] for state in states) == sorted(theirs)


@pytest.mark.parametrize("length", [200_000, 262_100, 262_144, 300_000, 1_040_000])
@pytest.mark.parametrize("tool", ["echo", "later", "flow", "legacy", "confirmed"])
def test_arguments_may_be_too_large(server: Server, tool: str, length: int) -> None:
    """For the task's row, or for the execution that gets them."""
    name = "value" if tool == "echo" else "text"
    params = {"name": tool, "arguments": {name: "a" * length}, "inputResponses": {"sure": WHO}}
    assert server.send(correct("tools/call", params)).code in (None, -32602)


@pytest.mark.parametrize("count", range(1, len(KEYS) + 1))
def test_answers_may_be_too_large_together(server: Server, count: int) -> None:
    """For the task's row, or for the state that waits for them."""
    responses = {key: FULL[key.partition("-")[0]] for key in KEYS[:count]}
    answer = server.send(
        correct("tasks/update", {"taskId": TASKS["asking"], "inputResponses": responses})
    )
    assert answer.code in (None, -32602)


@sends(
    700,
    lambda server: st.sampled_from([("server/discover", {}), *CALLS]).flatmap(
        lambda call: st.tuples(st.just(call), spoiling.spoiled_headers(correct(*call).headers))
    ),
    *(None, -32020),
)
def test_headers_that_differ_from_the_body_are_refused(
    server: Server, drawn: tuple[tuple[str, dict[str, Any]], Pairs]
) -> None:
    """streamable-http.mdx, "Server Validation"; and no others are."""
    call, headers = drawn
    good = correct(*call)
    answer = server.send(Post(good.body, headers))
    if mirrors(headers) == mirrors(good.headers):
        assert answer.message == server.send(good).message
    else:
        assert answer.code == -32020


def mirrors(headers: Pairs) -> list[tuple[str, str | None]]:
    """What the headers say that repeat the body, in the order of their names."""
    found = []
    for name, value in headers:
        text: str | None = value.strip(" \t")
        encoded = re.fullmatch(r"=\?base64\?(.*)\?=", value.strip(" \t"))
        if encoded and name.lower().startswith(("mcp-name", "mcp-param-")):
            text = (_bytes(encoded[1]) or b"\xff").decode(errors="replace")
        if name.lower().startswith("mcp-"):
            found.append((name.lower(), text))
    return sorted(found)


ASKING: Final[list[tuple[str, dict[str, Any]]]] = [
    ("tools/call", {"name": "ask_everything", "arguments": {"topic": "a"}}),
    ("tools/call", {"name": "ask_everything", "arguments": {"topic": "b"}}),
    ("tools/call", {"name": "confirmed", "arguments": {"text": "a"}}),
    ("tools/call", {"name": "asking_flow", "arguments": {"text": "a"}}),
    ("prompts/get", {"name": "introduce", "arguments": {"topic": "a"}}),
    ("resources/read", {"uri": "secrets://a"}),
]


@pytest.mark.parametrize(("method", "params"), ASKING)
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_whoever_does_not_want_to_answer_has_broken_nothing(
    server: Server, method: str, params: dict[str, Any], action: str
) -> None:
    """elicitation.mdx, "Response Actions": it is an answer as good as another."""
    responses = {key: {"action": action} for key in ("who", "sure")}
    server.send(correct(method, {**params, "inputResponses": responses}))


def states_of(server: Server) -> list[str]:
    """The states of the first rounds of ASKING."""
    return [server.send(correct(*call)).result["requestState"] for call in ASKING]


def test_a_state_of_any_other_request_is_refused(server: Server) -> None:
    """Whatever the two have in common."""
    states = states_of(server)
    for method, params in ASKING:
        posts = [correct(method, {**params, "requestState": state}) for state in states]
        codes = [server.send(post).code for post in posts]
        assert sorted(codes, key=str) == [-32602] * (len(ASKING) - 1) + [None]


@st.composite
def continued(draw: st.DrawFn, states: list[str]) -> tuple[bool, Post]:
    """A second round, and whether it goes on with the state of its own first one."""
    first, second = draw(st.lists(st.integers(0, len(ASKING) - 1), min_size=2, max_size=2))
    second = draw(st.sampled_from([first, first, second]))
    state, caller = states[first], draw(st.sampled_from([None, None, None, SOMEBODY]))
    given = draw(st.one_of(st.just(state), spoiling.spoiled_text(state), spoiling.texts))
    keys = st.sampled_from(["who", "sure", "model"])
    responses = draw(
        st.dictionaries(keys, st.one_of(st.just(WHO), st.just(MODEL), spoiling.values))
    )
    method, params = ASKING[second]
    post = correct(method, {**params, "requestState": given, "inputResponses": responses}, caller)
    return (first, caller, _bytes(given)) == (second, None, _bytes(state)), post


def _bytes(state: str) -> bytes | None:
    """What stands in Base64, which has more than one text for the same bytes."""
    try:
        return base64.b64decode(state, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None


@sends(
    600,
    lambda server: continued(states_of(server)),
    *(None, -32602),
)
def test_a_state_goes_on_with_its_own_request_only(
    server: Server, drawn: tuple[bool, Post]
) -> None:
    """mrtr.mdx, "Security Considerations"."""
    same, post = drawn
    answer = server.send(post)
    if answer.code != -32700:
        assert (answer.code is None) == same


KEY: Final = {
    "tools": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
    "prompts": "name",
}
"""Member of a list's result -> what it is in the order of."""


LISTS: Final = [method for method, params in CALLS if method.endswith("/list")]


@st.composite
def cursors(draw: st.DrawFn, real: str) -> tuple[str, Post]:
    """A cursor, and a request of a list that it may be of."""
    written = st.builds(
        lambda member, name: base64.urlsafe_b64encode(f"{member}:{name}".encode()).decode(),
        st.sampled_from([*KEY, "", "x"]),
        st.text(max_size=8),
    )
    cursor = draw(st.one_of(st.just(real), spoiling.spoiled_text(real), written, spoiling.texts))
    return cursor, correct(draw(st.sampled_from(LISTS)), {"cursor": cursor})


@sends(
    400,
    lambda server: cursors(server.send(correct("resources/list", {})).result["nextCursor"]),
    *(None, -32602),
)
def test_a_cursor_leads_to_its_own_list_only(server: Server, drawn: tuple[str, Post]) -> None:
    """pagination.mdx, "Error Handling"."""
    cursor, post = drawn
    answer = server.send(post)
    assert answer.code in (None, -32602, -32700)
    if answer.code is None:
        member, _, last = (_bytes(cursor) or b"").decode().partition(":")
        assert all(item[KEY[member]] > last for item in answer.result[member])
