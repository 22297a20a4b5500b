"""The functions' code: for AWS's Python and processor, without what AWS brings, always the same."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra import bundle
from infra.bundle import BundleError, Target, bundled
from infra.profile import AWS
from mcp_tasks.registry.catalogue import Catalogue
from tests.infra.assembly import Assembly
from tests.paths import ROOT

AARCH64 = 183
"""`e_machine` of an ELF header (System V ABI, "ELF Header")."""
UNZIPPED_LIMIT = 250 * 1024 * 1024
"""Lambda's, for a deployment package."""


def test_the_bundle_has_one_handler_per_function(on_aws: Assembly) -> None:
    for function in on_aws.resources("AWS::Lambda::Function").values():
        module = function["Handler"].rsplit(".", 1)[0].replace(".", "/")
        assert (on_aws.bundle / f"{module}.py").is_file()


def test_what_starts_a_streaming_function_is_executable(streaming: Assembly) -> None:
    """Lambda runs AWS_LAMBDA_EXEC_WRAPPER as a program; /var/task is the unzipped bundle."""
    function = streaming.resources("AWS::Lambda::Function")["Api/Function"]
    wrapper = function["Environment"]["Variables"]["AWS_LAMBDA_EXEC_WRAPPER"]
    file = streaming.bundle / wrapper.removeprefix("/var/task/")
    assert file.stat().st_mode & 0o111 == 0o111
    assert file.read_text().startswith("#!")


def test_all_functions_share_one_bundle(fork: Assembly) -> None:
    keys = {f["Code"]["S3Key"] for f in fork.resources("AWS::Lambda::Function").values()}
    assert keys == {f"{fork.bundle.name.removeprefix('asset.')}.zip"}


def test_native_code_is_for_aarch64(on_aws: Assembly) -> None:
    libraries = [path for path in on_aws.bundle.rglob("*") if ".so" in path.suffixes]
    assert libraries, "pydantic has one"
    suffixes = (".cpython-313-aarch64-linux-gnu.so", ".abi3.so")
    for library in libraries:
        header = library.read_bytes()[:20]
        assert header[:4] == b"\x7fELF", library
        assert struct.unpack_from("<H", header, 18) == (AARCH64,), library
        assert library.name.endswith(suffixes), library


def test_every_wheel_runs_on_the_target(on_aws: Assembly) -> None:
    """PEP 425 tags: CPython 3.13 on aarch64, the stable ABI of an earlier one, or any Python 3."""
    for file in on_aws.bundle.glob("*.dist-info/WHEEL"):
        tags = [line[5:] for line in file.read_text().splitlines() if line.startswith("Tag: ")]
        assert tags, file
        for tag in tags:
            python, abi, platform = tag.split("-")
            if platform == "any":
                assert (abi, "py3" in python) == ("none", True), file
            else:
                assert abi in ("cp313", "abi3"), file
                assert python == "cp313" if abi == "cp313" else int(python[3:]) <= 13, file
                assert platform.endswith("_aarch64"), file
                assert platform.startswith("manylinux"), file


def test_the_bundle_holds_exactly_what_the_lock_file_names(on_aws: Assembly) -> None:
    text = (ROOT / "functions" / "requirements.txt").read_text()
    locked = set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))
    found = {
        path.name.split("-")[0].replace("_", "-").lower()
        for path in on_aws.bundle.glob("*.dist-info")
    }
    assert {"cryptography", "jsonschema-rs", "pydantic"} <= locked
    assert found == locked


def test_what_the_runtime_brings_or_nobody_needs_is_left_out(on_aws: Assembly) -> None:
    names = {path.name for path in on_aws.bundle.iterdir()}
    assert not names & {"boto3", "botocore", "bin", "pip", "aws_cdk", "infra", "tests"}
    assert not list(on_aws.bundle.rglob(".*"))


def test_the_bundle_fits_lambda_by_far(on_aws: Assembly) -> None:
    size = sum(path.stat().st_size for path in on_aws.bundle.rglob("*") if path.is_file())
    assert size < UNZIPPED_LIMIT / 5


def test_source_is_not_compiled_for_another_python(on_aws: Assembly) -> None:
    """Files for this machine's version would only be weight."""
    ours = sys.version_info[:2] == AWS.target.python
    assert bool(list(on_aws.bundle.rglob("*.pyc"))) == ours


def test_source_is_compiled_for_the_same_python(on_this_machine: Assembly) -> None:
    """Which halves the cold start (infra/bundle.py)."""
    for folder in ("mcp_tasks", "api", "tools", "pydantic"):
        assert list((on_this_machine.bundle / folder).rglob("*.pyc")), folder


@pytest.mark.parametrize(("one", "other"), [("aws", "open"), ("local", "local again")])
def test_the_same_code_gives_the_same_bytes(
    assemblies: dict[str, Assembly], one: str, other: str
) -> None:
    """Else every deploy would replace every function."""
    first, second = assemblies[one].bundle, assemblies[other].bundle
    files = {path.relative_to(first) for path in first.rglob("*") if path.is_file()}
    assert files == {path.relative_to(second) for path in second.rglob("*") if path.is_file()}
    for file in files:
        assert (first / file).read_bytes() == (second / file).read_bytes(), file
    assert first.name == second.name, "the CDK's hash"


class Pip:
    """Stands in for `subprocess.run`: installs one file, or fails."""

    def __init__(self, error: str = "", meanwhile: Callable[[], object] = bool) -> None:
        self.commands: list[list[str]] = []
        self._error = error
        self._meanwhile = meanwhile

    def __call__(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        self.commands.append(command)
        self._meanwhile()
        if not self._error:
            folder = Path(command[command.index("--target") + 1])
            (folder / "bin").mkdir(parents=True)
            (folder / "package.py").write_text("x = 1\n")
        return subprocess.CompletedProcess(command, int(bool(self._error)), "", self._error)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    folder = tmp_path / "bundles"
    monkeypatch.setattr(bundle, "CACHE", folder)
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A tools folder with things that do not belong into a bundle."""
    folder = tmp_path / "tools"
    for name in ("greet.py", ".secrets", "__pycache__/greet.pyc", ".venv/lib.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


TARGET = Target(python=(3, 13), architecture="aarch64")


def test_a_bundle_is_a_folder_of_its_own_and_leaves_nothing(
    cache: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several syntheses may run at once: tests, a deploy, an editor's."""
    pip = Pip()
    monkeypatch.setattr("infra.bundle.subprocess.run", pip)
    with bundled(Catalogue([]), tools, TARGET) as one, bundled(Catalogue([]), tools, TARGET) as two:
        assert one != two
        for folder in (one, two):
            assert [path.name for path in (folder / "tools").iterdir()] == ["greet.py"]
            assert (folder / "package.py").is_file()
            assert not (folder / "bin").exists()
    assert [path.name.split("-")[0] for path in cache.iterdir()] == ["dependencies"]
    assert len(pip.commands) == 1, "dependencies are installed once per lock file"


def test_dependencies_that_somebody_else_installed_first_are_used(
    cache: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another_synthesis() -> None:
        monkeypatch.setattr("infra.bundle.subprocess.run", Pip())
        with bundled(Catalogue([]), tools, TARGET):
            pass

    monkeypatch.setattr("infra.bundle.subprocess.run", Pip(meanwhile=another_synthesis))
    with bundled(Catalogue([]), tools, TARGET) as folder:
        assert (folder / "package.py").is_file()
    assert len(list(cache.iterdir())) == 1


def test_a_dependency_without_a_wheel_says_so(
    cache: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.bundle.subprocess.run", Pip(error="no matching distribution"))
    with (
        pytest.raises(BundleError, match=r"(?s)functions/requirements\.txt.*no matching.*wheel"),
        bundled(Catalogue([]), tools, TARGET),
    ):
        pass
    assert not list(cache.iterdir()), "nothing half-installed is found the next time"


def test_only_locked_wheels_are_installed(
    cache: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Docker: pip fetches for another platform when it need not build."""
    pip = Pip()
    monkeypatch.setattr("infra.bundle.subprocess.run", pip)
    with bundled(Catalogue([]), tools, TARGET):
        pass
    (command,) = pip.commands
    assert {"--require-hashes", "--only-binary=:all:", "--python-version", "3.13"} <= set(command)
    assert str(ROOT / "functions" / "requirements.txt") in command
