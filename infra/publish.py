"""From a change of a task's row to an event on the bus."""

from __future__ import annotations

import json

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .cdk_nag_findings import acknowledge
from .dead_letter_queue import DeadLetterQueue
from .event_bus import TaskEvents
from .function_code import FunctionCode
from .table import TasksTable

BATCH_SIZE = 100
PARALLEL_BATCHES = 10
"""Of one shard, which is Lambda's limit. Changes of one task stay in their order: DynamoDB keeps
its records together by key."""
GIVE_UP_AFTER = Duration.hours(1)
"""What cannot be published holds up its shard's other tasks until then. Lambda chooses when it
tries again, and ever more seldom."""
LATE = Duration.minutes(1)


class PublishFunction(Construct):
    """A function that the table's stream calls, and a queue that names what it gave up on.

    The queue's messages hold no changes: they say where in the stream those are, for 24 hours from
    when they were made.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        code: FunctionCode,
        table: TasksTable,
        task_events: TaskEvents,
    ) -> None:
        super().__init__(scope, construct_id)
        # 512 MB, not 256: its cold start is part of a notification's way, and half as long.
        function = code.function(
            self,
            "publish",
            description="Puts every change of a task onto the event bus",
            environment={"EVENT_BUS": task_events.name},
            timeout=Duration.seconds(30),
        )
        table.allow_reading_stream(function)
        task_events.allow_publishing(function)
        unpublished = DeadLetterQueue(
            self,
            "Unpublished",
            code.encryption,
            "Changes of tasks were not published for an hour, and given up on; the message says "
            "where they are in the table's stream, which keeps them for a day",
        )
        acknowledge(unpublished, "AwsSolutions-SQS3", "A dead-letter queue itself, of a stream")
        unpublished.allow_sending(function)
        unpublished.replay_to_function(function)
        lambda_.CfnEventSourceMapping(
            self,
            "Changes",
            function_name=function.function_name,
            event_source_arn=table.stream_arn,
            # Nothing that happens while the mapping is being made is lost.
            starting_position="TRIM_HORIZON",
            batch_size=BATCH_SIZE,
            maximum_batching_window_in_seconds=0,
            parallelization_factor=PARALLEL_BATCHES,
            # A record that cannot be published is found, and the others go on without it.
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=-1,
            maximum_record_age_in_seconds=GIVE_UP_AFTER.to_seconds(),
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(
                    destination=unpublished.queue_arn
                )
            ),
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                # A row's removal is no change of its task: DynamoDB forgets it.
                filters=[
                    lambda_.CfnEventSourceMapping.FilterProperty(
                        pattern=json.dumps({"eventName": ["INSERT", "MODIFY"]})
                    )
                ]
            ),
        )
        age = function.metric("IteratorAge", period=Duration.minutes(1), statistic="Maximum")
        age.create_alarm(
            self,
            "Late",
            alarm_description="Changes of tasks are published more than a minute late",
            threshold=LATE.to_milliseconds(),
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=1,
            # Nothing changes.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
