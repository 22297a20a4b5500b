"""Two stacks of one cell, of which one's name begins the other's, would share their executions."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.kept_choices import CHOICES
from operations.preflight.deployment import Deployment
from operations.preflight.stack_names import CHECK


def template(cell: str) -> dict[str, Any]:
    """A stack's template, as far as it matters."""
    return {"Metadata": {CHOICES: {"cell": cell}}, "Resources": {}}


class CloudFormation:
    """An account with stacks: their names and templates. The second page has the last one."""

    def __init__(self, **stacks: dict[str, Any]) -> None:
        self.stacks = {name.replace("_", "-"): body for name, body in stacks.items()}
        self.read: list[str] = []

    def client(self, service: str) -> CloudFormation:
        """The only client."""
        assert service == "cloudformation"
        return self

    def get_paginator(self, operation: str) -> CloudFormation:
        """CloudFormation API reference, "DescribeStacks"."""
        assert operation == "describe_stacks"
        return self

    def paginate(self) -> list[dict[str, Any]]:
        """All stacks."""
        stacks = [
            {"StackName": name, "StackStatus": "UPDATE_COMPLETE"} for name in sorted(self.stacks)
        ]
        return [{"Stacks": stacks[:-1]}, {"Stacks": stacks[-1:]}]

    def get_template(self, **given: Any) -> dict[str, Any]:
        """CloudFormation API reference, "GetTemplate"."""
        self.read.append(given["StackName"])
        if given["StackName"] not in self.stacks:
            raise ClientError({"Error": {"Code": "ValidationError"}}, "GetTemplate")
        return {"TemplateBody": self.stacks[given["StackName"]]}


def deployment(account: CloudFormation, cell: str = "c1") -> Deployment:
    """The deployment of `mcp-notes`."""
    return Deployment("mcp-notes", template(cell), account.client, "eu-west-1")


@pytest.mark.parametrize("other", ["mcp", "mcp_notes_dev"])
def test_a_new_stack_of_the_same_cell_is_refused(other: str) -> None:
    finding = CHECK.run(deployment(CloudFormation(**{other: template("c1"), "zoo": template("")})))
    assert finding.refused
    assert f"the stack {other.replace('_', '-')} is of the cell c1, too" in finding.text
    assert "make deploy ... cell=c12\n" in finding.text


def test_a_deployed_stack_is_warned() -> None:
    finding = CHECK.run(
        deployment(CloudFormation(mcp_notes=template("c1"), mcp_notes_dev=template("c1")))
    )
    assert not finding.refused
    assert finding.text.startswith("WARNING: the stack mcp-notes-dev is of the cell c1, too")


def test_stacks_of_other_cells_and_of_other_things_are_no_matter() -> None:
    others: dict[str, dict[str, Any]] = {"mcp_notes_dev": template("c2"), "mcp": {}}
    assert CHECK.run(deployment(CloudFormation(**others))).text == ""


def test_only_stacks_with_such_names_are_read() -> None:
    account = CloudFormation(mcp_notebook=template("c1"), zoo=template("c1"))
    assert CHECK.run(deployment(account)).text == ""
    assert account.read == []
