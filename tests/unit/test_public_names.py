"""The names that authors import from `mcp_tasks`."""

from __future__ import annotations

import pytest


def test_the_public_names_are_all_there() -> None:
    import mcp_tasks

    for name in mcp_tasks.__all__:
        assert getattr(mcp_tasks, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        mcp_tasks.nothing  # noqa: B018
