"""What Step Functions says of a state machine, without its definition."""

from __future__ import annotations

from typing import Any, Final

CUSTOMER_KEY: Final = "CUSTOMER_MANAGED_KMS_KEY"
"""The type of an encryption configuration that names a KMS key."""


def state_machine_metadata(states: Any, arn: str) -> dict[str, Any]:
    """Describe a state machine. Its definition is left out, for which a KMS key would be needed
    (Step Functions API reference, "DescribeStateMachine", `includedData`).

    Raises StateMachineDoesNotExist, and ClientError.
    """
    found: dict[str, Any] = states.describe_state_machine(
        stateMachineArn=arn, includedData="METADATA_ONLY"
    )
    return found
