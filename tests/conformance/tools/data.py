"""The resources and prompts that the conformance suite expects of the server under test."""

from __future__ import annotations

import base64
from typing import Any

from mcp_tasks import Message, content, prompt, resource, user

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


@resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """Some text."""
    return "This is the content of the static text resource."


@resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return PNG


@resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> dict[str, Any]:
    """Data by its id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@prompt(complete={"arg1": ["testing", "test", "hello"]})
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt(name="test_prompt_with_embedded_resource")
def embedded_resource(resourceUri: str) -> list[Message]:
    """A prompt with a resource in it."""
    text = "Embedded resource content for testing."
    return [
        user(content.embedded_resource(resourceUri, text, "text/plain")),
        user("Please process the embedded resource above."),
    ]


@prompt
def test_prompt_with_image() -> list[Message]:
    """A prompt with an image in it."""
    return [user(content.image(PNG, "image/png")), user("Please analyze the image above.")]
