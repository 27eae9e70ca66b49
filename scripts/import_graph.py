"""Draw which room imports from which, as found in the code: boxes on floors, arrows downwards.

python scripts/import_graph.py docs/internals/import-graph.svg
"""

from __future__ import annotations

import argparse
import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

ROOT: Final = Path(__file__).parents[1]

FLOORS: Final = (
    ("base",),
    ("contract", "filler"),
    ("reading", "subject", "suite"),
    ("scenarios", "journal", "agents"),
    ("play",),
    ("results",),
    ("running",),
    ("pages",),
    ("terminal",),
    ("cli", "api"),
    ("papers",),
)
"""The rooms from the ground up. A room imports only from floors below its own. `scenarios` are the modules that a scenario's class needs;
everything else in scenarios/ (reproductions, importers, writers, commands), which is loaded on demand, is in `papers`."""

BOX, GAP, FLOOR, EDGE = 130, 60, 64, 16
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; text-anchor: middle }
rect { fill: #f6f8fa; stroke: #8c959f }
path { fill: none; stroke: #0969da; stroke-opacity: .55 }
marker path { fill: #0969da; stroke: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } rect { fill: #161b22 } path { stroke: #4493f8 } marker path { fill: #4493f8 }
}
"""


def modules() -> dict[str, Path]:
    """Return every module of the three folders, by its name without `longspan.`."""
    found = {}
    for top in ("simulator", "scenarios", "agents"):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules among `known` that a file imports anywhere, including inside functions and only for types."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("longspan"):
            home = node.module.removeprefix("longspan").removeprefix(".")
            for alias in node.names:
                full = f"{home}.{alias.name}".removeprefix(".")
                if full in known or home in known:
                    yield full if full in known else home
        elif isinstance(node, ast.Import):
            yield from (name for alias in node.names if (name := alias.name.removeprefix("longspan.")) in known)


@cache
def graph() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    known = modules()
    return {name: {other for other in imports(path, known) if other != name} for name, path in known.items()}


@cache
def scenario_modules() -> set[str]:
    """Return the modules in scenarios/ that the registered scenario classes import, directly or through each other."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["longspan.scenarios"]
    left = {target.partition(":")[0].removeprefix("longspan.") for target in points.values()} | {"scenarios"}
    found: set[str] = set()
    while left:
        found |= left
        left = {other for name in left for other in graph()[name] if other.startswith("scenarios.")} - found
    packages = {".".join(name.split(".")[:depth]) for name in found for depth in range(1, name.count(".") + 1)}
    return found | packages


def room(module: str) -> str:
    """Return the room of a module."""
    top, *rest = module.split(".")
    if top == "scenarios":
        return top if module in scenario_modules() else "papers"
    return top if top != "simulator" or not rest else rest[0]


def rooms() -> dict[str, set[str]]:
    """Return the rooms that each room's modules import from."""
    found: dict[str, set[str]] = {name: set() for floor in FLOORS for name in floor}
    for module, others in graph().items():
        if module != "simulator":
            found[room(module)] |= {room(other) for other in others} - {room(module)}
    return found


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the edges without those that a path through other rooms implies."""

    def below(name: str) -> set[str]:
        return edges[name].union(*(below(other) for other in edges[name]))

    return {
        name: {other for other in others if not any(other in below(each) for each in others - {other})} for name, others in edges.items()
    }


def draw() -> str:
    """Return the picture as SVG."""
    widest = max(len(floor) for floor in FLOORS)
    width = 2 * EDGE + widest * BOX + (widest - 1) * GAP
    height = 2 * EDGE + len(FLOORS) * FLOOR - (FLOOR - 34)
    places = {}
    for level, floor in enumerate(reversed(FLOORS)):
        left = (width - len(floor) * BOX - (len(floor) - 1) * GAP) / 2
        for number, name in enumerate(floor):
            places[name] = (left + number * (BOX + GAP), EDGE + level * FLOOR)
    title = "Which room imports from which; a room may also import from whatever lies further down its arrows"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for name, others in reduced(rooms()).items():
        x, y = places[name][0] + BOX / 2, places[name][1] + 34
        for number, other in enumerate(sorted(others)):
            to_x, to_y = places[other][0] + BOX / 2, places[other][1]
            bend = 0.0 if to_y - y < FLOOR else (BOX / 2 + 24) * (1 if (number + (x >= width / 2)) % 2 else -1)
            parts.append(f'<path d="M{x} {y}C{x + bend} {y + 22} {to_x + bend} {to_y - 22} {to_x} {to_y}" marker-end="url(#tip)"/>')
    for name, (x, y) in places.items():
        parts.append(f'<rect x="{x}" y="{y}" width="{BOX}" height="34" rx="5"/><text x="{x + BOX / 2}" y="{y + 21}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="where the picture is written")
    parser.parse_args().file.write_text(draw(), "utf-8")
