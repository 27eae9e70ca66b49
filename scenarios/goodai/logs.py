"""Import a conversation that GoodAI's benchmark played: convert its master log to a journal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Final, Literal, NamedTuple, final

from longspan.scenarios.goodai.definitions import NAME
from longspan.scenarios.goodai.facts import SCENARIOS
from longspan.scenarios.goodai.log_journal import ENCODING, LoggedTest, LogJournal, Role
from longspan.scenarios.goodai.master_log import LogEvent, Type, read_log
from longspan.simulator.base.errors import InputError, ScenarioError
from longspan.simulator.contract.plugins import scenario_class
from longspan.simulator.contract.script import Script
from longspan.simulator.running.imports import ImportedConversation, ImportOptions, open_event
from longspan.simulator.suite.definitions import Definition
from longspan.simulator.suite.suite import Suite, load_suite

__all__ = ["read"]

UNKNOWN: Final = "unknown"


def read(file: Path, wanted: ImportOptions) -> ImportedConversation:
    """Return the conversation in a master log (plain or gzip).

    Messages, replies, their order and times come from the log; tokens are counted again. The definitions supply the rest: expected
    responses, which lines are needles, the span. Raises InputError, with the line, for a log that is damaged or that belongs to other tests
    than the defined ones.
    """
    entries = read_log(file)
    span = wanted.span or (wanted.definitions.span if wanted.definitions else None)
    if span is None:
        raise InputError(f"{file}: a log has no span; give --definitions DIR with the folder that it was played from, or --span S")
    defined = {Place(test.scenario, test.id): test for test in wanted.definitions.tests} if wanted.definitions else {}
    places = {entry.test: _place(file, entry) for entry in entries if entry.type is Type.BEGINS}
    suite = _suite((place.scenario for place in places.values()), wanted.rules)
    tests = {}
    for name, said in _lines_by_test(entries).items():
        place = places[name]
        script = _script(file, defined[place], said.messages, span) if place in defined else None
        facts: dict[str, str] | None = {} if place.scenario == "restaurant" else None  # visits are graded by their transcripts alone
        tests[name] = LoggedTest(
            opened=open_event(suite, place.scenario, place.id, script, facts),
            roles=_roles(said, script, place.scenario),
            stopped=script is not None and len(said.messages) < len(script.lines),
        )
    journal = LogJournal(tests, span)
    for entry in entries:
        journal.take(entry)
    absent = sorted(defined.keys() - set(places.values()))
    return ImportedConversation(
        suite=suite,
        agent=wanted.agent or _agent(file),
        tokenizer=ENCODING,
        events=journal.finish(),
        left_out=[f"{place.scenario}-{place.id} is left out: it is not in the log" for place in absent],
        notes=journal.notes,
    )


def _suite(scenarios: Iterable[str], rules: Literal["longspan", "paper"]) -> Suite:
    """Return the suite that grades tests of `scenarios`, with as many tests of each as the most frequent one has."""
    counts = Counter(sorted(scenarios))
    adjustable = [name for name in counts if rules == "paper" and "rules" in scenario_class(name).model_fields]
    return load_suite("ltm").apply_changes([f"{name}.rules=paper" for name in adjustable], [], list(counts), max(counts.values()))


def _agent(file: Path) -> str:
    """Return the agent that the log's folder is named after, such as "KIND - MODEL - CONTEXT"."""
    folder = file.resolve().parent.name.encode("utf-8", "replace").decode()
    return folder if " - " in folder else UNKNOWN


# ---- tests


@final
class Place(NamedTuple):
    """The scenario that grades a test, and the test's id."""

    scenario: str
    id: str


@final
class SpokenLines(NamedTuple):
    """A test's own messages, and whether it has ended."""

    messages: list[LogEvent]
    ended: bool


def _lines_by_test(entries: Sequence[LogEvent]) -> dict[str, SpokenLines]:
    """Return each test's lines. Tests come in the order of their first lines."""
    messages: dict[str, list[LogEvent]] = {entry.test: [] for entry in entries if entry.type is Type.BEGINS}
    for entry in entries:
        if entry.type is Type.SENT:
            messages[entry.test].append(entry)
    ended = {entry.test for entry in entries if entry.type is Type.ENDS}
    return {name: SpokenLines(said, name in ended) for name, said in messages.items()}


def _place(file: Path, begin: LogEvent) -> Place:
    """Return the scenario and the id of a test, which its name gives: DATASET - EXAMPLE."""
    dataset, _, example = begin.test.partition(" - ")
    if dataset not in SCENARIOS:
        raise InputError(f"{file}, line {begin.line}: unknown dataset {dataset!r:.60}; known are {', '.join(SCENARIOS)}")
    if not re.fullmatch(NAME, example):
        raise InputError(f"{file}, line {begin.line}: an example's name must be lower case letters, digits, _ and -, got {example!r:.60}")
    return Place(SCENARIOS[dataset], example)


def _script(file: Path, definition: Definition, said: Sequence[LogEvent], span: int) -> Script | None:
    """Return the script of a test's definition, with its questions as they were asked; None if it has none."""
    if definition.write is None:
        return None
    try:
        script = definition.write(Random(0), span)
    except ScenarioError as error:
        name = f"{definition.scenario}-{definition.id}"
        raise InputError(f"{file}: {name} cannot have been played at a span of {span:,} tokens: {error}") from None
    lines = list(script.lines)
    texts = [line.text for line in lines] or [script.facts[key] for key in ("telling", "instruction") if key in script.facts]
    for number, (entry, text) in enumerate(zip(said, texts, strict=False)):
        if definition.scenario == "jokes" and lines[number].asks and entry.text.strip():  # the question is made when it is asked
            lines[number] = replace(lines[number], text=entry.text)
        elif entry.text != text:
            raise InputError(
                f"{file}, line {entry.line}: {entry.test} says {entry.text!r:.60} but is defined to say {text!r:.60}; "
                "--definitions must name the folder that the log was played from"
            )
    return replace(script, lines=lines)


def _roles(said: SpokenLines, script: Script | None, scenario: str) -> list[Role]:
    """Return the roles of a test's messages. The last one is a farewell if it asks nothing and an earlier one does."""
    roles = []
    asked = any(entry.asks for entry in said.messages)
    for number, entry in enumerate(said.messages):
        line = script.lines[number] if script is not None and number < len(script.lines) else None
        if line is not None:
            roles.append(Role("question" if line.asks else "line", line.needle and not line.asks, line.needs))
        elif entry.asks:
            roles.append(Role("question", needle=scenario == "restaurant"))  # its menu comes with a question
        elif said.ended and asked and number == len(said.messages) - 1:
            roles.append(Role("farewell", needle=False))
        else:
            roles.append(Role("line", needle=True))
    return roles
