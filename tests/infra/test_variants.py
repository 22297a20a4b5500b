"""The variants that cdk-nag and cfn-lint read have between them every kind of value of every
option: a finding that only one value brings about is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from infra.auth_options import AUTH_VALUES
from infra.option import Option
from infra.options import OPTIONS
from tests.infra.conftest import VARIANTS

KINDS = {
    "auth": list(AUTH_VALUES),
    "rollout": ["", "Canary.*", "Linear.*"],
    "origins": ["", r"[^ *]+", r"\S+ .+", r".*\*.*"],
}
"""The kinds of value of an option whose pattern does not tell them. CodeDeploy's configurations
differ in what is behind their name only.
"""
FILE_OF_OPTIONS = "stage"
"""It changes the template by the options in the file."""
TOKENS = re.compile(r"\\.|\[(?:\\.|[^\]])*\]|.")
TOGETHER = [
    ("rollout", "domain"),
    ("rollout", "snapstart"),
    ("encryption", "log_messages"),
    ("encryption", "earlier_keys"),
    ("tracing", "execution_log"),
    ("streaming", "domain"),
]
APART = [
    ("provisioned", "rollout"),
    ("rollout", "domain"),
    ("tracing", "domain"),
    ("streaming", "domain"),
    ("domain", "streaming"),
    ("certificate", "hosted_zone"),
    ("hosted_zone", "certificate"),
    ("earlier_keys", "encryption"),
]
"""The first without the second."""


def _kinds(option: Option) -> list[str]:
    """Patterns of the kinds of value: the alternatives of the option's own pattern."""
    if option.name in KINDS:
        return KINDS[option.name]
    return ["[0-9]+"] if option.bounds else list(_alternatives(option.pattern))


def _alternatives(pattern: str) -> Iterator[str]:
    """The parts between `|`, outside of groups and sets of characters."""
    depth, part = 0, ""
    for token in TOKENS.findall(pattern):
        if token == "|" and depth == 0:
            yield part
            part = ""
            continue
        depth += (token == "(") - (token == ")")
        part += token
    yield part


def test_alternatives_are_told_apart() -> None:
    assert list(_alternatives(r"|a(b|c)|[(|]d|e\|f")) == ["", "a(b|c)", "[(|]d", r"e\|f"]


@pytest.mark.parametrize(
    "option",
    [option for name, option in OPTIONS.items() if name != FILE_OF_OPTIONS],
    ids=lambda option: option.name,
)
def test_a_variant_has_each_kind_of_value_of_an_option(option: Option) -> None:
    """A new option, or a new value of one, has to be given to a job of `conftest.py`."""
    values = {chosen.get(option.name, option.default) for chosen in VARIANTS.values()}
    missing = [kind for kind in _kinds(option) if not any(re.fullmatch(kind, v) for v in values)]
    assert missing == [], f"no variant has such a value of {option.name}"
    assert values - {option.default}, f"no variant gives {option.name}"


@pytest.mark.parametrize(("one", "other"), TOGETHER)
def test_options_that_touch_the_same_resources_are_given_together(one: str, other: str) -> None:
    assert any(one in chosen and other in chosen for chosen in VARIANTS.values())


@pytest.mark.parametrize(("one", "other"), APART)
def test_and_one_without_the_other(one: str, other: str) -> None:
    assert any(one in chosen and other not in chosen for chosen in VARIANTS.values())
