"""Write the pages about the papers' figures again, from the published data: reproduction.md and comparability.md in docs/reference/.

python scripts/reproduction.py DATA docs/reference

DATA is the folder with the published data of each paper: goodai-ltm, counting-stars, elitr and summhay. The words of the
pages are the templates in scripts/pages; every figure that is computed is filled in.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from longspan.scenarios.elitr.marks import format_figure
from longspan.scenarios.summhay.printed import SAMPLES, printed_bias
from longspan.simulator.base.templating import make_environment
from longspan.simulator.results.papers import Cell, Rules, find_paper

PAGES: Final = ("reproduction.md", "comparability.md")
TEMPLATES: Final = Path(__file__).parent / "pages"

AGENTS: Final = {
    "Mixtral (8x7B)": ("LLMChatSession", "Mixtral-8x7B"),
    "Mixtral (8x22B)": ("LLMChatSession", "Mixtral-8x22B"),
    "Llama 3 (70B)": ("LLMChatSession", "Llama-3-70b"),
    "GPT-3.5-Turbo": ("LLMChatSession", "gpt-3.5-turbo"),
    "GPT-4-Turbo": ("LLMChatSession", "gpt-4-turbo"),
    "GPT-4o": ("LLMChatSession", "gpt-4o"),
    "Claude-Opus": ("LLMChatSession", "claude-3-opus"),
    "Gemini 1.5 Pro": ("GeminiProInterface", ""),
    "LTM (Opus)": ("LTMAgentWrapper", "claude-3-opus - 16384"),
    "LTM (GPT-4)": ("LTMAgentWrapper", "gpt-4-turbo - 16384"),
    "LTM (Llama3 (70B))": ("LTMAgentWrapper", "Llama-3-70b"),
}
"""The rows of the first paper's Table 1, and how the names of their folders begin and go on."""

AGREEMENT: Final = (
    "name_list",
    "chapterbreak",
    "prospective_memory",
    "sally_anne",
    "colours",
    "shopping",
    "trigger_response",
    "jokes",
    "locations",
    "restaurant",
    "spy_meeting",
)
JUDGES: Final = {
    "Gemini-1.5-pro": "prompted_gemini-1.5-pro",
    "GPT-4o (9 shots)": "9fs_gpt-4o",
    "GPT-4o": "prompted_gpt-4o",
    "Claude 3 Opus": "prompted_claude3-opus",
    "Claude 3 Haiku": "prompted_claude3-haiku",
    "GPT-3.5": "prompted_gpt3.5",
}
SHORTEST, ISOLATED = "Benchmark 3 - 1k", "Benchmark 3 - 32k (isolated)"
READERS: Final = {"GPT-4o": "gpt-4o", "Claude 3 Opus": "claude3-opus", "Gemini-1.5-pro": "gemini-1.5-pro"}


class Found:
    """The cells of a paper."""

    def __init__(self, name: str, paths: Sequence[Path], rules: Rules = "paper") -> None:
        self._cells = {(cell.table, cell.row, cell.column): cell for cell in find_paper(name)(paths, rules).cells}

    def __call__(self, table: str, row: str, column: str) -> Cell:
        return self._cells[table, row, column]

    def of(self, table: str, column: str = "") -> list[Cell]:
        return [cell for cell in self._cells.values() if cell.table == table and column in ("", cell.column)]


def pages(data: Path) -> dict[str, str]:
    """Return the text of each page, by its name."""
    figures = {"goodai": _goodai(data), "stars": _stars(data), "elitr": _elitr(data), "summhay": _summhay(data), "cream": _cream()}
    templates = make_environment(TEMPLATES, keep_trailing_newline=True)
    return {page: templates.get_template(f"{page}.j2").render(figures) for page in PAGES}


def _row(first: str, *cells: str) -> str:
    return "".join(f"| {cell} " if cell else "| " for cell in (first, *cells)) + "|"


def _goodai(data: Path) -> Mapping[str, Any]:
    results = [data / "goodai-ltm" / "results", data / "goodai-ltm" / "runs"]
    found, own = Found("goodai-ltm", results), Found("goodai-ltm", results, "longspan")
    printed = [cell for cell in found.of("scores") if cell.published is not None]

    def scores(benchmark: str, begin: str, model: str) -> list[str]:
        (agent,) = (cell.row for cell in printed if cell.column == benchmark and cell.row.startswith(begin) and model in cell.row)
        pairs = [("scores", "spread"), ("recorded_scores", "recorded_spread")]
        (ours, spread), recorded = ([found(table, agent, benchmark) for table in pair] for pair in pairs)
        told = [f"{ours.published:.1f} ± {spread.published:.1f}"]
        return [*told, *(f"{score.ours:.2f} ± {deviation.ours:.2f}" for score, deviation in (recorded, (ours, spread)))]

    def exactly(cells: Found, name: str, column: str = "exact") -> float:
        return cells("agreement", name, column).ours or 0.0

    def agreement(name: str) -> str:
        cell, ruled = found("agreement", name, "exact"), name not in ("chapterbreak", "jokes", "restaurant")
        shares = [exactly(found, name), exactly(found, name, "exact_auto"), *([exactly(own, name)] if ruled else [])]
        return _row(name, str(cell.n), *(_percent(share) for share in shares), *([] if ruled else ["same"]))

    fewer = {name: round((exactly(found, name) - exactly(own, name)) * found("agreement", name, "exact").n) for name in AGREEMENT}
    phases = found("restaurant_phases", "all", "exact")
    cost, duration = (found(table, "LLMChatSession - gpt-4o - 128000", SHORTEST).ours for table in ("cost_usd", "duration_s"))
    return {
        "cost": f"{cost:.2f} dollars and {duration:.0f} s",
        "rows": [_row(name, *scores(SHORTEST, *agent), *scores(ISOLATED, *agent)) for name, agent in AGENTS.items()],
        "printed": len(printed),
        "close": sum(abs((cell.ours or 0) - (cell.published or 0)) <= 0.05 + 1e-9 for cell in printed),
        "tests": sum(cell.n for cell in found.of("agreement", "exact")),
        "agreement": [agreement(name) for name in AGREEMENT],
        "off": {name: round((1 - exactly(found, name)) * found("agreement", name, "exact").n) for name in AGREEMENT},
        "fewer": sum(fewer.values()),
        "fewer_by": ", ".join(f"{name} {count}" for name, count in fewer.items() if count),
        "phases": f"{round((phases.ours or 0) * phases.n)} of {phases.n}",
    }


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 1 else "100%"


def _stars(data: Path) -> Mapping[str, str]:
    found = Found("counting-stars", [data / "counting-stars" / "stone_kimi_32_16.txt.gz"])
    (member,), (slot,) = found.of("raw", "membership"), found.of("raw", "slot")
    return {
        "membership": f"{member.ours:.3f}",
        "found": f"{round((member.ours or 0) * member.n)} of {member.n}",
        "printed": f"{member.published:.3f}",
        "slot": f"{slot.ours:.3f}",
    }


def _elitr(data: Path) -> Mapping[str, Any]:
    found = Found("elitr-bench", [data / "elitr"])

    def rows() -> Iterator[str]:
        for model in dict.fromkeys(cell.row for cell in found.of("table2")):
            cells = {cell.column: cell for cell in found.of("table2") if cell.row == model and cell.column.endswith("-dev")}
            columns = [cells.get(column) for column in ("single-qa-dev", "multi-qa-dev", "multi-conv-dev")]
            yield _row(model, *(f"{format_figure(cell.ours or 0)} ({cell.published:.2f})" if cell else "" for cell in columns))

    lost = [f"{cell.row} {cell.ours:.3f}" for cell in found.of("table10") if (cell.ours or 0) < 0.05]
    return {
        "rows": list(rows()),
        "kinds": lambda family: ", ".join(
            format_figure(found("table3", family, kind).ours or 0) for kind in ("Who", "What", "When", "How many")
        ),
        "lost": ", ".join(lost),
    }


def _summhay(data: Path) -> Mapping[str, Any]:
    names = ("eval_benchmark_data.first100.json.gz", "topic_news1.json.gz", "topic_news2.json.gz")
    found = Found("summhay", [data / "summhay" / name for name in names])

    def judge(row: str) -> Iterator[str]:
        for column in ("correlation", "link_accuracy"):
            cell = found("judges", row, column)
            yield from (f"{cell.ours:.3f}", f"{cell.published:.3f}")

    def joint(model: str) -> Iterator[str]:
        yield from (f"{found('results', row, 'joint').ours:.3f}" for row in (f"random_{model}", f"oracle_{model}", model))
        yield from (f"{found('positions', model, place).ours:.3f}" for place in ("top", "middle", "bottom", "sensitivity"))

    def favours(judge: str) -> Iterator[str]:
        for row in ("mean", "length-difference", "length-score"):
            yield from (f"{found('bias', row, judge).ours:.3f}", f"{printed_bias(row, judge, SAMPLES):.3f}")

    return {
        "bias": [_row(name, *favours(f"prompted_{model}")) for name, model in READERS.items()],
        "judges": [_row(name, *judge(row)) for name, row in JUDGES.items()],
        "joint": [_row(name, *joint(model)) for name, model in READERS.items()],
        "judged": max(cell.n for cell in found.of("judges", "correlation")),
        "insights": max(cell.n for cell in found.of("results", "joint")),
    }


def _cream() -> Mapping[str, Any]:
    found = Found("cream", [])
    columns = ("completeness-16", "conciseness-16", "completeness-30", "conciseness-30")
    return {
        "elo": [_row(model, *(f"{found('elo', model, column).ours:.3f}" for column in columns)) for model in ("GPT-3.5", "GPT-4", "GPT-4o")]
    }


if __name__ == "__main__":
    source, folder = map(Path, sys.argv[1:])
    for page, text in pages(source).items():
        (folder / page).write_text(text, "utf-8")
