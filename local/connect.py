"""How people's clients get this server: what each gets of it, and its line of configuration.

The README shows the same table; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from infra.server_toml import ServerFile

from .console import CommandError
from .environment import ROOT

ANYWHERE: Final = "https://..."
"""The URL in the README."""


@dataclass(frozen=True, slots=True)
class Host:
    """A client that people use."""

    name: str
    speaks: str
    long_tools: str
    """What it gets of tools that run as tasks."""
    configuration: str
    """The line, with {url}."""
    local: bool = True
    """Whether it reaches a server on this machine."""


IN_ONE_CALL: Final = (
    "one call, with progress and questions, however long; of 2025-06-18: `task_result`"
)
HOSTS: Final = (
    Host(
        "Claude Code",
        "2026-07-28 with tasks; older ones 2025-11-25",
        "tasks of the extension, in the background",
        "claude mcp add --transport http my-server {url}",
    ),
    Host(
        "VS Code",
        "2025-11-25 with tasks",
        "tasks of 2025-11-25; asked on the session's stream",
        '.vscode/mcp.json: {{"servers": {{"my-server": {{"type": "http", "url": "{url}"}}}}}}',
    ),
    Host(
        "Cursor",
        "handshake",
        IN_ONE_CALL,
        '.cursor/mcp.json: {{"mcpServers": {{"my-server": {{"url": "{url}"}}}}}}',
    ),
    Host(
        "ChatGPT",
        "handshake",
        IN_ONE_CALL,
        "Settings, Apps & Connectors, Create: {url}",
        local=False,
    ),
    Host(
        "Claude (web, desktop)",
        "handshake",
        IN_ONE_CALL,
        "Settings, Connectors, Add custom connector: {url}",
        local=False,
    ),
    Host(
        "Goose",
        "handshake",
        IN_ONE_CALL,
        "goose session --with-streamable-http-extension {url}",
    ),
    Host(
        "Inspector",
        "2026-07-28 and handshake",
        "tasks of either",
        "npx @modelcontextprotocol/inspector --cli {url} --transport http --method tools/list",
    ),
)


def deployed_endpoint(stack: str | None) -> str:
    """The endpoint of a deployed stack: its output. Raises CommandError."""
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    name = stack or ServerFile.read(ROOT).stack
    try:
        found = boto3.client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]
    except (BotoCoreError, ClientError) as error:
        raise CommandError(
            f"Nothing runs here (make up), and the stack {name} was not found: {error}"
        ) from None
    outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", ())}
    return str(outputs["Endpoint"])


def table() -> str:
    """The README's table of clients."""
    rows = ["| client | speaks | long tools | configuration |", "|---|---|---|---|"]
    rows += [
        f"| {host.name} | {host.speaks} | {host.long_tools} "
        f"| `{host.configuration.format(url=ANYWHERE)}` |"
        for host in HOSTS
    ]
    return "\n".join(rows)


def lines(url: str) -> list[str]:
    """What `make connect` prints for an endpoint."""
    here = url.startswith("http://127.0.0.1")
    shown = [f"MCP endpoint: {url}", ""]
    for host in HOSTS:
        far = here and not host.local
        configuration = "needs a public https:// URL" if far else host.configuration.format(url=url)
        shown += [f"{host.name} ({host.speaks})", f"  {configuration}"]
    return shown
