"""What a deployment offers is built when its function starts, and not for each request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks.deployment import Deployment
from mcp_tasks.registry.catalogue import (
    FILE_NAME,
    Catalogue,
    Entry,
    PromptEntry,
    ResourceEntry,
    ToolEntry,
)
from mcp_tasks.server.revisions.handshake import HandshakeRevision
from mcp_tasks.server.revisions.v2026_07_28 import Revision20260728
from mcp_tasks.server.server import mcp_server
from tests.unit.support.aws import Calls
from tests.unit.support.stack import ENVIRONMENT, IDENTITY, REVISION, Stack
from tests.unit.support.whole import HANDSHAKE, whole_catalogue

REQUESTS: Final = 50
LISTS: Final = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
READS: Final[list[str]] = []
"""The entries whose definitions were read."""


class Watching:
    """Notes who reads a definition."""

    def __getattribute__(self, name: str) -> Any:
        if name == "definition":
            READS.append(object.__getattribute__(self, "name"))
        return super().__getattribute__(name)


class WatchedTool(Watching, ToolEntry):
    """A tool."""


class WatchedResource(Watching, ResourceEntry):
    """A resource."""


class WatchedPrompt(Watching, PromptEntry):
    """A prompt."""


def members(entry: Entry) -> dict[str, Any]:
    return {field.name: getattr(entry, field.name) for field in fields(entry)}


@pytest.fixture
def server(aws: Calls) -> Iterator[Stack]:
    """A server that has answered nothing yet."""
    whole = whole_catalogue()
    stack = Stack(
        aws,
        Catalogue(
            [WatchedTool(**members(entry)) for entry in whole.tools.values()],
            [WatchedResource(**members(entry)) for entry in whole.resources.values()],
            [WatchedPrompt(**members(entry)) for entry in whole.prompts.values()],
        ),
    )
    yield stack
    READS.clear()


def count(patch: pytest.MonkeyPatch, owner: type, name: str, seen: list[str]) -> None:
    """Note each call of a revision's method."""
    original = getattr(owner, name)

    def noting(revision: Any) -> Any:
        seen.append(f"{name} {revision.version}")
        return original(revision)

    patch.setattr(owner, name, noting)


def test_2026_is_ready_before_its_first_request(server: Stack) -> None:
    """Its clients are most of them; the others wait for their own first one."""
    offered = {
        *server.catalogue.tools,
        *server.catalogue.resources,
        *server.catalogue.prompts,
    }
    assert sorted(READS) == sorted(offered)


@pytest.mark.parametrize("method", LISTS)
def test_a_list_of_2026_reads_no_definition_again(server: Stack, method: str) -> None:
    READS.clear()
    for _ in range(REQUESTS):
        server.post(method)
    assert READS == []


@pytest.mark.parametrize("revision", HANDSHAKE)
def test_a_list_of_an_earlier_revision_reads_them_once(server: Stack, revision: str) -> None:
    READS.clear()
    server.post("ping", revision=revision)
    once = sorted(READS)
    assert once
    READS.clear()
    for _ in range(REQUESTS):
        for method in LISTS:
            server.post(method, revision=revision)
    assert READS == []


def test_discovery_and_handshakes_are_built_once(
    aws: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    count(monkeypatch, Revision20260728, "_discover", built)
    count(monkeypatch, HandshakeRevision, "_initialize", built)
    server = Stack(aws, whole_catalogue())
    for _ in range(REQUESTS):
        server.post("server/discover")
        for revision in HANDSHAKE:
            params: dict[str, Any] = {"protocolVersion": revision, "capabilities": {}}
            server.post("initialize", params, revision=revision)
    assert sorted(built) == sorted(
        [f"_discover {REVISION}", *(f"_initialize {revision}" for revision in HANDSHAKE)]
    )


def test_the_method_table_of_each_revision_is_built_once(
    aws: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []
    for revision in (Revision20260728, HandshakeRevision):
        count(monkeypatch, revision, "build_method_table", built)
    server = Stack(aws, whole_catalogue())
    assert built == [f"build_method_table {REVISION}"]
    for _ in range(REQUESTS):
        for version in (REVISION, *HANDSHAKE):
            server.post("tools/list", revision=version)
    versions = (REVISION, *HANDSHAKE)
    assert sorted(built) == sorted(f"build_method_table {version}" for version in versions)


def test_a_new_instance_builds_its_own(server: Stack) -> None:
    READS.clear()
    server.serve()
    assert READS


def test_the_file_is_read_once(aws: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says all that the lists need: no module of the tools is imported for them."""
    whole_catalogue().write(tmp_path / FILE_NAME)
    IDENTITY.write(tmp_path)
    monkeypatch.setattr("mcp_tasks.deployment.BUNDLE", tmp_path)
    read: list[Path] = []
    original = Catalogue.read

    def reading(file: Path) -> Catalogue:
        read.append(file)
        return original(file)

    monkeypatch.setattr(Catalogue, "read", reading)
    stack = Stack(aws, whole_catalogue())
    stack.deployment = Deployment(ENVIRONMENT, aws.client)
    stack.server = mcp_server(stack.deployment)
    for _ in range(REQUESTS):
        assert stack.post("tools/list").result["tools"]
        stack.post("server/discover")
    assert read == [tmp_path / FILE_NAME]
