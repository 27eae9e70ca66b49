"""Whether a reply declines, in whatever plain words: for all readers the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.histories import rules
from longspan.scenarios.histories.history import Question
from longspan.scenarios.memory import club_answers
from longspan.simulator.reading.abstentions import declines_question, find_offers, is_abstention, is_refusal

LABELLED: Final = Path(__file__).with_name("declines.jsonl")
"""Questions, possible answers and replies. A person who had not seen the rules labelled each: it declines, answers, or does neither."""

DECLINE: Final = """
I cannot find that.
I can't find that
I couldn't find that in our chats.
I could not find it
I don’t see that anywhere.
Nothing in my notes covers that.
That isn't something we've talked about.
You've never mentioned it to me.
I have no memory of that.
There's nothing here about a cat.
I'm drawing a blank on that one.
I wasn't told.
I was never told that.
It wasn't mentioned.
It hasn't come up.
Sorry, that's not something I know.
The conversation doesn't say.
Our chat history makes no mention of it.
No mention of it, I'm afraid.
I've got nothing on that.
I do not recall you telling me.
I don't think you've told me yet.
I don't believe that was discussed.
Can't recall.
Not that I know of
I don't have that information.
I haven't the foggiest.
I'm afraid I haven't been given that detail.
That information is unavailable.
That's not in my memory.
I'm not sure you ever told me.
You didn't specify.
The notes are not giving a name.
You talked about the trip, not saying when it was.
The brand was left unspecified.
I lack the information to answer this.
Unfortunately, my records don't include this.
It's unclear from our conversation.
That detail is missing from my notes.
We haven't talked about that.
No clue, sorry!
I would have to guess.
I cannot determine this from the conversation.
There isn't enough information to answer.
There is not any information about this.
Based on the available context, this cannot be determined.
I have not been informed of that.
This was not discussed in the conversation provided.
I honestly couldn't say.
I couldn't possibly know that.
If you mentioned it, I've lost track of it.
I don't seem to have that on file.
You must not have told me.
My memory is blank on this.
Not that you've told me.
Hm, that one isn't ringing any bells.
I've no idea.
haven't got a clue mate
You kept that one secret.
That was never something you shared.
I have yet to hear the name.
You've yet to tell me.
You haven't told me that yet—what is it?
None of your messages mention it.
Neither of us ever mentioned it.
That's beyond what I know.
I'd need you to tell me.
Unknown to me.
I searched, but there were no results.
I looked but didn't find anything.
Nobody has told me.
No one mentioned it.
That's outside my knowledge.
Your messages are silent on that.
You skipped that part.
You left that detail out.
"""

ANSWER: Final = """
I couldn't find fault with it: 42
It's red. I couldn't be happier for you!
The password is otter9; don't tell anyone.
You don't like mushrooms.
She never married.
He isn't in the office on Fridays.
No, you sold it.
You said you couldn't decide.
Don't worry, it is Tuesday.
You never finished it.
It's not red but blue.
Not the oak one, the walnut one.
You can't eat peanuts.
No problem! The dentist is Dr Patel.
I have no doubt that it's Tuesday.
Paris. I can't wait to hear about it!
You didn't go to Rome, you went to Milan.
You told him nothing of the sort; you agreed.
He doesn't have a car.
She hasn't been to Japan since 2019.
You gave up sugar.
I'd say Tuesday.
I wouldn't forget: it's Hana.
You were not happy with the hotel.
Of course I know: it's Biscuit.
I haven't forgotten! It's Biscuit.
Without a doubt, Hana.
Nothing beats your mum's lasagne, you said.
It's a little place without a sign.
I never forget a name: Biscuit.
You quit because you had no time.
Your sister can't stand him.
John criticises the hospital for being too busy and not providing the care that was needed.
They fell out over his never sharing the money with her.
She was praised for not naming anybody.
"""

ASKED: Final = Question("q", "What colour is the shed?", None, "adversarial", answerable=False, trap="red")


@pytest.mark.parametrize("reply", DECLINE.strip().splitlines())
def test_all_plain_ways_to_decline_are_read_alike_by_all_readers(reply: str) -> None:
    for spelt in (reply, reply.replace("'", "\u2019"), reply.replace("\u2019", "'"), reply.upper(), f"**{reply}**"):
        assert declines_question(spelt), spelt
        assert club_answers.admits_ignorance(spelt, []), spelt
    assert rules.grade_reply(ASKED, reply, ["red", "blue"]) == rules.RuleVerdict(1, "says that it was not told")


@pytest.mark.parametrize("reply", ANSWER.strip().splitlines())
def test_a_negation_alone_does_not_decline(reply: str) -> None:
    assert not is_abstention(reply)
    assert not is_abstention(reply.replace("'", "\u2019"))


def test_a_person_who_has_not_seen_the_rules_agrees() -> None:
    rows = [json.loads(line) for line in LABELLED.read_text("utf-8").splitlines()]
    wrong = [row for row in rows if declines_question(row["reply"], row["question"], row["options"]) != (row["label"] == "declines")]
    assert len(rows) == 120
    assert wrong == []


COLOURS: Final = ("red", "blue")


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ("You never told me the brand; the colour is red.", True),
        ("You told me when it was painted, but not the colour.", False),
        ("Red (you didn't say which shade).", True),
        ("I don't know who painted it, but it's blue.", True),
        ("I don't know whether it is red or blue.", False),
        ("No. You never told me.", False),
        ("I have no record of it. A wild guess: red?", True),
        ("Ada's is red, but I have nothing about the shed.", False),
        ('{"answer": "unknown", "reason": "red was not mentioned"}', False),
        ('{"answer": "red", "reason": null}', True),
        ('You said "I don\'t know", and then red.', True),
    ],
)
def test_a_reply_that_gives_a_value_all_the_same_answers(reply: str, answers: bool) -> None:
    assert bool(find_offers(reply, ASKED.text, COLOURS)) is answers
    assert declines_question(reply, ASKED.text, COLOURS) is not answers


def test_an_answer_that_reads_as_declining_is_an_answer() -> None:
    assert not declines_question("You watched Unknown, with Liam Neeson.", "What did we watch?", ["Unknown", "Heat"])
    assert declines_question("It is unknown what you watched.", "What did we watch?", ["Unknown", "Heat"])


def test_who_refuses_to_share_something_may_know_it() -> None:
    for reply in ("I can't share that.", "I won't tell you that, it is private.", "I'd rather not say."):
        assert is_refusal(reply)
        assert not is_abstention(reply)


@given(
    st.lists(
        st.sampled_from([*"ab.,()*\"'", " ", "not ", "never ", "n't ", "no ", "I ", "know ", "told ", "{", "}", "red", "\u2019", "\n"])
    )
)
def test_any_reply_is_read(parts: list[str]) -> None:
    reply = "".join(parts)
    declining = declines_question(reply, "What colour is it?", COLOURS)
    assert not declining or not find_offers(reply, "What colour is it?", COLOURS)


def test_no_other_module_reads_declining_for_itself() -> None:
    told = re.compile(r"not (?:told|mentioned|sure)\|| (?:record|information|idea|mention)\||cant\|cannot\|couldnt")
    root = Path(__file__).parents[2]
    files = (file for folder in ("scenarios", "simulator", "agents") for file in (root / folder).rglob("*.py"))
    assert [file.name for file in files if file.name != "abstentions.py" and told.search(file.read_text("utf-8"))] == []
