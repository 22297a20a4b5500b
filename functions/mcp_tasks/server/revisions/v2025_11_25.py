"""2025-11-25: the last revision with a handshake; icons, and a first design of tasks
(`methods/tasks_2025_11_25.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from ...protocol.errors import ErrorCode
from ...registry.catalogue import Entry, ToolEntry
from ...tasks.questions import Kind, Question, UrlQuestion
from .handshake import HandshakeRevision, execution
from .structured_content import object_content_only, object_schema_only


class Revision20251125(HandshakeRevision):
    """The revision of 2025-11-25."""

    version: ClassVar[str] = "2025-11-25"
    declares_tasks: ClassVar[bool] = True
    clients_resume: ClassVar[bool] = True
    kinds: ClassVar[frozenset[Kind]] = frozenset(Kind)

    def question_request(self, question: Question, request_id: str) -> dict[str, Any]:
        """A page to visit has an id (elicitation.mdx, "URL Mode Elicitation Requests")."""
        request = super().question_request(question, request_id)
        if isinstance(question, UrlQuestion):
            request["params"]["elicitationId"] = request_id
        return request

    def tool_definition(self, entry: ToolEntry) -> dict[str, Any]:
        """A tool that can run as a task says so (tasks.mdx, "Tool-Level Negotiation")."""
        return {**object_schema_only(entry.definition), **execution(entry)}

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Structured content is an object (tools.mdx, "Structured Content"); the rest is text."""
        return object_content_only(result)

    def resource_definition(self, entry: Entry) -> dict[str, Any]:
        """As it was declared."""
        return entry.definition

    def prompt_definition(self, entry: Entry) -> dict[str, Any]:
        """As it was declared."""
        return entry.definition

    def task_required_code(self) -> ErrorCode:
        """-32601 (tasks.mdx, "Tool-Level Negotiation")."""
        return ErrorCode.METHOD_NOT_FOUND
