"""Adding a file or a folder to the tools folder is all it takes, and what is wrong is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from infra.server_toml import ServerFile
from infra.tool_discovery import discover
from mcp_tasks.server_identity import ServerIdentity
from tests.infra.assembly import Assembly
from tests.infra.conftest import CONTEXT, IAM
from tests.infra.fork import BAD_PERMISSIONS
from tests.paths import ROOT

TOOL = '''
from mcp_tasks import tool

@tool(permissions={permissions})
def {name}(text: str) -> str:
    """Do something."""
    return text
'''


def test_every_task_tool_has_a_state_machine_named_after_it(fork: Assembly) -> None:
    machines = fork.resources("AWS::StepFunctions::StateMachine")
    assert {path: machine["StateMachineName"] for path, machine in machines.items()} == {
        "Tools/close_books/StateMachine": "fork-close_books",
        "Tools/count.words/StateMachine": "fork-count.words",
        "Tools/count_words/StateMachine": "fork-count_words",
        "Tools/report/StateMachine": "fork-report",
    }
    assert {machine["StateMachineType"] for machine in machines.values()} == {"STANDARD"}


def test_every_task_tool_with_code_has_a_worker(fork: Assembly) -> None:
    """A state machine that exists already, and a tool that runs within requests, have none."""
    workers = {
        function["Environment"]["Variables"]["TOOL"]: function
        for function in fork.resources("AWS::Lambda::Function").values()
        if function["Handler"] == "worker.handler.handler"
    }
    assert set(workers) == {"close_books", "count.words", "count_words", "report"}
    assert workers["count.words"]["MemorySize"] == 1536
    assert workers["report"]["Timeout"] == 900, "Lambda's limit"
    assert workers["count_words"]["Timeout"] == 65, "the state's timeout comes first"


def test_a_deployment_has_no_other_functions(fork: Assembly, no_tasks: Assembly) -> None:
    def handlers(assembly: Assembly) -> list[str]:
        functions = assembly.resources("AWS::Lambda::Function").values()
        return sorted(function["Handler"].split(".")[0] for function in functions)

    without_tools = ["api", "ask", "deliver", "finish", "publish", "subtasks", "sweep"]
    assert handlers(fork) == ["api", "ask", "authorize", *without_tools[2:], *["worker"] * 4]
    assert handlers(no_tasks) == without_tools


def test_the_bundle_holds_the_fork_s_code_and_its_catalogue(fork: Assembly) -> None:
    files = {str(p.relative_to(fork.bundle / "tools")) for p in fork.bundle.glob("tools/**/*.*")}
    assert {"count.py", "look_up.py", "legacy.py", "report/workflow.asl.json"} <= files
    catalogue = json.loads((fork.bundle / "catalogue.json").read_text())
    names = {kind: [entry["name"] for entry in entries] for kind, entries in catalogue.items()}
    assert names == {
        "tools": ["close_books", "count.words", "count_words", "legacy", "look_up", "report"],
        "resources": ["notes://all", "notes://{name}"],
        "prompts": ["rewrite"],
    }


def test_the_bundle_holds_what_the_server_is_called(fork: Assembly) -> None:
    """server.toml, whatever the stack is called."""
    assert ServerIdentity.read(fork.bundle) == ServerFile.read(ROOT).identity


def test_the_api_finds_a_tool_s_state_machine_by_its_name(fork: Assembly) -> None:
    """`Deployment.state_machine_arn`: the prefix, completed by the tool's name."""
    functions = fork.resources("AWS::Lambda::Function")
    prefix = functions["Api/Function"]["Environment"]["Variables"]["STATE_MACHINE_PREFIX"]
    for machine in fork.resources("AWS::StepFunctions::StateMachine").values():
        tool = machine["StateMachineName"].removeprefix("fork-")
        assert f"{prefix}{tool}".endswith(f":stateMachine:{machine['StateMachineName']}")


@pytest.mark.usefixtures("no_tools_left")
def test_a_module_that_cannot_be_imported_is_named_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("from mcp_tasks import tool\nimport no_such_module\n")
    with pytest.raises(ValueError, match=r"broken\.py, line 2: ModuleNotFoundError: .*no_such"):
        discover(tmp_path)


@pytest.mark.usefixtures("no_tools_left")
def test_a_module_that_is_not_python_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def tool(:\n")
    with pytest.raises(ValueError, match=r"SyntaxError: .*broken\.py, line 1"):
        discover(tmp_path)


@pytest.mark.usefixtures("no_tools_left")
def test_a_declaration_that_cannot_be_deployed_is_named_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(TOOL.format(name="slow", permissions="(), timeout=None"))
    with pytest.raises(ValueError, match=r"slow\.py, line 4: "):
        discover(tmp_path)


def _synth(tools: Path, **context: str) -> subprocess.CompletedProcess[str]:
    """Run the app as the CDK's CLI does."""
    return subprocess.run(
        [sys.executable, "-m", "infra.app"],
        cwd=ROOT,
        env=os.environ
        | {
            "CDK_OUTDIR": str(tools.parent / "out"),
            "CDK_CONTEXT_JSON": json.dumps(CONTEXT | IAM | {"tools": str(tools)} | context),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def _write(tools: Path, **modules: str) -> Path:
    tools.mkdir()
    for name, text in modules.items():
        (tools / f"{name}.py").write_text(text)
    return tools


@pytest.mark.usefixtures("no_tools_left")
def test_two_tools_of_one_name_are_refused(tmp_path: Path) -> None:
    text = TOOL.format(name="same", permissions=())
    with pytest.raises(ValueError, match=r"two tools are named 'same': in tools\.first and in "):
        discover(_write(tmp_path / "tools", first=text, second=text))


def test_a_module_that_fails_fails_the_synth(tmp_path: Path) -> None:
    run = _synth(_write(tmp_path / "tools", broken="1 / 0\n"))
    assert run.returncode == 1
    assert run.stderr.startswith("error: ")
    assert run.stderr.endswith("broken.py, line 1: ZeroDivisionError: division by zero\n")
    assert not list((tmp_path / "out").glob("*.json")), "nothing that could be deployed is left"


def test_a_bad_context_value_fails_the_synth(tmp_path: Path) -> None:
    run = _synth(_write(tmp_path / "tools"), streaming="some")
    assert run.returncode == 1
    assert run.stderr == "error: -c streaming=some: true or false\n"


@pytest.mark.parametrize("kind", BAD_PERMISSIONS)
def test_a_permission_that_is_no_policy_statement_fails_the_synth(
    assemblies: dict[str, Assembly], kind: str
) -> None:
    error = str(assemblies[f"refused: {kind}"].error)
    wrong = f"{BAD_PERMISSIONS[kind]}: permissions {{'action': 's3:GetObject'}}: "
    assert error.startswith(f"ValueError: {wrong}")


def test_a_tool_that_asks_for_all_actions_of_a_service_fails_the_synth(
    assemblies: dict[str, Assembly],
) -> None:
    """cdk-nag's finding; a wildcard in a resource is accepted as declared, one in an action not."""
    refused = assemblies["refused: all actions"]
    assert "ValidationFailed" in str(refused.error)
    assert {finding for _, finding in refused.violations} == {
        "AwsSolutions-IAM5[Action::s3:*]",
    }


def test_a_folder_without_tools_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="declares no tool, resource or prompt; write one with"):
        discover(_write(tmp_path / "tools", helpers="def add(a: int) -> int: return a\n"))


def test_a_folder_that_python_does_not_import_is_named(tmp_path: Path) -> None:
    tools = _write(tmp_path / "tools", first=TOOL.format(name="first", permissions=()))
    _write(tools / "second", tool=TOOL.format(name="second", permissions=()))
    with pytest.raises(ValueError, match=r"second has no __init__\.py, so its tools are not found"):
        discover(tools)
