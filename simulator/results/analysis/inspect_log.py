"""Export of a run as an eval log of Inspect AI, with a sample for each test: its messages, its score and metadata."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from math import fsum
from pathlib import Path
from typing import Any, Final, final

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.results.analysis.rows import OwnTurns, Row, Rows, escape_surrogates
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.result import TestResult
from longspan.simulator.subject.ledger import total_cost

__all__ = ["log_writer"]

SCORER: Final = "longspan"

RUN_COLUMNS: Final = ("run", "suite", "span", "isolated", "placement", "seed", "agent")
"""Columns with the same value for all tests of a run. The log has them once."""

MESSAGE_COLUMNS: Final = ("turn", "sent_at", "kind", "test", "needle", "needs", "start", "tokens")
REPLY_COLUMNS: Final = ("reply_tokens", "latency_s", "repeated", "refused", "trace")
"""Columns of a turn that become metadata of its message and its reply, unless they are empty."""


def log_writer(folder: Path) -> Callable[[GradedRun, Rows], None]:
    """Return a function that writes runs to `folder`, one file each. Raises InputError if Inspect AI is not installed."""
    try:
        log, model, scorer = (import_module(f"inspect_ai.{name}") for name in ("log", "model", "scorer"))
    except ImportError as error:
        raise InputError(f"--format inspect needs an extra: {install_extra('inspect')}") from error
    converter = _Converter(log, model, scorer)
    counts: Counter[str] = Counter()

    def write(run: GradedRun, rows: Rows) -> None:
        counts[run.name] += 1
        number = "" if counts[run.name] == 1 else f"-{counts[run.name]}"
        path, content = folder / f"{run.name}{number}.eval", converter.log(run, rows)
        with ThreadPoolExecutor(1) as thread:  # in a running loop, as in a notebook, Inspect AI would change asyncio permanently
            thread.submit(log.write_eval_log, content, path, format="eval").result()

    return write


@final
class _Converter:
    """Creates Inspect AI's objects. Its modules are typed `Any`, because importing and type-checking them takes seconds."""

    def __init__(self, log: Any, model: Any, scorer: Any) -> None:
        self._log, self._model, self._scorer = log, model, scorer

    def log(self, run: GradedRun, rows: Rows) -> Any:
        """Return a run's log."""
        manifest, result = run.manifest, run.result
        turns = {(row["conversation"], row["turn"]): row for row in rows.turns}
        samples = [self._sample(run, test, row, rows.played, turns) for test, row in zip(result.tests, rows.tests, strict=True)]
        unended = [sample for sample in samples if sample.error is not None]
        began, ended = _times(run)
        id = manifest.commitment[:32]  # unique, because a commitment includes a nonce
        return self._log.EvalLog(
            status="error" if unended else "success",
            eval=self._log.EvalSpec(
                created=began,
                eval_id=id,
                run_id=id,
                task_id=id,
                task=escape_surrogates(manifest.suite.name),
                task_display_name=escape_surrogates(f"{manifest.suite.name} {run.column}"),
                task_args={key: rows.tests[0][key] for key in ("span", "isolated", "placement", "seed")},
                dataset=self._log.EvalDataset(
                    name=escape_surrogates(manifest.suite.name),
                    samples=len(samples),
                    sample_ids=[sample.id for sample in samples],
                    shuffled=False,
                ),
                model=escape_surrogates(manifest.agent),
                config=self._log.EvalConfig(epochs=1),
                packages={name: escape_surrogates(version) for name, version in manifest.versions.items()},
                metadata=_json({"run": run.name, "judge": manifest.judge, "left_out": manifest.left_out}),
            ),
            results=self._log.EvalResults(
                total_samples=len(samples), completed_samples=len(samples) - len(unended), scores=[self._totals(run)]
            ),
            stats=self._log.EvalStats(
                started_at=began,
                completed_at=ended,
                model_usage={
                    part: self._usage(spent.input_tokens, spent.cached_tokens, spent.output_tokens, spent.cost_usd)
                    for part, spent in result.costs.items()
                },
            ),
            error=self._error(f"{len(unended)} of {len(samples)} tests did not finish") if unended else None,
            samples=samples,
        )

    def _totals(self, run: GradedRun) -> Any:
        """Return the run's figures. As everywhere in longspan, the score is the sum over scenarios, not a mean over samples."""
        result = run.result
        low, high = result.score_bounds
        figures = {
            **({} if result.score is None else {"score": result.score}),
            "score_at_least": low,
            "score_at_most": high,
            "full_marks": result.max_score,
            "chance": result.chance,
            **({} if result.certified is None else {"certified": result.certified}),
            "at_distance": result.at_distance,
        }
        scored = sum(test.score is not None for test in result.tests)
        return self._log.EvalScore(
            name=SCORER,
            scorer=SCORER,
            scored_samples=scored,
            unscored_samples=len(result.tests) - scored,
            metrics={name: self._log.EvalMetric(name=name, value=value) for name, value in figures.items()},
            metadata=_json({"measure": result.measured} | {name: scenario.model_dump() for name, scenario in result.scenarios.items()}),
        )

    def _sample(
        self, run: GradedRun, test: TestResult, row: Row, played: Mapping[str, OwnTurns], turns: Mapping[tuple[str, int], Row]
    ) -> Any:
        """Return a test's sample: its turns, the needles that it needs, including a history's, and the turns that prove its grade."""
        id = run.conversations[test.id]
        conversation = played[id]
        test_turns = [turn for turn in conversation.turns if turn.message.test == test.id]
        needed = {*test.turns, *(pair.needle_turn for pair in test.evidence)}
        shown = {(id, turn.message.turn) for turn in test_turns}
        shown |= {
            (place, turn.message.turn)
            for place in (id, test.trunk)
            if place is not None
            for turn in played[place].turns
            if turn.message.turn in needed
        }
        rows = [turns[place] for place in sorted(shown, key=lambda place: place[1])]
        questions = [turn for turn in test_turns if turn.message.kind == "question"]
        opened = conversation.tests[test.id].definition if test.id in conversation.tests else None
        ideals = opened.ideal_replies(turn.message for turn in test_turns) if opened is not None else {}
        messages = [message for row in rows for message in self._messages(run, row)]
        last = next((turn.reply.text for turn in reversed(questions) if turn.reply is not None), None)
        return self._log.EvalSample(
            id=test.id,
            epoch=1,
            uuid=f"{run.manifest.commitment[:16]}-{test.id}",
            input=escape_surrogates("\n\n".join(turn.message.text for turn in questions)),
            target=[escape_surrogates(ideal) for ideal in ideals.values()],
            messages=messages,
            output=self._output(run, messages),
            scores={SCORER: self._score(test, last)},
            error=self._error(test.reason) if test.status in ("scenario_error", "agent_error", "unfinished") else None,
            metadata=_json(
                {name: value for name, value in row.items() if name not in (*RUN_COLUMNS, "reason")}
                | {
                    "skills": list(test.skills),
                    "turns": list(test.turns),
                    "evidence": [
                        {"needle": e.needle_turn, "question": e.question_turn, "tokens": e.tokens, "needed": e.needed}
                        for e in test.evidence
                    ],
                    "facts": opened.facts if opened is not None else None,
                }
            ),
            model_usage=self._usages(rows),
            total_time=fsum(row["latency_s"] for row in rows if row.get("latency_s") is not None),
        )

    def _score(self, test: TestResult, answer: str | None) -> Any:
        metadata: dict[str, Any] = {"chance": test.chance}
        if test.items:
            metadata["parts"] = [item.model_dump() for item in test.items]
        if test.correction is not None:
            metadata |= {"corrected_by": test.correction.by, "corrected_why": test.correction.why}
        fields = {
            "answer": None if answer is None else escape_surrogates(answer),
            "explanation": escape_surrogates(test.reason),
            "metadata": _json(metadata),
        }
        if test.score is None:
            return self._scorer.Score.unscored(reason=test.status, **fields)
        return self._scorer.Score(value=test.score, **fields)

    def _messages(self, run: GradedRun, row: Row) -> list[Any]:
        """Return a turn's user message and the agent's reply."""
        id = f"{row['conversation']}-{row['turn']}"
        message_data, reply_data = (
            _json({name: row[name] for name in names if row.get(name)}) for names in (MESSAGE_COLUMNS, REPLY_COLUMNS)
        )
        message_data["turn"], message_data["start"] = row["turn"], row["start"]
        messages = [
            self._model.ChatMessageUser(id=f"{id}-user", content=escape_surrogates(row["message"]), source="input", metadata=message_data)
        ]
        if row.get("reply") is not None:
            agent = escape_surrogates(run.manifest.agent)
            messages.append(
                self._model.ChatMessageAssistant(
                    id=f"{id}-agent", content=escape_surrogates(row["reply"]), model=agent, metadata=reply_data
                )
            )
        return messages

    def _output(self, run: GradedRun, messages: Sequence[Any]) -> Any:
        replies = [message for message in messages if message.role == "assistant"]
        choices = [self._model.ChatCompletionChoice(message=replies[-1])] if replies else []
        return self._model.ModelOutput(model=escape_surrogates(run.manifest.agent), choices=choices)

    def _usages(self, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the usage of the agent's model for the replies in `rows`; empty if unknown."""
        used_rows = [row for row in rows if row.get("input_tokens") is not None or row.get("output_tokens") is not None]
        if not used_rows:
            return {}
        used: dict[str, int] = defaultdict(int)
        for row in used_rows:
            for name in ("input_tokens", "cached_tokens", "output_tokens"):
                used[name] += row.get(name) or 0
        cost = total_cost(row.get("cost_usd") for row in used_rows)
        return {"agent": self._usage(used["input_tokens"], used["cached_tokens"], used["output_tokens"], cost)}

    def _usage(self, read: int, cached: int, written: int, dollars: float | None) -> Any:
        """Return tokens and dollars. Inspect AI counts tokens read from a cache separately."""
        return self._model.ModelUsage(
            input_tokens=max(0, read - cached),
            input_tokens_cache_read=cached,
            output_tokens=written,
            total_tokens=read + written,
            total_cost=dollars,
        )

    def _error(self, message: str) -> Any:
        return self._log.EvalError(message=escape_surrogates(message), traceback="", traceback_ansi="")


def _json(value: Any) -> Any:
    """Return JSON with lone surrogates in its strings escaped."""
    match value:
        case str():
            return escape_surrogates(value)
        case dict():
            return {escape_surrogates(str(key)): _json(item) for key, item in value.items()}
        case list() | tuple():
            return [_json(item) for item in value]
        case _:
            return value


def _times(run: GradedRun) -> tuple[str, str]:
    """Return the times, in ISO 8601, when a run began and when it last wrote a journal. They come from file dates, because journals only
    have virtual times."""
    manifest = run.folder.path / "manifest.json"
    written = [manifest, *(path for path in map(run.folder.journal, run.manifest.conversations) if path.exists())]
    dates = [datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds") for path in written]
    return dates[0], max(dates)
