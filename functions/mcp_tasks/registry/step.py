"""Functions that a tool runs besides its own: a workflow's steps, and `ask_first`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter

from . import results, schema
from .context import CONTEXTS, Context
from .decorated_function import call, context_parameter


@dataclass(frozen=True)
class Step:
    """A function that a workflow's states call, or that a tool runs as its `ask_first`."""

    function: Callable[..., Any]
    arguments: type[BaseModel]
    result: TypeAdapter[Any] | None
    """The type of the result; None when it is not checked."""
    context_parameter: str | None
    """The parameter that takes the TaskContext."""

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Step:
        """The step that a function declares by its signature. Raises TypeError."""
        context = context_parameter(function)
        return cls(
            function=function,
            arguments=schema.parameters_model(function, CONTEXTS),
            result=results.result_type(function),
            context_parameter=context,
        )

    def call(self, arguments: Any, task: Context) -> Any:
        """Check the input, run the function, and return its result as JSON values.

        Raises schema.InvalidArguments when the input does not fit the step's parameters, and
        pydantic's ValidationError when the result does not have the declared type.
        """
        value = self.run(schema.validate_arguments(self.arguments, arguments), task)
        if self.result is None:
            return value
        return self.result.dump_python(self.result.validate_python(value), mode="json")

    def run(self, values: Mapping[str, Any], task: Context) -> Any:
        """Run the function on checked arguments."""
        return call(self.function, values, self.context_parameter, task)
