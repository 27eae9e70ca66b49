"""Which replies rules decide on, and how."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.timing import growth

from longspan.scenarios.histories import Question
from longspan.scenarios.histories.answer_options import Options
from longspan.scenarios.histories.rules import RuleVerdict, grade_reply
from longspan.simulator.contract.graded_record import MAX_CHARACTERS

TOWN = Question("1", "Which town is my cousin Ada moving to?", "Ashford", trap="Oakham")
DAYS = Question("2", "How many days passed between the fair and the wedding of Ada on 3 May?", "23 days")
DATE = Question("3", "When did Ada get married?", "14 March 2024")
PRICE = Question("15", "How much was it?", "1.200,50 \u20ac")
TIME = Question("16", "When does it open?", "2 PM")
DISH = Question("4", "Which dish?", "(b) Soup with leeks", options=("(a) Rice", "(b) Soup with leeks", "(c) Soup with beans"))
NEVER = Question("5", "Which town is my cousin Ada moving to?", "You did not say.", answerable=False, trap="Oakham")
FREE = Question("6", "What did Ada adopt?", "a cat")
GUESTS = Question("9", "Who came to the party?", "Fiona and the Bruno twins")
FRUIT = Question("10", "What did I buy?", "apples, pears, and 2 plums")
PETS = Question("11", "What are my cat and my dog called?", "Olive and Rex")
PLACES = Question("12", "Where have I been?", "Paris, Texas and London, Ontario")
DATES = Question("13", "When was I in Kyoto?", "May 5, 2023 and June 6, 2024")
QUESTIONS = (
    TOWN,
    GUESTS,
    FRUIT,
    DAYS,
    DATE,
    DISH,
    NEVER,
    FREE,
    PRICE,
    TIME,
    Question("7", "Is it Ada?", "Yes"),
    Question("8", "?", None, rubric=("names Ada",)),
)


def score(verdict: RuleVerdict | None) -> float | None:
    return None if verdict is None else verdict.score


@pytest.mark.parametrize(
    ("question", "reply", "points"),
    [
        (TOWN, "ashford!", 1),
        (TOWN, "She is moving to Ashford.", 1),
        (TOWN, "Ashford, not Oakham.", 1),
        (TOWN, "It was Oakham at first, but it is Ashford now.", 1),
        (TOWN, "Ashford or Oakham", 0),
        (TOWN, "Not Ashford.", None),
        (TOWN, "Oakham", 0),
        (TOWN, "I don't know.", 0),
        (TOWN, "Some town in the north", None),
        (TOWN, "Ashford " + "and so on " * 50, None),
        (DAYS, "23", 1),
        (DAYS, "Twenty-three days.", 1),
        (DAYS, "3 weeks and 2 days", 1),
        (DAYS, "From 3 May to 26 May 2024 it is 23 days.", 1),
        (DAYS, "The fair was 5 + 18 = 23 days before it.", 1),
        (DAYS, "22 or 23 days", 0),
        (DAYS, "Not 23 days.", None),
        (DAYS, "24 days", 0),
        (DAYS, "A few weeks", None),
        (DATE, "On the 14th of March, 2024.", 1),
        (DATE, "March 14", 1),
        (DATE, "2024-03-14", 1),
        (DATE, "3/14/2024", 1),
        (DATE, "14 March 2023", 0),
        (DATE, "15 March 2024", 0),
        (DATE, "14 or 15 March 2024", 0),
        (DATE, "In spring", None),
        (DISH, "b", 1),
        (DISH, "**(b)**", 1),
        (DISH, "Option B, since you like leeks.", 1),
        (DISH, "The soup with leeks", 1),
        (DISH, "I think that is B.", 1),
        (DISH, '{"answer": "b"}', 1),
        (DISH, r"\boxed{\text{b}}", 1),
        (DISH, r"\boxed{a}", 0),
        (DISH, "(c) rather than (b)", 0),
        (DISH, "(a) or (b)", 0),
        (DISH, "OK.", 0),
        (NEVER, "I have no information about that.", 1),
        (NEVER, "You haven't told me where Ada is moving. You mentioned that Ben is moving to Oakham.", 1),
        (NEVER, "I don't know, but probably Oakham.", 0),
        (NEVER, "I don't know. Oakham.", 0),
        (NEVER, "Oakham", 0),
        (NEVER, "Ashford", None),
        (FREE, "She adopted a cat.", 1),
        (FREE, "The cat", 1),
        (FREE, "a kitten", None),
        (FREE, "A cat or a dog", None),
        (FREE, "It might be a cat.", None),
        (FREE, "A dog, a cat, a bird", None),
        (FREE, "She adopted a cat from the shelter, and it sleeps all day.", 1),
        (FREE, "She adopted a cat. It might be called Olive.", 1),
        (FREE, "No cat, a dog", None),
        (FREE, "What did Ada adopt?", 0),
        (FREE, "  ", 0),
        (FREE, "OK.", 0),
        (NEVER, "Got it!", 0),
        (QUESTIONS[-1], "OK.", 0),
        (GUESTS, "Fiona, Bruno twins", 1),
        (GUESTS, "the Bruno twins and Fiona", 1),
        (GUESTS, "It was **the Bruno twins**, plus Fiona.", 1),
        (GUESTS, "Your guests:\n1. Bruno twins\n2. Fiona", 1),
        (GUESTS, "Fiona", None),
        (GUESTS, "Fiona and Fiona", None),
        (GUESTS, "Fiona, the Bruno twins and Carl", None),
        (GUESTS, "a friend, Fiona and the Bruno twins", None),
        (GUESTS, "Carl came with Fiona and the Bruno twins.", None),
        (GUESTS, "The Bruno twins and Fiona with her mother", None),
        (GUESTS, "The Bruno twins and Fiona's mother", None),
        (GUESTS, "Fiona and the Bruno twins at first, and then Fiona alone", None),
        (GUESTS, "Fiona or the Bruno twins", None),
        (GUESTS, "Not Fiona and the Bruno twins", None),
        (GUESTS, "Maybe Fiona and the Bruno twins", None),
        (FRUIT, "Pears, 2 plums, apples", 1),
        (FRUIT, "You bought 2 plums, pears & apples.", 1),
        (FRUIT, "apples, pears, 2 plums, figs", None),
        (FRUIT, "- figs\n- apples\n- pears\n- 2 plums", None),
        (PETS, "Olive, Rex", 1),
        (PETS, "Rex and Olive", None),
        (PLACES, "Paris, Ontario and London, Texas", None),
        (DATES, "May 5, 2024 and June 6, 2023", None),
    ],
)
def test_verdicts(question: Question, reply: str, points: float | None) -> None:
    assert score(grade_reply(question, reply)) == points, grade_reply(question, reply)


@pytest.mark.parametrize(
    "reply", ["Some town in the north", "Not Ashford.", "Elmfold", "Ashford or Elmfold", "Ashford " + "and so on " * 500]
)
def test_with_all_rivals_known_what_does_not_settle_on_the_answer_is_wrong(reply: str) -> None:
    verdict = grade_reply(TOWN, reply, ["Elmfold"])
    assert verdict is not None
    assert verdict.score == 0
    assert verdict.why


LODGER = Question("9", "Which town is my lodger Ada going to move to?", "Ashford", trap="Oakham")
WALKED = Question("10", "How many kilometres have I walked with my cousin Ada altogether?", "24 kilometres", trap="9 kilometres")
PAIR = Question(
    "11",
    "Which dish?",
    "(a) A dish with peas and rice",
    options=("(a) A dish with peas and rice", "(b) A dish with peas and eels", "(c) A dish with ham and figs"),
)
CLIMBED = Question("12", "What was the date of the day when I climbed the tower?", "14 March 2024", trap="3 May 2024")
INN = Question("14", "Which inn in Duncombe did you recommend to me?", "Idle Otter", trap="Jolly Mallet")
UNTOLD = Question("13", "How many stamps does my cousin Ada have?", "You did not say.", answerable=False, trap="212")


@pytest.mark.parametrize(
    ("question", "reply", "points"),
    [
        (LODGER, "Ashford, for your lodger Ada. Your lodger Bernard is the one who is going to move to Oakham.", 1),
        (
            LODGER,
            'I found two moves:\n1. 3 May: "My lodger Ada is going to move to Ashford"\n2. 9 May: "Angus is going to move to Oakham"',
            1,
        ),
        (LODGER, "Your lodger Ada moves to Oakham, and Angus to Ashford.", 0),
        (LODGER, "Angus (friend): Oakham\nAda (lodger): Ashford", 1),
        (LODGER, "- 3 May: Oakham\n- 8 June: Ashford (the flat fell through)", 1),
        (LODGER, "- 3 May: Ashford\n- 8 June: Oakham", 0),
        (LODGER, '[{"town": "Oakham", "until": "2024-06-08"}, {"town": "Ashford", "since": "2024-06-08"}]', 1),
        (LODGER, "Ashford (ex-Oakham)", 1),
        (LODGER, "- 3 May: Oakham\n- 8 June: Ashford\n\nI can't say which of these is the right one.", 0),
        (WALKED, "24 km", 1),
        (WALKED, "24,000 metres", 1),
        (WALKED, "Three walks (8, 7 and 9), which come to 24 km.", 1),
        (WALKED, "May: 8 km\nJune: 7 + 9 = 16 km\nTotal: 24 km", 1),
        (WALKED, "8 km and 9 km", 0),
        (INN, "Duncombe: Idle Otter. Oakhurst: Jolly Mallet.", 1),
        (INN, "I mentioned the Idle Otter. (For Oakhurst it was the Jolly Mallet.)", 1),
        (INN, "In Oakhurst I recommended the Idle Otter, and in Duncombe the Jolly Mallet.", 0),
        (PAIR, "Rice & peas", 1),
        (PAIR, "The dish with the eels and peas", 0),
        (PAIR, "Both (a) and (b) have peas. (b) has eels as well, which you can't stand, so (a).", 1),
        (PAIR, "(a), since (b) has eels.", 1),
        (PAIR, "Option a) would suit you best. Option b) also has peas, but you dislike eels.", 1),
        (PAIR, "(a) > (b)", 1),
        (PAIR, "1. (a)\n2. (b)", 1),
        (PAIR, "(a) peas, no eels ✅\n(b) eels\n(c) no peas", 1),
        (PAIR, "(a) no\n(b) peas and eels ✅\n(c) no peas", 0),
        (PAIR, '{"best": "a", "second_best": "b"}', 1),
        (PAIR, "Dish a, because of the peas.", 1),
        (PAIR, "I would pick a).\nUser: And why not (b)?\nAssistant: (b) it is.", 1),
        (PAIR, "The first one.", 1),
        (PAIR, "The last one.", 0),
        (PAIR, "(a) or (b), since both have peas.", 0),
        (PAIR, "Both (a) and (b) have peas.", 0),
        (CLIMBED, "16 March minus two days = 14 March 2024.", 1),
        (CLIMBED, "You wrote on 16 March that it was the day before yesterday, so that was two days earlier: 14 March.", 1),
        (CLIMBED, "On the fourteenth of March.", 1),
        (CLIMBED, "14-03-2024", 1),
        (CLIMBED, "In your message of 16 March you said that you had climbed it two days before: 14 March 2024.", 1),
        (CLIMBED, "1. Message: 16 Mar − 2 = 14 Mar", 1),
        (CLIMBED, "16 March 2024", 0),
        (UNTOLD, "I have no number for Ada. The only collection I know of is Bernard's: 212 stamps.", 1),
        (UNTOLD, "| Who | Stamps |\n|---|---|\n| Bernard (friend) | 212 |\n| Ada (cousin) | not mentioned |", 1),
        (UNTOLD, "I checked everything: no stamps for Ada.", 1),
        (UNTOLD, "| Who | Stamps |\n|---|---|\n| Bernard | 212 |\n| Ada | – |", 1),
        (UNTOLD, '0 results for "Ada stamps".', 1),
        (UNTOLD, "I can't find any. Did you perhaps mean Bernard, who has 212?", 1),
        (UNTOLD, "I know of Bernard's stamps (212); Ada's are not among those.", 1),
        (UNTOLD, "There is nothing on Ada's stamps, but it's probably around 200.", 0),
    ],
)
def test_of_made_up_histories_what_is_said_of_whom_and_when_counts(question: Question, reply: str, points: float) -> None:
    verdict = grade_reply(question, reply, ["Elmfold", "9 kilometres"])
    assert score(verdict) == points, verdict


WORDS = st.sampled_from(
    "Ashford Oakham not 23 days 14 March 2024 (b) soup with leeks I don't know or = , . \n maybe cat yes 9,999 3/4/2024".split(" ")
)


@settings(max_examples=60)
@given(st.text() | st.lists(WORDS).map(" ".join), st.sampled_from(QUESTIONS), st.none() | st.lists(st.text(), max_size=3))
def test_no_reply_makes_a_rule_raise(reply: str, question: Question, rivals: list[str] | None) -> None:
    verdict = grade_reply(question, reply, rivals)
    assert verdict is None or (0 <= verdict.score <= 1 and verdict.why)


@pytest.mark.parametrize(
    "piece",
    [
        "Ashford or ",
        "23 ",
        "(b) ",
        "(b), since ",
        "(b) has ",
        "a: no\n",
        "[x] a\n",
        "Ada:\n  Bob:\n    3\n",
        "+3 more, ",
        "3 May: ",
        "on 3 May you ",
        "14 March ",
        "3/4/2024 ",
        "not know ",
        "a ",
        "hundred and ",
        "*",
        "one-",
        "1,234,",
        "1.",
        "-$5 million ",
        "pears,",
        "at 3:30 ",
    ],
)
def test_time_grows_linearly(piece: str) -> None:
    def work(size: int) -> None:
        for question in QUESTIONS[:10]:
            grade_reply(question, (piece * size)[:size], None)

    assert growth(work, MAX_CHARACTERS // 25, times=5) < 15


def test_reasons_without_an_option_take_linear_time() -> None:
    options = Options(["(a) A room with a kettle", "(b) A room with a sauna"])
    assert growth(lambda size: options.find_chosen(("because of it " * size)[:size]), MAX_CHARACTERS // 10, times=5) < 15


@pytest.mark.parametrize("options", [(), ("Not mentioned in the conversation", "No"), ("(a) No", "(b) Not mentioned in the conversation")])
def test_saying_that_there_is_no_information_is_no_no(options: tuple[str, ...]) -> None:
    answer = next((option for option in options if "Not mentioned" in option), None)
    asked = Question("1", "Did Tim win?", answer, kind="adversarial", answerable=False, trap="No", options=options)
    for reply, score in {"No information available": 1, "It is not mentioned.": 1, "No": 0, "No, he did not.": 0}.items():
        verdict = grade_reply(asked, reply)
        assert verdict is not None
        assert verdict.score == score, (reply, verdict)
