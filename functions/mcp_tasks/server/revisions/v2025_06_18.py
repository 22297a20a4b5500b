"""2025-06-18: structured content that is an object, resource links, titles; no icons, no tasks."""

from __future__ import annotations

from typing import Any, ClassVar

from ...registry.catalogue import Entry, ToolEntry
from ...tasks.questions import FormQuestion, Kind, Question
from .handshake import HandshakeRevision, execution
from .structured_content import object_content_only, object_schema_only, without


class Revision20250618(HandshakeRevision):
    """The revision of 2025-06-18."""

    version: ClassVar[str] = "2025-06-18"
    declares_tasks: ClassVar[bool] = True
    """Two SDKs negotiate this revision and know the tasks of 2025-11-25."""
    kinds: ClassVar[frozenset[Kind]] = frozenset({Kind.FORM, Kind.SAMPLING, Kind.ROOTS})

    def question_request(self, question: Question, request_id: str) -> dict[str, Any]:
        """A form is the only kind of elicitation, and has no `mode`."""
        request = super().question_request(question, request_id)
        if isinstance(question, FormQuestion):
            request["params"] = without(request["params"], "mode")
        return request

    def tool_definition(self, entry: ToolEntry) -> dict[str, Any]:
        """Without icons, and without an output schema of anything but an object."""
        return {**without(object_schema_only(entry.definition), "icons"), **execution(entry)}

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Structured content is an object (tools.mdx, "Structured Content"); the rest is text."""
        return object_content_only(result)

    def resource_definition(self, entry: Entry) -> dict[str, Any]:
        """Without icons."""
        return without(entry.definition, "icons")

    def prompt_definition(self, entry: Entry) -> dict[str, Any]:
        """Without icons."""
        return without(entry.definition, "icons")
