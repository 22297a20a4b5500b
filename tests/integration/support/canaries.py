"""Canaries: strings that no log may contain, and where to look for them."""

from __future__ import annotations

import base64
import re
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.deployment import LocalStack
from local.environment import STATE
from tests.integration.support.aws import log_groups, log_lines


class Canaries:
    """Unique strings, each sent in one place of one request."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        """A new canary, of letters and digits: only base64 changes how it is written."""
        canary = f"canary{secrets.token_hex(8)}"
        self._names[canary] = name
        return canary

    def found_in(self, texts: Iterator[str]) -> dict[str, str]:
        """The names of the canaries that occur in the texts, each with the text."""
        forms = {form: name for canary, name in self._names.items() for form in _forms(canary)}
        # One expression for all canaries: there are many lines and few finds.
        any_form = re.compile("|".join(map(re.escape, forms)))
        return {forms[match[0]]: text[:2000] for text in texts for match in any_form.finditer(text)}


def _forms(canary: str) -> Iterator[str]:
    """A canary as it is, and in base64 at each of the three possible offsets."""
    yield canary
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + canary.encode()).decode().rstrip("=")
        # The first and the last character also hold bits of the neighbouring bytes.
        yield encoded[offset + 1 if offset else 0 : -1]


class Logs:
    """Everything that is logged after this object was made."""

    def __init__(self, stack: LocalStack, aws: Any) -> None:
        self._logs = aws("logs")
        self._since = int(time.time() * 1000)
        self._files = [STATE / stack.emulator.name / "emulator.log", stack.folder / "gateway.log"]
        self._offsets = [_size(file) for file in self._files]

    def groups(self) -> dict[str, list[str]]:
        """The messages of each log group."""
        return {
            group: list(log_lines(self._logs, group, startTime=self._since))
            for group in log_groups(self._logs)
        }

    def files(self) -> list[str]:
        """The logs of the emulator itself and of the local gateway, empty if it has not started."""
        texts = []
        for file, offset in zip(self._files, self._offsets, strict=True):
            if not file.exists():
                texts.append("")
                continue
            with file.open("rb") as log:
                log.seek(offset)
                texts.append(log.read().decode(errors="replace"))
        return texts


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
