"""Multi round-trip requests: a function that asks, run again with the answers (mrtr.mdx).

The function ends at what it asks and has no answer for; the client gets the questions, and a state
that holds the answers so far. It repeats its request with new answers and that state, and the
function runs again from its beginning. Nothing is kept here between two rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...protocol.capabilities import required
from ...tasks.questions import kinds
from ...tasks.task import now_ms
from ..call import Call, CannotAsk, InputNeeded
from .request_state import RequestStateCipher, subject

Value = TypeVar("Value")


class MultiRoundTrip:
    """Runs functions that may ask. `states` is made when the first of them does."""

    def __init__(self, states: Callable[[], RequestStateCipher]) -> None:
        self._states = states

    def run(
        self, call: Call, target: str, arguments: Any, function: Callable[[Any], Value]
    ) -> Value | InputNeeded:
        """Run `function` on a TaskContext, for a call of `target` (a name or URI) on `arguments`.

        Answers of this request count for whatever the function asks, and those of earlier rounds
        come before them; what nobody asks for is ignored. A client that knows what it will be asked
        may answer at once: it is the one who answers in any case, and the state only spares it to
        repeat itself.

        Raises ProtocolError for a state that is not valid (-32602), and CannotAsk (-32021) when the
        client declared nothing of the kind; and what the function raises.
        """
        from ...registry.context import InputRequired, TaskContext

        bound = subject(call.principal, call.method, target, arguments)
        answers = self._answers(call, bound)
        context = TaskContext(
            answers=answers,
            client_can=call.client_can,
            on_report=call.stream.report,
            on_log=call.stream.log,
        )
        try:
            return function(context)
        except InputRequired as needed:
            questions = needed.questions
        wanted = kinds(questions.values())
        if not wanted <= call.client_can:
            raise CannotAsk(required(wanted))
        return InputNeeded(questions, self._states().seal(context.used_answers, bound, now_ms()))

    def answers(
        self, call: Call, target: str, arguments: Any, function: Callable[[Any], Any]
    ) -> Mapping[str, Any] | InputNeeded:
        """Run a function that only asks, and return the answers that it found."""
        found: dict[str, Any] = {}

        def asking(context: Any) -> None:
            function(context)
            found.update(context.used_answers)

        needed = self.run(call, target, arguments, asking)
        return found if needed is None else needed

    def _answers(self, call: Call, bound: str) -> dict[str, Any]:
        if call.state is None:
            return dict(call.answers or {})
        return {**(call.answers or {}), **self._states().open(call.state, bound, now_ms())}
