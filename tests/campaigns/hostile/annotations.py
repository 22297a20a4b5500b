"""Tools with arbitrary annotations, as the source of a module, for whoever sends them arguments."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

IMPORTS: Final = """
from __future__ import annotations

import collections, datetime, decimal, enum, fractions, ipaddress, pathlib, re, typing, uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

from pydantic import (
    AfterValidator, AliasChoices, AliasPath, AnyUrl, Base64Bytes, BaseModel, BeforeValidator,
    ByteSize, ConfigDict, Discriminator, Field, Json, JsonValue, PrivateAttr, SecretStr, Tag,
    WrapValidator, model_validator,
)
from typing_extensions import TypedDict

from mcp_tasks import tool


def refuse(value: Any) -> Any:
    raise ValueError("refused")


def same(value: Any, handler: Any = None) -> Any:
    return value if handler is None else handler(value)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"
    BLACK = 0


class Leaf(BaseModel):
    x: int = 1


class Tree(BaseModel):
    left: Leaf = Field(default_factory=Leaf)
    right: list[Leaf] = Field(default_factory=lambda: [Leaf(), Leaf(), Leaf()])


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    x: list[int] = list(range(300))

"""
"""What every module begins with."""

HASHABLE: Final = (
    *("int", "str", "float", "uuid.UUID", "decimal.Decimal", "Color", "datetime.date", "int | str"),
    *("Literal['a', 'b', 3]", "tuple[int, str]", "Annotated[int, Field(ge=0)]"),
    *("ipaddress.IPv6Address", "fractions.Fraction"),
)
SCALARS: Final = (
    *HASHABLE,
    *("bool", "None", "bytes", "datetime.datetime", "datetime.timedelta", "AnyUrl"),
    *("pathlib.Path", "ipaddress.IPv4Network", "SecretStr", "ByteSize", "Base64Bytes"),
    *("Annotated[str, Field(pattern='^[a-z]+$', max_length=9)]", "re.Pattern", "JsonValue", "Any"),
    *("Annotated[int, AfterValidator(refuse)]", "Annotated[str, BeforeValidator(same)]"),
    f"Literal[{', '.join(repr(f'choice {number}') for number in range(300))}]",
)
FACTORIES: Final = (
    *("list", "dict", "uuid.uuid4", "Leaf", "Tree", "lambda: list(range(500))"),
    *("lambda: 'x' * 5000", "lambda: {n: [n] for n in range(1000, 1100)}"),
)
DEFAULTS: Final = (
    *("None", "None", "None", "[]", "{}", "Field(None, alias='Alias')", "Frozen()", "Leaf()"),
    *("list(range(300))", "([1], [2])", "(list(range(300)),)", "(Frozen(), 'x')"),
    *("Field([{}] * 20, validate_default=True)", "Field(tuple(range(99)), validate_default=True)"),
    *("Field('?', validate_default=True)", "Field(default_factory=lambda data: [*data] * 50)"),
    *(f"Field(default_factory={factory})" for factory in FACTORIES),
    *(f"Field(default_factory={factory}, alias='Alias')" for factory in FACTORIES[-3:]),
    "Field(default_factory=lambda: [{}] * 9, validate_default=True)",
)
SHARED_NAMES: Final = ("a", "b", "child", "children", "kind", "x", "y")
"""So few that models of a union have the same."""
ATTEMPTS: Final = 100


class Source:
    """The source of one module, whose classes may contain one another."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._classes = [f"Class{number}" for number in range(rng.choice([1, 2, 3, 6, 20]))]
        self._tagged = [f"Tagged{number}" for number in range(rng.choice([2, 4]))]

    def module(self) -> str:
        """A module with a tool `hostile` that takes one argument or two."""
        classes = [self._class(name) for name in self._classes]
        classes += [self._tagged_class(name) for name in self._tagged]
        return (
            f"{IMPORTS}{''.join(classes)}\n@tool\n"
            f"def hostile(a: {self._type(3)}, b: {self._type(3)} = None) -> None:\n"
            '    """Take anything."""\n'
        )

    def _class(self, name: str) -> str:
        rng = self._rng
        base = rng.choice(["BaseModel"] * 6 + ["dataclass", "TypedDict", "NamedTuple"])
        count = rng.choice([1, 2, 2, 3, 3, 6, 30])
        fields = []
        for number in range(count):
            name_ = SHARED_NAMES[number] if number < len(SHARED_NAMES) else f"field{number}"
            type_ = self._type(2)
            optional = rng.random() < 0.4
            factory = rng.choice(FACTORIES)
            if optional and base == "BaseModel":
                type_ += f" = {rng.choice(DEFAULTS)}"
            elif optional and base == "dataclass":
                type_ += f" = field(kw_only=True, default_factory={factory})"
            elif optional and base == "TypedDict":
                type_ = f"Annotated[{type_}, Field(default_factory={factory})]"
            elif optional and base == "NamedTuple" and number == count - 1:
                type_ += f" = {rng.choice(['None', '(list(range(300)),)', 'Frozen()'])}"
            fields.append(f"    {name_}: {type_}\n")
        if base == "dataclass":
            return f"\n@dataclass\nclass {name}:\n{''.join(fields)}\n"
        if base == "BaseModel":
            fields.insert(0, self._config())
            if rng.random() < 0.2:
                private = f"PrivateAttr(default_factory={rng.choice(FACTORIES)})"
                private = rng.choice([private, "list(range(300))", "Leaf()"])
                fields.append(f"    _private: Any = {private}\n")
            if rng.random() < 0.2:
                mode = rng.choice(["before", "wrap"])
                arguments = "value" if mode == "before" else "value, handler"
                fields.append(
                    f"\n    @model_validator(mode={mode!r})\n    @classmethod\n"
                    f"    def check(cls, {arguments}): return same({arguments})\n"
                )
        return f"\nclass {name}({base}):\n{''.join(fields)}\n"

    def _config(self) -> str:
        extra = self._rng.choice(["forbid", "ignore", "allow"])
        others = self._rng.choice(["", "", "", ", validate_default=True", ", frozen=True"])
        return f"    model_config = ConfigDict(extra={extra!r}, protected_namespaces=(){others})\n"

    def _tagged_class(self, name: str) -> str:
        return (
            f"\nclass {name}(BaseModel):\n    kind: Literal[{name!r}]\n"
            f"    child: {self._type(1)}\n    other: Optional[{self._discriminated()}] = None\n"
        )

    def _discriminated(self) -> str:
        names = ", ".join(self._tagged)
        return f"Annotated[Union[{names}], Field(discriminator='kind')]"

    def _type(self, depth: int) -> str:
        rng = self._rng
        if depth == 0 or rng.random() < 0.15:
            return rng.choice(SCALARS)
        inner: Callable[[], str] = lambda: self._type(depth - 1)  # noqa: E731
        hashable = rng.choice(HASHABLE)
        choices: list[Callable[[], str]] = [
            lambda: f"list[{inner()}]",
            lambda: f"list[{rng.choice(self._classes)}]",
            lambda: f"set[{hashable}]",
            lambda: f"frozenset[{hashable}]",
            lambda: f"dict[{hashable}, {inner()}]",
            lambda: f"collections.Counter[{hashable}]",
            lambda: f"collections.defaultdict[str, {inner()}]",
            lambda: f"collections.deque[{inner()}]",
            lambda: f"typing.Sequence[{inner()}]",
            lambda: f"typing.Mapping[str, {inner()}]",
            lambda: f"tuple[{inner()}, ...]",
            lambda: f"tuple[{', '.join(inner() for _ in range(rng.choice([1, 3, 20])))}]",
            lambda: f"Optional[{inner()}]",
            lambda: f"Union[{', '.join(inner() for _ in range(rng.choice([2, 3, 6])))}]",
            lambda: f"Union[{', '.join([*self._classes, 'None'])}]",
            lambda: f"list[Union[{', '.join([*self._classes, 'int'])}]]",
            lambda: f"Json[{inner()}]",
            lambda: f"Annotated[{inner()}, WrapValidator(same)]",
            self._discriminated,
            lambda: rng.choice(self._classes),
        ]
        return rng.choice(choices)()
