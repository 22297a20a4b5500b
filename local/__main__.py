"""The commands behind the Makefile: `python -m local <command>`.

prepare [--tests]          install what the other commands need
up [--tools F] [--port N]  deploy the stack to an emulator, and leave the emulator running
   [--streaming true]      start the gateway that streams, too
   [-c KEY=VALUE ...]      with options of `infra/app.py`
down                       stop the emulator and the gateway
environment                print the variables that make AWS's tools call what `up` started
connect [--url URL]        print each client's line of configuration for the stack that `up` left
   [--stack NAME]          running, or else for the deployed one
demo [--ask]               deploy to an emulator of its own, run the demo's checks, stop it
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from . import emulator, gateway_process
from .connect import deployed_endpoint, lines
from .console import CommandError, fail, say, step
from .deployment import deploy
from .environment import ROOT, STATE, prepare, python

ENDPOINT = STATE / "endpoint"


def up(tools: Path, port: int | None, streaming: bool, context: dict[str, str]) -> int:
    """Deploy to an emulator and leave it running. Run again, it deploys what has changed."""
    if streaming and context.get("auth") == "iam":
        return fail(
            "auth=iam: only the emulator itself checks signatures; leave out streaming=true"
        )
    prepare()
    context = dict(context)
    name = context.pop("stack", None)
    with step("starting the emulator"):
        running = emulator.start("up", port, tracebacks=True)
    gateway = gateway_process.find("up")
    if gateway is not None and not streaming:
        gateway.stop()
    try:
        gateway_port = gateway_process.choose_port("up")
        if streaming:
            context = {"url": gateway_process.url_of(gateway_port), **context}
        stack = deploy(running, tools, name, context)
        url, processes = stack.url, f"the emulator, process {running.pid}"
        if streaming:
            with step("starting the gateway"):
                gateway = gateway_process.start(stack, gateway_port)
            url, processes = gateway.url, f"{processes}, and the gateway, process {gateway.pid}"
    except CommandError as error:
        return fail(f"{error}\nThe emulator still runs; `make down` stops it.")
    ENDPOINT.write_text(f"{url}\n")
    say(f"\nMCP endpoint: {url}  (also in {ENDPOINT.relative_to(ROOT)})")
    say(f"Running: {processes}; `make down` stops {'both' if streaming else 'it'}")
    if running.tracebacks is not None:
        say(f"Crashes, with their messages: tail -F {Path(running.tracebacks).relative_to(ROOT)}")
    return 0


def down() -> int:
    """Stop the emulator and the gateway that `up` started."""
    ENDPOINT.unlink(missing_ok=True)
    gateway = gateway_process.find("up")
    if gateway is not None:
        gateway.stop()
        say(f"Stopped the gateway, process {gateway.pid}.")
    running = emulator.find("up")
    if running is None:
        if gateway is None:
            say("Nothing is running.")
        return 0
    running.stop()
    say(f"Stopped the emulator, process {running.pid}.")
    return 0


def connect(url: str | None, stack: str | None) -> int:
    """Print how clients get the running stack, or else the deployed one."""
    if url is None and ENDPOINT.exists():
        url = ENDPOINT.read_text().strip()
    for line in lines(url or deployed_endpoint(stack)):
        say(line)
    return 0


def environment() -> int:
    """Print shell commands that set the emulator's URL and its keys, which are random."""
    running = emulator.find("up")
    if running is None:
        return fail("nothing is running; `make up` starts the stack")
    say("unset AWS_PROFILE AWS_SESSION_TOKEN")
    for name, value in running.environment.items():
        say(f"export {name}={value}")
    return 0


def demo(arguments: list[str]) -> int:
    """Run the demo against an emulator of its own; returns the demo's exit code.

    Nothing is left running.
    """
    start = time.monotonic()
    prepare()
    with step("starting the emulator"):
        running = emulator.start("demo", tracebacks=True)
    gateway = None
    try:
        stack = deploy(running, ROOT / "functions" / "tools")
        with step("starting the gateway that streams"):
            gateway = gateway_process.start(stack)
        say(f"\nReady after {time.monotonic() - start:.0f} s\n")
        client: list[str | Path] = [python(), "-m", "local.demo", stack.url]
        client += ["--streaming", gateway.url, *arguments]
        code = subprocess.run(client, cwd=ROOT, check=False).returncode
        _say_tracebacks(running)
        return code
    finally:
        if gateway is not None:
            gateway.stop()
        running.stop()
        say("Stopped the emulator and the gateway; nothing is left running.")


def _say_tracebacks(running: emulator.Emulator) -> None:
    """Print what has crashed in functions of the demo."""
    file = Path(running.tracebacks or "")
    if file.is_file():
        say(f"\nWhat crashed in the tools, from {file.relative_to(ROOT)}:")
        say(file.read_text(encoding="utf-8", errors="replace"))


def _option(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m local")
    commands = parser.add_subparsers(dest="command", required=True)
    prepare_parser = commands.add_parser("prepare")
    prepare_parser.add_argument("--tests", action="store_true")
    up_parser = commands.add_parser("up")
    up_parser.add_argument("--tools", type=Path, default=ROOT / "functions" / "tools")
    up_parser.add_argument("--port", type=int)
    up_parser.add_argument("--streaming", choices=["true", "false"], default="false")
    up_parser.add_argument("-c", dest="context", type=_option, action="append", default=[])
    commands.add_parser("down")
    commands.add_parser("environment")
    connect_parser = commands.add_parser("connect")
    connect_parser.add_argument("--url")
    connect_parser.add_argument("--stack")
    demo_parser = commands.add_parser("demo")
    demo_parser.add_argument("--ask", action="store_true", help="answer the questions yourself")
    options = parser.parse_args()
    try:
        match options.command:
            case "prepare":
                prepare(options.tests)
                return 0
            case "up":
                streaming = options.streaming == "true"
                return up(options.tools.resolve(), options.port, streaming, dict(options.context))
            case "down":
                return down()
            case "environment":
                return environment()
            case "connect":
                return connect(options.url, options.stack)
            case _:
                return demo(["--ask"] if options.ask else [])
    except CommandError as error:
        return fail(error)
    except KeyboardInterrupt:
        return fail("interrupted")


if __name__ == "__main__":
    sys.exit(main())
