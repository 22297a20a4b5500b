"""What a deployment may choose, read from CDK context (`-c key=value`, or cdk.json)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .profile import AWS, LOCAL, Auth, Profile


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
    access_log: bool

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
        cell = context("cell") or "c1"
        if not re.fullmatch("[a-z0-9]{1,16}", cell):
            raise ValueError(f"-c cell={cell}: 1 to 16 lower-case letters and digits")
        stack = context("stack") or "mcp-tasks"
        if not re.fullmatch("[A-Za-z][A-Za-z0-9-]{0,27}", stack):
            raise ValueError(f"-c stack={stack}: 1 to 28 letters, digits and hyphens")
        tools = (root / (context("tools") or "functions/tools")).resolve()
        if not tools.is_dir():
            raise ValueError(f"-c tools={context('tools')}: there is no folder {tools}")
        access_log = context("access_log") or "off"
        if access_log not in ("on", "off"):
            raise ValueError(f"-c access_log={access_log}: on or off")
        return cls(
            profile=profile,
            tools=tools,
            stack=stack,
            cell=cell,
            auth=auth,
            allowed_origins=(*profile.allowed_origins, *(context("origins") or "").split()),
            allowed_hosts=(*profile.allowed_hosts, *(context("hosts") or "").lower().split()),
            access_log=access_log == "on",
        )
