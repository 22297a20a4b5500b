"""The deployment that a function belongs to: its tables, state machines, tools and settings.

All of it is read, once per cold start, from the environment that `infra` gives the function (see
`environment.py`). Clients of AWS are made on first use: making one takes longer than most requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from . import environment as names
from .aws.clients import (
    DEFAULT_CONFIG,
    ONE_ATTEMPT,
    S3_CONFIG,
    S3_CONFIG_WITHIN_REQUEST,
    SHORT_ATTEMPT,
    aws_client,
)
from .durable.journal_table import JournalTable
from .limits import Limits
from .notifications.announced_lists import AnnouncedLists
from .notifications.event_bus import EventBus
from .notifications.mailboxes import Mailboxes
from .payloads.s3_store import MAX_READ_ATTEMPTS, PayloadStore
from .protocol.scope_names import ScopeNames
from .registry.catalogue import FILE_NAME, Catalogue, ToolEntry
from .server_identity import ServerIdentity
from .sessions.call_table import CallTable
from .sessions.session_table import SessionTable
from .tasks.idempotency import IdempotencyKeys
from .tasks.quotas import CallerQuotas
from .tasks.task_list import TaskList
from .tasks.task_table import TaskTable
from .workflows.end_task import TaskEnds
from .workflows.executions import Executions
from .workflows.reconcile import Reconciler
from .workflows.subtask_outcome import SubtaskOutcomes

if TYPE_CHECKING:
    from botocore.config import Config

    from .workflows.subtasks import Subtasks

BUNDLE = Path(__file__).resolve().parent.parent
"""The folder of a function's code."""


class Deployment:
    """One deployed stack, as its functions see it.

    `environment` has the variables of `environment.py`, as far as the function uses them. `client`
    makes the clients of AWS; tests pass a stand-in.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        client: Callable[..., Any] = aws_client,
        catalogue: Catalogue | None = None,
        identity: ServerIdentity | None = None,
    ) -> None:
        self._environment = environment
        self._client = client
        self._catalogue = catalogue
        self._identity = identity

    @cached_property
    def task_table(self) -> TaskTable:
        """The tasks table."""
        return TaskTable(self._dynamodb, self._environment[names.TASKS_TABLE])

    @cached_property
    def task_list(self) -> TaskList:
        """Which tasks callers have."""
        return TaskList(self._dynamodb, self._environment[names.TASKS_TABLE])

    @cached_property
    def mailboxes(self) -> Mailboxes:
        """The mailboxes of the open subscriptions."""
        table = self._environment[names.MAILBOXES_TABLE]
        return Mailboxes(self._dynamodb, table, per_role=self._quota_per_role)

    @cached_property
    def mailboxes_for_delivery(self) -> Mailboxes:
        """The same with one short attempt per call: the deliveries of a batch share their time."""
        client = self._client("dynamodb", config=DEFAULT_CONFIG.merge(SHORT_ATTEMPT))
        return Mailboxes(client, self._environment[names.MAILBOXES_TABLE])

    @cached_property
    def quotas(self) -> CallerQuotas:
        """The quotas of all callers."""
        table = self._environment[names.CALLERS_TABLE]
        return CallerQuotas(self._dynamodb, table, per_role=self._quota_per_role)

    @cached_property
    def session_table(self) -> SessionTable:
        """What is remembered of sessions."""
        # Lambda replaces a function's code before its environment: until then, sessions fail.
        return SessionTable(self._dynamodb, self._environment.get(names.SESSIONS_TABLE, ""))

    @cached_property
    def call_table(self) -> CallTable:
        """The calls that wait for their clients' answers."""
        return CallTable(self._dynamodb, self._environment.get(names.SESSIONS_TABLE, ""))

    @cached_property
    def idempotency_keys(self) -> IdempotencyKeys:
        """The idempotency keys of all callers."""
        return IdempotencyKeys(self._dynamodb, self._environment[names.CALLERS_TABLE])

    @cached_property
    def journal_table(self) -> JournalTable:
        """The journals of durable operations."""
        # Lambda replaces a function's code before its environment: until then, operations fail.
        return JournalTable(self._dynamodb, self._environment.get(names.JOURNAL_TABLE, ""))

    @cached_property
    def event_bus(self) -> EventBus:
        """The event bus that the changes of tasks are published to."""
        client = self._client("events", config=DEFAULT_CONFIG)
        return EventBus(client, self._environment[names.EVENT_BUS])

    @cached_property
    def announced_lists(self) -> AnnouncedLists:
        """Which lists were announced last."""
        return AnnouncedLists(self._dynamodb, self._environment[names.MAILBOXES_TABLE])

    @cached_property
    def _dynamodb(self) -> Any:
        return self._client("dynamodb", config=DEFAULT_CONFIG)

    @cached_property
    def executions(self) -> Executions:
        """The executions of the tools' state machines."""
        return Executions(lambda: self._client("stepfunctions", config=DEFAULT_CONFIG))

    @cached_property
    def payloads(self) -> PayloadStore:
        """The payloads in S3, for functions that nobody waits for."""
        return self._payloads(S3_CONFIG)

    @cached_property
    def payloads_within_request(self) -> PayloadStore:
        """The payloads in S3, with fewer attempts: a client waits, who gets a 503 in time."""
        return self._payloads(S3_CONFIG_WITHIN_REQUEST, read_attempts=1)

    def _payloads(self, config: Config, read_attempts: int = MAX_READ_ATTEMPTS) -> PayloadStore:
        # Lambda replaces a function's code before its environment: without the variable, what needs
        # no bucket goes on.
        bucket = self._environment.get(names.PAYLOADS_BUCKET, "")
        return PayloadStore(lambda: self._client("s3", config=config), bucket, read_attempts)

    @cached_property
    def task_ends(self) -> TaskEnds:
        """Ends tasks whose executions have ended, in functions that nobody waits for."""
        return TaskEnds(
            self.task_table, self.executions, self.catalogue, self.payloads, self.journal_table
        )

    @cached_property
    def subtasks(self) -> Subtasks:
        """Starts the subtasks that tools call."""
        from .workflows.subtasks import Subtasks  # with pydantic, which no other function needs

        outcomes = SubtaskOutcomes(self.journal_table, self.payloads, self.executions)
        return Subtasks(self.task_ends, outcomes, self.state_machine_arn)

    @cached_property
    def reconciler(self) -> Reconciler:
        """Reconciles tasks with their executions, in functions that nobody waits for."""
        return Reconciler(self.task_ends, self.state_machine_arn)

    @cached_property
    def reconciler_within_request(self) -> Reconciler:
        """Reconciles with one attempt per call to Step Functions and S3: a client waits."""
        config = DEFAULT_CONFIG.merge(ONE_ATTEMPT)
        executions = Executions(lambda: self._client("stepfunctions", config=config))
        payloads = self._payloads(S3_CONFIG.merge(ONE_ATTEMPT), read_attempts=1)
        ends = TaskEnds(self.task_table, executions, self.catalogue, payloads)
        return Reconciler(ends, self.state_machine_arn)

    @cached_property
    def catalogue(self) -> Catalogue:
        """The tools, resources and prompts that were deployed."""
        return self._catalogue or Catalogue.read(BUNDLE / FILE_NAME)

    def request_state_key(self) -> str:
        """The secret that `requestState` is encrypted with, the same for all instances."""
        client = self._client("secretsmanager", config=DEFAULT_CONFIG)
        secret_id = self._environment[names.REQUEST_STATE_KEY_SECRET]
        key: str = client.get_secret_value(SecretId=secret_id)["SecretString"]
        return key

    def state_machine_arn(self, entry: ToolEntry) -> str:
        """The state machine that runs a tool's tasks."""
        prefix = names.STATE_MACHINE_PREFIX
        return entry.state_machine_arn or self._environment[prefix] + entry.name

    @property
    def _quota_per_role(self) -> bool:
        return self._environment.get(names.QUOTA_PER) == "role"

    @property
    def cell(self) -> str:
        """The cell's name, which its task ids begin with."""
        return self._environment[names.CELL]

    @property
    def companion_tools(self) -> bool:
        """Whether clients without tasks get tools that ask for a task's result."""
        return self._environment.get(names.COMPANION_TOOLS) == "on"

    @property
    def tool_metrics(self) -> bool:
        """Whether the metrics of tasks are those of each tool as well."""
        return self._environment.get(names.TOOL_METRICS) == "on"

    @property
    def tracing(self) -> bool:
        """Whether a new task keeps the X-Ray trace of its call."""
        return self._environment.get(names.TRACING) == "on"

    @property
    def auth(self) -> names.Auth:
        """How callers authenticate. There is no default, so that nobody gets in by omission."""
        return cast("names.Auth", self._environment[names.AUTH])

    @property
    def methods(self) -> frozenset[str]:
        """The MCP methods that this function answers; empty for all."""
        return frozenset(self._environment.get(names.METHODS, "").split())

    @property
    def principal(self) -> names.Principal:
        """Whom the tasks of an assumed role belong to."""
        return cast("names.Principal", self._environment.get(names.PRINCIPAL, "session"))

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that every access token must have."""
        return tuple(self._environment.get(names.SCOPES, "").split())

    @property
    def scope_names(self) -> ScopeNames:
        """By which names a client asks for scopes."""
        return ScopeNames(self._environment.get(names.SCOPE_PREFIX, ""))

    @property
    def resource_metadata(self) -> str:
        """The URL where clients read how to get a token (RFC 9728)."""
        return self._environment.get(names.RESOURCE_METADATA_URL, "")

    @cached_property
    def limits(self) -> Limits:
        """What one caller may do, and how large one request may be."""
        return Limits.from_json(self._environment.get(names.LIMITS))

    @cached_property
    def identity(self) -> ServerIdentity:
        """What the server tells clients about itself."""
        return self._identity or ServerIdentity.read(BUNDLE)

    @property
    def allowed_origins(self) -> list[str]:
        """The origins whose web pages may call."""
        return self._environment.get(names.ALLOWED_ORIGINS, "").split()

    @property
    def allowed_hosts(self) -> list[str]:
        """The host names that the server answers under; empty for all."""
        return self._environment.get(names.ALLOWED_HOSTS, "").split()
