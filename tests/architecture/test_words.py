"""Modules, classes, functions and parameters have names of the glossary in docs/design.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.architecture.modules import Module, modules

INSTEAD: Final = {
    "carrier": "response channel",
    "letter": "mailbox entry, or dead-letter message",
    "letters": "mailbox entries, or dead-letter messages",
    "offer": "server methods",
    "places": "quotas",
    "repair": "reconcile",
    "rounds": "multi round-trip request",
}
"""Word -> what the glossary says instead."""


def names(module: Module) -> Iterator[str]:
    """What a module is called, and what is defined in it."""
    yield module.name
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg


def words(name: str) -> list[str]:
    """A name's words: of `CallerQuotas`, `caller` and `quotas`. A dead letter is one word."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return re.split(r"[._]+", apart.replace("dead_letter", "deadletter"))


def test_the_glossary_s_words_are_used() -> None:
    found = [
        f"{module.place}: {name}: say {INSTEAD[word]}"
        for module in modules()
        for name in names(module)
        for word in words(name)
        if word in INSTEAD
    ]

    assert found == []
