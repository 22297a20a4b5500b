"""Every role against the calls that it makes and against calls that it must not make, by an IAM
simulator, conditions included, in the templates for AWS.

`calls.json` has the calls that the emulator authorized in the tests of deployed stacks; `record.py`
renews it. What services do with a role comes from AWS's documentation (`service_calls.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from local.emulator import REGION
from tests.infra.assembly import Assembly, as_list
from tests.infra.second_opinions.calls import (
    DURABLE_WORKER,
    STATE_MACHINE,
    TASK,
    WORKER,
    Call,
    arns,
    context_of,
    roles,
)
from tests.infra.second_opinions.forbidden import of_anybody, of_roles
from tests.infra.second_opinions.record import known_calls
from tests.infra.second_opinions.resolved_template import ResolvedTemplate
from tests.infra.second_opinions.service_calls import calls_of_services, uses_of_key
from tests.infra.second_opinions.simulation import ALLOWED, Question, answers

VARIANTS: Final = (
    *("aws", "open", "streaming", "domain"),
    *("fork", "no tasks", "own key", "given key"),
)
"""Of tests/infra/conftest.py: each kind of auth, one gateway and two, and both encryptions."""
UNSEEN: Final = {
    # S3 asks for it to say of a key that it is not there; Lambda's event source lists no streams.
    *(
        (role, "s3:ListBucket")
        for role in ("Api", "Finish", "Subtasks", "SubscriptionsApi", "Sweep")
    ),
    ("Publish", "dynamodb:ListStreams"),
    # The local gateway, which streams, has the role of the api function.
    *(
        ("SubscriptionsApi", f"dynamodb:{name}")
        for name in ("BatchGetItem", "BatchWriteItem", "GetItem", "PutItem", "Query", "UpdateItem")
    ),
    ("SubscriptionsApi", "s3:GetObject"),
    # Of ways that the unit tests take, and that a run of the deployed tests rarely or never takes.
    *(("Ask", f"dynamodb:{name}") for name in ("BatchGetItem", "GetItem")),
    *(("Subtasks", name) for name in ("dynamodb:BatchGetItem", "states:StopExecution")),
    *(("Sweep", name) for name in ("events:PutEvents", "s3:GetObject", "s3:PutObject")),
    *(("Sweep", f"states:{name}") for name in ("DescribeStateMachine", "StartExecution")),
    ("Api", "states:DescribeStateMachine"),
    *(
        (f"Tools/{name}/Worker", "events:PutEvents")
        for name in ("estimate_savings", "tally_columns")
    ),
}
"""Roles and actions that they have, and that no test of a deployed stack was seen to use."""
Templates = dict[str, ResolvedTemplate]


@pytest.fixture(scope="module")
def templates(assemblies: dict[str, Assembly]) -> Templates:
    """The templates that are asked about."""
    return {variant: ResolvedTemplate(assemblies[variant]) for variant in VARIANTS}


@pytest.fixture(scope="module")
def recorded() -> list[Call]:
    """What the functions were seen to call."""
    return known_calls()


def _questions(templates: Templates, calls: list[Call]) -> Iterator[Question]:
    for variant, template in templates.items():
        for call in calls:
            for role, tool in roles(template, call):
                for arn in _arns(template, call.resource, tool):
                    context = context_of(call, tool)
                    yield Question(variant, role, call.action, arn, context)


def _arns(template: ResolvedTemplate, resource: str, tool: str) -> Iterator[str]:
    if resource == "object of another tool":
        yield from arns(template, "object", "another_tool")
        yield from arns(template, "object", f"{tool}2")
        return
    yield from arns(template, resource, tool)


def _refused(templates: Templates, questions: list[Question]) -> list[str]:
    return [str(asked) for asked, found in answers(templates, questions) if found != ALLOWED]


def _allowed(templates: Templates, questions: list[Question]) -> list[str]:
    return [str(asked) for asked, found in answers(templates, questions) if found == ALLOWED]


def _allowed_questions(templates: Templates, recorded: list[Call]) -> list[Question]:
    """What the stacks do, by themselves and by services."""
    questions = list(_questions(templates, [call for call in recorded if call.allowed]))
    for variant, template in templates.items():
        for role, action, arn in calls_of_services(template):
            questions.append(Question(variant, role, action, arn, {}))
    return questions


def test_every_kind_of_role_was_seen(recorded: list[Call]) -> None:
    assert {call.role for call in recorded} == {
        *("Api", "Ask", "Deliver", "Finish", "Publish", "Subtasks", "Sweep"),
        *(WORKER, DURABLE_WORKER),
    }


def test_what_was_seen_and_what_services_do_is_allowed(
    templates: Templates, recorded: list[Call]
) -> None:
    assert _refused(templates, _allowed_questions(templates, recorded)) == []


def test_the_uses_of_the_stack_s_key_are_allowed(
    templates: Templates, recorded: list[Call]
) -> None:
    variant = "own key"
    template = templates[variant]
    (key,) = template.of_type("AWS::KMS::Key")
    questions = {
        str(question): question
        for asked in _allowed_questions({variant: template}, recorded)
        for action, context in uses_of_key(asked.action, asked.resource)
        for question in [Question(variant, asked.role, action, key.arn, context)]
    }
    assert len({question.role.path for question in questions.values()}) > 8
    assert _refused(templates, list(questions.values())) == []


def test_every_grant_was_seen_in_use_or_is_named(
    templates: Templates, recorded: list[Call]
) -> None:
    variant = "domain"
    template = templates[variant]
    used = {
        (question.role.path.removesuffix("/Role"), question.action)
        for question in _allowed_questions({variant: template}, recorded)
    }
    granted = {
        (role.path.removesuffix("/Role"), action)
        for role in template.of_type("AWS::IAM::Role")
        for document in template.policies(role)
        for statement in document["Statement"]
        for action in as_list(statement["Action"])
    }
    assert granted - used == UNSEEN, "renew calls.json (record.py says how), or name it in UNSEEN"


def test_what_was_denied_is_denied(templates: Templates, recorded: list[Call]) -> None:
    """`overreach` of tests/integration/tools tries what a tool's code may not do."""
    denied = [call for call in recorded if not call.allowed]
    assert {call.role for call in denied} >= {WORKER, "Api"}
    assert _allowed(templates, list(_questions(templates, denied))) == []


def test_no_role_may_do_what_nothing_in_the_stack_does(templates: Templates) -> None:
    questions = [
        Question(variant, role, action, arn, {})
        for variant, template in templates.items()
        for role in template.of_type("AWS::IAM::Role")
        for action, resource in of_anybody()
        for arn in arns(template, resource, "some_tool")
    ]
    assert _allowed(templates, questions) == []


def test_a_role_may_not_do_what_others_do(templates: Templates) -> None:
    assert _allowed(templates, list(_questions(templates, list(of_roles())))) == []


def test_nobody_stops_or_asks_for_executions_of_another_cell(templates: Templates) -> None:
    questions = [
        Question(variant, role, f"states:{action}", f"{arn}:{name}", {})
        for variant, template in templates.items()
        for role in template.of_type("AWS::IAM::Role")
        for machine in template.of_type(STATE_MACHINE)
        for arn in [machine.arn.replace(":stateMachine:", ":execution:")]
        for name in (TASK.replace("c1-", "c9-"), "a-name-of-somebody-else")
        for action in ("StopExecution", "DescribeExecution")
    ]
    assert questions
    assert _allowed(templates, questions) == []


def test_nobody_uses_the_stack_s_key_but_for_the_stack_s_data(templates: Templates) -> None:
    """Not by itself, not through other services, other regions or other state machines, and not to
    manage it."""
    template = templates["own key"]
    (key,) = template.of_type("AWS::KMS::Key")
    other_machine = f"arn:aws:states:{REGION}:000000000000:stateMachine:other"
    uses: list[tuple[str, dict[str, Any]]] = [
        (operation, context)
        for operation in ("kms:Decrypt", "kms:GenerateDataKey")
        for context in (
            {},
            {"kms:ViaService": f"ec2.{REGION}.amazonaws.com"},
            {"kms:ViaService": "dynamodb.eu-north-1.amazonaws.com"},
            {"kms:EncryptionContext:aws:states:stateMachineArn": other_machine},
        )
    ]
    uses += [
        (operation, {"kms:ViaService": f"dynamodb.{REGION}.amazonaws.com"})
        for operation in ("kms:ScheduleKeyDeletion", "kms:PutKeyPolicy", "kms:CreateGrant")
    ]
    questions = [
        Question("own key", role, operation, key.arn, context)
        for role in template.of_type("AWS::IAM::Role")
        for operation, context in uses
    ]
    assert _allowed(templates, questions) == []
