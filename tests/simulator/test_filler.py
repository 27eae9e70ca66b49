from __future__ import annotations

import calendar
import gzip
import hashlib
import importlib.util
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta
from functools import cache
from itertools import cycle, islice, pairwise
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, get_args

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.attack import ALL

from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tokens import EncodingName, Tokenizer
from longspan.simulator.base.words import plain
from longspan.simulator.filler import filler, tasks
from longspan.simulator.filler.draws import Draws, fill_slots, read_word_list
from longspan.simulator.filler.filler import BRIEF, Distraction, Filler, Pair, Source
from longspan.simulator.filler.questions import KINDS, Slots, roman
from longspan.simulator.filler.talk import Talk, line_of, talk_nearby
from longspan.simulator.filler.trivia import Trivia
from longspan.simulator.filler.wordnet import PACKED, load_wordnet
from longspan.simulator.reading.matching import contains_nearly
from longspan.simulator.results.result import Result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

ROOT = Path(__file__).parents[2]
NAMES: tuple[EncodingName, ...] = get_args(EncodingName)

AWKWARD = [
    ('What is \u201cquoted\u201d, and "quoted" again?', '"Both" \\ of/them'),
    ("Line\nbreaks\r\n\tand   spaces\u2028everywhere", "one\nline"),
    ("No question mark", "1,234,567.89"),
    ("/etc/motd?", "/"),
    ("Ends in punctuation!?!", "..."),
    ("Ελληνικά; 中文？ العربية؟", "日本語、"),
    ("Emoji \U0001f600 and a joiner \U0001f468\u200d\U0001f469?", "\U0001f600\U0001f600"),
    ("Combining a\u0301 e\u0308", "\u0301"),
    ("Half a pair \ud83d and a \x00 control", "\udc00x"),
    ("it's we'll I'D", "'s"),
    ("Tags <|endoftext|>", "<|endoftext|>"),
    ("x" * 60, "A" * 30),
    ("Why " + "very " * 300 + "long?", "Because"),
]


class Listed:
    """A source that repeats a list."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def pairs(self) -> Iterator[Pair]:
        return cycle(self._pairs)

    def chat(self) -> Iterator[Pair]:
        return iter(())


class Quiz:
    """The questions of the built-in source, without its chat."""

    def __init__(self, seed: int) -> None:
        self.pairs = Talk(seed).pairs

    def chat(self) -> Iterator[Pair]:
        return iter(())


def said_by(source: Source, number: int) -> list[tuple[str, str]]:
    """The first questions of a source and their answers."""
    return list(islice(source.pairs(), number))


@cache
def trivia_file(folder: Path) -> Path:
    """A file in TriviaQA's layout with questions of all kinds."""
    plain = said_by(Talk("trivia"), 60)
    path = folder / "trivia.json"
    entries = [{"Question": question, "Answer": {"Value": answer, "Aliases": []}} for question, answer in [*AWKWARD, *plain]]
    path.write_text(json.dumps({"Data": entries, "Domain": "unfiltered"}), "utf-8")
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trivia")


def tokens(distraction: Distraction) -> int:
    return distraction.text_tokens + distraction.reply_tokens


def check(distraction: Distraction, tokenizer: Tokenizer) -> None:
    """Check that the counts are the tokenizer's, and that both texts can be sent."""
    assert distraction.text_tokens == tokenizer.count(distraction.text)
    assert distraction.reply_tokens == tokenizer.count(distraction.reply)
    assert distraction.text == distraction.text.strip() != ""
    assert distraction.reply == distraction.reply.strip() != ""
    distraction.text.encode()
    distraction.reply.encode()


def questions(text: str) -> list[tuple[str, str]]:
    return [(question, answer) for question, answer in re.findall(r"^Q: (.*) A: (.*)$", text, re.MULTILINE)]


# Landing on a gap.


@settings(max_examples=60, deadline=None)
@given(gaps=st.lists(st.integers(1, 2500), min_size=1, max_size=12), seed=st.integers(0, 1000))
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["talk", "trivia"])
def test_counts_are_exact_and_gaps_are_met(kind: str, name: EncodingName, gaps: list[int], seed: int, folder: Path) -> None:
    tokenizer = Tokenizer(name)
    source: Source = Talk(seed) if kind == "talk" else Trivia(trivia_file(folder), seed=seed)
    made = Filler(source, tokenizer)
    for gap in gaps:
        distraction = made.make(gap)
        check(distraction, tokenizer)
        if gap <= 2000:
            assert tokens(distraction) == max(gap, 4)
        assert tokens(distraction) <= 2000
        asked = made.ask(gap)
        check(asked, tokenizer)
        assert asked.text_tokens <= max(gap, 2)


@pytest.mark.parametrize("name", NAMES)
def test_every_gap_is_met(name: EncodingName) -> None:
    tokenizer = Tokenizer(name)
    made = Filler(Talk(0), tokenizer, max_tokens=1000)
    for gap in range(4, 1001):
        distraction = made.make(gap)
        assert tokens(distraction) == gap
        if gap % 10 == 0 or gap < 150:
            check(distraction, tokenizer)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "pairs",
    [
        [("What?", "That")],
        [("Which of the two " + "very " * 80 + "long ones?", "The other"), ("Which " + "quite " * 80 + "long one?", "Neither")],
        AWKWARD,
    ],
    ids=["one short", "long only", "awkward"],
)
def test_a_small_source_is_enough(name: EncodingName, pairs: list[tuple[str, str]]) -> None:
    tokenizer = Tokenizer(name)
    clean = [(" ".join(q.split()).replace("\ud83d", "?"), " ".join(a.split()).replace("\udc00", "?")) for q, a in pairs]
    made = Filler(Listed(clean), tokenizer)
    for gap in [*range(4, 300, 7), 1999, 2000]:
        distraction = made.make(gap)
        check(distraction, tokenizer)
        assert tokens(distraction) == gap


@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        (2000, [2000]),
        (2001, [1001, 1000]),
        (2149, [1075, 1074]),
        (2150, [2000, 150]),
        (4100, [2000, 1050, 1050]),
        (7000, [2000, 2000, 2000, 1000]),
    ],
)
def test_a_large_gap_is_filled_in_parts(gap: int, expected: list[int]) -> None:
    made = Filler(Talk(0), Tokenizer())
    parts = []
    while gap:
        parts.append(tokens(made.make(gap)))
        gap -= parts[-1]
    assert parts == expected


@given(gap=st.integers(1, 10_000), most=st.integers(100, 3000))
@settings(max_examples=40, deadline=None)
def test_no_message_exceeds_the_limit_or_leaves_a_gap_too_small_to_fill(gap: int, most: int) -> None:
    made = Filler(Talk(0), Tokenizer(), max_tokens=most)
    took = tokens(made.make(gap))
    assert took <= most
    if took < gap and most >= 2 * BRIEF:
        assert gap - took >= BRIEF


@pytest.mark.parametrize("gap", [0, -1])
def test_gaps_below_one_are_refused(gap: int) -> None:
    made = Filler(Talk(0), Tokenizer())
    with pytest.raises(ValueError, match=rf"^gap must be >= 1, got {gap}$"):
        made.make(gap)
    with pytest.raises(ValueError, match=rf"^max_tokens must be >= 1, got {gap}$"):
        made.ask(gap)


def test_a_small_limit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^max_tokens must be >= 100, got 99$"):
        Filler(Talk(0), Tokenizer(), max_tokens=99)


def test_a_source_of_long_questions_only_is_refused() -> None:
    with pytest.raises(InputError, match="the filler's source has no question of at most 120 tokens"):
        Filler(Listed([("word " * 200, "no")]), Tokenizer()).make(100)


# Content.


@pytest.mark.parametrize("gap", [60, 100, 149, 150, 700, 2000])
def test_the_reply_has_the_answers_of_the_message(gap: int) -> None:
    distraction = Filler(Quiz(0), Tokenizer()).make(gap)
    listed = questions(distraction.text)
    assert json.loads(distraction.reply) == [answer for _, answer in listed]
    assert distraction.reply.splitlines()[1:-1] == [json.dumps(answer) + "," for _, answer in listed[:-1]] + [json.dumps(listed[-1][1])]
    assert "JSON" in distraction.text.splitlines()[0]
    assert len(distraction.text.splitlines()) == len(listed) + 2


def test_the_questions_are_those_of_the_source_in_turn() -> None:
    source = Quiz(0)
    made = Filler(source, Tokenizer())
    said = [pair for _ in range(20) for pair in questions(made.make(1500).text)]
    assert len(set(said)) == len(said)
    assert set(said) <= set(said_by(source, len(said) + filler.POOL_SIZE))


@pytest.mark.parametrize("name", NAMES)
def test_small_gaps_get_a_remark_of_sentences(name: EncodingName) -> None:
    made = Filler(Quiz(0), Tokenizer(name))
    for gap in range(4, 24):
        distraction = made.make(gap)
        assert re.fullmatch(r"[A-Z][^\n]*[.?]", distraction.text)
        assert re.fullmatch(r"[A-Z][^\n]*\.", distraction.reply)
        sentences = re.split(r"(?<=[.?]) ", distraction.text)
        assert len(set(sentences)) == len(sentences)


def test_remarks_take_turns() -> None:
    made = Filler(Quiz(0), Tokenizer())
    assert len({made.make(12).text for _ in range(30)}) >= 8
    assert len({made.make(400).text.splitlines()[-1] for _ in range(60)}) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_closing_remarks_are_short(name: EncodingName) -> None:
    tokenizer = Tokenizer(name)
    made = Filler(Talk(0), tokenizer)
    assert all(tokenizer.count(made.make(gap).text.splitlines()[-1]) <= filler.MAX_CLOSING_TOKENS for gap in range(200, 2000, 9))


def test_a_question_to_answer_is_short_and_has_its_answer() -> None:
    tokenizer = Tokenizer()
    made = Filler(Talk(0), tokenizer)
    for _ in range(100):
        distraction = made.ask()
        check(distraction, tokenizer)
        assert 30 <= distraction.text_tokens <= 60
        assert json.loads(distraction.reply) == [answer for _, answer in questions(distraction.text)] != []


def test_distractions_are_frozen() -> None:
    distraction = Filler(Talk(0), Tokenizer()).make(100)
    with pytest.raises(FrozenInstanceError):
        distraction.text = ""  # type: ignore[misc]


# Determinism.


@given(gaps=st.lists(st.integers(1, 3000), max_size=8), seed=st.integers())
@settings(max_examples=30, deadline=None)
def test_the_same_seed_and_gaps_give_the_same_filler(gaps: list[int], seed: int, folder: Path) -> None:
    for sources in ([Talk(seed), Talk(seed)], [Trivia(trivia_file(folder), seed=seed) for _ in range(2)]):
        one, two = (Filler(source, Tokenizer()) for source in sources)
        assert [one.make(gap) for gap in gaps] == [two.make(gap) for gap in gaps]
        assert one.ask() == two.ask()


def test_another_seed_gives_other_filler(folder: Path) -> None:
    assert len({Filler(Talk(seed), Tokenizer()).make(500) for seed in range(20)}) == 20
    assert len({Filler(Trivia(trivia_file(folder), seed=seed), Tokenizer()).make(500) for seed in range(20)}) == 20


# The built-in source.


def check_line(text: str) -> None:
    """Check that a line can be counted alone, and reads as one."""
    assert text == " ".join(text.split()) != ""
    assert text[0] not in "/{"
    assert not re.search(r"[{}]|\ba [aeio]|\ban [^aeiouhAEIOUH0-9]", text.replace("a one", "")), text


def test_there_are_at_least_forty_kinds_of_message_beside_lists_of_questions() -> None:
    talk = read_word_list("talk")
    assert len(talk["chat"]) + len(tasks.TASKS) >= 40
    assert set(read_word_list("questions")) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_of_a_question_can_be_filled(kind: str) -> None:
    draw = Draws(kind)
    for form in read_word_list("questions")[kind][1]:
        slots = KINDS[kind](draw)
        check_line(fill_slots(form, slots))
        check_line(fill_slots("{answer}", slots))


def test_every_form_of_talk_can_be_filled() -> None:
    draw = Draws("talk")
    for kind in read_word_list("talk")["near"]:
        for _ in range(20):
            for part in talk_nearby(draw, kind):
                check_line(part)
    for kind in read_word_list("talk")["chat"]:
        for _ in range(20):
            check_line(line_of(draw, kind)[0])


@pytest.mark.parametrize("kind", tasks.TASKS)
def test_tasks_and_their_replies_are_lines(kind: str) -> None:
    draw = Draws(kind)
    for _ in range(30):
        asked, reply = tasks.TASKS[kind](draw)
        assert "{" not in asked
        for part in (asked, reply):
            assert part == " ".join(part.split()) != ""


def drawn(kind: str, number: int = 40) -> Iterator[Slots]:
    draw = Draws(f"answers/{kind}")
    return (KINDS[kind](draw) for _ in range(number))


def test_answers_that_can_be_computed_are_right() -> None:
    def day(text: str) -> datetime:
        return datetime.strptime(text, "%d %B %Y")

    for slots in drawn("sum_of"):
        assert int(slots["answer"]) == int(slots["one"]) + int(slots["two"])
    for slots in drawn("product"):
        assert int(slots["answer"]) == int(slots["one"]) * int(slots["two"])
    for slots in drawn("percent"):
        assert int(slots["answer"]) * 100 == int(slots["share"]) * int(slots["whole"])
    for slots in drawn("weekday"):
        assert calendar.day_name[day(slots["day"]).weekday()] == slots["answer"]
    for slots in drawn("days_between"):
        assert slots["answer"] == f"{(day(slots['other']) - day(slots['day'])).days} days"
    for slots in drawn("days_later"):
        assert day(slots["answer"]) - day(slots["day"]) == timedelta(int(slots["number"]))
    for slots in drawn("letters"):
        assert sorted(slots["letters"].replace(" ", "")) == sorted(slots["answer"].upper())
    for slots in drawn("earlier"):
        years = dict(read_word_list("world")["years"])
        assert int(years[slots["answer"]]) == min(int(years[slots["one"]]), int(years[slots["two"]]))
    assert [roman(number) for number in (14, 49, 1990, 2024)] == ["XIV", "XLIX", "MCMXC", "MMXXIV"]


def test_only_the_answer_is_a_kind_of_what_is_asked_for() -> None:
    kinds = load_wordnet().kinds
    group_of = {name: group for group, named in kinds.items() for names in named.values() for name in names}
    for slots in drawn("which", 300):
        choices = slots["choices"].split(", ")
        assert slots["answer"] in choices
        group = group_of[slots["answer"]]
        assert slots["answer"] in kinds[group][slots["kind"]]
        assert [word for word in choices if word != slots["answer"] and group_of[word] == group] == []


def test_facts_are_those_of_wordnet() -> None:
    facts = load_wordnet()
    assert ["forearm", "arm"] in facts.parts
    assert ["cheap", "expensive"] in facts.opposites
    assert ["Paul Hindemith", "composer"] in facts.people
    assert "puffin" in [name for names in facts.kinds["nature"].values() for name in names]
    assert PACKED.stat().st_size < 1_000_000


def test_nothing_repeats_within_half_a_million_tokens() -> None:
    made = Filler(Talk(0), Tokenizer())
    texts = [made.make(2000).text for _ in range(250)]
    assert len(set(texts)) == 250
    lines = [line for text in texts for line in text.splitlines()[1:-1]]
    assert len(set(lines)) > 0.99 * len(lines)


def test_it_is_as_varied_as_it_should_be() -> None:
    """TriviaQA has 16,500 different words in so many tokens, 0.885 distinct answers and a ratio of 0.408: see `benchmarks filler`."""
    made = Filler(Talk(0), Tokenizer())
    parts = [part for each in (made.make(2000) for _ in range(104)) for part in (each.text, each.reply)]
    whole = "\n".join(parts)
    assert len(set(re.findall(r"\w+", whole.lower()))) >= 0.9 * 16_504
    assert len(zlib.compress(whole.encode(), 9)) / len(whole.encode()) >= 0.36
    answers = [answer for reply in parts[1::2] if reply.startswith("[") for answer in json.loads(reply)]
    assert len(set(answers)) / len(answers) >= 0.65


def test_small_messages_of_a_source_of_chat_are_mostly_chat() -> None:
    made = Filler(Talk(0), Tokenizer())
    small = [made.make(90) for _ in range(200)]
    assert sum("JSON" not in each.text for each in small) >= 80
    assert len({each.text for each in small}) == 200
    assert any(each.reply.count("\n") for each in small), "tasks are answered"


def test_it_depends_only_on_the_seed() -> None:
    one = Talk(7)
    assert said_by(one, 200) == said_by(one, 200) == said_by(Talk(7), 300)[:200]
    assert len(set(said_by(one, 2000)) & set(said_by(Talk(8), 2000))) < 60


@given(st.text(max_size=9), st.integers(0, 300), st.integers(0, 3))
def test_shuffling_draws_what_a_sample_of_all_draws(seed: str, number: int, before: int) -> None:
    draw, random = Draws(seed), Random(seed)
    assert [draw.shuffle(range(number)) for _ in range(before + 1)] == [random.sample(range(number), number) for _ in range(before + 1)]
    assert draw.random.random() == random.random()


def test_a_becomes_an_before_vowels_alone() -> None:
    form = "a owl and A ant, a unit, a {thing}, a one-way street, a European, data about a banana, extra ink; 3a ice, _a ink, é a egg"
    said = "An owl and An ant, a unit, an ape, a one-way street, a European, data about a banana, extra ink; 3a ice, _a ink, é an egg"
    assert fill_slots(form, {"thing": "ape"}) == said


def test_seeds_keep_their_meaning() -> None:
    """If this fails, no conversation recorded with the built-in source can be resumed any more."""
    said = json.dumps([said_by(Talk(0), 1000), list(islice(Talk("x").chat(), 1000))])
    assert hashlib.sha256(said.encode()).hexdigest() == "0f8d8a13f252b8f5ce61e3d241c8494bc3a295c70517db35f1fee7ce198a0c6c"


@pytest.fixture(scope="module")
def packer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pack_wordnet", ROOT / "scripts" / "pack_wordnet.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NOUNS = """\
00000001 06 n 01 cup 0 000 | a small open container
00000002 10 n 01 ethnic_slur 0 000 | a term of abuse
00000003 18 n 01 foo 0 001 ;u 00000002 n 0000 | a person from somewhere
00000004 05 n 01 foo 0 000 | a fish
00000005 06 n 01 weapon 0 000 | an instrument for fighting
00000006 06 n 01 spear 0 001 @ 00000005 n 0000 | a long pointed rod
00000007 04 n 01 stroll 0 000 | a leisurely walk; "they strolled to the place of the murder"
00000008 04 n 01 stroll 0 000 | a way of killing
00000009 10 n 01 archaism 0 000 | an old word
00000010 06 n 01 beaker 0 001 ;u 00000009 n 0000 | a cup
00000011 04 n 01 bar 0 000 | a sexual practice
00000012 06 n 01 bar 0 000 | a counter
"""


def test_unsuitable_words_are_left_out(packer: ModuleType) -> None:
    empty = {f"{kind}.{pos}": "" for kind in ("data", "index") for pos in ("adj", "adv", "noun", "verb")}
    net = packer.WordNet({**empty, "cntlist.rev": "", "data.noun": NOUNS})
    suitable = packer.Suitable(net)
    kept = [offset for number in range(1, 13) if suitable.synset(("noun", offset := f"{number:08}"))]
    assert [int(offset) for offset in kept] == [1, 4, 7, 9, 12]
    assert [word for word in ("cup", "foo", "stroll", "bar", "whorehouse") if suitable.word(word)] == ["cup", "stroll"]


def test_no_unsuitable_word_is_packed(packer: ModuleType) -> None:
    facts = load_wordnet()
    names = {name for kinds in facts.kinds.values() for kind in kinds for name in (kind, *kinds[kind])}
    names |= {word for pairs in (facts.parts, facts.opposites, facts.synonyms, facts.pertaining) for pair in pairs for word in pair}
    names |= {word for words in (facts.similar, facts.ways, facts.fields) for key in words for word in (key, *words[key])}
    assert [name for name in names if packer.UNWANTED_WORDS.search(name)] == []
    assert not names & {"slave", "weapon", "prostitute", "corpse", "heroin", "gun"}


# What the built-in source must not say.

SEEDS = range(100) if ALL else range(2)
FIRST_PERSON = re.compile(r"\b(I|me|my|myself|I'm|we|us|our|ours)\b")
RELATIVES = re.compile(r"\b([Mm]y (cousin|friend|tutor|pen friend|old classmate|colleague|godmother)|[Oo]ur caretaker)(?= [A-Z])")


def texts(seed: int, number: int = 60) -> list[Distraction]:
    made = Filler(Talk(seed), Tokenizer())
    return [made.make(gap) for gap in (*range(10, 150, 5), *[1500] * number)] + [made.ask() for _ in range(20)]


def test_nobody_has_the_name_of_anybody_in_a_test() -> None:
    tests = {*load_words("names"), *load_words("sally_anne")["people"], *load_words("novel")["women"], *load_words("novel")["men"]}
    for sender in (*load_words("spy_meeting")["senders"], *(saying["author"] for saying in load_words("quotations"))):
        tests.update(sender.split())
    assert set(read_word_list("talk")["lists"]["name"]) & tests == set()


def test_nothing_is_said_about_the_user() -> None:
    """Remarks aside, the first person only names relatives: nobody's favourite colour, name, errand or town is the user's."""
    draw = Draws("user")
    lines = [line_of(draw, kind)[0] for kind in read_word_list("talk")["chat"] for _ in range(60)]
    lines += [part for kind in read_word_list("talk")["near"] for _ in range(60) for part in talk_nearby(draw, kind)]
    lines += [tasks.TASKS[kind](draw)[0] for kind in tasks.TASKS for _ in range(20)]
    for line in lines:
        own = RELATIVES.sub("", re.sub(r'"[^"]*"', "", line))
        assert not FIRST_PERSON.search(own), line


def test_remarks_say_nothing_that_a_test_asks_about() -> None:
    function = "that tell know have been what with from some something about done".split()
    rules = {word for rule in load_words("triggers") for word in re.findall(r"[a-z]{4,}", rule["when"])}
    topics = "colour favourite name joke town quotation shopping spy menu waiter hair dream tooth late nervous"
    avoided = rules.union(topics.split()).difference(function)
    for remarks in read_word_list("remarks").values():
        assert [remark for remark in remarks if avoided.intersection(re.findall(r"[a-z]+", remark.lower()))] == []


def test_no_filler_holds_what_a_test_listens_for() -> None:
    """Neither a phrase that a rule asks for, nor a quotation, nor the marks of a scene."""
    for seed in SEEDS:
        phrases = [plain(rule["phrase"]) for rule in load_words("triggers")]
        for distraction in texts(seed):
            for part in (distraction.text, distraction.reply):
                said = plain(part)
                assert [phrase for phrase in phrases if phrase in said] == [], f"seed {seed}"
                assert not re.search(r"\b(on tv|tv programme|spies|coded message|call me|my name)\b", said), f"seed {seed}"
                assert [saying for saying in load_words("quotations") if contains_nearly(part, saying["quotation"])] == [], f"seed {seed}"


def test_grades_are_the_same_with_and_without_filler(tmp_path: Path) -> None:
    def scores(seed: int, isolated: bool) -> dict[str, float | None]:
        settings = RunSettings(
            suite=load_suite("ltm").apply_changes([], [], [], 1), span=2000, seed=seed, agent="oracle", isolated=isolated
        )
        (outcome,) = trio.run(lambda: play_plans([plan_run(settings, tmp_path / f"{seed} {isolated}")]))
        assert isinstance(outcome.result, Result)
        return {test.id: test.score for test in outcome.result.tests}

    for seed in SEEDS:
        found, without = scores(seed, isolated=False), scores(seed, isolated=True)
        short = {test: score for test, score in without.items() if not test.startswith("chapterbreak")}  # too long for 2k
        assert found == short, f"seed {seed}"


# TriviaQA.

ENTRIES = [("Which one?", "This"), ("And\nthen?", " That \t one "), ("Third?", "3")]


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("marked", [False, True])
def test_trivia_reads_both_layouts(zipped: bool, published: bool, marked: bool, tmp_path: Path) -> None:
    entries: list[dict[str, Any]] = [{"Question": q} | ({"Answer": {"Value": a}} if published else {"AnswerValue": a}) for q, a in ENTRIES]
    raw = b"\xef\xbb\xbf" * marked + json.dumps({"Data": entries}).encode()
    path = tmp_path / "questions"  # the content decides, not the name
    path.write_bytes(gzip.compress(raw) if zipped else raw)
    trivia = Trivia(path)
    assert len(trivia) == 3
    assert set(said_by(trivia, 3)) == {("Which one?", "This"), ("And then?", "That one"), ("Third?", "3")}


def test_trivia_starts_again_in_another_order(folder: Path) -> None:
    trivia = Trivia(trivia_file(folder))
    said = said_by(trivia, 4 * len(trivia))
    rounds = [said[begin : begin + len(trivia)] for begin in range(0, len(said), len(trivia))]
    assert all(sorted(one) == sorted(two) for one, two in pairwise(rounds))
    assert all(one != two for one, two in pairwise(rounds))


@given(text=st.text(alphabet=st.characters(codec=None), min_size=1))
@settings(max_examples=50, deadline=None)
def test_trivia_texts_are_one_line_of_valid_unicode(text: str, folder: Path) -> None:
    path = folder / "any.json"
    path.write_text(json.dumps({"Data": [{"Question": f"x{text}", "AnswerValue": f"{text}x"}]}), "utf-8")
    for part in said_by(Trivia(path), 1)[0]:
        assert len(part.splitlines()) == 1
        assert part == part.strip()
        part.encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"line 1, column 1: not JSON"),
        (b'{"Data": [\n{]}', r"line 2, column 2: not JSON"),
        (b"\xff\xfe{}", r"byte 0: not UTF-8"),
        (b"[" * 100_000, r"nested too deeply"),
        (b'{"Data": [%s]}' % (b"9" * 5000), r"not JSON \(a number"),
        (b"[]", r'no list "Data" at the top'),
        (b"{}", r'no list "Data" at the top'),
        (b'{"Data": {"Question": "?"}}', r'no list "Data" at the top'),
        (b'{"Data": []}', r'"Data" is empty'),
        (b'{"Data": [3]}', r"Data\[0\]: not an object"),
        (b'{"Data": [{"Question": "Q", "AnswerValue": "A"}, {"AnswerValue": "A"}]}', r"Data\[1\]: no question"),
        (b'{"Data": [{"Question": " \\n ", "AnswerValue": "A"}]}', r"Data\[0\]: no question"),
        (b'{"Data": [{"Question": "Q"}]}', r"Data\[0\]: no answer"),
        (b'{"Data": [{"Question": "Q", "Answer": "A"}]}', r"Data\[0\]: no answer"),
        (b'{"Data": [{"Question": "Q", "Answer": {"Value": null}}]}', r"Data\[0\]: no answer"),
        (b'{"Data": [{"Question": "Q", "AnswerValue": 7}]}', r"Data\[0\]: no answer"),
        (gzip.compress(b'{"Data": []}', mtime=0)[:-9], r"cannot be read: "),
        (gzip.compress(b"x" * 999, mtime=0)[:12] + b"\xff" * 9, r"cannot be read: "),
    ],
)
def test_trivia_refuses_other_files(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "trivia.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        Trivia(path)
    assert re.fullmatch(rf"{re.escape(str(path))}: {said}.*[:;] use one of TriviaQA's question files .*", str(caught.value))


@pytest.mark.parametrize("name", ["missing.json", ""])
def test_trivia_refuses_files_that_cannot_be_opened(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r": (cannot be read: .*|is a folder.*); (use|give) one"):
        Trivia(tmp_path / name)
