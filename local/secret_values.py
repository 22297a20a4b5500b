"""The values of tools' secrets on this machine: `secrets.toml`, which git ignores.

    "weather/api-key" = "..."      # a secret of Secrets Manager
    "/weather/token" = "..."       # a parameter of Parameter Store

`python -m local.secret_values` writes them into the emulator that the environment names, so that
tools read them as they do on AWS.
"""

from __future__ import annotations

import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from botocore.session import Session, get_session

from .console import say
from .environment import ROOT

FILE = ROOT / "secrets.toml"


def read_values(file: Path = FILE) -> dict[str, str]:
    """The file's values, by the names that tools declare; none without the file.

    Raises ValueError, without any value, for a file that does not hold texts by name.
    """
    if not file.is_file():
        return {}
    try:
        found: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError:
        found, wrong = {}, ["it is not TOML"]
    else:
        wrong = [name for name, value in found.items() if not isinstance(value, str)]
    if wrong:
        raise ValueError(f'{file.name}: {", ".join(wrong)}: write "name" = "value"')
    return found


def write_values(values: dict[str, str], session: Session) -> None:
    """Create the secrets and parameters in the session's account, or change their values."""
    parameters: Any = session.create_client("ssm")
    secrets: Any = session.create_client("secretsmanager")
    for name, value in values.items():
        if name.startswith("/"):
            parameters.put_parameter(Name=name, Value=value, Type="SecureString", Overwrite=True)
            continue
        with suppress(secrets.exceptions.ResourceExistsException):
            secrets.create_secret(Name=name, SecretString=value)
            continue
        secrets.put_secret_value(SecretId=name, SecretString=value)


def main() -> int:
    """Write the file's values into the emulator."""
    try:
        values = read_values()
    except ValueError as error:
        sys.exit(f"error: {error}")
    if values:
        write_values(values, get_session())
        say(f"  secrets.toml: {len(values)} values are in the emulator")
    return 0


if __name__ == "__main__":
    sys.exit(main())
