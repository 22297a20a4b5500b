"""Calls that wait for their client's answers, as items of the session table.

    pk          sk    attributes
    call#<id>   call  owner, fingerprint, method, params, round, questions, answers, claim,
                      claimedUntil, response, expiresAt

A call that runs within its request and asks cannot wait there: the answers may come to another
instance. So the call itself is kept, and run again with the answers. `params` and `response` are
JSON texts; `questions` and `answers` are maps of them, by key. An item holds one call for minutes:
`expiresAt`, in seconds, is the table's time-to-live attribute, and DynamoDB removes what has
expired a while later. Until then, an expired item counts as absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from ..aws.conditional_check import existing_item
from ..aws.dynamodb_values import from_attribute, to_attribute
from ..tasks.questions import Question, question

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CALL: Final = "call"
"""The sort key of a call."""

WAITS_MS: Final = 30 * 60 * 1000
"""How long a call waits for the answers to one round of questions."""

RESPONSE_KEPT_MS: Final = 10 * 60 * 1000
"""How long a response is kept for a client that may not have received it."""

MAX_PARAMS_CHARACTERS: Final = 150_000
MAX_QUESTIONS_CHARACTERS: Final = 100_000
MAX_RESPONSE_CHARACTERS: Final = 350_000
"""An item has at most 400 KB (DynamoDB developer guide, "Quotas"). The answers have a limit of
their own (`tasks/questions.py`)."""


class UnknownCall(Exception):
    """No call with this id waits: there was none, or it has expired."""


class CallExists(Exception):
    """The client has used the id of an earlier request."""


class CallTooLarge(Exception):
    """The call does not fit into an item."""


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call that has asked."""

    id: str
    owner: str
    """Whose call it is: the session and its principal."""
    fingerprint: str
    """A hash of the request, which outlives the request itself."""
    method: str
    params: dict[str, Any]
    questions: dict[str, Question]
    """Those of this round, by key."""
    answers: dict[str, Any] = field(default_factory=dict)
    """Those of all rounds, by key."""
    round: int = 1
    """How often the call has asked."""
    claimed_until: int = 0
    """Until when an instance runs the call, in milliseconds since the epoch; 0 for none."""
    response: dict[str, Any] | None = None

    @property
    def outstanding(self) -> dict[str, Question]:
        """The questions that are not answered yet."""
        return {key: q for key, q in self.questions.items() if key not in self.answers}


class CallTable:
    """The operations on calls that wait, each one call to DynamoDB."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def open(self, call: WaitingCall, now: int) -> None:
        """Keep a call that has asked. Raises CallExists, and CallTooLarge."""
        item: dict[str, str | int | Mapping[str, str]] = {
            "owner": call.owner,
            "fingerprint": call.fingerprint,
            "method": call.method,
            "params": _text(call.params, MAX_PARAMS_CHARACTERS),
            "round": call.round,
            "questions": _question_texts(call.questions),
            "answers": {},
            "expiresAt": _seconds(now + WAITS_MS),
        }
        try:
            # Race: the client sends two requests with one id; the second would replace the first.
            self._client.put_item(
                TableName=self._table,
                Item={
                    **_key(call.id),
                    **{name: to_attribute(value) for name, value in item.items()},
                },
                ConditionExpression="attribute_not_exists(#pk) OR #expiresAt < :now",
                ExpressionAttributeNames={"#pk": "pk", "#expiresAt": "expiresAt"},
                ExpressionAttributeValues={":now": to_attribute(_seconds(now))},
            )
        except ClientError as error:
            existing_item(error)
            raise CallExists from None

    def read(self, call_id: str, owner: str, now: int) -> WaitingCall:
        """The owner's call, by one consistent read. Raises UnknownCall."""
        response = self._client.get_item(
            TableName=self._table, Key=_key(call_id), ConsistentRead=True
        )
        item = {name: from_attribute(value) for name, value in response.get("Item", {}).items()}
        if not item or item["owner"] != owner or item["expiresAt"] < _seconds(now):
            raise UnknownCall
        questions = {key: json.loads(text) for key, text in item.get("questions", {}).items()}
        return WaitingCall(
            id=call_id,
            owner=owner,
            fingerprint=item["fingerprint"],
            method=item["method"],
            params=json.loads(item.get("params", "{}")),
            questions={key: question(data) for key, data in questions.items()},
            answers={key: json.loads(text) for key, text in item.get("answers", {}).items()},
            round=item["round"],
            claimed_until=item.get("claimedUntil", 0),
            response=json.loads(item["response"]) if "response" in item else None,
        )

    def answer(self, call: WaitingCall, key: str, answer: Mapping[str, Any]) -> bool:
        """Keep the answer to an outstanding question; whether it was the first one."""
        return self._update(
            call.id,
            "SET #answers.#key = :answer",
            # Races: the client answers one question twice, and the call may have run with the
            # first answer; the call has ended meanwhile; or it has asked again.
            condition="attribute_exists(#questions.#key) AND attribute_not_exists(#answers.#key) "
            "AND #round = :round",
            names={
                "#questions": "questions",
                "#answers": "answers",
                "#key": key,
                "#round": "round",
            },
            values={":answer": json.dumps(answer), ":round": call.round},
        )

    def claim(self, call: WaitingCall, claim: str, until: int, now: int) -> bool:
        """Claim a call to run it with its answers; whether no other instance has."""
        return self._update(
            call.id,
            "SET #claim = :claim, #until = :until",
            # Races: two connections of one stream see the last answer at the same time, and both
            # would run the call; or another one has run it meanwhile, which has ended it or asked
            # again. A claim expires, because an instance may die with it.
            condition="#round = :round AND attribute_not_exists(#response) "
            "AND (attribute_not_exists(#until) OR #until < :now)",
            names={
                "#claim": "claim",
                "#until": "claimedUntil",
                "#round": "round",
                "#response": "response",
            },
            values={":claim": claim, ":until": until, ":round": call.round, ":now": now},
        )

    def ask_again(
        self, call: WaitingCall, claim: str, questions: Mapping[str, Question], now: int
    ) -> bool:
        """Replace a claimed call's questions; whether the claim still held.

        Raises CallTooLarge.
        """
        answers = {key: json.dumps(a) for key, a in call.answers.items() if key not in questions}
        return self._update(
            call.id,
            "SET #questions = :questions, #answers = :answers, #round = :next, "
            "#expiresAt = :expiresAt REMOVE #claim, #until",
            # Race: the claim has expired, and another instance runs the call or has ended it.
            condition="#claim = :claim",
            names={
                "#questions": "questions",
                "#answers": "answers",
                "#round": "round",
                "#expiresAt": "expiresAt",
                "#claim": "claim",
                "#until": "claimedUntil",
            },
            values={
                ":questions": _question_texts(questions),
                ":answers": answers,
                ":next": call.round + 1,
                ":expiresAt": _seconds(now + WAITS_MS),
                ":claim": claim,
            },
        )

    def finish(self, call: WaitingCall, claim: str, response: Mapping[str, Any], now: int) -> bool:
        """Keep a claimed call's response instead of the call; whether the claim still held.

        Raises CallTooLarge.
        """
        # Race: the claim has expired, and another instance has run the call, or it was cancelled.
        return self._end(
            call.id, response, now, condition="#claim = :claim", values={":claim": claim}
        )

    def cancel(self, call_id: str, response: Mapping[str, Any], now: int) -> bool:
        """End a call that its client has cancelled, whoever runs it; whether it was waiting."""
        # Race: the call ends at the same time. The first response is the only one.
        return self._end(call_id, response, now, condition="attribute_exists(#params)", values={})

    def _end(
        self,
        call_id: str,
        response: Mapping[str, Any],
        now: int,
        *,
        condition: str,
        values: Mapping[str, Any],
    ) -> bool:
        return self._update(
            call_id,
            "SET #response = :response, #expiresAt = :expiresAt "
            "REMOVE #questions, #answers, #params, #until, #claim",
            condition=condition,
            names={
                "#response": "response",
                "#expiresAt": "expiresAt",
                "#questions": "questions",
                "#answers": "answers",
                "#params": "params",
                "#until": "claimedUntil",
                "#claim": "claim",
            },
            values={
                ":response": _text(response, MAX_RESPONSE_CHARACTERS),
                ":expiresAt": _seconds(now + RESPONSE_KEPT_MS),
                **values,
            },
        )

    def _update(
        self,
        call_id: str,
        update: str,
        *,
        condition: str,
        names: Mapping[str, str],
        values: Mapping[str, Any],
    ) -> bool:
        """One conditional write; whether its condition held."""
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key(call_id),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames=dict(names),
                ExpressionAttributeValues={k: to_attribute(v) for k, v in values.items()},
            )
        except ClientError as error:
            existing_item(error)
            return False
        return True


def _key(call_id: str) -> dict[str, Any]:
    return {"pk": {"S": f"call#{call_id}"}, "sk": {"S": CALL}}


def _seconds(milliseconds: int) -> int:
    return milliseconds // 1000


def _text(value: Any, max_characters: int) -> str:
    """JSON in ASCII. Raises CallTooLarge."""
    text = json.dumps(value)
    if len(text) > max_characters:
        raise CallTooLarge
    return text


def _question_texts(questions: Mapping[str, Question]) -> dict[str, str]:
    """Raises CallTooLarge."""
    texts = {key: json.dumps(each.as_json()) for key, each in questions.items()}
    _text(texts, MAX_QUESTIONS_CHARACTERS)
    return texts
