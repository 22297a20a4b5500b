"""What every deployment has: functions, tables, the rule of ends, gateway."""

from __future__ import annotations

import json
import math
import re

from mcp_tasks.limits import Limits
from tests.infra.assembly import Assembly, state_machine
from tests.infra.fork import LEGACY_ARN

METRICS = "POWERTOOLS_METRICS_NAMESPACE"
STATUS = {
    "THROTTLED": "429",
    "REQUEST_TOO_LARGE": "413",
    "INTEGRATION_TIMEOUT": "504",
    "INTEGRATION_FAILURE": "503",
}
MAY_BE_REPEATED = {
    "THROTTLED",
    "INTEGRATION_FAILURE",
    "DEFAULT_5XX",
    "AUTHORIZER_FAILURE",
    "AUTHORIZER_CONFIGURATION_ERROR",
}
BLAMES_THE_REQUEST = ("REQUEST_TOO_LARGE", "DEFAULT_4XX", "UNAUTHORIZED", "ACCESS_DENIED")
INTEGRATION_LIMIT_SECONDS = 29
"""API Gateway's own limit for an integration of a regional REST API."""


def test_functions_run_python_3_13_on_arm64(fork: Assembly) -> None:
    for path, function in fork.resources("AWS::Lambda::Function").items():
        assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"]), path


def test_functions_log_into_groups_that_forget(open_server: Assembly) -> None:
    """Each into its own: none creates one implicitly, which would keep its logs for ever."""
    groups = open_server.resources("AWS::Logs::LogGroup")
    groups.pop("Tracebacks/Logs")  # tests/infra/test_tracebacks.py
    used = [
        function["LoggingConfig"]["LogGroup"].strip("<>")
        for function in open_server.resources("AWS::Lambda::Function").values()
    ]
    (stage,) = open_server.resources("AWS::ApiGateway::Stage").values()
    used += re.findall(":log-group:<(.*)>$", stage["AccessLogSetting"]["DestinationArn"])
    assert sorted(used) == sorted(groups)
    assert {group["RetentionInDays"] for group in groups.values()} == {30}


def test_nothing_creates_log_groups_behind_the_template(on_aws: Assembly) -> None:
    """Custom resources bring functions, and execution logs a group that API Gateway makes."""
    kinds = {resource["Type"] for resource in on_aws.template["Resources"].values()}
    assert not {kind for kind in kinds if kind.startswith(("Custom::", "AWS::CloudFormation::"))}
    (stage,) = on_aws.resources("AWS::ApiGateway::Stage").values()
    assert not [s for s in stage["MethodSettings"] if s.get("LoggingLevel", "OFF") != "OFF"]


def test_a_function_never_logs_its_event(on_aws: Assembly) -> None:
    """It holds arguments and answers."""
    for path, function in on_aws.resources("AWS::Lambda::Function").items():
        variables = function["Environment"]["Variables"]
        assert variables["POWERTOOLS_LOGGER_LOG_EVENT"] == "false", path


def test_a_function_gets_the_environment_that_its_handler_reads(on_aws: Assembly) -> None:
    """`mcp_tasks.deployment`: each function gets those variables that it uses."""
    shared = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_LOGGER_LOG_EVENT"}
    own = {
        "api": {
            "TASKS_TABLE",
            "MAILBOXES_TABLE",
            "CALLERS_TABLE",
            "SESSIONS_TABLE",
            "EVENT_BUS",
            "COMPANION_TOOLS",
            "TRACING",
            "PAYLOADS_BUCKET",
            "STATE_MACHINE_PREFIX",
            "CELL",
            "ALLOWED_ORIGINS",
            "ALLOWED_HOSTS",
            "REQUEST_STATE_KEY_SECRET",
            "AUTH",
            "PRINCIPAL",
            "QUOTA_PER",
            "SCOPES",
            "SCOPE_PREFIX",
            "RESOURCE_METADATA_URL",
            "LIMITS",
            METRICS,
        },
        "worker": {"TASKS_TABLE", "PAYLOADS_BUCKET", "EVENT_BUS", "TOOL"},
        "ask": {"TASKS_TABLE"},
        "finish": {"TASKS_TABLE", "JOURNAL_TABLE", "PAYLOADS_BUCKET", METRICS},
        "subtasks": {"TASKS_TABLE", "JOURNAL_TABLE", "PAYLOADS_BUCKET", "STATE_MACHINE_PREFIX"},
        "publish": {"EVENT_BUS", "TOOL_METRICS", METRICS},
        "deliver": {"MAILBOXES_TABLE", METRICS},
        "sweep": {
            "TASKS_TABLE",
            "JOURNAL_TABLE",
            "MAILBOXES_TABLE",
            "EVENT_BUS",
            "PAYLOADS_BUCKET",
            "STATE_MACHINE_PREFIX",
            METRICS,
        },
    }
    durable = {"Tools/estimate_savings/Worker/Function": {"JOURNAL_TABLE", METRICS}}
    for path, function in on_aws.resources("AWS::Lambda::Function").items():
        handler = function["Handler"].removesuffix(".handler.handler")
        read = shared | own[handler] | durable.get(path, set())
        assert set(function["Environment"]["Variables"]) == read, path


def test_a_function_has_time_to_answer(on_aws: Assembly) -> None:
    """The API outlives the gateway's patience, so that the caller gets the gateway's 504."""
    seconds = {p: f["Timeout"] for p, f in on_aws.resources("AWS::Lambda::Function").items()}
    assert seconds == {
        "Api/Function": INTEGRATION_LIMIT_SECONDS + 1,
        "Ask/Function": 30,
        "Finish/Function": 30,
        "Subtasks/Function": 60,
        "Publish/Function": 30,
        "Deliver/Function": 5,
        "Sweep/Function": 120,
        "Tools/tally_columns/Worker/Function": 65,
        "Tools/estimate_savings/Worker/Function": 15,
    }


def test_tables_are_encrypted_on_demand_and_forget(on_aws: Assembly) -> None:
    tables = on_aws.resources("AWS::DynamoDB::Table")
    assert set(tables) == {
        f"{name}/Table" for name in ("Tasks", "Mailboxes", "Callers", "Sessions", "Journal")
    }
    for path, table in tables.items():
        assert table["SSESpecification"] == {"SSEEnabled": False}, f"{path}: AWS owns the key"
        assert table["BillingMode"] == "PAY_PER_REQUEST", path
        forgets = {"AttributeName": "expiresAt", "Enabled": True}
        assert table["TimeToLiveSpecification"] == forgets, path


def test_tasks_are_recoverable_and_their_changes_stream(on_aws: Assembly) -> None:
    """Both images: what clients cannot see has changed nothing that they can."""
    table = on_aws.resources("AWS::DynamoDB::Table")["Tasks/Table"]
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["KeySchema"] == [{"AttributeName": "taskId", "KeyType": "HASH"}]
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_mailboxes_live_for_minutes_and_need_neither(on_aws: Assembly) -> None:
    table = on_aws.resources("AWS::DynamoDB::Table")["Mailboxes/Table"]
    assert "PointInTimeRecoverySpecification" not in table
    assert "StreamSpecification" not in table
    keys = [(key["AttributeName"], key["KeyType"]) for key in table["KeySchema"]]
    assert keys == [("pk", "HASH"), ("sk", "RANGE")]
    assert {attribute["AttributeType"] for attribute in table["AttributeDefinitions"]} == {"S"}


def test_the_key_of_request_states_is_made_by_secrets_manager(on_aws: Assembly) -> None:
    """256 bits at least, and in no template."""
    ((path, secret),) = on_aws.resources("AWS::SecretsManager::Secret").items()
    assert set(secret) == {"Description", "GenerateSecretString", "Tags"}
    generated = secret["GenerateSecretString"]
    assert generated == {"PasswordLength": 64, "ExcludePunctuation": True}
    assert generated["PasswordLength"] * math.log2(62) > 256
    variables = on_aws.resources("AWS::Lambda::Function")["Api/Function"]["Environment"]
    assert variables["Variables"]["REQUEST_STATE_KEY_SECRET"] == f"<{path}.Id>", "its ARN"


def test_a_rule_matches_every_end_of_a_task_and_nothing_else(fork: Assembly) -> None:
    rule = fork.resources("AWS::Events::Rule")["Finish/ExecutionEnded"]
    assert rule["State"] == "ENABLED"
    assert rule["EventPattern"] == {
        "source": ["aws.states"],
        "detail-type": ["Step Functions Execution Status Change"],
        "detail": {
            "status": ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"],
            "stateMachineArn": [{"prefix": state_machine("fork-")}, LEGACY_ARN],
            "name": [{"prefix": "c1-"}],
        },
    }


def test_an_end_that_cannot_be_delivered_is_kept(on_aws: Assembly) -> None:
    """By EventBridge, when it cannot call the function; by Lambda, when the function fails."""
    (target,) = on_aws.resources("AWS::Events::Rule")["Finish/ExecutionEnded"]["Targets"]
    assert target["Arn"] == "<Finish/Function.Arn>"
    assert target["DeadLetterConfig"] == {"Arn": "<Finish/DeadLetterQueue.Arn>"}
    assert target["RetryPolicy"] == {
        "MaximumEventAgeInSeconds": 24 * 3600,
        "MaximumRetryAttempts": 185,
    }
    assert on_aws.resources("AWS::Lambda::EventInvokeConfig")["Finish/OnFailure"] == {
        "FunctionName": "<Finish/Function>",
        "Qualifier": "$LATEST",
        "MaximumRetryAttempts": 2,
        "MaximumEventAgeInSeconds": 6 * 3600,
        "DestinationConfig": {"OnFailure": {"Destination": "<Finish/DeadLetterQueue.Arn>"}},
    }


def test_the_endpoint_is_regional(on_aws: Assembly) -> None:
    ((_, api),) = on_aws.resources("AWS::ApiGateway::RestApi").items()
    assert api["EndpointConfiguration"]["Types"] == ["REGIONAL"]


def test_mcp_is_the_only_path_and_three_methods_call_the_function(on_aws: Assembly) -> None:
    """What else there is answers by itself (`test_unknown_paths.py`)."""
    paths = {r["PathPart"] for r in on_aws.resources("AWS::ApiGateway::Resource").values()}
    assert paths == {"mcp", "{proxy+}"}
    methods = on_aws.resources("AWS::ApiGateway::Method").items()
    calling = {p: m for p, m in methods if m["Integration"]["Type"] != "MOCK"}
    assert {path.rpartition("RestApi/")[2] for path in calling} == {
        f"Default/mcp/{name}" for name in ("POST", "GET", "DELETE")
    }
    assert {method["Integration"]["Type"] for method in calling.values()} == {"AWS_PROXY"}
    assert {method["AuthorizationType"] for method in calling.values()} == {"AWS_IAM"}


def test_what_an_operator_chose_reaches_the_server(open_server: Assembly) -> None:
    variables = open_server.resources("AWS::Lambda::Function")["Api/Function"]["Environment"][
        "Variables"
    ]
    assert variables["ALLOWED_ORIGINS"] == "https://one.example https://two.example"
    assert variables["ALLOWED_HOSTS"] == "mcp.example *.mcp.example:8443"
    assert variables["CELL"] == "eu"


def test_the_gateway_speaks_json_rpc_when_it_answers_itself(
    on_aws: Assembly, streaming: Assembly
) -> None:
    responses = list(on_aws.resources("AWS::ApiGateway::GatewayResponse").values())
    assert {r["ResponseType"] for r in responses} == {*STATUS, "DEFAULT_4XX", "DEFAULT_5XX"}
    responses += streaming.resources("AWS::ApiGateway::GatewayResponse").values()
    for response in responses:
        (template,) = response["ResponseTemplates"].items()
        body = template[1].replace("$context.error.messageString", '"what was wrong"')
        assert template[0] == "application/json"
        message = json.loads(body)
        assert set(message) == {"jsonrpc", "error"}, "the id is unknown, and left out"
        assert message["jsonrpc"] == "2.0"
        assert set(message["error"]) == {"code", "message"}
        blames_the_request = response["ResponseType"] in BLAMES_THE_REQUEST
        assert message["error"]["code"] == (-32600 if blames_the_request else -32603)


def test_the_gateway_keeps_http_statuses(on_aws: Assembly) -> None:
    """A status on a default response would replace all others: 401, 403, 502, 504."""
    responses = on_aws.resources("AWS::ApiGateway::GatewayResponse").values()
    assert {r["ResponseType"]: r["StatusCode"] for r in responses if "StatusCode" in r} == STATUS


def test_a_request_that_found_the_server_busy_is_told_when_to_come_again(
    streaming: Assembly,
) -> None:
    """API Gateway makes an error of its own of a function that Lambda throttles, without the
    header (RFC 9110, "Retry-After"). A call that ran over its time is not to be repeated."""
    responses = streaming.resources("AWS::ApiGateway::GatewayResponse").values()
    told = {
        response["ResponseType"]: response["ResponseParameters"][header]
        for response in responses
        if (header := "gatewayresponse.header.Retry-After")
        in response.get("ResponseParameters", {})
    }
    assert told == dict.fromkeys(MAY_BE_REPEATED, "'1'")


def test_the_gateway_s_server_errors_say_nothing_of_the_server(on_aws: Assembly) -> None:
    for response in on_aws.resources("AWS::ApiGateway::GatewayResponse").values():
        if response["ResponseType"] != "DEFAULT_4XX":
            assert "$context" not in json.dumps(response["ResponseTemplates"])


def test_the_account_s_settings_are_left_alone(on_aws: Assembly, open_server: Assembly) -> None:
    """Access logs of REST APIs need a role in them, so they have to be asked for."""
    for assembly in (on_aws, open_server):
        assert not assembly.resources("AWS::ApiGateway::Account")
    (stage,) = on_aws.resources("AWS::ApiGateway::Stage").values()
    assert "AccessLogSetting" not in stage


def test_an_access_log_says_who_called_and_never_what(open_server: Assembly) -> None:
    (stage,) = open_server.resources("AWS::ApiGateway::Stage").values()
    fields = json.loads(stage["AccessLogSetting"]["Format"])
    assert {"requestId", "caller", "status"} <= set(fields)
    of_an_error = {"responseType", "errorMessage", "integrationError", "authorizerError"}
    assert of_an_error <= set(fields)
    assert {"integrationStatus", "integrationLatency", "authorizerLatency"} <= set(fields)
    for value in fields.values():
        assert re.fullmatch(r"\$context\.[A-Za-z.]+", value)
        assert "body" not in value


def test_requests_are_throttled(on_aws: Assembly, fork: Assembly) -> None:
    for assembly, throttle in ((on_aws, (500, 1000)), (fork, (50, 60))):
        (stage,) = assembly.resources("AWS::ApiGateway::Stage").values()
        (settings,) = stage["MethodSettings"]
        assert (settings["HttpMethod"], settings["ResourcePath"]) == ("*", "/*")
        found = (settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"])
        assert found == throttle


def test_the_limits_that_an_operator_chose_reach_the_server(
    on_aws: Assembly, fork: Assembly
) -> None:
    for assembly, limits in (
        (on_aws, Limits()),
        (fork, Limits(max_open_tasks=7, max_json_depth=20, max_json_values=2000)),
    ):
        function = assembly.resources("AWS::Lambda::Function")["Api/Function"]
        found = Limits.from_json(function["Environment"]["Variables"]["LIMITS"])
        assert found == limits


def test_everything_carries_the_cell_s_name(open_server: Assembly) -> None:
    tagged = (
        "AWS::DynamoDB::Table",
        "AWS::Events::EventBus",
        "AWS::Lambda::Function",
        "AWS::SQS::Queue",
        "AWS::StepFunctions::StateMachine",
    )
    for kind in tagged:
        for path, properties in open_server.resources(kind).items():
            assert {"Key": "mcp-cell", "Value": "eu"} in properties["Tags"], path


def test_the_outputs_are_what_a_client_and_an_operator_need(on_aws: Assembly) -> None:
    outputs = {k: on_aws.readable(v["Value"]) for k, v in on_aws.template["Outputs"].items()}
    api = "<Api/Gateway/RestApi>.execute-api.<AWS::Region>.<AWS::URLSuffix>"
    assert outputs["Endpoint"] == f"https://{api}/v1/mcp"
    assert outputs["ApiId"] == "<Api/Gateway/RestApi>"
    assert outputs["Stage"] == "v1"
    assert outputs["TasksTable"] == "<Tasks/Table>"
    assert outputs["EventBus"] == "<Events/Bus>"


def test_the_outputs_name_the_dead_letter_queues_and_where_their_messages_go(
    on_aws: Assembly,
) -> None:
    outputs = {k: on_aws.readable(v["Value"]) for k, v in on_aws.template["Outputs"].items()}
    ends = {
        "FinishDeadLetterQueueUrl": "<Finish/DeadLetterQueue>",
        "FinishFunctionName": "<Finish/Function>",
        "PublishDeadLetterQueueUrl": "<Publish/DeadLetterQueue>",
        "PublishFunctionName": "<Publish/Function>",
        "DeliverDeadLetterQueueUrl": "<Deliver/DeadLetterQueue>",
        "DeliverQueueUrl": "<Deliver/Queue>",
        "SweepDeadLetterQueueUrl": "<Sweep/DeadLetterQueue>",
        "SweepFunctionName": "<Sweep/Function>",
    }
    assert {k: v for k, v in outputs.items() if k in ends} == ends


def test_what_subscribes_is_replaced_after_what_delivers(behind_a_domain: Assembly) -> None:
    """`deliver` reads what both versions write about mailboxes. The older one does not."""
    resources = behind_a_domain.template["Resources"].items()
    functions = {
        behind_a_domain.readable({"Ref": name}): resource.get("DependsOn", [])
        for name, resource in resources
        if resource["Type"] == "AWS::Lambda::Function"
    }
    for api in ("Api", "SubscriptionsApi"):
        after = [behind_a_domain.readable({"Ref": n}) for n in functions[f"<{api}/Function>"]]
        assert "<Deliver/Function>" in after, api
