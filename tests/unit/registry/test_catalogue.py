"""The catalogue: found in a folder, written to a file, and read without importing the tools."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_tasks.registry.catalogue import FILE_NAME, Catalogue
from mcp_tasks.registry.function_tool import FunctionTool
from mcp_tasks.registry.prompt import Prompt
from mcp_tasks.registry.resource import Resource
from mcp_tasks.registry.workflow_tool import WorkflowTool
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


def contents(catalogue: Catalogue) -> tuple[Any, Any, Any]:
    return catalogue.tools, catalogue.resources, catalogue.prompts


def test_tools_are_found_in_modules_and_packages(catalogue: Catalogue) -> None:
    kinds = {entry.name: (entry.kind, entry.task_support) for entry in catalogue.tools.values()}
    assert kinds["echo"] == ("function", "forbidden")
    assert kinds["count"] == ("function", "optional")
    assert kinds["wait"] == ("function", "required")
    assert kinds["review"] == ("workflow", "required")
    assert kinds["orders"] == ("workflow", "required")


def test_resources_and_prompts_are_found_beside_them(catalogue: Catalogue) -> None:
    """A tool and a prompt may have one name."""
    assert list(catalogue.resources) == [
        "docs://chapters/{number}",
        "docs://handbook",
        "docs://letters/{kind}",
    ]
    assert list(catalogue.prompts) == ["review"]
    assert "review" in catalogue.tools


@pytest.mark.parametrize("kind", ["tools", "resources", "prompts"])
def test_entries_are_ordered_by_name(catalogue: Catalogue, kind: str) -> None:
    entry = next(iter(getattr(catalogue, kind).values()))
    mixed = Catalogue(**{kind: [replace(entry, name=name) for name in ("b", "a", "c")]})
    assert list(getattr(mixed, kind)) == ["a", "b", "c"]


def test_an_entry_has_what_the_api_function_needs(catalogue: Catalogue) -> None:
    count = catalogue.tools["count"]
    assert (count.ttl_ms, count.poll_interval_ms) == (3_600_000, 3_000)
    assert count.timeout_ms == 60_000, "of a tool that does not say how long it takes"
    assert count.definition["name"] == "count"
    assert count.state_machine_arn is None
    orders = catalogue.tools["orders"]
    assert orders.state_machine_arn is not None
    assert orders.state_machine_arn.endswith(":stateMachine:orders")
    routed = catalogue.tools["routed"]
    assert [parameter.header for parameter in routed.mirrored] == ["Region", "Shard", "Dry-Run"]


def test_a_resources_entry_has_its_cache_time_and_scope(catalogue: Catalogue) -> None:
    handbook = catalogue.resources["docs://handbook"]
    assert (handbook.fresh_ms, handbook.cache_scope) == (60_000, "public")
    chapter = catalogue.resources["docs://chapters/{number}"]
    assert (chapter.fresh_ms, chapter.cache_scope) == (0, "private")


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("docs://handbook", ("docs://handbook", {})),
        ("docs://chapters/7", ("docs://chapters/{number}", {"number": "7"})),
        ("docs://letters/a%20b", ("docs://letters/{kind}", {"kind": "a b"})),
        # The template's own text is no URI of a resource, although the template matches it.
        ("docs://chapters/{number}", ("docs://chapters/{number}", {"number": "{number}"})),
        ("docs://chapters/7/8", None),
        ("docs://handbook/1", None),
        ("docs://", None),
        ("", None),
    ],
)
def test_a_uri_leads_to_its_resource_and_the_variables(
    catalogue: Catalogue, uri: str, found: tuple[str, dict[str, str]] | None
) -> None:
    match = catalogue.resource(uri)
    assert (match and (match[0].name, match[1])) == found


def test_a_resource_comes_before_a_template_that_matches_too(tmp_path: Path) -> None:
    text = """
from mcp_tasks import resource

@resource("a://{any}")
def template(any: str) -> str: return any

@resource("a://x")
def x() -> str: return "x"
"""
    found = Catalogue.discover(folder(tmp_path, one=text))
    for uri, name in (("a://x", "a://x"), ("a://y", "a://{any}")):
        match = found.resource(uri)
        assert match is not None
        assert match[0].name == name


def test_an_entry_loads_its_resource_or_prompt(catalogue: Catalogue) -> None:
    assert isinstance(catalogue.resources["docs://handbook"].load(), Resource)
    assert isinstance(catalogue.prompts["review"].load(), Prompt)


def test_an_entry_loads_its_tool(catalogue: Catalogue) -> None:
    count, review = catalogue.tools["count"], catalogue.tools["review"]
    assert isinstance(count.load(), FunctionTool)
    flow = review.load()
    assert isinstance(flow, WorkflowTool)
    assert flow.definition_file == EXAMPLE_TOOLS / "review" / "workflow.asl.json"
    assert list(flow.steps) == ["count_words"]


def test_a_tool_that_is_not_one_any_more_is_named(tmp_path: Path) -> None:
    found = Catalogue.discover(folder(tmp_path, one=ONE.format(name="one")))
    entry = found.tools["one"]
    sys.modules["tools.one"].__dict__["one"] = "no tool"
    with pytest.raises(LookupError, match=r"tools\.one\.one is not declared any more"):
        entry.load()


def test_a_written_catalogue_is_read_back(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.write(tmp_path / FILE_NAME)
    assert contents(Catalogue.read(tmp_path / FILE_NAME)) == contents(catalogue)


def test_the_same_tools_give_the_same_bytes(catalogue: Catalogue, tmp_path: Path) -> None:
    """A deploy changes a function only when the hash of its bundle differs."""
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
    assert "count" in Catalogue.read(tmp_path / FILE_NAME).tools
    assert "tools" not in sys.modules


def test_two_tools_of_one_name_are_refused_with_both_places(tmp_path: Path) -> None:
    text = ONE.format(name="same")
    with pytest.raises(
        ValueError, match=r"two tools .*'same': in tools\.first and in tools\.second"
    ):
        Catalogue.discover(folder(tmp_path, first=text, second=text))


@pytest.mark.parametrize(
    ("declaration", "kind"),
    [("@prompt", "prompts are named 'f'"), ("@resource('a://b')", "resources are named 'a://b'")],
)
def test_two_prompts_or_two_resources_of_one_name_are_refused(
    tmp_path: Path, declaration: str, kind: str
) -> None:
    text = f"from mcp_tasks import prompt, resource\n\n{declaration}\ndef f() -> str: return 'f'\n"
    with pytest.raises(ValueError, match=rf"two {kind}: in tools\.first and in tools\.second"):
        Catalogue.discover(folder(tmp_path, first=text, second=text))


def test_a_tool_that_is_imported_elsewhere_is_one_tool(tmp_path: Path) -> None:
    found = Catalogue.discover(
        folder(tmp_path, a="from tools.b import one", b=ONE.format(name="one"))
    )
    assert list(found.tools) == ["one"]


def test_a_module_whose_name_begins_with_an_underscore_is_no_tool(tmp_path: Path) -> None:
    found = Catalogue.discover(folder(tmp_path, _shared=ONE.format(name="hidden")))
    assert contents(found) == ({}, {}, {})


def test_a_folder_without_tools_is_an_empty_catalogue(tmp_path: Path) -> None:
    assert contents(Catalogue.discover(tmp_path)) == ({}, {}, {})


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
    assert list(found.tools) == ["two"]


def test_a_lazy_attribute_of_a_module_does_not_stop_the_search(tmp_path: Path) -> None:
    """Mocks and clients answer any attribute, or fail in their own way."""
    text = "class Odd:\n    def __getattr__(self, name): return 5\n\nodd = Odd()\n"
    found = Catalogue.discover(folder(tmp_path, odd=text + ONE.format(name="one")))
    assert list(found.tools) == ["one"]
