"""Tasks as JSON, and a session with scripted polls."""

from __future__ import annotations

from typing import Any, Final, cast

from mcp.client import ClientRequestContext, ClientSession
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitResult,
    ErrorData,
    InputRequest,
    InputResponse,
    Request,
)
from pydantic import BaseModel, TypeAdapter

ID: Final = "c1-0123456789abcdef0123456789abcdef"
FORM: Final = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
YES: Final = ElicitResult(action="accept", content={"sure": True})
ANSWERED: Final = {"action": "accept", "content": {"sure": True}}


def task(status: str, **fields: Any) -> dict[str, Any]:
    """A task as JSON (tasks.md, "Tasks"). `fields` are added, or replace others."""
    return {
        "resultType": "complete",
        "taskId": ID,
        "status": status,
        "createdAt": "2026-11-01T00:00:00.000Z",
        "lastUpdatedAt": "2026-11-01T00:00:00.000Z",
        "ttlMs": 60_000,
        "pollIntervalMs": 500,
        **fields,
    }


def asking(*keys: str) -> dict[str, Any]:
    """A task with an open question under each of `keys`."""
    params = {"mode": "form", "message": "Are you sure?", "requestedSchema": FORM}
    requests = {key: {"method": "elicitation/create", "params": params} for key in keys}
    return task("input_required", inputRequests=requests)


def completed(text: str = "done", **fields: Any) -> dict[str, Any]:
    """A task with a result."""
    result = {"resultType": "complete", "content": [{"type": "text", "text": text}], **fields}
    return task("completed", result=result)


FAILED: Final = task("failed", error={"code": -32603, "message": "It broke", "data": {"a": 1}})


def wire(model: BaseModel) -> dict[str, Any]:
    """A model as the SDK writes it to JSON."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class FakeSession:
    """A client's session that returns scripted results of `tasks/get` and logs its requests."""

    def __init__(self, log: list[Any], answer: InputResponse | ErrorData = YES) -> None:
        self.polls: list[dict[str, Any]] = []
        self.requests: list[Request[Any, Any]] = []
        self.timeouts: list[float | None] = []
        self.asked: list[ElicitRequest] = []
        self.log = log
        self._answer = answer

    def scripted(self, *polls: dict[str, Any]) -> ClientSession:
        """Return this session, with the results of the polls to come."""
        self.polls = list(polls)
        return cast(ClientSession, self)

    @property
    def updates(self) -> list[dict[str, Any]]:
        """The `inputResponses` of each `tasks/update`."""
        updates = [wire(request) for request in self.requests if request.method == "tasks/update"]
        return [update["params"]["inputResponses"] for update in updates]

    async def send_request(
        self, request: Request[Any, Any], result_type: Any, timeout_seconds: float | None = None
    ) -> Any:
        """Validate the result as the SDK does."""
        self.requests.append(request)
        self.timeouts.append(timeout_seconds)
        self.log.append(request.method)
        raw = self.polls.pop(0) if request.method == "tasks/get" else {"resultType": "complete"}
        if isinstance(result_type, TypeAdapter):
            return result_type.validate_python(raw, by_name=False)
        return result_type.model_validate(raw, by_name=False)

    async def dispatch_input_request(
        self, context: ClientRequestContext, request: InputRequest
    ) -> InputResponse | ErrorData:
        """Answer as the client's own callback would."""
        assert isinstance(request, ElicitRequest)
        self.asked.append(request)
        return self._answer


def text_of(result: CallToolResult) -> str:
    return "".join(getattr(block, "text", "") for block in result.content)
