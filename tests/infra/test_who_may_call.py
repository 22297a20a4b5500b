"""`-c auth=`: three ways in, each chosen by its name.

Sources: authorization/index.mdx; RFC 9728; API Gateway developer guide, "Use API Gateway Lambda
authorizers" and "Gateway response types".
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from infra.auth_options import KEYS, Iam, OAuth
from infra.caller_options import SCOPE
from infra.endpoint_address import serves_its_root
from infra.settings import Settings
from mcp_tasks.protocol.www_authenticate import bearer_challenge
from mcp_tasks.registry.catalogue import Catalogue
from tests.infra.assembly import Assembly, entry
from tests.infra.conftest import IAM, OAUTH
from tests.paths import ROOT

WELL_KNOWN = "/.well-known/oauth-protected-resource"
EXECUTE_API = "https://<Api/Gateway/RestApi>.execute-api.<AWS::Region>.<AWS::URLSuffix>/v1"
BASES = {"streaming": EXECUTE_API, "domain": "https://mcp.example.com"}
BASES["fork"] = "https://cdn.example.com/tools"
"""Job -> what its URLs begin with."""
AUDIENCES = {name: f"{url}/mcp" for name, url in BASES.items()}
AUDIENCES["fork"] = "https://cdn.example.com/tools/mcp api://mcp"
METADATA = {name: f"{base}{WELL_KNOWN}/mcp" for name, base in BASES.items()}
METADATA["fork"] = f"https://cdn.example.com{WELL_KNOWN}/tools/mcp"
"""Job -> the URL of its metadata, with the path inserted (RFC 9728, section 3.1). API Gateway's own
host can only have it below the stage."""
UNKNOWN = {"ANY /mcp", "ANY /", "ANY /{proxy+}"}
"""What answers all that the API has no method for."""
SCOPES = {"streaming": [], "domain": ["mcp", "tasks:read"], "fork": []}


def _settings(**context: str) -> Settings:
    return Settings.from_context(context.get, ROOT)


def _methods(assembly: Assembly, api: str = "Api/Gateway/RestApi") -> dict[str, Any]:
    """`GET /mcp` -> the method."""

    def resource(path: str) -> str:
        return path.removeprefix(f"{api}/Default").rpartition("/")[0].strip("/")

    return {
        f"{method['HttpMethod']} /{resource(path)}": method
        for path, method in assembly.resources("AWS::ApiGateway::Method").items()
        if path.startswith(api)
    }


def _responses(assembly: Assembly) -> dict[str, Any]:
    responses = assembly.resources("AWS::ApiGateway::GatewayResponse").items()
    return {r["ResponseType"]: r for path, r in responses if path.startswith("Api/")}


def _variables(assembly: Assembly, function: str) -> dict[str, str]:
    found = assembly.resources("AWS::Lambda::Function")[f"{function}/Function"]
    variables: dict[str, str] = found["Environment"]["Variables"]
    return variables


# ---- The option ----------------------------------------------------------------------------------


def test_on_aws_nothing_is_deployed_without_auth(
    assemblies: dict[str, Assembly],
) -> None:
    """The error names the three ways, and what each needs."""
    error = str(assemblies["refused: no auth"].error)
    assert error.startswith("ValueError: -c auth= is missing")
    (oauth, iam, none) = re.findall(r"^  -c auth=(.*)$", error, re.MULTILINE)
    assert oauth.startswith("oauth: ")
    assert all(f"-c {key}=" in oauth for key in ("issuer", "audience", "scopes"))
    assert iam.startswith("iam: ")
    assert "-c principal=" in iam
    assert none.startswith("none: ")
    assert "anybody" in none


def test_an_unknown_auth_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^-c auth=basic: one of oauth .*; iam .*; none "):
        _settings(auth="basic")


def test_oauth_takes_an_issuer_an_audience_and_scopes() -> None:
    settings = _settings(**OAUTH, audience="api://mcp", scopes=" mcp  tasks:read mcp ")
    expected = OAuth("https://login.example/tenant/v2.0", ("api://mcp",), ("mcp", "tasks:read"))
    assert (settings.auth, settings.oauth) == ("oauth", expected)


@pytest.mark.parametrize("given", [{}, {"audience": "api://mcp"}])
def test_oauth_says_what_it_misses(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"^-c auth=oauth: -c issuer= is missing$"):
        _settings(auth="oauth", **given)


def test_several_audiences_are_accepted() -> None:
    oauth = _settings(**{**OAUTH, "audience": " https://a.example/mcp  4v8example "}).oauth
    assert oauth is not None
    assert oauth.audiences == ("https://a.example/mcp", "4v8example")


@pytest.mark.parametrize(
    "issuer",
    [
        "http://login.example",
        "http://127.0.0.1:8000",
        "login.example",
        "https://",
        "https://login.example?tenant=1",
        "https://login.example#x",
        "https://user@login.example",
        "https://login.example/ a",
        "https://login.example/$a",
        "https://login.example/'",
        'https://login.example/"',
    ],
)
def test_an_issuer_is_an_https_url_without_query_and_fragment(issuer: str) -> None:
    """RFC 8414, section 2. Quotes and `$` would end, or change, what the gateway answers."""
    with pytest.raises(ValueError, match=rf"^-c issuer={re.escape(issuer)}: an https:// URL"):
        _settings(**{**OAUTH, "issuer": issuer})


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:8000", "http://localhost/realm/x"])
def test_an_issuer_on_this_machine_is_for_the_emulator(issuer: str) -> None:
    settings = _settings(**{**OAUTH, "issuer": issuer, "profile": "local"})
    assert settings.oauth
    assert settings.oauth.issuer == issuer
    with pytest.raises(ValueError, match=r"-c issuer=http://127\.0\.0\.1\.evil.example"):
        _settings(**OAUTH | {"issuer": "http://127.0.0.1.evil.example", "profile": "local"})


@pytest.mark.parametrize("scope", ['a"b', "a\\b", "a$b", "a#b", "a'b", "\u00e4"])
def test_a_scope_cannot_say_what_the_gateway_would_understand(scope: str) -> None:
    """RFC 6749, section 3.3, without what templates and header values of API Gateway mean."""
    with pytest.raises(ValueError, match=r"^-c scopes=.*: scopes separated by spaces"):
        _settings(**OAUTH, scopes=f"mcp {scope}")


def test_all_else_that_may_be_in_a_scope_may_be_in_one() -> None:
    allowed = {chr(code) for code in range(0x21, 0x7F)} - set("\"\\$#'")
    assert {chr(code) for code in range(256) if re.fullmatch(SCOPE, chr(code))} == allowed


@pytest.mark.parametrize("audience", ["a" * 256, "b " + "a" * 256, "\u00e4", "a \u00e4"])
def test_audiences_are_words_of_bounded_length(audience: str) -> None:
    with pytest.raises(ValueError, match=r"^-c audience=.*: audiences separated by spaces"):
        _settings(**{**OAUTH, "audience": audience})


@pytest.mark.parametrize("key", KEYS["oauth"])
@pytest.mark.parametrize("auth", [IAM, {"auth": "none"}, {"profile": "local"}])
def test_what_only_oauth_looks_at_is_refused_elsewhere(auth: dict[str, str], key: str) -> None:
    """Somebody who names an issuer does not mean to let everybody in."""
    with pytest.raises(ValueError, match=f"^-c {key}=https://x.example: -c auth=.* does not look"):
        _settings(**auth, **{key: "https://x.example"})


@pytest.mark.parametrize("key", KEYS["iam"])
@pytest.mark.parametrize("auth", [OAUTH, {"auth": "none"}, {"profile": "local"}])
def test_what_only_iam_looks_at_is_refused_elsewhere(auth: dict[str, str], key: str) -> None:
    with pytest.raises(ValueError, match=f"^-c {key}=role: -c auth=.* does not look at it"):
        _settings(**auth, **{key: "role"})


def test_iam_says_whom_tasks_belong_to() -> None:
    """There is no default: both choices surprise somebody."""
    with pytest.raises(ValueError, match=r"^-c auth=iam: -c principal= is missing: .*`session`"):
        _settings(auth="iam")
    assert _settings(**IAM).iam == Iam("session", "principal")
    assert _settings(auth="iam", principal="role").iam == Iam("role", "principal")
    chosen = _settings(auth="iam", principal="session", quota_per="role")
    assert chosen.iam == Iam("session", "role")
    with pytest.raises(ValueError, match=r"^-c principal=source-identity: session or role"):
        _settings(auth="iam", principal="source-identity")


def test_access_tokens_may_have_to_say_what_they_are() -> None:
    """RFC 9068, section 2.1."""
    chosen = _settings(**OAUTH, token_typ="at+jwt").oauth
    assert chosen is not None
    assert chosen.token_typ == "at+jwt"
    with pytest.raises(ValueError, match=r"^-c token_typ=JWT: jwt or at\+jwt"):
        _settings(**OAUTH, token_typ="JWT")


def test_tools_with_scopes_cannot_be_called_with_signatures(
    assemblies: dict[str, Assembly],
) -> None:
    error = str(assemblies["refused: scopes"].error)
    assert error.startswith("ValueError: -c auth=iam: close_all may only be called with scopes")
    tools = Catalogue([entry("b", ("x",)), entry("a", ("x", "y")), entry("c")])
    with pytest.raises(ValueError, match=r"^-c auth=iam: a, b may only be called with scopes"):
        _settings(**IAM).check(tools)
    _settings(**OAUTH).check(tools)
    _settings(profile="local").check(tools)


# ---- What is deployed ----------------------------------------------------------------------------


def test_the_choice_is_that_of_the_method_and_of_the_function_behind_it(
    on_aws: Assembly, open_server: Assembly, behind_a_domain: Assembly
) -> None:
    """The function believes only the gateway that its environment names."""
    found = {
        _variables(assembly, "Api")["AUTH"]: _methods(assembly)["POST /mcp"]["AuthorizationType"]
        for assembly in (on_aws, open_server, behind_a_domain)
    }
    assert found == {"iam": "AWS_IAM", "none": "NONE", "oauth": "CUSTOM"}
    assert _variables(behind_a_domain, "SubscriptionsApi")["AUTH"] == "oauth"


def test_without_oauth_nothing_speaks_of_it(on_aws: Assembly, open_server: Assembly) -> None:
    for assembly in (on_aws, open_server):
        assert not assembly.resources("AWS::ApiGateway::Authorizer")
        assert set(_methods(assembly)) - {"OPTIONS /mcp"} == {
            "POST /mcp",
            "GET /mcp",
            "DELETE /mcp",
            *UNKNOWN,
        }
        assert not {"UNAUTHORIZED", "ACCESS_DENIED", "AUTHORIZER_FAILURE"} & set(
            _responses(assembly)
        )
        variables = _variables(assembly, "Api")
        assert (variables["SCOPES"], variables["RESOURCE_METADATA_URL"]) == ("", "")


def test_an_authorizer_is_asked_about_every_request(behind_a_domain: Assembly) -> None:
    """A decision that were kept would outlive its token, and be the next tool's, too. Without an
    `Authorization` header, API Gateway refuses by itself.
    """
    authorizers = behind_a_domain.resources("AWS::ApiGateway::Authorizer")
    assert set(authorizers) == {"Api/Gateway/Authorizer", "SubscriptionsApi/Gateway/Authorizer"}
    for authorizer in authorizers.values():
        assert authorizer["Type"] == "REQUEST"
        assert authorizer["AuthorizerResultTtlInSeconds"] == 0
        assert authorizer["IdentitySource"] == "method.request.header.Authorization"
        assert "functions/<Authorizer/Function.Arn>/invocations" in authorizer["AuthorizerUri"]


@pytest.mark.parametrize("name", BASES)
def test_the_authorizer_s_environment_says_what_tokens_must_say(
    assemblies: dict[str, Assembly], name: str
) -> None:
    assembly = assemblies[name]
    function = assembly.resources("AWS::Lambda::Function")["Authorizer/Function"]
    assert (function["Handler"], function["Timeout"]) == ("authorize.handler.handler", 10)
    own = {n: v for n, v in _variables(assembly, "Authorizer").items() if "POWERTOOLS" not in n}
    metadata = METADATA[name]
    assert own == {
        "ISSUER": OAUTH["issuer"],
        "AUDIENCE": AUDIENCES[name],
        "SCOPE_PREFIX": "",
        "TOKEN_TYP": "jwt",
        "SCOPES": " ".join(SCOPES[name]),
        "RESOURCE_METADATA_URL": metadata,
    }
    for server in {"Api", "SubscriptionsApi"} & {
        f"{p.partition('/')[0]}" for p in assembly.grants()
    }:
        variables = _variables(assembly, server)
        assert variables["SCOPES"] == own["SCOPES"]
        assert variables["RESOURCE_METADATA_URL"] == metadata


def test_clients_ask_for_scopes_by_their_long_names(assemblies: dict[str, Assembly]) -> None:
    assembly = assemblies["snapstart"]
    long = ["api://mcp/mcp", "api://mcp/tasks:read"]
    (answer,) = _methods(assembly)[f"GET {WELL_KNOWN}/mcp"]["Integration"]["IntegrationResponses"]
    document = json.loads(answer["ResponseTemplates"]["application/json"])
    assert document["scopes_supported"] == long
    challenge = _responses(assembly)["UNAUTHORIZED"]["ResponseParameters"]
    text = bearer_challenge(f"{BASES['domain']}{WELL_KNOWN}/mcp", long)
    assert challenge["gatewayresponse.header.WWW-Authenticate"] == f"'{text}'"
    for function in ("Authorizer", "Api"):
        variables = _variables(assembly, function)
        assert (variables["SCOPES"], variables["SCOPE_PREFIX"]) == ("mcp tasks:read", "api://mcp/")


@pytest.mark.parametrize("name", BASES)
def test_a_caller_without_a_token_gets_a_challenge_that_says_where_to_get_one(
    assemblies: dict[str, Assembly], name: str
) -> None:
    """authorization/index.mdx, "Protected Resource Metadata Discovery Requirements"."""
    response = _responses(assemblies[name])["UNAUTHORIZED"]
    assert response["StatusCode"] == "401"
    text = bearer_challenge(METADATA[name], SCOPES[name])
    headers = response["ResponseParameters"]
    assert headers["gatewayresponse.header.WWW-Authenticate"] == f"'{text}'"


def test_a_caller_whose_token_has_too_few_scopes_gets_a_challenge_that_names_them(
    streaming: Assembly,
) -> None:
    """In the authorizer's words: only it knows which tool is called."""
    response = _responses(streaming)["ACCESS_DENIED"]
    assert response["StatusCode"] == "403"
    assert response["ResponseParameters"] == {
        "gatewayresponse.header.WWW-Authenticate": "context.authorizer.challenge"
    }


def test_an_authorizer_that_cannot_decide_lets_nobody_in_and_is_not_the_caller_s_fault(
    streaming: Assembly,
) -> None:
    for kind in ("AUTHORIZER_FAILURE", "AUTHORIZER_CONFIGURATION_ERROR"):
        assert _responses(streaming)[kind]["StatusCode"] == "503"
        parameters = _responses(streaming)[kind]["ResponseParameters"]
        assert "gatewayresponse.header.WWW-Authenticate" not in parameters


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("path", [WELL_KNOWN, f"{WELL_KNOWN}/mcp", "as inserted"])
def test_the_metadata_describes_the_endpoint_to_everybody(
    assemblies: dict[str, Assembly], name: str, path: str
) -> None:
    """RFC 9728, sections 2 and 3; `resource` is what the client calls, or it must not go on."""
    assembly = assemblies[name]
    if path == "as inserted":
        path = (
            METADATA[name]
            .removeprefix(EXECUTE_API)
            .removeprefix(BASES[name].removesuffix("/tools"))
        )
    method = _methods(assembly)[f"GET {path}"]
    assert (method["AuthorizationType"], method["Integration"]["Type"]) == ("NONE", "MOCK")
    (answer,) = method["Integration"]["IntegrationResponses"]
    document = json.loads(answer["ResponseTemplates"]["application/json"])
    expected = {
        "resource": f"{BASES[name]}/mcp",
        "authorization_servers": [OAUTH["issuer"]],
        "bearer_methods_supported": ["header"],
        "resource_name": assembly.stack,
    }
    if SCOPES[name]:  # section 3.2: what has no values must be left out
        expected["scopes_supported"] = SCOPES[name]
    assert document == expected
    assert (
        document["resource"] == assembly.readable(assembly.template["Outputs"])["Endpoint"]["Value"]
    )
    assert answer["ResponseParameters"] == {
        "method.response.header.Cache-Control": "'public, max-age=3600'",
        "method.response.header.Access-Control-Allow-Origin": "'*'",
    }


def test_a_path_that_api_gateway_cannot_serve_is_refused(
    assemblies: dict[str, Assembly],
) -> None:
    """The document of `https://cdn.example.com/~a/mcp` is below a resource named `~a`."""
    error = str(assemblies["refused: path"].error)
    assert error.startswith("ValueError: -c url=https://cdn.example.com/~a/mcp: with -c auth=oauth")


@pytest.mark.parametrize(
    ("job", "warned"),
    [("streaming", True), ("domain", False), ("fork", False), ("own key", False)],
)
def test_an_issuer_that_some_clients_cannot_find_is_warned_of(
    assemblies: dict[str, Assembly], job: str, warned: bool
) -> None:
    """The CDK's CLI prints its annotations before it deploys."""
    found = [finding for _, finding in assemblies[job].violations]
    assert ("Annotation::mcp-tasks:discovery" in found) is warned


@pytest.mark.parametrize(
    ("url", "served"),
    [
        ("https://cdn.example.com/mcp", True),
        ("https://abc.execute-api.eu-west-1.amazonaws.com/v1/mcp", False),
        ("https://abc.EXECUTE-API.eu-west-1.amazonaws.com.cn/v1/mcp", False),
    ],
)
def test_api_gateway_s_own_host_has_no_root(url: str, served: bool) -> None:
    """It is a host like any other when `-c url=` names it."""
    assert serves_its_root(_settings(**OAUTH, url=url)) is served


def test_an_access_log_names_the_principal_of_a_token(streaming: Assembly) -> None:
    (stage,) = streaming.resources("AWS::ApiGateway::Stage").values()
    fields = json.loads(stage["AccessLogSetting"]["Format"])
    assert fields["caller"] == "$context.authorizer.principalId"
