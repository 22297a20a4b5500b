"""The options of a deployment (`-c key=value`): what is read, refused, documented and passed on."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from infra.auth_options import KEYS, Iam
from infra.deployment_profiles import AWS, LOCAL
from infra.limits import Throttle
from infra.monitoring_settings import MonitoringSettings
from infra.option import Option
from infra.options import OPTIONS
from infra.options_page import page
from infra.rollout import Rollout
from infra.server_toml import ServerFile
from infra.settings import Settings
from mcp_tasks.limits import Limits
from mcp_tasks.registry.catalogue import Catalogue
from tests.infra.assembly import entry
from tests.infra.conftest import CERTIFICATE, IAM
from tests.paths import ROOT

NAMED = ServerFile.read(ROOT)


def _settings(**context: str) -> Settings:
    return Settings.from_context({**IAM, **context}.get, ROOT)


def test_a_deployment_that_only_says_who_may_call_goes_to_aws() -> None:
    assert _settings() == Settings(
        profile=AWS,
        tools=ROOT / "functions" / "tools",
        stack=NAMED.stack,
        identity=NAMED.identity,
        cell="c1",
        auth="iam",
        oauth=None,
        iam=Iam("session", "principal"),
        url=None,
        limits=Limits(),
        max_ttl=timedelta(days=30),
        max_workers=None,
        throttle=Throttle(rate=500, burst=1000),
        allowed_origins=(),
        allowed_hosts=(),
        streaming=False,
        companion_tools=True,
        domain=None,
        own_domain=None,
        priority=100,
        access_log=False,
        log_messages=False,
        monitoring=MonitoringSettings(),
        encryption="aws",
        data="retain",
        earlier_keys=(),
        reserved=True,
        rollout=Rollout(),
    )


def test_a_local_deployment_is_open_to_this_machine() -> None:
    settings = Settings.from_context({"profile": "local"}.get, ROOT)
    assert (settings.profile, settings.auth, settings.data) == (LOCAL, "none", "destroy")
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


def test_subscriptions_have_an_api_of_their_own_where_a_domain_can_tell_them_apart() -> None:
    domain = "mcp.example.com"
    assert _settings(streaming="true", domain=domain).separate_subscriptions_api
    assert not _settings(streaming="true").separate_subscriptions_api
    assert not _settings(domain=domain).separate_subscriptions_api


@pytest.mark.parametrize("priority", [1, 100, 90_000])
def test_a_priority_may_be_a_number(priority: int) -> None:
    """As cdk.json's context has it."""
    context = {**IAM, "priority": priority}
    assert Settings.from_context(context.get, ROOT).priority == priority


def test_the_table_of_options_holds_every_key_that_is_read() -> None:
    keys: set[str] = set()

    def lookup(key: str) -> str | None:
        keys.add(key)
        return IAM.get(key)

    Settings.from_context(lookup, ROOT)
    assert keys == {"profile", *OPTIONS}


def test_make_takes_the_options_of_the_table() -> None:
    """`make up` those that the emulator has a use for, `make deploy` and `make synth` all."""
    makefile = (ROOT / "Makefile").read_text()
    both, up, aws = (
        set(re.findall(rf"^{name} = (.*)", makefile, re.MULTILINE)[0].split())
        for name in ("OPTIONS", "UP_OPTIONS", "AWS_OPTIONS")
    )
    assert both | up == {name for name, option in OPTIONS.items() if option.emulator}
    assert aws == {name for name, option in OPTIONS.items() if not option.emulator}


def test_the_configuration_page_is_printed_from_the_table() -> None:
    """`python -m infra.options > docs/configuration.md` writes it anew."""
    assert (ROOT / "docs" / "configuration.md").read_text() == page()


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.name)
def test_the_example_of_an_option_is_taken(option: Option) -> None:
    name, _, value = shlex.split(option.example)[0].partition("=")
    assert name == option.name
    oauth = {"auth": "oauth", "issuer": "https://x.example", "audience": "x"}
    context = (IAM if name in (*KEYS["iam"], "stage") else oauth) | {name: value}
    if name in ("hosted_zone", "certificate"):
        context["domain"] = "mcp.example.com"
    Settings.from_context(context.get, ROOT)


def _made(*arguments: str, **environment: str) -> list[str]:
    """What `make` would run for its target, without what it needs for that. What is deployed is
    what was synthesized.
    """
    command = ["make", "--dry-run", "--no-print-directory", *arguments]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("MAKE")} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = run.stdout.splitlines()
    return shlex.split(next((line for line in lines if "cdk synth" in line), lines[-1]))


def _context(words: list[str]) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words) if word == "-c"]


def test_make_passes_options_on_as_they_are() -> None:
    """A list of scopes, or origins, is one value."""
    given = ["auth=oauth", "issuer=https://x.example", "audience=x", "scopes=a b", "max_tasks=5"]
    given += ["tools=my tools", "streaming=true"]
    assert _context(_made("deploy", *given)) == given


def test_make_deploys_what_it_has_synthesized_and_checked() -> None:
    """`operations/preflight/` reads the template that `cdk deploy` then takes."""
    command = ["make", "--dry-run", "--no-print-directory", "deploy", "auth=none"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *_, synth, check, deploy = run.stdout.splitlines()
    assert "cdk synth --quiet" in synth
    assert "-c 'auth=none'" in synth
    assert check.endswith("python -m operations.preflight")
    assert deploy.endswith("cdk deploy --app cdk.out --require-approval broadening")


def test_make_tells_preflight_what_may_change() -> None:
    command = ["make", "--dry-run", "preflight", "auth=none", "change=auth cell"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "python -m operations.preflight --change 'auth cell'" in run.stdout
    assert "-c 'change=" not in run.stdout


def test_make_up_takes_options_as_make_deploy_does() -> None:
    words = _made("up", "tools=my tools", "stack=notes", "streaming=true", "port=4567", "auth=iam")
    assert _context(words) == ["stack=notes", "auth=iam"]
    flags = {word: words[i + 1] for i, word in enumerate(words) if word.startswith("--")}
    assert flags == {"--tools": "my tools", "--streaming": "true", "--port": "4567"}


def test_make_up_takes_its_first_options_in_capitals_too() -> None:
    """Before it took all options, it took these. For AWS, they choose nothing."""
    given = ["AUTH=oauth", "ISSUER=http://127.0.0.1:1", "AUDIENCE=x", "SCOPES=a b", "rate=5"]
    assert _context(_made("up", *given)) == [
        "auth=oauth",
        "issuer=http://127.0.0.1:1",
        "audience=x",
        "scopes=a b",
        "rate=5",
    ]
    words = _made("up", "TOOLS=mine", "PORT=4567", "STREAMING=true")
    assert words[-6:] == ["--tools", "mine", "--streaming", "true", "--port", "4567"]
    assert _context(_made("deploy", AUTH="none")) == []


def test_make_destroy_needs_no_option_but_the_name() -> None:
    assert _context(_made("destroy", "stack=mine")) == ["profile=local", "stack=mine"]
    assert _context(_made("destroy", "stage=dev")) == ["profile=local", "stage=dev"]


def test_every_limit_can_be_chosen() -> None:
    context = {"max_tasks": "1", "max_creations": "2", "max_polls": "3", "max_subscriptions": "4"}
    context |= {"max_calls": "5", "max_new_subscriptions": "11"}
    context |= {"max_body": "5000", "max_arguments": "6000", "max_depth": "70"}
    context |= {"max_values": "8000"}
    settings = _settings(**context, max_ttl_days="8", rate="9", burst="10")
    assert settings.limits == Limits(1, 2, 3, 4, 11, 5, 5000, 6000, 70, 8000)
    assert settings.max_ttl == timedelta(days=8)
    assert _settings(max_workers="9").max_workers == 9
    assert settings.throttle == Throttle(rate=9, burst=10)


def test_a_tool_may_not_keep_its_tasks_for_longer_than_is_allowed() -> None:
    tools = Catalogue([entry("a", ttl=timedelta(days=3)), entry("b", ttl=timedelta(days=2))])
    _settings(max_ttl_days="3").check(tools)
    with pytest.raises(ValueError, match=r"^-c max_ttl_days=2: shorter than the ttl of a \(3 days"):
        _settings(max_ttl_days="2").check(tools)


def test_a_tools_folder_is_found_from_the_repository_or_from_anywhere(tmp_path: Path) -> None:
    assert _settings(tools="functions/tools").tools == ROOT / "functions" / "tools"
    assert _settings(tools=str(tmp_path)).tools == tmp_path.resolve()


@pytest.mark.parametrize(
    ("key", "value", "remedy"),
    [
        ("profile", "azure", "one of aws, local"),
        ("cell", "C1", "1 to 16 lower-case letters and digits"),
        ("cell", "a-b", "1 to 16 lower-case letters and digits"),
        ("cell", "c" * 17, "1 to 16 lower-case letters and digits"),
        ("stack", "1st", "1 to 28 letters, digits and hyphens"),
        ("stack", "my_stack", "1 to 28 letters, digits and hyphens"),
        ("stack", "s" * 29, "1 to 28 letters, digits and hyphens"),
        ("tools", "no/such/folder", "there is no folder .*no/such/folder"),
        ("access_log", "yes", "on or off"),
        ("alarms", "on-call", "topic, an e-mail address, the ARN of an SNS topic of this region"),
        ("alarms", "arn:aws:sqs:eu-west-1:111122223333:on-call", "topic, an e-mail address"),
        ("streaming", "yes", "true or false"),
        ("priority", "0", "1 to 90000, another for each stack of a domain"),
        ("priority", "90001", "1 to 90000, another for each stack of a domain"),
        ("priority", "first", "1 to 90000, another for each stack of a domain"),
        ("url", "https://cdn.example.com/", "an https:// URL that ends in /mcp"),
        ("url", "http://cdn.example.com/mcp", "an https:// URL that ends in /mcp"),
        ("url", "http://127.0.0.1:1/mcp", "an https:// URL that ends in /mcp"),
        ("url", "https://cdn.example.com/$x/mcp", "an https:// URL that ends in /mcp"),
        ("max_tasks", "-1", "0 to 500 tasks of one caller that are not terminal"),
        ("max_tasks", "501", "0 to 500 tasks of one caller that are not terminal"),
        ("max_creations", "10001", "0 to 10000 tasks that one caller creates a minute"),
        ("max_polls", "1001", "0 to 1000 polls a second"),
        ("max_subscriptions", "101", "0 to 100 open subscriptions"),
        ("max_new_subscriptions", "10001", "0 to 10000 subscriptions that one caller begins"),
        ("max_calls", "1001", "0 to 1000 calls of one caller"),
        ("max_workers", "-1", "0 to 10000 instances of each tool's worker"),
        ("reserved", "yes", "on or off"),
        ("budget", "0", "1 to 1000000 dollars"),
        ("budget", "9.99", "1 to 1000000 dollars"),
        ("dashboard", "yes", "on or off"),
        ("tracing", "true", "on or off"),
        ("max_body", "1023", "1024 to 5242880 bytes of a body; Lambda takes 6 MB"),
        ("max_body", "5242881", "1024 to 5242880 bytes of a body; Lambda takes 6 MB"),
        ("max_arguments", "5242881", "1024 to 5242880 bytes of arguments, which a body has to"),
        ("max_depth", "9", "10 to 500 levels"),
        ("max_depth", "501", "10 to 500 levels"),
        ("max_values", "999", "1000 to 1000000 JSON values"),
        ("max_values", "1000001", "1000 to 1000000 JSON values"),
        ("max_ttl_days", "366", "1 to 365 days"),
        ("max_ttl_days", "1.5", "1 to 365 days"),
        ("rate", "0", "1 to 100000 requests a second"),
        ("burst", "many", "1 to 100000 requests at once"),
        ("domain", "localhost", "a host name, such as mcp.example.com"),
        ("domain", "https://mcp.example.com", "a host name, such as mcp.example.com"),
        ("domain", "mcp.-example.com", "a host name, such as mcp.example.com"),
        ("domain", f"{'long.' * 50}com.example", "a host name, such as mcp.example.com"),
        ("hosted_zone", "example.com", "the id of a hosted zone, as aws route53 list-hosted-zones"),
        ("hosted_zone", "Z0123456789", "-c domain= is missing"),
        ("certificate", "1234", "the ARN of a certificate of this region"),
        ("certificate", CERTIFICATE, "-c domain= is missing"),
    ],
)
def test_a_bad_value_is_refused_with_what_the_option_takes(
    key: str, value: str, remedy: str
) -> None:
    with pytest.raises(ValueError, match=rf"^-c {key}={re.escape(value)}: {remedy}"):
        _settings(**{key: value})


def test_the_longest_stack_and_tool_names_make_a_legal_state_machine_name() -> None:
    """Step Functions allows 80 characters; the tool's share is 48 (`registry.tool`)."""
    stack = "s" * 28
    assert len(f"{_settings(stack=stack).stack}-{'t' * 48}") <= 80
