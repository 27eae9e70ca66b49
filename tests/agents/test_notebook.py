"""Every ability of the notebook is tried on invented conversations, in two wordings or more.

`notebook_wordings.json` holds ten abilities in six to ten wordings each: one half was there to develop with, the other half
was written at the same time and only ever counted.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from longspan.agents.base import AgentError, Message
from longspan.agents.reference.notebook import Notebook

START = datetime(2024, 5, 1, 9, 0)
PACE = timedelta(seconds=30)

Says = str | timedelta
"""A message, or time that passes."""


def _notebook(window: int | None = None) -> Notebook:
    return Notebook("", Notebook.Options(window=window))


def _talk(*says: Says, notebook: Notebook | None = None, first: int = 0, start: datetime = START) -> list[str]:
    """The replies to a conversation of half a minute a turn."""
    agent = notebook or _notebook()
    replies: list[str] = []
    now = start

    async def play() -> None:
        nonlocal now
        for say in says:
            if isinstance(say, timedelta):
                now += say
                continue
            replies.append((await agent.reply(Message(say, now, f"t{first + len(replies)}"))).text)
            now += PACE

    trio.run(play)
    return replies


def _answer(*says: Says) -> str:
    return _talk(*says)[-1]


@pytest.mark.parametrize(
    "told",
    [
        "My bicycle is green.",
        "Start at the mill and walk uphill.",
        "Could you water the plants?",
        "Did you know that snow is warm? It is not.",
        "Why do ducks dance? Because nobody told them not to.",
        "We will speak about many things. Understood?",
        "",
        "   \n  ",
        "...",
    ],
)
def test_what_asks_nothing_is_noted(told: str) -> None:
    assert _answer(told) == "OK."


@pytest.mark.parametrize(
    ("told", "question", "answer"),
    [
        ("My favourite fruit is the quince.", "What is my favourite fruit?", "Quince."),
        ("There's no fruit I love more than the quince.", "Which fruit do I like best?", "Quince."),
        ("My sister lives in Lisbon.", "Where does my sister live?", "Lisbon."),
        ("Lisbon is where my sister has her home.", "Tell me where my sister lives.", "Lisbon."),
        ("The name of my dog is Rex.", "What is my dog called?", "Rex."),
        ("I call my dog Rex.", "Could you tell me the name of my dog?", "Rex."),
        ("The train leaves at 5.30pm.", "When does the train leave?", "5.30pm."),
        ("My bicycle cost 300 euros.", "How much did my bicycle cost? Answer briefly.", "300 euros."),
        ("I play the cello on Mondays, and I have a cat called Tiger.", "What is the name of my cat?", "Tiger."),
    ],
)
def test_a_question_gets_the_part_it_does_not_have(told: str, question: str, answer: str) -> None:
    assert _answer("The weather is fine.", told, "I read a book about ships.", question) == answer


@pytest.mark.parametrize(
    ("told", "question", "answer"),
    [
        (["My favourite tree is the oak.", "My favourite tree is the elm."], "What is my favourite tree?", "Elm."),
        (
            ["My favourite tree is the oak.", "I've changed my mind about my favourite tree. It is the elm."],
            "What's my favourite tree?",
            "Elm.",
        ),
        (["The elm is my favourite tree.", "My favourite tree is no longer the elm, it's the oak."], "Which tree is my favourite?", "Oak."),
        (["I live in Oslo.", "I moved house, now I live in Rome."], "Where do I live?", "Rome."),
        (["My favourite tree used to be the oak but now it is the elm."], "What is my favourite tree?", "Elm."),
        (["I have switched my favourite tree from oak to elm."], "What is my favourite tree?", "Elm."),
        (["My favourite tree: ash", "These days I prefer the elm tree instead of the ash."], "What is my favourite tree?", "Elm."),
    ],
)
def test_the_newest_of_what_fits_counts(told: Sequence[str], question: str, answer: str) -> None:
    assert _answer(*told, "My sister has a boat.", question) == answer


@pytest.mark.parametrize(
    "question",
    [
        "What is the name of my hamster?",
        "Who won the regatta?",
    ],
)
def test_it_makes_nothing_up(question: str) -> None:
    assert _answer("Grass grows.", question) == "I don't know."


@pytest.mark.parametrize(
    ("told", "question", "answer"),
    [
        (
            ["My dog is called Rex.", "I bought a sofa.", "My other dog is called Bella."],
            "What are my dogs called? Give me a JSON list.",
            ["Rex", "Bella"],
        ),
        (
            ["I went to the town of Bern.", "Rain again.", "Then I visited a town named Graz.", "My last town was Linz."],
            'List all the towns that I visited as JSON, e.g. ["town 1", "town 2"].',
            ["Bern", "Graz", "Linz"],
        ),
        (["My dog is called Rex.", "I told you, my dog is called Rex."], "List the names of my dogs.", ["Rex"]),
        (["Rain again."], "List the names of my dogs.", []),
    ],
)
def test_a_list_gathers_the_parts_of_all_that_is_alike(told: Sequence[str], question: str, answer: list[str]) -> None:
    assert json.loads(_answer(*told, question)) == answer


@pytest.mark.parametrize(
    ("told", "question", "answer"),
    [
        ("The parrot sits on the wardrobe.", 'Where is the parrot? Answer with {"answer": "word"}.', {"answer": "wardrobe"}),
        ("The parrot sits on the wardrobe.", 'Where does the parrot sit? Reply in JSON: {"place": "..."}', {"place": "wardrobe"}),
    ],
)
def test_a_json_object_is_filled_in(told: str, question: str, answer: dict[str, str]) -> None:
    assert json.loads(_answer(told, question)) == answer


def test_several_keys_are_filled_in_each() -> None:
    told = ["The captain of the boat is Ruth.", "The colour of the boat is violet."]
    answer = json.loads(_answer(*told, 'Describe the boat as {"captain": "...", "colour": "..."}.'))
    assert answer == {"captain": "Ruth", "colour": "violet"}


@pytest.mark.parametrize(
    ("told", "left"),
    [
        (["Add 3 nails to my list.", "Remove one nail from my list."], {"nails": 2}),
        (["I need 3 nails and two hammers on the list.", "Take the hammers off the list."], {"nails": 3}),
        (
            ["Please put 4 tins of paint on the list.", "Drop 1 tin of paint from it.", "Also add a brush to the list."],
            {"tins of paint": 3, "brush": 1},
        ),
        (["Could you add five screws to the list?", "Buy 5 more screws.", "Could you delete four of the screws?"], {"screws": 6}),
        (["Add rope to the list.", "I don't need the rope anymore."], {}),
        (["Add 2 saws to the list.", "Replace the saws with 3 files."], {"files": 3}),
        (["Add 2 saws to the list.", "I have 20 cousins and 3 uncles.", "Remove 1 saw, please."], {"saws": 1}),
        (["Add 2 saws to the list.", "Forget everything on my list.", "Add 1 axe to the list."], {"axe": 1}),
        (["Add 2 saws to the list.", "I already have a saw, so remove 1 of them."], {"saws": 1}),
        (["Add 2 saws to the list.", "Make that 5 saws instead of 2 on the list."], {"saws": 5}),
        (["Remove 2 saws from the list."], {}),
    ],
)
@pytest.mark.parametrize(
    "question",
    [
        'What is on my list? Give a JSON list like [{"item": "thing", "quantity": 1}].',
        'Write out my whole list with amounts, as JSON: [{"item": "thing", "quantity": 5}, ...]',
    ],
)
def test_amounts_are_added_up(told: Sequence[str], left: dict[str, int], question: str) -> None:
    rows = json.loads(_answer(*told, "The sea is rough.", question))
    assert {row["item"]: row["quantity"] for row in rows} == left


def test_the_keys_of_a_list_of_amounts_are_the_ones_asked_for() -> None:
    answer = _answer("Add 3 nails to my list.", 'Show my list as [{"article": "x", "count": 2}].')
    assert json.loads(answer) == [{"article": "nails", "count": 3}]


@pytest.mark.parametrize(
    ("orders", "said", "replies"),
    [
        (
            ['Whenever I say "The tide is low", reply with "Bring the nets".'],
            ["The tide is low.", "The tide is high."],
            ["Bring the nets", "OK."],
        ),
        (["From now on, if I tell you I'm thirsty, say 'Drink tea!'"], ["I'm thirsty", "I'm tired"], ["Drink tea!", "OK."]),
        (['Say "bless you" every time I sneeze.'], ["I sneeze!"], ["bless you"]),
        (["When I mention pirates, you should answer: Arr, matey!"], ["I saw pirates today."], ["Arr, matey!"]),
        (['Answer "Never" when I ask you "Do you like rain?"'], ["Do you like rain?"], ["Never"]),
        (['When I say "one", say "two".', 'When I say "one", say "three".'], ["One"], ["three"]),
        (['When I say "green light", say "go".', "Please forget the thing about the green light."], ["Green light."], ["OK."]),
    ],
)
def test_a_standing_instruction_is_followed(orders: Sequence[str], said: Sequence[str], replies: Sequence[str]) -> None:
    given = _talk(*orders, "I had soup.", *said)
    assert given[: len(orders) + 1] == ["OK."] * (len(orders) + 1)
    assert given[len(orders) + 1 :] == replies


@pytest.mark.parametrize(
    "text",
    ["When is the fair? Reply with one word.", "If you remember, tell me who won the fair.", "Tell me where and when the fair opens."],
)
def test_a_question_is_no_standing_instruction(text: str) -> None:
    assert _talk(text, "The fair opens.")[1] == "OK."


@pytest.mark.parametrize(
    ("instruction", "at", "quote"),
    [
        ('Append "Time flies." - Someone to your 3rd reply from now.', 3, '"Time flies." - Someone'),
        ("In your fifth response after this one, include the words 'time flies'.", 5, "time flies"),
        ('After two replies, finish your message with "Time flies".', 3, '"Time flies"'),
        (
            "Add “Time flies” by Someone to your second answer, counting the reply to this message as the first.",
            1,
            "“Time flies” by Someone",
        ),
        ("Append this to your 2nd reply: Time flies", 2, "Time flies"),
        ('Three replies from now, say "Time flies" at the end.', 3, '"Time flies"'),
        ('Once you have replied 4 times, close with "Time flies".', 5, '"Time flies"'),
        ('End response #4 with "Time flies".', 4, '"Time flies"'),
        ('Put "Time flies" at the end of reply number 2.', 2, '"Time flies"'),
        ('Append "Time flies" to your first response, this reply being the first.', 0, '"Time flies"'),
        ('Append "Time flies" to your twenty-first response.', 21, '"Time flies"'),
    ],
)
def test_an_instruction_for_later_is_kept(instruction: str, at: int, quote: str) -> None:
    replies = _talk(instruction, *["The road is long."] * 24)
    assert [n for n, reply in enumerate(replies) if reply != "OK."] == [at]
    assert replies[at] == f"OK.\n{quote}"


@pytest.mark.parametrize(
    ("told", "instruction", "at", "quote"),
    [
        (
            'Here is a quote: "Time flies." - Someone',
            "I want you to append the quote to your 3rd reply from now.",
            3,
            '"Time flies." - Someone',
        ),
        (
            'Here is a quote: "Time flies." - Someone',
            "Now listen: your 3rd reply from now has to end with the quote.",
            3,
            '"Time flies." - Someone',
        ),
        ("There is a proverb, “Time flies”.", "Please add that proverb at the end of your fourth response.", 4, "“Time flies”"),
        (
            "Someone once wrote 'time flies like an arrow'.",
            "Finish your 2nd answer after this one with those words.",
            2,
            "time flies like an arrow",
        ),
    ],
)
def test_what_was_told_before_can_be_meant(told: str, instruction: str, at: int, quote: str) -> None:
    replies = _talk(told, "The road is long.", instruction, *["The road is long."] * 6)
    assert [n for n, reply in enumerate(replies) if reply != "OK."] == [2 + at]
    assert replies[2 + at] == f"OK.\n{quote}"


def test_directions_lead_over_the_newest_statements_and_back() -> None:
    told = [
        "The Mill stands 2 km north of the Harbour.",
        "From the Mill, walk 1 km west and you get to the Bakery.",
        "The Mill stands 5 km east of the Harbour.",
    ]
    assert _answer(*told, "How do I get from the Bakery to the Harbour?") == (
        "From the Bakery, go 1 km east to the Mill.\nFrom the Mill, go 5 km west to the Harbour."
    )


@pytest.mark.parametrize("text", ["What did I say in my third message?", "Could you repeat what you said in your second reply?"])
def test_a_question_about_a_turn_is_no_instruction_for_later(text: str) -> None:
    assert _talk("Snow fell.", text, "Rain fell.", "Hail fell.", "Wind blew.")[2:] == ["OK."] * 3


def test_a_turn_it_is_told_of_counts_as_a_reply() -> None:
    notebook = _notebook()
    _talk('Append "Time flies" to your 2nd reply from now.', notebook=notebook)
    trio.run(notebook.observe, Message("Rain.", START, "told"), "Indeed.")
    assert _talk("Snow.", notebook=notebook, first=5) == ['OK.\n"Time flies"']


@pytest.mark.parametrize(
    ("question", "what"),
    [
        ("What riddle did I tell you 3 hours ago?", "A riddle: what has roots?"),
        (
            "Please repeat the riddle that you heard from me two hours and a half ago.",
            "Another riddle for you: what has a bed but never sleeps?",
        ),
        ("An hour and 29 minutes ago I told you a riddle. Which one was it?", "And one more riddle: what is full of holes?"),
    ],
)
def test_how_long_ago_finds_what_was_said_then(question: str, what: str) -> None:
    says: list[Says] = [
        "A riddle: what has roots? Trees.",
        "My aunt has a boat.",
        timedelta(minutes=30),
        "Another riddle for you: what has a bed but never sleeps? Rivers.",
        "My aunt has two boats.",
        timedelta(minutes=60),
        "And one more riddle: what is full of holes? Sponges.",
        "My uncle has a goat.",
        timedelta(minutes=88),
        question,
    ]
    assert _answer(*says).startswith(what)


WORDINGS: dict[str, Any] = json.loads(Path(__file__).with_name("notebook_wordings.json").read_text(encoding="utf-8"))
AMONG_ITEMS = ' Answer in JSON like [{"item": "thing", "quantity": 7}].'
QUOTE = "Time flies over us"
_LENGTH = re.compile(r"\d+ k?m\b")


def _has(answer: str, what: str) -> bool:
    return what.casefold() in answer.casefold()


def _parsed(answer: str) -> Any:
    try:
        return json.loads(answer)
    except ValueError:
        return None


def _amid_chatter(*told: str) -> list[Says]:
    chatter = itertools.cycle(WORDINGS["chatter"])
    return [next(chatter), *(say for one in told for say in (one, next(chatter)))]


def _fact(told: list[str], question: str, new: str, old: str) -> bool:
    answer = _answer(*_amid_chatter(*told), question)
    return _has(answer, new) and not _has(answer, old)


def _ago(question: str, which: int) -> bool:
    """Four jokes, 45 minutes apart, the last a quarter of an hour before the question."""
    says: list[Says] = []
    for n, joke in enumerate(WORDINGS["jokes"]):
        rest = timedelta(minutes=45) - 3 * PACE if n < 3 else timedelta(minutes=15) - 2 * PACE
        says += [WORDINGS["chatter"][n], joke, WORDINGS["chatter"][n + 1], rest]
    answer = _answer(*says, question)
    return [n for n, joke in enumerate(WORDINGS["jokes"]) if _has(answer, joke)] == [which]


def _list(told: list[str], question: str, values: list[str]) -> bool:
    return bool(_parsed(_answer(*_amid_chatter(*told), question)) == values)


def _amounts(told: list[str], question: str, left: dict[str, int]) -> bool:
    rows = _parsed(_answer(*_amid_chatter(*told), question + AMONG_ITEMS))
    return isinstance(rows, list) and {row["item"]: row["quantity"] for row in rows} == left


def _place(told: list[str], question: str, place: str) -> bool:
    return bool(_parsed(_answer(*_amid_chatter(*told), question)) == {"answer": place})


def _cue(order: str, cue: str, say: str) -> bool:
    *_, other, reply = _talk(*_amid_chatter(order), "The tide is high and the pond is dry.", cue)
    return reply == say != other


def _later(told: list[str], nth: int) -> bool:
    replies = _talk("Rain.", *told, *["The road is long."] * 8)
    return [n - len(told) for n, reply in enumerate(replies) if _has(reply, QUOTE)] == [nth]


def _choice(question: str, label: str) -> bool:
    return _answer("The captain sailed the Pelican to the harbour of Lorne. " * 20, *WORDINGS["chatter"], question) == label


def _senders(told: list[str], question: str) -> bool:
    answer = _answer(*_amid_chatter(*told), question)
    hints = ("heron stands", "Seven bells", "keep the wind")
    return all(_has(answer, hint) for hint in hints) and not any(_has(answer, one) for one in WORDINGS["chatter"])


def _route(told: list[str], question: str) -> bool:
    """Directions with the lengths that were told, in the order in which they are walked, and nothing else."""
    answer = _answer(*_amid_chatter(*told), question)
    return [_LENGTH.findall(line) for line in answer.splitlines()] == [_LENGTH.findall(one) for one in told]


ABILITIES: dict[str, Callable[..., bool]] = {
    "facts": _fact,
    "ago": _ago,
    "lists": _list,
    "amounts": _amounts,
    "places": _place,
    "cues": _cue,
    "later": _later,
    "choices": _choice,
    "senders": _senders,
    "routes": _route,
}


@pytest.mark.parametrize("ability", ABILITIES)
def test_an_ability_holds_in_the_wordings_it_was_developed_with(ability: str) -> None:
    assert [row for row in WORDINGS[ability]["development"] if not ABILITIES[ability](*row)] == []


def test_abilities_hold_in_wordings_that_were_only_counted() -> None:
    rows = [(ability, row) for ability in ABILITIES for row in WORDINGS[ability]["check"]]
    missed = [(ability, row) for ability, row in rows if not ABILITIES[ability](*row)]
    assert len(missed) <= 0.2 * len(rows), missed


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        (
            'Extract the answers as JSON, e.g. ["a", "b"].\nQ: Highest hill?, A: Ben Nevis\nQ: Longest river?, A: NILE',
            ["Ben Nevis", "NILE"],
        ),
        (
            "Here are some questions with answers:\nQuestion: Who?\nAnswer: Me\nQuestion: Where?\nAnswer: Here\nList the answers.",
            ["Me", "Here"],
        ),
    ],
)
def test_answers_are_extracted_from_the_message_itself(text: str, answers: list[str]) -> None:
    replies = _talk(text, "Who? Tell me.")
    assert json.loads(replies[0]) == answers
    assert "Me" not in replies[1], "what was only to be processed is no memory"


@pytest.mark.parametrize(
    ("question", "label"),
    [
        (
            "Which one goes on with it?\n1. The baker lit the oven.\n2. The captain left the Pelican at Lorne.\n3. A train whistled.",
            "2",
        ),
        ("Pick the right ending.\nA) A train whistled.\nB) The baker lit the oven.\nC) In Lorne, the captain sold the Pelican.", "C"),
    ],
)
def test_of_options_the_most_familiar_is_taken(question: str, label: str) -> None:
    story = "The captain sailed the Pelican to the harbour of Lorne. " * 20
    assert _answer(story, question) == label


MENU = "Here is the menu.\n\nDrinks:\n- Cider $3\n- Milk $1\n\nDesserts:\n- Plum cake $5\n- Sorbet $4"


def test_it_chooses_from_what_is_offered_and_keeps_to_it() -> None:
    assert _talk(
        MENU,
        "What drinks would you like?",
        "And can I get you one of our desserts?",
        "I'm sorry, we are out of plum cake today.",
        "Here is your cider.",
        "And here is your trout, enjoy.",
    ) == [
        "OK.",
        "I would like Cider, please.",
        "I would like Plum cake, please.",
        "I would like Sorbet, please.",
        "OK.",
        "Excuse me, that is not what I ordered. I ordered Cider and Plum cake and Sorbet.",
    ]


def test_what_is_offered_may_stand_in_the_question_or_on_a_line() -> None:
    assert _answer(MENU + "\n\nWhat drinks would you like?") == "I would like Cider, please."
    menu = "Welcome, dear guest: sit, and read.\nDrinks: cider $3, milk $1, tea\nSweets: plum cake, sorbet."
    assert _talk(menu, "Which of our sweets can I bring you?", "What drinks will you have?")[1:] == [
        "I would like plum cake, please.",
        "I would like cider, please.",
    ]


def test_it_does_not_send_back_what_it_never_ordered() -> None:
    assert _answer("Here is your trout, enjoy.") == "OK."


@pytest.mark.parametrize(
    "farewell", ["Forget what I said about my favourite trees.", "Please disregard my previous statements regarding my favourite tree."]
)
def test_what_is_to_be_forgotten_is(farewell: str) -> None:
    told = ["The oak is my favourite tree.", "My sister lives in Lisbon."]
    assert _talk(*told, farewell, "What is my favourite tree?", "Where does my sister live?")[2:] == ["OK.", "I don't know.", "Lisbon."]
    assert _answer(*told, farewell, "My favourite tree is the elm.", "What is my favourite tree?") == "Elm."


def test_beyond_the_window_it_remembers_nothing() -> None:
    chatter = [f"On day {n} the wind blew from the north and the gulls were loud." for n in range(40)]
    says = ["My favourite fruit is the quince.", 'Whenever I say "ahoy", say "aye".', "Add 3 nails to the list.", *chatter]
    questions = ["What is my favourite fruit?", "Ahoy!", 'What is on my list? [{"item": "x", "quantity": 1}]']
    assert _talk(*says, *questions)[-3:] == ["Quince.", "aye", '[{"item": "nails", "quantity": 3}]']
    assert _talk(*says, *questions, notebook=_notebook(5000))[-3:] == ["Quince.", "aye", '[{"item": "nails", "quantity": 3}]']
    assert _talk(*says, *questions, notebook=_notebook(400))[-3:] == ["I don't know.", "OK.", "[]"]


def test_the_window_holds_the_newest_and_the_question_too() -> None:
    told, question = "My favourite fruit is the quince.", "What is my favourite fruit?"
    assert _talk(told, question, notebook=_notebook(40))[-1] == "Quince."
    assert _talk(told, "x" * 400, question, notebook=_notebook(40))[-1] == "I don't know."
    assert _talk(told, "x" * 400 + question, "And?", notebook=_notebook(1))[-1] == "OK."


def test_the_same_turn_again_is_answered_the_same_and_stored_once(tmp_path: Path) -> None:
    notebook = _notebook()
    says = ["Add 2 nails to my list.", "Add 3 nails to my list.", 'What is on my list? [{"item": "x", "quantity": 1}]']
    first = _talk(*says, notebook=notebook)
    again = _talk(*says, notebook=notebook)
    assert first == again == ["OK.", "OK.", '[{"item": "nails", "quantity": 5}]']
    trio.run(notebook.observe, Message(says[0], START, "t0"), "OK.")
    trio.run(notebook.save, tmp_path)
    assert len(json.loads((tmp_path / "notebook.json").read_text())["turns"]) == 3


CONVERSATION: list[str] = [
    "My favourite tree is the oak.",
    'Whenever I say "ahoy", say "aye".',
    "Add 3 nails to my list.",
    'Append "Time flies" to your 9th reply.',
    MENU,
    "What drinks would you like?",
    "The captain of the boat is Ruth.",
    "Please forget what I said about the boat.",
    "Ahoy!",
    'What is on my list? [{"item": "x", "quantity": 1}]',
    "Who is the captain of the boat?",
    "What is my favourite tree?",
    "What did I say 2 minutes ago?",
    "What desserts would you like?",
    "Here is your gruel.",
    "Remove 1 nail.",
    "Ahoy, captain!",
    'What is on my list? [{"item": "x", "quantity": 1}]',
]


@pytest.mark.parametrize("window", [None, 10_000, 200, 90, 20])
@pytest.mark.parametrize("cut", range(0, len(CONVERSATION) + 1, 3))
def test_it_goes_on_from_a_snapshot_as_if_nothing_had_happened(tmp_path: Path, cut: int, window: int | None) -> None:
    through = _talk(*CONVERSATION, notebook=_notebook(window))
    before, after = _notebook(window), _notebook(window)
    first = _talk(*CONVERSATION[:cut], notebook=before)
    trio.run(before.save, tmp_path)
    _talk("Something else it knew.", notebook=after, first=1000)
    trio.run(after.load, tmp_path)
    rest = _talk(*CONVERSATION[cut:], notebook=after, first=cut, start=START + cut * PACE)
    assert first + rest == through


def test_observing_remembers_as_replying_does() -> None:
    asked, told = _notebook(), _notebook()
    replies = _talk(*CONVERSATION, notebook=asked)

    async def tell() -> None:
        for n, (text, reply) in enumerate(zip(CONVERSATION, replies, strict=True)):
            await told.observe(Message(text, START + n * PACE, f"t{n}"), reply)

    trio.run(tell)
    question = "What is my favourite tree?"
    assert _talk(question, notebook=told, first=99) == _talk(question, notebook=asked, first=99) == ["Oak."]


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
        '{"version": 2, "next": 0, "turns": []}',
        '{"version": 1, "next": "3", "turns": []}',
        '{"version": 1, "next": true, "turns": []}',
        '{"version": 1, "next": 0, "turns": [["t", "x", "2024-05-01", "OK."]]}',
        '{"version": 1, "next": 1, "turns": [["t", "x", "yesterday", "OK."]]}',
        '{"version": 1, "next": 1, "turns": [["t", "x", "2024-05-01"]]}',
        '{"version": 1, "next": 1, "turns": [["t", 7, "2024-05-01", "OK."]]}',
        '{"version": 1, "next": 1, "turns": [["t", "x", 7, "OK."]]}',
        '{"version": 1, "next": 1, "turns": ["txyz"]}',
        '{"version": 1, "next": 1, "turns": {"t": 1}}',
        '{"version": 1, "next": 2, "turns": [["t", "x", "2024-05-01", "OK."], ["t", "x", "2024-05-01", "OK."]]}',
        '{"version": 1, "next": 1, "turns": [["t", "x", "2024-05-01T00:00:00+02:00", "OK."]]}',
        "[" * 100_000,
        "\udcff",
    ],
)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(tmp_path: Path, damaged: str | None) -> None:
    notebook = _notebook()
    _talk("My favourite fruit is the quince.", notebook=notebook)
    if damaged is not None:
        (tmp_path / "notebook.json").write_bytes(damaged.encode(errors="surrogateescape"))
    with pytest.raises(AgentError, match=r"notebook cannot read its snapshot notebook\.json") as caught:
        trio.run(notebook.load, tmp_path)
    assert "\n" not in str(caught.value)
    assert _talk("What is my favourite fruit?", notebook=notebook, first=9) == ["Quince."]


_FRAGMENTS = [
    *CONVERSATION,
    "Q: who? A: me",
    "1. one\n2. two\n",
    '{"a": "b"}',
    "[",
    '"',
    "'",
    "2 hours ago",
    "a half hour ago?",
    "Tell me",
    "list",
    "when I say",
    "say",
    "how many",
    "instead of",
    "9999999999999999999999 hours ago?",
    "your 0th reply",
    "remove all",
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
    replies = _talk(*says, notebook=notebook)
    assert replies == _talk(*says, notebook=_notebook(window))
    assert all(isinstance(reply, str) for reply in replies)
    folder = tmp_path_factory.mktemp("snapshot")
    trio.run(notebook.save, folder)
    trio.run(notebook.load, folder)


@pytest.mark.parametrize("at", [datetime.min, datetime.max])
def test_any_date_will_do(at: datetime) -> None:
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
        "Q: A: ",
        "[{",
        '{"a": "',
        "\n1. a",
        "x",
        "A ",
        "a'",
        "is it so. ",
        "what is my name and ",
        "1 hour ",
        "when I say ",
        "-, ",
    ],
)
def test_a_huge_message_is_no_trouble(piece: str) -> None:
    notebook = _notebook()
    began = time.process_time()
    _talk(piece * (SIZE // len(piece)), "What is my name, " + piece * (SIZE // len(piece)) + "?", notebook=notebook)
    assert time.process_time() - began < 60
    assert _talk("My favourite fruit is the quince.", "What is my favourite fruit?", notebook=notebook, first=9)[-1] == "Quince."


def test_a_long_conversation_costs_little_by_the_turn() -> None:
    """Two thousand turns with a question in every five; a scan of all that was said for each would take minutes."""
    says = [
        f"My favourite dish number {n} is stew no{n}." if n % 5 else f"What is my favourite dish number {n - 1}?" for n in range(1, 2001)
    ]
    began = time.process_time()
    replies = _talk(*says)
    assert time.process_time() - began < 60
    assert replies[-1] == "Stew no1999."
