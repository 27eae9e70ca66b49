"""Crosses forms of reply with the answers to tests: thousands of replies that are right or wrong in known ways.

The forms are in `forms/`, written by people who had read none of the graders. Rules were written with `develop.jsonl` alone; `held.jsonl`
is kept from whoever writes them, and graded without being looked at. Once a held form is looked at, it moves to `develop.jsonl`, and others
are written to be held: those numbered from 4001, 6001, 7001 and 8001 are by a second, third, fourth and fifth person. Forms from 101 to
4000 were added by whoever mended the rules, before mending them. A form has a group, a text with places for a value, another value and
their owners, and `says`: which of them the reply settles on. Run
`python -m tests.scenarios.worded develop` for the agreement by scenario and by group of forms.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from longspan.scenarios.histories import made_up
from longspan.scenarios.histories.rules import grade_reply
from longspan.scenarios.memory.habits import HABITS
from longspan.scenarios.memory.persona import OWN
from longspan.scenarios.reach import answers as reach
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.contract.graded_record import Exchange, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.running.preflight.rehearsal import rehearse

FORMS: Final = Path(__file__).parent / "forms"

ADDED: Final = 101
"""The number of the first form of a group that was added later."""
NAMES: Final = (
    "value Value VALUE OTHER other Other question owner Owner other_owner Other_owner owner_abs Owner_abs other_owner_abs Other_owner_abs"
    " thing Thing a b c x"
).split()
_PLACE: Final = re.compile(r"\{(" + "|".join(sorted(NAMES, key=len, reverse=True)) + r")\}")
_PRESENT: Final = re.compile(r"\b(?:now|today|current|still)\b", re.IGNORECASE)
"""Words of a form that says what is so now, which is no answer to a question about the past."""
_STANDING_ALONE: Final = {"your": "yours", "my": "mine", "our": "ours", "her": "hers", "their": "theirs"}


class Form(NamedTuple):
    """A form of reply, and which value a reply of that form settles on."""

    id: str
    group: str
    text: str
    says: str
    needs: list[str]
    kinds: list[str]
    note: str


class Asked(NamedTuple):
    """A question of a test: what its reply may name, and a grader of replies: 1, 0, or None if rules do not decide."""

    scenario: str
    kind: str
    names: Mapping[str, str]
    grade: Callable[[str], float | None]
    past: bool = False
    """Whether it asks of the past, so that "it is now" would not answer it."""


class Worded(NamedTuple):
    """A reply, the form that it was made from, and whether it is right."""

    asked: Asked
    form: Form
    reply: str
    right: bool


@cache
def forms(half: str) -> list[Form]:
    """The forms of "develop", or of "held", which are kept apart."""
    return [Form(**json.loads(line)) for line in FORMS.joinpath(f"{half}.jsonl").read_text("utf-8").splitlines()]


def rendered(form: Form, names: Mapping[str, str]) -> str | None:
    """The reply; None where a name is missing, or where the words of the form itself name a value."""
    given = dict(names)
    for owner in ("owner", "other_owner"):
        if owner in given:
            given.setdefault(f"{owner}_abs", _STANDING_ALONE.get(given[owner], given[owner]))
    for name in list(given):
        given.setdefault(f"{name[:1].upper()}{name[1:]}", f"{given[name][:1].upper()}{given[name][1:]}")
    given |= {name.upper(): given[name].upper() for name in ("value", "other") if name in given}
    if not {match[1] for match in _PLACE.finditer(form.text)} <= set(given):
        return None
    literal = _PLACE.sub("\0", form.text).lower()
    if any(
        value and re.search(rf"(?<!\w){re.escape(value.lower())}(?!\w)", literal) for name, value in names.items() if name in "value other"
    ):
        return None
    text = re.sub(
        r"\{(\w+)\}\.(?!\.)",
        lambda match: given[match[1]] + "." * (given[match[1]][-1:] != ".") if match[1] in NAMES else match[0],
        form.text,
    )
    return _PLACE.sub(lambda match: given[match[1]], text)


def worded(half: str, asked: Asked) -> Iterator[Worded]:
    """The replies to a question, in all forms that fit it: with the right value, and with the other one in its place."""
    swapped = dict(asked.names) | {"value": asked.names["other"], "other": asked.names["value"]}
    for form in forms(half):
        if form.says in ("undecidable", "all", "missing", "extra", "reordered") or not {"any", asked.kind} & set(form.kinds):
            continue
        if "list" in form.kinds or (asked.past and (form.group in ("past-now", "privacy") or _PRESENT.search(form.text))):
            continue
        if form.text.startswith("ur ") and asked.names["owner"] != "your":
            continue
        for names, says in ((asked.names, "value"), (swapped, "other")):
            if reply := rendered(form, names):
                yield Worded(asked, form, reply, form.says == says)


# The questions of each scenario.


def colours() -> Iterator[Asked]:
    made = make_scenario("colours", {})
    for seed in range(2):
        script = made.make(Random(f"colours/{seed}"))
        question = script.lines[-1].text
        told = script.facts["told"]
        names = {"value": told[-1], "other": told[-2], "owner": "your", "other_owner": "your aunt's", "thing": "favourite colour"}

        def grade(reply: str, facts: Any = script.facts, question: str = question) -> float | None:
            return make_scenario("colours", {}).grade(facts, Record((Exchange(1, question, reply, asks=True),))).score

        yield Asked("colours", "word", names | {"question": question}, grade)


def one_reply(name: str, seed: int, line: int) -> Callable[[str], float | None]:
    """The score of a reply to one line of a test, where all other lines get the ideal reply: its item's, or that of the test."""
    made = make_scenario(name, {})
    played = rehearse(made, seed=seed, reply=lambda text, ideal: ideal)
    before, asked, after = played.record.exchanges[:line], played.record.exchanges[line], played.record.exchanges[line + 1 :]

    def grade(reply: str) -> float | None:
        grade = made.grade(played.script.facts, replace(played.record, exchanges=(*before, replace(asked, reply=reply), *after)))
        return next((item.score for item in grade.items if item.turn == asked.turn), grade.score)

    return grade


_KINDS: Final = {"gift": "word", "hiding": "place", "code": "code"}


def forget() -> Iterator[Asked]:
    seen = set()
    for seed in range(20):
        facts = make_scenario("forget", {}).make(Random(f"forget/{seed}")).facts
        if facts["kind"] in seen:
            continue
        seen.add(facts["kind"])
        script = make_scenario("forget", {}).make(Random(f"forget/{seed}"))
        question = next(each for each in facts["questions"] if each["fact"] != facts["gone"])
        subject, value = facts["facts"][question["fact"]]
        other_subject, other = next(each for number, each in enumerate(facts["facts"]) if number != question["fact"])
        yield Asked(
            "forget",
            _KINDS[facts["kind"]],
            _confidence(facts["kind"], subject, value, other_subject, other) | {"question": script.lines[question["line"]].text},
            one_reply("forget", seed, question["line"]),
        )


def _confidence(kind: str, subject: str, value: str, other_subject: str, other: str) -> dict[str, str]:
    if kind == "gift":
        return {"value": value, "other": other, "owner": f"{subject}'s", "other_owner": f"{other_subject}'s", "thing": "present"}
    thing = "code" if kind == "code" else "hiding place"
    return {"value": value, "other": other, "owner": f"the {subject}'s", "other_owner": f"the {other_subject}'s", "thing": thing}


def two_users() -> Iterator[Asked]:
    seen = set()
    for seed in range(20):
        script = make_scenario("two_users", {}).make(Random(f"two_users/{seed}"))
        facts = script.facts
        question = next(each for each in facts["questions"] if each["kind"] == "own")
        by, kind, subject, value = facts["told"][question["fact"]]
        if kind in seen:
            continue
        seen.add(kind)
        other = next(each[3] for each in facts["told"] if each[1] == kind and each[3] != value)
        thing = {"gift": f"present for {subject}", "hiding": f"hiding place for the {subject}", "code": f"{subject} code"}[kind]
        names = {"value": value, "other": other, "owner": "your", "other_owner": f"{facts['users'][1 - by]}'s", "thing": thing}
        yield Asked(
            "two_users",
            _KINDS[kind],
            names | {"question": script.lines[question["line"]].text.partition("] ")[2]},
            one_reply("two_users", seed, question["line"]),
        )


def injection() -> Iterator[Asked]:
    for seed in range(2):
        script = make_scenario("injection", {}).make(Random(f"injection/{seed}"))
        facts = script.facts
        for name in ("planted fact", "benign fact"):
            line = len(script.lines) - 4 + facts["asked"].index(name)
            other = next(time for time in load_words("opening_hours")["times"] if time not in facts["times"].values())
            names = {"value": facts["times"][name], "other": other, "owner": f"the {facts['places'][name]}'s", "thing": "opening time"}
            names |= {"other_owner": f"the {facts['places']['planted instruction']}'s", "question": script.lines[line].text}
            yield Asked("injection", "time", names, one_reply("injection", seed, line))


def update() -> Iterator[Asked]:
    script = make_scenario("update", {}).make(Random("update/0"))
    facts = script.facts
    first = len(script.lines) - len(facts["asked"])
    for kind in ("other", "held", "actual"):
        about = facts["expected"][kind]
        day = f" Room on {about['day']}s" if "day" in about else " Room"
        other = next(room for room in facts["expected"]["history"]["rooms"] if room != about["room"])
        another = facts["expected"]["present" if kind == "other" else "other"]["group"]
        owner, other_owner = (f"{group}'s".replace("my ", "your ") for group in (about["group"], another))
        names = {"value": f"the {about['room']}{day}", "other": f"the {other}{day}", "owner": owner, "other_owner": other_owner}
        line = first + facts["asked"].index(kind)
        names |= {"thing": "room", "question": script.lines[line].text}
        yield Asked("update", "place", names, one_reply("update", 0, line), past=kind != "other")


def persona() -> Iterator[Asked]:
    for seed in range(1):
        script = make_scenario("persona", {}).make(Random(f"persona/{seed}"))
        facts = script.facts
        for asked in facts["asked"]:
            if asked["habit"] not in ("dish", "seat") or asked["for"] != OWN:
                continue
            choices = HABITS[asked["habit"]].choices(asked["values"])
            other = next(choice for choice in choices if choice != asked["right"])
            thing = "bowl" if asked["habit"] == "dish" else "seat"
            names = {"value": asked["right"], "other": other, "owner": "your", "other_owner": "your aunt's", "thing": thing}

            def grade(reply: str, asked: Any = asked) -> float:
                return float(HABITS[asked["habit"]].find_choices(reply, asked["values"]) == [asked["right"]])

            yield Asked("persona", "name", names | {"question": "Which one suits me?"}, grade)


_THINGS: Final = {
    "dog": ("name", "dog"),
    "locker": ("number", "locker number"),
    "town": ("place", "town"),
    "birthday": ("date", "birthday"),
    "drink": ("word", "favourite drink"),
    "trip": ("place", "holiday destination"),
    "instrument": ("word", "instrument"),
}


def reached() -> Iterator[Asked]:
    random = Random("forms")
    for kind, (sort, thing) in _THINGS.items():
        value, other = random.sample(list(reach.list_values(kind)), 2)
        who, another = random.sample(list(load_words("people")), 2)
        names = {"value": value, "other": other, "owner": f"your {who}'s", "other_owner": f"your {another}'s", "thing": thing}

        def grade(reply: str, kind: str = kind, value: str = value, who: str = who) -> float:
            return float(reach.find_values(reply, kind, [value], who) == [value])

        yield Asked("reach", sort, names | {"question": f"What is my {who}'s {thing}?"}, grade)


def sally_anne() -> Iterator[Asked]:
    for seed in range(2):
        script = make_scenario("sally_anne", {}).make(Random(f"sally_anne/{seed}"))
        facts, question = script.facts, script.lines[-1].text
        other = next(each for each in facts["containers"] if each != facts["answer"])
        names = {"value": facts["answer"], "other": other, "owner": "the TV show's", "other_owner": "the film's", "thing": "hiding place"}

        def grade(reply: str, facts: Any = facts, question: str = question) -> float | None:
            return make_scenario("sally_anne", {}).grade(facts, Record((Exchange(1, question, reply, asks=True),))).score

        yield Asked("sally_anne", "place", names | {"question": question}, grade)


def histories() -> Iterator[Asked]:
    history = made_up.write_history("forms", tokens=20_000, questions=2)
    for question in history.questions[::2]:
        if question.options or question.answer is None or not question.answerable or not question.trap:
            continue

        def grade(reply: str, question: Any = question) -> float | None:
            verdict = grade_reply(question, reply, made_up.wrong_values(history, question))
            return None if verdict is None else verdict.score

        first = question.answer.partition(" ")[0]
        kind = "number" if first.isdecimal() else "name" if first[:1].isupper() else "word"
        names = {"value": question.answer, "other": question.trap, "owner": "your", "other_owner": "your neighbour's", "thing": "answer"}
        yield Asked("made_up", kind, names | {"question": question.text}, grade)


SCENARIOS: Final[Mapping[str, Callable[[], Iterator[Asked]]]] = {
    "colours": colours,
    "forget": forget,
    "two_users": two_users,
    "injection": injection,
    "update": update,
    "persona": persona,
    "reach": reached,
    "sally_anne": sally_anne,
    "made_up": histories,
}


@cache
def graded(half: str, scenario: str) -> tuple[tuple[Worded, float | None], ...]:
    """The replies of a scenario, each with its grade. Forms that were added later and fit any question are tried with the first alone."""
    return tuple(
        (each, each.asked.grade(each.reply))
        for number, asked in enumerate(SCENARIOS[scenario]())
        for each in worded(half, asked)
        if number == 0 or each.form.kinds != ["any"] or int(each.form.id.rpartition("-")[2]) < ADDED
    )


def agrees(each: Worded, score: float | None) -> bool:
    return score is not None and (score == 1) == each.right


def main(half: str, names: list[str], shows: str) -> None:
    by_group: Counter[str] = Counter()
    of_group: Counter[str] = Counter()
    every = 0
    agreed = 0
    for name in names:
        found = graded(half, name)
        good = sum(agrees(*each) for each in found)
        undecided = sum(score is None for _, score in found)
        every, agreed = every + len(found), agreed + good
        print(f"{name:20} {len(found):6} replies  {good / len(found):.3f} agree  {undecided} undecided")
        for each, score in found:
            of_group[each.form.group] += 1
            by_group[each.form.group] += agrees(each, score)
            if half == "develop" and shows and re.search(shows, each.form.id) and not agrees(each, score):
                print(f"    {each.form.id} [{each.form.says}] {score} {each.asked.names['value']!r} {each.reply!r}")
    print(f"{'all':20} {every:6} replies  {agreed / every:.3f} agree")
    print(
        "  ".join(
            f"{group} {by_group[group] / count:.2f}"
            for group, count in sorted(of_group.items(), key=lambda each: by_group[each[0]] / each[1])
        )
    )


if __name__ == "__main__":
    main(
        sys.argv[1],
        [name for name in SCENARIOS if name in sys.argv[2:]] or list(SCENARIOS),
        next((each[2:] for each in sys.argv if each.startswith("/:")), ""),
    )
