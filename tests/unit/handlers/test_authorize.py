"""The function `authorize`: an event of API Gateway, and each of the four answers to it.

Sources: API Gateway developer guide, "Use API Gateway Lambda authorizers"; RFC 6750;
authorization/index.mdx, "Access Token Usage" and "Error Handling".
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from mcp_tasks import metrics
from mcp_tasks.authorization.jwks import KeysUnavailable
from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue
from tests.integration.support.issuer import AUDIENCE, Issuer, Signer
from tests.paths import PLATFORM_TOOLS, ROOT
from tests.unit.support.cloud import Context
from tests.unit.support.emf import metrics_in

EVENTS: Final = ROOT / "events"
METADATA: Final = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
PLAIN_TOOL: Final = "hello"
GUARDED: Final = "transfer.money"
GUARDED_SCOPES: Final = ("money:read", "base", "money:move")
ODD: Final = "geld überweisen"

Authorize = Callable[..., Any]


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    """An issuer that answers."""
    with Issuer("/tenant") as issuer:
        yield issuer


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle's catalogue: a tool without scopes, one with, and one whose name is encoded."""
    folder = tmp_path_factory.mktemp("bundle")
    (plain,) = (
        entry
        for entry in Catalogue.discover(PLATFORM_TOOLS).tools.values()
        if entry.name == PLAIN_TOOL
    )
    guarded = [replace(plain, name=name, scopes=GUARDED_SCOPES) for name in (GUARDED, ODD)]
    Catalogue([plain, *guarded]).write(folder / FILE_NAME)
    return folder


@pytest.fixture
def load(
    issuer: Issuer, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., ModuleType]]:
    """Load the function as a new instance does."""
    monkeypatch.setattr("mcp_tasks.authorization.request_authorizer.BUNDLE", bundle)

    def load(**environment: str) -> ModuleType:
        found = {
            "ISSUER": issuer.url,
            "AUDIENCE": AUDIENCE,
            "SCOPES": "",
            "RESOURCE_METADATA_URL": METADATA,
            **environment,
        }
        for name, value in found.items():
            monkeypatch.setenv(name, value)
        sys.modules.pop("authorize.handler", None)
        return importlib.import_module("authorize.handler")

    yield load
    sys.modules.pop("authorize.handler", None)


@pytest.fixture
def authorize(load: Callable[..., ModuleType]) -> Authorize:
    """The function, in a deployment whose every request needs the scope `base`."""
    handler = load(SCOPES="base").handler
    return lambda event: handler(event, Context())


def sample(name: str = "authorize-tools-call") -> dict[str, Any]:
    """An event of events/."""
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return event


def question(*tokens: str, **headers: str | None) -> dict[str, Any]:
    """A REQUEST authorizer's event, with those Authorization headers, and some headers replaced."""
    changed = {name.replace("_", "-"): value for name, value in headers.items()}
    event = sample()
    for member in ("headers", "multiValueHeaders"):
        del event[member]["Authorization"]
        for name, value in changed.items():
            event[member].pop(name, None)
            if value is not None:
                event[member][name] = value if member == "headers" else [value]
    if tokens:
        event["headers"]["Authorization"] = tokens[-1]
        event["multiValueHeaders"]["Authorization"] = list(tokens)
    return event


def unauthorized(authorize: Authorize, event: dict[str, Any]) -> None:
    """Expect the error that API Gateway answers with 401."""
    with pytest.raises(Exception, match=r"^Unauthorized$") as found:
        authorize(event)
    error = found.value
    assert (type(error), error.__context__, error.__cause__) == (Exception, None, None)


def test_a_good_token_is_allowed_with_its_principal_and_its_scopes(
    authorize: Authorize, issuer: Issuer
) -> None:
    event = question(f"Bearer {issuer.mint(scope='base extra')}")
    assert authorize(event) == {
        "principalId": f"{issuer.url}|alice",
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Action": "execute-api:Invoke",
                    "Effect": "Allow",
                    "Resource": "arn:aws:execute-api:eu-central-1:111122223333:"
                    "a1b2c3d4e5/v1/POST/mcp",
                }
            ],
        },
        "context": {"principal": f"{issuer.url}|alice", "scopes": "base extra"},
    }


def test_a_deployment_may_need_no_scope(load: Callable[..., ModuleType], issuer: Issuer) -> None:
    """The context's values are strings, of which one may be empty."""
    answer = load().handler(question(f"Bearer {issuer.mint()}"), Context())
    assert answer["context"] == {"principal": f"{issuer.url}|alice", "scopes": ""}


@pytest.mark.parametrize("wrong", Signer("https://a.example").bad_tokens())
def test_a_bad_token_is_unauthorized(authorize: Authorize, issuer: Issuer, wrong: str) -> None:
    unauthorized(authorize, question(f"Bearer {issuer.bad_tokens()[wrong]}"))


def test_a_request_without_a_token_is_unauthorized(authorize: Authorize) -> None:
    unauthorized(authorize, question())
    unauthorized(authorize, sample("authorize-no-token"))


def test_an_event_without_any_header_is_unauthorized(authorize: Authorize) -> None:
    unauthorized(authorize, {**question(), "headers": None, "multiValueHeaders": None})
    unauthorized(authorize, {"methodArn": question()["methodArn"]})


@pytest.mark.parametrize(
    "text", ["Bearer {}", "bearer {}", "BEARER {}", "bEaReR   {}", " Bearer {}\t"]
)
def test_the_scheme_is_written_in_any_case(authorize: Authorize, issuer: Issuer, text: str) -> None:
    """RFC 9110, section 11.1."""
    assert allowed(authorize(question(text.format(issuer.mint(scope="base")))))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "Bearer",
        "Bearer ",
        "Bearer{}",
        "Bearer\t{}",
        "Bearer {} ,",
        "Bearer {0}, Bearer {0}",
        "Bearer {0} {0}",
        "Bearer {}\n",
        "Bearer é{}",
        "Bearer {}é",
        "Beare\u017f {}",
        "Basic {}",
        "DPoP {}",
        "Bearer token={}",
        'Bearer "{}"',
    ],
)
def test_anything_but_one_bearer_token_is_unauthorized(
    authorize: Authorize, issuer: Issuer, text: str
) -> None:
    """RFC 6750, section 2.1."""
    unauthorized(authorize, question(text.format(issuer.mint(scope="base"))))


def allowed(answer: dict[str, Any]) -> bool:
    """Whether the policy lets the request in."""
    (statement,) = answer["policyDocument"]["Statement"]
    return bool(statement["Effect"] == "Allow")


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
@pytest.mark.parametrize("members", [["headers", "multiValueHeaders"], ["headers"]])
def test_headers_come_in_any_case_and_maybe_once(
    authorize: Authorize, issuer: Issuer, name: str, members: list[str]
) -> None:
    event, value = question(), f"Bearer {issuer.mint(scope='base')}"
    event["headers"][name] = value
    event["multiValueHeaders"][name] = [value]
    for member in {"headers", "multiValueHeaders"} - set(members):
        event[member] = None
    assert allowed(authorize(event))


def test_two_authorization_headers_are_unauthorized(authorize: Authorize, issuer: Issuer) -> None:
    """A proxy in front may have checked the other one."""
    good = f"Bearer {issuer.mint(scope='base')}"
    unauthorized(authorize, question(good, good))
    unauthorized(authorize, question("Basic eDp5", good))
    two_cases = question(good)
    two_cases["multiValueHeaders"]["authorization"] = [good]
    unauthorized(authorize, two_cases)
    two_cases["multiValueHeaders"] = None
    two_cases["headers"]["authorization"] = good
    unauthorized(authorize, two_cases)


@pytest.mark.parametrize("name", ["access_token", "ACCESS_TOKEN"])
@pytest.mark.parametrize("member", ["queryStringParameters", "multiValueQueryStringParameters"])
@pytest.mark.parametrize("header", [True, False])
def test_a_token_in_the_query_is_unauthorized(
    authorize: Authorize, issuer: Issuer, name: str, member: str, header: bool
) -> None:
    """ "Access tokens MUST NOT be included in the URI query string"."""
    token = issuer.mint(scope="base")
    event = question(*([f"Bearer {token}"] if header else []))
    event[member] = {name: token if member == "queryStringParameters" else [token]}
    unauthorized(authorize, event)


def test_another_query_does_not_matter(authorize: Authorize, issuer: Issuer) -> None:
    event = question(f"Bearer {issuer.mint(scope='base')}")
    event["queryStringParameters"] = {"a": "b"}
    event["multiValueQueryStringParameters"] = {"a": ["b"]}
    assert allowed(authorize(event))


def challenged(answer: dict[str, Any], scopes: str) -> bool:
    """Whether the request is denied with a challenge for these scopes."""
    expected = (
        f'Bearer error="insufficient_scope", scope="{scopes}", resource_metadata="{METADATA}"'
    )
    return not allowed(answer) and answer["context"] == {"challenge": expected}


def test_a_token_without_a_scope_that_all_requests_need_is_denied_with_a_challenge(
    authorize: Authorize, issuer: Issuer
) -> None:
    answer = authorize(question(f"Bearer {issuer.mint(scope='Base base2')}"))
    assert challenged(answer, "base")
    assert answer["principalId"] == f"{issuer.url}|alice"


def encoded(name: str) -> str:
    """A name as the Base64 sentinel (streamable-http.mdx, "Value Encoding")."""
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="


@pytest.mark.parametrize("name", [GUARDED, encoded(GUARDED), encoded(ODD), f" {GUARDED}\t"])
@pytest.mark.parametrize(
    ("scope", "enough"),
    [
        (None, False),
        ("base", False),
        ("base money:read", False),
        ("money:read money:move", False),
        ("base money:read money:move", True),
    ],
)
def test_a_tools_scopes_are_needed_and_one_challenge_names_all(
    authorize: Authorize, issuer: Issuer, name: str, scope: str | None, enough: bool
) -> None:
    """ "Servers SHOULD include all scopes required for the current operation in a single
    challenge"."""
    answer = authorize(question(f"Bearer {issuer.mint(scope=scope)}", Mcp_Name=name))
    if enough:
        assert allowed(answer)
    else:
        assert challenged(answer, "base money:read money:move")


@pytest.mark.parametrize(
    "headers",
    [
        {"Mcp_Name": "unknown"},
        {"Mcp_Name": None},
        {"Mcp_Name": ""},
        {"Mcp_Name": "=?base64?%?="},
        {"Mcp_Name": "é"},
        {"Mcp_Method": "tools/list", "Mcp_Name": GUARDED},
        {"Mcp_Method": "prompts/get", "Mcp_Name": GUARDED},
        {"Mcp_Method": None, "Mcp_Name": GUARDED},
        {"Mcp_Method": "TOOLS/CALL", "Mcp_Name": GUARDED},
    ],
)
def test_where_the_headers_name_no_tool_the_body_decides(
    authorize: Authorize, issuer: Issuer, headers: dict[str, str | None]
) -> None:
    """The api function refuses headers that differ from the body, and checks the scopes again."""
    assert allowed(authorize(question(f"Bearer {issuer.mint(scope='base')}", **headers)))


@pytest.mark.parametrize("name", ["Mcp-Name", "Mcp-Method"])
def test_where_a_header_came_twice_the_body_decides(
    authorize: Authorize, issuer: Issuer, name: str
) -> None:
    event = question(f"Bearer {issuer.mint(scope='base')}", Mcp_Name=GUARDED)
    event["multiValueHeaders"][name] *= 2
    assert allowed(authorize(event))


def test_a_machine_has_a_principal_of_its_own(authorize: Authorize, issuer: Issuer) -> None:
    token = issuer.mint(sub=None, client_id="alice", scope="base")
    answer = authorize(question(f"Bearer {token}"))
    assert answer["context"]["principal"] == f"{issuer.url}#client|alice"


def test_an_issuer_that_cannot_be_reached_is_an_error_and_not_unauthorized(
    load: Callable[..., ModuleType],
) -> None:
    """API Gateway answers 401 for one text alone; any other error is AUTHORIZER_FAILURE."""
    with Issuer() as down:
        down.available = False
        handler = load(ISSUER=down.url).handler
        with pytest.raises(KeysUnavailable, match="cannot be fetched"):
            handler(question(f"Bearer {down.mint()}"), Context())
        unauthorized(lambda event: handler(event, Context()), question("Bearer garbage"))


def test_the_keys_are_fetched_once_by_an_instance(authorize: Authorize, issuer: Issuer) -> None:
    issuer.fetches.clear()
    for number in range(20):
        assert allowed(authorize(question(f"Bearer {issuer.mint(scope='base')}")))
        unauthorized(authorize, question(f"Bearer {issuer.mint(header={'kid': str(number)})}"))
    assert issuer.fetches == {
        "/tenant/.well-known/openid-configuration": 1,
        "/tenant/keys": 1,
    }


def test_an_issuer_without_tls_does_not_start(load: Callable[..., ModuleType]) -> None:
    with pytest.raises(ValueError, match="no https URL"):
        load(ISSUER="http://login.example")


@pytest.fixture
def log(
    load: Callable[..., ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> tuple[Authorize, io.StringIO]:
    """The function, and what it and its libraries log, at the level DEBUG."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    text = io.StringIO()
    module = load(SCOPES="base")
    monkeypatch.setattr(module.logger.registered_handler, "stream", text)
    return lambda event: module.handler(event, Context()), text


def lines(text: io.StringIO) -> list[dict[str, Any]]:
    """The log lines about the decision."""
    return [
        {name: line.get(name) for name in ("message", "reason", "principal") if name in line}
        for line in map(json.loads, text.getvalue().splitlines())
    ]


def test_one_line_tells_of_a_decision(log: tuple[Authorize, io.StringIO], issuer: Issuer) -> None:
    """Only a good token's principal is logged: a bad token may have any name."""
    authorize, text = log
    authorize(question(f"Bearer {issuer.mint(scope='base')}"))
    authorize(question(f"Bearer {issuer.mint(scope='other')}"))
    unauthorized(authorize, question(f"Bearer {issuer.mint(exp=1)}"))
    unauthorized(authorize, question())
    alice = f"{issuer.url}|alice"
    assert lines(text) == [
        {"message": "request allowed", "principal": alice},
        {"message": "request denied", "reason": "insufficient_scope", "principal": alice},
        {"message": "access token refused", "reason": "expired"},
        {"message": "access token refused", "reason": "no_token"},
    ]


def test_nothing_of_a_token_is_logged(
    log: tuple[Authorize, io.StringIO],
    issuer: Issuer,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    authorize, text = log
    secret = "never-to-be-logged"
    tokens = [
        *issuer.bad_tokens().values(),
        issuer.mint(scope="base", email=secret),
        issuer.mint(scope=secret),
        issuer.mint(header={"kid": secret}),
        issuer.mint(iss=secret, sub=secret),
        issuer.mint(exp=1, sub=secret),
        issuer.mint(aud=secret),
        f"{secret}.{secret}.{secret}",
    ]
    errors = []
    for token in tokens:
        for event in (
            question(f"Bearer {token}"),
            question(f"Basic {token}"),
            question(f"Bearer {token}", f"Bearer {token}"),
            {**question(), "queryStringParameters": {"access_token": token}},
        ):
            try:
                authorize(event)
            except Exception as error:
                errors.append(str(error))  # Lambda prints it
    assert set(errors) == {"Unauthorized"}
    said = text.getvalue() + caplog.text + "".join(capfd.readouterr())
    assert len(lines(text)) == len(tokens) * 4
    parts = {part for token in tokens for part in (token, *token.split(".")) if len(part) > 8}
    assert not [part for part in {*parts, secret} if part in said]


START: Final = """
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import authorize.handler
heavy = {"boto3", "botocore.session", "pydantic", "pydantic_core", "jsonschema", "tools"}
heavy |= {"jsonschema_rs", "requests", "urllib3", "mcp_tasks.deployment"}
print(json.dumps(sorted(heavy & sys.modules.keys())))
"""


def test_a_cold_start_imports_no_boto3_pydantic_or_tool() -> None:
    """Every request waits for this function, before the other (docs/design.md, "Cold starts")."""
    done = subprocess.run(
        [sys.executable, "-c", START, str(ROOT / "functions")],
        env={
            "ISSUER": "https://login.example",
            "AUDIENCE": AUDIENCE,
            "SCOPES": "",
            "RESOURCE_METADATA_URL": METADATA,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []


def test_refused_tokens_are_counted_and_no_others(
    authorize: Authorize, issuer: Issuer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lambda counts them as errors of the function, which alarms therefore leave out."""
    authorize(question(f"Bearer {issuer.mint(scope='base')}"))
    authorize(question(f"Bearer {issuer.mint(scope='other')}"))
    assert metrics_in(capsys.readouterr().out) == []
    unauthorized(authorize, question("Bearer x"))
    (line,) = metrics_in(capsys.readouterr().out)
    assert line.values == {metrics.TOKENS_REFUSED: [1]}
    assert line.members == {"service": metrics.SERVICE}
