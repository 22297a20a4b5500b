"""`server.toml`: what a deployment is called. It is a fork's own file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcp_tasks.server_identity import ServerIdentity

FILE_NAME: Final = "server.toml"
REQUIRED: Final = ("stack", "name", "version")
OPTIONAL: Final = ("title", "instructions")


@dataclass(frozen=True, slots=True)
class ServerFile:
    """The file, read."""

    stack: str
    """The stack's name, where `-c stack=` gives no other."""
    identity: ServerIdentity

    @classmethod
    def read(cls, root: Path) -> ServerFile:
        """Read the file of a repository.

        Raises ValueError, which names the file and the key, when the file is missing, is not TOML,
        or has a key too many or too few.
        """
        try:
            found = tomllib.loads((root / FILE_NAME).read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{FILE_NAME}: {error}") from error
        for key in REQUIRED:
            if not found.get(key):
                raise ValueError(f"{FILE_NAME}: {key} is missing")
        for key, value in found.items():
            if key not in (*REQUIRED, *OPTIONAL):
                known = ", ".join((*REQUIRED, *OPTIONAL))
                raise ValueError(f"{FILE_NAME}: {key}: unknown; it has {known}")
            if not isinstance(value, str):
                raise ValueError(f"{FILE_NAME}: {key} = {value!r}: a text in quotes")
        texts = {key: value.strip() for key, value in found.items() if key != "stack"}
        return cls(found["stack"], ServerIdentity(**texts))
