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
LEVELS: Final = "class A(BaseModel):\n    x: int = 1; y: int = 2; z: int = 3\n" + "\n".join(
    f"class {name}(BaseModel):\n    "
    + "; ".join(f"{field}: {inner} = Field(default_factory={inner})" for field in "xyz")
    for inner, name in ("AB", "BC", "CM")
)
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


def made(default: str, kind: str = "list[int]") -> Known:
    """Objects without the only member that they could have."""
    return Known("list[M]", of(VALUES, {}), f"class M(BaseModel):\n    a: {kind} = {default}")


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
    "what a factory makes": made("Field(default_factory=lambda: list(range(1000)))"),
    "texts of a factory": made("Field(default_factory=lambda: 'x' * int('30000'))", "str"),
    "what a factory makes of the other fields": made(
        "Field(default_factory=lambda data: list(range(1000)))"
    ),
    "objects that factories make at each level": Known("list[M]", of(VALUES, {}), LEVELS),
    "a factory of a field that has only an alias": Known(
        "list[M]",
        of(48_000, {"a": 0}),
        made("Field(default_factory=lambda: [*range(1000)], alias='A')").classes,
    ),
    "factories of a dataclass": Known(
        "list[M]",
        of(VALUES, {}),
        "@dataclass\nclass M:\n"
        "    a: dict[int, int] = field(default_factory=lambda: {n: n for n in range(300)})",
    ),
    "factories of a typed dictionary": Known(
        "list[M]",
        of(VALUES, {}),
        "class M(TypedDict):\n"
        "    a: Annotated[list[int], Field(default_factory=lambda: list(range(1000)))]",
    ),
    "defaults of a named tuple": Known(
        "list[M]", of(VALUES, []), "class M(NamedTuple):\n    a: list[int] = list(range(1000))"
    ),
    "factories of a union's choice": Known(
        "list[Annotated[Union[M, N], Field(discriminator='k')]]",
        of(45_000, {"k": "m"}),
        "class M(BaseModel):\n    k: Literal['m']\n"
        "    v: list[int] = Field(default_factory=lambda: list(range(500)))\n"
        "class N(BaseModel):\n    k: Literal['n']",
    ),
    "private attributes": made("1\n    _b: list[int] = list(range(1000))", "int"),
    "factories of private attributes": made(
        "1\n    _b: Any = PrivateAttr(default_factory=lambda: list(range(1000)))", "int"
    ),
    "a frozen model that has no hash": Known(
        "list[M]", of(VALUES, {}), "class M(BaseModel):\n    a: Frozen = Frozen()"
    ),
    "a tuple that has no hash": made("(list(range(1000)),)", "tuple[list[int], ...]"),
    "large defaults that are validated": made(
        "Field(tuple(range(900)), validate_default=True)", "tuple[int, ...]"
    ),
    "ranges of a regular expression": Known("re.Pattern", lambda: "(?i)" + "[\0-\uffff]" * 4000),
    "ranges of one set": Known(
        "re.Pattern", lambda: "[" + "".join(f"{chr(256 + n)}-\ufffe" for n in range(4000)) + "]"
    ),
    "alternative ranges": Known(
        "re.Pattern", lambda: "|".join(f"[{chr(256 + n)}-\uffff]" for n in range(3000))
    ),
    "a repetition too large": Known("re.Pattern", lambda: "a{99999999999}"),
    "nested groups": Known("re.Pattern", lambda: "(" * 900 + ")" * 900),
    "refused by the author": Known("list[Annotated[int, AfterValidator(refuse)]]", of(VALUES, 1)),
}
"""What is wrong -> how to make it."""
