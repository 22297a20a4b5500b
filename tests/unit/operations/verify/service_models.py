"""Whether AWS would take a call, and could answer so: botocore's models of the services say it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from botocore import xform_name
from botocore.exceptions import ParamValidationError
from botocore.session import Session
from botocore.validate import validate_parameters

PARSED = {"TemplateBody"}
"""What botocore turns from JSON into an object."""


@cache
def _service(name: str) -> Any:
    return Session().get_service_model(name)


@cache
def _operation(service: str, method: str) -> Any:
    """The model of what a client's method calls."""
    names = [name for name in _service(service).operation_names if xform_name(name) == method]
    assert names, f"{service} has no {method}"
    return _service(service).operation_model(names[0])


def check_call(service: str, method: str, arguments: dict[str, Any]) -> None:
    """Fail the test when a parameter is missing, unknown, or of another type."""
    shape = _operation(service, method).input_shape
    assert shape or not arguments, f"{service}.{method} takes nothing"
    try:
        validate_parameters(arguments, shape)
    except ParamValidationError as error:
        pytest.fail(f"{service}.{method}: {error}")


def check_answer(service: str, method: str, answer: Any) -> None:
    """Fail the test when the answer has a member that AWS has not. It need not have all."""
    if shape := _operation(service, method).output_shape:
        _check(shape, answer, f"{service}.{method}")


def _check(shape: Any, value: Any, where: str) -> None:
    match shape.type_name:
        case "structure":
            assert isinstance(value, dict), f"{where} is a structure"
            for name, member in value.items():
                assert name in shape.members, f"{where} has no {name}: {sorted(shape.members)}"
                if name not in PARSED:
                    _check(shape.members[name], member, f"{where}.{name}")
        case "list":
            assert isinstance(value, list), f"{where} is a list"
            for member in value:
                _check(shape.member, member, where)
        case "map":
            assert isinstance(value, dict), f"{where} is a map"
            for member in value.values():
                _check(shape.value, member, where)
        case "string":
            assert isinstance(value, str), f"{where} is a string"
            enum = getattr(shape, "enum", [])
            assert not enum or value in enum, f"{where} is one of {enum}"
