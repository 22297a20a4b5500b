"""A deployment's settings: every option's value, read from CDK context and checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from mcp_tasks.environment import Auth
from mcp_tasks.limits import Limits
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server_identity import ServerIdentity

from .auth_options import Iam, OAuth, auth_of, check_scopes, iam_of
from .cdk_context import Context, refusal
from .custom_domain import DomainProps
from .deployment_profiles import Profile, profile_of
from .limits import Throttle, check_ttl, limits_of, max_ttl_of, throttle_of
from .monitoring_settings import MonitoringSettings
from .options import OPTIONS
from .reserved_concurrency import ReservedConcurrency
from .rollout import Rollout
from .server_toml import ServerFile
from .stages import Stage
from .urls import PATH, url

ENDPOINT: Final = "/mcp"
"""How the endpoint's URL ends, wherever the endpoint is."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options' values; `docs/configuration.md` describes each."""

    profile: Profile
    tools: Path
    stack: str
    identity: ServerIdentity
    """What the server tells clients about itself."""
    cell: str
    auth: Auth
    oauth: OAuth | None
    """What access tokens must say; None where there are none."""
    iam: Iam
    """Whom tasks belong to where callers sign with SigV4."""
    url: str | None
    """The endpoint's URL, when it is neither at the domain nor at API Gateway's name for it."""
    limits: Limits
    max_ttl: timedelta
    max_workers: int | None
    """Instances of each tool's worker; None where they are not limited."""
    throttle: Throttle
    allowed_origins: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    """The names it answers under; all, when there are none."""
    streaming: bool
    companion_tools: bool
    domain: str | None
    own_domain: DomainProps | None
    """The domain, where the stack creates it."""
    priority: int
    access_log: bool
    log_messages: bool
    """Whether the messages of exceptions are kept, in a log group of their own."""
    monitoring: MonitoringSettings
    """Whom alarms notify, what a month may cost, and what else tells how the stack is."""
    encryption: str
    """`aws`, `customer`, or the ARN of a KMS key."""
    data: str
    """`retain` or `destroy`."""
    earlier_keys: tuple[str, ...]
    """The ARNs of the KMS keys that encrypted the data before."""
    reserved: bool
    """Whether the stack's own functions have concurrency of their own."""
    rollout: Rollout

    @property
    def reserved_concurrency(self) -> ReservedConcurrency:
        """Which functions have concurrency of their own, and how much."""
        if self.profile.reserved_concurrency is not None:
            return ReservedConcurrency(default=self.profile.reserved_concurrency)
        return (
            ReservedConcurrency.of_stack(self.throttle.rate)
            if self.reserved
            else ReservedConcurrency()
        )

    @property
    def separate_subscriptions_api(self) -> bool:
        """Whether subscriptions have an API of their own: a domain's rules can tell them apart."""
        return self.streaming and self.domain is not None

    def check(self, catalogue: Catalogue) -> None:
        """Raise ValueError for tools that these settings do not allow, and for settings that do not
        fit each other."""
        check_scopes(catalogue, self.auth)
        check_ttl(catalogue, self.max_ttl)
        if self.oauth:
            self.rollout.check(self.reserved_concurrency.of("authorize"))

    @classmethod
    def from_context(cls, lookup: Callable[[str], Any], root: Path) -> Settings:
        """Read the context. Raises ValueError, with what the option takes."""
        named, stage = ServerFile.read(root), Stage.read(lookup, root)
        context = Context(stage.lookup)
        profile = profile_of(context.given("profile"))
        auth, oauth = auth_of(context, profile)
        domain = context.text("domain").lower()
        streaming = context.text("streaming") == "true"
        return cls(
            profile=profile,
            tools=_tools(context, root),
            stack=context.text("stack", stage.default_stack(named.stack)),
            identity=named.identity,
            cell=context.text("cell"),
            auth=auth,
            oauth=oauth,
            iam=iam_of(context, auth),
            url=url(context, profile, "url", PATH + ENDPOINT),
            limits=limits_of(context),
            max_ttl=max_ttl_of(context),
            max_workers=context.number("max_workers") or None,
            throttle=throttle_of(context),
            allowed_origins=(*profile.allowed_origins, *context.words("origins")),
            allowed_hosts=_hosts(context, profile, domain),
            streaming=streaming,
            companion_tools=context.text("companion_tools") == "on",
            domain=domain or None,
            own_domain=DomainProps.from_context(context, domain),
            priority=context.number("priority"),
            access_log=context.text("access_log") == "on",
            log_messages=context.text("log_messages") == "on",
            monitoring=MonitoringSettings.from_context(context),
            encryption=context.text("encryption"),
            data=context.text("data") if context.given("data") else profile.data,
            earlier_keys=tuple(context.text("earlier_keys").split()),
            reserved=context.text("reserved") == "on",
            rollout=Rollout.from_context(context, streams=streaming and not domain),
        )


def _tools(context: Context, root: Path) -> Path:
    given = context.given("tools") or OPTIONS["tools"].default
    folder = (root / given).resolve()
    if not folder.is_dir():
        raise refusal("tools", given, f"there is no folder {folder}")
    return folder


def _hosts(context: Context, profile: Profile, domain: str) -> tuple[str, ...]:
    """In lower case, as `check_host` compares them. Where only some names are allowed, the domain
    is one of them.
    """
    hosts = (*profile.allowed_hosts, *(host.lower() for host in context.words("hosts")))
    return (*hosts, domain) if hosts and domain else hosts
