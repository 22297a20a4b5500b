"""No locked package has a known advisory, and every one is pinned and hashed."""

from __future__ import annotations

import datetime
import importlib.metadata
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.paths import ROOT

from .advisories import RENEW, Accepted, Snapshot, problems
from .live import NotAuditedError, npm_audit
from .locks import lock_files, locked, packages

LOCKS = [*lock_files("PyPI"), *lock_files("npm")]
NAMES = [str(lock.relative_to(ROOT)) for lock in LOCKS]


def test_the_lock_files_that_the_commands_install_are_audited() -> None:
    assert {
        "uv.lock",
        "local/package-lock.json",
        "tests/conformance/package-lock.json",
        "tests/infra/second_opinions/node/package-lock.json",
        "tests/infra/second_opinions/python/uv.lock",
        "tests/integration/clients/package-lock.json",
        "tests/integration/clients/uv.lock",
    } <= set(NAMES)


def test_every_python_package_comes_from_the_public_index() -> None:
    """Not from an index or a folder that only the machine knows on which it was locked."""
    locks = [tomllib.loads(lock.read_text(encoding="utf-8")) for lock in lock_files("PyPI")]
    entries = [entry for lock in locks for entry in lock["package"]]
    sources = {str(entry["source"]) for entry in entries if "virtual" not in entry["source"]}
    assert sources == {str({"registry": "https://pypi.org/simple"})}


def test_the_functions_packages_are_within_the_bounds_of_lambdas_boto3() -> None:
    """The group lambda-runtime has the bounds of the botocore that is locked here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    bounds = map(Requirement, project["dependency-groups"]["lambda-runtime"])
    declared = map(Requirement, importlib.metadata.requires("botocore") or [])
    of_botocore = {wanted.name: wanted.specifier for wanted in declared if wanted.marker is None}
    assert {bound.name: bound.specifier for bound in bounds} == of_botocore


@pytest.mark.parametrize("lock", LOCKS, ids=NAMES)
def test_every_locked_package_has_an_exact_version_and_a_hash(lock: Path) -> None:
    entries = packages(lock)  # an entry without an exact version raises
    assert entries
    assert [entry.name for entry in entries if not entry.hashed] == []


def test_no_locked_package_has_an_advisory_that_is_not_accepted() -> None:
    findings = Snapshot.load().findings(locked("PyPI") | locked("npm"))
    today = datetime.datetime.now(datetime.UTC).date()
    assert problems(findings, Accepted.load(), today) == []


def test_the_snapshot_was_renewed_for_every_python_package() -> None:
    assert Snapshot.load().unseen("PyPI", locked("PyPI")) == [], RENEW


def test_the_snapshot_was_renewed_for_every_node_package_or_the_registry_is_asked() -> None:
    """A snapshot without npm is no audit: then the registry answers, or the test says why not."""
    snapshot = Snapshot.load()
    if "npm" in snapshot.sources:
        assert snapshot.unseen("npm", locked("npm")) == [], RENEW
        return
    try:
        found = [line for lock in lock_files("npm") for line in npm_audit(lock, Accepted.load())]
    except NotAuditedError as error:
        pytest.skip(f"NOT AUDITED: the snapshot has no npm advisories, and the registry: {error}")
    assert found == []
