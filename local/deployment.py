"""Deploy the stack to an emulator with the CDK's command line. Standard library only."""

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

STAGE = "v1"
"""The stage of the stack's REST API."""

API_ID_TAG = "ms-custom-id"
"""The emulator gives a REST API the id that this tag names."""

_bootstrapping = Lock()


@dataclass(frozen=True, slots=True)
class LocalStack:
    """A stack that is deployed to an emulator."""

    emulator: Emulator
    name: str
    outputs: dict[str, str]

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        return endpoint(self.emulator, self.outputs["ApiId"])

    @property
    def folder(self) -> Path:
        """The deployment's files on this machine: `outputs.json` and the assembly, `cdk.out`."""
        return _folder(self.emulator, self.name)


def endpoint(emulator: Emulator, api_id: str) -> str:
    """The MCP endpoint of a REST API on an emulator."""
    return f"{emulator.url}/_aws/execute-api/{api_id}/{STAGE}/mcp"


def stack_name() -> str:
    """The stack's name where no other is given: `stack` in server.toml."""
    name: str = tomllib.loads((ROOT / "server.toml").read_text(encoding="utf-8"))["stack"]
    return name


def deploy(
    emulator: Emulator,
    tools: Path,
    name: str | None = None,
    context: dict[str, str] | None = None,
) -> LocalStack:
    """Synthesize the stack and deploy it. `context` are further options of `infra/app.py`.

    The API's id is chosen here, so that the stack can be given its own URL (`-c url=`): clients
    compare it with the URL in the metadata of `auth=oauth`.

    Raises CommandError with the CDK's output.
    """
    name = name or stack_name()
    folder = _folder(emulator, name)
    folder.mkdir(parents=True, exist_ok=True)
    environment = _environment(emulator)
    outputs, assembly = folder / "outputs.json", folder / "cdk.out"
    api_id = hashlib.sha256(name.encode()).hexdigest()[:8]
    options = {"profile": "local", "tools": str(tools), "stack": name}
    options |= {"url": endpoint(emulator, api_id), **(context or {})}
    with step(f"deploying {tools.relative_to(ROOT) if tools.is_relative_to(ROOT) else tools}"):
        # The emulator is prepared for the CDK while the stack is synthesized.
        with ThreadPoolExecutor() as pool:
            bootstrapped = pool.submit(_bootstrap, emulator)
            _synthesize(assembly, options, environment)
            bootstrapped.result()
        _write_secret_values(environment)
        run(
            [
                *("cdk", "deploy", name, "--app", assembly, "--outputs-file", outputs),
                # CloudFormation gives the stack's tags to all of its resources.
                *("--tags", f"{API_ID_TAG}={api_id}"),
            ],
            env=environment,
            cwd=ROOT,
            remedy="`make down` and try again.",
        )
    return find(emulator, name)


def _write_secret_values(environment: dict[str, str]) -> None:
    """Write what secrets.toml has into the emulator."""
    if (ROOT / "secrets.toml").is_file():
        remedy = "Write each line of secrets.toml as the message says."
        run(["python", "-m", "local.secret_values"], env=environment, cwd=ROOT, remedy=remedy)


def _environment(emulator: Emulator) -> dict[str, str]:
    """The CDK's environment: nothing of the caller's AWS account, such as a session token."""
    inherited = {k: v for k, v in tool_environment().items() if not k.startswith("AWS_")}
    return {**inherited, **emulator.environment}


def _synthesize(assembly: Path, options: dict[str, str], environment: dict[str, str]) -> None:
    context = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
    run(
        ["cdk", "synth", "--quiet", "--output", assembly, *context],
        env=environment,
        cwd=ROOT,
        remedy="Fix what the message names, and run the command again.",
    )


def find(emulator: Emulator, name: str) -> LocalStack:
    """Read the outputs of a stack that was deployed to an emulator before."""
    outputs = json.loads((_folder(emulator, name) / "outputs.json").read_text())
    return LocalStack(emulator, name, outputs[name])


def _folder(emulator: Emulator, name: str) -> Path:
    return STATE / emulator.name / name


def _bootstrap(emulator: Emulator) -> None:
    """Prepare an emulator for the CDK, unless that was done before."""
    with _bootstrapping:
        done = STATE / emulator.name / f"bootstrapped-{emulator.pid}"
        if done.exists():
            return
        run(
            ["cdk", "bootstrap", f"aws://{ACCOUNT}/{REGION}"],
            env=_environment(emulator),
            cwd=done.parent,  # not the root: its cdk.json would make `bootstrap` synthesize the app
            remedy="The CDK could not prepare the emulator; `make down` and try again.",
        )
        done.touch()
