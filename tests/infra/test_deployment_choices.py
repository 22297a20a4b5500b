"""What a deployment may choose with `-c key=value`, and what it is told about the rest."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from infra.profile import AWS, LOCAL
from infra.settings import Settings
from tests.infra.conftest import ROOT


def _settings(**context: str) -> Settings:
    return Settings.from_context(context.get, ROOT)


def test_a_deployment_that_chooses_nothing_goes_to_aws_and_lets_nobody_in() -> None:
    assert _settings() == Settings(
        profile=AWS,
        tools=ROOT / "functions" / "tools",
        stack="mcp-tasks",
        cell="c1",
        auth="iam",
        allowed_origins=(),
        allowed_hosts=(),
        streaming=False,
        domain=None,
        priority=100,
        access_log=False,
    )


def test_a_local_deployment_is_open_to_this_machine() -> None:
    settings = _settings(profile="local")
    assert (settings.profile, settings.auth) == (LOCAL, "none")
    assert settings.allowed_origins == ("http://localhost:*", "http://127.0.0.1:*")
    assert settings.allowed_hosts == (
        "localhost:*",
        "127.0.0.1:*",
        "*.execute-api.localhost:*",
    )


def test_origins_are_added_to_those_of_the_profile() -> None:
    origins = "https://one.example  https://two.example"
    assert _settings(origins=origins).allowed_origins == tuple(origins.split())
    assert len(_settings(origins=origins, profile="local").allowed_origins) == 4


def test_hosts_are_added_to_those_of_the_profile() -> None:
    hosts = "mcp.example.com  *.mcp.example.com:8443"
    assert _settings(hosts=hosts).allowed_hosts == tuple(hosts.split())
    assert _settings(hosts=hosts, profile="local").allowed_hosts[-2:] == tuple(hosts.split())


def test_hosts_are_names_without_regard_to_case() -> None:
    """RFC 3986, section 3.2.2; `check_host` compares what the client sent in lower case."""
    assert _settings(hosts="MCP.Example.com").allowed_hosts == ("mcp.example.com",)


def test_a_domain_is_a_name_without_regard_to_case() -> None:
    assert _settings(domain="MCP.Example.com").domain == "mcp.example.com"


def test_a_domain_is_a_host_where_hosts_are_listed() -> None:
    """Where none are, all that lead to the server are: naming one would shut the others out."""
    domain = "mcp.example.com"
    assert _settings(domain=domain).allowed_hosts == ()
    assert _settings(domain=domain, hosts="a.example").allowed_hosts == ("a.example", domain)
    assert _settings(domain=domain, profile="local").allowed_hosts[-1] == domain


def test_listens_have_a_gateway_of_their_own_where_a_domain_can_tell_them_apart() -> None:
    domain = "mcp.example.com"
    assert _settings(streaming="true", domain=domain).listens_apart
    assert not _settings(streaming="true").listens_apart
    assert not _settings(domain=domain).listens_apart


@pytest.mark.parametrize("priority", [1, 100, 90_000])
def test_a_priority_may_be_a_number(priority: int) -> None:
    """As cdk.json's context has it."""
    context = {"priority": priority}
    assert Settings.from_context(context.get, ROOT).priority == priority


def test_every_choice_is_documented_and_can_be_given_to_make() -> None:
    keys: list[str] = []

    def context(key: str) -> None:
        keys.append(key)

    Settings.from_context(context, ROOT)
    text = ast.get_docstring(ast.parse((ROOT / "infra" / "app.py").read_text()))
    assert set(keys) == set(re.findall(r"^    (\w+)  ", str(text), re.MULTILINE))
    (given,) = re.findall(r"foreach key,([\w ]+),", (ROOT / "Makefile").read_text())
    assert set(keys) - {"profile", "tools"} == set(given.split())


def test_a_tools_folder_is_found_from_the_repository_or_from_anywhere(tmp_path: Path) -> None:
    assert _settings(tools="functions/tools").tools == ROOT / "functions" / "tools"
    assert _settings(tools=str(tmp_path)).tools == tmp_path.resolve()


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("profile", "azure", "one of aws, local"),
        ("auth", "basic", "iam .* or none"),
        ("cell", "C1", "1 to 16 lower-case letters and digits"),
        ("cell", "a-b", "1 to 16 lower-case letters and digits"),
        ("cell", "c" * 17, "1 to 16 lower-case letters and digits"),
        ("stack", "1st", "1 to 28 letters, digits and hyphens"),
        ("stack", "my_stack", "1 to 28 letters, digits and hyphens"),
        ("stack", "s" * 29, "1 to 28 letters, digits and hyphens"),
        ("tools", "no/such/folder", "there is no folder .*no/such/folder"),
        ("access_log", "yes", "on or off"),
        ("streaming", "yes", "true or false"),
        ("priority", "0", "1 to 90000, another for each stack of a domain"),
        ("priority", "90001", "1 to 90000, another for each stack of a domain"),
        ("priority", "first", "1 to 90000, another for each stack of a domain"),
        ("domain", "localhost", "a host name, such as mcp.example.com"),
        ("domain", "https://mcp.example.com", "a host name, such as mcp.example.com"),
        ("domain", "mcp.-example.com", "a host name, such as mcp.example.com"),
        ("domain", f"{'long.' * 50}com.example", "a host name, such as mcp.example.com"),
    ],
)
def test_a_bad_choice_is_refused_with_what_would_be_good(key: str, value: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=rf"-c {key}={value}: {remedy}"):
        _settings(**{key: value})


def test_the_longest_stack_and_tool_names_make_a_legal_state_machine_name() -> None:
    """Step Functions allows 80 characters; the tool's share is 48 (`registry.tool`)."""
    stack = "s" * 28
    assert len(f"{_settings(stack=stack).stack}-{'t' * 48}") <= 80
