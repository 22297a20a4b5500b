"""The requests of the tasks extension."""

from __future__ import annotations

import asyncio

from mcp_tasks_client import cancel_task, get_task, update_task
from tests.unit.client.scripted import ID, YES, FakeSession, task, wire


def test_every_request_names_its_task_for_the_mcp_name_header(session: FakeSession) -> None:
    """tasks.md, "Routing Headers": the SDK takes the header from the parameter `name_param`."""
    one = session.scripted(task("working"))

    async def all_three() -> None:
        await get_task(one, ID)
        await update_task(one, ID, {"a": YES})
        await cancel_task(one, ID)

    asyncio.run(all_three())
    assert session.log == ["tasks/get", "tasks/update", "tasks/cancel"]
    names = [type(request).name_param or "" for request in session.requests]
    assert [wire(r)["params"][n] for r, n in zip(session.requests, names, strict=True)] == [ID] * 3
