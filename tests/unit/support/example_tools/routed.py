"""A tool whose parameters travel as headers too."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mcp_tasks import tool


@tool
def routed(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
    shard: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Shard"})] = 0,
    dry: Annotated[bool, Field(json_schema_extra={"x-mcp-header": "Dry-Run"})] = False,
) -> str:
    """Say where the call went."""
    return f"{region} {shard} {dry}"
