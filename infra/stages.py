"""`stages/NAME.json`: the options of one stage, for instance `dev` or `prod` (`-c stage=NAME`).

    {"auth": "iam", "principal": "role", "alarms": "arn:aws:sns:..."}

The command line overrides a stage's options. An option in `cdk.json` counts for every stage, so it
must not stand in a stage's file as well.

    python -m infra.stages NAME    print the name of the stage's stack
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from .options import OPTIONS
from .server_toml import ServerFile

FOLDER: Final = "stages"
NAME: Final = "[a-z0-9][a-z0-9-]{0,15}"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage's name and options; no name and none where no stage was chosen."""

    given: Callable[[str], Any]
    """The value of a key of the command line or of `cdk.json`; None where there is none."""
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, given: Callable[[str], Any], root: Path) -> Stage:
        """Read the file of the stage that `-c stage=` names.

        Raises ValueError, which names the file and the key, for a file that is missing, is not a
        JSON object, or holds a key that is no option or stands in `cdk.json` as well.
        """
        name = str(given("stage") or "")
        if not name:
            return cls(given)
        file = root / FOLDER / f"{name}.json"
        if not re.fullmatch(NAME, name) or not file.is_file():
            there = ", ".join(sorted(path.stem for path in (root / FOLDER).glob("*.json")))
            raise ValueError(f"-c stage={name}: there is no {FOLDER}/{name}.json; there is {there}")
        options = _object(file)
        everywhere = json.loads((root / "cdk.json").read_text(encoding="utf-8")).get("context", {})
        for key, value in options.items():
            _check(f"{FOLDER}/{name}.json: {key}", key, value, everywhere)
        return cls(given, name, options)

    def lookup(self, key: str) -> Any:
        """The value of a key: of the command line, or else of the stage, or else of cdk.json."""
        value = self.given(key)
        return self.options.get(key) if value is None else value

    def default_stack(self, stack: str) -> str:
        """The stack's name where no option says it: that of `server.toml`, and the stage's."""
        return f"{stack}-{self.name}" if self.name else stack


def _object(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{FOLDER}/{file.name}: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{FOLDER}/{file.name}: it holds no JSON object of options")
    return found


def _check(where: str, key: str, value: object, everywhere: Mapping[str, Any]) -> None:
    if key not in OPTIONS or key == "stage":
        raise ValueError(f"{where}: unknown; docs/configuration.md lists the options")
    if key in everywhere:
        raise ValueError(f"{where}: cdk.json has it, too; keep one of them")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{where} = {json.dumps(value)}: a text or a whole number")


def stack_of(name: str, root: Path) -> str:
    """The name of a stage's stack. Raises ValueError, as `Stage.read` does."""
    stage = Stage.read({"stage": name}.get, root)
    return str(stage.lookup("stack") or stage.default_stack(ServerFile.read(root).stack))


if __name__ == "__main__":
    try:
        print(stack_of(sys.argv[1], Path(__file__).resolve().parent.parent))
    except ValueError as error:
        sys.exit(f"error: {error}")
