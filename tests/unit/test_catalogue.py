"""The tools of a deployment: found in a folder, written to a file, read without importing them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue
from mcp_tasks.registry.tool import FunctionTool, WorkflowTool
from tests.unit.conftest import EXAMPLE_TOOLS

ONE: Final = '''
from mcp_tasks import tool

@tool
def {name}(a: int) -> int:
    """Do something."""
    return a
'''


def folder(tmp_path: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def test_tools_are_found_in_modules_and_packages(catalogue: Catalogue) -> None:
    kinds = {entry.name: (entry.kind, entry.task) for entry in catalogue}
    assert kinds["echo"] == ("function", "forbidden")
    assert kinds["count"] == ("function", "optional")
    assert kinds["wait"] == ("function", "required")
    assert kinds["review"] == ("workflow", "required")
    assert kinds["orders"] == ("workflow", "required")


def test_tools_are_ordered_by_name(catalogue: Catalogue) -> None:
    names = [entry.name for entry in catalogue]
    assert names == sorted(names)


def test_an_entry_knows_what_the_api_needs(catalogue: Catalogue) -> None:
    count = catalogue.get("count")
    assert count is not None
    assert (count.ttl_ms, count.poll_interval_ms) == (3_600_000, 3_000)
    assert count.definition["name"] == "count"
    assert count.state_machine_arn is None
    orders = catalogue.get("orders")
    assert orders is not None
    assert orders.state_machine_arn is not None
    assert orders.state_machine_arn.endswith(":stateMachine:orders")
    routed = catalogue.get("routed")
    assert routed is not None
    assert [parameter.header for parameter in routed.mirrored] == ["Region", "Shard", "Dry-Run"]


def test_an_unknown_tool_is_none(catalogue: Catalogue) -> None:
    assert catalogue.get("nothing") is None


def test_an_entry_loads_its_tool(catalogue: Catalogue) -> None:
    count, review = catalogue.get("count"), catalogue.get("review")
    assert count is not None
    assert review is not None
    assert isinstance(count.load(), FunctionTool)
    flow = review.load()
    assert isinstance(flow, WorkflowTool)
    assert flow.definition_file == EXAMPLE_TOOLS / "review" / "workflow.asl.json"
    assert list(flow.steps) == ["count_words"]


def test_a_tool_that_is_not_one_any_more_is_named(tmp_path: Path) -> None:
    found = Catalogue.discover(folder(tmp_path, one=ONE.format(name="one")))
    entry = found.get("one")
    assert entry is not None
    sys.modules["tools.one"].__dict__["one"] = "no tool"
    with pytest.raises(LookupError, match=r"tools\.one\.one is not a tool"):
        entry.load()


def test_what_is_written_is_read_back(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.write(tmp_path / FILE_NAME)
    assert list(Catalogue.read(tmp_path / FILE_NAME)) == list(catalogue)


def test_the_same_tools_give_the_same_bytes(catalogue: Catalogue, tmp_path: Path) -> None:
    """The bundle's hash decides whether a deploy changes anything."""
    first, second = tmp_path / "first", tmp_path / "second"
    catalogue.write(first)
    Catalogue.read(first).write(second)
    assert first.read_bytes() == second.read_bytes()
    Catalogue.discover(EXAMPLE_TOOLS).write(second)
    assert first.read_bytes() == second.read_bytes()


def test_reading_imports_no_tool(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.write(tmp_path / FILE_NAME)
    for name in [n for n in sys.modules if n == "tools" or n.startswith("tools.")]:
        del sys.modules[name]
    assert Catalogue.read(tmp_path / FILE_NAME).get("count") is not None
    assert "tools" not in sys.modules


def test_two_tools_of_one_name_are_refused_with_both_places(tmp_path: Path) -> None:
    text = ONE.format(name="same")
    with pytest.raises(ValueError, match=r"'same': in tools\.first and in tools\.second"):
        Catalogue.discover(folder(tmp_path, first=text, second=text))


def test_a_tool_that_is_imported_elsewhere_is_one_tool(tmp_path: Path) -> None:
    found = Catalogue.discover(
        folder(tmp_path, a="from tools.b import one", b=ONE.format(name="one"))
    )
    assert [entry.name for entry in found] == ["one"]


def test_a_module_whose_name_begins_with_an_underscore_is_no_tool(tmp_path: Path) -> None:
    found = Catalogue.discover(folder(tmp_path, _shared=ONE.format(name="hidden")))
    assert list(found) == []


def test_a_folder_without_tools_is_an_empty_catalogue(tmp_path: Path) -> None:
    assert list(Catalogue.discover(tmp_path)) == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no tools folder .*nowhere"):
        Catalogue.discover(tmp_path / "nowhere")


def test_a_module_that_fails_on_import_stops_the_deploy(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        Catalogue.discover(folder(tmp_path, broken="1 / 0"))


def test_another_folder_replaces_the_one_before(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    Catalogue.discover(folder(first, one=ONE.format(name="one")))
    found = Catalogue.discover(folder(second, one=ONE.format(name="two")))
    assert [entry.name for entry in found] == ["two"]


def test_a_lazy_attribute_of_a_module_does_not_stop_the_search(tmp_path: Path) -> None:
    """Mocks and clients answer any attribute, or fail in their own way."""
    text = "class Odd:\n    def __getattr__(self, name): return 5\n\nodd = Odd()\n"
    found = Catalogue.discover(folder(tmp_path, odd=text + ONE.format(name="one")))
    assert [entry.name for entry in found] == ["one"]
