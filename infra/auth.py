"""Who may call: a choice that is made by name, and never by leaving something out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.server.caller import Auth

from .options import Choices, refusal
from .profile import Profile

WAYS: Final = {
    "oauth": "callers bring an access token of an OIDC issuer; needs -c issuer=https://... "
    "(as its tokens' iss has it) and -c audience=... (as their aud names this server), and may "
    "have -c scopes='a b' (what every token must be good for)",
    "iam": "callers sign with SigV4, and their policies allow execute-api:Invoke; needs nothing",
    "none": "anybody may call; needs nothing, and is for servers that anybody may use",
}
OAUTH_KEYS: Final = ("issuer", "audience", "scopes")

HOST: Final = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:[0-9]{1,5})?"
LOOPBACK: Final = r"(localhost|127\.0\.0\.1)(:[0-9]{1,5})?"
PATH: Final = r"(/[A-Za-z0-9._~!*();:@&=+,%/-]*)?"
"""RFC 3986, without `$` and `'`, which mean something in API Gateway's templates and headers."""
SCOPE: Final = r"[!%&(-\[\]-~]+"
"""RFC 6749, section 3.3, without `$`, `#` and `'`, for the same reason."""


@dataclass(frozen=True, slots=True)
class OAuth:
    """What access tokens must say."""

    issuer: str
    audience: str
    scopes: tuple[str, ...]
    """What every token must be good for; tools may ask for more."""


def access_of(choices: Choices, profile: Profile) -> tuple[Auth, OAuth | None]:
    """Who may call. Raises ValueError."""
    auth: Auth
    match choices.given("auth") or profile.auth:
        case "oauth":
            return "oauth", _oauth_of(choices, profile)
        case "iam":
            auth = "iam"
        case "none":
            auth = "none"
        case None:
            ways = "".join(f"\n  -c auth={name}: {what}" for name, what in WAYS.items())
            raise ValueError(f"-c auth= is missing. Say who may call:{ways}")
        case other:
            ways = "; ".join(f"{name} ({what})" for name, what in WAYS.items())
            raise refusal("auth", str(other), f"one of {ways}")
    for key in OAUTH_KEYS:
        if value := choices.given(key):
            raise refusal(key, value, f"-c auth={auth} does not look at it; -c auth=oauth does")
    return auth, None


def url_of(choices: Choices, profile: Profile, key: str, path: str, remedy: str) -> str | None:
    """A URL without query and fragment; http only on the machine itself. Raises ValueError."""
    pattern = rf"https://{HOST}{path}"
    if profile.loopback:
        pattern = rf"{pattern}|http://{LOOPBACK}{path}"
        remedy = f"{remedy}, or http:// of 127.0.0.1 or localhost"
    return choices.text(key, "", f"|{pattern}", remedy) or None


def check_scopes(catalogue: Catalogue, auth: Auth) -> None:
    """Raise ValueError for tools that ask for scopes of callers who cannot have any."""
    names = [tool.name for tool in catalogue.tools.values() if tool.scopes]
    if auth == "iam" and names:
        raise refusal(
            "auth",
            auth,
            f"{', '.join(names)} may only be called with scopes, which callers that sign with "
            "SigV4 do not have; choose -c auth=oauth, or leave the scopes out",
        )


def _oauth_of(choices: Choices, profile: Profile) -> OAuth:
    missing = [key for key in ("issuer", "audience") if not choices.given(key)]
    if missing:
        needed = " and ".join(f"-c {key}=" for key in missing)
        raise refusal("auth", "oauth", f"{needed} {'is' if len(missing) == 1 else 'are'} missing")
    remedy = "an https:// URL, without query and fragment, exactly as its tokens' iss has it"
    issuer = url_of(choices, profile, "issuer", PATH, remedy)
    scopes = choices.words("scopes")
    for scope in scopes:
        if not re.fullmatch(SCOPE, scope):
            remedy = "scopes separated by spaces, of printable ASCII without \" \\ $ # and '"
            raise refusal("scopes", choices.given("scopes"), remedy)
    return OAuth(
        issuer=issuer or "",
        audience=choices.text("audience", "", "[!-~]{1,255}", "1 to 255 of printable ASCII"),
        scopes=tuple(dict.fromkeys(scopes)),
    )
