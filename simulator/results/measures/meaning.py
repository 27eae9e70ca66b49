"""The meaning of a run's score: whether it is better than guessing, the cost of distance, and what to run next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import ceil
from statistics import fmean
from typing import Any, Final, NamedTuple, Self, final

from longspan.simulator.base.agent_names import short_names
from longspan.simulator.base.document import Document, Sentence, Tone
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.shares import format_interval, format_percent, format_points, format_share_range
from longspan.simulator.contract.rungs import find_rungs
from longspan.simulator.filler.draws import join_words
from longspan.simulator.results.analysis.changes import command_of, reach_of
from longspan.simulator.results.analysis.comparable import played_key
from longspan.simulator.results.analysis.distance_cost import DistanceCost, PairedTest, measure_distance_cost
from longspan.simulator.results.analysis.guessing import GuessingTest, compare_scenarios, compare_with_guessing
from longspan.simulator.results.analysis.stage_estimates import EvidenceQuestions
from longspan.simulator.results.analysis.statistics import total_score
from longspan.simulator.results.analysis.units import Key, Units, test_keys
from longspan.simulator.results.effects import Effect
from longspan.simulator.results.graded_runs import Column, GradedRun
from longspan.simulator.results.measures.experiments import effect_of, p_told
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.measures.memory_losses import need_outcomes
from longspan.simulator.results.result import Meaning, Result, ScoreVerdict, TestResult
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.manifest import Manifest

__all__ = ["DONE", "UNWARNED", "RunScores", "ScoreMeaning", "describe_warnings", "meaning_of"]

DONE: Final = 0.5
"""The least score of a test that counts as done."""

ENOUGH: Final = 12
"""The number of tests advised where there were too few."""

UNWARNED: Final[Sequence[ScoreVerdict]] = ("distance costs", "no loss shown", "better", "unknown", "can do", "ideal")
"""The verdicts that need no warning."""

MOST_OPENINGS: Final = 6
"""The maximum number of agents and columns with separate sentences before the table of several runs."""

NAMED: Final = 2
"""The same for the notes of a comparison."""

VERDICTS: Final[Mapping[ScoreVerdict, str]] = {
    "distance costs": "Distance costs these agents part of their scores",
    "no loss shown": "No loss to distance is shown",
    "better": "Better than guessing, in some scenarios at least",
    "unknown": "Not compared with guessing, since the questions are open",
    "can do": "Better than guessing without distance",
    "ideal": "The oracle is given the answers, so its scores say nothing about memory",
    "not shown": "Not shown to be better than guessing",
    "cannot do": "Not shown to be better than guessing, even without distance",
    "too few": "Too few tests to compare these scores with guessing",
    "no score": "No test has a score, so the answers are unknown",
}
"""The headings of agents with the same verdict, in order of appearance."""

PLAIN_FACTS: Final = "See how far back it remembers facts that any agent can repeat"
"""The advice where the tasks are too hard, or cannot be played without distance."""

WITHOUT_MEMORY: Final = {"advice": "Compare it with the same agent without memory"}
"""The advice where the score of guessing is unknown."""

NO_LOSS: Final = "So its score at a distance says nothing about memory."

COST: Final = "Play a control to see whether the loss is due to distance"


@final
class RunScores(NamedTuple):
    """A run's tests with their scores. `control` has their scores without distance, None if those were not played."""

    manifest: Manifest
    tests: Sequence[TestResult]
    control: Effect | None = None


@final
class ScoreMeaning(Measure):
    """The meaning of a run's score."""

    name = "meaning"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        if any(test.counts and find_rungs(test.items) for test in run.tests):
            return {"meaning": None}  # how far back the agent remembers is more informative
        return {"meaning": meaning_of([RunScores(run.manifest, run.tests, effect_of(run, "control"))])}

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        return Document(opening=[] if result.meaning is None else [_opening_sentence(result.meaning)])

    @classmethod
    def describe_runs(cls, runs: Sequence[GradedRun]) -> Document:
        found = _read_meanings(runs)
        if len(found) <= MOST_OPENINGS:
            return Document(opening=[_opening_sentence(each.meaning, each.name) for each in found])
        return Document(opening=list(_group_sentences(found, short_names(list(dict.fromkeys(each.agent for each in found))).names)))


def _opening_sentence(meaning: Meaning, whose: str = "") -> Sentence:
    """Return the first sentence about a run. `whose` names the agent where there are several."""
    end = ":" if meaning.command else "."
    text = f"{meaning.sentence} {meaning.advice}{end}" if meaning.advice else meaning.sentence
    tone: Tone = "plain" if meaning.verdict in UNWARNED else "warning"
    return Sentence(f"{whose}: {text}" if whose else text, tone=tone, command=meaning.command)


@final
class _AgentMeaning(NamedTuple):
    """The meaning of the scores of an agent's runs of the same tests: the suite if there are several, the agent, and the column."""

    suite: str
    agent: str
    column: Column
    meaning: Meaning

    @property
    def name(self) -> str:
        return f"{self.suite}{self.agent}{self.column.at}"


def _group_sentences(found: Sequence[_AgentMeaning], names: Mapping[str, str]) -> Iterator[Sentence]:
    """Yield a sentence for each verdict with its agents, and the next command for the first of them."""
    for verdict, what in VERDICTS.items():
        those = [each for each in found if each.meaning.verdict == verdict]
        first = next((each.meaning for each in those if each.meaning.command), None)
        advice, command = ("", "") if first is None else (f" {first.advice}, such as", first.command)
        if those:
            yield Sentence(
                f"{what}: {_list_agents(those, names)}.{advice}", tone="plain" if verdict in UNWARNED else "warning", command=command
            )


def _list_agents(found: Sequence[_AgentMeaning], names: Mapping[str, str]) -> str:
    """Name agents with the columns of their findings, each agent once."""
    by_agent: dict[str, list[str]] = {}
    for each in found:
        by_agent.setdefault(f"{each.suite}{names[each.agent]}", []).append(str(each.column))
    return ", ".join(f"{name} at {join_words(columns)}" for name, columns in by_agent.items())


def _read_meanings(runs: Iterable[GradedRun]) -> list[_AgentMeaning]:
    """Return the meanings of the scores of several runs. An agent's runs of the same tests are judged together."""
    groups: dict[tuple[str, Column, str], list[RunScores]] = {}
    for run in runs:
        if run.result.reach:
            continue
        key = (run.agent, run.column, played_key(run.manifest))
        groups.setdefault(key, []).append(RunScores(run.manifest, run.result.tests, run.result.control))
    several = len({tests for *_, tests in groups}) > 1
    suites = [f"{group[0].manifest.suite.name}: " if several else "" for group in groups.values()]
    return [
        _AgentMeaning(suite, agent, column, meaning_of(group))
        for suite, ((agent, column, _), group) in zip(suites, groups.items(), strict=True)
    ]


def describe_warnings(runs: Iterable[GradedRun], names: Mapping[str, str]) -> list[str]:
    """Return a sentence for each agent whose scores need a warning, or for each verdict if there are many.

    `names` maps agents to short names.
    """
    found = [each for each in _read_meanings(runs) if each.meaning.verdict not in UNWARNED]
    if len(found) <= NAMED:
        return [f"{each.suite}{names[each.agent]}{each.column.at}: {each.meaning.sentence}" for each in found]
    return [sentence.text.partition(". ")[0] for sentence in _group_sentences(found, names)]


def meaning_of(runs: Sequence[RunScores]) -> Meaning:
    """Return the meaning of the scores of an agent's runs in a column, over the tests with a score. The others are counted."""
    found = _meaning_of_scored(runs)
    counted = [test for run in runs for test in run.tests if test.counts]
    missing = sum(test.score is None for test in counted)
    if not missing or found.verdict == "no score":
        return found
    return found.model_copy(update={"sentence": f"{found.sentence} {missing:,} of {len(counted):,} tests have no score."})


def _meaning_of_scored(runs: Sequence[RunScores]) -> Meaning:
    scored = list(_find_scored(runs))
    # A question without evidence, such as one without an answer, requires no memory.
    resting = [each for each in scored if each.test.evidence] or scored
    run = _Run(runs[0].manifest, resting)
    if not resting:
        return Meaning(verdict="no score", sentence=_describe_search(runs) or "No test has a score, so the agent's answers are unknown.")
    if run.spec is not None and run.spec.kind == "oracle":
        return _ideal(run)
    if run.manifest.isolated:
        return _explain_isolated(run)
    return _with_control(run) or _woven(run)


def _describe_search(runs: Sequence[RunScores]) -> str:
    """Describe what the memory found in runs where no test has a score; empty if the agent reports no memory."""
    asked = EvidenceQuestions.of([(each.manifest, each.tests) for each in runs])
    k = max(asked.places)
    if not asked.is_memory or (found := asked.estimate_found(k)) is None:
        return ""
    share = f"{format_share_range(found.low, found.high)}{format_interval(found.interval)} of the evidence among the first {k} memories"
    over = f"over {found.questions:,} question{'s' * (found.questions != 1)}"
    return f"The memory finds {share}, {over}. No test has a score, so its answers are unknown."


def _find_scored(runs: Sequence[RunScores]) -> Iterator[_TestScore]:
    """Yield the tests that count and have a score. A recorded history with several tellings counts once, with its mean score."""
    units = Units(manifest for manifest, *_ in runs)
    found: dict[Key, list[_TestScore]] = {}
    for manifest, tests, control in runs:
        known = test_keys(manifest)
        without = {} if control is None else {each.test: each.score_without for each in control.tests}
        for test in tests:
            if test.counts and test.score is not None and test.id in known:
                key = known[test.id]
                found.setdefault(key, []).append(_TestScore(test, units.of(key), test.score, without.get(test.id)))
    for same in found.values():
        alone = [each.alone for each in same if each.alone is not None]
        yield same[0]._replace(score=fmean(each.score for each in same), alone=fmean(alone) if alone else None)


@final
class _TestScore(NamedTuple):
    """A test with its independent unit, its score, and its score without distance, None if unknown."""

    test: TestResult
    unit: str
    score: float
    alone: float | None

    @property
    def is_open(self) -> bool:
        """Whether the score of guessing is unknown: there is nothing to choose from, and no known floor."""
        return self.test.chance == 0 and not any("floor" in item.numbers for item in self.test.items)


@final
class _Run:
    """The tests of a run that have a score and rest on evidence."""

    def __init__(self, manifest: Manifest, scored: Sequence[_TestScore]) -> None:
        self.manifest = manifest
        self.scored = scored
        try:
            self.spec: AgentSpec | None = AgentSpec.parse(manifest.agent)
        except InputError:  # an imported run's agent has the name in its file
            self.spec = None

    @cached_property
    def known(self) -> list[_TestScore]:
        """The tests with a known score of guessing."""
        return [each for each in self.scored if not each.is_open]

    @cached_property
    def guessing(self) -> GuessingTest:
        """The comparison with guessing, over the tests where the score of guessing is known.

        If all questions are open, they are compared with a score of 0. Their scores may still be too low, but they are never called better.
        """
        tests = _by_scenario(self.known or self.scored)
        return compare_scenarios({name: [(each.score, each.test.chance) for each in own] for name, own in tests.items()})

    @property
    def failed(self) -> int:
        return sum(each.score < DONE for each in self.scored)

    @property
    def tests(self) -> str:
        return _count(len(self.scored))

    @property
    def p(self) -> str:
        """The p-value of the test against guessing in brackets; empty if the score of guessing is unknown."""
        return f" (p {p_told(self.guessing.p)} over {_count(len(self.known))})" if self.known else ""

    @property
    def shown(self) -> str:
        """The number of scenarios with a score significantly better than guessing, in words; empty if there is only one scenario."""
        scenarios, better = len({each.test.scenario for each in self.known}), len(self.guessing.better)
        if scenarios == 1:
            return ""
        if not better:
            return f", though not in any single one of {scenarios} scenarios"
        return f", shown in {better} of {scenarios} scenarios" if better < scenarios else f", shown in all {scenarios} scenarios"

    @property
    def figures(self) -> str:
        """The score and the score of guessing, in words."""
        tests = _by_scenario(self.scored)
        chance = total_score({name: [each.test.chance for each in own] for name, own in tests.items()})
        earned = total_score({name: [each.score for each in own] for name, own in tests.items()})
        aside = ", without open questions" if len(self.known) < len(self.scored) else ""
        earns = (
            f"where guessing scores {format_percent(chance / len(tests))}{aside}"
            if self.known
            else "in open questions, where the score of guessing is unknown"
        )
        return f"{format_percent(earned / len(tests))} of full marks ({format_points(earned, earned)} of {len(tests)}) {earns}"

    def advise(self, advice: str, **changes: Any) -> dict[str, str]:
        """Return advice to play the run's tests with changed settings, and the command for it; empty for an imported run."""
        return {} if self.manifest.imported is not None else {"advice": advice, "command": command_of(self.manifest, **changes)}

    @property
    def is_alone(self) -> bool:
        """Whether every test already has a separate conversation, so that there is no distance to remove."""
        return all(test.alone or test.trunk is not None for _, test in self.manifest.graded)

    @property
    def cost(self) -> dict[str, str]:
        """The advice to measure the cost of distance; empty if nothing is lost, or if a control was played."""
        is_known = self.is_alone or self.manifest.control or not any(each.score < 1 for each in self.scored)
        return {} if is_known else self.advise(COST, control=True)

    @property
    def more(self) -> dict[str, str]:
        """The advice to play more tests. A recorded history has no others, whatever the seed."""
        keys = test_keys(self.manifest)
        if all(keys[each.test.id].recorded is not None for each in self.scored):
            return {"advice": "Add questions to the data"}
        scenarios = len({each.test.scenario for each in self.scored})
        tests = max(2 * self.manifest.suite.tests, ceil(ENOUGH / scenarios))
        return self.advise("Play more tests", tests=tests, control=self.manifest.control)

    def next(self, *, alone: bool) -> dict[str, str]:
        """The advice for an agent that scores no better than guessing. `alone`: its score without distance is known."""
        bare = self.spec.without_answerer if self.spec is not None else None
        if bare is not None:
            return self.advise("See what the memory finds, without its answerer", agent=str(bare))
        if alone or self.is_alone:
            return {} if self.manifest.imported is not None else {"advice": PLAIN_FACTS, "command": reach_of(self.manifest)}
        return self.advise("See whether the agent can do the tasks at all", isolated=True, nights=0)


def _by_scenario(scored: Sequence[_TestScore]) -> dict[str, list[_TestScore]]:
    found: dict[str, list[_TestScore]] = {}
    for each in sorted(scored, key=lambda each: each.test.scenario):
        found.setdefault(each.test.scenario, []).append(each)
    return found


def _ideal(run: _Run) -> Meaning:
    if run.failed:
        said = (
            f"Even the oracle, which is given the answers, fails {run.failed:,} of {run.tests}: these say nothing about any agent's memory."
        )
    else:
        said = "This score says nothing about memory: the oracle is given the answers, which shows that the tests can be passed."
    return Meaning(verdict="ideal", sentence=said)


def _explain_isolated(run: _Run) -> Meaning:
    if (plain := _explain_undecided(run, "Without distance, ")) is not None:
        return plain
    found = run.guessing
    if found.verdict == "not better":
        said = f"Not shown to be better than guessing, even without distance{run.p}: {run.figures}."
        return Meaning(verdict="cannot do", sentence=f"{said} {NO_LOSS}", **run.next(alone=True))
    said = f"Without distance, better than guessing{run.p}{run.shown}: {run.figures}."
    advice = run.advise("Now see what distance costs", isolated=False, control=True)
    return Meaning(verdict="can do", sentence=said, scenarios=list(found.better), **advice)


def _with_control(run: _Run) -> Meaning | None:
    """Return the cost of distance; None without a control, or if the control is too small to decide."""
    pairs = [
        PairedTest(each.test.scenario, each.unit, each.test.chance, each.score, each.alone) for each in run.scored if each.alone is not None
    ]
    if not pairs:
        return None
    cost = measure_distance_cost(pairs)
    if cost is not None:
        return _describe_cost(run, cost, len({each.scenario for each in pairs}))
    if compare_with_guessing([(each.without, each.chance) for each in pairs]).verdict != "not better":
        return None
    means = (
        f"{format_percent(fmean(each.score for each in pairs))} with distance, "
        f"{format_percent(fmean(each.without for each in pairs))} without"
    )
    said = f"Not shown to be better than guessing, even without distance: {means}, over {_count(len(pairs))}."
    return Meaning(verdict="cannot do", sentence=f"{said} {NO_LOSS}", **run.next(alone=True))


def _describe_cost(run: _Run, cost: DistanceCost, scenarios: int) -> Meaning:
    """Describe the cost of distance in the scenarios that the agent can do, out of this number of `scenarios`."""
    done, rest = len(cost.single), ""
    where = "" if scenarios == 1 else " over both scenarios" if scenarios == 2 else f" over all {scenarios} scenarios"
    if not done and scenarios > 1:
        rest = " No single scenario is significantly better than guessing."
    elif done < scenarios:
        where = f" over the {done} of {scenarios} scenarios that the agent can do"
        other = "the other" if scenarios - done == 1 else f"the other {scenarios - done}"
        rest = f" In {other}, it is not shown to be better than guessing, even without distance."
    loss, p = f"{format_percent(cost.loss)}{format_interval(cost.interval)} of full marks", f"p {p_told(cost.p)} over {_count(cost.tests)}"
    means = f"{format_percent(cost.score)} with distance, {format_percent(cost.without)} without"
    if cost.is_shown:
        said = f"Distance costs {loss}{where} ({p}): {means}.{rest}"
        return Meaning(verdict="distance costs", sentence=said, scenarios=list(cost.single))
    said = f"No loss to distance is shown{where} ({p}): {means}, a loss of {loss}.{rest}"
    return Meaning(verdict="no loss shown", sentence=said, scenarios=list(cost.single), **(run.more if cost.loss > 0 else {}))


def _woven(run: _Run) -> Meaning:
    if (plain := _explain_undecided(run)) is not None:
        return plain
    found = run.guessing
    if found.verdict == "better":
        said = f"Better than guessing{run.p}{run.shown}: {run.figures}."
        return Meaning(verdict="better", sentence=said, scenarios=list(found.better), **run.cost)
    said = f"Not shown to be better than guessing{run.p}: {run.figures}.{_in_the_prompt(run)}"
    return Meaning(verdict="not shown", sentence=said, **run.next(alone=False))


def _explain_undecided(run: _Run, lead: str = "") -> Meaning | None:
    """Return the meaning of a score that cannot be compared with guessing; None if it can.

    Either the score of guessing is unknown, or there are too few tests.
    """
    verdict = run.guessing.verdict
    if verdict == "better" and not run.known:
        return Meaning(verdict="unknown", sentence=f"{lead}{run.figures}, over {run.tests}.", **(run.cost or WITHOUT_MEMORY))
    if verdict == "too few":
        said = f"{lead}too few tests to compare it with guessing: {run.figures}, over {run.tests}."
        return Meaning(verdict="too few", sentence=said[0].upper() + said[1:], **run.more)
    return None


def _in_the_prompt(run: _Run) -> str:
    """Describe the scores of tests with all their evidence in the prompt; empty unless they are known and no better than guessing."""
    shown = []
    for each in run.scored:
        fates = [outcome for _, outcome in need_outcomes(each.test)]
        if fates and all(fate.startswith("found") for fate in fates):
            shown.append((each.score, each.test.chance))
    if not shown or compare_with_guessing(shown).verdict != "not better":
        return ""
    failed = sum(score < DONE for score, _ in shown)
    return f" It fails {failed:,} of {_count(len(shown))} with all their evidence in the prompt."


def _count(tests: int) -> str:
    return f"{tests:,} test{'s' * (tests != 1)}"
