"""Cross-origin resource sharing: what browsers are told of pages that may call (Fetch standard,
section 3.2, "CORS protocol").

The function answers preflights and calls; API Gateway itself answers a 401 and the metadata
(`infra/cors.py`). A browser sends preflights without credentials, and so do these checks.
"""

from __future__ import annotations

from typing import Final

from mcp_tasks.environment import ALLOWED_ORIGINS
from mcp_tasks.protocol.origin import is_allowed

from .check import Check, NotTried, expect
from .credentials import AccessToken
from .deployed import Deployed
from .endpoint import Response
from .endpoint_checks import FOREIGN_ORIGIN, metadata_url

METHODS: Final = ("POST", "GET", "DELETE")
SENT: Final = (
    "Authorization",
    "Content-Type",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Param-Region",
    "Mcp-Protocol-Version",
    "Mcp-Session-Id",
)
"""The headers that clients in a page send, of which `Mcp-Param-Region` repeats an argument."""
READ: Final = ("Mcp-Session-Id", "WWW-Authenticate")
"""The headers that they read."""
PORT: Final = "8080"
"""What stands for a `*` of the list, where it is a port or a part of a host's name."""
FOR_ALL: Final = "*"


def let_listed_pages_ask(deployed: Deployed) -> str:
    """A preflight of a listed origin allows the methods and headers of clients; another origin gets
    no permission.
    """
    origins = _allowed_origins(deployed)
    origin = _page_of(origins)
    for method in METHODS:
        answer = _preflight(deployed, deployed.endpoint.url, origin, method, SENT)
        _expect_permission(answer, (origin,), method, SENT)
    if is_allowed(FOREIGN_ORIGIN, origins):
        return f"{origin} may call; the list allows every origin"
    refused = _preflight(deployed, deployed.endpoint.url, FOREIGN_ORIGIN, "POST", SENT)
    allowed = refused.headers.get("access-control-allow-origin")
    expect(allowed is None, f"a page that is not on the list is allowed to call: {allowed}")
    return f"{origin} may call, {FOREIGN_ORIGIN} may not"


def let_listed_pages_read(deployed: Deployed) -> str:
    """The answer to a listed page names its origin, and the headers that the page may read."""
    origin = _page_of(_allowed_origins(deployed))
    answer = deployed.endpoint.request("server/discover", headers={"Origin": origin})
    answer.raise_for_error()
    _expect_readable(answer, (origin,), READ)
    vary = answer.headers.get("vary", "")
    expect("origin" in vary.lower(), f"Vary is {vary!r}: a cache would answer other pages so")
    return f"{origin} may read {', '.join(READ)}"


def let_pages_read_the_challenge(deployed: Deployed) -> str:
    """A page without a token can read the 401, and the challenge that names the issuer.

    It is a gateway response, whose headers cannot depend on the request's origin: it names the only
    origin of the list, or allows all.
    """
    _expect_tokens(deployed)
    origin = _page_of(_allowed_origins(deployed))
    answer = deployed.stranger.request("tools/list", headers={"Origin": origin})
    expect(answer.status == 401, f"without a token: HTTP {answer.status}, not 401")
    _expect_readable(answer, (origin, FOR_ALL), ("WWW-Authenticate",))
    return f"allowed: {answer.headers['access-control-allow-origin']}"


def let_pages_read_the_metadata(deployed: Deployed) -> str:
    """Every page may read the document that names the issuer, with the header that the official
    SDKs send.
    """
    _expect_tokens(deployed)
    url, sent = metadata_url(deployed.stranger.request("tools/list")), ("Mcp-Protocol-Version",)
    answer = _preflight(deployed, url, FOREIGN_ORIGIN, "GET", sent)
    _expect_permission(answer, (FOREIGN_ORIGIN, FOR_ALL), "GET", sent)
    document = deployed.stranger.send("GET", headers={"Origin": FOREIGN_ORIGIN}, url=url)
    expect(document.status == 200, f"{url}: HTTP {document.status}, not 200")
    _expect_readable(document, (FOREIGN_ORIGIN, FOR_ALL), ())
    return url


def _expect_tokens(deployed: Deployed) -> None:
    if not isinstance(deployed.endpoint.credentials, AccessToken):
        raise NotTried("nobody is challenged for a token (auth=oauth)")


def _allowed_origins(deployed: Deployed) -> list[str]:
    origins = deployed.account().variables.get(ALLOWED_ORIGINS, "").split()
    if not origins:
        raise NotTried("the deployment lets no page call; origins= lists those that may")
    return origins


def _page_of(origins: list[str]) -> str:
    """An origin on the list; of a pattern, one that matches it."""
    if is_allowed(FOREIGN_ORIGIN, origins):
        return FOREIGN_ORIGIN
    exact = [origin for origin in origins if "*" not in origin]
    return exact[0] if exact else origins[0].replace("*", PORT)


def _preflight(
    deployed: Deployed, url: str, origin: str, method: str, headers: tuple[str, ...]
) -> Response:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        # Browsers write them so: in lower case, sorted, without spaces.
        "Access-Control-Request-Headers": ",".join(sorted(headers)).lower(),
    }
    return deployed.stranger.send("OPTIONS", headers=asked, url=url)


def _expect_permission(
    answer: Response, origins: tuple[str, ...], method: str, headers: tuple[str, ...]
) -> None:
    what = f"the preflight of a {method}"
    expect(200 <= answer.status < 300, f"{what}: HTTP {answer.status}")
    _expect_origin(answer, origins, what)
    methods = _listed(answer, "allow-methods")
    expect(method.lower() in methods, f"{what} does not allow the method")
    missing = [name for name in headers if name.lower() not in _listed(answer, "allow-headers")]
    expect(not missing, f"{what} does not allow {', '.join(missing)}")


def _expect_readable(answer: Response, origins: tuple[str, ...], headers: tuple[str, ...]) -> None:
    what = f"the answer with HTTP {answer.status}"
    _expect_origin(answer, origins, what)
    exposed = _listed(answer, "expose-headers")
    hidden = [name for name in headers if name.lower() not in exposed]
    expect(not hidden, f"{what} does not expose {', '.join(hidden)}")


def _expect_origin(answer: Response, origins: tuple[str, ...], what: str) -> None:
    allowed = answer.headers.get("access-control-allow-origin")
    expect(allowed in origins, f"{what} allows the origin {allowed}, not {' or '.join(origins)}")


def _listed(answer: Response, header: str) -> set[str]:
    value = answer.headers.get(f"access-control-{header}", "")
    return {name.strip().lower() for name in value.split(",")}


CHECKS: Final = (
    Check("Let listed pages ask", let_listed_pages_ask, of_stack=True),
    Check("Let listed pages read", let_listed_pages_read, of_stack=True),
    Check("Let pages read the challenge", let_pages_read_the_challenge, of_stack=True),
    Check("Let pages read the metadata", let_pages_read_the_metadata),
)
