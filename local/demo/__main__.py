"""The demo's command line: `python -m local.demo URL [--streaming URL] [--ask]`."""

from __future__ import annotations

import argparse
import asyncio
import sys

from .crash_check import start_and_poll_forever
from .runner import run


def main() -> int:
    """Read the command line and run the demo; returns the exit code, 0 when all checks passed."""
    parser = argparse.ArgumentParser(
        prog="python -m local.demo", description="Drive the sample tools of a deployed server."
    )
    parser.add_argument("url", help="the MCP endpoint, as `make up` writes it to .local/endpoint")
    parser.add_argument("--streaming", metavar="URL", help="the endpoint that streams, if any")
    parser.add_argument("--ask", action="store_true", help="answer the tools' questions yourself")
    parser.add_argument("--poll-forever", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        if options.poll_forever:
            asyncio.run(start_and_poll_forever(options.url))
            return 1
        return asyncio.run(run(options.url, options.streaming or options.url, ask=options.ask))
    except KeyboardInterrupt:
        print("\nInterrupted. Tasks that were started go on without their client.")
        return 130


if __name__ == "__main__":
    sys.exit(main())
