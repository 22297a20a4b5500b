"""Multi round-trip requests: a function that asks is run again with the answers (mrtr.mdx).

The function ends at a question that has no answer. The client gets the questions, and a state that
holds the answers so far. It repeats its request with new answers and that state, and the function
runs again from its beginning. The server keeps nothing between the two requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...protocol.capabilities import required_capabilities
from ...tasks.questions import kinds
from ...tasks.task import now_ms
from ..call import Call, InputNeeded, MissingInputCapability
from .call_quota import CallQuota
from .request_state import RequestStateCipher, request_digest

Value = TypeVar("Value")


class MultiRoundTrip:
    """Runs functions that may ask.

    `cipher` makes the cipher of the request states when a function first asks: it costs a call to
    Secrets Manager. `call_quota` bounds how many functions one caller has running.
    `on_resource_changed` takes the URI of a resource that a function has changed.
    """

    def __init__(
        self,
        cipher: Callable[[], RequestStateCipher],
        call_quota: CallQuota,
        on_resource_changed: Callable[[str], None],
    ) -> None:
        self._cipher = cipher
        self._call_quota = call_quota
        self._on_resource_changed = on_resource_changed

    def run(
        self,
        call: Call,
        target: str,
        arguments: Any,
        function: Callable[[Any], Value],
        secrets: Mapping[str, str] | None = None,
    ) -> Value | InputNeeded:
        """Run `function` on a TaskContext, for a call of `target` (a name or URI) on `arguments`.

        The context has the values of `secrets`, which are references by name.

        The request's answers count for every question that the function asks; an answer within the
        state comes before a new one with the same key. Answers that no question asks for are
        ignored. A client that knows the questions may answer them with its first request: the
        state only saves it from repeating its answers.

        Raises ProtocolError (-32602) for an invalid state, TooManyRequests, MissingInputCapability
        (-32021) for a client that cannot answer, and what the function raises.
        """
        from ...registry.context import InputRequired, TaskContext
        from ...registry.secret_values import SecretValues

        digest = request_digest(call.principal, call.method, target, arguments)
        context = TaskContext(
            answers=self._given_answers(call, digest),
            client_can=call.client_can,
            on_report=call.notifications.report,
            on_log=call.notifications.log,
            on_resource_changed=self._on_resource_changed,
            secrets=SecretValues(secrets or {}),
        )
        try:
            with self._call_quota.hold(call):
                return function(context)
        except InputRequired as required:
            questions = required.questions
        if not (needed := kinds(questions.values())) <= call.client_can:
            raise MissingInputCapability(required_capabilities(needed))
        return InputNeeded(questions, self._cipher().seal(context.used_answers, digest, now_ms()))

    def answers(
        self,
        call: Call,
        target: str,
        arguments: Any,
        function: Callable[[Any], Any] | None,
        secrets: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any] | InputNeeded:
        """Run a function that only asks, and return the answers that it has got.

        Without a function, an invalid state is refused all the same.
        """
        if function is None:
            digest = request_digest(call.principal, call.method, target, arguments)
            self._given_answers(call, digest)
            return {}
        found: dict[str, Any] = {}

        def asking(context: Any) -> None:
            function(context)
            found.update(context.used_answers)

        needed = self.run(call, target, arguments, asking, secrets)
        return found if needed is None else needed

    def _given_answers(self, call: Call, digest: str) -> dict[str, Any]:
        """The answers of this request, and those that its state holds."""
        responses = call.input_responses or {}
        if call.request_state is None:
            return dict(responses)
        return {**responses, **self._cipher().open(call.request_state, digest, now_ms())}
