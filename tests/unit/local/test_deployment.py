"""What a deployment to the emulator passes to the CDK."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from local import __main__ as commands
from local import deployment
from local.emulator import Emulator

EMULATOR = Emulator("test", 1, 4566)


class Cdk:
    """Replaces the CDK's CLI: keeps the commands, and outputs the API id of the tag."""

    def __init__(self) -> None:
        self.commands: dict[str, list[str]] = {}

    def __call__(self, command: Sequence[str | Path], **_: Any) -> str:
        words = [str(word) for word in command]
        self.commands[words[1]] = words
        if words[1] == "deploy":
            tag, equals, api_id = words[words.index("--tags") + 1].partition("=")
            assert (tag, equals) == ("ms-custom-id", "=")
            outputs = Path(words[words.index("--outputs-file") + 1])
            outputs.write_text(json.dumps({words[2]: {"ApiId": api_id}}))
        return ""

    @property
    def context(self) -> dict[str, str]:
        words = self.commands["synth"]
        pairs = [words[i + 1].partition("=") for i, word in enumerate(words) if word == "-c"]
        return {key: value for key, _, value in pairs}


@pytest.fixture
def cdk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cdk:
    cdk = Cdk()
    monkeypatch.setattr(deployment, "run", cdk)
    monkeypatch.setattr(deployment, "STATE", tmp_path)
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "bootstrapped-1").touch()
    return cdk


def test_the_stack_is_given_the_url_that_it_will_have(cdk: Cdk, tmp_path: Path) -> None:
    """Clients must not use a server whose metadata names another URL (RFC 9728, section 3.3)."""
    stack = deployment.deploy(EMULATOR, tmp_path)
    assert cdk.context["url"] == stack.url
    assert stack.url.startswith("http://127.0.0.1:4566/_aws/execute-api/")
    assert stack.url.endswith("/v1/mcp")


def test_each_stack_of_an_emulator_has_an_api_id_of_its_own_and_keeps_it(
    cdk: Cdk, tmp_path: Path
) -> None:
    names = ("one", "two", "one")
    first, second, again = (deployment.deploy(EMULATOR, tmp_path, name).url for name in names)
    assert first != second
    assert first == again


def test_make_up_deploys_the_stack_that_is_named(
    cdk: Cdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    monkeypatch.setattr(commands, "ENDPOINT", tmp_path / "endpoint")
    monkeypatch.setattr(commands, "prepare", lambda: None)
    monkeypatch.setattr("local.emulator.start", lambda name, port: EMULATOR)
    assert commands.up(tmp_path, None, False, {"stack": "books"}) == 0
    assert (cdk.context["stack"], cdk.commands["deploy"][2]) == ("books", "books")


def test_options_reach_the_app_and_a_given_url_replaces_the_stacks_own(
    cdk: Cdk, tmp_path: Path
) -> None:
    """With streaming=true, the given URL is the gateway's."""
    chosen = {"auth": "oauth", "scopes": "a b", "url": "http://127.0.0.1:8000/v1/mcp"}
    deployment.deploy(EMULATOR, tmp_path, context=chosen)
    assert chosen.items() <= cdk.context.items()
    assert (cdk.context["profile"], cdk.context["stack"]) == ("local", deployment.stack_name())
