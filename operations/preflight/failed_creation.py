"""Is there a stack whose creation failed, and whose protection keeps the CDK from deleting it?

The CDK turns termination protection on before CloudFormation creates the first resource. When the
creation fails, the next `cdk deploy` deletes the empty stack and begins anew, and the protection
forbids that (CloudFormation user guide, "Protect CloudFormation stacks from being deleted").
"""

from __future__ import annotations

from typing import Any, Final

from botocore.exceptions import ClientError

from .check import Check, Finding
from .deployment import Deployment

FAILED: Final = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED")


def find(deployment: Deployment) -> Finding:
    """Look at the deployed stack's status."""
    stack = _stack(deployment)
    if stack.get("StackStatus") not in FAILED or not stack.get("EnableTerminationProtection"):
        return Finding("")
    return Finding(
        f"the stack {deployment.stack} is left over from a creation that failed, and is protected "
        "from deletion.\n\nIt serves nobody. Take the protection away, and deploy again; the CDK "
        "then deletes it first:\n"
        f"    aws cloudformation update-termination-protection --region {deployment.region} \\\n"
        f"        --no-enable-termination-protection --stack-name {deployment.stack}\n"
        "Its tables and log groups stay, empty and protected; they cost nothing. "
        f"Their names begin with {deployment.stack}-. The next creation makes others, so delete "
        "these. With encryption=customer their key is scheduled for deletion. docs/data.md has the "
        "commands (What outlives a stack).",
        refused=True,
    )


def _stack(deployment: Deployment) -> dict[str, Any]:
    try:
        (stack,) = deployment.client("cloudformation").describe_stacks(StackName=deployment.stack)[
            "Stacks"
        ]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        return {}
    found: dict[str, Any] = stack
    return found


CHECK: Final = Check("a creation of the stack has failed", find)
