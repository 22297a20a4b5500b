"""What the README shows is what the repository does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks import NotFound, TaskContext
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.context import InputRequired
from mcp_tasks.registry.tool import FunctionTool
from tests.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")

ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "answer": {"action": "accept", "content": {"text": "Ada"}},
    "page": {"action": "accept"},
    "completion": {
        "role": "assistant",
        "content": {"type": "text", "text": "Roses are red"},
        "model": "m",
    },
    "roots": {"roots": [{"uri": "file:///a"}]},
    "a": {"action": "accept", "content": {"text": "Poems"}},
    "b": {"role": "assistant", "content": {"type": "text", "text": "Verses"}, "model": "m"},
}
"""What the function in "Asking the client" asks for, in its order."""


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Catalogue]:
    """All tools that it shows, put into a tools folder as they stand."""
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", README, re.DOTALL)):
        if "mcp_tasks" in code:
            (tmp_path / f"shown_{number}.py").write_text(code)
    yield Catalogue.discover(tmp_path)
    Catalogue.discover(ROOT / "functions" / "tools")  # `tools` is the repository's again


def function_tool(catalogue: Catalogue, name: str) -> FunctionTool:
    tool = catalogue.tools[name].load()
    assert isinstance(tool, FunctionTool)
    return tool


def test_the_tool_in_ten_lines_is_a_tool_that_runs_as_a_task(shown: Catalogue) -> None:
    tool = function_tool(shown, "count_words")
    assert tool.task == "optional"
    result = tool.run({"text": "a b a"}, TaskContext())
    assert result["structuredContent"] == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("answered", "asked"),
    [(0, {"answer"}), (1, {"page"}), (2, {"completion"}), (3, {"roots"}), (4, {"a", "b"})],
)
def test_the_tool_that_asks_for_everything_asks_for_it(
    shown: Catalogue, answered: int, asked: set[str]
) -> None:
    task = TaskContext(answers=dict(list(ANSWERS.items())[:answered]))
    with pytest.raises(InputRequired) as caught:
        function_tool(shown, "interview").run({}, task)
    assert set(caught.value.questions) == asked


def test_the_tool_that_asks_for_everything_ends_when_it_has_it(shown: Catalogue) -> None:
    result = function_tool(shown, "interview").run({}, TaskContext(answers=ANSWERS))
    assert result["content"][0]["text"] == "Poems, or Verses: Roses are red (1 roots)"


def test_the_resource_is_read_where_there_is_one(shown: Catalogue) -> None:
    (chapter,) = shown.resources.values()
    found = chapter.load().read("docs://chapters/1", {"number": "1"}, TaskContext())
    assert [contents["mimeType"] for contents in found] == ["text/markdown"]
    with pytest.raises(NotFound):
        chapter.load().read("docs://chapters/2", {"number": "2"}, TaskContext())


def test_the_prompt_completes_itself(shown: Catalogue) -> None:
    prompt = shown.prompts["review"].load()
    messages = prompt.get(prompt.check_arguments({"code": "x", "language": "sql"}), TaskContext())
    assert [message["content"]["type"] for message in messages["messages"]] == [
        "text",
        "resource_link",
    ]
    assert list(prompt.complete["language"]("s", {})) == ["sql"]


def test_every_command_it_names_is_a_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"make ([a-z]+)", README)) - {"sure"}
    assert named
    assert not [name for name in named if not re.search(rf"^{name}:", makefile, re.MULTILINE)]


def test_every_file_or_section_it_links_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    sections = {
        "#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", README, re.MULTILINE)
    }
    assert not [link for link in links if link not in sections and not (ROOT / link).exists()]
