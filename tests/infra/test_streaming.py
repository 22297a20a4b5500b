"""`-c streaming=true`: answers leave as they are written, over a gateway that lets them."""

from __future__ import annotations

from typing import Any

from tests.infra.assembly import Assembly

WRAPPER = "AWS_LAMBDA_EXEC_WRAPPER"


def _posts(assembly: Assembly) -> dict[str, Any]:
    """The integrations that call a function, by the name of their API."""
    names = {f"<{k}>": a["Name"] for k, a in assembly.resources("AWS::ApiGateway::RestApi").items()}
    return {
        names[method["RestApiId"]]: method["Integration"]
        for method in assembly.resources("AWS::ApiGateway::Method").values()
        if method["HttpMethod"] == "POST"
    }


def _is_streaming(integration: dict[str, Any], function: str) -> bool:
    """API Gateway developer guide, "Set up a Lambda proxy integration with payload response
    streaming": the transfer mode and the URI belong together.
    """
    path = f"2021-11-15/functions/<{function}.Arn>/response-streaming-invocations"
    buffered = f"2015-03-31/functions/<{function}.Arn>/invocations"
    streams: bool = integration.get("ResponseTransferMode") == "STREAM"
    assert integration["Uri"].endswith(f":lambda:path/{path if streams else buffered}")
    assert integration.get("TimeoutInMillis") == (900_000 if streams else None)
    return streams


def _loops(assembly: Assembly) -> dict[str, str]:
    """The functions that run on the streaming loop."""
    functions = assembly.resources("AWS::Lambda::Function")
    variables = {path: f["Environment"]["Variables"] for path, f in functions.items()}
    return {path: v[WRAPPER] for path, v in variables.items() if WRAPPER in v}


def test_answers_are_buffered_unless_streaming_is_asked_for(on_aws: Assembly) -> None:
    (integration,) = _posts(on_aws).values()
    assert not _is_streaming(integration, "Api/Function")
    assert _loops(on_aws) == {}


def test_without_a_domain_the_only_api_streams(streaming: Assembly) -> None:
    """One method has one transfer mode, and nothing could tell subscriptions apart."""
    (integration,) = _posts(streaming).values()
    assert _is_streaming(integration, "Api/Function")
    assert _loops(streaming) == {"Api/Function": "/var/task/api/exec_wrapper"}
    function = streaming.resources("AWS::Lambda::Function")["Api/Function"]
    assert function["Timeout"] == 900
    assert "SubscriptionsApi/Function" not in streaming.resources("AWS::Lambda::Function")


def test_behind_a_domain_only_listens_stream(behind_a_domain: Assembly) -> None:
    """All other answers come from a function that need not wait to be paid for."""
    posts = _posts(behind_a_domain)
    assert set(posts) == {"mcp-tasks", "mcp-tasks-subscriptions"}
    assert not _is_streaming(posts["mcp-tasks"], "Api/Function")
    assert _is_streaming(posts["mcp-tasks-subscriptions"], "SubscriptionsApi/Function")
    assert _loops(behind_a_domain) == {"SubscriptionsApi/Function": "/var/task/api/exec_wrapper"}
    functions = behind_a_domain.resources("AWS::Lambda::Function")
    api, listens = functions["Api/Function"], functions["SubscriptionsApi/Function"]
    assert (listens["Timeout"], listens["MemorySize"]) == (900, 512)
    assert api["Timeout"] == 30
    assert (listens["Handler"], listens["Code"]) == (api["Handler"], api["Code"])


def test_a_function_for_listens_answers_nothing_else(
    behind_a_domain: Assembly,
) -> None:
    functions = behind_a_domain.resources("AWS::Lambda::Function")
    api = functions["Api/Function"]["Environment"]["Variables"]
    listens = functions["SubscriptionsApi/Function"]["Environment"]["Variables"]
    assert api.keys() - listens.keys() == {
        "STATE_MACHINE_PREFIX",
        "REQUEST_STATE_KEY_SECRET",
        "SESSIONS_TABLE",
        "EVENT_BUS",
        "POWERTOOLS_METRICS_NAMESPACE",
    }
    assert listens.pop("METHODS") == "subscriptions/listen"
    del listens[WRAPPER]
    assert {name: api[name] for name in listens} == listens


def test_both_gateways_are_regional_and_check_tokens(behind_a_domain: Assembly) -> None:
    """Regional: at an edge, a stream that is silent for 30 seconds is closed."""
    for api in behind_a_domain.resources("AWS::ApiGateway::RestApi").values():
        assert api["EndpointConfiguration"]["Types"] == ["REGIONAL"]
    methods = behind_a_domain.resources("AWS::ApiGateway::Method").values()
    posts = [method for method in methods if method["HttpMethod"] == "POST"]
    assert [post["AuthorizationType"] for post in posts] == ["CUSTOM", "CUSTOM"]
    for post in posts:  # an authorizer is its API's own
        assert post["AuthorizerId"] == post["RestApiId"].replace("RestApi>", "Authorizer>")
