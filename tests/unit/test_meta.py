"""What a client says of itself in `_meta` (basic/index.mdx, "General fields").

That a request without it is refused is in test_endpoint.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks.protocol.meta import CLIENT_INFO, read
from tests.unit.stack import REVISION, TASKS, meta


@pytest.mark.parametrize(
    ("elicitation", "accepts"),
    [
        ({}, True),
        ({"form": {}}, True),
        ({"form": {}, "url": {}}, True),
        ({"url": {}}, False),
        (None, False),
        ([], False),
        (True, False),
        ("form", False),
    ],
)
def test_forms_are_shown_by_clients_that_say_so(elicitation: Any, accepts: bool) -> None:
    """client/elicitation.mdx, "Capabilities": an empty object means form mode."""
    assert read({"_meta": meta({"elicitation": elicitation})}).accepts_forms is accepts


def test_a_client_that_says_nothing_shows_no_forms() -> None:
    assert read({"_meta": meta({})}).accepts_forms is False


EXTENSIONS: Final[dict[str, tuple[Any, bool]]] = {
    "declared": ({TASKS: {}}, True),
    "declared with settings": ({TASKS: {"later": 1}}, True),
    "declared among others": ({"com.example/other": {}, TASKS: {}}, True),
    "another": ({"com.example/other": {}}, False),
    "another case": ({TASKS.upper(): {}}, False),
    "null": ({TASKS: None}, False),
    "true": ({TASKS: True}, False),
    "a list": ([TASKS], False),
}


@pytest.mark.parametrize(("extensions", "declares"), EXTENSIONS.values(), ids=EXTENSIONS)
def test_an_extension_is_declared_by_an_object_of_settings(extensions: Any, declares: bool) -> None:
    assert read({"_meta": meta({"extensions": extensions})}).declares_extension(TASKS) is declares


def test_client_info_is_optional_and_not_relied_on() -> None:
    with_info = {**meta(), CLIENT_INFO: {"name": "c", "version": "1"}}
    assert read({"_meta": with_info}) == read({"_meta": meta()})
    assert read({"_meta": {**meta(), CLIENT_INFO: None}}).protocol_version == REVISION


def test_other_keys_are_ignored() -> None:
    assert read({"_meta": {**meta(), "traceparent": "00-0-0-00", "com.example/x": 1}})
