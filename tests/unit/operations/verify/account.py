"""An account that answers as AWS documents it, with one thing wrong where a test says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

from operations.deployed_stack import DeployedStack
from operations.verify.deployed import Deployed
from operations.verify.endpoint import Endpoint
from tests.unit.operations.verify.service_models import check_answer, check_call

ROLES = ("Ask", "Subtasks", "Authorizer", "Api", "Finish", "Publish", "Deliver", "Sweep", "Tools")
RULE = "arn:aws:apigateway:eu-west-1::/domainnames/mcp.example.com/routingrules/r1"
MAPPING = "14e0db71-5d35-4eb5-b481-8945cf9d10c2"
MACHINE = "arn:aws:states:eu-west-1:111122223333:stateMachine:notes-fill"
RESOURCES = [
    *(("AWS::IAM::Role", f"{role}Role1A") for role in ROLES),
    ("AWS::CloudWatch::Alarm", "FinishAlarm"),
    ("AWS::CloudWatch::Alarm", "MathAlarm"),
    ("AWS::Scheduler::Schedule", "SweepSchedule"),
    ("AWS::Scheduler::ScheduleGroup", "SweepScheduleGroup"),
    ("AWS::Lambda::Function", "SweepFunction1A"),
    ("AWS::Lambda::Function", "ApiFunction1A"),
    ("AWS::DynamoDB::Table", "TasksTable"),
    ("AWS::Logs::LogGroup", "ApiLogs"),
    ("AWS::CloudWatch::Dashboard", "MonitoringDashboard"),
    ("AWS::ApiGateway::RestApi", "ApiRestApi1A"),
    ("AWS::ApiGateway::Stage", "ApiRestApiDeploymentStagev11A"),
]


class Account:
    """Answers by service and operation; `wrong` replaces some."""

    def __init__(self, *also: tuple[str, str, str], **wrong: Any) -> None:
        """With more resources: type, logical id and physical id."""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.resources = [(kind, name, f"physical-{name}") for kind, name in RESOURCES]
        self.resources += [
            ("AWS::ApiGatewayV2::RoutingRule", "RoutingRule", RULE),
            ("AWS::Lambda::EventSourceMapping", "Stream", MAPPING),
            ("AWS::StepFunctions::StateMachine", "ToolsMachine", MACHINE),
            *also,
        ]
        self.answers: dict[str, Any] = _good() | wrong

    def deployed(self) -> Deployed:
        """A deployment in this account."""
        stack = DeployedStack("notes", self.client)
        return Deployed(Endpoint("https://mcp.example.com/mcp"), False, stack)

    def client(self, service: str) -> Any:
        """A client whose operations answer."""
        return _Client(self, service)

    def answer(self, service: str, operation: str, arguments: dict[str, Any]) -> Any:
        """The answer to an operation, if AWS would take the call and could answer so."""
        check_call(service, operation, arguments)
        self.asked.append((operation, arguments))
        found = self.answers[operation]
        found = found(arguments) if callable(found) else found
        if isinstance(found, str):
            raise ClientError({"Error": {"Code": found, "Message": found}}, operation)
        check_answer(service, operation, found)
        return found


class _Client:
    def __init__(self, account: Account, service: str) -> None:
        self._account, self._service = account, service
        self.meta = SimpleNamespace(
            region_name="eu-west-1", endpoint_url=f"https://{service}.eu-west-1.amazonaws.com"
        )

    def get_paginator(self, operation: str) -> Any:
        """One page."""
        if operation == "list_stack_resources":
            summaries = [
                {"ResourceType": kind, "LogicalResourceId": name, "PhysicalResourceId": physical}
                for kind, name, physical in self._account.resources
            ]
            return SimpleNamespace(paginate=lambda **_: [{"StackResourceSummaries": summaries}])
        return SimpleNamespace(paginate=lambda **arguments: [self._answer(operation, arguments)])

    def _answer(self, operation: str, arguments: dict[str, Any]) -> Any:
        return self._account.answer(self._service, operation, arguments)

    def __getattr__(self, operation: str) -> Any:
        return lambda **arguments: self._answer(operation, arguments)


def _good() -> dict[str, Any]:
    outputs = {"TasksTable": "notes-tasks", "JournalTable": "notes-journal"}
    outputs |= {"PayloadsBucket": "notes-payloads", "EventBus": "notes-bus"}
    listed = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
    return {
        "describe_stacks": {"Stacks": [{"Outputs": listed}]},
        "describe_alarms": {
            "MetricAlarms": [
                {
                    "AlarmName": "physical-FinishAlarm",
                    "StateValue": "OK",
                    "AlarmActions": ["arn:aws:sns:eu-west-1:111122223333:on-call"],
                    "Namespace": "AWS/SQS",
                    "MetricName": "ApproximateNumberOfMessagesVisible",
                    "Dimensions": [{"Name": "QueueName", "Value": "q"}],
                },
                {
                    "AlarmName": "physical-MathAlarm",
                    "StateValue": "OK",
                    "AlarmActions": ["arn:aws:sns:eu-west-1:111122223333:on-call"],
                    "Metrics": [{"Id": "all", "Expression": "FILL(m1, 0)", "ReturnData": True}],
                },
            ]
        },
        "list_metrics": {
            "Metrics": [
                {"MetricName": name} for name in ("TasksCreated", "TasksCompleted", "DeliveryDelay")
            ]
        },
        "get_schedule": {"State": "ENABLED"},
        "get_metric_statistics": {"Datapoints": [{"Sum": 2.0}, {"Sum": 3.0}]},
        "get_event_source_mapping": {"State": "Enabled", "EventSourceArn": "arn:stream"},
        "describe_state_machine": {"name": "m", "type": "STANDARD", "status": "ACTIVE"},
        "describe_time_to_live": {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED"}},
        "describe_continuous_backups": {
            "ContinuousBackupsDescription": {
                "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}
            }
        },
        "get_public_access_block": {
            "PublicAccessBlockConfiguration": {"BlockPublicAcls": True, "BlockPublicPolicy": True}
        },
        "get_bucket_encryption": {"ServerSideEncryptionConfiguration": {"Rules": [{}]}},
        "get_bucket_lifecycle_configuration": {"Rules": [{"Status": "Enabled"}]},
        "describe_log_groups": {
            "logGroups": [{"logGroupName": "physical-ApiLogs", "retentionInDays": 30}]
        },
        "get_metric_data": {"MetricDataResults": [{"Values": [0.0]}]},
        "describe_metric_filters": {
            "metricFilters": [{"filterName": "AnswerTime", "filterPattern": "{ $.message = x }"}]
        },
        "test_metric_filter": {"matches": [{"eventNumber": 1}]},
        "get_dashboard": {"DashboardBody": '{"widgets": [1, 2]}'},
        "describe_query_definitions": {
            "queryDefinitions": [
                {"name": "notes/one task", "queryString": "filter x", "logGroupNames": ["g"]}
            ]
        },
        "start_query": {"queryId": "q1"},
        "get_query_results": {"status": "Complete"},
        "put_events": {"Entries": [{"ErrorCode": "MalformedDetail"}]},
        "get_domain_name": {
            "RoutingMode": "ROUTING_RULE_ONLY",
            "DomainNameConfigurations": [{"SecurityPolicy": "TLS_1_2"}],
        },
        "get_rest_api": {"name": "notes", "disableExecuteApiEndpoint": True},
        "get_function_configuration": {
            "Environment": {
                "Variables": {"ALLOWED_ORIGINS": "https://*.example.com https://a.example"}
            }
        },
        "list_routing_rules": {"RoutingRules": [{"RoutingRuleArn": RULE}]},
        "get_caller_identity": {
            "Account": "111122223333",
            "Arn": "arn:aws:sts::111122223333:assumed-role/admin/me",
        },
        "simulate_principal_policy": lambda asked: {
            "EvaluationResults": [
                {"EvalActionName": action, "EvalDecision": "implicitDeny"}
                for action in asked["ActionNames"]
            ]
        },
    }
