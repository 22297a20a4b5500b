"""Who may call, read from context and refused: `-c auth=`, and the options that go with it.

On AWS, `auth` has no default: an open server has to be asked for by its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mcp_tasks.environment import Auth, Principal, QuotaPer
from mcp_tasks.protocol.scope_names import ONE_NAME, ScopeNames
from mcp_tasks.registry.catalogue import Catalogue

from .caller_options import SCOPE
from .cdk_context import Context, refusal
from .deployment_profiles import Profile
from .options import OPTIONS
from .urls import url

AUTH_VALUES: Final = {
    "oauth": "callers bring an access token of an OIDC issuer; needs -c issuer=https://... "
    "(as its tokens' iss has it), and may have -c audience=... (how their aud names this server, "
    "if not by the endpoint's URL) and -c scopes='a b' (what every token must be good for)",
    "iam": "callers sign with SigV4, and their policies allow execute-api:Invoke; needs "
    "-c principal=session|role (whom the tasks of an assumed role belong to)",
    "none": "anybody may call; needs nothing, and is for servers that anybody may use",
}
KEYS: Final[dict[str, tuple[str, ...]]] = {
    "oauth": ("issuer", "audience", "scopes", "scope_prefix", "token_typ"),
    "iam": ("principal", "quota_per"),
}
"""The options of one `auth`, which every other refuses."""


@dataclass(frozen=True, slots=True)
class OAuth:
    """What access tokens must say."""

    issuer: str
    audiences: tuple[str, ...]
    """A token names one of them. Empty for the endpoint's own URL, which may be known at deployment
    only."""
    scopes: tuple[str, ...]
    """The scopes that every token needs; tools may ask for more."""
    scope_names: ScopeNames = ONE_NAME
    token_typ: str = "jwt"  # noqa: S105  a type, no token
    """`at+jwt` when the tokens' header has to say that they are access tokens."""


@dataclass(frozen=True, slots=True)
class Iam:
    """Whom tasks belong to, and who shares limits, where callers sign with SigV4."""

    principal: Principal
    quota_per: QuotaPer


def auth_of(context: Context, profile: Profile) -> tuple[Auth, OAuth | None]:
    """Who may call. Raises ValueError."""
    auth: Auth
    match context.given("auth") or profile.auth:
        case "oauth":
            _refuse_other_keys(context, "oauth")
            return "oauth", _oauth_of(context, profile)
        case "iam":
            auth = "iam"
        case "none":
            auth = "none"
        case None:
            values = "".join(f"\n  -c auth={name}: {what}" for name, what in AUTH_VALUES.items())
            raise ValueError(f"-c auth= is missing. Say who may call:{values}")
        case other:
            values = "; ".join(f"{name} ({what})" for name, what in AUTH_VALUES.items())
            raise refusal("auth", str(other), f"one of {values}")
    _refuse_other_keys(context, auth)
    return auth, None


def iam_of(context: Context, auth: Auth) -> Iam:
    """Whom tasks belong to with `auth=iam`, where it has to be given. Raises ValueError."""
    if auth == "iam" and not context.given("principal"):
        raise refusal("auth", auth, f"-c principal= is missing: {OPTIONS['principal'].meaning}")
    principal: Principal = "role" if context.text("principal", "session") == "role" else "session"
    per: QuotaPer = "role" if context.text("quota_per") == "role" else "principal"
    return Iam(principal, per)


def check_scopes(catalogue: Catalogue, auth: Auth) -> None:
    """Raise ValueError for tools that need scopes when callers cannot have any."""
    names = [tool.name for tool in catalogue.tools.values() if tool.scopes]
    if auth == "iam" and names:
        raise refusal(
            "auth",
            auth,
            f"{', '.join(names)} may only be called with scopes, which callers that sign with "
            "SigV4 do not have; choose -c auth=oauth, or leave the scopes out",
        )


def _refuse_other_keys(context: Context, auth: Auth) -> None:
    """Raise ValueError for an option that goes with another `auth`."""
    for other, keys in KEYS.items():
        for key in keys:
            if auth != other and (value := context.given(key)):
                raise refusal(
                    key, value, f"-c auth={auth} does not look at it; -c auth={other} does"
                )


def _oauth_of(context: Context, profile: Profile) -> OAuth:
    if not context.given("issuer"):
        raise refusal("auth", "oauth", "-c issuer= is missing")
    issuer = url(context, profile, "issuer")
    scopes = context.words("scopes")
    if not all(re.fullmatch(SCOPE, scope) for scope in scopes):
        raise refusal("scopes", context.given("scopes"), OPTIONS["scopes"].values)
    return OAuth(
        issuer=issuer or "",
        audiences=tuple(dict.fromkeys(context.text("audience").split())),
        scopes=tuple(dict.fromkeys(scopes)),
        scope_names=ScopeNames(context.text("scope_prefix")),
        token_typ=context.text("token_typ"),
    )
