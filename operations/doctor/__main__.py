"""`make doctor [url=... | stack=...]`: can clients find out where to log in?

    python -m operations.doctor [--url URL] [--stack NAME]

Without an argument it examines the stack that `make up` has started, or else the one that is
deployed. It sends no token and changes nothing. Returns 1 when a client would stop.
"""

from __future__ import annotations

import argparse
import sys

from local.connect import deployed_endpoint
from local.console import CommandError, fail, say
from local.environment import STATE

from .report import examine
from .web import Web


def main() -> int:
    """Examine one endpoint."""
    parser = argparse.ArgumentParser(prog="python -m operations.doctor")
    parser.add_argument("--url", help="an endpoint; without it, the running or deployed one")
    parser.add_argument("--stack", help="a deployed stack; by default the one in server.toml")
    options = parser.parse_args()
    try:
        url = options.url or _running(options.stack) or deployed_endpoint(options.stack)
    except CommandError as error:
        return fail(error)
    lines, well = examine(url, Web())
    for line in lines:
        say(line)
    return 0 if well else 1


def _running(stack: str | None) -> str | None:
    file = STATE / "endpoint"
    return file.read_text().strip() if stack is None and file.exists() else None


if __name__ == "__main__":
    sys.exit(main())
