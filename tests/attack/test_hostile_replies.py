"""Replies made to take long to read: every grader and every other reader of agents' text takes time linear in their length."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from typing import Any, Final

import pytest
import trio

from longspan.agents.base import AgentError, Message
from longspan.agents.memory.ltm.fragments import Turn, split_turn
from longspan.agents.memory.ltm.scratchpad import JsonPad, TextPad
from longspan.agents.models import web
from longspan.agents.models.chat import cut_middle
from longspan.agents.models.core import clean_unicode
from longspan.agents.outside import protocol
from longspan.agents.reference.notebook import Notebook
from longspan.scenarios.cream.judge_questions import ask_alignment, key_facts
from longspan.scenarios.cream.sentences import split_sentences
from longspan.scenarios.elitr import rubrics
from longspan.scenarios.goodai.files import LoggedTurn
from longspan.scenarios.goodai.visit import grade_visit
from longspan.scenarios.summhay import bullets
from longspan.simulator.base.errors import journal_text, one_line
from longspan.simulator.base.keys import redact
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.base.words import number, plain
from longspan.simulator.contract.graded_record import MAX_CHARACTERS, Exchange, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.queries import statement
from longspan.simulator.pages.report.excerpts import Excerpt, escape_invisible, script_json
from longspan.simulator.reading.dates import find_dates
from longspan.simulator.reading.labelled_lists import find_labelled_lists
from longspan.simulator.reading.matching import contains_nearly, found_words, join_some, split_json
from longspan.simulator.reading.replies.reading import parse_reply, settled_words
from longspan.simulator.reading.replies.times import find_hours
from longspan.simulator.results.gradebook.needle_fates import Traces
from longspan.simulator.results.judging.cached_model import object_in
from longspan.simulator.running.preflight.rehearsal import rehearse
from tests.attack import sample, tried
from tests.timing import cpu_seconds

GROWTH: Final = 4
"""How many times longer the longer reply is."""

MAX_RATIO: Final = 8
"""Reading it may take so many times as long. With linear time it takes GROWTH times, with quadratic time GROWTH squared."""

ENOUGH: Final = 0.004
"""The CPU seconds that reading the shorter reply should take, so that they can be measured."""

LONGEST: Final = MAX_CHARACTERS // GROWTH
SHORTEST: Final = 1_500

Reader = Callable[[str], object]
Generator = Callable[[int], str]


def of(unit: str, before: str = "", after: str = "") -> Generator:
    """Replies that repeat a unit, after something and before something."""
    return lambda size: before + unit * (size // len(unit)) + after


def halves(first: str, second: str, before: str = "") -> Generator:
    """Replies that repeat one unit, then another."""
    return lambda size: before + first * (size // 2 // len(first)) + second * (size // 2 // len(second))


GENERATORS: Final[dict[str, Generator]] = {
    "blanks": of(" ", "Go 2", "x"),
    "blanks after a number": of(" ", "1", "x"),
    "blanks after a list": of(" ", "1, 2,", "x"),
    "tabs": of("\t", "| 1 |", "x"),
    "unicode blanks": of("\u00a0\u3000\u2003", "2", "x"),
    "invisible characters": of("\u200b\ufeff", "2 km"),
    "line ends": of("\n", "Go 2", "x"),
    "blank lines": of(" \n \n", "Step 1", "x"),
    "blanks after a mark": of(" ", "[RESULT]", "x"),
    "blanks in a box": of(" ", "\\boxed{", "x"),
    "marks": of("[RESULT] \\boxed{"),
    "digits": of("7", after="x"),
    "fractions": of("1.1."),
    "numbers": of("1,1,1,", after="x"),
    "thousands": of("7,777,", after="x"),
    "ranges": of("1-"),
    "quotes": of('"', "["),
    "single quotes": of("'", '{"a": '),
    "open strings": of('["a', after="x"),
    "typographic quotes": of("\u201c a ", "["),
    "escapes": of('\\"', '["'),
    "brackets": of("[", after="x"),
    "nested objects": of('{"a": [', after="1"),
    "pairs of brackets": of("[1] (a) "),
    "closing brackets": of("]})", "["),
    "lists": of('["a", 1], '),
    "comments": of("// a\n", "[1"),
    "unclosed code fences": of("```json\n[1,\n"),
    "nested markdown": of("- **a** _b_ `c`\n  - "),
    "stars": of("*a"),
    "bullets": of("\u2022 a 1\n"),
    "numbered steps": of("1) a\n"),
    "table rows": of("| a | 1 | north |\n"),
    "headings": of("# a: 1\n"),
    "mixed accents": of("\u0301\u0316", "a"),
    "accents": of("a\u0301 "),
    "wide letters": of("\ufb03\u00bd\u2460\uff11"),
    "hyphens": of("a-a-a-"),
    "dashes": of(" - "),
    "one long word": of("a"),
    "long words": of("a" * 300 + " "),
    "half surrogates": of("\ud800"),
    "control characters": of("\x00\x1b[31m"),
    "initials": of("A. "),
    "sentences without letters": of("[3]. ", "It was so. "),
    "alternatives": of("red or not blue, "),
    "a long clause and many answers": halves("lorem ipsum ", ", red", "red "),
    "denials": of("not the the "),
    "legs": of("Go 2 km north. Then turn left and walk 1 mile. "),
    "routes": halves("2 km north, ", "from the Mill go 1 km east, "),
    "detours": of("don't go 2 km north to it, "),
    "places far from their leg": halves("x" * 50 + " ", ", from the Mill", "2 km north "),
    "options": of("option 1 or the second "),
    "orders": of("I would like the soup, not the cake. "),
    "closing lines": of("Order: soup, cola and "),
    "a long order": of("soup or not cola, ", "Order: "),
    "speakers": of("Waiter: a (b) Guest: c "),
    "verdicts": of("opening 3 is true, but 4 is wrong, "),
    "corrections": of("3? No, wait, 4. "),
    "dates": of("29/02 or the twenty-ninth of Feb at 24:00 "),
    "labels": of('the current list is not the old one: ["a"] '),
    "changes": of("changed it from red to blue, which replaced green (now) "),
    "cells": of("| now | red | blue |\n"),
    "openings of jokes": of("The drum asked the cello to "),
    "jokes": of("the joke about the goat but not the one where "),
}

WORDS: Final = ["red", "sky blue", "green"]
NOW: Final = datetime(2024, 1, 1)
COUNT: Final = Tokenizer().count


def grader(name: str, **parameters: Any) -> Reader:
    """A scenario's grader, given all replies of a test of its that was answered ideally."""
    scenario = make_scenario(name, parameters)
    if name in ("elitr", "summhay", "counting_stars"):
        _, script = next(iter(scenario.series(1, "a")))
        played = Record([Exchange(at, line.text, line.ideal, line.asks, line.needle) for at, line in enumerate(script.lines)])
        facts = script.facts
    else:
        rehearsal = rehearse(scenario, seed=1, reply=lambda text, ideal: ideal)
        played, facts = rehearsal.record, rehearsal.script.facts

    def grade(reply: str) -> object:
        exchanges = [replace(exchange, reply=reply if exchange.asks else "OK.") for exchange in played.exchanges]
        watched = [replace(exchange, reply=reply) for exchange in played.watched[:2]]
        return scenario.grade(facts, Record(exchanges, watched, played.awards))

    return grade


def restaurant(reply: str) -> object:
    return rehearse(make_scenario("restaurant", {}), seed=1, reply=lambda text, ideal: reply)


def fate(reply: str) -> object:
    traces = Traces()
    traces.add(0, "a", {"written": [{"id": "m"}]})
    return traces.fate(0, "My tile is red.", "What is red?", reply, {"read": [{"id": "m"}]})


def facts(reply: str) -> object:
    query = key_facts("It was so.", reply, 5)
    return query.read({"thoughts": reply, "facts": [reply[at : at + 500] for at in range(0, len(reply), 500)]})


def visit(reply: str) -> object:
    said = ["like to drink?\n1. Soup\n2. Cake", "like to eat?", "Soup is unavailable", "Here you are: Cake", "on the house"]
    return grade_visit([LoggedTurn(f"Waiter: {text}", reply) for text in said])


def protocol_answer(reply: str) -> object:
    protocol.read_answer(json.dumps({"text": reply}).encode(), protocol.ReplyAnswer)
    try:
        return protocol.read_answer(reply.encode("utf-8", "replace"), protocol.ReplyAnswer)
    except AgentError:
        return None


def server_error(body: str) -> object:
    data = body.encode("utf-8", "replace")
    return web.read_error(data), web.retry_after({}, data), web.PROMPT_TOO_LONG.search(body)


def notebook(reply: str) -> object:
    async def told() -> object:
        agent = Notebook()
        await agent.observe(Message(reply, NOW, "a"), reply)
        return await agent.reply(Message(f"What is red? {reply}", NOW, "b"))

    return trio.run(told)


LTM: Final = "colours name_list jokes locations shopping sally_anne prospective_memory trigger_response spy_meeting chapterbreak".split()
PAPER: Final = "colours name_list shopping sally_anne prospective_memory trigger_response spy_meeting".split()

READERS: Final[Mapping[str, Callable[[], Reader]]] = (
    {name: partial(grader, name) for name in LTM}
    | {f"{name} by the paper's rules": partial(grader, name, rules="paper") for name in PAPER}
    | {"elitr": partial(grader, "elitr"), "summhay": partial(grader, "summhay")}
    | {"stars": partial(grader, "counting_stars", delivery="scatter")}
    | {"stars, reasoning": partial(grader, "counting_stars", delivery="scatter", task="reasoning")}
    | {
        name: partial(lambda read: read, read)
        for name, read in {
            "restaurant": restaurant,
            "recorded visits": visit,
            "plain text": plain,
            "words": lambda reply: found_words(reply, WORDS),
            "quotations": lambda reply: contains_nearly(reply, "one two three four five six seven eight nine"),
            "numbers": number,
            "JSON": split_json,
            "lists": find_labelled_lists,
            "dates": lambda reply: (find_dates(reply), find_hours(reply)),
            "settled answers": lambda reply: settled_words(reply, WORDS),
            "reasons": lambda reply: join_some([reply, reply]),
            "needle fates": fate,
            "judges' objects": object_in,
            "judges' points of ten": lambda reply: rubrics.points_query("ten", "q", "a", "r").read({"text": reply}),
            "judges' points of five": lambda reply: rubrics.points_query("five", "q", "a", "r").read({"text": reply}),
            "judges' reasons": lambda reply: statement("It is so.", "It is.").read({"holds": True, "why": reply}),
            "judges' queries": lambda reply: (statement("It is so.", reply).about, rubrics.points_query("ten", "q", "a", reply).about),
            "citations": lambda reply: (
                [bullets.find_citations(each) for each in bullets.split_bullets(reply)],
                bullets.mean_length(bullets.split_bullets(reply)),
            ),
            "summaries' sentences": lambda reply: ask_alignment(["a fact"], split_sentences(reply)).about,
            "key facts": facts,
            "notes as JSON": lambda reply: JsonPad(20, COUNT).update(reply),
            "notes as text": lambda reply: TextPad(20, COUNT).update(reply),
            "fragments": lambda reply: split_turn(0, Turn("a", "Hello.", NOW, reply), COUNT, 20, 4),
            "cut messages": lambda reply: cut_middle(clean_unicode(reply), 20, COUNT),
            "tokens": COUNT,
            "protocol": protocol_answer,
            "errors of servers": server_error,
            "keys": redact,
            "errors": lambda reply: (one_line(ValueError(reply)), journal_text(ValueError(reply)), protocol.make_printable(reply)),
            "excerpts": lambda reply: (script_json(Excerpt.of(reply).data()), escape_invisible(reply)),
            "notebook": notebook,
        }.items()
    }
)

PAIRS: Final = [(reader, generator) for reader in READERS for generator in GENERATORS]


@cache
def reader_of(name: str) -> Reader:
    reader = READERS[name]()
    reader("It is red. [1]")  # modules and patterns that are loaded or compiled once
    return reader


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "1, 2/%25+\\x")


def seconds(reader: Reader, reply: str, repeats: int = 1) -> float:
    """The CPU seconds that reading takes, the best of some repeats, of a reply that was not read before."""

    def read() -> None:
        parse_reply.cache_clear()
        reader(reply)

    return cpu_seconds(read, repeats)


def ratio(reader: Reader, generator: Generator) -> float:
    """How many times as long a reply takes that is GROWTH times as long; 0 if it takes too little to be measured."""
    size = SHORTEST
    while seconds(reader, generator(size)) < ENOUGH and size < LONGEST:
        size = min(2 * size, LONGEST)
    longer = generator(GROWTH * size)
    if (took := seconds(reader, longer)) < GROWTH * ENOUGH:
        return 0
    return took / seconds(reader, generator(size), repeats=3)


@pytest.mark.parametrize("name", READERS)
def test_reading_takes_linear_time(name: str) -> None:
    slow: dict[str, float] = {}
    for generator in [generator for reader, generator in sample(PAIRS) if reader == name]:
        tried("hostile replies")
        measured = partial(ratio, reader_of(name), GENERATORS[generator])
        if (found := measured()) > MAX_RATIO and (found := min(found, measured(), measured())) > MAX_RATIO:
            slow[generator] = round(found, 1)
    assert not slow, f"{name}: how many times as long it takes to read {GROWTH} times as much"
