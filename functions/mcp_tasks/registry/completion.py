"""Values to choose from, for the arguments of prompts and the variables of URI templates
(server/utilities/completion.mdx).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pydantic import BaseModel

from . import schema

Completer = Callable[[str, Mapping[str, str]], Iterable[str]]
"""From what was typed, and the other arguments so far, to values, best first."""


def completers(
    model: type[BaseModel], declared: Mapping[str, Completer | Iterable[str]], where: str
) -> dict[str, Completer]:
    """A completer per parameter: the declared one, or the choices of an enum or a Literal.

    Raises ValueError for a declared one that belongs to no parameter.
    """
    fields = schema.parameters(model)
    unknown = sorted(set(declared) - set(fields))
    if unknown:
        raise ValueError(f"{where}: complete names {', '.join(unknown)}, which is no parameter")
    found: dict[str, Completer] = {}
    for name, field in fields.items():
        values = declared.get(name) or schema.choices(field.annotation)
        found[name] = values if callable(values) else _from(tuple(values))
    return found


def _from(values: tuple[str, ...]) -> Completer:
    """Those of the values that begin as typed, then those that contain it."""

    def complete(typed: str, _: Mapping[str, str]) -> list[str]:
        wanted = typed.casefold()
        matching = [value for value in values if wanted in value.casefold()]
        return sorted(matching, key=lambda value: not value.casefold().startswith(wanted))

    return complete
