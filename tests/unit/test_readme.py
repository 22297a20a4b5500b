"""What the README shows is what the repository does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_tasks import TaskContext
from mcp_tasks.registry.catalogue import Catalogue
from mcp_tasks.registry.tool import FunctionTool

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def readme_tool(tmp_path: Path) -> Iterator[FunctionTool]:
    """The tool of "A tool in ten lines", put into a tools folder as it stands."""
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "count_words.py").write_text(code)
    tool = next(iter(Catalogue.discover(tmp_path))).load()
    assert isinstance(tool, FunctionTool)
    yield tool
    Catalogue.discover(ROOT / "functions" / "tools")  # `tools` is the repository's again


def test_the_tool_in_ten_lines_is_a_tool_that_runs_as_a_task(readme_tool: FunctionTool) -> None:
    assert (readme_tool.name, readme_tool.task) == ("count_words", "optional")
    result = readme_tool.run({"text": "a b a"}, TaskContext())
    assert result["structuredContent"] == {"a": 2, "b": 1}


def test_every_command_it_names_is_a_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = set(re.findall(r"make ([a-z]+)", README)) - {"sure"}
    assert named
    assert not [name for name in named if not re.search(rf"^{name}:", makefile, re.MULTILINE)]


def test_every_file_it_links_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
