"""What a tool declares of its surroundings, and what its context gives it."""

from __future__ import annotations

from typing import Any

import pytest
from aws_lambda_powertools.utilities import parameters

from mcp_tasks import TaskContext, tool
from mcp_tasks.registry import secret_values
from mcp_tasks.registry.secret_reference import SecretReference, secret_reference
from mcp_tasks.registry.secret_values import SecretUnavailable, SecretValues
from tests.unit.support.aws import real

SECRET_ARN = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:weather/key-AbCdEf"
PARAMETER_ARN = "arn:aws:ssm:eu-west-1:111122223333:parameter/weather"


@pytest.mark.parametrize(
    ("text", "service"),
    [
        ("weather", "secretsmanager"),
        ("weather/api-key", "secretsmanager"),
        (SECRET_ARN, "secretsmanager"),
        ("/weather/api-key", "ssm"),
        (PARAMETER_ARN, "ssm"),
    ],
)
def test_a_reference_says_which_service_has_it(text: str, service: Any) -> None:
    assert secret_reference(text) == SecretReference(service, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "/weather/",
        "//weather",
        "a b",
        "weather*",
        "arn:aws:s3:::bucket/key",
        "arn:aws:ssm:eu-west-1:111122223333:secret:weather",
        "arn:aws:secretsmanager:eu-west-1:111122223333:parameter/weather",
        f"{SECRET_ARN}*",
    ],
)
def test_what_names_no_secret_is_refused_without_being_repeated(text: str) -> None:
    """An author may have put the secret itself there."""
    with pytest.raises(
        ValueError, match=r"^use: secrets\['KEY'\]: a secret is named by"
    ) as refused:

        @tool(secrets={"KEY": text})
        def use() -> str:
            """Use it."""
            return ""

    assert not text or len(text) < 3 or text not in str(refused.value)


@pytest.mark.parametrize(
    "declared", [["KEY"], {"KEY": 5}, {"a-b": "x"}, {"1A": "x"}, {7: "x"}, "x"]
)
@pytest.mark.parametrize("what", ["secrets", "env"])
def test_both_are_texts_by_name(what: str, declared: Any) -> None:
    with pytest.raises(ValueError, match=f"^use: {what} is a dict of texts by name"):

        @tool(**{what: declared})
        def use() -> str:
            """Use it."""
            return ""


@pytest.mark.parametrize("name", ["AWS_REGION", "LAMBDA_X", "TASKS_TABLE", "TOOL", "PYTHONPATH"])
def test_a_variable_of_the_server_cannot_be_set(name: str) -> None:
    with pytest.raises(ValueError, match=r"is a name of Lambda's or of the server's own"):

        @tool(env={name: "x"})
        def use() -> str:
            """Use it."""
            return ""


def test_a_test_gives_a_tool_its_secrets() -> None:
    task = TaskContext(secrets={"KEY": "value"})
    assert task.secret("KEY") == "value"
    assert "value" not in repr(task)
    with pytest.raises(LookupError, match=r"OTHER is not among the tool's secrets"):
        task.secret("OTHER")


@pytest.fixture
def values(moto: None, no_account: None, monkeypatch: pytest.MonkeyPatch) -> SecretValues:
    """The values of one secret and one parameter, which nothing has read yet."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    parameters.clear_caches()  # type: ignore[no-untyped-call]
    return SecretValues({"KEY": "weather", "TOKEN": "/weather", "GONE": "gone"})


def test_values_are_read_once_in_five_minutes_and_then_as_they_are(
    values: SecretValues,
) -> None:
    """A rotated secret comes in."""
    secrets, ssm = real("secretsmanager"), real("ssm")
    secrets.create_secret(Name="weather", SecretString="old")
    ssm.put_parameter(Name="/weather", Value="old", Type="SecureString")
    assert (values["KEY"], values["TOKEN"]) == ("old", "old")
    secrets.put_secret_value(SecretId="weather", SecretString="new")
    ssm.put_parameter(Name="/weather", Value="new", Type="SecureString", Overwrite=True)
    assert (values["KEY"], values["TOKEN"]) == ("old", "old")
    # As after MAX_AGE_SECONDS.
    parameters.clear_caches()  # type: ignore[no-untyped-call]
    assert (values["KEY"], values["TOKEN"]) == ("new", "new")
    assert secret_values.MAX_AGE_SECONDS == 300


def test_a_missing_secret_is_named_for_the_operator(
    values: SecretValues, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SecretUnavailable, match=r"^gone could not be read from secretsmanager"):
        values["GONE"]
    (line,) = caplog.records
    assert line.message.startswith("gone could not be read from secretsmanager; create it")
    assert (vars(line)["secret"], vars(line)["error"]) == ("GONE", "ResourceNotFoundException")


def test_values_are_not_shown(values: SecretValues) -> None:
    assert (repr(values), list(values), len(values)) == (
        "SecretValues(KEY, TOKEN, GONE)",
        ["KEY", "TOKEN", "GONE"],
        3,
    )
