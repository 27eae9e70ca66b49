"""Exports the user's side of runs as datasets, so that they can be played elsewhere.

The messages of a dynamic test depend on the agent. They are replaced by filler, as if the test had said nothing, so that runs of the same
suite, span and seed give the same dataset for every agent.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.errors import InputError, JournalError, LongspanError, ScenarioError
from longspan.simulator.base.files.file_io import write_new_folder
from longspan.simulator.contract.script import Script, Segment
from longspan.simulator.filler.filler import Distraction
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import is_closed
from longspan.simulator.journal.transcript import PlayedTest, PlayedTurn
from longspan.simulator.play.conductor import CHARGE
from longspan.simulator.play.places import fill_places
from longspan.simulator.results.analysis.rows import OwnTurns, read_turns
from longspan.simulator.results.graded_runs import GradedRun, Unusable
from longspan.simulator.running.planning import check_filler, setting_of
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.suite import seed_of

__all__ = ["EXPECTED", "MESSAGES", "export_datasets"]

MESSAGES: Final = ("conversation", "turn", "sent_at", "dealt", "kind", "needle", "needs", "text", "tokens", "reply")
EXPECTED: Final = ("conversation", "trunk", "test", "scenario", "skills", "chance", "parameters", "facts", "turns", "questions")
"""The fields of messages and of tests; docs/reference/exports.md describes each."""

Row = dict[str, Any]


def export_datasets(runs: Sequence[GradedRun], out: Path) -> list[Unusable]:
    """Write the datasets of runs to the new folder `out`, one folder each. Return the runs without a dataset, with the reason.

    docs/reference/exports.md describes the files. The folder is created atomically. Raises InputError if it exists or cannot be written, or
    if no run has a dataset.
    """
    unusable: list[Unusable] = []
    called: Counter[str] = Counter()
    with write_new_folder(out) as folder:
        for run in runs:
            try:
                files = _files(run)
            except LongspanError as error:
                unusable.append(Unusable(run.folder.path, str(error)))
                continue
            called[run.name] += 1
            name = run.name if called[run.name] == 1 else f"{run.name}-{called[run.name]}"
            (folder / name).mkdir()
            for file, content in files.items():  # an escaped lone surrogate stays as it is in JSON
                (folder / name / file).write_text(content, "utf-8", errors="backslashreplace", newline="\n")
        if len(unusable) == len(runs):
            raise InputError(f"nothing can be exported: {unusable[0].why}")
    return unusable


def _files(run: GradedRun) -> dict[str, str]:
    """Return the files of a run's dataset by name. Raises LongspanError if it has none."""
    path, manifest = run.folder.path, run.manifest
    if manifest.imported is not None:
        raise InputError(f"{path}: no dataset: the run was imported, and its messages depended on the agent's replies")
    if manifest.format == 1:
        made = f"longspan {manifest.versions.get('longspan', '0.2')}, and its messages depended on the agent's replies"
        raise InputError(f"{path}: no dataset: the run was made by {made}; play its suite, span and seed with this version")
    if not all(run.folder.journal(id).exists() and is_closed(run.folder.journal(id)) for id in manifest.conversations):
        remedy = "continue it with `longspan resume`, or play its suite, span and seed with another agent: the dataset is the same"
        raise InputError(f"{path}: interrupted, so its dataset would end early; {remedy}")
    messages: list[Row] = []
    expected: list[Row] = []
    left_out: dict[str, str] = {}
    for id, played in read_turns(run.folder).items():
        reasons = {test.id: why for test in played.tests.values() if (why := _reason_to_omit(test))}
        left_out |= reasons
        if all(test in reasons for test in played.tests):
            continue
        try:
            messages += _messages(manifest, id, played)
        except JournalError as error:
            raise JournalError(f"{run.folder.journal(id)}: {error}") from error
        trunk = manifest.trunks.get(id)
        expected += [_test_row(id, trunk, test, played.turns) for test in played.tests.values() if test.id not in reasons]
    if not expected:
        raise InputError(f"{path}: no dataset: every test is left out, such as {' ('.join(next(iter(left_out.items())))})")
    about = _about(manifest) | {"left_out": left_out}
    try:
        return {
            "messages.jsonl": _json_lines(messages),
            "expected.jsonl": _json_lines(expected),
            "dataset.json": json.dumps(about, ensure_ascii=False, allow_nan=False, indent=1) + "\n",
        }
    except ValueError as error:
        raise JournalError(f"{path}: a number in it is not finite") from error


def _json_lines(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def _about(manifest: Manifest) -> Row:
    """Return the settings that a dataset depends on. The agent is not among them."""
    names = {"span", "seed", "placement", "isolated", "tokenizer", "filler_sha256", "filler_size", "definitions_sha256", "starts_at"}
    settings = manifest.model_dump(
        mode="json", include=names | {"pace_s"} | {name for name in ("nights", "score_farewells", "data") if getattr(manifest, name)}
    )
    return {"suite": manifest.suite.name} | settings | {"charge": CHARGE, "longspan": manifest.versions.get("longspan")}


def _reason_to_omit(test: PlayedTest) -> str | None:
    """Return the reason why a test is left out, or None if it is kept."""
    if test.definition.outline:
        return "dynamic: its messages depend on the agent"
    return f"failed: {test.error}" if test.status == "scenario_error" else None


@final
class _Place(NamedTuple):
    """A position left by an omitted test: its filler, its charged position, and whether it is a past turn (`told`)."""

    filler: Distraction
    dealt: int
    told: bool


def _messages(manifest: Manifest, id: str, played: OwnTurns) -> Iterator[Row]:
    """Yield the rows of a conversation's messages, with filler in place of its dynamic tests.

    Raises JournalError if the journal does not fit the conversation, and InputError for anything that the user has not allowed (see
    `gate`).
    """
    filled = _places(manifest, id, played)
    for turn in played.turns:
        message = turn.message
        values: tuple[object, ...]
        if place := filled.get(message.turn):
            ready = place.filler.reply if place.told else None
            values = (place.dealt, "filler", False, None, place.filler.text, place.filler.text_tokens, ready)
        else:
            ready = turn.reply.text if turn.reply is not None and not turn.reply.asked else None
            values = (_dealt(message), message.kind, message.needle, message.needs, message.text, message.tokens, ready)
        values = (id, message.turn, message.sent_at.isoformat(), *values)
        yield dict(zip(MESSAGES, values, strict=True))


def _dealt(message: events.Message) -> int:
    if message.dealt is None:
        raise JournalError(f"turn {message.turn} has no charged position")
    return message.dealt


def _places(manifest: Manifest, id: str, played: OwnTurns) -> dict[int, _Place]:
    """Return the positions of a conversation's dynamic tests by turn, including farewells."""
    dynamic = [test for test in played.tests.values() if test.definition.outline]
    if not dynamic:
        return {}
    filler = setting_of(manifest, id).filler
    check_filler(manifest)
    found: dict[int, _Place] = {}
    for test in dynamic:
        messages = [turn.message for turn in played.turns if turn.message.test == test.id]
        outline = _outline(test, messages)
        if len(messages) != (declared := sum(segment.turns for segment in outline)):
            raise JournalError(f"test {test.id} has {len(messages)} messages, but its outline declares {declared}")
        numbers = [(number, number < len(segment.told)) for segment in outline for number in range(segment.turns)]
        scenario = test.definition.scenario
        drawn = fill_places(filler, seed_of(manifest.seed, scenario, test.id.removeprefix(f"{scenario}-")), outline)
        dealt = 0
        for message, (number, told), filling in zip(messages, numbers, drawn, strict=True):
            if message.kind == "filler" and message.text != filling.text:
                made = manifest.versions.get("longspan")
                raise JournalError(f"turn {message.turn} is not what this version fills a place with; export it with longspan {made}")
            dealt = _dealt(message) if number == 0 else dealt  # a segment is charged in full, however much of it is said
            found[message.turn] = _Place(filling, dealt, told)
            dealt += filling.text_tokens + (filling.reply_tokens if told else CHARGE)
    return found


def _outline(test: PlayedTest, messages: Sequence[events.Message]) -> list[Segment]:
    """Return a dynamic test's outline, followed by its farewell if it said one. Raises JournalError for an invalid outline."""
    try:
        declared = test.definition.outline
        outline = [Segment(None, each["tokens"], each["replies"], told=[None] * len(each.get("told", ()))) for each in declared]
        Script(facts={}, outline=outline)
    except (KeyError, TypeError, ScenarioError) as error:
        raise JournalError(f"test {test.id} has an invalid outline: {error}") from error
    return [*outline, *(Segment(0, message.tokens, 1) for message in messages if message.kind == "farewell")]


def _test_row(id: str, trunk: str | None, test: PlayedTest, turns: Sequence[PlayedTurn]) -> Row:
    """Return a test's row: its turns, the facts for its grader, and the ideal replies to its questions."""
    opened = test.definition
    messages = [turn.message for turn in turns if turn.message.test == test.id and turn.message.kind in ("line", "question")]
    pairs = zip(messages, opened.lines, strict=False)
    questions = [{"turn": message.turn, "ideal": line.get("ideal")} for message, line in pairs if message.kind == "question"]
    known = (opened.scenario, opened.skills, opened.chance, opened.parameters, opened.facts)
    return dict(zip(EXPECTED, (id, trunk, test.id, *known, [message.turn for message in messages], questions), strict=True))
