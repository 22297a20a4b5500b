"""A call on whose stream nothing happens for longer than API Gateway lets a stream be idle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Timer
from typing import Any, Final

from .check import Check, NotTried, Problem, expect
from .deployed import Deployed
from .endpoint import Piece, Response, messages_of
from .endpoint_checks import initialize

UNANSWERED_SECONDS: Final = 360.0
"""API Gateway ends a stream of a Regional API that was idle for five minutes (API Gateway developer
guide, "Stream the integration response for your proxy integrations in API Gateway")."""
MAX_SILENCE_SECONDS: Final = 30.0
"""The server writes a comment every 15 seconds. Proxies often close after 60."""


def keep_a_quiet_call(
    deployed: Deployed,
    unanswered_seconds: float = UNANSWERED_SECONDS,
    max_silence_seconds: float = MAX_SILENCE_SECONDS,
) -> str:
    """A client of 2025-11-25 is asked in its call, and answers after six minutes. Until then the
    call's stream brings comments; the result comes on the same stream.
    """
    if not deployed.streams:
        raise NotTried("answers are buffered (streaming=true)")
    call, endpoint = deployed.offered(deployed.calls.question), deployed.endpoint
    session = initialize(endpoint, {"elicitation": {"form": {}}})
    endpoint.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    params = {"name": call.tool, "arguments": dict(call.arguments)}
    late = _LateAnswer(deployed, session, unanswered_seconds)
    try:
        answer = endpoint.post(endpoint.message("tools/call", params), session, late.read)
    except OSError as error:
        raise Problem(f"the stream broke after {late.last:.0f} s: {error}") from error
    finally:
        late.stop()
        endpoint.send("DELETE", headers=session)
    late.expect_taken()
    return _described(answer, unanswered_seconds, max_silence_seconds)


def _described(answer: Response, unanswered: float, max_silence: float) -> str:
    times = [0.0, *(piece.at for piece in answer.pieces)]
    silence = max(b - a for a, b in zip(times, times[1:] or times, strict=False))
    ended = f"the stream ended after {answer.seconds:.0f} s"
    results = [message for message in answer.messages if "result" in message]
    expect(results, f"{ended}, without the result: {answer.messages[-1:]}")
    expect(answer.seconds >= unanswered, f"{ended}, before the question was answered")
    limit = f"more than {max_silence:.0f}"
    expect(silence <= max_silence, f"nothing came for {silence:.0f} s, {limit}")
    return f"{ended}, with the result; longest silence {silence:.0f} s"


@dataclass
class _LateAnswer:
    """Reads a call's stream, and answers its first question some time after it was asked."""

    deployed: Deployed
    session: Mapping[str, str]
    seconds: float
    last: float = 0.0
    """When the last piece came, in seconds after the request."""
    _read: bytes = b""
    _timer: Timer | None = None
    _taken: list[Response | OSError] = field(default_factory=list)

    def read(self, piece: Piece) -> None:
        """Take the next piece of the stream."""
        self.last = piece.at
        if self._timer is not None:
            return
        self._read += piece.data
        for message in messages_of(self._read):
            if message.get("method") == "elicitation/create":
                self._timer = Timer(self.seconds, self._answer, [message["id"]])
                self._timer.start()

    def _answer(self, request_id: Any) -> None:
        content = {"action": "accept", "content": dict(self.deployed.calls.answer)}
        message = {"jsonrpc": "2.0", "id": request_id, "result": content}
        try:
            self._taken.append(self.deployed.endpoint.post(message, self.session))
        except OSError as error:
            self._taken.append(error)

    def stop(self) -> None:
        """Answer nothing more, and wait for an answer that is on its way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()

    def expect_taken(self) -> None:
        """Raise Problem when the server asked nothing, or refused the answer."""
        expect(self._timer is not None, "the stream ended without a question")
        for taken in self._taken:
            status = taken.status if isinstance(taken, Response) else taken
            expect(status == 202, f"the answer to the question got {status}, not HTTP 202")


CHECKS: Final = (Check("Keep a quiet call", keep_a_quiet_call, only_aws=True, slow=True),)
