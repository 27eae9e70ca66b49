"""Runs as rows of tidy tables: one row for each test and one for each turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.errors import JournalError
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Change, PlayedTest, PlayedTurn, Transcript
from longspan.simulator.results.analysis.distances import questions_with_needs
from longspan.simulator.results.analysis.interference import CAUSES
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.result import TestResult

__all__ = ["TESTS", "TURNS", "OwnTurns", "Row", "Rows", "escape_surrogates", "read_turns", "rows_of"]

INT64_LIMIT: Final = 2**63

Row = dict[str, Any]

TESTS: Final[dict[str, type]] = {
    "run": str,
    "suite": str,
    "span": int,
    "isolated": bool,
    "placement": str,
    "seed": int,
    "agent": str,
    "label": str,
    "conversation": str,
    "trunk": str,
    "test": str,
    "scenario": str,
    "skills": str,
    "tags": str,
    "similar": float,
    "updates": float,
    "counts": bool,
    "status": str,
    "measure": str,
    "score": float,
    "machine_score": float,
    "corrected_by": str,
    "chance": float,
    "certified": bool,
    "at_distance": bool,
    "exempt": str,
    "span_dealt": int,
    "span_used": int,
    "evidence": int,
    "evidence_nearest": int,
    "evidence_mean": float,
    "evidence_furthest": int,
    "distance": int,
    "turns": str,
    "refused": int,
    "reason": str,
}
"""The columns of the table of tests; docs/reference/exports.md describes each."""

TURNS: Final[dict[str, type]] = {
    "run": str,
    "conversation": str,
    "turn": int,
    "sent_at": str,
    "kind": str,
    "test": str,
    "scenario": str,
    "needle": bool,
    "needs": str,
    "distance": int,
    "distance_dealt": int,
    "message": str,
    "tokens": int,
    "start": int,
    "reply": str,
    "reply_tokens": int,
    "end": int,
    "asked": bool,
    "repeated": bool,
    "refused": bool,
    "latency_s": float,
    "input_tokens": int,
    "cached_tokens": int,
    "output_tokens": int,
    "cost_usd": float,
    "trace": str,
}
"""The columns of the table of turns; docs/reference/exports.md describes each."""


@final
class OwnTurns(NamedTuple):
    """A conversation's turns in order, without its trunk's, and its tests by id. The last turn of an interrupted conversation may have no
    reply."""

    turns: list[PlayedTurn]
    tests: dict[str, PlayedTest]


@final
class Rows(NamedTuple):
    """A run's tests and turns as rows, and its conversations by id."""

    tests: list[Row]
    turns: list[Row]
    played: Mapping[str, OwnTurns]


def read_turns(run: RunFolder) -> dict[str, OwnTurns]:
    """Return a run's conversations by id. A conversation that has not begun has no turns. Raises JournalError for a damaged journal."""
    turns: dict[str, list[PlayedTurn]] = {id: [] for id in run.manifest.conversations}

    def on_change(id: str, transcript: Transcript, change: Change) -> None:
        if isinstance(change, PlayedTurn):
            turns[id][change.number - transcript.before :] = [change]

    transcripts = run.transcripts(on_change)
    return {id: OwnTurns(turns[id], transcripts[id].tests if id in transcripts else {}) for id in turns}


def rows_of(name: str, run: GradedRun) -> Rows:
    """Return a run's rows, with `name` as the run's name. Raises JournalError for a damaged journal."""
    played = read_turns(run.folder)
    turns = [turn_row(name, run, id, turn) for id, conversation in played.items() for turn in conversation.turns]
    tests = [test_row(name, run, test) for test in run.result.tests]
    _check(run, [*turns, *tests])
    return Rows(tests, turns, played)


def _check(run: GradedRun, rows: Iterable[Row]) -> None:
    """Raise JournalError for numbers that are not finite or need more than 64 bits."""
    for row in rows:
        for column, value in row.items():
            if isinstance(value, int | float) and not -INT64_LIMIT < value < INT64_LIMIT:
                where = row.get("turn", row.get("test"))
                raise JournalError(f"{run.folder.path}: {column} of {where} is out of range: {value!r:.40}")


def test_row(name: str, run: GradedRun, test: TestResult) -> Row:
    """Return a test's row, with the settings of its run. Lists are joined by "; "."""
    distances = [evidence.tokens for evidence in test.evidence]
    manifest = run.manifest
    return {
        "run": name,
        "suite": manifest.suite.name,
        "span": manifest.span,
        "isolated": manifest.isolated,
        "placement": manifest.placement,
        "seed": manifest.seed,
        "agent": manifest.agent,
        "label": manifest.label,
        "conversation": run.conversations[test.id],
        "trunk": test.trunk,
        "test": test.id,
        "scenario": test.scenario,
        "skills": "; ".join(test.skills),
        "tags": "; ".join(test.tags),
        **{cause: test.numbers.get(cause) for cause in CAUSES},
        "counts": test.counts,
        "status": test.status,
        "measure": run.result.measured,
        "score": test.score,
        "machine_score": test.machine_score,
        "corrected_by": test.correction.by if test.correction else None,
        "chance": test.chance,
        "certified": test.certified,
        "at_distance": test.at_distance,
        "exempt": test.exempt,
        "span_dealt": test.span_dealt or None,
        "span_used": test.span_used,
        "evidence": len(distances),
        "evidence_nearest": min(distances, default=None),
        "evidence_mean": fmean(distances) if distances else None,
        "evidence_furthest": max(distances, default=None),
        "distance": max((question.tokens for question in questions_with_needs(test)), default=None),
        "turns": "; ".join(map(str, test.turns)),
        "refused": test.refused,
        "reason": test.reason,
    }


def turn_row(name: str, run: GradedRun, conversation: str, turn: PlayedTurn) -> Row:
    """Return a turn's row. A turn without a reply lacks the columns of the reply."""
    message, reply = turn.message, turn.reply
    test = next((test for test in run.result.tests if test.id == message.test), None)
    question = next((each for each in questions_with_needs(test) if each.turn == message.turn), None) if test is not None else None
    row: Row = {
        "run": name,
        "conversation": conversation,
        "turn": message.turn,
        "sent_at": message.sent_at.isoformat(),
        "kind": message.kind,
        "test": message.test,
        "scenario": test.scenario if test is not None else None,
        "needle": message.needle,
        "needs": "; ".join(map(str, message.needs or [])),
        "distance": question.tokens if question is not None else None,
        "distance_dealt": question.dealt if question is not None else None,
        "message": message.text,
        "tokens": message.tokens,
        "start": message.start,
    }
    if reply is None:
        return row
    latency = (reply.measured or {}).get("latency_s")
    return row | {
        "reply": reply.text,
        "reply_tokens": reply.tokens,
        "end": reply.end,
        "asked": reply.asked,
        "repeated": bool(reply.repeated),
        "refused": bool(reply.refused),
        "latency_s": latency if isinstance(latency, int | float) else None,
        **{key: (reply.usage or {}).get(key) for key in ("input_tokens", "cached_tokens", "output_tokens")},
        "cost_usd": turn.dollars,
        "trace": json.dumps(reply.trace, ensure_ascii=False) if reply.trace is not None else None,
    }


def escape_surrogates(value: str) -> str:
    """Escape lone surrogates, so that the string can be encoded."""
    return value.encode("utf-8", "backslashreplace").decode()
