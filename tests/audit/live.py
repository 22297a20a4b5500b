"""`make audit`: ask the advisory services about every lock file, and renew the snapshot.

What cannot be reached is an error that says so: an audit that did not take place never passes.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from local import uv
from local.console import say, step
from local.environment import STATE, tool_environment
from tests.paths import ROOT

from .advisories import ACCEPTED, RANGES, RENEW, SNAPSHOT, Accepted, Snapshot, problems, reduce
from .locks import lock_files, locked

OSV = "https://api.osv.dev/v1/query"
SECONDS = 30
AT_ONCE = 8
ENVIRONMENTS = (("--group=tests",), ("--only-group=emulator",))
"""What is installed together of the repository's uv.lock, as options of `uv export`. The first has
what the functions need. Another uv.lock has no groups.
"""


class NotAuditedError(Exception):
    """A service did not answer, or not with an audit."""


def uv_audit(lock: Path, accepted: Iterable[Accepted] = (), osv: str = OSV) -> list[str]:
    """Ask OSV about a uv.lock, by pip-audit; the result is what it found."""
    found: set[str] = set()
    for groups in ENVIRONMENTS if lock.parent == ROOT else ((),):
        command: list[str | Path] = [
            uv.program(),
            "export",
            "--quiet",
            "--frozen",
            "--no-emit-project",
            *groups,
        ]
        done = subprocess.run(command, cwd=lock.parent, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotAuditedError(_end_of(done.stderr))
        with tempfile.TemporaryDirectory() as folder:
            requirements = Path(folder) / "requirements.txt"
            requirements.write_text(done.stdout)
            found.update(pip_audit(requirements, accepted, osv))
    return sorted(found)


def pip_audit(requirements: Path, accepted: Iterable[Accepted] = (), osv: str = OSV) -> list[str]:
    """Ask OSV about a requirements file, by pip-audit; the result is what it found.

    The file has hashes and is complete, so nothing is resolved or installed. OSV and not
    PyPI's JSON API: there, a package that the service does not know counts as skipped.
    """
    command = [sys.executable, "-m", "pip_audit", "--strict", "--require-hashes", "--disable-pip"]
    command += ["--vulnerability-service", "osv", "--osv-url", osv, "--timeout", str(SECONDS)]
    command += ["--cache-dir", str(STATE / "pip-audit")]
    command += ["--progress-spinner", "off", "--format", "json", "--requirement", str(requirements)]
    for entry in accepted:
        command += ["--ignore-vuln", entry.advisory]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise NotAuditedError(_end_of(done.stderr)) from None
    skipped = [entry["name"] for entry in report["dependencies"] if "skip_reason" in entry]
    if skipped:
        raise NotAuditedError(f"pip-audit skipped {', '.join(skipped)}")
    return [
        f"{entry['name']} {entry['version']}: {found['id']}"
        for entry in report["dependencies"]
        for found in entry["vulns"]
    ]


def npm_audit(lock: Path, accepted: Iterable[Accepted] = ()) -> list[str]:
    """Ask the npm registry about a package-lock.json; the result is what it found."""
    command = ["npm", "audit", "--package-lock-only", "--json", "--fetch-retries=0"]
    command += [f"--fetch-timeout={SECONDS * 1000}"]
    done = subprocess.run(
        command,
        cwd=lock.parent,
        env=tool_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise NotAuditedError(_end_of(done.stderr)) from None
    if "vulnerabilities" not in report:
        raise NotAuditedError(report.get("message") or _end_of(done.stderr))
    known = {entry.advisory for entry in accepted}
    advisories = {
        (via["name"], via["url"].rpartition("/")[2], via["title"])
        for entry in report["vulnerabilities"].values()
        for via in entry["via"]
        if isinstance(via, dict)
    }
    return [f"{name}: {id} {title}" for name, id, title in sorted(advisories) if id not in known]


def renew(snapshot: Path = SNAPSHOT, root: Path = ROOT, osv: str = OSV) -> Snapshot:
    """Ask OSV for all advisories of all locked packages, and write them; all or nothing."""
    wanted = {
        ecosystem: sorted({package.name for package in locked(ecosystem, root)})
        for ecosystem in RANGES
    }
    pairs = [(ecosystem, name) for ecosystem, names in wanted.items() for name in names]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda pair: _advisories(pair[0], pair[1], osv), pairs))
    records = {record["id"]: record for answer in answers for record in answer}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    advisories = [
        reduce(record, pairs) for record in records.values() if not record.get("withdrawn")
    ]
    lost = [advisory["id"] for advisory in advisories if not advisory["affected"]]
    if lost:
        raise NotAuditedError(f"these records name no locked package: {', '.join(lost)}")
    renewed = Snapshot(
        {
            ecosystem: {"as_of": today, "source": osv, "packages": names}
            for ecosystem, names in wanted.items()
        },
        advisories,
    )
    renewed.save(snapshot)
    return renewed


def _advisories(ecosystem: str, name: str, osv: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"package": {"ecosystem": ecosystem, "name": name}}
    while True:
        request = Request(osv, json.dumps(query).encode(), {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=SECONDS) as response:
                answer = json.load(response)
        except (URLError, OSError, ValueError) as error:
            raise NotAuditedError(f"{osv} on {name}: {error}") from None
        found += answer.get("vulns", [])
        if not answer.get("next_page_token"):
            return found
        query["page_token"] = answer["next_page_token"]


def _end_of(output: str) -> str:
    return output.strip().rpartition("\n")[2] or "no answer"


def main() -> int:
    """Audit, renew, and tell; 1 when something was found or could not be asked."""
    accepted = Accepted.load()
    found: list[str] = []
    missing: list[str] = []
    audits = [(uv_audit, "PyPI"), (npm_audit, "npm")]
    for audit, ecosystem in audits:
        for lock in lock_files(ecosystem):
            name = str(lock.relative_to(ROOT))
            try:
                with step(f"auditing {name}"):
                    found += [f"{name}: {finding}" for finding in audit(lock, accepted)]
            except NotAuditedError as error:
                missing.append(f"{name} was not audited: {error}")
    try:
        with step(f"renewing {SNAPSHOT.relative_to(ROOT)}"):
            snapshot = renew()
        everything = {package for ecosystem in RANGES for package in locked(ecosystem)}
        today = datetime.datetime.now(datetime.UTC).date()
        found += problems(snapshot.findings(everything), accepted, today)
    except NotAuditedError as error:
        missing.append(f"{SNAPSHOT.relative_to(ROOT)} stays as it was: {error}")
    for line in found:
        say(f"found: {line}")
    for line in missing:
        say(f"error: {line}")
    if missing:
        say(f"The audit did not take place as a whole. {RENEW}")
    if found:
        say(f"Update the package, or say in {ACCEPTED.relative_to(ROOT)} why it is harmless here.")
    return 1 if found or missing else 0


if __name__ == "__main__":
    sys.exit(main())
