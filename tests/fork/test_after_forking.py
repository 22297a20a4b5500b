"""docs/after-you-fork.md, on a copy: rename, delete the samples, add a tool, take in a version."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.paths import ROOT
from tests.readme import README, tool_in_ten_lines

PAGE: Final = (ROOT / "docs" / "after-you-fork.md").read_text(encoding="utf-8")
NOT_COPIED: Final = shutil.ignore_patterns(
    ".git", ".venv", ".local", "cdk.out", "__pycache__", ".*_cache"
)
SERVER: Final = """
stack = "books"
name = "books-mcp"
version = "1.0.0"
"""
TOOL_TEST: Final = "tests/tools/test_count_words.py"
NOTICES: Final = (
    "tests/tools",
    "tests/unit/handlers/test_events.py",
    "tests/unit/handlers/test_authorize.py",
    "tests/unit/infra/test_server_toml.py",
    "tests/unit/local/test_deployment.py",
    "tests/unit/local/gateway/test_command_line.py",
    "tests/unit/test_documentation.py",
    "tests/infra/test_options.py",
    "tests/infra/test_pipeline.py",
    "tests/infra/test_stages.py",
)
"""The tests that look at the tools folder, at what is shown of it, or at a name."""


def _run(folder: Path, *command: str, **environment: str) -> str:
    """What a command prints. Fails the test with it when the command fails."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "MAKE"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def _pytest(folder: Path, *arguments: str) -> str:
    quiet = ("-q", "-p", "no:cacheprovider")
    return _run(folder, sys.executable, "-m", "pytest", *quiet, *arguments)


def _shown(title: str, number: int = 0) -> str:
    """The commands of a section of the page."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    shown: list[str] = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    return shown[number]


def _after_forking(folder: Path) -> None:
    """What the page says to do, and the README's tool with its test."""
    (folder / "server.toml").write_text(SERVER)
    _run(folder, "sh", "-ec", _shown("Delete the samples"))
    (folder / "functions" / "tools" / "count_words.py").write_text(tool_in_ten_lines())
    (shown,) = (
        code
        for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL)
        if "from tools.count_words import" in code
    )
    (folder / TOOL_TEST).write_text(shown)


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fork of this repository, as it is now."""
    folder = tmp_path_factory.mktemp("fork") / "repository"
    shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
    _after_forking(folder)
    # What the commands have installed.
    (folder / ".local").symlink_to(ROOT / ".local")
    return folder


def test_every_test_that_is_left_can_be_collected(fork: Path) -> None:
    collected = _pytest(fork, "--collect-only")
    assert TOOL_TEST in collected
    assert "profile_dataset" not in collected


def test_what_could_notice_is_green(fork: Path) -> None:
    assert " failed" not in _pytest(fork, *NOTICES)


def test_the_stack_has_the_fork_s_name_and_tool(fork: Path, tmp_path: Path) -> None:
    context = json.loads((fork / "cdk.json").read_text())["context"] | {"profile": "local"}
    environment = {"CDK_OUTDIR": str(tmp_path), "CDK_CONTEXT_JSON": json.dumps(context)}
    _run(fork, sys.executable, "-m", "infra.app", **environment)
    template = json.loads((tmp_path / "books.template.json").read_text())
    machines = [
        resource["Properties"]["StateMachineName"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::StepFunctions::StateMachine"
    ]
    assert machines == ["books-count_words"]


def _commit(folder: Path, message: str) -> None:
    _run(folder, "git", "add", "--all")
    _run(folder, "git", "commit", "--quiet", "--message", message)


def test_a_later_version_is_taken_in_without_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that changes the platform, a sample, the README and server.toml, and adds a sample."""
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Somebody")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "somebody@example.com")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    template, fork = tmp_path / "template", tmp_path / "fork"
    shutil.copytree(ROOT, template, ignore=NOT_COPIED)
    _run(template, "git", "init", "--quiet", "--initial-branch", "main")
    _commit(template, "0.2.0")
    _run(tmp_path, "git", "clone", "--quiet", str(template), str(fork))
    _after_forking(fork)
    (fork / "README.md").write_text("# Books\n")
    _commit(fork, "Fork")
    yours = _files(fork)

    for name in ("README.md", "server.toml", "functions/tools/greet.py", "infra/stack.py"):
        with (template / name).open("a") as file:
            file.write("# changed\n")
    (template / "functions" / "tools" / "another_sample.py").write_text("")
    (template / "tests" / "tools" / "airports.csv").write_text("iata\n")
    _commit(template, "0.3.0")

    once = _shown("Take in a later version").replace(
        "https://github.com/OWNER/REPOSITORY.git", str(template)
    )
    _run(fork, "sh", "-ec", once)
    fetch, merge, *rest = _shown("Take in a later version", 1).splitlines()
    _run(fork, "sh", "-ec", fetch)
    # git ends with 1 when it leaves something to decide, as it does about a deleted sample.
    subprocess.run(merge.split(), cwd=fork, capture_output=True, check=False)
    for command in rest:
        _run(fork, "sh", "-ec", command)

    assert _run(fork, "git", "status", "--porcelain") == ""
    assert _files(fork) == yours
    assert (fork / "infra" / "stack.py").read_text().endswith("# changed\n")
    assert _run(fork, "git", "log", "-1", "--format=%P").count(" ") == 1, "a merge"


def _files(fork: Path) -> dict[str, str]:
    """What is the fork's own."""
    tracked = _run(
        fork, "git", "ls-files", "functions/tools", "tests/tools", "server.toml", "README.md"
    )
    return {name: (fork / name).read_text() for name in tracked.splitlines()}
