"""What a deployment chose that its data depends on, written into the template's metadata.

`make preflight` compares it with what the deployed template says, so that a forgotten argument does
not change it (`operations/preflight/kept_choices.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # it needs the CDK, which takes seconds to start
    from .settings import Settings

CHOICES: Final = "mcp-tasks:choices"
"""The key of the template's `Metadata`."""


def kept_choices(settings: Settings) -> dict[str, str]:
    """The options that change what becomes of existing tasks, data and clients, and their values.

    An option's value is as the command line takes it; empty where it was left out.
    """
    return {
        "auth": settings.auth,
        "cell": settings.cell,
        "data": settings.data,
        "domain": settings.domain or "",
        "earlier_keys": " ".join(settings.earlier_keys),
        "encryption": settings.encryption,
        "issuer": settings.oauth.issuer if settings.oauth else "",
        "max_ttl_days": str(settings.max_ttl.days),
        "principal": settings.iam.principal if settings.auth == "iam" else "",
    }
