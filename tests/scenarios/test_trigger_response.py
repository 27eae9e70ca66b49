"""Trigger response: the phrase must be said whenever the trigger is."""

from __future__ import annotations

import re
from itertools import pairwise
from random import Random

import pytest

from longspan.scenarios.ltm.trigger_response import TriggerResponse
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.filler.draws import read_word_list
from longspan.simulator.filler.filler import Filler
from longspan.simulator.filler.talk import Talk
from longspan.simulator.reading.matching import contains_phrase, found_words
from longspan.simulator.running.preflight.rehearsal import rehearse
from longspan.simulator.suite.suite import load_suite

RULES = load_words("triggers")
PHRASE = "Clocks are poor dancers"
OTHER = "Ask the magpie on the roof"
FACTS = {"when": "I say that I am running late", "phrase": PHRASE, "triggers": 3}


def graded(*replies: str) -> Grade:
    turns = [Exchange(10 * number, "...", reply, asks=True) for number, reply in enumerate(replies, 1)]
    return TriggerResponse().grade(FACTS, Record([Exchange(0, "...", "OK.", needle=True), *turns]))


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("Clocks are poor dancers", True),
        ("clocks are poor dancers.", True),
        ("  \u201cClocks are poor dancers!\u201d \U0001f483", True),
        ("**Clocks are poor dancers**\n\nDo hurry!", True),
        ("Oh dear. As you wished: Clocks are poor dancers.", True),
        ('Clocks are poor dancers.\n\n"No road is long." - Theodora Vane', True),
        ("", False),
        ("OK.", False),
        ("Clocks are bad dancers", False),
        ("Clocks are poor", False),
        ("Clocksare poor dancers", False),
        (OTHER, False),
        (f"{PHRASE}. {OTHER}.", False),
        (" ".join(rule["phrase"] for rule in RULES), False),
    ],
)
def test_a_reply_is_right_or_not(reply: str, right: bool) -> None:
    assert graded(reply, reply, reply).score == float(right)
    assert graded(reply, "OK.", "OK.").score == pytest.approx(right / 3)


@pytest.mark.parametrize(
    ("replies", "score", "reason"),
    [
        ((PHRASE, PHRASE, PHRASE), 1, "said at trigger 1, said at trigger 2, said at trigger 3"),
        ((PHRASE, "OK.", PHRASE), 2 / 3, "said at trigger 1, not said at trigger 2, said at trigger 3"),
        (
            ("Hm", OTHER, f"{OTHER} {PHRASE}"),
            0,
            "not said at trigger 1, another phrase said at trigger 2, said with another phrase at trigger 3",
        ),
        ((PHRASE,), 1 / 3, "said at trigger 1"),
        ((), 0, "none was played"),
    ],
)
def test_each_trigger_brings_a_third(replies: tuple[str, ...], score: float, reason: str) -> None:
    grade = graded(*replies)
    assert grade.score == pytest.approx(score)
    assert grade.reason.startswith('expected "Clocks are poor dancers" at each of 3 triggers, ')
    assert reason in grade.reason
    assert grade.turns == tuple(10 * number for number in range(1, len(replies) + 1))


def test_a_phrase_from_a_published_test() -> None:
    facts = {"phrase": "Here is a tissue for you", "triggers": 1}
    assert TriggerResponse().grade(facts, Record([Exchange(1, "Achoo", "Here is a tissue, for you!", asks=True)])).score == 1


@pytest.mark.parametrize("triggers", [1, 3, 4, 50])
def test_triggers_are_spread_and_differ(triggers: int) -> None:
    for seed in range(30):
        script = rehearse(TriggerResponse(triggers=triggers), seed=seed, reply=lambda text, ideal: ideal).script
        rule, *questions = script.lines
        assert len(questions) == triggers
        assert rule.needle
        assert not rule.asks
        assert all(line.asks and line.needs == (0,) and contains_phrase(line.ideal, script.facts["phrase"]) for line in questions)
        assert all(before.text != after.text for before, after in pairwise(questions))
        for placement in ("uniform", "early"):
            starts = [line.at for line in script.placed(placement, Random(seed)).lines]
            assert starts == pytest.approx([0.9 * number / triggers for number in range(triggers + 1)])
        drawn = [line.at or 0 for line in script.placed("spread", Random(seed)).lines]
        assert drawn == sorted(drawn)
        assert (drawn[0], drawn[-1]) == (0, 0.9)
        assert all(at >= 0.05 for at in drawn[1:]) or triggers == 50, "fifty triggers are spread evenly"
        ways = Wording("trigger_response").all(situation(script.facts["phrase"]))
        assert len({line.text for line in questions}) == min(triggers, len(ways))


def situation(phrase: str) -> str:
    return next(rule["situation"] for rule in RULES if rule["phrase"] == phrase)


def test_the_rule_is_said_once_and_given_away_nowhere() -> None:
    for seed in range(50):
        script = rehearse(TriggerResponse(), seed=seed, reply=lambda text, ideal: ideal).script
        held = [contains_phrase(line.text, script.facts["phrase"]) for line in script.lines]
        assert held == [True, False, False, False]
        assert script.facts["when"] in script.lines[0].text


def test_needles_cannot_be_early() -> None:
    assert TriggerResponse.early is False


def test_there_are_many_rules() -> None:
    assert len(RULES) >= 20
    for key in ("situation", "when", "phrase"):
        assert len({plain(rule[key]) for rule in RULES}) == len(RULES)
    phrases = [rule["phrase"] for rule in RULES]
    assert not [(one, other) for one in phrases for other in phrases if one != other and contains_phrase(one, other)]
    assert all(4 <= len(phrase.split()) <= 6 for phrase in phrases)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["situation"])
def test_triggers_do_not_repeat_the_rule(rule: dict[str, str]) -> None:
    """They are worded otherwise, so that it takes understanding, not matching, to know them."""
    wording = Wording("trigger_response")
    remarks = wording.all(rule["situation"])
    assert len(set(remarks)) == len(remarks) >= 4
    small = set("i me my that to a an the of have has had been am is about some what it tell you say something up with on do".split())
    small |= set("done not mention bring confess let know think talk in at".split())
    told = set(plain(rule["when"]).split()) - small
    for remark in remarks:
        assert not told & set(plain(remark).split()), remark
        assert not set(plain(rule["phrase"]).split()) - small <= set(plain(remark).split())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["situation"])
def test_triggers_touch_no_other_topic(rule: dict[str, str]) -> None:
    others = [*load_words("colour_words")["colours"], *load_words("names"), *load_words("groceries"), *load_words("groceries").values()]
    for text in [*Wording("trigger_response").all(rule["situation"]), *rule.values()]:
        assert not found_words(text, others)


SIGNS = {
    "cold": "shiver|numb|freez|like ice|Brr|chilly|feel cold",
    "tired": "eyes open|slept badly|yawn|pillow|doze|eyelids|tired|sleepy|exhausted",
    "lost": "vanish|upside down|on earth|it is gone|has got to|lost|mislaid|missing|cannot find",
    "rain": "pouring|soaked|showers are|downpour|drizzle|rainy|puddle|umbrella is",
    "exercise": "long run|squats|swam|workout|gym|push-ups|jog|exercis|sprint",
    "neighbours": "upstairs|next door|landing|below me|side of the hedge|neighbours?\\b",
    "garden": "tulip|weeds|flower beds|lawn|Slugs|garden is|scarecrow",
    "travel": "bags are packed|flight|ferry|off to the|train leaves|leaving town|journey|suitcase is|rucksack is",
    "late": "ages ago|missed the bus|hardly any time|has started|overslept|am late|running late|in a hurry",
    "teeth": "molar|incisor|filling|toothache|gums|tooth\\b|teeth|dentist",
    "technology": "laptop|screen|printer|phone|tablet will|computer|device|robot|alarm clock|vacuum",
    "cat": "kitten|whiskers|old tom|tabby|purr|my cat",
    "music": "violin|guitar|sonata|piano|trumpet|flute|instrument|practis",
    "film": "thriller|cinema|credits|actress|western|comedy|film|movie",
    "bored": "nothing to do|drags on|staring at the wall|happen for once|twiddl|bored",
    "success": "promoted|passed my|accepted|won\\b|came first|success|prize",
    "nervous": "butterflies|palms|pounding|sit still|tremble|nervous",
    "housework": "hoover|wiped|scrub|ironed|dishes|housework|laundry",
    "haircut": "fringe|perm\\b|barber|hairdresser|curls|hair\\b",
    "car": "engine|tyre|brakes|ignition|windscreen|my car",
    "dream": "asleep|my sleep|nightmare|woke up|dream",
    "money": "the rent|savings|bill is|overdrawn|debts|money|afford",
    "insect": "wasp|ants\\b|mosquito|fly keeps|moth\\b|insect",
    "clumsy": "knocked|dropped|sat on|hinges|elbow|broke|shatter|snapped",
}
"""For each situation, words that betray it when the user speaks of himself: a part of each of its remarks, and of others of its kind."""
OWN = re.compile(r"\b(?:I(?= (?!and\b)[a-z])|[Mm]y|mine|myself|[Oo]urs?|[Ww]e)\b")  # not the letter I of a crossword
NOT_THE_USERS = re.compile(
    r'"[^"]*"|^On TV:.*|^[A-Z][\w-]+ [A-Z][\w-]+: .*|^Waiter: .*'
    r"|\b(?:[Mm]y (?:cousin|friend|tutor|pen friend|old classmate|colleague|godmother)|[Oo]ur caretaker)(?= [A-Z])|\bI heard a good one\b",
    re.MULTILINE,
)
"""What others say, show on TV or are said to do."""


def fired(text: str) -> set[str]:
    """The situations that `text` may be taken for, because a sentence about the user betrays them."""
    sentences = re.split(r"(?<=[.!?;])\s|\n", NOT_THE_USERS.sub("", text))
    return {
        name for sentence in sentences if OWN.search(sentence) for name, signs in SIGNS.items() if re.search(rf"\b(?:{signs})", sentence)
    }


def test_signs_betray_every_remark() -> None:
    assert set(SIGNS) == {rule["situation"] for rule in RULES}
    for rule in RULES:
        for remark in Wording("trigger_response").all(rule["situation"]):
            assert re.search(rf"\b(?:{SIGNS[rule['situation']]})", remark), remark


@pytest.mark.parametrize("name", [name for name in load_suite("ltm").scenarios if name not in ("trigger_response", "chapterbreak")])
def test_no_line_of_another_test_fires_a_rule(name: str) -> None:
    """A book is read without interruption, so no rule is open then."""
    for seed in range(100):
        played = rehearse(make_scenario(name, {}), seed=seed, reply=lambda text, ideal: ideal)
        for text in [*(exchange.text for exchange in played.record.exchanges), played.script.farewell]:
            assert not fired(text), text


def test_no_joke_is_about_the_user() -> None:
    assert [joke for joke in load_words("jokes") if OWN.search(joke)] == []


def test_no_filler_fires_a_rule() -> None:
    assert [remark for remarks in read_word_list("remarks").values() for remark in remarks if fired(remark)] == []
    for seed in range(10):
        made = Filler(Talk(seed), Tokenizer())
        for distraction in [*(made.make(gap) for gap in (*range(10, 150, 5), *[1500] * 30)), *(made.ask() for _ in range(20))]:
            assert not fired(distraction.text), distraction.text
