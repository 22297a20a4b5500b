"""A call whose stream brings nothing but comments until its question is answered."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any, Final

import pytest

from operations.verify.check import NotTried, Problem
from operations.verify.deployed import Deployed
from operations.verify.endpoint import Endpoint
from operations.verify.quiet_call_checks import keep_a_quiet_call
from tests.unit.operations.verify.serving import Answering, Answers, serving

UNANSWERED_SECONDS: Final = 0.4
MAX_SILENCE_SECONDS: Final = 0.3
SESSION: Final = {"Mcp-Session-Id": "s1"}
ANSWERS: Final[Answers] = {
    "initialize": (200, SESSION, {"result": {"protocolVersion": "2025-11-25"}}),
    "accepted": (202, {}, ""),
    "refused": (400, {}, ""),
    "DELETE": (204, {}, ""),
}
ASKED: Final = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {}}
RESULT: Final = {"jsonrpc": "2.0", "id": 2, "result": {"content": []}}


class _Quiet(Answering):
    """Asks, writes comments, and ends when the question is answered."""

    protocol_version = "HTTP/1.0"  # a body that ends with its connection
    answered: threading.Event
    status = "accepted"
    comment_seconds = 0.05
    comments: float = float("inf")
    """How many it writes, before it ends as API Gateway does."""
    asks = True

    def take(self, message: dict[str, Any]) -> None:
        if message.get("method") == "tools/call":
            return self._stream()
        if "result" in message:
            assert message["id"] == "q1"
            assert message["result"]["content"] == {"share_of_stocks": 0.6}
            self.answer(self.status)
            self.answered.set()
            return None
        self.answer("initialize" if message.get("method") == "initialize" else "accepted")
        return None

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if self.asks:
            self._write(f"id: 1\ndata: {json.dumps(ASKED)}\n\n")
        written = 0
        while self.asks and not self.answered.wait(self.comment_seconds):
            if written >= self.comments:
                return
            self._write(": keep-alive\n\n")
            written += 1
        self._write(f"id: 2\ndata: {json.dumps(RESULT)}\n\n")

    def _write(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()


def _keep(**behaviour: Any) -> str:
    handler = type("Quiet", (_Quiet,), {"answered": threading.Event(), **behaviour})
    with serving(ANSWERS, handler) as url:
        streaming: Any = SimpleNamespace(variables={"AWS_LAMBDA_EXEC_WRAPPER": "/opt/x"})
        deployed = Deployed(Endpoint(url), False, streaming, tools={"simulate_savings": {}})
        return keep_a_quiet_call(deployed, UNANSWERED_SECONDS, MAX_SILENCE_SECONDS)


def test_a_stream_with_comments_brings_the_result() -> None:
    assert _keep() == "the stream ended after 0 s, with the result; longest silence 0 s"


@pytest.mark.parametrize(
    ("behaviour", "problem"),
    [
        ({"comments": 2}, "the stream ended after 0 s, without the result"),
        ({"comment_seconds": 5.0}, "nothing came for 0 s, more than 0"),
        ({"status": "refused"}, "the answer to the question got 400, not HTTP 202"),
        ({"asks": False}, "the stream ended without a question"),
    ],
)
def test_a_stream_that_does_not_last_is_found(behaviour: dict[str, Any], problem: str) -> None:
    with pytest.raises(Problem, match=problem):
        _keep(**behaviour)


def test_a_result_before_the_answer_is_found() -> None:
    answered = threading.Event()
    answered.set()
    with pytest.raises(Problem, match="before the question was answered"):
        _keep(answered=answered)


def test_a_buffered_endpoint_is_not_tried() -> None:
    deployed = Deployed(Endpoint("http://127.0.0.1:1/mcp"), False, None)
    with pytest.raises(NotTried, match="streaming=true"):
        keep_a_quiet_call(deployed)
