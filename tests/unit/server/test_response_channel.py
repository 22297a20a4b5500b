"""The size of a response, as it counts in a function's return value."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_tasks.server.response_channel import response_size


@given(st.recursive(st.text() | st.integers() | st.none(), st.lists))
def test_the_size_of_a_response_is_that_in_the_return_value(value: Any) -> None:
    """A proxy response is JSON, in which the body is a string."""
    text = json.dumps(value)
    assert response_size(text) == len(json.dumps(text)) - len('""')
