"""What a client says of itself in `_meta` (basic/index.mdx, "General fields").

That a request without it is refused is in test_endpoint; what a client can be asked for is in
test_capabilities, and trace context is in test_trace.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_tasks.protocol.errors import ProtocolError
from mcp_tasks.protocol.meta import CLIENT_INFO, LOG_LEVEL, read
from tests.unit.support.stack import REVISION, TASKS, meta

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


@pytest.mark.parametrize("token", ["", "bar", 0, -1, 7])
def test_a_progress_token_is_a_string_or_an_integer(token: str | int) -> None:
    """basic/patterns/progress.mdx, "Progress Flow"."""
    assert read({"_meta": {**meta(), "progressToken": token}}).progress_token == token


@pytest.mark.parametrize("level", ["debug", "info", "error", "emergency"])
def test_a_log_level_is_one_of_the_specifications(level: str) -> None:
    assert read({"_meta": {**meta(), LOG_LEVEL: level}}).log_level == level


def test_a_client_that_asks_for_no_notifications_gets_none() -> None:
    about = read({"_meta": meta()})
    assert (about.progress_token, about.log_level) == (None, None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("progressToken", 1.5),
        ("progressToken", True),
        ("progressToken", ["bar"]),
        (LOG_LEVEL, "verbose"),
        (LOG_LEVEL, "INFO"),
        (LOG_LEVEL, 3),
        (LOG_LEVEL, ["info"]),
    ],
)
def test_a_wish_for_notifications_that_is_malformed_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ProtocolError, match=field) as caught:
        read({"_meta": {**meta(), field: value}})
    assert caught.value.code == -32602


def test_other_keys_are_ignored() -> None:
    assert read({"_meta": {**meta(), "traceparent": "00-0-0-00", "com.example/x": 1}})
