"""`publish`: from a change of a task's row to an event on the bus."""

from __future__ import annotations

import json
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from mcp_tasks import environment

from .alarms import alarm_for_iterator_age, metrics_namespace
from .cdk_nag_findings import acknowledge
from .dead_letter_queue import DeadLetterQueue
from .event_bus import TaskEvents
from .function_code import FunctionCode
from .tables import TasksTable

BATCH_SIZE: Final = 100
BATCHES_PER_SHARD: Final = 10
"""In parallel: Lambda's maximum. Changes of one task stay in their order, because Lambda keeps the
records of one item together."""
MAX_RECORD_AGE: Final = Duration.hours(1)
"""How long a change is retried. Meanwhile it holds up the later changes of its shard. Lambda
chooses the intervals, which grow."""
ALARM_AGE: Final = Duration.minutes(1)


class PublishFunction(Construct):
    """A function that the tasks table's stream calls, and a dead-letter queue. It counts tasks, too
    (`mcp_tasks.notifications.task_metrics`).

    The queue's messages hold no changes. They name the batch's place in the stream, which keeps
    changes for 24 hours.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        table: TasksTable,
        task_events: TaskEvents,
        tool_metrics: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        # 512 MB, not 256: its cold start delays notifications, and takes half as long.
        function = code.function(
            self,
            "publish",
            description="Puts every change of a task onto the event bus",
            environment={
                environment.EVENT_BUS: task_events.name,
                environment.TOOL_METRICS: "on" if tool_metrics else "off",
                **metrics_namespace(self),
            },
            timeout=Duration.seconds(30),
        )
        table.allow_reading_stream(function)
        task_events.allow_publishing(function)
        dead_letters = DeadLetterQueue(
            self,
            "DeadLetterQueue",
            code.encryption,
            "`publish` gave up on changes of tasks after an hour: subscriptions and event rules "
            "did not get them. A message names their place in the table's stream, which keeps them "
            "for 24 hours",
        )
        acknowledge(dead_letters, "AwsSolutions-SQS3", "The dead-letter queue of a stream")
        dead_letters.allow_sending(function)
        dead_letters.replay_to_function(function)
        self._read_stream(function, table, dead_letters)
        alarm_for_iterator_age(
            self, function, ALARM_AGE, "Changes of tasks are published more than a minute late"
        )

    def _read_stream(
        self, function: lambda_.Function, table: TasksTable, dead_letters: DeadLetterQueue
    ) -> None:
        mapping = lambda_.CfnEventSourceMapping
        mapping(
            self,
            "TaskChanges",
            function_name=function.function_name,
            event_source_arn=table.stream_arn,
            # Not LATEST, which would miss changes that are made while the mapping is being created.
            starting_position="TRIM_HORIZON",
            batch_size=BATCH_SIZE,
            maximum_batching_window_in_seconds=0,
            parallelization_factor=BATCHES_PER_SHARD,
            # Halving the batch isolates a record that cannot be published; the others go on.
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=-1,
            maximum_record_age_in_seconds=MAX_RECORD_AGE.to_seconds(),
            destination_config=mapping.DestinationConfigProperty(
                on_failure=mapping.OnFailureProperty(destination=dead_letters.queue_arn)
            ),
            # Without REMOVE: a row's expiry is no change of its task.
            filter_criteria=mapping.FilterCriteriaProperty(
                filters=[
                    mapping.FilterProperty(pattern=json.dumps({"eventName": ["INSERT", "MODIFY"]}))
                ]
            ),
        )
