"""What the README and the pages of docs/ show is what the repository does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from local.connect import lines, table
from mcp_tasks import NotFound, TaskContext
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.context import InputRequired
from mcp_tasks.registry.function_tool import FunctionTool
from tests.paths import FUNCTIONS, ROOT

README: Final = ROOT / "README.md"
PAGES: Final = (README, ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md")))
MAX_README_LINES: Final = 220

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
"""What the function in docs/asking.md asks for, in its order."""


@pytest.fixture
def shown(tmp_path: Path) -> Catalogue:
    """All tools that the pages show, put into a tools folder as they stand."""
    for page in (README, ROOT / "docs" / "asking.md", ROOT / "docs" / "tools.md"):
        for number, code in enumerate(python_of(page)):
            if "@tool" in code or "@resource" in code:
                (tmp_path / f"{page.stem}_{number}.py".lower()).write_text(code)
    return Catalogue.discover(tmp_path)


def python_of(page: Path) -> list[str]:
    """The page's Python, block by block."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def function_tool(catalogue: Catalogue, name: str) -> FunctionTool:
    tool = catalogue.tools[name].load()
    assert isinstance(tool, FunctionTool)
    return tool


def test_the_tool_in_ten_lines_is_a_tool_that_runs_as_a_task(shown: Catalogue) -> None:
    tool = function_tool(shown, "count_words")
    assert tool.task_support == "optional"
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


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MAX_README_LINES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_python_compiles(page: Path) -> None:
    for code in python_of(page):
        compile(code, page.name, "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_a_page_names_is_a_target(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE))
    assert not [name for name in named if not re.search(rf"^{name}:", makefile, re.MULTILINE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_or_section_a_page_links_exists(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    for link in (link for link in links if "://" not in link):
        name, _, section = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists() or is_deleted_sample(target), link
        if section:
            assert section in sections(target), link


def test_the_readme_links_every_page() -> None:
    text = README.read_text(encoding="utf-8")
    assert not [page.name for page in PAGES[2:] if f"](docs/{page.name})" not in text]


def is_deleted_sample(target: Path) -> bool:
    """Whether a link leads to one of the samples, in a fork that has deleted them."""
    samples = (FUNCTIONS / "tools", ROOT / "tests" / "tools")
    return not (FUNCTIONS / "tools" / "greet.py").exists() and any(
        target.is_relative_to(folder) for folder in samples
    )


def sections(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_readme_has_the_table_of_clients() -> None:
    """`make connect` prints the same lines for an endpoint."""
    assert table() in README.read_text(encoding="utf-8")
    here = lines("http://127.0.0.1:8080/mcp")
    assert not any("{" in line and "{url}" in line for line in here)
    assert [line for line in here if "public https" in line]
    assert not [line for line in lines("https://mcp.example.com/mcp") if "public https" in line]
