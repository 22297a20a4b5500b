"""Least privilege: each role may do what its code calls, and nothing else.

The expectations come from reading the handlers: `TaskTable`, `Mailboxes`, `EventBus` and
`Executions` make these calls. A test compares whole roles, so a grant too many fails it as a grant
too few does.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from infra.secrets import environment_of
from mcp_tasks import tool
from mcp_tasks.registry.decorated_function import DECLARATION
from tests.infra.assembly import Assembly, Grants, as_list, state_machine, task_executions
from tests.infra.fork import LEGACY_ARN

WRITE_LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}
WORKFLOW, FUNCTION = "mcp-tasks-tally_columns", "mcp-tasks-estimate_savings"
START_AND_ANSWER = {
    "states:StartExecution",
    "states:SendTaskSuccess",
    "states:SendTaskHeartbeat",
}
ASK_AND_STOP = {"states:DescribeExecution", "states:StopExecution"}
PAYLOADS = "arn:<AWS::Partition>:s3:::<Payloads/Bucket>/"
BUCKET = "<Payloads/Bucket.Arn>"
OBJECTS = {"s3:GetObject", "s3:PutObject"}
LISTED = {"s3:ListBucket"}
"""What S3 asks for to say of a key that it is not there."""
STATE_KEY = "<Api/RequestStateKey/Secret.Id>"
SECRETS = {
    "arn:<AWS::Partition>:secretsmanager:<AWS::Region>:<AWS::AccountId>:secret:prices/key-??????": {
        "secretsmanager:GetSecretValue"
    },
    "arn:<AWS::Partition>:ssm:<AWS::Region>:<AWS::AccountId>:parameter/prices/token": {
        "ssm:GetParameter"
    },
}
"""What the secrets of `count.words` come to (tests/infra/fork.py)."""
REPORTED = (
    "<Tasks/Table.Arn> where "
    "ForAllValues:StringEquals dynamodb:Attributes = "
    "expiresAtMs or lastUpdatedAt or revision or status or statusMessage or taskId or toolError "
    "and Null dynamodb:Attributes = false "
    "and StringEqualsIfExists dynamodb:ReturnValues = NONE"
)
"""The rows, for a worker: only what a step reports, and without reading them."""
NOTED = REPORTED.replace("toolError", "toolError or undo")
"""The same for a durable tool, which notes that something is to be undone."""
READ = (
    "<Tasks/Table.Arn> where "
    "ForAllValues:StringEquals dynamodb:Attributes = expiresAtMs or status or taskId "
    "and Null dynamodb:Attributes = false "
    "and dynamodb:Select = SPECIFIC_ATTRIBUTES"
)
"""Whether a task goes on, and nothing else of its row."""


def durable(tool: str) -> Grants:
    """What the worker of a tool with durable operations may do, besides running tools."""
    journal = f"<Journal/Table.Arn> where ForAllValues:StringLike dynamodb:LeadingKeys = {tool}#*"
    return {
        NOTED: {"dynamodb:UpdateItem"},
        READ: {"dynamodb:GetItem"},
        journal: {"dynamodb:PutItem", "dynamodb:Query"},
    }


END_ROWS = {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:UpdateItem"}
"""A task is ended after its subtasks, which are read at once."""
ROWS = {"dynamodb:PutItem", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:UpdateItem"}
MAILBOX = {
    "dynamodb:GetItem",
    "dynamodb:Query",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:BatchWriteItem",
}
CALLER = {
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
}
LIST = {"dynamodb:Query"}
PUBLISH = {"events:PutEvents"}
BUS_FOR = "<Events/Bus.Arn> where ForAllValues:StringEquals events:detail-type = "
NOT_NULL = " and Null events:detail-type = false"
RESOURCE_CHANGES = f"{BUS_FOR}notifications/resources/updated{NOT_NULL}"
LIST_CHANGES = (
    BUS_FOR
    + " or ".join(
        f"notifications/{name}/list_changed" for name in ("prompts", "resources", "tools")
    )
    + NOT_NULL
)
SESSION = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}

EXECUTIONS = task_executions(WORKFLOW.replace("tally_columns", "*"))
"""Those of tools that were removed included."""

ALL_TOOLS = state_machine("mcp-tasks-*")
SEE_REMOVAL = {"states:DescribeStateMachine"}
ROLES: dict[str, Grants] = {
    "Api/Role": {
        "<Api/Logs.Arn>": WRITE_LOGS,
        "<Tasks/Table.Arn>": ROWS,
        "<Tasks/Table.Arn>/index/byPrincipal": LIST,
        "<Mailboxes/Table.Arn>": MAILBOX,
        "<Callers/Table.Arn>": CALLER,
        "<Sessions/Table.Arn>": SESSION,
        RESOURCE_CHANGES: PUBLISH,
        f"{PAYLOADS}*": OBJECTS,
        BUCKET: LISTED,
        state_machine(WORKFLOW): START_AND_ANSWER,
        state_machine(FUNCTION): START_AND_ANSWER,
        EXECUTIONS: ASK_AND_STOP,
        ALL_TOOLS: SEE_REMOVAL,
        STATE_KEY: {"secretsmanager:GetSecretValue"},
    },
    "Sweep/Role": {
        "<Sweep/Logs.Arn>": WRITE_LOGS,
        "<Tasks/Table.Arn>/index/reconcile": {"dynamodb:Query"},
        "<Tasks/Table.Arn>": END_ROWS,
        "<Journal/Table.Arn>": {"dynamodb:PutItem"},
        "<Mailboxes/Table.Arn>": {"dynamodb:Query", "dynamodb:PutItem"},
        LIST_CHANGES: PUBLISH,
        f"{PAYLOADS}*": OBJECTS,
        BUCKET: LISTED,
        "<Sweep/DeadLetterQueue.Arn>": {"sqs:SendMessage"},
        state_machine(WORKFLOW): START_AND_ANSWER,
        state_machine(FUNCTION): START_AND_ANSWER,
        EXECUTIONS: ASK_AND_STOP,
        ALL_TOOLS: SEE_REMOVAL,
    },
    "Sweep/ScheduleRole": {
        "<Sweep/Function.Arn>": {"lambda:InvokeFunction"},
        "<Sweep/DeadLetterQueue.Arn>": {"sqs:SendMessage"},
    },
    "Publish/Role": {
        "<Publish/Logs.Arn>": WRITE_LOGS,
        "<Tasks/Table.StreamArn>": {
            "dynamodb:DescribeStream",
            "dynamodb:GetRecords",
            "dynamodb:GetShardIterator",
            "dynamodb:ListStreams",
        },
        "<Events/Bus.Arn>": {"events:PutEvents"},
        "<Publish/DeadLetterQueue.Arn>": {"sqs:SendMessage"},
    },
    "Deliver/Role": {
        "<Deliver/Logs.Arn>": WRITE_LOGS,
        "<Mailboxes/Table.Arn>": {
            "dynamodb:GetItem",
            "dynamodb:Query",
            "dynamodb:BatchWriteItem",
        },
        "<Deliver/Queue.Arn>": {
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
        },
    },
    "Ask/Role": {
        "<Ask/Logs.Arn>": WRITE_LOGS,
        "<Tasks/Table.Arn>": END_ROWS,
        EXECUTIONS: {"states:StopExecution"},
    },
    "Subtasks/Role": {
        "<Subtasks/Logs.Arn>": WRITE_LOGS,
        "<Tasks/Table.Arn>": ROWS,
        "<Journal/Table.Arn>": {"dynamodb:PutItem", "dynamodb:Query"},
        f"{PAYLOADS}*": OBJECTS,
        BUCKET: LISTED,
        state_machine(WORKFLOW): {"states:StartExecution", "states:SendTaskSuccess"},
        state_machine(FUNCTION): {"states:StartExecution", "states:SendTaskSuccess"},
        EXECUTIONS: {"states:StopExecution"},
    },
    "Finish/Role": {
        "<Finish/Logs.Arn>": WRITE_LOGS,
        "<Tasks/Table.Arn>": END_ROWS,
        "<Journal/Table.Arn>": {"dynamodb:PutItem"},
        "<Finish/DeadLetterQueue.Arn>": {"sqs:SendMessage"},
        f"{PAYLOADS}*": OBJECTS,
        BUCKET: LISTED,
        EXECUTIONS: {"states:DescribeExecution", "states:StopExecution"},
        state_machine(WORKFLOW): {"states:StartExecution", "states:SendTaskSuccess"},
        state_machine(FUNCTION): {"states:StartExecution", "states:SendTaskSuccess"},
    },
    "Tools/tally_columns/StateMachineRole": {
        "<Ask/Function.Arn>": {"lambda:InvokeFunction"},
        "<Tools/tally_columns/Worker/Function.Arn>": {"lambda:InvokeFunction"},
    },
    "Tools/tally_columns/Worker/Role": {
        "<Tools/tally_columns/Worker/Logs.Arn>": WRITE_LOGS,
        f"{PAYLOADS}tally_columns/*": OBJECTS,
        REPORTED: {"dynamodb:UpdateItem"},
        RESOURCE_CHANGES: PUBLISH,
    },
    "Tools/estimate_savings/StateMachineRole": {
        "<Ask/Function.Arn>": {"lambda:InvokeFunction"},
        "<Subtasks/Function.Arn>": {"lambda:InvokeFunction"},
        "<Tools/estimate_savings/Worker/Function.Arn>": {"lambda:InvokeFunction"},
    },
    "Tools/estimate_savings/Worker/Role": {
        "<Tools/estimate_savings/Worker/Logs.Arn>": WRITE_LOGS,
        f"{PAYLOADS}estimate_savings/*": OBJECTS,
        **durable("estimate_savings"),
        RESOURCE_CHANGES: PUBLISH,
    },
}
AUTHORIZER: dict[str, Grants] = {"Authorizer/Role": {"<Authorizer/Logs.Arn>": WRITE_LOGS}}
"""The role that `-c auth=oauth` adds."""


EVERY_KIND = ["aws", "open", "streaming", "domain", "fork", "own key"]
"""Assemblies that have, together, all that a stack may consist of."""
HOLDS_A_POLICY = {
    "AWS::IAM::Policy": "PolicyDocument",
    "AWS::IAM::Role": "AssumeRolePolicyDocument",
    "AWS::KMS::Key": "KeyPolicy",
    "AWS::Lambda::Permission": "Principal",
    "AWS::S3::BucketPolicy": "PolicyDocument",
    "AWS::SNS::TopicPolicy": "PolicyDocument",
    "AWS::SQS::QueuePolicy": "PolicyDocument",
}
"""Resource type -> its property that lets somebody do something. Each is compared as a whole: here,
in test_encryption.py, and in test_monitoring.py.
"""


@pytest.mark.parametrize("name", EVERY_KIND)
def test_no_other_resource_lets_anybody_do_anything(
    assemblies: dict[str, Assembly], name: str
) -> None:
    """No resource policy of a secret, a bus, a table or an API, and no function URL."""
    found = {
        (resource["Type"], key)
        for resource in assemblies[name].template["Resources"].values()
        for key in resource.get("Properties", {})
        if re.search("polic|principal|permission|grant", key, re.IGNORECASE)
    }
    no_policy = {
        ("AWS::IAM::Policy", "PolicyName"),
        ("AWS::SQS::Queue", "RedrivePolicy"),
        ("AWS::ApiGateway::RestApi", "SecurityPolicy"),  # of TLS
        ("AWS::ApiGateway::DomainName", "SecurityPolicy"),
    }
    assert found - no_policy <= set(HOLDS_A_POLICY.items())
    assert not assemblies[name].resources("AWS::Lambda::Url")


@pytest.mark.parametrize("name", EVERY_KIND)
def test_every_role_is_one_that_these_tests_know(
    assemblies: dict[str, Assembly], name: str
) -> None:
    known = {*ROLES, *AUTHORIZER, "SubscriptionsApi/Role"}
    tools = re.compile(r"Tools/[^/]+/(StateMachineRole|Worker/Role)")
    roles = set(assemblies[name].grants())
    assert {role for role in roles - known if not tools.fullmatch(role)} == set()


@pytest.mark.parametrize("name", EVERY_KIND)
def test_no_right_is_for_all_resources_or_all_actions(
    assemblies: dict[str, Assembly], name: str
) -> None:
    for role, grants in assemblies[name].grants().items():
        assert "*" not in grants, role
        assert not {action for actions in grants.values() for action in actions if "*" in action}


@pytest.mark.parametrize("name", EVERY_KIND)
def test_a_service_may_call_a_function_for_one_resource_of_the_stack_only(
    assemblies: dict[str, Assembly], name: str
) -> None:
    """Not for any that names the function ("The confused deputy problem", IAM user guide)."""
    for path, permission in assemblies[name].resources("AWS::Lambda::Permission").items():
        assert permission["Action"] == "lambda:InvokeFunction", path
        assert re.search("<(Api|SubscriptionsApi|Finish)/", permission["SourceArn"]), path
        assert not permission["SourceArn"].endswith("*"), path


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_exactly_what_its_code_calls(on_aws: Assembly, role: str) -> None:
    assert on_aws.grants()[role] == ROLES[role]


def test_there_is_no_other_role(on_aws: Assembly) -> None:
    assert set(on_aws.grants()) == set(ROLES)


@pytest.mark.parametrize("name", EVERY_KIND)
def test_a_role_is_assumed_by_its_own_service_only(
    assemblies: dict[str, Assembly], name: str
) -> None:
    for path, role in assemblies[name].resources("AWS::IAM::Role").items():
        if path == "Sweep/ScheduleRole":
            continue
        service = "states" if path.endswith("/StateMachineRole") else "lambda"
        assert role["AssumeRolePolicyDocument"]["Statement"] == [assumed_by(service)], path


def assumed_by(service: str) -> dict[str, Any]:
    """What a role's trust policy says."""
    return {
        "Action": "sts:AssumeRole",
        "Effect": "Allow",
        "Principal": {"Service": f"{service}.amazonaws.com"},
    }


def test_only_the_stack_s_own_schedules_may_use_the_schedule_s_role(on_aws: Assembly) -> None:
    """Not any schedule of the account that names it: the group is the source (EventBridge Scheduler
    user guide, "Confused deputy prevention").
    """
    role = on_aws.resources("AWS::IAM::Role")["Sweep/ScheduleRole"]
    group = {
        "aws:SourceAccount": "<AWS::AccountId>",
        "aws:SourceArn": "<Sweep/ScheduleGroup.Arn>",
    }
    assert role["AssumeRolePolicyDocument"]["Statement"] == [
        {**assumed_by("scheduler"), "Condition": {"StringEquals": group}}
    ]
    assert set(on_aws.resources("AWS::Scheduler::Schedule")) == {"Sweep/Schedule"}


def test_every_function_and_state_machine_has_a_role_of_its_own(fork: Assembly) -> None:
    users = fork.resources("AWS::Lambda::Function") | fork.resources(
        "AWS::StepFunctions::StateMachine"
    )
    roles = [user.get("Role") or user["RoleArn"] for user in users.values()]
    roles += [s["Target"]["RoleArn"] for s in fork.resources("AWS::Scheduler::Schedule").values()]
    assert len(set(roles)) == len(roles) == len(fork.resources("AWS::IAM::Role"))


def test_only_the_gateway_and_the_rule_may_call_a_function_from_outside(on_aws: Assembly) -> None:
    permissions = list(on_aws.resources("AWS::Lambda::Permission").values())
    assert sorted(permissions, key=lambda p: str(p["Principal"]) + str(p["SourceArn"])) == [
        *(
            {
                "Action": "lambda:InvokeFunction",
                "FunctionName": "<Api/Function.Arn>",
                "Principal": "apigateway.amazonaws.com",
                "SourceArn": "arn:<AWS::Partition>:execute-api:<AWS::Region>:<AWS::AccountId>:"
                f"<Api/Gateway/RestApi>/v1/{method}/mcp",
            }
            for method in ("DELETE", "GET", "POST")
        ),
        {
            "Action": "lambda:InvokeFunction",
            "FunctionName": "<Finish/Function.Arn>",
            "Principal": "events.amazonaws.com",
            "SourceArn": "<Finish/ExecutionEnded.Arn>",
        },
    ]


@pytest.mark.parametrize(
    ("queue", "rules", "actions"),
    [
        ("Finish/DeadLetterQueue", ["Finish/ExecutionEnded"], {"sqs:SendMessage"}),
        (
            "Deliver/Queue",
            ["Deliver/TaskChanged", "Deliver/ServerChanged"],
            {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"},
        ),
        (
            "Deliver/DeadLetterQueue",
            ["Deliver/TaskChanged", "Deliver/ServerChanged"],
            {"sqs:SendMessage"},
        ),
        ("Publish/DeadLetterQueue", [], set()),
        ("Sweep/DeadLetterQueue", [], set()),
    ],
)
def test_a_queue_takes_messages_from_its_rules_over_tls_only(
    on_aws: Assembly, queue: str, rules: list[str], actions: set[str]
) -> None:
    """Functions and Lambda itself send with a role, which the queue's policy need not name."""
    policy = on_aws.resources("AWS::SQS::QueuePolicy")[f"{queue}/Policy"]
    assert policy["Queues"] == [f"<{queue}>"]
    deny, *allow = policy["PolicyDocument"]["Statement"]
    assert (deny["Effect"], deny["Action"], deny["Condition"]) == (
        "Deny",
        "sqs:*",
        {"Bool": {"aws:SecureTransport": "false"}},
    )
    found: dict[str, set[str]] = {}
    for statement in allow:
        assert statement["Effect"] == "Allow"
        assert statement["Principal"] == {"Service": "events.amazonaws.com"}
        assert set(statement["Condition"]) == {"ArnEquals"}
        source = statement["Condition"]["ArnEquals"]["aws:SourceArn"]
        found.setdefault(source, set()).update(as_list(statement["Action"]))
    assert found == {f"<{rule}.Arn>": actions for rule in rules}


def test_the_bucket_s_policy_lets_nobody_in(on_aws: Assembly) -> None:
    """It only denies what comes without TLS."""
    ((path, policy),) = on_aws.resources("AWS::S3::BucketPolicy").items()
    assert (path, policy["Bucket"]) == ("Payloads/Bucket/Policy", "<Payloads/Bucket>")
    assert {s["Effect"] for s in policy["PolicyDocument"]["Statement"]} == {"Deny"}


def test_every_queue_has_its_policy(on_aws: Assembly) -> None:
    queues = on_aws.resources("AWS::SQS::Queue")
    assert {f"{queue}/Policy" for queue in queues} == set(on_aws.resources("AWS::SQS::QueuePolicy"))


def test_a_function_that_only_listens_may_not_run_tools_or_read_the_state_key(
    behind_a_domain: Assembly, on_aws: Assembly
) -> None:
    grants = behind_a_domain.grants()
    assert grants.pop("SubscriptionsApi/Role") == {
        "<SubscriptionsApi/Logs.Arn>": WRITE_LOGS,
        "<Tasks/Table.Arn>": {"dynamodb:GetItem", "dynamodb:BatchGetItem"},
        "<Mailboxes/Table.Arn>": MAILBOX,
        f"{PAYLOADS}*": {"s3:GetObject"},
        BUCKET: LISTED,
    }
    assert grants == {**on_aws.grants(), **AUTHORIZER}


def test_streaming_gives_the_api_no_other_rights(streaming: Assembly, on_aws: Assembly) -> None:
    assert streaming.grants() == {**on_aws.grants(), **AUTHORIZER}


def test_only_api_gateway_may_ask_the_authorizer(streaming: Assembly) -> None:
    permissions = streaming.resources("AWS::Lambda::Permission").values()
    (found,) = [p for p in permissions if p["FunctionName"] == "<Authorizer/Function.Arn>"]
    assert (found["Action"], found["Principal"]) == (
        "lambda:InvokeFunction",
        "apigateway.amazonaws.com",
    )
    assert found["SourceArn"].endswith(
        ":<Api/Gateway/RestApi>/authorizers/<Api/Gateway/Authorizer>"
    )


def test_a_tool_s_secrets_can_be_read_by_its_function_only(fork: Assembly) -> None:
    """Of a tool that runs within requests as well, also by the api function."""
    grants = fork.grants()
    readers = {role for role in grants if SECRETS.items() <= grants[role].items()}
    assert readers == {"Tools/count.words/Worker/Role", "Api/Role"}
    assert not any(grants[role].keys() & SECRETS.keys() for role in grants.keys() - readers)
    functions = fork.resources("AWS::Lambda::Function")
    for path in ("Tools/count.words/Worker/Function", "Api/Function"):
        variables = functions[path]["Environment"]["Variables"]
        assert variables["PRICE_TABLE"] == "prices"
        assert not {"PRICES", "TOKEN"} & set(variables)


def test_variables_of_tools_that_share_a_function_must_not_differ() -> None:
    def one(table: str) -> Any:
        @tool(env={"TABLE": table})
        def look_up() -> str:
            """Look something up."""
            return ""

        return getattr(look_up, DECLARATION)

    assert environment_of([one("a"), one("a")]) == {"TABLE": "a"}
    with pytest.raises(ValueError, match=r"give the variable TABLE different values; rename one"):
        environment_of([one("a"), one("b")])


def test_a_worker_gets_the_permissions_that_its_tool_declares(fork: Assembly) -> None:
    grants = fork.grants()
    assert grants["Tools/count.words/Worker/Role"] == {
        "<Tools/count.words/Worker/Logs.Arn>": WRITE_LOGS,
        f"{PAYLOADS}count.words/*": OBJECTS,
        **durable("count.words"),
        RESOURCE_CHANGES: PUBLISH,
        "arn:aws:s3:::texts/*": {"s3:GetObject"},
        **SECRETS,
    }
    assert "arn:aws:s3:::texts/*" not in grants["Tools/report/Worker/Role"]


def test_the_api_gets_the_permissions_of_all_that_runs_within_a_request(
    fork: Assembly,
) -> None:
    """`optional` tools included: they run there for clients that know no tasks. Of those that are
    always tasks, only what asks first; resources and prompts run nowhere else.
    """
    names = [f"fork-{name}" for name in ("close_books", "count.words", "count_words", "report")]
    machines = [state_machine(name) for name in names]
    assert fork.grants()["Api/Role"] == {
        "<Api/Logs.Arn>": WRITE_LOGS,
        "<Tasks/Table.Arn>": ROWS,
        "<Tasks/Table.Arn>/index/byPrincipal": LIST,
        "<Mailboxes/Table.Arn>": MAILBOX,
        "<Callers/Table.Arn>": CALLER,
        "<Sessions/Table.Arn>": SESSION,
        RESOURCE_CHANGES: PUBLISH,
        f"{PAYLOADS}*": OBJECTS,
        BUCKET: LISTED,
        **dict.fromkeys((*machines, LEGACY_ARN), START_AND_ANSWER),
        task_executions("fork-*"): ASK_AND_STOP,
        LEGACY_ARN.replace("stateMachine", "execution") + ":c1-*": ASK_AND_STOP,
        state_machine("fork-*"): SEE_REMOVAL,
        "arn:aws:s3:::texts/*": {"s3:GetObject"},
        **SECRETS,
        "arn:aws:dynamodb:::table/x": {"dynamodb:GetItem"},
        "arn:aws:kms:::key/books": {"kms:Decrypt"},
        "arn:aws:s3:::notes/*": {"s3:GetObject"},
        "arn:aws:ssm:::parameter/style": {"ssm:GetParameter"},
        STATE_KEY: {"secretsmanager:GetSecretValue"},
    }


def test_what_runs_within_requests_gives_no_worker_a_permission(fork: Assembly) -> None:
    declared = {"arn:aws:s3:::notes/*", "arn:aws:ssm:::parameter/style"}
    for path, grants in fork.grants().items():
        assert path == "Api/Role" or not declared & set(grants), path


def test_a_tool_that_asks_first_may_do_the_same_in_its_worker(fork: Assembly) -> None:
    """`ask_first` runs again there, on the answers."""
    grants = fork.grants()["Tools/close_books/Worker/Role"]
    assert grants["arn:aws:kms:::key/books"] == {"kms:Decrypt"}


def test_only_the_api_reads_the_key_of_request_states(fork: Assembly) -> None:
    readers = {
        path
        for path, grants in fork.grants().items()
        for resource, actions in grants.items()
        if resource not in SECRETS and any(a.startswith("secretsmanager:") for a in actions)
    }
    assert readers == {"Api/Role"}
    assert not fork.resources("AWS::SecretsManager::ResourcePolicy")


def test_a_state_machine_may_do_what_its_tool_declares_and_not_call_ask_when_it_never_asks(
    fork: Assembly,
) -> None:
    assert fork.grants()["Tools/report/StateMachineRole"] == {
        "<Tools/report/Worker/Function.Arn>": {"lambda:InvokeFunction"},
        "arn:aws:sns:::reports": {"sns:Publish"},
    }


def test_the_tasks_of_another_cell_cannot_be_stopped(open_server: Assembly) -> None:
    """Only executions whose names begin with the cell, as task ids do."""
    grants = open_server.grants()["Api/Role"]
    stoppable = {arn for arn, actions in grants.items() if "states:StopExecution" in actions}
    assert stoppable == {task_executions("Open2-*", "eu")}


def test_tools_that_are_never_tasks_need_no_right_to_step_functions(no_tasks: Assembly) -> None:
    granted = {a for grants in no_tasks.grants().values() for s in grants.values() for a in s}
    assert not {action for action in granted if action.startswith("states:")}
    assert not no_tasks.resources("AWS::StepFunctions::StateMachine")
