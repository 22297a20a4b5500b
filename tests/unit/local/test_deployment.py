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
        self.environments: list[dict[str, str]] = []

    def __call__(self, command: Sequence[str | Path], **options: Any) -> str:
        words = [str(word) for word in command]
        self.environments.append(options["env"])
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


def test_the_cdk_has_the_emulator_s_keys_and_nothing_of_the_caller_s_account(
    cdk: Cdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The emulator refuses its keys together with a session token of somebody else's."""
    (tmp_path / "test" / "bootstrapped-1").unlink()
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "of the caller's account")
    deployment.deploy(EMULATOR, tmp_path)
    assert cdk.commands.keys() == {"bootstrap", "synth", "deploy"}
    for environment in cdk.environments:
        given = {name: value for name, value in environment.items() if name.startswith("AWS_")}
        assert given == EMULATOR.environment


def test_the_keys_of_what_make_up_started_can_be_had(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`eval "$(python3 -m local environment)"`."""
    monkeypatch.setattr("local.emulator.find", lambda name: EMULATOR)
    assert commands.environment() == 0
    first, *exports = capsys.readouterr().out.splitlines()
    assert first == "unset AWS_PROFILE AWS_SESSION_TOKEN"
    assert dict(line.removeprefix("export ").split("=") for line in exports) == EMULATOR.environment
    monkeypatch.setattr("local.emulator.find", lambda name: None)
    assert commands.environment() == 1


def test_make_up_deploys_the_stack_that_is_named(
    cdk: Cdk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    monkeypatch.setattr(commands, "ENDPOINT", tmp_path / "endpoint")
    monkeypatch.setattr(commands, "prepare", lambda: None)
    monkeypatch.setattr("local.emulator.start", lambda name, port, **_: EMULATOR)
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
