"""Draw a run's conversation as an SVG: a lane for each test, with its needles and questions over the conversation's tokens.

python scripts/picture.py runs/NAME docs/conversation.svg
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

from longspan.simulator import events
from longspan.simulator.analysis.rows import conversations
from longspan.simulator.run_folder import RunFolder

LANE, LEFT, WIDTH, TOP = 15, 150, 820, 44
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #57606a }
.title { font-size: 12px }
.lane { stroke: #8c959f; stroke-opacity: .35 }
.span { stroke: #0969da; stroke-width: 7; stroke-opacity: .22; stroke-linecap: round }
.needle { fill: #0969da }
.question { fill: #bc4c00 }
.axis { stroke: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1 } .needle { fill: #4493f8 } .span { stroke: #4493f8 } .question { fill: #f0883e }
}
"""


def draw(run: RunFolder) -> str:
    lanes: dict[str, list[events.Message]] = {}
    turns = conversations(run)["main"].turns
    for message in (turn.message for turn in turns):
        if message.test and message.kind != "farewell":
            lanes.setdefault(message.test, []).append(message)
    total = next((turn.reply.end for turn in reversed(turns) if turn.reply is not None), 0)

    def x(position: int) -> float:
        return round(LEFT + WIDTH * position / total, 1)

    names = sorted(lanes)
    height = TOP + LANE * len(names) + 28
    title = f"{len(names)} tests in one conversation of {total:,} tokens, each over a span of {run.manifest.span:,}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 20} {height}" role="img" aria-label="{escape(title)}">',
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="16">{escape(title)}</text>',
        f'<circle class="needle" cx="{LEFT + 4}" cy="29" r="3"/><text x="{LEFT + 12}" y="33">what the test says</text>',
        f'<circle class="question" cx="{LEFT + 134}" cy="29" r="4"/><text x="{LEFT + 143}" y="33">what it asks</text>',
    ]
    for number, name in enumerate(names):
        y = TOP + LANE * number + LANE / 2
        first, last = lanes[name][0], lanes[name][-1]
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<line class="lane" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}"/>')
        parts.append(f'<line class="span" x1="{x(first.start)}" x2="{x(last.start)}" y1="{y}" y2="{y}"/>')
        for message in lanes[name]:
            question = message.kind == "question"
            kind, radius = ("question", 4) if question else ("needle", 3)
            parts.append(f'<circle class="{kind}" cx="{x(message.start)}" cy="{y}" r="{radius}"/>')
    bottom = TOP + LANE * len(names) + 6
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{bottom}" y2="{bottom}"/>')
    for position in range(0, total, 20_000):
        parts.append(f'<text x="{x(position)}" y="{bottom + 14}" text-anchor="middle">{position // 1000}k</text>')
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(draw(RunFolder(Path(sys.argv[1]))), "utf-8")
