"""How many resources the stack has; CloudFormation takes 500 in a template.

CloudFormation user guide, "Understand CloudFormation quotas"; the quota cannot be raised.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import CfnResource, Stack
from constructs import IConstruct

from .tool_workflows import ToolWorkflow

MAX_RESOURCES: Final = 500


def check_size(stack: Stack) -> None:
    """Raise ValueError when the stack has too many resources, with what has how many."""
    total = _resources(stack)
    if total <= MAX_RESOURCES:
        return
    constructs = stack.node.find_all()
    tools = [construct for construct in constructs if isinstance(construct, ToolWorkflow)]
    of_tools = sum(map(_resources, tools))
    raise ValueError(
        f"the stack {stack.stack_name} has {total} resources, and CloudFormation takes "
        f"{MAX_RESOURCES} in one stack: {len(tools)} tools that run as tasks have {of_tools}, all "
        f"the rest has {total - of_tools}. Deploy some of the tools as a second stack (tools=... "
        "stack=... cell=...), or let tools that belong together be steps of one workflow"
    )


def _resources(construct: IConstruct) -> int:
    return sum(map(CfnResource.is_cfn_resource, construct.node.find_all()))
