"""What a function finds around it: its table, its state machines, its tools.

Read from the environment that `infra` gives every function, once per cold start. Clients are made
when they are first needed, because making one costs more than most requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from botocore.config import Config
from botocore.session import get_session

from .aws.errors import record_unanswered_attempts
from .limits import Limits
from .notifications.event_bus import EventBus
from .notifications.mailboxes import Mailboxes
from .payloads.s3_store import CONFIG as S3_CONFIG
from .payloads.s3_store import READS, PayloadStore
from .registry.catalogue import FILE_NAME, Catalogue, ToolEntry
from .tasks.idempotency import IdempotencyKeys
from .tasks.quotas import CallerQuotas
from .tasks.task_table import TaskTable
from .workflows.executions import Executions
from .workflows.reconcile import Reconciler

if TYPE_CHECKING:
    from .server.caller import Auth

BUNDLE = Path(__file__).resolve().parent.parent

# A call that hangs is repeated well within API Gateway's 29 seconds.
CLIENT_CONFIG = Config(
    connect_timeout=2, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 4}
)
# S3's part of them: 19 seconds at most, with a body that breaks off.
PART_CONFIG = Config(read_timeout=5, retries={"mode": "standard", "total_max_attempts": 2})
QUICK_CONFIG = Config(read_timeout=3, retries={"mode": "standard", "total_max_attempts": 1})


def aws_client(service: str, config: Config) -> Any:
    """A client of an AWS service. Not boto3's: importing boto3 doubles the cold start."""
    client = get_session().create_client(service, config=config)
    record_unanswered_attempts(client)
    return client


class Deployment:
    """One stack, as its functions see it.

    `environment` holds TASKS_TABLE, MAILBOXES_TABLE, CALLERS_TABLE, PAYLOADS_BUCKET, EVENT_BUS,
    STATE_MACHINE_PREFIX (an ARN that a tool's name completes), CELL, SERVER_NAME, SERVER_VERSION,
    STATE_KEY_SECRET (the ARN of a secret), AUTH, RESOURCE_METADATA, LIMITS (JSON), and, each
    separated by spaces, SCOPES, ALLOWED_ORIGINS and ALLOWED_HOSTS; each function gets those that it
    uses. `client` makes
    clients; tests pass a stand-in.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        client: Callable[..., Any] = aws_client,
        catalogue: Catalogue | None = None,
    ) -> None:
        self._environment = environment
        self._client = client
        self._catalogue = catalogue

    @cached_property
    def task_table(self) -> TaskTable:
        """The tasks table."""
        return TaskTable(self._dynamodb, self._environment["TASKS_TABLE"])

    @cached_property
    def mailboxes(self) -> Mailboxes:
        """What waits for those who listen."""
        return Mailboxes(self._dynamodb, self._environment["MAILBOXES_TABLE"])

    @cached_property
    def quotas(self) -> CallerQuotas:
        """What each caller has open."""
        return CallerQuotas(self._dynamodb, self._environment["CALLERS_TABLE"])

    @cached_property
    def idempotency_keys(self) -> IdempotencyKeys:
        """Which tasks clients' idempotency keys stand for."""
        return IdempotencyKeys(self._dynamodb, self._environment["CALLERS_TABLE"])

    @cached_property
    def bus(self) -> EventBus:
        """Where the changes of tasks are heard of."""
        client = self._client("events", config=CLIENT_CONFIG)
        return EventBus(client, self._environment["EVENT_BUS"])

    @cached_property
    def _dynamodb(self) -> Any:
        return self._client("dynamodb", config=CLIENT_CONFIG)

    @cached_property
    def executions(self) -> Executions:
        """The tools' executions."""
        return Executions(lambda: self._client("stepfunctions", config=CLIENT_CONFIG))

    @cached_property
    def payloads(self) -> PayloadStore:
        """What is too large for rows and executions."""
        return self._payloads()

    @cached_property
    def request_payloads(self) -> PayloadStore:
        """The same for a client that waits, who hears that S3 does not answer in time (503)."""
        return self._payloads(PART_CONFIG, reads=1)

    def _payloads(self, besides: Config | None = None, reads: int = READS) -> PayloadStore:
        config = CLIENT_CONFIG.merge(S3_CONFIG).merge(besides or Config())
        # A function's code is replaced before its environment: what needs no bucket goes on.
        bucket = self._environment.get("PAYLOADS_BUCKET", "")
        return PayloadStore(lambda: self._client("s3", config=config), bucket, reads)

    @cached_property
    def reconciler(self) -> Reconciler:
        """What looks after tasks of which nothing is heard."""
        return Reconciler(self.task_table, self.executions, self.catalogue, self.payloads)

    @cached_property
    def request_reconciler(self) -> Reconciler:
        """The same for a client that waits: Step Functions and S3 are asked once."""
        config = CLIENT_CONFIG.merge(QUICK_CONFIG)
        executions = Executions(lambda: self._client("stepfunctions", config=config))
        payloads = self._payloads(QUICK_CONFIG, reads=1)
        return Reconciler(self.task_table, executions, self.catalogue, payloads)

    @cached_property
    def catalogue(self) -> Catalogue:
        """The tools that were deployed."""
        return self._catalogue or Catalogue.read(BUNDLE / FILE_NAME)

    def state_key(self) -> str:
        """The secret that `requestState` is sealed with; every instance of a deployment has it."""
        client = self._client("secretsmanager", config=CLIENT_CONFIG)
        secret = client.get_secret_value(SecretId=self._environment["STATE_KEY_SECRET"])
        key: str = secret["SecretString"]
        return key

    def state_machine_arn(self, entry: ToolEntry) -> str:
        """The state machine that runs a tool's tasks."""
        return entry.state_machine_arn or self._environment["STATE_MACHINE_PREFIX"] + entry.name

    @property
    def cell(self) -> str:
        """The name of this stack among others, which its task ids begin with."""
        return self._environment["CELL"]

    @property
    def auth(self) -> Auth:
        """How callers are told apart. There is no default: nobody gets in by omission."""
        return cast("Auth", self._environment["AUTH"])

    @property
    def scopes(self) -> tuple[str, ...]:
        """What every access token has to be good for."""
        return tuple(self._environment.get("SCOPES", "").split())

    @property
    def resource_metadata(self) -> str:
        """Where clients read how to get a token (RFC 9728)."""
        return self._environment.get("RESOURCE_METADATA", "")

    @cached_property
    def limits(self) -> Limits:
        """What one caller may do, and what one request may be."""
        return Limits.from_json(self._environment.get("LIMITS"))

    @property
    def server_info(self) -> dict[str, str]:
        """`serverInfo`: self-reported, for display."""
        return {
            "name": self._environment["SERVER_NAME"],
            "version": self._environment["SERVER_VERSION"],
        }

    @property
    def allowed_origins(self) -> list[str]:
        """The browsers' pages that may call."""
        return self._environment.get("ALLOWED_ORIGINS", "").split()

    @property
    def allowed_hosts(self) -> list[str]:
        """The names that the server answers under; all, when there are none."""
        return self._environment.get("ALLOWED_HOSTS", "").split()
