"""What the tools are asked about."""

from __future__ import annotations

from typing import Any

import pytest

from tests.infra.assembly import Assembly
from tests.infra.second_opinions import programs
from tests.infra.second_opinions.deployed_definitions import TOOL_FOLDERS, of_folder, synthesized
from tests.infra.second_opinions.lives import LIVES


@pytest.fixture(scope="session")
def definitions(on_aws: Assembly, on_this_machine: Assembly, fork: Assembly) -> dict[str, str]:
    """Every state machine that is deployed: its name, and its definition."""
    found = dict(synthesized(on_aws)) | dict(synthesized(fork))
    found |= {f"local: {name}": text for name, text in synthesized(on_this_machine)}
    for folder in TOOL_FOLDERS:
        found |= dict(of_folder(folder))
    return found


@pytest.fixture(scope="session")
def lives(definitions: dict[str, str]) -> list[dict[str, Any]]:
    """What the interpreters execute."""
    return [
        {
            "definition": definitions[life.state_machine],
            "name": life.name,
            "input": life.input,
            "script": life.script,
        }
        for life in LIVES.values()
    ]


@pytest.fixture(scope="session")
def ministack(lives: list[dict[str, Any]]) -> dict[str, Any]:
    """What MiniStack's interpreter made of the lives, and which expressions it evaluated."""
    executed: dict[str, Any] = programs.in_emulator("interpret_ministack.py", lives)
    return executed
