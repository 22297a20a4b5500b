"""Completion of the arguments of prompts and of the variables of URI templates
(server/utilities/completion.mdx).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pydantic import BaseModel

from . import schema

Completer = Callable[[str, Mapping[str, str]], Iterable[str]]
"""A function from the text typed so far, and the other arguments, to values, best first."""


def completers(
    model: type[BaseModel], declared: Mapping[str, Completer | Iterable[str]], where: str
) -> dict[str, Completer]:
    """A completer for each parameter: the declared one, or else the values of its enum or Literal.

    Raises ValueError, which begins with `where`, for a declared one that belongs to no parameter.
    """
    fields = schema.parameters(model)
    unknown = sorted(set(declared) - set(fields))
    if unknown:
        raise ValueError(f"{where}: complete has {', '.join(unknown)}, which is no parameter")
    found: dict[str, Completer] = {}
    for name, field in fields.items():
        values = declared.get(name) or schema.choices(field.annotation)
        found[name] = values if callable(values) else _completer_of(tuple(values))
    return found


def _completer_of(values: tuple[str, ...]) -> Completer:
    """Offers the values that begin with the typed text, then those that contain it."""

    def complete(typed: str, _: Mapping[str, str]) -> list[str]:
        wanted = typed.casefold()
        matching = [value for value in values if wanted in value.casefold()]
        return sorted(matching, key=lambda value: not value.casefold().startswith(wanted))

    return complete
