"""Who may call MiniStack: programs that have one of this run's keys, and no web page.

MiniStack takes every request with the key `test`, with a number of 12 digits, or without a key for
one of the account's root user, and does not check its signature. It allows pages of all origins to
read its answers. A page could create a function and call it: run code on this machine.

- `AccessCheck` refuses what web pages may have sent, before MiniStack looks at it.
- `install` takes those keys out of use. The root user has a random key of this run, whose signature
  MiniStack checks as it checks the keys of roles.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

from ministack.core import iam_evaluator, lambda_runtime  # type: ignore[import-not-found]
from ministack.services import lambda_svc, sts  # type: ignore[import-not-found]

from .emulator import ACCOUNT, HEALTH_PATH, Keys
from .web_pages import refusal

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

REST_API_PATH: Final = re.compile("/_aws/execute-api/[^/]+/[^/]+(/|$)")
"""The paths of deployed REST APIs. The api function checks Origin and Host by itself: which pages
may call is an option of its deployment.
"""
OWN_PATH: Final = "/_"
"""MiniStack's own paths begin so. They need no key: one deletes all state, others show functions'
code and queues' messages. No API of AWS is there.
"""
NOT_SERVED: Final = "the emulator's own paths are not served"

_parse_request = BaseHTTPRequestHandler.parse_request
_execution_credentials = lambda_runtime.execution_credentials
_NONCE: Final = secrets.token_hex(16)


class AccessCheck:
    """An ASGI application in front of MiniStack's."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with the status 403."""
        rest_api = scope["type"] == "http" and REST_API_PATH.match(scope["path"])
        if rest_api or scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif reason := _refusal(scope):
            await _refuse(scope, reason, receive, send)
        else:
            await self._app(scope, receive, _without_cors(send))


def _refusal(scope: Message) -> str | None:
    headers = (
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
    )
    if reason := refusal(headers):
        return reason
    own = scope["path"].startswith(OWN_PATH) and scope["path"] != HEALTH_PATH
    return NOT_SERVED if own else None


async def _refuse(scope: Message, reason: str, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close"})  # before it was accepted: the status 403
        return
    body = f"403 Forbidden: {reason}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _without_cors(send: Send) -> Send:
    """Leave out the headers with which MiniStack allows pages of all origins to read answers."""

    async def send_without_cors(message: Message) -> None:
        message["headers"] = [
            (name, value)
            for name, value in message.get("headers", [])
            if not name.lower().startswith(b"access-control-")
        ]
        await send(message)

    return send_without_cors


def is_root_access_key(access_key_id: str) -> bool:
    """No key is the root user's by its look, and a request without a key is nobody's."""
    return False


def execution_credentials(config: dict[str, Any]) -> dict[str, str]:
    """A function's credentials.

    MiniStack computes them from the ARNs of the function and of its role. Here, a random number of
    this run is in them: who knows the names does not know the keys.
    """
    arn = f"{config['FunctionArn']}:{_NONCE}"
    credentials: dict[str, str] = _execution_credentials({**config, "FunctionArn": arn})
    return credentials


def parse_request(handler: BaseHTTPRequestHandler) -> bool:
    """Read a request to a server of http.server's; refuse it where a page may have sent it.

    MiniStack starts such servers for functions with a runtime of their own (`provided.*`), which
    fetch their events and send their responses there.
    """
    if not _parse_request(handler):
        return False
    reason = refusal(handler.headers.items())
    if reason:
        handler.send_error(403, reason)
    return reason is None


def install(root: Keys) -> None:
    """Put the patches into effect; `root` are the root user's keys."""
    iam_evaluator.is_root_access_key = is_root_access_key
    sts.is_root_access_key = is_root_access_key
    for module in (lambda_runtime, lambda_svc):
        module.execution_credentials = execution_credentials
    BaseHTTPRequestHandler.parse_request = parse_request  # type: ignore[method-assign, assignment]
    sts.register_session(
        root.access_key_id,
        {
            "Arn": f"arn:aws:iam::{ACCOUNT}:root",
            "UserId": ACCOUNT,
            "AccountId": ACCOUNT,
            "PrincipalType": "Root",
            "SourceAccessKeyId": root.access_key_id,
            "SecretAccessKey": root.secret_access_key,
        },
    )
