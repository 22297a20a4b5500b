"""Which lists a deployment has changed, and how that is announced."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tasks.notifications.announced_lists import AnnouncedLists
from mcp_tasks.notifications.event_bus import EventBus, NotPublished
from mcp_tasks.notifications.server_changes import LISTS
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.list_versions import list_versions
from tests.unit.support.aws import Calls, create_mailboxes
from tests.unit.support.whole import whole_catalogue

OLD = {"tools": "1", "prompts": "1", "resources": "1"}


@pytest.fixture
def versions(aws: Calls) -> AnnouncedLists:
    return AnnouncedLists(aws.client("dynamodb"), create_mailboxes())


@pytest.fixture
def announced(aws: Calls) -> list[str]:
    """The methods of what is put onto the bus."""
    found: list[str] = []

    def put(**arguments: Any) -> dict[str, Any]:
        found.extend(entry["DetailType"] for entry in arguments["Entries"])
        return {"FailedEntryCount": 0, "Entries": []}

    aws.instead["put_events"] = put
    return found


def test_a_changed_list_is_announced_once(
    aws: Calls, versions: AnnouncedLists, announced: list[str]
) -> None:
    bus = EventBus(aws.client("events"), "bus")
    assert versions.announce_changes(OLD, bus) == [], "the first deployment"
    assert versions.announce_changes({**OLD, "prompts": "2"}, bus) == ["prompts"]
    assert versions.announce_changes({**OLD, "prompts": "2"}, bus) == []
    assert announced == [LISTS["prompts"]]


def test_an_unchanged_list_is_one_read(
    aws: Calls, versions: AnnouncedLists, announced: list[str]
) -> None:
    bus = EventBus(aws.client("events"), "bus")
    versions.announce_changes(OLD, bus)
    aws.made.clear()
    versions.announce_changes(OLD, bus)
    assert aws.operations == ["query"]


def test_what_was_not_published_is_announced_again(aws: Calls, versions: AnnouncedLists) -> None:
    bus = EventBus(aws.client("events"), "bus")
    versions.announce_changes(OLD, bus)
    failed = {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "InternalFailure"}]}
    aws.instead["put_events"] = lambda **arguments: failed
    with pytest.raises(NotPublished, match="InternalFailure"):
        versions.announce_changes({**OLD, "tools": "2"}, bus)
    aws.instead["put_events"] = lambda **arguments: {"FailedEntryCount": 0, "Entries": []}
    assert versions.announce_changes({**OLD, "tools": "2"}, bus) == ["tools"]


def test_a_version_follows_from_what_clients_see() -> None:
    whole = whole_catalogue()
    fewer = Catalogue(
        list(whole.tools.values())[1:], whole.resources.values(), whole.prompts.values()
    )
    before, after = list_versions(whole), list_versions(fewer)
    assert before == list_versions(whole_catalogue())
    assert {name for name in LISTS if before[name] != after[name]} == {"tools"}
