"""The gateway's command line, which `local.gateway_process` starts in the background."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import Any, Final

import boto3

from local import deployment, emulator
from local.console import fail, say
from local.emulator import Emulator

from .deployed_api import DeployedApi
from .invocation import FunctionError
from .server import Gateway

START_SECONDS: Final = 60
"""How long the function's first instance may take to start."""
SIGNAL_WAIT_SECONDS: Final = 1
"""How late SIGTERM may be noticed."""


def main() -> int:
    """Serve a stack of a running emulator until SIGTERM.

    Prints the MCP endpoint's URL, and nothing else, when the function has started.
    """
    parser = argparse.ArgumentParser(prog="python -m local.gateway")
    parser.add_argument("--emulator", default="up")
    parser.add_argument("--stack", default=deployment.stack_name())
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    running = emulator.find(options.emulator)
    if running is None:
        return fail(f"no emulator {options.emulator!r} is running; `make up` starts one")
    try:
        api = DeployedApi.read(deployment.find(running, options.stack), boto3_clients(running))
    except ValueError as error:
        return fail(f"{error}: only the emulator itself checks signatures")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Gateway(api, options.port) as gateway:
        try:
            gateway.instances.wait_until_warm(START_SECONDS)
        except FunctionError as error:
            return fail(
                f"the function does not start ({error}); its output is in {api.function.log}"
            )
        say(gateway.url)
        while True:
            # Not `signal.pause`, which would miss a signal that comes just before it.
            time.sleep(SIGNAL_WAIT_SECONDS)


def boto3_clients(running: Emulator) -> Any:
    """A function from an AWS service's name to boto3's client for it on the emulator."""
    environment = running.environment
    session: Any = boto3.Session(
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_REGION"],
    )
    return lambda service: session.client(service, endpoint_url=running.url)


if __name__ == "__main__":
    sys.exit(main())
