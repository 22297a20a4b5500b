"""Arguments that were found to cost seconds or gigabytes, each for a reason of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from tests.campaigns.hostile.annotations import IMPORTS
from tests.campaigns.hostile.hostile_values import PRIME

MODEL: Final = "class M(BaseModel):\n    a: int; b: str; c: float"
UNION: Final = f"""{MODEL}
class N(BaseModel):
    d: int; e: str
class O(BaseModel):
    f: int; g: str; h: bool"""
MANY: Final = "\n".join(
    f"class M{number}(BaseModel):\n    " + "; ".join(f"m{number}x{n}: int" for n in range(20))
    for number in range(40)
)
TREE: Final = "class Node(BaseModel):\n    x: int; child: Optional[Node] = None; junk: Any = None"
RECURSIVE: Final = """class A(BaseModel):
    child: Union[A, B, None] = None
class B(BaseModel):
    child: Union[A, B, None] = None"""
DEFAULTS: Final = """class M(BaseModel):
    a: list[int] = list(range(1000))"""
VALUES: Final = 99_000


@dataclass(frozen=True, slots=True)
class Known:
    """One way to make the check of arguments expensive."""

    annotation: str
    value: Callable[[], Any]
    classes: str = ""

    @property
    def source(self) -> str:
        """A module with a tool `hostile` that takes one argument."""
        return (
            f"{IMPORTS}\n{self.classes}\n\n@tool\ndef hostile(a: {self.annotation}) -> None:\n"
            '    """Take anything."""\n'
        )


def nested(levels: int, bottom: Any) -> Any:
    """A value within objects."""
    for _ in range(levels):
        bottom = {"child": bottom}
    return bottom


def of(count: int, item: Any) -> Callable[[], Any]:
    """Many of the same."""
    return lambda: [item] * count


KNOWN: Final = {
    "objects that are no models": Known("list[M]", of(VALUES, {}), MODEL),
    "objects that fit nothing of a union": Known("list[Union[M, N, O]]", of(VALUES, {}), UNION),
    "texts that are no numbers": Known("list[int]", of(VALUES, "")),
    "objects that are no numbers": Known("list[int]", of(VALUES, {})),
    "unknown members": Known("dict[str, int]", lambda: {f"{n:x}": "" for n in range(VALUES)}),
    "a union of many": Known(
        f"dict[str, Union[{', '.join(f'M{number}' for number in range(40))}]]",
        lambda: {f"{n:x}": {} for n in range(60_000)},
        MANY,
    ),
    "a recursive union": Known("A", lambda: nested(95, {}), RECURSIVE),
    "a recursive union, wrong at its end": Known("A", lambda: nested(95, 1), RECURSIVE),
    "much at the end of much nesting": Known("Node", lambda: nested(90, of(VALUES, [])()), TREE),
    "what every level copies": Known("Node", lambda: nested(90, {"junk": of(VALUES, [])()}), TREE),
    "a long name of much": Known("dict[str, list[int]]", lambda: {"k" * 600_000: [""] * 80_000}),
    "a long choice": Known(
        f"list[Literal[{', '.join(repr(f'choice {n}') for n in range(500))}]]", of(VALUES, "")
    ),
    "numbers of one hash": Known("set[int]", lambda: [n * PRIME for n in range(40_000)]),
    "keys of one hash": Known("dict[int, int]", lambda: {str(n * PRIME): 0 for n in range(40_000)}),
    "UUIDs of one hash": Known(
        "set[uuid.UUID]", lambda: [str(UUID(int=n * PRIME)) for n in range(25_000)]
    ),
    "pairs of one hash": Known(
        "set[tuple[int, int]]", lambda: [[n * PRIME, 1] for n in range(33_000)]
    ),
    "a large regular expression": Known("re.Pattern", lambda: "(a|b)" * 200_000),
    "JSON within JSON": Known("Json[list[M]]", lambda: json.dumps([{}] * 250_000), MODEL),
    "short tuples": Known(f"list[tuple[{', '.join(['int'] * 100)}]]", of(VALUES, [])),
    "large defaults": Known("list[M]", of(VALUES, {}), DEFAULTS),
    "refused by the author": Known("list[Annotated[int, AfterValidator(refuse)]]", of(VALUES, 1)),
}
"""What is wrong -> how to make it."""
