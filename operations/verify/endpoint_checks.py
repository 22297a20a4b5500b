"""What every client does first, and what strangers are told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from .check import Check, NotTried, Problem, expect
from .credentials import AccessToken
from .deployed import Deployed
from .endpoint import REVISION, TASKS, Endpoint, Response

HANDSHAKE: Final = "2025-11-25"
MAX_ACCEPTED_SECONDS: Final = 10.0
"""For the answer to a notification, the start of an instance included."""
FOREIGN_ORIGIN: Final = "https://attacker.example"
"""Of a page that nobody allows to call."""
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


def discover(deployed: Deployed) -> str:
    """`server/discover`: the revision and the tasks extension."""
    result = deployed.endpoint.request("server/discover").result
    expect(REVISION in result["supportedVersions"], f"it does not speak {REVISION}")
    extensions = result["capabilities"].get("extensions", {})
    expect(TASKS in extensions, f"it does not declare {TASKS}")
    server = result["_meta"]["io.modelcontextprotocol/serverInfo"]
    return f"{server['name']} {server['version']}"


def list_tools(deployed: Deployed) -> str:
    """`tools/list`, all pages."""
    tools: dict[str, Any] = {}
    params: dict[str, Any] = {}
    while True:
        result = deployed.endpoint.request("tools/list", params).result
        tools |= {tool["name"]: tool for tool in result["tools"]}
        if "nextCursor" not in result:
            break
        params = {"cursor": result["nextCursor"]}
    deployed.tools = tools
    return f"{len(tools)} tools"


def shake_hands(deployed: Deployed) -> str:
    """`initialize` of 2025-11-25, and the notification after it, whose 202 has no body.

    A streamed answer without a body has to end, too: every client of a handshake revision sends
    this notification, and would wait.
    """
    endpoint = deployed.endpoint
    session = initialize(endpoint, {})
    accepted = endpoint.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    expect(accepted.status == 202, f"notifications/initialized: HTTP {accepted.status}, not 202")
    late = accepted.seconds > MAX_ACCEPTED_SECONDS
    expect(not late, f"the 202 took {accepted.seconds:.1f} s to end")
    ended = endpoint.send("DELETE", headers=session)
    expect(ended.status in (200, 204), f"DELETE of the session: HTTP {ended.status}")
    return f"the 202 ended after {accepted.seconds:.1f} s"


def initialize(endpoint: Endpoint, capabilities: Mapping[str, Any]) -> dict[str, str]:
    """Begin a session. Returns the headers of its further requests."""
    client = {"name": "verify", "version": "1"}
    params = {"protocolVersion": HANDSHAKE, "capabilities": capabilities, "clientInfo": client}
    response = endpoint.post(endpoint.message("initialize", params))
    version = response.result["protocolVersion"]
    expect(version == HANDSHAKE, f"initialize with {HANDSHAKE} was answered with {version}")
    session = response.headers.get("mcp-session-id")
    if session is None:
        raise Problem("initialize gave no Mcp-Session-Id")
    return {"Mcp-Session-Id": session, "MCP-Protocol-Version": HANDSHAKE}


def refuse_strangers(deployed: Deployed) -> str:
    """A request without credentials, and one with a token that nobody issued."""
    if not deployed.needs_credentials:
        raise NotTried("the endpoint is called without credentials (auth=none)")
    answer = deployed.stranger.request("tools/list")
    if not isinstance(deployed.endpoint.credentials, AccessToken):
        expect(answer.status == 403, f"an unsigned request gets HTTP {answer.status}, not 403")
        return "403 without a signature"
    expect(answer.status == 401, f"without a token: HTTP {answer.status}, not 401")
    forged = Endpoint(deployed.endpoint.url, AccessToken("e30.e30.AA")).request("tools/list")
    expect(forged.status == 401, f"with a forged token: HTTP {forged.status}, not 401")
    url = metadata_url(answer)
    document = json.loads(deployed.stranger.send("GET", url=url).body)
    expect(
        document.get("resource") == deployed.endpoint.url,
        f"the metadata's resource is {document.get('resource')}, not the endpoint",
    )
    return f"401, and {url} names {', '.join(document['authorization_servers'])}"


def metadata_url(answer: Response) -> str:
    """Where the challenge of a 401 says that the issuer is named. Raises Problem."""
    challenge = answer.headers.get("www-authenticate", "")
    expect("resource_metadata=" in challenge, f"WWW-Authenticate names no metadata: {challenge!r}")
    return challenge.split('resource_metadata="')[1].split('"')[0]


def serve_metadata_at_the_root(deployed: Deployed) -> str:
    """RFC 9728, section 3.1: where clients look that read no challenge."""
    if not isinstance(deployed.endpoint.credentials, AccessToken):
        raise NotTried("there is no issuer to discover (auth=oauth)")
    parts = urlsplit(deployed.endpoint.url)
    url = f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"
    answer = deployed.stranger.send("GET", url=url)
    expect(answer.status == 200, f"{url}: HTTP {answer.status}; `make doctor` says what helps")
    return url


def refuse_pages(deployed: Deployed) -> str:
    """A page of another site may not call (streamable-http.mdx, "Security Warning")."""
    message = deployed.endpoint.message("ping", {})
    answer = deployed.endpoint.post(message, {"Origin": FOREIGN_ORIGIN})
    expect(answer.status == 403, f"an unknown Origin gets HTTP {answer.status}, not 403")
    return "403"


def find_nothing_elsewhere(deployed: Deployed) -> str:
    """A path that does not exist: 404 by every method, as clients that probe for documents expect.

    Whether API Gateway leads such a request to the root's `{proxy+}` is what this finds out
    (`infra/unknown_paths.py`).
    """
    base = deployed.endpoint.url.rsplit("/", 1)[0]
    asked = [("GET", ".well-known/openid-configuration")]
    asked += [(method, "no-such-path") for method in ("GET", "PUT", "DELETE")]
    for method, path in asked:
        answer = deployed.stranger.send(method, url=f"{base}/{path}")
        expect(answer.status == 404, f"{method} of {path}: HTTP {answer.status}, not 404")
    return "404 by GET, PUT and DELETE"


def refuse_unknown_methods(deployed: Deployed) -> str:
    """A method that the endpoint does not take: 405, which names those that it takes (RFC 9110,
    section 15.5.6).
    """
    for method in ("PUT", "PATCH"):
        answer = deployed.stranger.send(method)
        expect(answer.status == 405, f"{method}: HTTP {answer.status}, not 405")
        expect("POST" in answer.headers.get("allow", ""), f"{method}: Allow names no POST")
    return "405"


CHECKS: Final = (
    Check("Discover the server", discover),
    Check("List the tools", list_tools),
    Check("Shake hands as an older client", shake_hands),
    Check("Refuse strangers", refuse_strangers),
    Check("Find the issuer without a challenge", serve_metadata_at_the_root, only_aws=True),
    Check("Refuse pages of other sites", refuse_pages),
    Check("Answer unknown paths with 404", find_nothing_elsewhere, only_aws=True),
    Check("Refuse unknown methods", refuse_unknown_methods),
)
