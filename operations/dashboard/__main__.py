"""`make dashboard`: serve the page on this machine until Ctrl-C.

    python -m operations.dashboard [--profile local|aws] [--stack NAME] [--minutes 60] [--port N]

The page reads anew whenever the browser asks, every five seconds.
"""

from __future__ import annotations

import argparse
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from local.console import fail, say
from local.web_pages import refusal
from mcp_tasks.tasks.task import now_ms

from ..deployed_stack import (
    DeployedStack,
    NoStack,
    add_stack_options,
    chosen_stack,
    clients_of,
)
from ..live_tasks import HEAD, live
from .cloudwatch_source import CloudWatchSource
from .emulator_source import EmulatorSource
from .graph import graphs
from .page import page
from .points import Window

MAX_TASKS: Final = 50
"""Rows of the table of tasks; `make tasks` shows all."""
HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}


def render(stack: DeployedStack, local: bool, minutes: int) -> str:
    """The page as it is now. Raises ClientError and BotoCoreError."""
    now = now_ms()
    window = Window.before(now, minutes)
    source = EmulatorSource(stack, window) if local else CloudWatchSource(stack)
    by_tool = stack.variables.get("TOOL_METRICS") == "on" or local
    rows = live(stack, None)
    tasks = [HEAD, *(row.columns(0, now) for row in rows[:MAX_TASKS])]
    return page(stack.name, graphs(stack, source, window, by_tool), tasks, window)


def serve(stack: DeployedStack, local: bool, minutes: int, port: int) -> None:
    """Serve the page on 127.0.0.1 until somebody interrupts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            refused = refusal(self.headers.items())
            if refused or self.path != "/":
                self._answer(403 if refused else 404, refused or "there is only /")
                return
            try:
                self._answer(200, render(stack, local, minutes))
            except (ClientError, BotoCoreError) as error:
                self._answer(502, f"{type(error).__name__}: {error}")

        def _answer(self, status: int, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            for name, value in HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """The browser asks every few seconds."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        say(f"The dashboard of {stack.name}: http://127.0.0.1:{server.server_port}/ (Ctrl-C ends)")
        server.serve_forever()


def main() -> int:
    """Serve. Returns 1 when there is no stack."""
    parser = argparse.ArgumentParser(prog="python -m operations.dashboard")
    add_stack_options(parser, profile="local")
    parser.add_argument("--minutes", type=int, default=60, help="how far back")
    parser.add_argument("--port", type=int, default=0, help="by default a free one")
    options = parser.parse_args()
    try:
        stack = DeployedStack(chosen_stack(options), clients_of(options.profile))
        serve(stack, options.profile == "local", options.minutes, options.port)
    except KeyboardInterrupt:
        say("")
    except (NoStack, OSError, ClientError, BotoCoreError) as error:
        return fail(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
