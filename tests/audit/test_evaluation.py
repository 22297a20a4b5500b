"""The audit can fail: each of its rules, on records and lock files that break it."""

from __future__ import annotations

import datetime
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from .advisories import Accepted, Finding, Snapshot, affects, problems, reduce, semantic
from .locks import Package, locked, packages

HASH = "sha256:" + "0" * 64
TODAY = datetime.date(2026, 6, 1)
PYJWT = Package("PyPI", "pyjwt", "2.3.0")


def uv_lock(folder: Path, *entries: tuple[str, str, str]) -> Path:
    """A uv.lock of these names, versions and hashes."""
    lock = folder / "uv.lock"
    lock.write_text(
        "".join(
            f'[[package]]\nname = "{name}"\nversion = "{version}"\n'
            'source = { registry = "https://pypi.org/simple" }\n'
            f'wheels = [{{ url = "https://files.example/a.whl", hash = "{value}" }}]\n'
            for name, version, value in entries
        )
    )
    return lock


def record(*events: dict[str, str], ecosystem: str = "PyPI", name: str = "pyjwt") -> dict[str, Any]:
    kind = {"PyPI": "ECOSYSTEM", "npm": "SEMVER"}[ecosystem]
    affected = {
        "package": {"ecosystem": ecosystem, "name": name},
        "ranges": [{"type": kind, "events": list(events)}],
    }
    return {"id": "X-1", "summary": "bad", "affected": [affected]}


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.3.0", True), ("2.4.0", False), ("1.7.1", True), ("1.4.2", False)],
)
def test_key_confusion_in_pyjwt_is_known_for_the_versions_that_had_it(
    version: str, expected: bool
) -> None:
    """CVE-2022-29217: from 1.5.0, fixed in 2.4.0. From the committed snapshot."""
    findings = Snapshot.load().findings([Package("PyPI", "pyjwt", version)])
    assert ("PYSEC-2022-202" in {finding.advisory for finding in findings}) is expected


def test_a_lock_file_with_a_vulnerable_version_is_a_problem(tmp_path: Path) -> None:
    uv_lock(tmp_path, ("PyJWT", "2.3.0", HASH))
    findings = Snapshot.load().findings(locked("PyPI", tmp_path))
    assert any(
        line.startswith("pyjwt 2.3.0: PYSEC-2022-202") for line in problems(findings, [], TODAY)
    )


def test_a_package_that_nobody_looked_up_is_named(tmp_path: Path) -> None:
    uv_lock(tmp_path, ("pyjwt", "2.15.1", HASH), ("new-one", "1.0", HASH))
    assert Snapshot.load().unseen("PyPI", locked("PyPI", tmp_path)) == ["new-one"]


@pytest.mark.parametrize(
    ("events", "version", "expected"),
    [
        ([{"introduced": "0"}], "99", True),
        ([{"introduced": "0"}, {"fixed": "2.0"}], "2.0", False),
        ([{"introduced": "0"}, {"fixed": "2.0"}], "2.0rc1", True),
        ([{"introduced": "1.0"}, {"last_affected": "2.0"}], "2.0", True),
        ([{"introduced": "1.0"}, {"last_affected": "2.0"}], "2.0.post1", False),
        ([{"introduced": "1.0"}, {"fixed": "2.0"}], "0.9", False),
        (
            [{"introduced": "2"}, {"fixed": "2.5"}, {"introduced": "0"}, {"fixed": "1.5"}],
            "1.7",
            False,
        ),
        (
            [{"introduced": "2"}, {"fixed": "2.5"}, {"introduced": "0"}, {"fixed": "1.5"}],
            "2.10",
            False,
        ),
        (
            [{"introduced": "2"}, {"fixed": "2.5"}, {"introduced": "0"}, {"fixed": "1.5"}],
            "2.4",
            True,
        ),
    ],
)
def test_ranges_mean_what_the_osv_schema_says(
    events: list[dict[str, str]], version: str, expected: bool
) -> None:
    """https://ossf.github.io/osv-schema/#evaluation"""
    assert affects(record(*events), Package("PyPI", "pyjwt", version)) is expected


def test_a_range_of_another_package_or_ecosystem_means_nothing() -> None:
    everything = {"introduced": "0"}
    assert not affects(record(everything, name="jwt"), PYJWT)
    assert not affects(record(everything, ecosystem="npm"), PYJWT)


def test_a_listed_version_is_affected_without_a_range() -> None:
    advisory = record()
    advisory["affected"][0] |= {"ranges": [], "versions": ["2.3.0"]}
    assert affects(advisory, PYJWT)


def test_node_versions_are_ordered_as_semantic_versioning_says() -> None:
    """https://semver.org/#spec-item-11"""
    names = ["alpha", "alpha.1", "alpha.beta", "beta", "beta.2", "beta.11", "rc.1"]
    ordered = [*(f"1.0.0-{name}" for name in names), "1.0.0", "1.0.1", "1.2.0", "1.10.0"]
    assert all(semantic(low) < semantic(high) for low, high in itertools.pairwise(ordered))
    fixed = record({"introduced": "1.9.0"}, {"fixed": "1.10.0"}, ecosystem="npm", name="qs")
    assert affects(fixed, Package("npm", "qs", "1.10.0-rc.1"))
    assert not affects(fixed, Package("npm", "qs", "1.10.0"))


def test_a_record_is_reduced_to_the_locked_packages_and_their_ranges() -> None:
    advisory = record({"introduced": "0"}, {})
    advisory["affected"][0]["ranges"].append({"type": "GIT", "repo": "r", "events": []})
    advisory["affected"].append(record(name="other")["affected"][0])
    reduced = reduce(advisory, [("PyPI", "pyjwt")])
    assert reduced["affected"] == record({"introduced": "0"})["affected"]


def test_a_reduced_record_keeps_the_versions_that_no_range_covers() -> None:
    advisory = record({"introduced": "1.0"}, {"fixed": "2.0"}, name="PyJWT")
    advisory["affected"][0]["versions"] = ["1.5", "2.3.0", "2004d"]
    reduced = reduce(advisory, [("PyPI", "pyjwt")])
    assert reduced["affected"][0]["versions"] == ["2.3.0", "2004d"]
    assert affects(reduced, PYJWT)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (Accepted("X-1", "pyjwt", "not used", TODAY), []),
        (Accepted("X-1", "pyjwt", " ", TODAY), ["has no reason"]),
        (Accepted("X-1", "pyjwt", "not used", datetime.date(2026, 5, 31)), ["look again"]),
        (Accepted("X-1", "jwt", "not used", TODAY), ["remove the entry", "pyjwt 2.3.0: X-1"]),
    ],
)
def test_an_accepted_advisory_needs_a_reason_a_day_and_a_locked_version(
    entry: Accepted, expected: list[str]
) -> None:
    found = problems([Finding(PYJWT, "X-1", "bad")], [entry], TODAY)
    assert len(found) == len(expected)
    assert all(part in line for part, line in zip(expected, found, strict=True))


def test_a_python_package_without_a_version_is_refused(tmp_path: Path) -> None:
    """As uv.lock has a package that is built from a folder."""
    lock = tmp_path / "uv.lock"
    lock.write_text('[[package]]\nname = "a"\nsource = { editable = "../a" }\n')
    with pytest.raises(ValueError, match="exact version"):
        packages(lock)


@pytest.mark.parametrize("value", ["", "md5:" + "0" * 32, "sha256:12"])
def test_a_python_package_without_a_whole_hash_is_seen(tmp_path: Path, value: str) -> None:
    lock = uv_lock(tmp_path, ("a", "1", value), ("b", "2", HASH))
    assert [(entry.name, entry.hashed) for entry in packages(lock)] == [("a", False), ("b", True)]


@pytest.mark.parametrize("source", ['git = "https://example/a?rev=1"', 'url = "https://example/a"'])
def test_a_python_package_without_a_file_that_is_hashed_is_seen(
    tmp_path: Path, source: str
) -> None:
    lock = tmp_path / "uv.lock"
    lock.write_text(f'[[package]]\nname = "a"\nversion = "1"\nsource = {{ {source} }}\n')
    assert packages(lock) == [Package("PyPI", "a", "1", hashed=False)]


def test_the_project_itself_is_no_package(tmp_path: Path) -> None:
    lock = tmp_path / "uv.lock"
    lock.write_text('[[package]]\nname = "a"\nversion = "1"\nsource = { virtual = "." }\n')
    assert packages(lock) == []


def test_a_node_package_without_integrity_or_version_is_seen(tmp_path: Path) -> None:
    lock = tmp_path / "package-lock.json"
    entries = {"": {}, "node_modules/@a/b/node_modules/@c/d": {"version": "1.0.0"}}
    lock.write_text(json.dumps({"packages": entries}))
    assert packages(lock) == [Package("npm", "@c/d", "1.0.0", hashed=False)]
    lock.write_text(json.dumps({"packages": {"node_modules/a": {"link": True}}}))
    with pytest.raises(ValueError, match="exact version"):
        packages(lock)
