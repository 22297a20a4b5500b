"""The stack whose dead-letter queues are replayed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from operations.replay import messages
from tests.unit.operations.replay.cloud import Cloud


@pytest.fixture
def cloud(moto: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setattr(messages, "WAIT_SECONDS", 0)
    made = Cloud()
    yield made
    for name, value in made.outputs.items():
        if name.endswith("QueueUrl"):
            made.sqs.delete_queue(QueueUrl=value)
