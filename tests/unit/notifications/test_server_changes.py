"""Events of changed resources and lists."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks.notifications.server_changes import (
    LISTS,
    MAX_URI_CHARACTERS,
    RESOURCE_UPDATED,
    InvalidEvent,
    change_of_event,
    list_topic,
    resource_topic,
    server_change,
)


def test_an_event_of_a_resource_is_read() -> None:
    event = {"detail-type": RESOURCE_UPDATED, "id": "e1", "detail": {"uri": "a://b", "more": 1}}
    change = change_of_event(event)
    assert change.params == {"uri": "a://b"}
    assert change.topics == (resource_topic("a://b"),)
    assert change.entry_key.endswith("#e1")


@pytest.mark.parametrize("method", LISTS.values())
def test_an_event_of_a_list_is_read(method: str) -> None:
    change = change_of_event({"detail-type": method, "id": "e1", "detail": {"uri": "a://b"}})
    assert (change.params, change.topics) == ({}, (list_topic(method),))


def test_a_change_survives_its_json() -> None:
    import json

    change = change_of_event({"detail-type": RESOURCE_UPDATED, "id": "1", "detail": {"uri": "a"}})
    assert server_change(json.loads(change.detail())) == change


@pytest.mark.parametrize(
    "detail", [None, [], {}, {"uri": 1}, {"uri": ""}, {"uri": "a" * (MAX_URI_CHARACTERS + 1)}]
)
def test_an_event_without_a_uri_is_refused(detail: Any) -> None:
    with pytest.raises(InvalidEvent, match=r"detail\.uri must be a text"):
        change_of_event({"detail-type": RESOURCE_UPDATED, "id": "1", "detail": detail})
