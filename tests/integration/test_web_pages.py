"""Web pages in a real browser cannot call the emulator, whatever their origin is.

Runs where a Chromium is installed. The headers that it sends are in test_emulator_access.py, which
always runs.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import pytest

from local.deployment import LocalStack
from local.emulator import Emulator
from tests.integration.support.aws import listed
from tests.integration.support.browser import EVIL, PROGRAMS, Sent, find_program, hop, visit
from tests.integration.support.lambda_code import archive, function, invoked

CODE: Final = "def handler(event, context):\n    open({!r}, 'w').close()\n"
MUST_BE_SENT: Final = {
    "role",
    "create",
    "invoke",
    "reset",
    "preflighted",
    "form",
    "image",
    "socket",
}
"""Browsers send these without asking the server first, or ask (`preflighted`)."""


@pytest.fixture(scope="module")
def chromium() -> str:
    found = find_program()
    if found is None:
        pytest.skip(f"no Chromium on the PATH: {', '.join(PROGRAMS)}")
    return found


@pytest.mark.parametrize(
    ("page", "target", "site"),
    [
        (EVIL, "127.0.0.1", "cross-site"),
        ("localhost", "localhost", "same-site"),
        (EVIL, EVIL, None),
    ],
    ids=["of another origin", "of another port of this machine", "whose name leads here"],
)
def test_a_page_runs_no_code(
    chromium: str,
    stack: LocalStack,
    aws: Any,
    tmp_path: Path,
    page: str,
    target: str,
    site: str | None,
) -> None:
    """It posts text, sends a form, loads an image, asks first, opens a WebSocket."""
    emulator: Emulator = stack.emulator
    ran = tmp_path / "ran"
    code = archive("pwned.py", CODE.format(str(ran)))
    with hop(emulator.port) as reached, hop(emulator.port) as elsewhere:
        serving = reached if target == EVIL else elsewhere
        options = {
            "target": f"http://{target}:{reached.port}",
            "mcp": urlsplit(stack.url).path,
            "zip": base64.b64encode(code).decode(),
        }
        url = f"http://{page}:{serving.port}/page?{urlencode(options)}"
        report = visit(chromium, url, serving, tmp_path / "browser")
        sent = reached.sent
    calls = [request for request in sent if not request.attack.startswith("mcp")]
    assert {request.attack for request in calls} >= MUST_BE_SENT, report
    assert [request for request in calls if not refused(request)] == []
    assert {request.site for request in calls if request.attack != "socket"} == {site}
    if page == EVIL:
        assert {r.status for r in sent if r.attack.startswith("mcp")} == {403}, sent
    assert not ran.exists()
    assert "pwned" not in names(aws)
    # The same code runs for a program that has the keys.
    with function(aws, "pwned", "python3.12", "pwned.handler", code) as name:
        invoked(aws, name)
    assert ran.exists()


def refused(request: Sent) -> bool:
    """Whether a request was refused before anything of it was looked at."""
    handshake = request.attack == "socket"  # its refusal has no body
    return (
        request.status == 403
        and request.cors is None
        and (handshake or request.body.startswith(b"403 Forbidden: "))
    )


def names(aws: Any) -> set[str]:
    """The names of all functions and roles."""
    functions = listed(aws("lambda"), "list_functions", "Functions")
    roles = listed(aws("iam"), "list_roles", "Roles")
    return {f["FunctionName"] for f in functions} | {role["RoleName"] for role in roles}
