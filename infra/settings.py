"""What a deployment may choose, read from CDK context (`-c key=value`, or cdk.json)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from mcp_tasks.limits import Limits
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server.caller import Auth

from .alarms import topic_of
from .auth import PATH, OAuth, access_of, check_scopes, url_of
from .encryption import encryption_of
from .limits import Throttle, check_ttl, limits_of, max_ttl_of, throttle_of
from .options import Choices
from .profile import AWS, LOCAL, Profile

LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
HOST_NAME: Final = rf"(?=.{{1,253}}$)({LABEL}\.)+{LABEL}"
"""RFC 1123, section 2.1, in lower case."""
MAX_PRIORITY: Final = 90_000
ENDPOINT: Final = "/mcp"
"""How the endpoint's URL ends, wherever it is."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The choices, checked."""

    profile: Profile
    tools: Path
    stack: str
    cell: str
    auth: Auth
    oauth: OAuth | None
    """What access tokens must say; None where there are none."""
    url: str | None
    """What clients call the endpoint, when not by its domain or by API Gateway's name for it."""
    limits: Limits
    max_ttl: timedelta
    throttle: Throttle
    allowed_origins: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    streaming: bool
    domain: str | None
    priority: int
    access_log: bool
    alarms: str | None
    """The ARN of the topic that alarms tell."""
    encryption: str
    """`aws`, `customer`, or the ARN of a KMS key."""

    @property
    def listens_apart(self) -> bool:
        """Whether listens have a gateway of their own: a domain's rules can tell them apart."""
        return self.streaming and self.domain is not None

    def check(self, catalogue: Catalogue) -> None:
        """Raise ValueError for tools that do not go with the choices."""
        check_scopes(catalogue, self.auth)
        check_ttl(catalogue, self.max_ttl)

    @classmethod
    def from_context(cls, context: Callable[[str], Any], root: Path) -> Settings:
        """Read the context. Raises ValueError saying what a key may be."""
        profiles = {AWS.name: AWS, LOCAL.name: LOCAL}
        profile = profiles.get(context("profile") or AWS.name)
        if profile is None:
            raise ValueError(f"-c profile={context('profile')}: one of {', '.join(profiles)}")
        choices = Choices(context)
        chosen = choices.text
        auth, oauth = access_of(choices, profile)
        tools = (root / (context("tools") or "functions/tools")).resolve()
        if not tools.is_dir():
            raise ValueError(f"-c tools={context('tools')}: there is no folder {tools}")
        remedy = f"1 to {MAX_PRIORITY}, another for each stack of a domain"
        priority = choices.number("priority", 100, 1, MAX_PRIORITY, remedy)
        domain = chosen("domain", "", f"|(?i:{HOST_NAME})", "a host name, such as mcp.example.com")
        hosts = (*profile.allowed_hosts, *choices.given("hosts").lower().split())
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
            oauth=oauth,
            url=url_of(
                choices,
                profile,
                "url",
                PATH + ENDPOINT,
                f"an https:// URL that ends in {ENDPOINT}, such as https://cdn.example.com/mcp",
            ),
            limits=limits_of(choices),
            max_ttl=max_ttl_of(choices),
            throttle=throttle_of(choices),
            allowed_origins=(*profile.allowed_origins, *choices.words("origins")),
            # Where only some names are allowed, the domain is one of them.
            allowed_hosts=(*hosts, domain.lower()) if hosts and domain else hosts,
            streaming=chosen("streaming", "false", "true|false", "true or false") == "true",
            domain=domain.lower() or None,
            priority=priority,
            access_log=chosen("access_log", "off", "on|off", "on or off") == "on",
            alarms=topic_of(choices),
            encryption=encryption_of(choices),
        )
