"""Questions as `InputRequests` (mrtr.mdx, "InputRequests").

On the wire, a question is a request of the kind that servers sent to clients in earlier revisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...tasks.questions import FormQuestion, Question, SamplingQuestion, UrlQuestion


def input_requests(questions: Mapping[str, Question]) -> dict[str, Any]:
    """`InputRequests`: the questions by key."""
    return {key: input_request(question) for key, question in questions.items()}


def input_request(question: Question) -> dict[str, Any]:
    """One question: `elicitation/create`, `sampling/createMessage` or `roots/list`."""
    match question:
        case FormQuestion(message, schema):
            params = {"mode": "form", "message": message, "requestedSchema": schema}
            return {"method": "elicitation/create", "params": params}
        case UrlQuestion(message, url):
            params = {"mode": "url", "message": message, "url": url}
            return {"method": "elicitation/create", "params": params}
        case SamplingQuestion(params):
            return {"method": "sampling/createMessage", "params": params}
    return {"method": "roots/list"}
