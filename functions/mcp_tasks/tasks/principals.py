"""The names under which callers' tasks are kept.

https://issuer.example|alice                              an access token's subject
https://issuer.example#client|4v8example                  a machine client's token
arn:aws:iam::111122223333:user/alice                      an IAM user
arn:aws:sts::111122223333:assumed-role/deploy/alice       one session of a role
arn:aws:sts::111122223333:assumed-role/deploy             a role, whatever the session
arn:aws:sts::111122223333:assumed-role/pool/s|<identity>  an identity of a Cognito identity pool
arn:aws:sts::111122223333:federated-user/alice            a name that a caller of GetFederationToken
                                                          chose
anonymous                                                 everybody, without authentication
"""

from __future__ import annotations

import re
from typing import Final

_SESSION: Final = re.compile(r"(arn:[a-z-]+:sts::[0-9]{12}:assumed-role/[^/|]+)/[^/|]+")
"""IAM user guide, "IAM identifiers". STS leaves out the role's path."""
_FEDERATED_USER: Final = re.compile(r"(arn:[a-z-]+:sts::[0-9]{12}:federated-user)/[^/|]+")
"""The same page. Whoever may call GetFederationToken chooses the name."""


def role_of(principal: str) -> str:
    """The principal without the name of its session, which whoever assumes the role chooses.

    All federated users of an account are one. Any other principal is returned as it is. An identity
    of an identity pool remains one.
    """
    for pattern in (_SESSION, _FEDERATED_USER):
        if pattern.match(principal):
            return pattern.sub(r"\1", principal, count=1)
    return principal


def is_federated_user(principal: str) -> bool:
    """Whether a principal is a name that a caller of GetFederationToken chose, without a role."""
    return _FEDERATED_USER.match(principal) is not None
