"""The hosts that lead to the stack: its domain, API Gateway's own, and the TLS that they take."""

from __future__ import annotations

import socket
import ssl
import warnings
from typing import Final
from urllib.parse import urlsplit

from mcp_tasks.protocol.errors import ErrorCode
from mcp_tasks.tasks.ids import cell_of, new_task_id

from ..deployed_stack import DeployedStack
from .check import Check, NotTried, expect
from .deployed import Deployed
from .endpoint import CAPABILITIES, REVISION, Response

HANDSHAKE_SECONDS: Final = 10.0
OLD_CIPHERS: Final = "ALL:@SECLEVEL=0"
"""OpenSSL 3 offers TLS 1.1 at this level only."""
OTHER_VERSION: Final = frozenset({"UNSUPPORTED_PROTOCOL", "WRONG_VERSION_NUMBER"})
"""The host answered with a version that was not offered."""


def see_routing_rules(deployed: Deployed) -> str:
    """The domain takes rules, and the stack's rules are among them."""
    stack = deployed.account()
    own = _routing_rules(stack)
    domain = own[0].split("/domainnames/")[1].split("/")[0]
    gateway = stack.client("apigatewayv2")
    found = gateway.get_domain_name(DomainName=domain)
    mode = found.get("RoutingMode", "API_MAPPING_ONLY")
    expect("ROUTING_RULE" in mode, f"{domain} is {mode}: it follows no rule")
    tls = found["DomainNameConfigurations"][0]["SecurityPolicy"]
    expect(tls != "TLS_1_0", f"{domain} takes {tls}")
    rules = gateway.list_routing_rules(DomainName=domain)["RoutingRules"]
    there = {rule["RoutingRuleArn"] for rule in rules}
    expect(set(own) <= there, f"{len(set(own) - there)} rules of the stack are missing")
    return f"{domain}: {mode}, {tls}, {len(own)} of {len(rules)} rules are this stack's"


def _routing_rules(stack: DeployedStack) -> list[str]:
    """The ARNs of the stack's rules. Raises NotTried where it has no domain."""
    own = stack.physical_ids("AWS::ApiGatewayV2::RoutingRule")
    if not own:
        raise NotTried("the stack has no domain")
    return own


def refuse_at_the_default_host(deployed: Deployed) -> str:
    """With a domain, API Gateway's own host answers nobody: 403 (API Gateway developer guide,
    "Disable the default endpoint for REST APIs").

    The request is for the root of the stage, to which the API itself would answer 404.
    """
    stack = deployed.account()
    _routing_rules(stack)
    apis = _apis(stack)
    for api in apis:
        found = stack.client("apigateway").get_rest_api(restApiId=api)
        closed = found.get("disableExecuteApiEndpoint", False)
        expect(closed, f"the default endpoint of {found['name']} is not disabled")
        answer = deployed.stranger.send("GET", url=default_url(stack, api))
        expect(
            answer.status == 403,
            f"the default endpoint of {found['name']} answers HTTP {answer.status}, not 403: it is "
            "disabled when a stage is deployed again",
        )
    return f"403 from {len(apis)} of {len(apis)} APIs"


def _apis(stack: DeployedStack) -> list[str]:
    return stack.physical_ids("AWS::ApiGateway::RestApi")


def default_url(stack: DeployedStack, api: str) -> str:
    """The root of an API's stage at API Gateway's own host, in whichever partition."""
    service = urlsplit(stack.client("apigateway").meta.endpoint_url).netloc
    (stage, *_) = stack.physical_ids("AWS::ApiGateway::Stage")
    return f"https://{api}.{service.replace('apigateway.', 'execute-api.', 1)}/{stage}/"


def refuse_old_tls(deployed: Deployed) -> str:
    """The endpoint's host, and API Gateway's own, take TLS 1.2 and no TLS 1.1 (API Gateway
    developer guide, "Security policies for REST APIs in API Gateway").
    """
    urls = [deployed.endpoint.url]
    if deployed.stack is not None:
        urls += [default_url(deployed.stack, api) for api in _apis(deployed.stack)]
    hosts: dict[str, str] = {}
    for parts in map(urlsplit, urls):
        if parts.scheme != "https":
            raise NotTried("the endpoint's URL is not https")
        if parts.netloc not in hosts:
            address = parts.hostname or "", parts.port or 443
            hosts[parts.netloc] = _negotiated(address, ssl.create_default_context())
            expect(_refuses(address, _old_tls()), f"{parts.netloc} takes TLS 1.1")
    return ", ".join(f"{host}: {version}" for host, version in hosts.items())


def _negotiated(address: tuple[str, int], context: ssl.SSLContext) -> str:
    """The version of TLS that a host takes. Raises OSError, also when it takes none."""
    with (
        socket.create_connection(address, timeout=HANDSHAKE_SECONDS) as connection,
        context.wrap_socket(connection, server_hostname=address[0]) as secured,
    ):
        return str(secured.version())


def _refuses(address: tuple[str, int], context: ssl.SSLContext) -> bool:
    """Whether a host ends the handshake: by an alert, by hanging up, or with another version.

    Raises NotTried when this machine ends it. An OpenSSL of a higher security level does so when
    the host has agreed to TLS 1.1.
    """
    try:
        _negotiated(address, context)
    except (ConnectionResetError, ssl.SSLEOFError):
        return True
    except ssl.SSLError as error:
        reason = error.reason or ""
        if "ALERT" in reason or reason in OTHER_VERSION:
            return True
        raise NotTried(f"this machine's {ssl.OPENSSL_VERSION} ends TLS 1.1: {reason}") from error
    return False


def _old_tls() -> ssl.SSLContext:
    """What offers TLS 1.1 and nothing else. It trusts everybody, because nothing is sent."""
    if not ssl.HAS_TLSv1_1:
        raise NotTried(f"this machine's {ssl.OPENSSL_VERSION} has no TLS 1.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.set_ciphers(OLD_CIPHERS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that is why it is offered here
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    except (ssl.SSLError, ValueError) as error:
        raise NotTried(f"this machine's {ssl.OPENSSL_VERSION} offers no TLS 1.1") from error
    return context


def find_a_task_without_its_header(deployed: Deployed) -> str:
    """`tasks/get` without `Mcp-Name` reaches the first cell of the endpoint: that of new tasks.

    A task of another cell is not found there, and the error names the header that is missing
    (`docs/addresses.md`, "Several stacks at one domain").
    """
    call = deployed.offered(deployed.calls.task)
    task_id = deployed.endpoint.create(call.tool, call.arguments)["taskId"]
    first = cell_of(task_id)
    found = _get_without_header(deployed, task_id)
    expect(found.result["taskId"] == task_id, "another task is the answer")
    other = new_task_id("other" if first != "other" else "another")
    error = _get_without_header(deployed, other).messages[-1].get("error", {})
    said = f"{error.get('code')}: {error.get('message')}"
    expect(error.get("code") == ErrorCode.INVALID_PARAMS, f"a task of another cell: {said}")
    expect("Mcp-Name" in str(error.get("message")), f"the error does not name Mcp-Name: {said}")
    return f"the first cell is {first}; for a task of another one the error names Mcp-Name"


def _get_without_header(deployed: Deployed, task_id: str) -> Response:
    endpoint = deployed.endpoint
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
    }
    message = endpoint.message("tasks/get", {"taskId": task_id, "_meta": meta})
    return endpoint.post(message, {"MCP-Protocol-Version": REVISION, "Mcp-Method": "tasks/get"})


CHECKS: Final = (
    Check("Find a task without Mcp-Name", find_a_task_without_its_header),
    Check("Routing rules", see_routing_rules, only_aws=True, of_stack=True),
    Check("Closed default host", refuse_at_the_default_host, only_aws=True, of_stack=True),
    Check("TLS", refuse_old_tls, only_aws=True),
)
