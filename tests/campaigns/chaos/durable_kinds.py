"""The kinds of calls of tools with durable operations (`tools/durable.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.campaigns.chaos.kinds import NOW_AND_THEN, SHORT_TTL_MS, Cancel, Durable, Kind, how
from tests.campaigns.chaos.tools._ledger import ITEMS, LEGS

HELD: Final = Cancel(1, (0, 3), held=True)
"""Of a task that holds: in a step, asleep, asking, in a map."""


def _steps(*keys: str, items: int = 0) -> Durable:
    return Durable(frozenset(keys), items)


def _heard(*names: str) -> frozenset[tuple[str, str]]:
    return frozenset((f"heard {name}", "") for name in names)


DURABLE_KINDS: Final[Mapping[str, Kind]] = {
    "waits": Kind(
        9, "endure", how("wait"), patient=True, listened=True, durable=_steps("a", "b", "constant")
    ),
    "retries": Kind(6, "endure", how("retry"), patient=True, durable=_steps("flaky", "b")),
    "confirms": Kind(
        8,
        "endure",
        how("confirm"),
        effects=_heard("title", "text"),
        asks=2,
        cancel=NOW_AND_THEN,
        patient=True,
        durable=_steps("a", "b"),
    ),
    "is killed": Kind(6, "endure", how("die"), patient=True, durable=_steps("a", "b", "c")),
    "relays": Kind(
        6,
        "endure",
        how("relay"),
        patient=True,
        durable=_steps(*(f"leg {number}" for number in range(LEGS))),
    ),
    "undoes, and refuses": Kind(5, "endure", how("refuse"), refused=True, durable=_steps()),
    "undoes, and crashes": Kind(4, "endure", how("crash"), crashes=True, durable=_steps()),
    "held in a step": Kind(
        4, "endure", how("hold", held="step"), cancel=HELD, durable=_steps("a", "b", "held")
    ),
    "held asleep": Kind(
        3, "endure", how("hold", held="sleep"), cancel=HELD, durable=_steps("a", "b")
    ),
    "held asking": Kind(
        3, "endure", how("hold", held="ask"), answered=False, cancel=HELD, durable=_steps("a", "b")
    ),
    "held in a map": Kind(
        3, "endure", how("hold", held="map"), cancel=HELD, durable=_steps("a", "b", items=ITEMS)
    ),
    "maps": Kind(
        7,
        "fan",
        patient=True,
        listened=True,
        durable=_steps("left", "right", "g0", "g1", "last", items=ITEMS),
    ),
    "maps, and refuses": Kind(
        3, "fan", lambda *_: {"refuse": True}, refused=True, durable=_steps()
    ),
    "grows": Kind(6, "grow", durable=_steps("root")),
    "grows, and refuses": Kind(
        3, "grow", lambda *_: {"refuse": True}, refused=True, durable=_steps()
    ),
    "grows, and is held": Kind(
        4, "grow", lambda *_: {"hold": True}, cancel=HELD, durable=_steps("root")
    ),
    "lapses": Kind(3, "lapse", answered=False, ttl_ms=SHORT_TTL_MS, durable=_steps("a", "b")),
}
