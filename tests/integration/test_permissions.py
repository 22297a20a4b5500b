"""The deployed functions may do what their roles allow, and are denied all else: if the emulator
did not enforce it, the other tests would not find a grant that is missing.
"""

from __future__ import annotations

from local.deployment import LocalStack
from local.gateway import Gateway
from tests.integration.support.client import Client

DENIED = {
    "read a task": "AccessDenied",
    "read all tasks": "AccessDenied",
    "remove a task": "AccessDenied",
    "write another attribute": "AccessDenied",
    "write into the schedule": "AccessDenied",
    "read a row by a write": "AccessDenied",
    "hide an attribute behind a name": "AccessDenied",
    "put a row": "AccessDenied",
    "list state machines": "AccessDenied",
    "list roles": "AccessDenied",
}


def test_a_worker_has_only_the_permissions_that_its_tool_declares(client: Client) -> None:
    result = client.end(client.start("overreach"))["result"]
    assert result["structuredContent"] == DENIED


def test_the_api_function_may_not_scan_the_table(stack: LocalStack, gateway: Gateway) -> None:
    """It reads and writes single rows, and tools that run within requests have its rights. The
    local gateway runs it with the same role.
    """
    single_rows = {
        "read a task": "allowed",
        "write another attribute": "ConditionalCheckFailed",
        "write into the schedule": "ConditionalCheckFailed",
        "read a row by a write": "ConditionalCheckFailed",
        "hide an attribute behind a name": "ConditionalCheckFailed",
        "put a row": "ConditionalCheckFailed",
    }
    for url in (stack.url, gateway.url):
        result = Client(url, {}).call("overreach").result
        assert result["structuredContent"] == {**DENIED, **single_rows}
