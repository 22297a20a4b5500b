"""URLs as options."""

from __future__ import annotations

from typing import Final

from .cdk_context import Context
from .deployment_profiles import Profile
from .options import OPTIONS

HOST: Final = r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:[0-9]{1,5})?"
LOOPBACK: Final = r"(localhost|127\.0\.0\.1)(:[0-9]{1,5})?"
PATH: Final = r"(/[A-Za-z0-9._~!*();:@&=+,%/-]*)?"
"""RFC 3986, without `$` and `'`, which mean something in API Gateway's templates and headers."""


def url(context: Context, profile: Profile, key: str, path: str = PATH) -> str | None:
    """An option that is a URL without query and fragment, or None when it was not given.

    http:// is taken only where the profile allows servers of this machine. Raises ValueError.
    """
    pattern = rf"https://{HOST}{path}"
    remedy = OPTIONS[key].values
    if profile.loopback:
        pattern = rf"{pattern}|http://{LOOPBACK}{path}"
        remedy = f"{remedy}, or http:// of 127.0.0.1 or localhost"
    return context.match(key, f"|{pattern}", remedy) or None
