"""The page: graphs as SVG in HTML, without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from .graph import Graph
from .points import Line, Window

REFRESH_SECONDS: Final = 5
WIDTH, HEIGHT = 300, 90
SHOWN_LINES: Final = 12
"""More lines than that are told from each other by nobody: those with the largest values stay."""
COLOURS: Final = (
    *("#0972d3", "#d13212", "#1d8102", "#8456ce", "#b2911c", "#c33d69"),
    *("#2ea597", "#687078", "#5978e3", "#a15c00", "#00829b", "#7d2105"),
)
STYLE: Final = """
:root { color-scheme: light dark; font: 14px/1.4 system-ui, sans-serif; }
body { margin: 1.5rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(320px, 1fr)); gap: 1rem; }
figure { margin: 0; padding: .8rem; border: 1px solid #8885; border-radius: 6px; }
figcaption { font-weight: 600; margin-bottom: .4rem; }
ul { list-style: none; margin: .4rem 0 0; padding: 0; font-size: .85rem; columns: 2; }
li { break-inside: avoid; } .none { opacity: .6; }
i { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .4em; }
svg { width: 100%; height: 90px; background: #8881; }
table { border-collapse: collapse; } th, td { padding: .2rem .8rem .2rem 0; text-align: left; }
"""


def page(
    title: str,
    parts: Mapping[str, Sequence[Graph]],
    tasks: Sequence[Sequence[str]],
    window: Window,
) -> str:
    """The whole page. `tasks` are the rows of a table, its head first."""
    now = datetime.now(UTC).strftime("%H:%M:%S UTC")
    minutes = (window.end_ms - window.begin_ms) // 60_000
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}"><style>{STYLE}</style>'
        f"<h1>{escape(title)}</h1><p>{now}; the last {minutes} minutes, "
        f"{window.period_ms // 60_000} min a point</p>"
        f"<h2>What runs now</h2>{_table(tasks)}"
        + "".join(
            f"<h2>{escape(heading)}</h2>"
            f"<main>{''.join(_figure(graph, window) for graph in graphs)}</main>"
            for heading, graphs in parts.items()
        )
        + "</html>"
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    if len(rows) < 2:
        return '<p class="none">no task runs</p>'
    head, *others = rows
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in others
    )
    return f"<table><tr>{cells}</tr>{lines}</table>"


def _figure(graph: Graph, window: Window) -> str:
    return (
        f"<figure><figcaption>{escape(graph.title)}</figcaption>"
        f"{''.join(_content(graph, window))}</figure>"
    )


def _content(graph: Graph, window: Window) -> Iterator[str]:
    lines = [line for line in graph.lines if line.points]
    if graph.missing:
        yield '<p class="none">only CloudWatch has this</p>'
        return
    if not lines:
        yield '<p class="none">no data</p>'
        return
    lines = sorted(lines, key=lambda line: -max(line.points.values()))[:SHOWN_LINES]
    top = max(max(line.points.values()) for line in lines) or 1
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none">'
    for line, colour in zip(lines, COLOURS, strict=False):
        yield _polyline(list(_coordinates(line, top, window)), colour)
    yield "</svg><ul>"
    for line, colour in zip(lines, COLOURS, strict=False):
        last = list(line.points.values())[-1]
        yield (
            f'<li><i style="background:{colour}"></i>{escape(line.label)} '
            f"<b>{_number(last)}</b></li>"
        )
    yield "</ul>"


def _coordinates(line: Line, top: float, window: Window) -> Iterator[tuple[float, float]]:
    """Where a line's points are in the graph; `top` is the value at its upper edge."""
    length = window.end_ms - window.begin_ms
    for at, value in line.points.items():
        x = WIDTH * (at + window.period_ms / 2 - window.begin_ms) / length
        yield x, HEIGHT - 4 - (HEIGHT - 8) * value / top


def _polyline(coordinates: Sequence[tuple[float, float]], colour: str) -> str:
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in coordinates
    )
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in coordinates)
    return f'<polyline points="{path}" fill="none" stroke="{colour}"/>{dots}'


def _number(value: float) -> str:
    """At most four digits that count: 1234, 12.3, 0.05."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
