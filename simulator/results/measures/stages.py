"""A memory by stage, independent of answers: the evidence stored, the evidence found, and the memory that finds the most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Self, final

from longspan.simulator.base.document import Data, Document, Sentence
from longspan.simulator.base.shares import format_interval, format_percent, format_share_range
from longspan.simulator.base.tables import Table
from longspan.simulator.filler.draws import join_words
from longspan.simulator.results.analysis.pairs import Pair
from longspan.simulator.results.analysis.stage_estimates import EvidenceQuestions, ShareEstimate, kinds_of
from longspan.simulator.results.analysis.statistics import least_conversations
from longspan.simulator.results.graded_runs import Column
from longspan.simulator.results.measures.cells import counted_tests
from longspan.simulator.results.measures.experiments import p_told
from longspan.simulator.results.measures.group_tables import Row, one_line, place_columns
from longspan.simulator.results.measures.measure import GradedTests, Measure, SideBySide
from longspan.simulator.results.measures.memory_losses import MemoryLosses
from longspan.simulator.results.measures.pair_tables import count_conversations, name_conversations, p_text, pair_row, pair_table
from longspan.simulator.results.result import MemoryResult, Result, StageResult, TestResult, round_figure
from longspan.simulator.suite.manifest import Manifest

__all__ = ["COLUMNS", "Stages"]

COLUMNS: Final[Mapping[str, type]] = {"kind": str, "stage": str, "k": int}
"""The columns of the CSV that only memories have."""

STAGES_NOTE: Final = (
    "Means over the questions that rest on evidence. Stored: the share of the evidence that became a memory. Found: the share among the "
    "first {k} memories that a search returned (recall@{k})."
)
INFERRED_NOTE: Final = "Inferred from wording or time, as memories name no turns:"
ANSWERED_NOTE: Final = " Answered right: the score of the answers to the same questions."

Chosen = Callable[[TestResult], bool]


@final
class Stages(Measure):
    """The evidence that a memory stored and found, with intervals, and comparisons of several memories."""

    name = "stages"

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        asked = EvidenceQuestions.of([(run.manifest, run.tests)])
        if not asked.is_memory:
            return {}
        losses = MemoryLosses.of(run.tests, run.manifest.span)
        return {
            "memory": MemoryResult(
                stages=list(_stages(asked, _any)),
                kinds={name: list(_stages(asked, chosen)) for name, chosen in kinds_of(run.tests).items()},
                needles={name: count for name, count in losses.needles._asdict().items() if count},
                inferred={name: count for name, count in losses.inferred._asdict().items() if count},
                sentence=losses.sentence or "",
            )
        }

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        memory = result.memory
        if memory is None:
            return Document()
        found = [each for each in memory.stages if each.stage == "found"]
        told = found if result.searched is not None else found[-1:]  # one line is enough if questions are answered
        lines = [Sentence(f"evidence found: {', '.join(map(_describe_stage, told))}")] if told else []
        return Document(lines=lines, closing=[Sentence(memory.sentence)] if memory.sentence else [])

    @classmethod
    def describe_comparison(cls, side: SideBySide) -> Document:
        if not side.memories:
            return Document()
        kinds = kinds_of(each.test for each in counted_tests(side.runs))
        by_kind = side.pairs_by_recall(kinds)
        pairs = pair_table(
            f"Evidence found among the first {side.k}",
            side.recall_pairs if side.baseline is None else [],
            side.called.names,
            several=len(side.columns) > 1,
        )
        tables = [_table(side)]
        if side.by_recall or len({agent for agent, _ in side.memories}) > 1:  # for one memory among other agents, the first table is enough
            tables += [_by_place(side), pairs, *_by_kind(side, kinds, by_kind)]
        data = [Data("stages", COLUMNS, list(_rows(side, kinds)))]
        data.append(Data("recall", COLUMNS, list(_pair_rows(side, by_kind))))
        verdicts = [Sentence(verdict) for verdict in _verdicts(side)] if side.by_recall and side.baseline is None else []
        return Document(verdicts=verdicts, first=[table for table in tables if table.rows], leading_data=data)


def _any(test: TestResult) -> bool:
    return True


def _each(asked: EvidenceQuestions, chosen: Chosen) -> Iterator[tuple[Literal["stored", "found", "answered"], int | None, ShareEstimate]]:
    """Yield the stages of a memory in order, each with its number of memories."""
    if (stored := asked.estimate_stored(chosen)) is not None:
        yield "stored", None, stored
    for k in asked.places:
        if (found := asked.estimate_found(k, chosen)) is not None:
            yield "found", k, found
    if (answered := asked.estimate_answered(chosen)) is not None:
        yield "answered", None, answered


def _stages(asked: EvidenceQuestions, chosen: Chosen) -> Iterator[StageResult]:
    for stage, k, estimate in _each(asked, chosen):
        between, undecided = estimate.interval, estimate.high > estimate.low
        yield StageResult(
            stage=stage,
            k=k,
            questions=estimate.questions,
            share=round_figure(estimate.low),
            share_at_most=round_figure(estimate.high) if undecided else None,
            interval=None if between is None else (round_figure(between.low), round_figure(between.high)),
        )


def _describe_stage(stage: StageResult) -> str:
    return f"{stage.shown}{format_interval(stage.interval)} {'as the first' if stage.k == 1 else f'among the first {stage.k}'}"


# ---- side by side


def _table(side: SideBySide) -> Table:
    """Return the table of memories by stage, best first in each column."""
    rows = []
    for agent, column, asked in _memories(side):
        found, answered = asked.estimate_found(side.k), asked.estimate_answered()
        rows.append(
            [
                side.called.names[agent],
                str(column),
                "" if found is None else f"{found.questions:,}",
                _cell(asked.estimate_stored()),
                _cell(found),
                _cell(answered),
                "" if answered is None else format_percent(asked.chance()),
            ]
        )
    columns = ["agent", "span", "questions", "stored", f"found among first {side.k}", "answered right", "chance"]
    kept = [number for number in range(len(columns)) if any(row[number] for row in rows)]
    rows = [[row[number] for number in kept] for row in rows]
    heads = [columns[number] for number in kept]
    inferring = [f"{side.called.names[agent]}{column.at}" for agent, column, asked in _memories(side) if asked.is_inferred]
    note = STAGES_NOTE.format(k=side.k) + ANSWERED_NOTE * ("answered right" in heads)
    if inferring:
        note += f" {INFERRED_NOTE} {join_words(inferring)}."
    return Table(title="Memories by stage [95% interval]", columns=heads, rows=rows, note=note)


def _by_place(side: SideBySide) -> Table:
    """Return the table of recall by number of memories. It has no rows if there is only one number."""
    places = sorted({k for asked in side.memories.values() for k in asked.places})
    rows = [
        [side.called.names[agent], str(column), *(_cell(asked.estimate_found(k)) if k <= max(asked.places) else "" for k in places)]
        for agent, column, asked in _memories(side)
    ]
    heads = [f"first {k}" for k in places]
    title = "Evidence found, by the number of memories looked at [95% interval]"
    return Table(title=title, columns=["agent", "span", *heads], rows=rows if len(places) > 1 else [])


def _by_kind(side: SideBySide, kinds: Mapping[str, Chosen], pairs: Mapping[str, Sequence[Pair]]) -> Iterator[Table]:
    """Yield a table of recall by kind of question for each column.

    With two memories, it includes p-values. With more, another table compares the best with each other.
    """
    for column in side.columns:
        memories = [(agent, side.memories[agent, column]) for agent in side.agents if (agent, column) in side.memories]
        two = len(memories) == 2
        rows = []
        for kind, chosen in kinds.items():
            found = [asked.estimate_found(side.k, chosen) for _, asked in memories]
            known = [each for each in found if each is not None]
            if known:
                number = f"{max(each.questions for each in known):,}"
                ps = [p_text(pair.corrected) for pair in pairs[kind] if pair.column == column] or [""]
                rows.append([one_line(kind), number, *map(_cell, found), *(ps[:1] if two else [])])
        what = "kind" if any(each.test.tags for each in counted_tests(side.runs)) else "scenario"
        columns = [what, "questions", *(side.called.names[agent] for agent, _ in memories), *(["p (Holm)"] if two else [])]
        have = max((pair.conversations for found in pairs.values() for pair in found), default=0)
        least = least_conversations(max(1, sum(map(len, pairs.values()))))
        few = f"{count_conversations(have)} cannot show a difference by {what}, however large: this needs {least}."
        note = few if 0 < have < least else ""
        title = f"Evidence found among the first {side.k}, by {what}{column.at} [95% interval]"
        yield Table(title=title, columns=columns, rows=rows, note=note)
        if len(memories) > 2 and not note:
            yield _against_best(side, column, what, pairs)


def _against_best(side: SideBySide, column: Column, what: str, pairs: Mapping[str, Sequence[Pair]]) -> Table:
    best, names = next(agent for agent in side.agents if (agent, column) in side.memories), side.called.names
    rows = [
        [one_line(kind), names[pair.agent], names[pair.other], format_percent(pair.difference), p_text(pair.p), p_text(pair.corrected)]
        for kind, found in pairs.items()
        for pair in found
        if pair.column == column and best in (pair.agent, pair.other)
    ]
    title = f"Evidence found among the first {side.k}, by {what}{column.at}: the best memory against each other, Holm-corrected for all"
    return Table(title=title, columns=[what, "higher", "lower", "difference", "p", "p (Holm)"], rows=rows)


def _memories(side: SideBySide) -> Iterator[tuple[str, Column, EvidenceQuestions]]:
    for column in side.columns:
        for agent in side.agents:
            if (asked := side.memories.get((agent, column))) is not None:
                yield agent, column, asked


def _cell(estimate: ShareEstimate | None) -> str:
    if estimate is None:
        return ""
    return f"{format_share_range(estimate.low, estimate.high)}{format_interval(estimate.interval)}"


def _rows(side: SideBySide, kinds: Mapping[str, Chosen]) -> Iterator[Row]:
    for kind, chosen in {"": _any, **kinds}.items():
        for agent, column, asked in _memories(side):
            for stage, k, estimate in _each(asked, chosen):
                between = estimate.interval
                yield place_columns(column, agent=agent) | {
                    "kind": kind or None,
                    "stage": stage,
                    "k": k,
                    "questions": estimate.questions,
                    "score": estimate.low if estimate.low == estimate.high else None,
                    "low": estimate.low,
                    "high": estimate.high,
                    "interval_low": None if between is None else between.low,
                    "interval_high": None if between is None else between.high,
                    "interval_by": None if between is None else between.by,
                    "chance": asked.chance() if stage == "answered" else None,
                }


def _pair_rows(side: SideBySide, by_kind: Mapping[str, Sequence[Pair]]) -> Iterator[Row]:
    for kind, pairs in {"": side.recall_pairs, **by_kind}.items():
        for pair in pairs:
            low, high = pair.interval or (None, None)
            yield pair_row(pair) | {"kind": kind or None, "k": side.k, "interval_low": low, "interval_high": high}


# ---- in words


def _verdicts(side: SideBySide) -> Iterator[str]:
    """Yield a sentence for each column: the memory that finds the most evidence, and the others that it significantly beats."""
    for column in side.columns:
        memories = [agent for agent in side.agents if (agent, column) in side.memories]
        open_ones = [agent for agent in memories if not _is_known(side.memories[agent, column].estimate_found(side.k))]
        agents = [agent for agent in memories if agent not in open_ones]
        pairs = [pair for pair in side.recall_pairs if pair.column == column]
        if open_ones:
            names = join_words([side.called.names[agent] for agent in open_ones])
            yield f"The recall of {names}{column.at} is not known exactly, so it is not compared: rephrased memories name no turns."
        if len(agents) == 2 and pairs:
            yield _of_two(side, pairs[0])
        elif pairs:
            yield _of_several(side, column, agents, pairs)


def _of_two(side: SideBySide, pair: Pair) -> str:
    one, other = side.called.names[pair.agent], side.called.names[pair.other]
    found = f"{_share(side, pair.agent, pair.column)} against {_share(side, pair.other, pair.column)}"
    shown = (
        f"{found} of the evidence among the first {side.k}, difference "
        f"{format_percent(pair.difference)}{format_interval(pair.interval, sign=True)}"
    )
    asked = f"{pair.tests:,} {'question' if pair.tests == 1 else 'questions'}"
    counted = f"{asked} in {count_conversations(pair.conversations, recorded=pair.recorded)}"
    tested = f"{shown}, p {p_told(pair.corrected)}, {counted}"
    at = pair.column.at
    match pair.verdict:
        case "better":
            return f"{one} finds more than {other}{at}: {tested}."
        case "better here":
            tested = f"{shown}, p {p_told(pair.p_of_tests)} over {asked}"
            return f"{one} and {other} differ in {name_conversations([pair])}{at}: {tested}; other conversations may differ."
        case "tie":
            return f"{one} and {other} tie in recall{at}: {tested}."
    needed = "" if pair.more is None else f"; about {pair.more:,} more would show this one in four of five cases"
    return f"No significant difference in recall between {one} and {other}{at}: {tested}{needed}."


def _of_several(side: SideBySide, column: Column, agents: Sequence[str], pairs: Sequence[Pair]) -> str:
    recall = {agent: _recall(side, agent, column) for agent in agents}
    shown = {(pair.agent, pair.other) for pair in pairs if pair.verdict == "better"}
    others = sorted(agents, key=lambda agent: -recall[agent])
    best = others[0]
    leaders = [agent for agent in agents if format_percent(recall[agent]) == format_percent(recall[best]) and (best, agent) not in shown]
    others = [agent for agent in others if agent not in leaders]
    beaten = [other for other in others if all((leader, other) in shown for leader in leaders)]
    rest = [other for other in others if other not in beaten]
    names = side.called.names
    most, verb = join_words([names[leader] for leader in leaders]), "tie for" if len(leaders) > 1 else "finds"
    told = f"{most} {verb} the most{column.at}: {format_percent(recall[best])} of the evidence among the first {side.k} memories."
    if beaten:
        told += f" That is significantly more than {join_words([f'{names[each]} ({_share(side, each, column)})' for each in beaten])}."
    if rest:
        told += f" It is not significantly more than {join_words([f'{names[each]} ({_share(side, each, column)})' for each in rest])}."
    return told


def _is_known(estimate: ShareEstimate | None) -> bool:
    return estimate is not None and estimate.low == estimate.high


def _recall(side: SideBySide, agent: str, column: Column) -> float:
    found = side.memories[agent, column].estimate_found(side.k)
    return 0.0 if found is None else found.low


def _share(side: SideBySide, agent: str, column: Column) -> str:
    return format_percent(_recall(side, agent, column))
