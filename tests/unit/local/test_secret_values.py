"""`secrets.toml`: the values of tools' secrets on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.session import get_session

from local.secret_values import FILE, read_values, write_values
from tests.paths import ROOT
from tests.unit.support.aws import real


def test_the_file_is_ignored_by_git() -> None:
    assert f"/{FILE.name}" in (ROOT / ".gitignore").read_text().splitlines()


def test_without_the_file_there_is_nothing_to_write(tmp_path: Path) -> None:
    assert read_values(tmp_path / "secrets.toml") == {}


@pytest.mark.parametrize("text", ['"a" = 5', "secret-value", '[a]\nb = "secret-value"'])
def test_a_file_that_is_wrong_is_refused_without_its_values(tmp_path: Path, text: str) -> None:
    file = tmp_path / "secrets.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r'^secrets.toml: .*: write "name" = "value"$') as refused:
        read_values(file)
    assert "secret-value" not in str(refused.value)


@pytest.mark.usefixtures("moto")
def test_values_are_written_and_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    file = tmp_path / "secrets.toml"
    for value in ("old", "new"):
        file.write_text(f'"local/api-key" = "{value}"\n"/local/token" = "{value}"\n')
        write_values(read_values(file), get_session())
        secret = real("secretsmanager").get_secret_value(SecretId="local/api-key")
        assert secret["SecretString"] == value
        parameter = real("ssm").get_parameter(Name="/local/token", WithDecryption=True)
        assert parameter["Parameter"]["Value"] == value
