"""`-c log_messages=on`: where messages of exceptions are kept, who writes and who reads them."""

from __future__ import annotations

from typing import Any

from infra.tracebacks import RUN_AUTHORS_CODE
from mcp_tasks.environment import TRACEBACK_LOG_GROUP
from tests.infra.assembly import Assembly

GROUP = "<Tracebacks/Logs>"
GROUP_ARN = "<Tracebacks/Logs.Arn>"
WRITE = {"logs:CreateLogStream", "logs:PutLogEvents"}


def functions(assembly: Assembly) -> dict[str, dict[str, Any]]:
    """The functions' properties, by path."""
    return assembly.resources("AWS::Lambda::Function")


def test_no_message_is_kept_unless_the_deployment_says_so(on_aws: Assembly) -> None:
    assert not [path for path in on_aws.resources("AWS::Logs::LogGroup") if "Tracebacks" in path]
    for properties in functions(on_aws).values():
        assert TRACEBACK_LOG_GROUP not in properties.get("Environment", {}).get("Variables", {})
    assert on_aws.resources("AWS::KMS::Key") == {}


def test_messages_have_a_group_a_retention_and_a_key_of_their_own(open_server: Assembly) -> None:
    groups = open_server.resources("AWS::Logs::LogGroup")
    own = groups.pop("Tracebacks/Logs")
    assert own["KmsKeyId"] == "<Tracebacks/Key.Arn>"
    assert own["RetentionInDays"] == 7
    assert all("KmsKeyId" not in each for each in groups.values())
    assert open_server.resources("AWS::KMS::Key").keys() == {"Tracebacks/Key"}


def test_what_runs_tools_writes_messages_and_reads_none(open_server: Assembly) -> None:
    writing = set()
    for path, properties in functions(open_server).items():
        handler = properties.get("Handler", "").partition(".")[0]
        variables = properties.get("Environment", {}).get("Variables", {})
        named = variables.get(TRACEBACK_LOG_GROUP) == GROUP
        assert named == (handler in RUN_AUTHORS_CODE), path
        if named:
            writing.add(path.rpartition("/")[0])
    assert any(path.startswith("Tools/") for path in writing)
    for role, grants in open_server.grants().items():
        folder, _, name = role.rpartition("/")
        wanted = WRITE if name == "Role" and folder in writing else None
        assert grants.get(GROUP_ARN) == wanted, role
        assert not [resource for resource in grants if "Tracebacks/Key" in resource], role


def test_only_cloudwatch_logs_uses_the_key(open_server: Assembly) -> None:
    """And whoever the account's IAM policies let use it: the first statement."""
    key = open_server.resources("AWS::KMS::Key")["Tracebacks/Key"]
    first, *others = key["KeyPolicy"]["Statement"]
    assert first["Principal"] == {"AWS": "arn:<AWS::Partition>:iam::<AWS::AccountId>:root"}
    (logs,) = others
    assert logs["Principal"] == {"Service": "logs.<AWS::Region>.amazonaws.com"}
    (groups,) = logs["Condition"]["ArnLike"].values()
    assert groups[0] == "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:Open2-*"
