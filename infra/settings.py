"""What a deployment may choose, read from CDK context (`-c key=value`, or cdk.json)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .profile import AWS, LOCAL, Auth, Profile

LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
HOST_NAME: Final = rf"(?=.{{1,253}}$)({LABEL}\.)+{LABEL}"
"""RFC 1123, section 2.1, in lower case."""
MAX_PRIORITY: Final = 90_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices, checked."""

    profile: Profile
    tools: Path
    stack: str
    cell: str
    auth: Auth
    allowed_origins: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    streaming: bool
    domain: str | None
    priority: int
    access_log: bool

    @property
    def listens_apart(self) -> bool:
        """Whether listens have a gateway of their own: a domain's rules can tell them apart."""
        return self.streaming and self.domain is not None

    @classmethod
    def from_context(cls, context: Callable[[str], Any], root: Path) -> Settings:
        """Read the context. Raises ValueError saying what a key may be."""
        profiles = {AWS.name: AWS, LOCAL.name: LOCAL}
        profile = profiles.get(context("profile") or AWS.name)
        if profile is None:
            raise ValueError(f"-c profile={context('profile')}: one of {', '.join(profiles)}")
        auth: Auth
        match context("auth") or profile.auth:
            case "iam":
                auth = "iam"
            case "none":
                auth = "none"
            case other:
                raise ValueError(
                    f"-c auth={other}: iam (callers sign with SigV4) or none (anybody)"
                )

        def chosen(key: str, default: str, pattern: str, remedy: str) -> str:
            value = context(key)
            text = default if value is None else str(value)
            if not re.fullmatch(pattern, text):
                raise ValueError(f"-c {key}={text}: {remedy}")
            return text

        tools = (root / (context("tools") or "functions/tools")).resolve()
        if not tools.is_dir():
            raise ValueError(f"-c tools={context('tools')}: there is no folder {tools}")
        remedy = f"1 to {MAX_PRIORITY}, another for each stack of a domain"
        priority = chosen("priority", "100", "[1-9][0-9]{0,4}", remedy)
        if int(priority) > MAX_PRIORITY:
            raise ValueError(f"-c priority={priority}: {remedy}")
        domain = chosen("domain", "", f"|(?i:{HOST_NAME})", "a host name, such as mcp.example.com")
        hosts = (*profile.allowed_hosts, *(context("hosts") or "").lower().split())
        return cls(
            profile=profile,
            tools=tools,
            stack=chosen(
                "stack",
                "mcp-tasks",
                "[A-Za-z][A-Za-z0-9-]{0,27}",
                "1 to 28 letters, digits and hyphens",
            ),
            cell=chosen("cell", "c1", "[a-z0-9]{1,16}", "1 to 16 lower-case letters and digits"),
            auth=auth,
            allowed_origins=(*profile.allowed_origins, *(context("origins") or "").split()),
            # Where only some names are allowed, the domain is one of them.
            allowed_hosts=(*hosts, domain.lower()) if hosts and domain else hosts,
            streaming=chosen("streaming", "false", "true|false", "true or false") == "true",
            domain=domain.lower() or None,
            priority=int(priority),
            access_log=chosen("access_log", "off", "on|off", "on or off") == "on",
        )
