"""A check of a deployment before it begins, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .deployment import Deployment


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has to say."""

    text: str
    refused: bool = False
    """Whether nothing may be deployed. The text then says what to do about it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check. It changes nothing in the account."""

    question: str
    """What it finds out, to complete "not checked whether"."""
    run: Callable[[Deployment], Finding]
    """Raises ClientError or BotoCoreError where it may not read: then CloudFormation decides."""
    changes: frozenset[str] = frozenset()
    """The words of `change=` that it heeds."""
