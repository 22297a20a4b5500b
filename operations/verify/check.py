"""One check of a deployment, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from .deployed import Deployed

Verdict = Literal["passed", "FAILED", "not tried", "only AWS can tell"]
DENIED: Final = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"}
)


class Problem(Exception):
    """The deployment does something else than the documentation says; the message says what."""


class NotTried(Exception):
    """The check could not be made, and says why. It says nothing about the deployment."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `run` returns what was seen, and raises Problem or NotTried."""

    title: str
    run: Callable[[Deployed], str]
    only_aws: bool = False
    """Whether the emulator would say nothing about AWS."""
    of_stack: bool = False
    """Whether it reads the account, and not only the endpoint."""
    slow: bool = False
    """Whether it takes minutes, so that it runs only when it is asked for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a check ended."""

    title: str
    verdict: Verdict
    seen: str
    seconds: float


def outcome_of(check: Check, deployed: Deployed) -> Outcome:
    """Run a check. An unexpected error fails it, and the next one still runs."""
    begun = time.monotonic()
    verdict, seen = _run(check, deployed)
    return Outcome(check.title, verdict, seen, time.monotonic() - begun)


def _run(check: Check, deployed: Deployed) -> tuple[Verdict, str]:
    if check.only_aws and deployed.on_emulator:
        return "only AWS can tell", ""
    if check.of_stack and deployed.stack is None:
        return "not tried", "url= was given; stack= or stage= lets it read the account"
    if check.slow and not deployed.slow:
        return "not tried", "slow=yes runs it"
    try:
        return "passed", check.run(deployed)
    except NotTried as reason:
        return "not tried", str(reason)
    except Problem as problem:
        return "FAILED", str(problem)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in DENIED:
            return "not tried", f"your credentials may not call {error.operation_name}"
        return "FAILED", f"{error.operation_name}: {code}"
    except (OSError, BotoCoreError, LookupError, ValueError) as error:
        return "FAILED", f"{type(error).__name__}: {error}"


def expect(holds: object, problem: str) -> None:
    """Raise Problem unless it holds."""
    if not holds:
        raise Problem(problem)
