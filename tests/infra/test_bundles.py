"""The functions' code: for AWS's Python and processor, without what AWS brings, always the same."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra import bundle, byte_code, packages
from infra.bundle import UNZIPPED_LIMIT_BYTES, BundleError, bundled
from infra.deployment_profiles import AWS
from infra.packages import LAMBDA
from mcp_tasks.registry.catalogue import Catalogue
from tests.infra.assembly import Assembly
from tests.wheels import write_wheel

AARCH64 = 183
"""`e_machine` of an ELF header (System V ABI, "ELF Header")."""


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
    text = packages.requirements()
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
    assert size < UNZIPPED_LIMIT_BYTES / 5


def test_source_is_compiled_for_lambdas_python_or_not_at_all(on_aws: Assembly) -> None:
    """Files for another version would only be weight."""
    found = byte_code.interpreter(AWS.target.python) is not None
    names = [path.name for path in on_aws.bundle.rglob("*.pyc")]
    assert bool(names) == found
    assert all(name.endswith(".cpython-313.pyc") for name in names)


def test_source_is_compiled_for_the_same_python(on_this_machine: Assembly) -> None:
    """Which halves the cold start (infra/byte_code.py)."""
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


RUN = subprocess.run


class Uv:
    """Stands in for `subprocess.run`: uv that exports one pin and installs one file, or fails."""

    def __init__(
        self, name: str = "package.py", error: str = "", meanwhile: Callable[[], object] = bool
    ) -> None:
        self._name = name
        self.installs: list[list[str]] = []
        self._error = error
        self._meanwhile = meanwhile

    def __call__(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        if command[0] != "uv":
            return RUN(command, **options)
        if command[1] == "export":
            return subprocess.CompletedProcess(command, 0, "package==1\n", "")
        self.installs.append(command)
        self._meanwhile()
        if not self._error:
            folder = Path(command[command.index("--target") + 1])
            (folder / "bin").mkdir(parents=True)
            (folder / ".lock").touch()
            (folder / self._name).write_text("x = 1\n")
        return subprocess.CompletedProcess(command, int(bool(self._error)), "", self._error)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, on a machine that has Lambda's Python."""
    folder = tmp_path / "bundles"
    monkeypatch.setattr(bundle, "CACHE", folder)
    monkeypatch.setattr(byte_code, "interpreter", lambda version: sys.executable)
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A tools folder with things that do not belong into a bundle."""
    folder = tmp_path / "tools"
    for name in ("greet.py", ".secrets", "__pycache__/greet.pyc", ".venv/lib.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch) -> Uv:
    """A uv that installs what it is asked for."""
    uv = Uv()
    monkeypatch.setattr("infra.packages.subprocess.run", uv)
    return uv


def test_a_bundle_is_a_folder_of_its_own_and_leaves_nothing(
    cache: Path, tools: Path, uv: Uv, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several syntheses may run at once: tests, a deploy, an editor's."""
    monkeypatch.setattr(byte_code, "interpreter", lambda version: None)
    with bundled(Catalogue([]), tools, LAMBDA) as one, bundled(Catalogue([]), tools, LAMBDA) as two:
        assert one != two
        for folder in (one, two):
            assert [path.name for path in (folder / "tools").iterdir()] == ["greet.py"]
            assert (folder / "package.py").is_file()
            assert not (folder / "bin").exists()
            assert not list(folder.rglob(".*"))
    assert [path.name.split("-")[0] for path in cache.iterdir()] == ["dependencies"]
    assert len(uv.installs) == 1, "dependencies are installed once per what is locked"


def test_dependencies_that_another_synthesis_installed_first_are_used(
    cache: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another_synthesis() -> None:
        monkeypatch.setattr("infra.packages.subprocess.run", Uv())
        with bundled(Catalogue([]), tools, LAMBDA):
            pass

    monkeypatch.setattr("infra.packages.subprocess.run", Uv(meanwhile=another_synthesis))
    with bundled(Catalogue([]), tools, LAMBDA) as folder:
        assert (folder / "package.py").is_file()
    assert len(list(cache.iterdir())) == 1


def test_a_dependency_without_a_wheel_says_so(
    cache: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infra.packages.subprocess.run", Uv(error="has no usable wheels"))
    with (
        pytest.raises(BundleError, match=r"(?s)py313-aarch64.*no usable wheels.*needs a wheel"),
        bundled(Catalogue([]), tools, LAMBDA),
    ):
        pass
    assert not list(cache.iterdir()), "nothing half-installed is found the next time"


def test_only_locked_wheels_are_installed(cache: Path, tools: Path, uv: Uv) -> None:
    """Without Docker: uv fetches for another platform when it need not build."""
    with bundled(Catalogue([]), tools, LAMBDA):
        pass
    (command,) = uv.installs
    assert {"--require-hashes", "--only-binary", ":all:", "--python-version", "3.13"} <= set(
        command
    )
    assert command[command.index("--python-platform") + 1] == "aarch64-manylinux_2_34"


def test_a_wheel_with_another_hash_than_the_locked_one_is_refused(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, "package", "1")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    requirements = tmp_path / "functions.txt"

    def install(digest: str) -> None:
        pin = f"package==1 --hash=sha256:{digest}"
        requirements.write_text(f"--no-index\n--find-links {tmp_path}\n{pin}\n")
        packages.install(requirements, tmp_path / "target", LAMBDA)

    with pytest.raises(packages.PackagesError, match="Hash mismatch"):
        install("0" * 64)
    install(digest)
    assert (tmp_path / "target" / "package.py").is_file()


def test_a_package_may_not_have_the_name_of_the_bundles_own_code(
    cache: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else functions would import a mixture of the two."""
    monkeypatch.setattr("infra.packages.subprocess.run", Uv(name="tools"))
    with pytest.raises(BundleError, match="brings tools"), bundled(Catalogue([]), tools, LAMBDA):
        pass


def test_a_bundle_that_lambda_would_refuse_names_the_largest_packages(tmp_path: Path) -> None:
    """250 MB unzipped: AWS Lambda Developer Guide, "Lambda quotas"."""
    assert UNZIPPED_LIMIT_BYTES == 262_144_000
    megabyte = 1024 * 1024
    for name, size in {
        "frames/__init__.py": 3 * megabyte,
        "frames.libs/blas.so": 2 * megabyte,
        "frames-1.0.dist-info/RECORD": 1,
        "tools/greet.py": megabyte - 1,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    bundle.check_size(tmp_path, 6 * megabyte)
    with pytest.raises(BundleError, match=r"6 MB unzipped.* 5 MB.*: frames 5 MB, tools 1 MB\."):
        bundle.check_size(tmp_path, 5 * megabyte)


def test_a_bundle_over_the_limit_is_not_synthesized(
    cache: Path, tools: Path, uv: Uv, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "UNZIPPED_LIMIT_BYTES", 2 * 1024 * 1024)
    (tools / "data.bin").write_bytes(bytes(2 * 1024 * 1024))
    with pytest.raises(BundleError, match="tools 2 MB"), bundled(Catalogue([]), tools, LAMBDA):
        pass


def test_a_missing_python_is_said_with_what_it_costs(
    cache: Path, tools: Path, uv: Uv, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(byte_code, "interpreter", lambda version: None)
    with bundled(Catalogue([]), tools, LAMBDA) as folder:
        assert not list(folder.rglob("*.pyc"))
    assert re.search(r"WARNING: .* no Python 3\.13.* twice as long", capsys.readouterr().err)


def test_byte_code_is_made_by_the_interpreter_of_lambdas_python(
    cache: Path, tools: Path, uv: Uv, capsys: Any
) -> None:
    """Here, the one that runs the tests stands in for it."""
    with bundled(Catalogue([]), tools, LAMBDA) as folder:
        for source in ("package.py", "api/handler.py", "tools/greet.py"):
            compiled = Path(importlib.util.cache_from_source(str(folder / source)))
            assert compiled.read_bytes()[4:8] == b"\x01\0\0\0", "unchecked hash: PEP 552"
    assert capsys.readouterr().err == ""
