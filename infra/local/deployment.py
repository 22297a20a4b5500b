"""Deploy the stack to an emulator with the real CDK. Standard library only."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from .console import run, step
from .emulator import ACCOUNT, REGION, Emulator
from .environment import ROOT, STATE, tool_environment

_bootstrapping = Lock()


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A stack on an emulator."""

    emulator: Emulator
    name: str
    outputs: dict[str, str]

    @property
    def url(self) -> str:
        """The MCP endpoint; the one in the stack's outputs is AWS's."""
        path = f"{self.outputs['ApiId']}/{self.outputs['Stage']}/mcp"
        return f"{self.emulator.url}/_aws/execute-api/{path}"

    @property
    def folder(self) -> Path:
        """What the deployment left on this machine: `outputs.json`, and the assembly, `cdk.out`."""
        return _folder(self.emulator, self.name)


def deploy(
    emulator: Emulator, tools: Path, name: str = "mcp-tasks", context: dict[str, str] | None = None
) -> LocalStack:
    """Synthesize and deploy. The emulator is prepared for the CDK at the same time.

    Raises CommandError with the CDK's own words.
    """
    folder = _folder(emulator, name)
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**tool_environment(), **emulator.environment}
    outputs, assembly = folder / "outputs.json", folder / "cdk.out"
    choices = {"profile": "local", "tools": str(tools), "stack": name, **(context or {})}
    arguments = [part for key, value in choices.items() for part in ("-c", f"{key}={value}")]
    with step(f"deploying {tools.relative_to(ROOT) if tools.is_relative_to(ROOT) else tools}"):
        with ThreadPoolExecutor() as pool:
            bootstrapped = pool.submit(_bootstrap, emulator)
            run(
                ["cdk", "synth", "--quiet", "--output", assembly, *arguments],
                env=environment,
                cwd=ROOT,
                remedy="Mend what the message names, and run the command again.",
            )
            bootstrapped.result()
        run(
            ["cdk", "deploy", name, "--app", assembly, "--outputs-file", outputs],
            env=environment,
            cwd=ROOT,
            remedy="`make down` and try again.",
        )
    return find(emulator, name)


def find(emulator: Emulator, name: str) -> LocalStack:
    """A stack that was deployed to an emulator."""
    outputs = json.loads((_folder(emulator, name) / "outputs.json").read_text())
    return LocalStack(emulator, name, outputs[name])


def _folder(emulator: Emulator, name: str) -> Path:
    return STATE / emulator.name / name


def _bootstrap(emulator: Emulator) -> None:
    """Prepare an emulator for the CDK, once."""
    with _bootstrapping:
        done = STATE / emulator.name / f"bootstrapped-{emulator.pid}"
        if done.exists():
            return
        run(
            ["cdk", "bootstrap", f"aws://{ACCOUNT}/{REGION}"],
            env={**tool_environment(), **emulator.environment},
            cwd=done.parent,  # where no cdk.json makes it synthesize the app first
            remedy="The CDK could not prepare the emulator; `make down` and try again.",
        )
        done.touch()
