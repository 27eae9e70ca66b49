"""The suite reach: its ladder, its questions, how replies are read and graded, and its versions."""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import fmean

import pytest
from tests.scenarios.reach.planted import FORGETTING, Planted, question, statements

import longspan
from longspan import Message
from longspan.scenarios.reach.answers import KINDS, PLAIN, ROLES, classify_answer, find_values, list_values
from longspan.scenarios.reach.ladder import Sizes, spread_distances
from longspan.scenarios.reach.scenario import Reach
from longspan.scenarios.reach.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import run_command
from longspan.simulator.contract.rungs import Rung, find_rungs
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import read_result

# ---- the tests themselves


@pytest.mark.parametrize("span", [500, 2_000, 4_000, 8_000, 500_000])
def test_the_ladder_goes_from_the_message_before_up_to_the_span(span: int) -> None:
    for seed in range(10):
        script = Reach(span=span).make(Random(seed))
        at = [line.at or 0.0 for line in script.lines]
        assert (at[0], at[-1], at) == (0, 0.9, sorted(at))
        asked = script.facts["asked"]
        assert sum(each["at_once"] for each in asked) == Sizes.of(span).at_once
        assert len({(each["kind"], each["who"]) for each in asked}) == len(asked)  # no fact is told of twice
        apart: dict[str, list[float]] = {"plain facts": [], "paraphrased": []}
        for each in asked:
            if each["strand"] in apart and not each["at_once"]:
                first, last = each["lines"]
                assert (script.lines[first].needle, script.lines[last].asks) == (True, True)
                apart[each["strand"]].append((at[last] - at[first]) * span)
        assert max(apart["plain facts"]) == pytest.approx(0.9 * span)
        for strand, number in (("plain facts", Sizes.of(span).plain), ("paraphrased", Sizes.of(span).paraphrased)):
            pairs = list(zip(sorted(apart[strand]), spread_distances(number, span), strict=True))
            assert not pairs or fmean(found / rung for found, rung in pairs) == pytest.approx(1, abs=0.25)


def test_a_seed_means_the_same_test_on_every_version_of_python() -> None:
    scripts = [Reach(span=span).make(Random(seed)) for span in (2_000, 8_000) for seed in range(10)]
    said = "\n".join(f"{line.at} {line.text}" for script in scripts for line in script.lines)
    assert hashlib.sha256(said.encode()).hexdigest().startswith("c8d57b0f8a1a4f42")


def test_tests_of_one_run_share_no_facts() -> None:
    facts = [(each["kind"], each["who"]) for _, script in Reach(span=2_000).series(5, "7") for each in script.facts["asked"]]
    assert len(set(facts)) == len(facts)


def test_guesses_earn_the_chance_and_no_constant_reply_earns_more() -> None:
    scenario = Reach(span=8_000)
    wording = Wording("reach")
    for kind in KINDS:
        questions = [text for who in ("aunt", "vet") for text in wording.all(f"asked_{kind}", who=who)]
        if kind in PLAIN:
            questions += wording.all(f"paraphrased_{kind}", who=ROLES["baker"])
        assert all((scenario.guess(text) or "").rstrip(".").casefold() in map(str.casefold, list_values(kind)) for text in questions)
        every = ", ".join(list_values(kind)[:40])
        for expected in list_values(kind)[:40:7]:
            assert find_values(every, kind, [expected], "aunt") != [expected]
            assert find_values("I do not know.", kind, [expected], "aunt") == []


RIGHT: dict[str, tuple[str, Sequence[str]]] = {
    "dog": (
        "Biscuit",
        [
            "Biscuit.",
            "Your aunt's dog is called Biscuit!",
            "You told me: **Biscuit** 🐶",
            "It's biscuit.",
            "Your uncle's dog is Rover, and your aunt's is Biscuit.",
            "Not Rover, but Biscuit.",
        ],
    ),
    "locker": (
        "412",
        ["412", "Locker number 412.", "It is #412!", "Four hundred and twelve.", "four-twelve", "4-1-2", "It was 412 (I think)."],
    ),
    "town": ("Leeds", ["Leeds", "She lives in Leeds, if I remember correctly.", "In Leeds!"]),
    "birthday": ("3 April", ["3 April", "April 3rd", "On the third of April.", "03/04", "Her birthday is on April 3."]),
    "drink": ("green tea", ["Green tea", "She likes green tea best.", "green tea, hot"]),
}

WRONG: dict[str, Sequence[str]] = {
    "dog": ["Rover.", "Biscuit or Rover?", "Not Biscuit.", "I don't recall the name.", "A dog!"],
    "locker": ["421", "412 or 413", "4120", "I am not sure."],
    "town": ["York", "Leeds or York", "Not in Leeds."],
    "birthday": ["4 May", "3 April or 4 April", "In April."],
    "drink": ["Black coffee", "tea", "Green tea or black coffee."],
}


@pytest.mark.parametrize("kind", PLAIN)
def test_replies_are_read_as_a_person_reads_them(kind: str) -> None:
    value, right = RIGHT[kind]
    for reply in right:
        assert (reply, find_values(reply, kind, [value], "aunt")) == (reply, [value])
    for reply in WRONG[kind]:
        assert find_values(reply, kind, [value], "aunt") != [value], reply


def test_a_reply_that_goes_through_everything_that_was_told_answers_nothing() -> None:
    told = [
        f"My {who} likes {drink} best."
        for who, drink in zip(["aunt", "uncle", "baker", "nephew", "niece"], list_values("drink"), strict=False)
    ]
    assert find_values("\n".join(told), "drink", [list_values("drink")[0]], "aunt") == []
    assert find_values("\n".join(told[:3]), "drink", [list_values("drink")[0]], "aunt") == [list_values("drink")[0]]
    others = [
        "My uncle plays the viola.",
        "My baker moved to Lyon.",
        "My nephew was born on 3 May.",
        "The number of my niece's locker is 412.",
    ]
    everything = "\n".join([told[0], *others])
    assert find_values(everything, "drink", [list_values("drink")[0]], "aunt") == [], "of whatever kind"


class Mumbler:
    """An agent that answers every question in one way, from the values of the question's type that it has heard, oldest first."""

    def __init__(self, pick: Callable[[list[str]], str]) -> None:
        self._pick = pick
        self._heard: dict[str, list[str]] = {}

    def reply(self, message: Message) -> str:
        self.observe(message, "")
        asked = question(message.text)
        return self._pick(self._heard.get(asked[0], [])) if asked else "Noted."

    def observe(self, message: Message, reply: str) -> None:
        for kind, _, value in statements(message.text):
            self._heard.setdefault(kind, []).append(value)

    def reset(self) -> None:
        self._heard.clear()


def asked_of(agent: Callable[[], object] | str, out: Path, span: int = 2_000) -> list[Rung]:
    (folder,) = longspan.run("reach", agent=agent, span=span, out=out, progress=False).folders
    return find_rungs(item for test in read_result(RunFolder(folder)).tests for item in test.items)


def test_a_rung_knows_its_type_and_how_many_values_of_it_were_heard(tmp_path: Path) -> None:
    found = asked_of("silent", tmp_path)
    assert {each.type for each in found} == set(KINDS)
    for kind in PLAIN:
        heard = [1 / each.heard for each in found if each.type == kind]
        assert heard == sorted(heard), "more and more values are heard"
        assert heard[-1] == pytest.approx(len(heard)), "the last question is asked when all values of its type were stated"
    assert all(each.heard >= each.chance for each in found)
    assert [round(each.heard, 3) for each in found if each.type == "lent"] == [1], "the only three things that were lent"


def test_an_outcome_says_what_a_reply_settled_on(tmp_path: Path) -> None:
    outcomes = {
        "oracle": asked_of("oracle", tmp_path),
        "silent": asked_of("silent", tmp_path),
        "lists": asked_of(lambda: Mumbler(lambda heard: f"It is {', '.join(heard)}."), tmp_path),
        "first": asked_of(lambda: Mumbler(lambda heard: f"It is {heard[0]}."), tmp_path),
    }
    assert {each.outcome for each in outcomes["oracle"]} == {"right"}
    assert {each.outcome for each in outcomes["silent"]} == {"none"}
    crowded = [each for each in outcomes["lists"] if each.type in PLAIN and each.heard < 1]
    assert {each.outcome for each in crowded} == {"several"}
    first = [each for each in outcomes["first"] if each.type in PLAIN]
    assert {each.outcome for each in first} == {"right", "confused"}
    assert all((each.score == 1) is (each.outcome == "right") for each in first)


OUTCOMES = [
    ("dog", ["Biscuit"], "Rover.", "confused"),
    ("dog", ["Biscuit"], "Pepper.", "other"),
    ("dog", ["Biscuit"], "Biscuit or Rover.", "several"),
    ("dog", ["Biscuit"], "Not Rover, but Biscuit.", "right"),
    ("dog", ["Biscuit"], "I do not know. It is neither Rover nor Biscuit.", "none"),
    ("dog", ["Biscuit"], "I only know that your uncle's dog is Rover.", "none"),
    ("dog", ["Biscuit"], "Your uncle: Rover. Your boss: Bramble. Your niece: Rover. Your vet: Ziggy. Your baker: Juno.", "several"),
    ("trip", ["Peru", "Chile"], "Peru.", "old"),
    ("trip", ["Peru", "Chile"], "Chile, and no longer Peru.", "right"),
    ("lent", ["tent", "drill", "axe"], "The tent, the drill and the axe.", "right"),
    ("lent", ["tent", "drill", "axe"], "The tent.", "part"),
    ("lent", ["tent", "drill", "axe"], "The tent, the drill and the rake.", "confused"),
    ("lent", ["tent", "drill", "axe"], "The tent, the drill and the wok.", "other"),
    ("lent", ["tent", "drill", "axe"], "The tent, the drill, the axe, the rake and the globe.", "several"),
    ("lent", ["tent", "drill", "axe"], "I do not know.", "none"),
]
HEARD = {"Biscuit", "Rover", "Bramble", "Peru", "Chile", "Norway", "tent", "drill", "axe", "rake", "globe"}


@pytest.mark.parametrize(("kind", "stated", "reply", "outcome"), OUTCOMES)
def test_replies_are_classified_as_a_person_classifies_them(kind: str, stated: list[str], reply: str, outcome: str) -> None:
    expected = stated[-1:] if kind == "trip" else stated
    assert classify_answer(reply, kind, stated, find_values(reply, kind, expected, "aunt"), HEARD) == outcome


# ---- paraphrased questions


STOP = (
    "a an and be by do does for have i in is it its me my of on or s should than that the to what when where which who why would"
    " any are has if other another man person there now up from"
).split()
"""Words that carry no content: a search that heeds them finds every sentence."""


def content(text: str) -> set[str]:
    """Return the words of a text that carry content."""
    return {word for word in re.findall(r"[a-z]+|\d+", text.casefold()) if word not in STOP}


def alike(one: str, other: str) -> bool:
    """Return whether two words are forms of one word, crudely: they begin with the same five letters, or one ends like an inflection."""
    short, long = sorted((one, other), key=len)
    return (
        short == long or (len(short) >= 5 and short[:5] == long[:5]) or long in {short + end for end in ("s", "es", "ed", "d", "ing", "er")}
    )


@pytest.mark.parametrize("kind", PLAIN)
def test_a_paraphrased_question_shares_no_content_word_with_its_statement(kind: str) -> None:
    assert not alike("pour", "port")
    assert alike("live", "lives")
    wording = Wording("reach")
    said = {word for value in list_values(kind) for word in content(value)}
    for who, role in ROLES.items():
        asked = {word for text in wording.all(f"paraphrased_{kind}", who=role) for word in content(text)}
        stated = said.union(*(content(text) for text in wording.all(f"told_{kind}", who=who, value="")))
        assert [(one, other) for one in asked for other in stated if alike(one, other)] == []


def test_each_paraphrase_stands_for_one_person_of_the_list() -> None:
    assert set(ROLES) <= set(load_words("people"))
    assert len(set(ROLES.values())) == len(ROLES)
    wording = Wording("reach")
    for who, role in ROLES.items():
        for kind in PLAIN:
            for text in wording.all(f"paraphrased_{kind}", who=role):
                assert question(text) == (kind, who)


@pytest.mark.parametrize(("span", "tests"), [(4_000, 5), (500_000, 2)])
def test_nobody_has_a_paraphrased_and_another_fact_of_a_type(span: int, tests: int) -> None:
    found: dict[str, set[tuple[str, str]]] = {}
    for _, script in Reach(span=span).series(tests, "7"):
        own = [(each["kind"], each["who"]) for each in script.facts["asked"] if each["strand"] == "paraphrased"]
        assert len(set(own)) == len(own) == Sizes.of(span).paraphrased
        for each in script.facts["asked"]:
            found.setdefault(each["strand"], set()).add((each["kind"], each["who"]))
    paraphrased = found.pop("paraphrased")
    assert paraphrased.isdisjoint(set().union(*found.values()))


def test_a_search_for_words_finds_literal_facts_and_no_paraphrased_ones(tmp_path: Path) -> None:
    right: dict[tuple[str, str], float] = {}
    for name, agent in {"oracle": "oracle", "notebook": "notebook", "reads all": lambda: Planted(FORGETTING["none"](0))}.items():
        for each in asked_of(agent, tmp_path / name.replace(" ", "-"), 4_000):
            if not each.at_once and each.strand in ("plain facts", "paraphrased"):
                right[name, each.strand] = right.get((name, each.strand), 0) + (each.score or 0)
    asked = Sizes.of(4_000)
    assert (right["oracle", "plain facts"], right["oracle", "paraphrased"]) == (asked.plain, asked.paraphrased)
    assert (right["reads all", "plain facts"], right["reads all", "paraphrased"]) == (asked.plain, asked.paraphrased)
    assert right["notebook", "plain facts"] > asked.plain / 2
    assert right["notebook", "paraphrased"] == 0


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("Green tea.", ["green tea"]),
        ("Your baker likes green tea best.", ["green tea"]),
        ("The person who sells you bread likes green tea best.", ["green tea"]),
        ("The person who looks after your teeth likes cider, and the person who sells you bread likes green tea.", ["green tea"]),
        ("Your dentist likes cider, and the woman who sells you bread likes green tea.", ["green tea"]),
        ("The person who looks after your teeth likes green tea.", []),
        ("The person who sells you bread? I do not know, but your dentist likes green tea.", []),
    ],
)
def test_a_reply_may_name_the_person_in_either_wording(reply: str, found: list[str]) -> None:
    assert find_values(reply, "drink", ["green tea"], "baker") == found


# ---- runs of the first version


@pytest.fixture
def first_version(tmp_path: Path) -> Path:
    with tarfile.open(Path(__file__).parent / "made-by-version-1.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "made-by-version-1"


def test_a_run_of_the_first_version_is_graded_as_it_was(first_version: Path, capsys: pytest.CaptureFixture[str]) -> None:
    was = read_result(RunFolder(first_version))
    assert run_command(["score", str(first_version)]) == 0
    assert "score 91% (0.91 of 1)" in capsys.readouterr().out
    now = read_result(RunFolder(first_version))
    assert [test.score for test in now.tests] == [test.score for test in was.tests]
    scores = [(item.name, item.score, item.note) for test in now.tests for item in test.items]
    assert scores == [(item.name, item.score, item.note) for test in was.tests for item in test.items]
    for result in (was, now):  # as it was written then, and as it is written now
        found = find_rungs(item for test in result.tests for item in test.items)
        assert len(found) == 24
        assert all((each.heard, each.outcome) == (each.chance, "") for each in found)
    assert run_command(["show", str(first_version)]) == 0
    assert "reach-1   91%  recalled lists of three later: 0.333 of 1" in capsys.readouterr().out


def test_runs_of_two_versions_are_neither_compared_nor_pooled(
    first_version: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = longspan.run("reach@2k", agent="notebook", out=tmp_path / "new", progress=False)
    with pytest.raises(InputError, match="one plays version 1 of reach, the other version 2"):
        longspan.load(first_version, *results.folders)
    assert run_command(["compare", str(first_version), *map(str, results.folders)]) == 0
    assert capsys.readouterr().out.count("reach: 1 agents, 1 runs") == 1
    assert run_command(["resume", str(first_version)]) == 2
    assert "the manifest's tests differ from the tests that the run was created with" in capsys.readouterr().err
