"""Functions that a test creates by itself, from a few lines of code."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

TRUST: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}


def archive(name: str, code: str) -> bytes:
    """A ZIP archive with one executable file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        info = zipfile.ZipInfo(name)
        info.external_attr = 0o755 << 16
        file.writestr(info, code)
    return stream.getvalue()


@contextmanager
def function(aws: Any, name: str, runtime: str, handler: str, code: bytes) -> Iterator[str]:
    """Create a function with a role that allows nothing; yields its name."""
    role = {"RoleName": name, "AssumeRolePolicyDocument": json.dumps(TRUST)}
    arn = aws("iam").create_role(**role)["Role"]["Arn"]
    about = {"FunctionName": name, "Role": arn, "Runtime": runtime, "Handler": handler}
    aws("lambda").create_function(**about, Code={"ZipFile": code}, Timeout=20)
    try:
        yield name
    finally:
        aws("lambda").delete_function(FunctionName=name)
        aws("iam").delete_role(RoleName=name)


def invoked(aws: Any, name: str) -> Any:
    """What the function returns. Raises AssertionError when it fails."""
    response = aws("lambda").invoke(FunctionName=name, Payload=b"{}")
    answer = json.load(response["Payload"])
    assert "FunctionError" not in response, answer
    return answer
