"""Deploy the stack to an emulator with the real CDK. Standard library only."""

from __future__ import annotations

import hashlib
import json
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from .console import run, step
from .emulator import ACCOUNT, REGION, Emulator
from .environment import ROOT, STATE, tool_environment
from .proxy_event import STAGE

_bootstrapping = Lock()


API_ID_TAG = "ms-custom-id"
"""The emulator takes it for the id of an API that it makes."""


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A stack on an emulator."""

    emulator: Emulator
    name: str
    outputs: dict[str, str]

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        return endpoint(self.emulator, self.outputs["ApiId"])

    @property
    def folder(self) -> Path:
        """What the deployment left on this machine: `outputs.json`, and the assembly, `cdk.out`."""
        return _folder(self.emulator, self.name)


def endpoint(emulator: Emulator, api_id: str) -> str:
    """Where an emulator's API is."""
    return f"{emulator.url}/_aws/execute-api/{api_id}/{STAGE}/mcp"


def stack_name() -> str:
    """What the stack is called, where no other name is given: `stack` of server.toml."""
    name: str = tomllib.loads((ROOT / "server.toml").read_text(encoding="utf-8"))["stack"]
    return name


def deploy(
    emulator: Emulator,
    tools: Path,
    name: str | None = None,
    context: dict[str, str] | None = None,
) -> LocalStack:
    """Synthesize and deploy. The emulator is prepared for the CDK at the same time.

    The API gets an id that is known before it is there, so that the stack can know its URL here
    (`-c url=`): clients compare it with the one that the metadata of `-c auth=oauth` names.

    Raises CommandError with the CDK's own words.
    """
    name = name or stack_name()
    folder = _folder(emulator, name)
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**tool_environment(), **emulator.environment}
    outputs, assembly = folder / "outputs.json", folder / "cdk.out"
    api_id = hashlib.sha256(name.encode()).hexdigest()[:8]
    choices = {"profile": "local", "tools": str(tools), "stack": name}
    choices |= {"url": endpoint(emulator, api_id), **(context or {})}
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
            [
                *("cdk", "deploy", name, "--app", assembly, "--outputs-file", outputs),
                # A tag of the stack's, which CloudFormation gives to all that is in it.
                *("--tags", f"{API_ID_TAG}={api_id}"),
            ],
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
