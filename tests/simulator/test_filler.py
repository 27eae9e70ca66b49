from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from functools import cache
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.simulator.errors import InputError
from longspan.simulator.filler import almanac, filler
from longspan.simulator.filler.almanac import Almanac
from longspan.simulator.filler.filler import BRIEF, Count, Distraction, Filler, Pair, Source
from longspan.simulator.filler.trivia import Trivia
from longspan.simulator.tokens import EncodingName, Tokenizer

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

    def pairs(self, count_piece: Count) -> Iterator[Pair]:
        return ((f" {question}", count_piece(f" {question}"), answer) for question, answer in cycle(self._pairs))


def said_by(source: Source, number: int) -> list[tuple[str, str]]:
    """The first questions of a source and their answers."""
    return [(question.removeprefix(" "), answer) for question, _, answer in islice(source.pairs(len), number)]


@cache
def trivia_file(folder: Path) -> Path:
    """A file in TriviaQA's layout with questions of all kinds."""
    plain = said_by(Almanac("trivia"), 60)
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
@pytest.mark.parametrize("kind", ["almanac", "trivia"])
def test_counts_are_exact_and_gaps_are_met(kind: str, name: EncodingName, gaps: list[int], seed: int, folder: Path) -> None:
    tokenizer = Tokenizer(name)
    source: Source = Almanac(seed) if kind == "almanac" else Trivia(trivia_file(folder), seed=seed)
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
    made = Filler(Almanac(0), tokenizer, max_tokens=1000)
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
    made = Filler(Almanac(0), Tokenizer())
    parts = []
    while gap:
        parts.append(tokens(made.make(gap)))
        gap -= parts[-1]
    assert parts == expected


@given(gap=st.integers(1, 10_000), most=st.integers(100, 3000))
@settings(max_examples=40, deadline=None)
def test_no_message_exceeds_the_limit_or_leaves_a_gap_too_small_to_fill(gap: int, most: int) -> None:
    made = Filler(Almanac(0), Tokenizer(), max_tokens=most)
    took = tokens(made.make(gap))
    assert took <= most
    if took < gap and most >= 2 * BRIEF:
        assert gap - took >= BRIEF


@pytest.mark.parametrize("gap", [0, -1])
def test_gaps_below_one_are_refused(gap: int) -> None:
    made = Filler(Almanac(0), Tokenizer())
    with pytest.raises(ValueError, match=rf"^gap must be >= 1, got {gap}$"):
        made.make(gap)
    with pytest.raises(ValueError, match=rf"^max_tokens must be >= 1, got {gap}$"):
        made.ask(gap)


def test_a_small_limit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^max_tokens must be >= 100, got 99$"):
        Filler(Almanac(0), Tokenizer(), max_tokens=99)


def test_a_source_of_long_questions_only_is_refused() -> None:
    with pytest.raises(InputError, match="the filler's source has no question of at most 120 tokens"):
        Filler(Listed([("word " * 200, "no")]), Tokenizer()).make(100)


# Content.


@pytest.mark.parametrize("gap", [60, 100, 149, 150, 700, 2000])
def test_the_reply_has_the_answers_of_the_message(gap: int) -> None:
    distraction = Filler(Almanac(0), Tokenizer()).make(gap)
    listed = questions(distraction.text)
    assert json.loads(distraction.reply) == [answer for _, answer in listed]
    assert distraction.reply.splitlines()[1:-1] == [json.dumps(answer) + "," for _, answer in listed[:-1]] + [json.dumps(listed[-1][1])]
    assert "JSON" in distraction.text.splitlines()[0]
    assert len(distraction.text.splitlines()) == len(listed) + 2


def test_the_questions_are_those_of_the_source_in_turn() -> None:
    source = Almanac(0)
    made = Filler(source, Tokenizer())
    said = [pair for _ in range(20) for pair in questions(made.make(1500).text)]
    assert len(set(said)) == len(said)
    assert set(said) <= set(said_by(source, len(said) + filler.POOL_SIZE))


@pytest.mark.parametrize("name", NAMES)
def test_small_gaps_get_a_remark_of_sentences(name: EncodingName) -> None:
    made = Filler(Almanac(0), Tokenizer(name))
    for gap in range(4, 24):
        distraction = made.make(gap)
        assert re.fullmatch(r"[A-Z][^\n]*[.?]", distraction.text)
        assert re.fullmatch(r"[A-Z][^\n]*\.", distraction.reply)
        sentences = re.split(r"(?<=[.?]) ", distraction.text)
        assert len(set(sentences)) == len(sentences)


def test_remarks_take_turns() -> None:
    made = Filler(Almanac(0), Tokenizer())
    assert len({made.make(16).text for _ in range(30)}) >= 8
    assert len({made.make(400).text.splitlines()[-1] for _ in range(60)}) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_closing_remarks_are_short(name: EncodingName) -> None:
    tokenizer = Tokenizer(name)
    made = Filler(Almanac(0), tokenizer)
    assert all(tokenizer.count(made.make(gap).text.splitlines()[-1]) <= filler.MAX_CLOSING_TOKENS for gap in range(200, 2000, 9))


def test_a_question_to_answer_is_short_and_has_its_answer() -> None:
    tokenizer = Tokenizer()
    made = Filler(Almanac(0), tokenizer)
    for _ in range(100):
        distraction = made.ask()
        check(distraction, tokenizer)
        assert 30 <= distraction.text_tokens <= 60
        assert json.loads(distraction.reply) == [answer for _, answer in questions(distraction.text)] != []


def test_distractions_are_frozen() -> None:
    distraction = Filler(Almanac(0), Tokenizer()).make(100)
    with pytest.raises(FrozenInstanceError):
        distraction.text = ""  # type: ignore[misc]


# Determinism.


@given(gaps=st.lists(st.integers(1, 3000), max_size=8), seed=st.integers())
@settings(max_examples=30, deadline=None)
def test_the_same_seed_and_gaps_give_the_same_filler(gaps: list[int], seed: int, folder: Path) -> None:
    for sources in ([Almanac(seed), Almanac(seed)], [Trivia(trivia_file(folder), seed=seed) for _ in range(2)]):
        one, two = (Filler(source, Tokenizer()) for source in sources)
        assert [one.make(gap) for gap in gaps] == [two.make(gap) for gap in gaps]
        assert one.ask() == two.ask()


def test_another_seed_gives_other_filler(folder: Path) -> None:
    assert len({Filler(Almanac(seed), Tokenizer()).make(500) for seed in range(20)}) == 20
    assert len({Filler(Trivia(trivia_file(folder), seed=seed), Tokenizer()).make(500) for seed in range(20)}) == 20


# The almanac.


@pytest.mark.parametrize("seed", [0, 1, "2/almanac"])
def test_nothing_repeats_within_half_a_million_tokens(seed: int | str) -> None:
    made = Filler(Almanac(seed), Tokenizer())
    said = [pair for _ in range(250) for pair in questions(made.make(2000).text)]
    assert len({question for question, _ in said}) == len(said) > 15_000
    answers = Counter(answer for _, answer in said)
    assert answers.most_common(1)[0][1] < len(said) / 50


def test_it_depends_only_on_the_seed() -> None:
    one = Almanac(7)
    assert said_by(one, 200) == said_by(one, 200) == said_by(Almanac(7), 300)[:200]
    assert set(said_by(one, 2000)).isdisjoint(said_by(Almanac(8), 2000))


def test_it_does_not_end() -> None:
    for question, answer in said_by(Almanac(0), almanac.NAMES + 1)[-1000:]:
        assert question.endswith(("?", "."))
        assert answer[0].isupper() or answer[0].isdigit()


def test_seeds_keep_their_meaning() -> None:
    """If this fails, no conversation recorded with the almanac can be resumed any more."""
    assert said_by(Almanac(0), 1) == [("What is the Twizdash Drundrex theorem about?", "Braids")]
    assert said_by(Almanac("x"), 300)[-1] == ("What happens to Dranzal Glamblok moss exposed to steam?", "It turns transparent")
    pairs = json.dumps(said_by(Almanac(0), 1000))
    assert hashlib.sha256(pairs.encode()).hexdigest() == "eb70a4ffa99091f60b78eee907a0e1dd53a9c7cd5d10d663c5321eed09b615e1"


def test_every_form_asks_about_one_name_and_has_at_most_one_placeholder() -> None:
    """Any further placeholder would appear in the message."""
    forms = json.loads(almanac.DATA.read_text("utf-8"))["kinds"].values()
    assert sum(map(len, forms)) > 100
    for question, answer in (form for kind in forms for form in kind):
        assert question.count("{x}") == 1
        assert not re.search("{[ym]}", question)
        assert "{x}" not in answer
        assert len(re.findall("{[ym]}", answer)) <= 1
        assert question[-1] in "?."


def test_every_name_has_its_turn() -> None:
    words = almanac._words()
    asked = list(islice(Almanac(0)._names(), almanac.NAMES))
    assert len(set(asked)) == almanac.NAMES
    seconds = words.forms[0][0].seconds
    names = [word.strip().casefold() for word in [*words.firsts, *seconds]]
    assert len(set(names)) == len(names) == 2 * almanac.SIDE
    assert set(names).isdisjoint(FIRST_NAMES.split())
    assert {f"{first}{seconds[place]}".strip() for first, place in asked}.isdisjoint(words.known)


FIRST_NAMES = """
adam albert alan alexander amanda amber andrea andrew angela ann anna anthony arthur astrid austin barbara benjamin betty brandon brenda
brian bruce bryan calvin carl carol catherine charles christian christina christopher conrad cynthia daniel david deborah denise dennis
dexter diana diane donald donna dorothy douglas duncan edward elizabeth emily emma eric ethan eugene evelyn frances frank gabriel gary
george gerald gloria gordon grace gregory gustav hannah harold heather helen helmut henry ingrid isabel jack jacob james jane janet jason
jennifer jessica john jordan joseph julia justin karen katherine keith kelvin kendrick kenneth kevin konrad kyle larry laura lauren linda
lisa logan louis madison magnus margaret maria marilyn mark martha martin marvin mary matthew megan melvin merlin michael milan nancy
natalie nathan nicole noah olivia pamela patricia patrick paul peter philip rachel ralph randy raymond rebecca richard robert robin roger
roland ronald roy russell ruth ryan samantha samuel sandra sarah scott sean sharon shirley sigrid simon sophia stanislav stephen steven
susan teresa theodor theresa thomas timothy tristan tyler victor viktor vincent virginia walter wayne william zachary zoltan
"""

TOPICS = """
red blue green yellow orange purple violet brown black white grey gray pink turquoise maroon beige gold golden silver crimson scarlet amber
indigo teal colour color favourite favorite prefer preference name names called myself nickname joke jokes laugh funny pun ago yesterday
tomorrow today hour hours minute minutes monday tuesday wednesday thursday friday saturday sunday january february march april june july
august september october november december north south east west left right kilometre kilometres km mile miles street road town village
city station church museum school park library route direction directions quote quotation quotations author book books chapter chapters
novel story spy agent secret password contact meeting meet restaurant waiter menu dish drink meal eat food hungry order table shopping
shop buy list basket milk bread egg eggs apple apples banana butter cheese sugar salt rice flour tea coffee water juice meat fish
honey onion potato potatoes tomato tomatoes box crate drawer cupboard bag kitchen garden bedroom cellar forget remember disregard
""".split()


@pytest.mark.parametrize("file", ["almanac.json", "remarks.json"])
def test_no_word_belongs_to_the_topic_of_a_scenario(file: str) -> None:
    used = set(re.findall(r"[a-z]+", (almanac.DATA.parent / file).read_text("utf-8").casefold()))
    allowed = {
        "almanac.json": {"meets"},
        "remarks.json": {"right"},
    }
    assert used & set(TOPICS) <= allowed[file]


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
