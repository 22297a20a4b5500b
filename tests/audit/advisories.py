"""Which locked packages have a known advisory: the snapshot, and what is accepted of it.

The snapshot holds OSV records (https://ossf.github.io/osv-schema/), reduced to what the evaluation
needs and to the packages that the lock files name. `make audit` renews it.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import Version

from .locks import Package

HERE = Path(__file__).resolve().parent
SNAPSHOT = HERE / "advisories.json"
ACCEPTED = HERE / "accepted.json"
RENEW = "Run `make audit` where api.osv.dev can be reached, and commit tests/audit/advisories.json."

RANGES = {"PyPI": "ECOSYSTEM", "npm": "SEMVER"}
"""The type of OSV range that orders versions as the ecosystem does."""


@dataclass(frozen=True)
class Snapshot:
    """The advisories that were known on a day, for the packages that were locked then."""

    sources: Mapping[str, Mapping[str, Any]]
    """By ecosystem: `as_of`, `source`, and `packages`, the names that were looked up."""
    advisories: list[dict[str, Any]]

    @classmethod
    def load(cls, file: Path = SNAPSHOT) -> Snapshot:
        """Read what `save` wrote."""
        content = json.loads(file.read_text(encoding="utf-8"))
        return cls(content["sources"], content["advisories"])

    def save(self, file: Path = SNAPSHOT) -> None:
        """Write one advisory a line, so that a renewal is a readable difference."""
        sources = ",\n".join(
            f"    {json.dumps(key)}: {json.dumps(value)}"
            for key, value in sorted(self.sources.items())
        )
        known = sorted(self.advisories, key=lambda advisory: str(advisory["id"]))
        lines = ",\n".join("    " + json.dumps(advisory) for advisory in known)
        file.write_text(
            f'{{\n  "sources": {{\n{sources}\n  }},\n  "advisories": [\n{lines}\n  ]\n}}\n',
            encoding="utf-8",
        )

    def unseen(self, ecosystem: str, locked: Iterable[Package]) -> list[str]:
        """The locked packages that nobody looked up: nothing is known of them."""
        seen = set(self.sources.get(ecosystem, {}).get("packages", []))
        return sorted({package.name for package in locked} - seen)

    def findings(self, locked: Iterable[Package]) -> set[Finding]:
        """Every advisory that concerns a locked version."""
        by_name: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for advisory in self.advisories:
            for affected in advisory["affected"]:
                of = affected["package"]
                by_name.setdefault((of["ecosystem"], of["name"]), []).append(advisory)
        return {
            Finding(package, advisory["id"], advisory["summary"])
            for package in locked
            for advisory in by_name.get((package.ecosystem, package.name), [])
            if affects(advisory, package)
        }


@dataclass(frozen=True, order=True)
class Finding:
    """A locked version with an advisory."""

    package: Package
    advisory: str
    summary: str

    def __str__(self) -> str:
        return f"{self.package.name} {self.package.version}: {self.advisory} {self.summary}"


def reduce(advisory: Mapping[str, Any], packages: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """An OSV record without what the evaluation does not need."""
    wanted = set(packages)
    details = advisory.get("summary") or advisory.get("details") or "(no summary)"
    return {
        "id": advisory["id"],
        "aliases": sorted(advisory.get("aliases", [])),
        "published": advisory.get("published", "")[:10],
        "summary": details.strip().splitlines()[0][:120],
        "affected": [
            _reduced(affected) for affected in advisory["affected"] if _key(affected) in wanted
        ],
    }


def _key(affected: Mapping[str, Any]) -> tuple[str, str]:
    package = affected.get("package", {})
    ecosystem, name = package.get("ecosystem", ""), package.get("name", "")
    return ecosystem, canonicalize_name(name) if ecosystem == "PyPI" else name


def _reduced(affected: Mapping[str, Any]) -> dict[str, Any]:
    ecosystem, name = _key(affected)
    ranges = [
        {"type": of["type"], "events": [event for event in of["events"] if event]}
        for of in affected.get("ranges", [])
        if of["type"] == RANGES[ecosystem]
    ]
    others = [
        version
        for version in affected.get("versions", [])
        if not any(_covers(of["events"], ecosystem, name, version) for of in ranges)
    ]
    reduced = {"package": {"ecosystem": ecosystem, "name": name}, "ranges": ranges}
    return {**reduced, "versions": others} if others else reduced


def _covers(events: Iterable[Mapping[str, str]], ecosystem: str, name: str, version: str) -> bool:
    try:
        return _within(Package(ecosystem, name, version), events)
    except ValueError:  # an old version that the ecosystem cannot order
        return False


def affects(advisory: Mapping[str, Any], package: Package) -> bool:
    """Whether the advisory names the package's version, as OSV's schema defines it."""
    return any(
        package.version in affected.get("versions", [])
        or any(_within(package, of["events"]) for of in affected.get("ranges", []))
        for affected in advisory["affected"]
        if affected["package"] == {"ecosystem": package.ecosystem, "name": package.name}
    )


def _within(package: Package, events: Iterable[Mapping[str, str]]) -> bool:
    order: Callable[[str], Any] = Version if package.ecosystem == "PyPI" else semantic
    version = order(package.version)
    vulnerable = False
    for event in sorted(events, key=lambda event: order(next(iter(event.values())))):
        (kind, at) = next(iter(event.items()))
        if kind == "introduced" and order(at) <= version:
            vulnerable = True
        elif (kind == "fixed" and order(at) <= version) or (
            kind == "last_affected" and order(at) < version
        ):
            vulnerable = False
    return vulnerable


def semantic(version: str) -> tuple[Any, ...]:
    """A key that orders versions as Semantic Versioning 2.0.0, item 11, does."""
    core, _, before = version.partition("+")[0].partition("-")
    numbers = [int(number) for number in core.split(".")]
    parts = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in before.split(".") if before]
    return (*numbers, *[0] * (3 - len(numbers)), not before, parts)


@dataclass(frozen=True)
class Accepted:
    """An advisory that somebody looked at and found harmless here, for a while."""

    advisory: str
    package: str
    reason: str
    until: datetime.date

    @classmethod
    def load(cls, file: Path = ACCEPTED) -> list[Accepted]:
        """Read the file; an entry that lacks a field is an error."""
        return [
            cls(
                entry["advisory"],
                entry["package"],
                entry["reason"],
                datetime.date.fromisoformat(entry["until"]),
            )
            for entry in json.loads(file.read_text(encoding="utf-8"))
        ]


def problems(
    findings: Iterable[Finding], accepted: Iterable[Accepted], today: datetime.date
) -> list[str]:
    """What has to be mended: advisories that nobody accepted, and acceptances that ran out."""
    findings = sorted(findings)
    concerned = {(finding.advisory, finding.package.name) for finding in findings}
    known = {(entry.advisory, entry.package): entry for entry in accepted}
    found = []
    for key, entry in known.items():
        where = f"accepted.json, {entry.advisory} of {entry.package}"
        if key not in concerned:
            found.append(f"{where}: concerns no locked version; remove the entry")
        elif not entry.reason.strip():
            found.append(f"{where}: has no reason")
        elif entry.until < today:
            found.append(f"{where}: was accepted until {entry.until}; look again")
    return found + [str(f) for f in findings if (f.advisory, f.package.name) not in known]
