"""Every scenario in another wording: `notebook`, which looks things up by words, must find something there too.

tests/wording has a counterpart for each template, with the same macros and facts but other sentences, by an author who had
not read the agent. It is never fitted to the agent, and the agent must not be fitted to it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from statistics import fmean

import pytest
import trio

from longspan.scenarios.ltm.wording import Wording
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.rehearsal import rehearse
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

OURS = Wording.folder
OTHER = Path(__file__).parent / "wording"
WORDINGS = {"ours": OURS, "other": OTHER}
SUITE = load_suite("ltm")
SEEDS = range(2)

NEAR = 0.7
"""Two lines are nearly equal if this share of the words of one occurs in the other, in the same order."""

ELSEWHERE = "Something else entirely."
"""The line that a rehearsal says for other tests."""

Means = dict[str, float]
"""An agent's mean score in each scenario."""

Played = Callable[[str, str, int], Means]
"""Plays an agent in a wording at a span, once, with all seeds."""


@pytest.fixture
def other_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wording, "folder", OTHER)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    known: dict[tuple[str, str, int], Means] = {}

    def means(wording: str, agent: str, span: int) -> Means:
        if (wording, agent, span) not in known:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Wording, "folder", WORDINGS[wording])
                known[wording, agent, span] = _play(agent, span, tmp_path_factory.mktemp(wording))
        return known[wording, agent, span]

    return means


def _play(agent: str, span: int, out: Path) -> Means:
    plans = [plan_run(RunSettings(suite=SUITE, span=span, seed=seed, agent=agent), out) for seed in SEEDS]
    scores: dict[str, list[float]] = defaultdict(list)
    for outcome in trio.run(lambda: play_plans(plans)):
        assert outcome.error is None
        for test in outcome.result.tests:
            assert test.status in ("scored", "unscored"), test.reason
            scores[test.scenario].append(test.lowest)  # what only a judge could decide counts for nothing
    return {name: fmean(each) for name, each in scores.items()}


def _table(**columns: Means) -> str:
    rows = [[name, *(f"{means[name]:.2f}" if name in means else "-" for means in columns.values())] for name in SUITE.scenarios]
    rows = [["", *columns], *rows, ["total", *(f"{sum(means.values()):.2f}" for means in columns.values())]]
    return "\n" + "\n".join("".join(f"{cell:>20}" for cell in row) for row in rows)


# ---- the other wording is complete, and another


@pytest.mark.parametrize("name", SUITE.scenarios)
@pytest.mark.usefixtures("other_wording")
def test_every_scenario_can_be_played_in_the_other_wording(name: str) -> None:
    scenario = make_scenario(name, SUITE.scenarios[name])
    for seed in range(20):
        ideal = rehearse(scenario, seed=seed, reply=lambda text, ideal: ideal)
        assert ideal.grade.score == 1, ideal.grade.reason
        silent = rehearse(scenario, seed=seed, reply=lambda text, ideal: "OK.")
        assert silent.grade.score == 0, silent.grade.reason
        assert _texts(scenario, seed).isdisjoint(_said_in_ours(scenario, seed))


def _texts(scenario: Scenario, seed: int) -> set[str]:
    """Return the texts of a test and its farewell."""
    said: set[str] = set()

    def reply(text: str, ideal: str) -> str:
        said.add(text)
        return ideal

    farewell = rehearse(scenario, seed=seed, reply=reply).script.farewell
    assert farewell
    return (said | {farewell}) - {ELSEWHERE}


def _said_in_ours(scenario: Scenario, seed: int) -> set[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wording, "folder", OURS)
        return _texts(scenario, seed)


def test_all_eleven_scenarios_are_there() -> None:
    assert len(SUITE.scenarios) == 11
    assert set(SUITE.scenarios) <= {path.stem for path in OTHER.glob("*.j2")}


@pytest.mark.parametrize("template", sorted(path.name for path in OURS.glob("*.j2")))
def test_a_template_has_the_macros_of_ours_with_the_same_variables(template: str) -> None:
    ours, other = (_macros((folder / template).read_text("utf-8")) for folder in (OURS, OTHER))
    assert {name: arguments for name, (arguments, _) in other.items()} == {name: arguments for name, (arguments, _) in ours.items()}
    for name, (_, lines) in other.items():
        assert len(set(lines)) == len(lines) >= min(3, len(ours[name][1])), name


def _macros(text: str) -> Mapping[str, tuple[str, list[str]]]:
    """Return a template's macros: their arguments and their lines."""
    found = re.findall(r"\{% macro (\w+)\((.*?)\) %\}\n(.*?)\{% endmacro %\}", text, re.DOTALL)
    return {name: (arguments, [line for line in body.splitlines() if line.strip()]) for name, arguments, body in found}


def _lines(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Return all lines of the templates in a folder, and the words of each. A placeholder counts as a word."""
    for path in sorted(folder.glob("*.j2")):
        for _, lines in _macros(path.read_text("utf-8")).values():
            yield from ((f"{path.stem}: {line}", _words(line)) for line in lines)


def _words(line: str) -> list[str]:
    return re.findall(r"<\w+>|[\w']+", re.sub(r"\{\{ (\w+).*?\}\}", r" <\1> ", line.replace("<br>", " ")).lower())


def _kept(words: list[str], of: list[str]) -> float:
    """Return the share of `words` that occurs in `of` in the same order."""
    row = [0] * (len(of) + 1)
    for word in words:
        before = 0
        for at, each in enumerate(of, 1):
            before, row[at] = row[at], max(before + (word == each), row[at], row[at - 1])
    return row[-1] / len(words)


def _near(lines: Iterable[tuple[str, list[str]]], others: list[tuple[str, list[str]]]) -> Iterator[tuple[str, str]]:
    counted = [(line, words, Counter(words)) for line, words in others]
    for line, words in lines:
        counts = Counter(words)
        for other, its_words, its_counts in counted:
            if (counts & its_counts).total() >= NEAR * len(words) and _kept(words, its_words) >= NEAR:
                yield line, other


def test_no_line_is_nearly_one_of_ours() -> None:
    assert list(_near(_lines(OTHER), list(_lines(OURS)))) == []


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("Please call me {{ name }} from here on.", True),
        ("Do call me {{ name }} from now on.", True),
        ("{{ name }} from here on, please call me.", False),
        ("From this day on I answer to {{ name }}.", False),
    ],
)
def test_what_is_nearly_equal(line: str, near: bool) -> None:
    others = [("ours", _words("Please call me {{ name }} from here on."))]
    assert bool(list(_near([(line, _words(line))], others))) == near


# ---- notebook in both wordings


@pytest.mark.parametrize("span", [2_000, 32_000])
@pytest.mark.parametrize("wording", WORDINGS)
def test_notebook_is_above_silent_on_at_least_four_scenarios(wording: str, span: int, played: Played) -> None:
    """Silent scores nothing: in ours in test_ltm.py, in the other wording above."""
    notebook = played(wording, "notebook", span)
    assert sum(score > 0 for score in notebook.values()) >= 4, _table(notebook=notebook)


def test_notebook_forgets_what_has_left_its_window(played: Played) -> None:
    near, far = played("ours", "notebook?window=8k", 2_000), played("ours", "notebook?window=8k", 32_000)
    both = near.keys() & far.keys()
    assert both == near.keys()
    assert sum(far[name] for name in both) < sum(near[name] for name in both), _table(near=near, far=far)
