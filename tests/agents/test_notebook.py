from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from tests.timing import growth

from longspan.agents.base import AgentError, Message, Reply
from longspan.agents.reference.notebook import Notebook
from longspan.simulator.results.gradebook.needle_fates import Fate, Traces

START = datetime(2024, 5, 1, 9, 0)
PACE = timedelta(seconds=30)

Says = str | timedelta
"""A message, or a period of time."""


def _notebook(window: int | None = None) -> Notebook:
    return Notebook("", Notebook.Options(window=window))


def _replies(*says: Says, notebook: Notebook | None = None, first: int = 0, start: datetime = START) -> list[Reply]:
    """Return the replies to a conversation of half a minute a turn, whose turn ids start at `first`."""
    agent = notebook or _notebook()
    replies: list[Reply] = []
    now = start

    async def play() -> None:
        nonlocal now
        for say in says:
            if isinstance(say, timedelta):
                now += say
                continue
            replies.append(await agent.reply(Message(say, now, f"t{first + len(replies)}")))
            now += PACE

    trio.run(play)
    return replies


def _talk(*says: Says, notebook: Notebook | None = None, first: int = 0, start: datetime = START) -> list[str]:
    return [reply.text for reply in _replies(*says, notebook=notebook, first=first, start=start)]


def _answer(*says: Says) -> str:
    return _talk(*says)[-1]


@pytest.mark.parametrize(
    "statement", ["My bicycle is green.", "Start at the mill and walk uphill.", "We will speak about many things.", "", "   \n  ", "..."]
)
def test_a_statement_is_acknowledged(statement: str) -> None:
    assert _answer(statement) == "OK."


@pytest.mark.parametrize(
    "question",
    [
        "Where does my sister live?",
        "Tell me where my sister lives.",
        "Could you please tell me where my sister lives",
        "“Where is my sister?”",
    ],
)
def test_a_question_is_answered_with_a_statement_that_shares_words(question: str) -> None:
    assert _answer("The weather is fine.", "I read a book. My sister lives in Lisbon.", "My aunt has a boat.", question) == (
        "My sister lives in Lisbon."
    )


def test_rare_words_count_more_than_frequent_ones() -> None:
    says = [f"The boat number {n} is in the harbour." for n in range(20)]
    assert _answer(*says, "The captain is Ruth.", "Who is the captain of the boat in the harbour?") == "The captain is Ruth."


@pytest.mark.parametrize(
    "statements",
    [
        ["My favourite tree is the oak.", "My favourite tree is the elm."],
        ["The oak is my favourite tree.", "These days my favourite tree is the elm."],
    ],
)
def test_among_equally_good_statements_the_newest_wins(statements: Sequence[str]) -> None:
    assert "elm" in _answer(*statements, "My sister has a boat.", "What is my favourite tree?")


@pytest.mark.parametrize("question", ["What is the name of my hamster?", "Who won the regatta?"])
def test_it_invents_nothing(question: str) -> None:
    assert _answer("Grass grows.", question) == "I don't know."


@pytest.mark.parametrize("question", ["List everything I said about my dogs.", "What did all of my dogs do, and when?"])
def test_a_list_has_all_similar_statements_oldest_first(question: str) -> None:
    statements = ["My dog Rex barked on Monday.", "Rain again.", "My dog Bella slept on Tuesday."]
    assert _answer(*statements, question) == f"{statements[0]}\n{statements[2]}"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What are the names of all my dogs? Give me a JSON list.", ["Rex", "Bella"]),
        ("List every hamster in JSON.", []),
        ('Who is the captain? Answer with {"answer": "word"}.', {"answer": "Ruth"}),
        ('Where is the parrot? Reply in JSON: {"place": "..."}', {"place": "wardrobe"}),
    ],
)
def test_json_has_the_words_that_are_not_in_the_question(question: str, answer: Any) -> None:
    statements = ["My dog is called Rex.", "The captain is Ruth.", "The parrot sits on the wardrobe.", "My other dog is called Bella."]
    assert json.loads(_answer(*statements, question)) == answer


def test_a_question_can_be_about_the_lines_before_it() -> None:
    assert _answer("The mill burnt down.\nThe bakery was spared.\nWhat happened to the mill?") == "The mill burnt down."


@pytest.mark.parametrize(
    ("question", "label"),
    [
        ("Which one goes on with it?\n1. The baker lit the oven.\n2. The captain left the Pelican at Lorne.\n3. A train whistled.", "2"),
        ("Pick the right ending.\nA) A train whistled.\nB) The baker lit the oven.\nC) In Lorne, the captain sold the Pelican.", "C"),
    ],
)
def test_the_most_familiar_option_is_chosen(question: str, label: str) -> None:
    assert _answer("The captain sailed the Pelican to the harbour of Lorne. " * 5, question) == label


@pytest.mark.parametrize(
    ("question", "what"),
    [
        ("What did I tell you 3 hours ago?", "A riddle: what has roots? Trees."),
        ("What riddle did I tell you two hours and 30 minutes ago?", "Another riddle: what has a bed? Rivers."),
        ("An hour and 29 minutes ago I told you a riddle. Which one was it?", "One more riddle: what is full of holes? Sponges."),
    ],
)
def test_a_question_about_a_time_ago_finds_that_turn(question: str, what: str) -> None:
    says: list[Says] = [
        "A riddle: what has roots? Trees.",
        timedelta(minutes=30),
        "Another riddle: what has a bed? Rivers.",
        timedelta(minutes=60),
        "One more riddle: what is full of holes? Sponges.",
        timedelta(minutes=88),
        question,
    ]
    assert _answer(*says) == what


def test_the_trace_shows_whether_a_needle_was_stored_retrieved_and_used() -> None:
    says = ["My sister lives in Lisbon.", "My aunt has a boat.", "Does it rain?", "Where does my sister live?", "Where is my hamster?"]
    traces = Traces()
    replies = _replies(*says)
    for number, reply in enumerate(replies):
        traces.add(number, f"t{number}", reply.trace)

    def fate(needle: int, question: int) -> Fate:
        return traces.fate(needle, says[needle], says[question], replies[question].text, replies[question].trace)

    assert fate(0, 3) == Fate(stored=True, retrieved=True, echoed=True, rank=1, k=1)
    assert fate(1, 3) == Fate(stored=True, retrieved=False, echoed=False, k=1)
    assert fate(2, 4) == Fate(stored=False, retrieved=False, echoed=False, k=0), "a question is not stored"


def test_beyond_the_window_it_remembers_nothing() -> None:
    chatter = [f"On day {n} the wind blew from the north and the gulls were loud." for n in range(40)]
    says = ["My favourite fruit is the quince.", *chatter, "What is my favourite fruit?"]
    assert _answer(*says) == says[0]
    assert _talk(*says, notebook=_notebook(5000))[-1] == says[0]
    assert _talk(*says, notebook=_notebook(400))[-1] == "I don't know."


def test_the_window_holds_the_newest_and_the_question_too() -> None:
    statement, question = "My favourite fruit is the quince.", "What is my favourite fruit?"
    assert _talk(statement, question, notebook=_notebook(40))[-1] == statement
    assert _talk(statement, "x" * 400, question, notebook=_notebook(40))[-1] == "I don't know."
    assert _talk(statement, question + " x" * 100, notebook=_notebook(1))[-1] == "OK.", "of a message no more than the window is read"


def test_a_repeated_turn_gets_the_same_reply_and_is_stored_once(tmp_path: Path) -> None:
    notebook = _notebook()
    says = ["My dog is Rex.", "My dog is Bella.", "Name all my dogs in JSON."]
    first = _talk(*says, notebook=notebook)
    assert first == _talk(*says, notebook=notebook) == ["OK.", "OK.", '["Rex", "Bella"]']
    trio.run(notebook.observe, Message(says[0], START, "t0"), "OK.")
    trio.run(notebook.save, tmp_path)
    assert len(json.loads((tmp_path / "notebook.json").read_text())["turns"]) == 3


CONVERSATION: list[str] = [
    "My favourite tree is the oak.",
    "The captain of the boat is Ruth. She likes the sea, and she sails alone.",
    "What is my favourite tree?",
    "The boat is violet.\nThe boat is old.\nWhat is the boat like?",
    "My favourite tree is the elm.",
    "Who is the captain of the boat?",
    "What is my favourite tree?",
    "What did I say 2 minutes ago?",
    "List all that you know about the boat.",
    'Which tree? Answer in JSON: {"tree": "..."}',
    "Which one?\n1. A boat\n2. An elm and a hut\n",
    "Tell me about the sea.",
]


@pytest.mark.parametrize("window", [None, 10_000, 100, 50, 20])
def test_it_resumes_from_a_snapshot_with_the_same_replies(tmp_path: Path, window: int | None) -> None:
    through = _replies(*CONVERSATION, notebook=_notebook(window))
    for cut in range(0, len(CONVERSATION) + 1, 2):
        (saved := tmp_path / str(cut)).mkdir()
        before, after = _notebook(window), _notebook(window)
        first = _replies(*CONVERSATION[:cut], notebook=before)
        trio.run(before.save, saved)
        _talk("Something else it knew.", notebook=after, first=1000)
        trio.run(after.load, saved)
        rest = _replies(*CONVERSATION[cut:], notebook=after, first=cut, start=START + cut * PACE)
        assert first + rest == through, f"cut {cut}"


def test_observing_remembers_as_replying_does() -> None:
    asked, statement = _notebook(), _notebook()
    replies = _talk(*CONVERSATION, notebook=asked)

    async def tell() -> None:
        for n, (text, reply) in enumerate(zip(CONVERSATION, replies, strict=True)):
            await statement.observe(Message(text, START + n * PACE, f"t{n}"), reply)

    trio.run(tell)
    question = "What is my favourite tree?"
    assert _talk(question, notebook=statement, first=99) == _talk(question, notebook=asked, first=99) == ["My favourite tree is the elm."]


def test_reset_forgets_everything() -> None:
    notebook = _notebook()
    _talk("My favourite fruit is the quince.", notebook=notebook)
    trio.run(notebook.reset)
    assert _talk("What is my favourite fruit?", notebook=notebook) == ["I don't know."]


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"version": 1, "turns": []}',
        '{"version": 2, "turns": [["t", "x", "yesterday", "OK."]]}',
        '{"version": 2, "turns": [["t", "x", "2024-05-01"]]}',
        '{"version": 2, "turns": [["t", 7, "2024-05-01", "OK."]]}',
        '{"version": 2, "turns": [[[], "x", "2024-05-01", "OK."]]}',
        '{"version": 2, "turns": [["t", "x", 7, "OK."]]}',
        '{"version": 2, "turns": ["txyz"]}',
        '{"version": 2, "turns": {"t": 1}}',
        '{"version": 2, "turns": [["t", "x", "2024-05-01", "OK."], ["t", "x", "2024-05-01", "OK."]]}',
        '{"version": 2, "turns": [["t", "x", "2024-05-01T00:00:00+02:00", "OK."]]}',
        "[" * 100_000,
        "\udcff",
    ],
)
def test_a_damaged_snapshot_is_rejected_and_changes_nothing(tmp_path: Path, damaged: str | None) -> None:
    notebook = _notebook()
    statement = "My favourite fruit is the quince."
    _talk(statement, notebook=notebook)
    if damaged is not None:
        (tmp_path / "notebook.json").write_bytes(damaged.encode(errors="surrogateescape"))
    with pytest.raises(AgentError, match=r"notebook cannot read its snapshot notebook\.json") as caught:
        trio.run(notebook.load, tmp_path)
    assert "\n" not in str(caught.value)
    assert _talk("What is my favourite fruit?", notebook=notebook, first=9) == [statement]


_FRAGMENTS = [
    *CONVERSATION,
    '{"a": "b"}',
    "[",
    '"',
    "'",
    "2 hours ago",
    "Tell me",
    "list json",
    "9999999999999999999999 hours ago?",
    "²₃٣ hours ago?",
    "\n",
    "?",
    "\x00",
    "\ud800",
    "İıßﬁ’",
]


@example(says=['" "'], window=None)
@given(
    st.lists(st.one_of(st.text(max_size=80), st.lists(st.sampled_from(_FRAGMENTS), max_size=6).map(" ".join)), max_size=8),
    st.sampled_from([None, 1, 60]),
)
def test_it_never_raises_and_is_deterministic(tmp_path_factory: Any, says: list[str], window: int | None) -> None:
    notebook = _notebook(window)
    replies = _replies(*says, notebook=notebook)
    assert replies == _replies(*says, notebook=_notebook(window))
    folder = tmp_path_factory.mktemp("snapshot")
    trio.run(notebook.save, folder)
    trio.run(notebook.load, folder)


@pytest.mark.parametrize("at", [datetime.min, datetime.max])
def test_any_date_works(at: datetime) -> None:
    notebook = _notebook()
    trio.run(notebook.observe, Message("A riddle.", START, "1"), "OK.")
    assert trio.run(notebook.reply, Message("What riddle did I tell you 3 weeks ago?", at, "2")).text == "A riddle."


SIZE = 10_000_000


@pytest.mark.parametrize(
    "piece",
    [
        "a ",
        " ",
        "\n",
        "?",
        "\"'",
        "[{",
        '{"a": "',
        "\n1. a",
        "x",
        "A ",
        "a'",
        "is it so. ",
        "what is my name and ",
        "1 hour ago ",
        "you ",
        '"a ',
    ],
)
def test_a_huge_message_is_harmless(piece: str) -> None:
    notebook = _notebook()
    statement = "My favourite fruit is the quince."

    def talk(size: int) -> None:
        text = piece * (size // len(piece))
        _talk(text, f"What is my name, {text}?", notebook=_notebook())

    assert growth(talk, SIZE // 40) < 40
    _talk(piece * (SIZE // len(piece)), notebook=notebook)
    assert _talk(statement, "What is my favourite fruit?", notebook=notebook, first=9)[-1] == statement


def test_a_turn_of_a_long_conversation_takes_little_time() -> None:
    """Each of two thousand questions is not compared with each of eight thousand statements."""
    replies = []

    def talk(size: int) -> None:
        says = [
            f"My favourite dish number {n} is stew no{n}, and it rains." if n % 5 else f"What goes with stew no{n - 1}?"
            for n in range(1, size + 1)
        ]
        replies[:] = _talk(*says)

    assert growth(talk, 2000, times=5) < 15
    talk(10_000)
    assert replies[-1] == "My favourite dish number 9999 is stew no9999, and it rains."
