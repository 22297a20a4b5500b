"""server.toml: what a deployment is called, in one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.server_toml import FILE_NAME, ServerFile
from local.deployment import stack_name
from mcp_tasks.server_identity import ServerIdentity
from tests.paths import ROOT

FULL = """
stack = "books"
name = "books-mcp"
title = "Books"
version = "3.1.0"
instructions = '''
Close the books of a month.
'''
"""


def _read(folder: Path, text: str) -> ServerFile:
    (folder / FILE_NAME).write_text(text, encoding="utf-8")
    return ServerFile.read(folder)


def test_it_names_the_stack_and_the_server(tmp_path: Path) -> None:
    assert _read(tmp_path, FULL) == ServerFile(
        "books", ServerIdentity("books-mcp", "3.1.0", "Books", "Close the books of a month.")
    )


def test_a_title_and_instructions_may_be_left_out(tmp_path: Path) -> None:
    named = _read(tmp_path, 'stack = "s"\nname = "n"\nversion = "1"\n')
    assert named.identity.implementation == {"name": "n", "version": "1"}
    assert named.identity.hint == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FULL.replace('version = "3.1.0"', ""), "version is missing"),
        (FULL.replace('stack = "books"', 'stack = ""'), "stack is missing"),
        (FULL + 'region = "eu-west-1"\n', "region: unknown; it has stack, name, version, title"),
        (FULL.replace('"3.1.0"', "3"), "version = 3: a text in quotes"),
        ("stack = books", "Invalid value"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{FILE_NAME}: .*{re.escape(message)}"):
        _read(tmp_path, text)


def test_a_repository_without_it_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"^{FILE_NAME}: .*No such file"):
        ServerFile.read(tmp_path)


def test_the_emulator_s_stack_is_called_by_it_too() -> None:
    """`local` reads the file by itself: it runs before anything is installed."""
    assert stack_name() == ServerFile.read(ROOT).stack


def test_functions_read_what_the_deployment_wrote(tmp_path: Path) -> None:
    identity = ServerIdentity("n", "1", "Übersicht", "Long.\nVery long.")
    identity.write(tmp_path)
    assert ServerIdentity.read(tmp_path) == identity
