"""Run a tool against the journal of one of its tasks: does it take the way that it took before?

Nothing is done that is not recorded, and nothing is written. A step's function is not called: its
result is in the journal.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..durable.journal import Journal
from ..durable.operations import DurableOperations
from ..durable.run import Mode, Run
from ..durable.suspension import NonDeterminism, ReplayEnded
from ..registry.context import InputRequired, TaskContext
from ..registry.function_tool import FunctionTool


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay has shown."""

    operations: int
    """How many of the journal's operations the tool came to."""
    end: str
    """Where it left the record."""
    difference: str | None = None
    """What it did otherwise than before."""
    error: Exception | None = None
    """What it has raised."""


def replay(tool: FunctionTool, journal: Journal, arguments: Mapping[str, Any]) -> Replayed:
    """Run a tool from its first line to the end of its record. Secrets are empty texts.

    Raises schema.InvalidArguments for arguments that the tool does not take any more, and
    JournalUnavailable.
    """
    journal.read()
    run = Run(journal, journal.clock, sys.maxsize, tool.ttl, Mode.REPLAY)
    operations = DurableOperations(run)
    context = TaskContext(
        task_id=journal.task_id,
        answers=journal.answers(),
        secrets=defaultdict(str),
        operations=operations,
    )
    values = tool.check_arguments(arguments)
    try:
        tool.run(values, context)
        operations.check_end()
        end = "returns its result"
    except ReplayEnded:
        end = "comes to an operation that is not recorded"
    except InputRequired as required:
        end = f"asks {', '.join(required.questions)}"
    except NonDeterminism as difference:
        return Replayed(operations.count, "takes another way", str(difference))
    except Exception as error:
        end = f"raises {type(error).__name__}: {error}"
        return Replayed(operations.count, end, error=error)
    return Replayed(operations.count, end)
