"""The rules that docs/following-tasks.md puts on the stack's bus, as somebody would deploy them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk.assertions import Template

from mcp_tasks.notifications.event_bus import DETAIL_TYPE, SOURCE
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "following-tasks.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def template() -> Template:
    """A stack of nothing but the page's code."""
    (code,) = re.findall(r"```python\n(from aws_cdk .*?)```", PAGE, re.DOTALL)
    stack = Stack(App(), "Recipes", env=Environment(account="000000000000", region="us-east-1"))
    exec(compile(code, "following-tasks.md", "exec"), {"self": stack})
    return Template.from_stack(stack)


def rules(template: Template) -> dict[str, dict[str, Any]]:
    """The rules' properties, by what their names begin with."""
    found = template.find_resources("AWS::Events::Rule")
    return {re.sub("[0-9A-F]{8}$", "", name): rule["Properties"] for name, rule in found.items()}


def test_a_webhook_gets_the_task(template: Template) -> None:
    (target,) = rules(template)["ToWebhook"]["Targets"]
    assert target["InputPath"] == "$.detail"


def test_a_chat_gets_a_text(template: Template) -> None:
    (target,) = rules(template)["ToChat"]["Targets"]
    transformer = target["InputTransformer"]
    assert set(transformer["InputPathsMap"].values()) == {"$.detail.taskId", "$.detail.status"}
    assert re.fullmatch(r'{"text":"Task <.+> is <.+>"}', transformer["InputTemplate"])


def test_another_account_gets_every_event(template: Template) -> None:
    rule = rules(template)["ToOther"]
    assert rule["EventPattern"] == {"source": [SOURCE]}
    assert rule["Targets"][0]["Arn"].startswith("arn:aws:events:eu-west-1:111122223333:")


def test_they_listen_for_what_the_stack_publishes(template: Template) -> None:
    for rule in rules(template).values():
        assert rule["EventBusName"] == "mcp-tasks"
        assert rule["EventPattern"]["source"] == [SOURCE]
        assert rule["EventPattern"].get("detail-type", [DETAIL_TYPE]) == [DETAIL_TYPE]
