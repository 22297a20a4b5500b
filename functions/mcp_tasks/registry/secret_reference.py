"""What a tool declares of its surroundings: secrets by reference, and environment variables.

secrets={"API_KEY": "weather/api-key"}                    a secret of Secrets Manager, by name
secrets={"API_KEY": "/weather/api-key"}                   a parameter of Parameter Store
secrets={"API_KEY": "arn:aws:secretsmanager:...:secret:..."}, or a parameter's ARN
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from .. import environment

_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:(?P<service>secretsmanager|ssm):[a-z0-9-]+:[0-9]{12}:"
    r"(?(service)(secret:[A-Za-z0-9/_+=.@-]+|parameter/[A-Za-z0-9_./-]+))"
)
_PARAMETER: Final = re.compile(r"/[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*")
"""Systems Manager user guide, "Working with parameter names": a hierarchy begins with a slash."""
_SECRET: Final = re.compile(r"[A-Za-z0-9_+=.@-][A-Za-z0-9/_+=.@-]{0,511}")
"""Secrets Manager API reference, "CreateSecret". A name that begins with a slash needs its ARN."""
_VARIABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
"""Lambda developer guide, "Using Lambda environment variables"."""
_RESERVED: Final = ("AWS_", "LAMBDA_", "POWERTOOLS_", "_X_AMZN_", "PYTHON")
_OWN: Final = frozenset(value for name, value in vars(environment).items() if name.isupper())


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Where a secret's value is."""

    service: Literal["secretsmanager", "ssm"]
    id: str
    """A name, or an ARN."""


def secret_reference(text: str) -> SecretReference:
    """Read a reference. Raises ValueError for what is neither a secret nor a parameter."""
    if match := _ARN.fullmatch(text):
        service: Literal["secretsmanager", "ssm"] = (
            "ssm" if match["service"] == "ssm" else "secretsmanager"
        )
        if (":parameter/" in text) == (service == "ssm"):
            return SecretReference(service, text)
    elif _PARAMETER.fullmatch(text):
        return SecretReference("ssm", text)
    elif _SECRET.fullmatch(text) and not text.startswith("arn:"):
        return SecretReference("secretsmanager", text)
    raise ValueError(
        "a secret is named by its name in Secrets Manager, by the path of a parameter (with a "
        "slash in front), or by the ARN of one of the two"
    )


def check_surroundings(tool: str, secrets: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Raise ValueError, with the tool's name, for secrets or variables that cannot be deployed.

    The message quotes no value of `secrets`: an author may have put the secret itself there.
    """
    for name, reference in _texts(tool, "secrets", secrets):
        try:
            secret_reference(reference)
        except ValueError as error:
            raise ValueError(f"{tool}: secrets[{name!r}]: {error}") from None
    for name, _ in _texts(tool, "env", env):
        if name.startswith(_RESERVED) or name in _OWN:
            raise ValueError(f"{tool}: env[{name!r}] is a name of Lambda's or of the server's own")


def _texts(tool: str, what: str, given: Any) -> list[tuple[str, str]]:
    named = isinstance(given, Mapping) and all(
        isinstance(name, str) and _VARIABLE.fullmatch(name) and isinstance(value, str)
        for name, value in given.items()
    )
    if not named:
        raise ValueError(
            f"{tool}: {what} is a dict of texts by name; a name is a letter and then letters, "
            "digits and underscores"
        )
    return list(given.items())
