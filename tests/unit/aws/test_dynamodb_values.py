"""DynamoDB's notation of values, against boto3's converter, which is its reference."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.aws.dynamodb_values import from_attribute, to_attribute

DIGITS: Final = 10**37
"""DynamoDB's numbers have 38 digits."""

VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-DIGITS, DIGITS) | st.text(),
    lambda inner: st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_of_a_row_is_read_back(value: Any) -> None:
    assert from_attribute(to_attribute(value)) == value


@given(VALUES)
def test_values_are_written_as_boto3_writes_them(value: Any) -> None:
    assert to_attribute(value) == TypeSerializer().serialize(value)


@given(VALUES)
def test_values_are_read_as_boto3_reads_them(value: Any) -> None:
    attribute = TypeSerializer().serialize(value)
    read = from_attribute(attribute)
    assert read == TypeDeserializer().deserialize(attribute)
    assert not _holds_decimal(read)


@pytest.mark.parametrize("flag", [True, False])
def test_a_boolean_is_no_number(flag: bool) -> None:
    assert to_attribute(flag) == {"BOOL": flag}
    assert from_attribute({"BOOL": flag}) is flag


@pytest.mark.parametrize("value", [0.5, b"x", (1,), {1}, Decimal(1), object()])
def test_a_type_that_rows_do_not_use_is_an_error(value: Any) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        to_attribute(value)


@pytest.mark.parametrize("attribute", [{"SS": ["a"]}, {"B": b"x"}, {"NS": ["1"]}])
def test_an_attribute_that_rows_do_not_use_is_an_error(attribute: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="attribute"):
        from_attribute(attribute)


def _holds_decimal(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_decimal, value.values()))
    return isinstance(value, Decimal)


def test_a_list_keeps_its_order() -> None:
    attribute = to_attribute(["b", "a"])
    assert attribute == {"L": [{"S": "b"}, {"S": "a"}]}
    assert from_attribute(attribute) == ["b", "a"]
