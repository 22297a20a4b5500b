"""Resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import count
from typing import Literal

from mcp_tasks import NotFound, TaskContext, ToolError, content, resource


@resource(
    "docs://handbook",
    title="The handbook",
    mime_type="text/plain",
    annotations={"audience": ["user"]},
    icons=[{"src": "https://example.com/book.png"}],
    meta={"example.com/group": "docs"},
    fresh_for=timedelta(minutes=1),
    cache_scope="public",
)
def handbook() -> str:
    """All of it."""
    return "All of the handbook"


@resource("docs://logo", mime_type="image/png")
def logo() -> bytes:
    """Bytes."""
    return b"\x89PNG\xff"


@resource("docs://all")
def everything() -> list[dict[str, str]]:
    """Several contents."""
    return [content.resource_contents("docs://a", "a"), content.resource_contents("docs://b", b"b")]


LANGUAGES = ["de", "en", "fr"]


def pages(typed: str, others: Mapping[str, str]) -> Iterator[str]:
    """As many pages as the language has, or without end."""
    if others.get("language") == "xx":
        raise KeyError("hunter2")
    numbers = {"de": range(99), "en": range(100), "fr": range(101), "la": range(10_000)}
    for number in numbers.get(others.get("language", ""), count()):
        yield f"{typed}{number}"


@resource(
    "docs://{language}/{page}",
    title="A page",
    icons=[{"src": "https://example.com/page.png"}],
    complete={"language": LANGUAGES, "page": pages},
)
def page(language: str, page: int, task: TaskContext) -> dict[str, str | int]:
    """One page."""
    if language not in LANGUAGES:
        raise NotFound("hunter2")
    task.report("reading", 0.5)
    return {"language": language, "page": page}


@resource("files://{disk}/{+path}")
def file(disk: Literal["c", "d"], path: str) -> str:
    """A file of some depth."""
    return f"{disk}: {path}"


@resource("broken://{how}")
def broken(how: str) -> object:
    """Fail in one way or another."""
    if how == "tool":
        raise ToolError("This one is being written")
    if how == "nan":
        return {"a": float("nan")}
    raise KeyError("hunter2")
