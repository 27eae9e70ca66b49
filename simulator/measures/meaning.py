"""Whether a run's score can speak of memory, in one sentence, and what to do if it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil
from statistics import fmean
from typing import Any, Final, NamedTuple, Self, final

from longspan.simulator.analysis.changes import command_of, reach_of
from longspan.simulator.analysis.comparable import played
from longspan.simulator.analysis.guessing import ALPHA, Against, against
from longspan.simulator.analysis.stages import EvidenceQuestions
from longspan.simulator.analysis.statistics import permutation_p, total
from longspan.simulator.analysis.units import Key, keys
from longspan.simulator.base.agent_names import short_names
from longspan.simulator.base.document import Document, Sentence, Tone
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.shares import between, percent, points
from longspan.simulator.contract.rungs import rungs
from longspan.simulator.filler.draws import listed
from longspan.simulator.measures.experiments import effect_of, p_told
from longspan.simulator.measures.measure import GradedTests, Measure
from longspan.simulator.measures.memory_losses import outcomes
from longspan.simulator.results.effects import Effect
from longspan.simulator.results.graded_runs import Column, Graded
from longspan.simulator.results.result import Meaning, Result, TestResult
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.manifest import Manifest

__all__ = ["SPEAKS", "CanSpeak", "Played", "meaning_of", "silent"]

DONE: Final = 0.5
"""The score from which on a test counts as done."""

ENOUGH: Final = 12
"""The tests that are advised where there were too few."""

SPEAKS: Final = ("memory", "can do", "ideal")
"""The verdicts that need no warning."""

MOST_OPENINGS: Final = 6
"""The most agents and columns that have a sentence of their own before the table of several runs."""

NAMED: Final = 2
"""The same for the notes of a comparison."""

VERDICTS: Final[Mapping[str, str]] = {
    "memory": "These scores can speak of memory",
    "can do": "These agents can do the tasks when nothing lies between",
    "ideal": "These scores say nothing about memory, since the oracle is handed the answers",
    "guessing": "These scores say nothing about memory yet, since they are not shown to be better than guessing",
    "cannot do": "These agents cannot do the tasks even when nothing lies between, so that their scores say nothing about memory",
    "too few": "Too few tests to tell whether these scores speak of memory",
    "no score": "No test has a score, so that nothing is known of answers",
}
"""What is said of several agents at once, in this order."""

PLAIN_FACTS: Final = "See how far back it remembers facts that any agent can repeat"
"""The advice where the tasks are too hard, or cannot be played without distance."""

UNSURE: Final = "Too few tests to tell"


@final
class Played(NamedTuple):
    """A run's tests with their scores. `control` is what they score without distance, None if that was not played."""

    manifest: Manifest
    tests: Sequence[TestResult]
    control: Effect | None = None


@final
class CanSpeak(Measure):
    """Whether a run's score can speak of memory."""

    name = "meaning"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        if any(test.counts and rungs(test.items) for test in run.tests):
            return {"meaning": None}  # how far back it remembers says more
        return {"meaning": meaning_of([Played(run.manifest, run.tests, effect_of(run, "control"))])}

    @classmethod
    def shown(cls, manifest: Manifest, result: Result) -> Document:
        return Document(opening=[] if result.meaning is None else [_opening(result.meaning)])

    @classmethod
    def listed(cls, runs: Sequence[Graded]) -> Document:
        found = _openings(runs)
        if len(found) <= MOST_OPENINGS:
            return Document(opening=[_opening(each.meaning, each.name) for each in found])
        return Document(opening=list(_grouped(found, short_names(list(dict.fromkeys(each.agent for each in found))).names)))


def _opening(meaning: Meaning, whose: str = "") -> Sentence:
    """Return what a meaning says as the first sentence of a run. `whose` are the runs, where there are several."""
    end = ":" if meaning.command else "."
    text = f"{meaning.sentence} {meaning.advice}{end}" if meaning.advice else meaning.sentence
    tone: Tone = "plain" if meaning.verdict in SPEAKS else "warning"
    return Sentence(f"{whose}: {text}" if whose else text, tone=tone, command=meaning.command)


@final
class _Said(NamedTuple):
    """What the scores of an agent's runs of the same tests can speak of: the suite if there are several, the agent, and the column."""

    suite: str
    agent: str
    column: Column
    meaning: Meaning

    @property
    def name(self) -> str:
        return f"{self.suite}{self.agent}{self.column.at}"


def _grouped(found: Sequence[_Said], names: Mapping[str, str]) -> Iterator[Sentence]:
    """Yield a sentence for each verdict, with those that it is about, and the command that comes next for the first of them."""
    for verdict, what in VERDICTS.items():
        those = [each for each in found if each.meaning.verdict == verdict]
        first = next((each.meaning for each in those if each.meaning.command and verdict not in SPEAKS), None)
        advice, command = ("", "") if first is None else (f" {first.advice}, such as", first.command)
        if those:
            yield Sentence(f"{what}: {_listed(those, names)}.{advice}", tone="plain" if verdict in SPEAKS else "warning", command=command)


def _listed(found: Sequence[_Said], names: Mapping[str, str]) -> str:
    """Name agents with the columns where something is said of them, each agent once."""
    by_agent: dict[str, list[str]] = {}
    for each in found:
        by_agent.setdefault(f"{each.suite}{names[each.agent]}", []).append(str(each.column))
    return ", ".join(f"{name} at {listed(columns)}" for name, columns in by_agent.items())


def _openings(runs: Iterable[Graded]) -> list[_Said]:
    """Return what the scores of several runs can speak of: of each agent's runs of the same tests together."""
    groups: dict[tuple[str, Column, str], list[Played]] = {}
    for run in runs:
        if run.result.reach:
            continue
        key = (run.agent, run.column, played(run.manifest))
        groups.setdefault(key, []).append(Played(run.manifest, run.result.tests, run.result.control))
    several = len({tests for *_, tests in groups}) > 1
    suites = [f"{group[0].manifest.suite.name}: " if several else "" for group in groups.values()]
    return [
        _Said(suite, agent, column, meaning_of(group)) for suite, ((agent, column, _), group) in zip(suites, groups.items(), strict=True)
    ]


def silent(runs: Iterable[Graded], names: Mapping[str, str]) -> list[str]:
    """Return a sentence for each agent's runs whose scores do not speak of memory, or of many a sentence for each reason. `names` are those
    of the agents."""
    found = [each for each in _openings(runs) if each.meaning.verdict not in SPEAKS]
    if len(found) <= NAMED:
        return [f"{each.suite}{names[each.agent]}{each.column.at}: {each.meaning.sentence}" for each in found]
    return [sentence.text.partition(". ")[0] for sentence in _grouped(found, names)]


def meaning_of(runs: Sequence[Played]) -> Meaning:
    """Say whether the scores of an agent's runs in a column can speak of memory, as far as their tests have a score."""
    scored = list(_scored(runs))
    # Where nothing was told that a question needs, as where it has no answer, there is nothing to remember.
    resting = [each for each in scored if each.test.evidence] or scored
    run = _Run(runs[0].manifest, resting)
    if not resting:
        return Meaning(
            verdict="no score", sentence=_searched(runs) or "No test has a score: this says nothing about what the agent answers."
        )
    if run.spec is not None and run.spec.kind == "oracle":
        return _ideal(run)
    if run.manifest.isolated:
        return _isolated(run)
    return _with_control(run) or _woven(run)


def _searched(runs: Sequence[Played]) -> str:
    """Say what the memory found in runs where no test has a score; nothing for an agent that has no memory, or does not tell."""
    asked = EvidenceQuestions.of([(each.manifest, each.tests) for each in runs])
    k = max(asked.places)
    if not asked.is_memory or (found := asked.found(k)) is None:
        return ""
    share = f"{percent(found.low)}{between(found.interval)} of the evidence among the first {k} memories"
    over = f"over {found.questions:,} question{'s' * (found.questions != 1)}"
    return f"The memory finds {share}, {over}. No test has a score, so that nothing is known of answers."


def _scored(runs: Sequence[Played]) -> Iterator[_Scored]:
    """Yield the tests that count and have a score. A recorded history that is told several times counts once, by the mean."""
    found: dict[Key, list[_Scored]] = {}
    for manifest, tests, control in runs:
        known = keys(manifest)
        without = {} if control is None else {each.test: each.score_without for each in control.tests}
        for test in tests:
            if test.counts and test.score is not None and test.id in known:
                found.setdefault(known[test.id], []).append(_Scored(test, test.score, without.get(test.id)))
    for same in found.values():
        alone = [each.alone for each in same if each.alone is not None]
        yield _Scored(same[0].test, fmean(each.score for each in same), fmean(alone) if alone else None)


@final
class _Scored(NamedTuple):
    """A test with its score, and its score without distance, None if that is not known."""

    test: TestResult
    score: float
    alone: float | None


@final
class _Run:
    """The tests of a run that have a score and rest on something told."""

    def __init__(self, manifest: Manifest, scored: Sequence[_Scored]) -> None:
        self.manifest = manifest
        self.scored = scored
        try:
            self.spec: AgentSpec | None = AgentSpec.parse(manifest.agent)
        except InputError:  # an imported run's agent has the name in its file
            self.spec = None

    @property
    def against(self) -> Against:
        return against([(each.score, each.test.chance) for each in self.scored])

    @property
    def failed(self) -> int:
        return sum(each.score < DONE for each in self.scored)

    @property
    def tests(self) -> str:
        return _count(len(self.scored))

    @property
    def figures(self) -> str:
        """The score and that of guessing."""
        scores = _by_scenario(self.scored, lambda each: each.score)
        chance = total(_by_scenario(self.scored, lambda each: each.test.chance))
        is_open = any(_open(each.test) for each in self.scored)
        aside = ", open questions aside" if is_open else ""
        known = chance or not is_open
        earns = (
            f"where guessing earns {percent(chance / len(scores))}{aside}"
            if known
            else "in open questions, where what guessing earns is not known"
        )
        earned = total(scores)
        return f"{percent(earned / len(scores))} of full marks ({points(earned, earned)} of {len(scores)}) {earns}"

    def advised(self, advice: str, **changes: Any) -> dict[str, str]:
        """Return advice to play the run's tests with changed settings, and the command for it; nothing for an imported run."""
        return {} if self.manifest.imported is not None else {"advice": advice, "command": command_of(self.manifest, **changes)}

    @property
    def more(self) -> dict[str, str]:
        """The advice to play more tests."""
        scenarios = len({each.test.scenario for each in self.scored})
        tests = max(2 * self.manifest.suite.tests, ceil(ENOUGH / scenarios))
        return self.advised("Play more", tests=tests, control=self.manifest.control)

    def next(self, *, alone: bool) -> dict[str, str]:
        """The advice for an agent that scores no better than guessing. `alone`: it is known how it does without distance."""
        bare = self.spec.without_answerer if self.spec is not None else None
        if bare is not None:
            return self.advised("See what the memory finds, without its answerer", agent=str(bare))
        if alone or all(test.alone or test.trunk is not None for _, test in self.manifest.graded):
            return {} if self.manifest.imported is not None else {"advice": PLAIN_FACTS, "command": reach_of(self.manifest)}
        return self.advised("See whether the agent can do the tasks at all", isolated=True, nights=0)


def _open(test: TestResult) -> bool:
    """Return whether nothing is known of what guessing earns: there is nothing to choose from, and no floor is known."""
    return test.chance == 0 and not any("floor" in item.numbers for item in test.items)


def _by_scenario(scored: Sequence[_Scored], value: Callable[[_Scored], float]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for each in scored:
        found.setdefault(each.test.scenario, []).append(value(each))
    return found


def _ideal(run: _Run) -> Meaning:
    if run.failed:
        said = (
            f"Even the oracle, which is handed the answers, fails {run.failed:,} of {run.tests}: they say nothing about anybody's memory."
        )
    else:
        said = "This score says nothing about memory: the oracle is handed the answers, and shows that the tests can be passed."
    return Meaning(verdict="ideal", sentence=said)


def _isolated(run: _Run) -> Meaning:
    found, tests, failed = run.against, len(run.scored), run.failed
    if found.verdict == "too few":
        said = f"{UNSURE} whether the agent can do the tasks: it does {tests - failed:,} of {tests:,} when nothing lies between"
        return Meaning(verdict="too few", sentence=f"{said} ({run.figures}).", **run.more)
    if found.verdict == "not above" or failed > tests / 2:
        which = "they would say nothing" if found.verdict == "not above" else f"only the other {tests - failed:,} would say anything"
        said = (
            f"The agent cannot do {failed:,} of the {tests:,} tasks even when nothing lies between: {run.figures}. "
            f"With distance, {which} about its memory."
        )
        return Meaning(verdict="cannot do", sentence=said, **run.next(alone=True))
    more = f" The other {failed:,} would say nothing about its memory." if failed else ""
    said = f"The agent can do {tests - failed:,} of the {tests:,} tasks when nothing lies between: {run.figures}.{more}"
    return Meaning(verdict="can do", sentence=said, **run.advised("Now see what distance costs", isolated=False))


def _with_control(run: _Run) -> Meaning | None:
    """Return what the tests say beside their control; None if there is none, or too little of it to tell."""
    pairs = [(each.test.chance, each.score, each.alone) for each in run.scored if each.alone is not None]
    found = against([(alone, chance) for chance, _, alone in pairs])
    if found.verdict == "too few":
        return None
    tests, failed = len(pairs), sum(alone < DONE for *_, alone in pairs)
    means = f"{percent(fmean(score for _, score, _ in pairs))} with distance, {percent(fmean(alone for *_, alone in pairs))} without"
    if found.verdict == "not above":
        said = f"The agent cannot do {failed:,} of the {tests:,} tasks even when nothing lies between, so that this score says nothing"
        return Meaning(verdict="cannot do", sentence=f"{said} about its memory: {means}.", **run.next(alone=True))
    p = permutation_p([score - alone for _, score, alone in pairs])
    lost = "" if p < ALPHA else "; no loss to distance is shown"
    only = (
        f" Only {tests - failed:,} of the tasks can be done at all: the others fail even when nothing lies between."
        if failed > tests / 2
        else ""
    )
    said = f"This score can speak of memory: {means} (p {p_told(p)} over {_count(tests)}){lost}.{only}"
    return Meaning(verdict="memory", sentence=said)


def _woven(run: _Run) -> Meaning:
    found = run.against
    if found.verdict == "too few":
        return Meaning(
            verdict="too few", sentence=f"{UNSURE} whether this score speaks of memory: {run.figures}, over {run.tests}.", **run.more
        )
    if found.verdict == "above":
        return Meaning(verdict="memory", sentence=f"This score can speak of memory: {run.figures} (p {p_told(found.p)} over {run.tests}).")
    said = f"This score says nothing about memory yet: {run.figures} (p {p_told(found.p)} over {run.tests})."
    return Meaning(verdict="guessing", sentence=f"{said}{_in_the_prompt(run)}", **run.next(alone=False))


def _in_the_prompt(run: _Run) -> str:
    """Say how the agent did where all that a test needs was in its prompt, if that is known and no better than guessing."""
    shown = []
    for each in run.scored:
        fates = [outcome for _, outcome in outcomes(each.test)]
        if fates and all(fate.startswith("found") for fate in fates):
            shown.append((each.score, each.test.chance))
    if not shown or against(shown).verdict != "not above":
        return ""
    failed = sum(score < DONE for score, _ in shown)
    return f" It fails {failed:,} of the {_count(len(shown))} for which all that they need was in its prompt."


def _count(tests: int) -> str:
    return f"{tests:,} test{'s' * (tests != 1)}"
