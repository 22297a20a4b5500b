"""Who calls, and what its access token is good for, as far as the function itself checks it.

Rules: authorization/index.mdx, "Error Handling" and "Scope Challenge Handling"; RFC 6750, section
3; RFC 9728, section 5.1; API Gateway developer guide, "Input format of a Lambda function for proxy
integration".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from mcp_tasks.environment import Auth
from mcp_tasks.limits import Limits
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server.caller import Caller, caller_of
from mcp_tasks.server.http.api_gateway import from_api_gateway
from mcp_tasks.server.http.endpoint import Endpoint
from mcp_tasks.server.http.messages import HttpRequest
from tests.unit.support.aws import Calls
from tests.unit.support.family import a_subtask
from tests.unit.support.listening import Streamed, Time
from tests.unit.support.stack import ENVIRONMENT, REVISION, Answer, Stack, buffered, mirrored
from tests.wire import LISTEN

INVALID, PARAMS, CAPABILITY = -32600, -32602, -32021
HANDSHAKE: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
BATCHES: Final = "2025-03-26"
ISSUER: Final = "https://issuer.example"
METADATA: Final = "https://api.example/v1/.well-known/oauth-protected-resource/mcp"
ALICE: Final = "arn:aws:iam::1:user/alice"
TOKEN: Final = {"principal": f"{ISSUER}|alice", "scopes": "tasks:use  echo:say"}

each_revision = pytest.mark.parametrize("revision", [REVISION, *HANDSHAKE])

# caller_of

SAID: Final[dict[str, tuple[Auth, dict[str, Any], Caller | None]]] = {
    "oauth": (
        "oauth",
        {"authorizer": TOKEN},
        Caller(f"{ISSUER}|alice", frozenset({"tasks:use", "echo:say"})),
    ),
    "oauth, no scopes": (
        "oauth",
        {"authorizer": {"principal": "i|s", "scopes": ""}},
        Caller("i|s", frozenset()),
    ),
    "oauth, scopes not said": (
        "oauth",
        {"authorizer": {"principal": "i|s"}},
        Caller("i|s", frozenset()),
    ),
    "oauth, no principal": ("oauth", {"authorizer": {"scopes": "a"}}, None),
    "oauth, an empty principal": ("oauth", {"authorizer": {"principal": "", "scopes": ""}}, None),
    "oauth, no authorizer": ("oauth", {}, None),
    "oauth, a null authorizer": ("oauth", {"authorizer": None}, None),
    "oauth, but signed": ("oauth", {"identity": {"userArn": ALICE}}, None),
    "oauth, another authorizer's": ("oauth", {"authorizer": {"principalId": "i|s"}}, None),
    "iam": ("iam", {"identity": {"userArn": ALICE}}, Caller(ALICE)),
    "iam, an identity pool's": (
        "iam",
        {"identity": {"userArn": ALICE, "cognitoIdentityId": "us-east-1:1"}},
        Caller(f"{ALICE}|us-east-1:1"),
    ),
    "iam, not in an identity pool": (
        "iam",
        {"identity": {"userArn": ALICE, "cognitoIdentityId": None}},
        Caller(ALICE),
    ),
    "iam, an identity and no ARN": (
        "iam",
        {"identity": {"userArn": None, "cognitoIdentityId": "us-east-1:1"}},
        None,
    ),
    "iam, no identity": ("iam", {}, None),
    "iam, a null identity": ("iam", {"identity": None}, None),
    "iam, but a token": ("iam", {"authorizer": TOKEN, "identity": {}}, None),
    "none": ("none", {}, Caller("anonymous")),
    "none, but signed": ("none", {"identity": {"userArn": ALICE}}, Caller("anonymous")),
    "none, but a token": ("none", {"authorizer": TOKEN}, Caller("anonymous")),
}


@pytest.mark.parametrize(("auth", "context", "caller"), SAID.values(), ids=SAID)
def test_the_caller_is_whom_the_gateway_has_let_in(
    auth: Auth, context: Mapping[str, Any], caller: Caller | None
) -> None:
    """One way to find out is never taken for another."""
    assert caller_of(context, auth) == caller


STS: Final = "arn:aws:sts::111122223333:assumed-role"
FEDERATED_USER: Final = "arn:aws:sts::111122223333:federated-user/alice"


@pytest.mark.parametrize(
    ("identity", "principal"),
    [
        ({"userArn": f"{STS}/deploy/alice"}, f"{STS}/deploy"),
        ({"userArn": f"{STS}/deploy/botocore-session-1764000000"}, f"{STS}/deploy"),
        ({"userArn": ALICE}, ALICE),
        (
            {"userArn": f"{STS}/pool/CognitoIdentityCredentials", "cognitoIdentityId": "eu:1"},
            f"{STS}/pool|eu:1",
        ),
    ],
    ids=["a session", "a restarted machine", "a user", "an identity pool's"],
)
def test_tasks_can_belong_to_a_role_whatever_its_session(
    identity: dict[str, str], principal: str
) -> None:
    """`-c principal=role`. An identity of an identity pool has tasks of its own in any case."""
    assert caller_of({"identity": identity}, "iam", "role") == Caller(principal)
    session = "|".join(identity.values())
    assert caller_of({"identity": identity}, "iam", "session") == Caller(session)


def test_a_federated_user_has_no_role() -> None:
    """Whoever may call GetFederationToken chooses the name; without it, all would be one."""
    context = {"identity": {"userArn": FEDERATED_USER}}
    assert caller_of(context, "iam", "role") is None
    assert caller_of(context, "iam", "session") == Caller(FEDERATED_USER)


def test_a_tokens_principal_is_not_shortened() -> None:
    """An issuer names its subjects as it likes."""
    named = {"principal": f"{STS}/deploy/alice", "scopes": ""}
    assert caller_of({"authorizer": named}, "oauth", "role") == Caller(
        named["principal"], frozenset()
    )


@pytest.mark.parametrize("auth", ["", "OAUTH", "None", "cognito"])
def test_a_way_that_does_not_exist_lets_nobody_in_by_a_token(auth: Any) -> None:
    assert caller_of({"authorizer": TOKEN}, auth) is None


@pytest.mark.parametrize(
    "event", [{}, {"requestContext": None}, {"headers": {"Authorization": "Bearer x"}}]
)
@pytest.mark.parametrize("auth", ["oauth", "iam"])
def test_what_a_client_sends_says_nothing_of_who_it_is(event: dict[str, Any], auth: Auth) -> None:
    assert from_api_gateway(event, auth).caller is None


# nobody


@dataclass
class As:
    """A `Stack.way` of a deployment with tokens: the caller that the authorizer names."""

    authorizer: Mapping[str, Any]
    streamed: Streamed | None = None

    def __call__(self, server: Endpoint, http: HttpRequest) -> Mapping[str, Any]:
        http = replace(http, caller=caller_of({"authorizer": self.authorizer}, "oauth"))
        return (self.streamed or buffered)(server, http)


def initialize(revision: str) -> tuple[str, dict[str, Any]]:
    """A first request of a revision."""
    if revision == REVISION:
        return "tools/list", {}
    client = {"capabilities": {}, "clientInfo": {"name": "unit", "version": "1"}}
    return "initialize", {"protocolVersion": revision, **client}


@each_revision
@pytest.mark.parametrize("streams", [False, True], ids=["buffered", "streamed"])
def test_nobody_is_let_in_whom_the_gateway_does_not_name(
    stack: Stack, revision: str, streams: bool
) -> None:
    method, params = initialize(revision)
    assert stack.post(method, params, revision=revision).status == 200
    stack.calls.made.clear()
    stack.way = As({}, Streamed(Time()) if streams else None)
    answer = stack.post(method, params, revision=revision)
    assert (answer.status, answer.code) == (401, INVALID)
    assert stack.calls.made == []


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        ("{", {}),
        ("[]", {}),
        ("x" * 2_000_000, {}),
        (json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * 2), {}),
        ("{}", {"Origin": "https://evil.example"}),
    ],
    ids=["not JSON", "an empty batch", "too large", "a batch", "another page"],
)
def test_a_request_without_a_caller_is_refused_unread(
    stack: Stack, body: str, headers: dict[str, Any]
) -> None:
    """Whatever else is wrong with it."""
    stack.way = As({})
    answer = stack.send(body, {"MCP-Protocol-Version": BATCHES, **headers})
    assert (answer.status, answer.code) == (401, INVALID)
    assert "id" not in answer.message


# scopes


def guarded(catalogue: Catalogue, **scopes: tuple[str, ...]) -> Catalogue:
    """The same tools, some of which need scopes."""
    tools = [replace(tool, scopes=scopes.get(tool.name, ())) for tool in catalogue.tools.values()]
    return Catalogue(tools, catalogue.resources.values(), catalogue.prompts.values())


class Guarded:
    """A server with tokens: each needs `tasks:use`, and some tools need more."""

    def __init__(self, aws: Calls, catalogue: Catalogue, base: str = "tasks:use") -> None:
        tools = guarded(
            catalogue,
            echo=("echo:say",),
            count=("count:up", "tasks:use"),
            wait=("wait:long", "wait:more"),
        )
        environment = {
            **ENVIRONMENT,
            "AUTH": "oauth",
            "SCOPES": base,
            "RESOURCE_METADATA_URL": METADATA,
        }
        self.stack = Stack(aws, tools, environment)

    def call(self, scopes: str, tool: str, arguments: Any, **options: Any) -> Answer:
        """A call with a token of these scopes."""
        self.stack.way = As({"principal": "i|alice", "scopes": scopes})
        return self.stack.call(tool, arguments, **options)

    def batch(self, scopes: str, *texts: str | None) -> Answer:
        """Calls of `echo`; None is a ping."""
        self.stack.way = As({"principal": "i|alice", "scopes": scopes})
        bodies = []
        for n, text in enumerate(texts):
            call = {"name": "echo", "arguments": {"text": text}}
            method = "ping" if text is None else "tools/call"
            params = {} if text is None else call
            bodies.append({"jsonrpc": "2.0", "id": n, "method": method, "params": params})
        headers = mirrored("tools/call", {}, BATCHES)
        return self.stack.send(json.dumps(bodies), headers, revision=BATCHES)


@pytest.fixture
def server(aws: Calls, catalogue: Catalogue) -> Guarded:
    return Guarded(aws, catalogue)


def challenged(answer: Answer, scopes: str) -> bool:
    """Whether an answer is the challenge for a token with all of these scopes."""
    wanted = f'Bearer error="insufficient_scope", scope="{scopes}", resource_metadata="{METADATA}"'
    return (
        (answer.status, answer.code) == (403, INVALID)
        and answer.headers["WWW-Authenticate"] == wanted
        and answer.headers["Content-Type"] == "application/json"
        and answer.error["data"] == {"requiredScopes": scopes.split()}
    )


@each_revision
@pytest.mark.parametrize(
    "scopes", ["", "tasks:use", "echo:say", "tasks:use echo", "tasks:use ECHO:SAY echo:say:more"]
)
def test_a_token_that_lacks_a_scope_is_challenged(
    server: Guarded, revision: str, scopes: str
) -> None:
    """ "Runtime Insufficient Scope Errors": 403, with all scopes that the request needs."""
    answer = server.call(scopes, "echo", {"text": "a"}, revision=revision)
    assert challenged(answer, "tasks:use echo:say")
    assert answer.message["id"] == 1


@each_revision
@pytest.mark.parametrize("scopes", ["tasks:use echo:say", "echo:say a b tasks:use"])
def test_a_token_with_all_scopes_is_good(server: Guarded, revision: str, scopes: str) -> None:
    answer = server.call(scopes, "echo", {"text": "a"}, revision=revision)
    assert answer.result["content"] == [{"type": "text", "text": "a"}]


def test_a_tool_without_scopes_needs_those_of_every_request(server: Guarded) -> None:
    assert server.call("tasks:use", "half", {"number": 1}).status == 200
    assert challenged(server.call("half", "half", {"number": 1}), "tasks:use")


def test_a_scope_is_named_once(server: Guarded) -> None:
    assert challenged(server.call("", "count", {"upto": 3}), "tasks:use count:up")


def test_without_scopes_of_every_request_a_tool_needs_its_own(
    aws: Calls, catalogue: Catalogue
) -> None:
    server = Guarded(aws, catalogue, base="")
    assert server.call("", "half", {"number": 1}).status == 200
    assert challenged(server.call("", "echo", {"text": "a"}), "echo:say")


def test_a_token_that_lacks_a_scope_starts_nothing(server: Guarded) -> None:
    """It acquires no quota and no key; a repeated call is checked like the first."""
    key: dict[str, Any] = {"headers": {"Idempotency-Key": "k"}}
    assert challenged(server.call("tasks:use", "count", {"upto": 3}, **key), "tasks:use count:up")
    assert server.stack.calls.made == []
    assert server.call("tasks:use count:up", "count", {"upto": 3}, **key).status == 200
    server.stack.calls.forget()
    assert challenged(server.call("tasks:use", "count", {"upto": 3}, **key), "tasks:use count:up")
    assert server.stack.calls.made == []


def test_scopes_come_before_everything_else_about_a_tool(server: Guarded) -> None:
    """The error says neither its arguments nor whether it needs tasks."""
    wanted = "tasks:use wait:long wait:more"
    for scopes in ("tasks:use wait:long", "wait:long wait:more"):
        assert challenged(server.call(scopes, "wait", {"x": 1}, capabilities={}), wanted)
    assert server.call(wanted, "wait", {}, capabilities={}).code == CAPABILITY
    assert server.call("", "nothing", {}).code == PARAMS


@pytest.mark.parametrize("user_arn", [None, ALICE])
def test_callers_without_tokens_have_no_scopes_to_check(
    server: Guarded, user_arn: str | None
) -> None:
    server.stack.way = buffered
    assert server.stack.call("echo", {"text": "a"}, user_arn=user_arn).status == 200


def test_a_batch_is_checked_one_by_one(server: Guarded) -> None:
    """A batch is answered with 200; the challenge is in its header all the same."""
    answer = server.batch("tasks:use", None, "a", "b", None)
    assert answer.status == 200
    assert answer.batch is not None
    codes = [message.get("error", {}).get("code") for message in answer.batch]
    assert codes == [None, INVALID, INVALID, None]
    assert 'scope="tasks:use echo:say"' in answer.headers["WWW-Authenticate"]
    answer = server.batch("tasks:use echo:say", None, "a")
    assert answer.batch is not None
    assert all("result" in message for message in answer.batch)
    assert "WWW-Authenticate" not in answer.headers


def test_a_streamed_answer_has_the_challenge(server: Guarded) -> None:
    server.stack.way = As({"principal": "i|alice", "scopes": ""}, Streamed(Time()))
    assert challenged(server.stack.call("echo", {"text": "a"}), "tasks:use echo:say")


def test_tasks_are_the_principals_that_the_token_names(server: Guarded) -> None:
    task_id = server.call("tasks:use count:up", "count", {"upto": 3}).result["taskId"]
    (row,) = server.stack.rows
    assert row["principal"] == {"S": "i|alice"}
    assert server.stack.task(task_id)["status"] == "working"
    for other in ("i|bob", "i|alic", "j|alice", "anonymous"):
        server.stack.way = As({"principal": other, "scopes": "tasks:use count:up"})
        assert server.stack.post("tasks/get", {"taskId": task_id}).code == PARAMS


# tasks

NO_TASK_METHODS: Final = {
    *("server/discover", "initialize", "ping", "logging/setLevel"),
    *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
    *("tools/call", "prompts/get", "resources/read", "completion/complete"),
    *("resources/subscribe", "resources/unsubscribe"),
}
"""The methods that are about no task that exists. Every other one has to check its scopes."""
STRONG: Final = "tasks:use wait:long wait:more"


def task_methods(server: Guarded) -> list[tuple[str, str]]:
    """Every method that is about a task, with its protocol revision."""
    revisions = server.stack.server._revisions
    tables = [revisions.modern, *revisions._handshake.values()]
    return [
        (revision.version, method)
        for revision in tables
        for method in revision.method_table
        if method not in NO_TASK_METHODS
    ]


def about_task(server: Guarded, scopes: str, method: str, revision: str, *ids: str) -> Answer:
    """A request about tasks, with a token of these scopes."""
    server.stack.way = As({"principal": "i|alice", "scopes": scopes})
    params: dict[str, Any] = {"taskId": ids[0], "inputResponses": {}}
    if method == LISTEN:
        params = {"notifications": {"taskIds": list(ids)}}
    return server.stack.post(method, params, revision=revision)


def test_every_method_about_a_task_needs_the_scopes_of_its_tool(server: Guarded) -> None:
    """tasks.md, "Security Considerations". A method that is added later is found here."""
    task_id = server.call(STRONG, "wait", {}).result["taskId"]
    before = server.stack.rows
    found = task_methods(server)
    methods = {method for _, method in found}
    assert methods >= {"tasks/get", "tasks/update", "tasks/cancel", LISTEN}
    for revision, method in found:
        for weak in ("tasks:use", "tasks:use wait:long"):
            answer = about_task(server, weak, method, revision, task_id)
            assert challenged(answer, STRONG), method
    assert server.stack.rows == before
    assert about_task(server, STRONG, "tasks/get", REVISION, task_id).status == 200


def test_another_callers_task_is_unknown_whatever_its_scopes(server: Guarded) -> None:
    """The challenge is for the task's owner alone: it would tell others that the task exists."""
    task_id = server.call(STRONG, "wait", {}).result["taskId"]
    for scopes in ("tasks:use", STRONG):
        server.stack.way = As({"principal": "i|bob", "scopes": scopes})
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            answer = server.stack.post(method, {"taskId": task_id, "inputResponses": {}})
            assert (answer.status, answer.code) == (400, PARAMS)


def test_a_subscription_leaves_out_tasks_whose_scopes_the_token_lacks(server: Guarded) -> None:
    guarded_id = server.call(STRONG, "wait", {}).result["taskId"]
    open_id = server.call("tasks:use count:up", "count", {"upto": 3}).result["taskId"]
    server.stack.cancel(open_id)
    answer = about_task(server, "tasks:use count:up", LISTEN, REVISION, guarded_id, open_id)
    acknowledged = answer.notifications[0]["params"]["notifications"]
    assert acknowledged == {"taskIds": [open_id]}


@pytest.mark.parametrize("later", [(), ("wait:other",), None])
def test_a_task_keeps_the_scopes_that_its_tool_had(
    server: Guarded, catalogue: Catalogue, later: tuple[str, ...] | None
) -> None:
    """A later deployment may need others besides; a tool that is gone opens nothing."""
    task_id = server.call(STRONG, "wait", {}).result["taskId"]
    tools = [
        replace(tool, scopes=later or ())
        for tool in catalogue.tools.values()
        if tool.name != "wait" or later is not None
    ]
    server.stack.catalogue = Catalogue(tools)
    server.stack.serve()
    needed = {*STRONG.split(), *(later or ())}
    answer = about_task(server, "tasks:use", "tasks/get", REVISION, task_id)
    assert answer.status == 403
    assert set(answer.error["data"]["requiredScopes"]) == needed
    assert about_task(server, " ".join(needed), "tasks/get", REVISION, task_id).status == 200


def test_a_repeated_call_needs_the_scopes_that_its_task_was_created_with(
    server: Guarded, catalogue: Catalogue
) -> None:
    """The tool needs fewer since: the call may be sent, and its answer would tell of the task."""
    key: dict[str, Any] = {"headers": {"Idempotency-Key": "k"}}
    created = server.call(STRONG, "wait", {}, **key).result["taskId"]
    server.stack.catalogue = Catalogue(replace(t, scopes=()) for t in catalogue.tools.values())
    server.stack.serve()
    refused = server.call("tasks:use", "wait", {}, **key)
    assert refused.status == 403
    assert set(refused.error["data"]["requiredScopes"]) == set(STRONG.split())
    assert created not in json.dumps(refused.error)
    assert server.call(STRONG, "wait", {}, **key).result["taskId"] == created


# IAM


@pytest.mark.parametrize("names", [f"{STS}/deploy", FEDERATED_USER.rpartition("/")[0]])
@pytest.mark.parametrize(
    ("per", "statuses"), [("principal", [200, 200, 200]), ("role", [200, 200, 429])]
)
def test_a_name_that_a_caller_chooses_brings_no_other_limits(
    aws: Calls, catalogue: Catalogue, names: str, per: str, statuses: list[int]
) -> None:
    """`-c quota_per=role`: tasks belong to the session, and count with the role's."""
    limits = Limits(max_open_tasks=2).to_json()
    environment = {**ENVIRONMENT, "AUTH": "iam", "LIMITS": limits, "QUOTA_PER": per}
    stack = Stack(aws, catalogue, environment)
    callers = [f"{names}/{name}" for name in ("one", "two", "three")]
    answers = [stack.call("count", {"upto": 3}, user_arn=caller) for caller in callers]
    assert [answer.status for answer in answers] == statuses
    owners = {row["principal"]["S"] for row in stack.rows}
    assert owners == set(callers[: statuses.count(200)])


def test_a_subtask_is_as_open_as_the_task_that_was_asked_for(server: Guarded) -> None:
    """Whatever its own tool needs: all `childTaskIds` can be read (SEP-2268)."""
    task_id = server.call("tasks:use count:up", "count", {"upto": 3}).result["taskId"]
    table = server.stack.deployment.task_table
    parent = table.find(task_id)
    assert parent is not None
    about = {"created_at": parent.created_at, "ttl_ms": parent.ttl_ms, "scopes": parent.scopes}
    subtask = a_subtask(0, parent, tool="wait", **about)
    table.subtasks.add(parent, [subtask], parent.created_at)

    def read(scopes: str) -> Answer:
        server.stack.way = As({"principal": "i|alice", "scopes": scopes})
        return server.stack.post("tasks/get", {"taskId": subtask.task_id})

    assert read("tasks:use count:up").result["parentTaskId"] == task_id
    assert challenged(read("tasks:use wait:long wait:more"), "tasks:use count:up")
