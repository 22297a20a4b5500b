"""A role's principal, from that of one of its sessions."""

from __future__ import annotations

import pytest

from mcp_tasks.tasks.principals import role_of

STS = "arn:aws:sts::111122223333:assumed-role"
FEDERATED = "arn:aws:sts::111122223333:federated-user"
GOV = STS.replace("aws", "aws-us-gov", 1)


@pytest.mark.parametrize(
    ("principal", "role"),
    [
        (f"{STS}/deploy/alice", f"{STS}/deploy"),
        (f"{STS}/deploy/alice@example.com", f"{STS}/deploy"),
        (f"{GOV}/deploy/a", f"{GOV}/deploy"),
        (f"{STS}/pool/s|eu-west-1:1", f"{STS}/pool|eu-west-1:1"),
        (f"{FEDERATED}/alice", FEDERATED),
    ],
)
def test_a_name_that_the_caller_chooses_is_left_out(principal: str, role: str) -> None:
    assert role_of(principal) == role
    assert role_of(role) == role


@pytest.mark.parametrize(
    "principal",
    [
        "anonymous",
        "arn:aws:iam::111122223333:user/team/alice",
        "arn:aws:iam::111122223333:root",
        f"https://issuer.example|{STS}/deploy/alice",
        "https://issuer.example#client|a/b/c",
    ],
)
def test_every_other_principal_stays_as_it_is(principal: str) -> None:
    assert role_of(principal) == principal
