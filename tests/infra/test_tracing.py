"""`-c tracing=on`, `-c execution_log=on`: what is traced and logged, and nothing without them."""

from __future__ import annotations

from tests.infra.assembly import Assembly

TRACE = {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}
SAMPLE = {"xray:GetSamplingRules", "xray:GetSamplingTargets"}
DELIVER_LOGS = {
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
}
"""Step Functions developer guide, "IAM Policies for logging to CloudWatch Logs"."""
FUNCTION, STAGE = "AWS::Lambda::Function", "AWS::ApiGateway::Stage"
STATE_MACHINE = "AWS::StepFunctions::StateMachine"


def test_every_part_of_a_call_is_traced(traced: Assembly) -> None:
    stages = traced.resources(STAGE).values()
    assert len(stages) == 2
    assert all(stage["TracingEnabled"] for stage in stages)
    for path, function in traced.resources(FUNCTION).items():
        assert function["TracingConfig"] == {"Mode": "Active"}, path
    for path, machine in traced.resources(STATE_MACHINE).items():
        assert machine["TracingConfiguration"] == {"Enabled": True}, path
    variables = traced.resources(FUNCTION)["Api/Function"]["Environment"]["Variables"]
    assert variables["TRACING"] == "on", "a task keeps the trace of its call"


def test_nothing_is_traced_or_logged_unless_it_is_asked_for(on_aws: Assembly) -> None:
    """State machines and stages are told so: an update that leaves a configuration out keeps the
    one that they have (aws/aws-cdk#30796, aws/aws-cdk#30814)."""
    for path, machine in on_aws.resources(STATE_MACHINE).items():
        assert machine["TracingConfiguration"] == {"Enabled": False}, path
        assert machine["LoggingConfiguration"] == {"Level": "OFF"}, path
    assert {stage["TracingEnabled"] for stage in on_aws.resources(STAGE).values()} == {False}
    for path, function in on_aws.resources(FUNCTION).items():
        assert "TracingConfig" not in function, path
    assert not [role for role, grants in on_aws.grants().items() if "*" in grants]
    variables = on_aws.resources(FUNCTION)["Api/Function"]["Environment"]["Variables"]
    assert variables["TRACING"] == "off"


def test_a_role_may_write_traces_and_nothing_else_of_everybody_s(traced: Assembly) -> None:
    for role, grants in traced.grants().items():
        rights = grants.get("*", set())
        if role.endswith("StateMachineRole"):
            assert rights == TRACE | SAMPLE | DELIVER_LOGS, role
        elif role == "Sweep/ScheduleRole":
            assert rights == set(), role
        else:
            assert rights == TRACE, role


def test_tracing_and_the_log_of_executions_change_no_other_right(
    traced: Assembly, with_own_key: Assembly
) -> None:
    delivery = "<Encryption/Key.Arn> where kms:EncryptionContext:SourceArn = "
    changed = {
        role: {
            resource: actions
            for resource, actions in grants.items()
            if resource != "*" and not resource.startswith(delivery)
        }
        for role, grants in traced.grants().items()
    }
    assert changed == with_own_key.grants()


def test_step_functions_logs_errors_without_data(traced: Assembly) -> None:
    for path, machine in traced.resources(STATE_MACHINE).items():
        assert machine["LoggingConfiguration"] == {
            "Destinations": [{"CloudWatchLogsLogGroup": {"LogGroupArn": "<Executions/Logs.Arn>"}}],
            "IncludeExecutionData": False,
            "Level": "ERROR",
        }, path


def test_the_log_of_executions_forgets_and_is_encrypted_as_the_others(traced: Assembly) -> None:
    """Under a name for which Step Functions need not lengthen a policy of the account."""
    group = traced.resources("AWS::Logs::LogGroup")["Executions/Logs"]
    assert group["LogGroupName"] == "/aws/vendedlogs/states/mcp-tasks"
    assert group["RetentionInDays"] == 30
    assert group["KmsKeyId"] == "<Encryption/Key.Arn>"


def test_the_key_lets_log_deliveries_read(traced: Assembly) -> None:
    """Step Functions developer guide, "Data at rest encryption": the log's events are encrypted
    until they are delivered."""
    (key,) = traced.resources("AWS::KMS::Key").values()
    services = [s["Principal"].get("Service") for s in key["KeyPolicy"]["Statement"]]
    assert "delivery.logs.amazonaws.com" in services
