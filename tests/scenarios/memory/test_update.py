"""The scenario update: what its score means, and how replies are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, NamedTuple

import pytest

from longspan.scenarios.memory.spoken_dates import PLACEHOLDER_DATE, say_date
from longspan.scenarios.memory.update import Update
from longspan.scenarios.memory.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.clock import DEFAULT_START
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.graded_record import Exchange, Grade, Marked, Record
from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import Script
from longspan.simulator.reading.matching import found_words
from longspan.simulator.running.preflight.rehearsal import rehearse, rehearse_test

EXPECTED: dict[str, dict[str, Any]] = {
    "present": {"group": "my choir", "room": "Heron", "day": "Thursday"},
    "other": {"group": "my sister's chess club", "room": "Toucan", "day": "Monday"},
    "never told": {"group": "my brother's film club"},
    "held": {"group": "my choir", "room": "Kestrel", "after": 2, "until": 3, "belief": "wrong"},
    "actual": {"group": "my choir", "room": "Osprey", "after": 2, "until": 3, "belief": "wrong"},
    "history": {"group": "my choir", "rooms": ["Heron", "Osprey", "Puffin", "Heron"]},
}
"""The choir was in the Heron Room, moved to the Osprey Room, was wrongly said to be in the Kestrel Room, then Puffin, then back."""

QUESTIONS = {kind: Wording("update").all(kind, group="my choir", date="26 March 2024")[0] for kind in ("held", "actual")}

RIGHT = {
    "present": [
        "In the Heron Room, on Thursdays.",
        "heron room, thursday",
        "**Heron Room**, **Thursdays**",
        "Your choir meets in the Heron Room on Thursdays (not Tuesdays, as you first told me).",
        "It is back in the Heron Room, after a while in the Puffin Room. The day is Thursday.",
        "- Room: Heron Room\n- Day: Thursday",
        '{"room": "Heron Room", "day": "Thursday"}',
        "Heron Room, Thurs.",
        "They moved from the Puffin Room back to the Heron Room; they meet on Thursdays.",
        "Your choir currently meets in the Heron Room, every Thursday evening.",
        "As of 31 March, it's back in the Heron Room. It meets on Thursdays (you corrected the day from Tuesdays).",
        "Your choir is in the Heron Room on Thursdays. Your sister's chess club is in the Toucan Room on Mondays.",
        "Heron Room; the day is Thursday rather than Tuesday.",
        "Currently the Heron Room. Previously it was Osprey, then Puffin. The day is Thursday, which you corrected from Tuesday.",
    ],
    "never told": [
        "You have not told me.",
        "You haven't mentioned when or where your brother's film club meets.",
        "I don't have any information about your brother's film club.",
        "I'm sorry, but I don't know where your brother's film club meets.",
        "I have no record of a film club.",
        "You never told me about that one. I only know that your choir meets in the Heron Room on Thursdays.",
        "I don't have that. Your sister's chess club meets in the Toucan Room on Mondays, but you told me nothing about a film club.",
        "I'm not aware of your brother's film club; could you tell me?",
        "That isn't something you've told me.",
        "Your brother's film club hasn't come up in our conversation.",
        "I can't say: this is the first time you mention your brother's film club.",
        "There is nothing about a film club in what you told me.",
        "Unknown.",
        "I have nothing noted for your brother's film club.",
        "That was never provided. You've only told me about your choir (Heron Room, Thursdays).",
        "No info on that one, sorry.",
        "I couldn't find anything on a film club in our conversation.",
        "We haven't talked about your brother's film club.",
        "You've told me about several groups, but not this one.",
    ],
    "held": [
        "The Kestrel Room.",
        "Kestrel",
        "**Kestrel Room**",
        "I would have said the Kestrel Room.",
        "By then you had told me the Kestrel Room, which later turned out to be wrong.",
        "At that time I'd have answered the Kestrel Room (it was actually still in the Osprey Room).",
        "The Kestrel Room, although we now know that it was really the Osprey Room.",
        "Kestrel Room. You retracted that afterwards: it never left the Osprey Room.",
        "Going by what I had been told, it had moved from the Osprey Room to the Kestrel Room.",
        "The Kestrel Room - that was before you corrected it to Osprey.",
        "You had told me it had moved to the Kestrel Room, so Kestrel.",
        "On 26 March 2024 I would have told you: the Kestrel Room.",
        "The Kestrel Room (as announced on 25 March; you retracted it on 27 March).",
        "I'd have said the Kestrel Room. You later clarified that this was a mistake and that it had stayed in the Osprey Room.",
        "As of 26 March the information I had was the Kestrel Room; only on 27 March did you correct it to the Osprey Room.",
        "The Kestrel Room. On 29 March, it moved to the Puffin Room.",
    ],
    "actual": [
        "The Osprey Room.",
        "osprey",
        "It was in the Osprey Room.",
        "The Osprey Room; what you told me about the Kestrel Room was wrong.",
        "You had told me the Kestrel Room, but it was really the Osprey Room.",
        "In fact the Osprey Room. It never moved to the Kestrel Room.",
        "Osprey Room (the Kestrel Room was a mistake).",
        "On 26 March 2024, it was still in the Osprey Room, as the move to the Kestrel Room never happened.",
        "It was in the Osprey Room; it moved to the Puffin Room only on 29 March.",
        "It had moved from the Heron Room to the Osprey Room on 21 March, and on 29 March, it moved on to the Puffin Room.",
        "The Osprey Room, where it was until 29 March.",
        "Not the Kestrel Room but the Osprey Room.",
        "It was still in the Osprey Room, before it moved to the Puffin Room.",
        "The Osprey Room. The move to the Kestrel Room, which you announced then, was retracted.",
    ],
    "history": [
        "Heron, Osprey, Puffin, Heron.",
        "Heron Room, Osprey Room, Puffin Room, Heron Room",
        "Heron → Osprey → Puffin → Heron",
        "1. Heron Room\n2. Osprey Room\n3. Puffin Room\n4. Heron Room (present)",
        "- Heron\n- Osprey\n- Puffin\n- Heron (back again)",
        '["Heron", "Osprey", "Puffin", "Heron"]',
        '{"rooms": ["Heron", "Osprey", "Puffin", "Heron"], "left_out": ["Kestrel"]}',
        "| # | Room |\n|---|---|\n| 1 | Heron |\n| 2 | Osprey |\n| 3 | Puffin |\n| 4 | Heron |",
        "Heron (19 Mar), Osprey (21 Mar), Puffin (29 Mar), Heron (31 Mar)",
        "Heron, Osprey, ~~Kestrel~~, Puffin, Heron",
        "It was first in Heron. It then moved to Osprey. You said it was in Kestrel, but took that back. Then Puffin, and Heron again.",
        "First the Heron Room, then the Osprey Room, then the Puffin Room, and now the Heron Room again.",
        "Heron, Osprey, Puffin, Heron. (The Kestrel Room is left out, as it turned out to be wrong.)",
        "Heron, Osprey, Puffin, Heron. I've left out Kestrel.",
        "It moved from Heron to Osprey, from Osprey to Puffin, and from Puffin back to Heron.",
        "1. Heron Room\n2. Osprey Room (moved from Heron)\n3. Puffin Room\n4. Heron Room\n\nSo it is in the Heron Room now.",
    ],
}
WRONG = {
    "present": [
        "",
        "OK.",
        "You have not told me.",
        "In the Heron Room.",
        "On Thursdays.",
        "In the Heron Room, on Tuesdays.",
        "In the Puffin Room, on Thursdays.",
        "In the Heron or the Puffin Room, on Thursdays.",
        "In the Heron Room, on Tuesdays or Thursdays.",
        "It was in the Heron Room; now it is in the Puffin Room. Thursdays.",
        "Heron, Osprey, Kestrel, Puffin; Monday to Sunday: Monday, Tuesday, Thursday.",
    ],
    "never told": [
        "",
        "OK.",
        "In the Heron Room, on Thursdays.",
        "In the Oak Hall on Fridays.",
        "I have no record of that, but it is probably the Heron Room.",
        "I don't know exactly; maybe on Mondays.",
        "Your brother's film club meets in the Toucan Room.",
        "I don't have it; perhaps the same as your choir, the Heron Room.",
        "In which room does my brother's film club meet now, and on which day of the week?",
    ],
    "held": [
        "",
        "The Osprey Room.",
        "The Osprey Room; the Kestrel Room was wrong.",
        "The Kestrel Room or the Osprey Room.",
        "The Heron Room.",
        "I don't know.",
        "You had told me nothing by then.",
        "Heron, Osprey, Kestrel, Puffin.",
    ],
    "actual": [
        "",
        "The Kestrel Room.",
        "You told me it was in the Kestrel Room.",
        "It is now in the Heron Room.",
        "It had moved to the Kestrel Room on 25 March.",
        "The Osprey Room or the Kestrel Room.",
        "Not the Osprey Room.",
        "I cannot tell.",
    ],
    "history": [
        "",
        "Heron.",
        "Heron, Osprey, Puffin.",
        "Heron, Osprey, Kestrel, Puffin, Heron.",
        "Heron, Puffin, Osprey, Heron.",
        "Heron, Puffin, Osprey, Heron, Puffin.",
        "1. Heron\n2. Osprey\n3. Kestrel\n4. Puffin\n5. Heron",
        "I don't know which rooms it has had.",
        "Osprey, Puffin, Heron",
    ],
}


def graded(**replies: str) -> Grade:
    """The grade of replies to some questions; all others are answered rightly."""
    ideal = {kind: right[0] for kind, right in RIGHT.items()} | {"other": "In the Toucan Room, on Mondays."}
    given = ideal | {kind.replace("_", " "): reply for kind, reply in replies.items()}
    asked = list(EXPECTED)
    record = Record(tuple(Exchange(turn, QUESTIONS.get(kind, "?"), given[kind], asks=True) for turn, kind in enumerate(asked)))
    return Update().grade({"asked": asked, "expected": EXPECTED}, record)


@pytest.mark.parametrize(("kind", "reply"), [(kind, reply) for kind, replies in RIGHT.items() for reply in replies])
def test_right_answers_in_any_wording(kind: str, reply: str) -> None:
    grade = graded(**{kind: reply})
    assert grade.score == 1, grade.reason


@pytest.mark.parametrize(("kind", "reply"), [(kind, reply) for kind, replies in WRONG.items() for reply in replies])
def test_wrong_answers_and_hedges(kind: str, reply: str) -> None:
    grade = graded(**{kind: reply})
    assert grade.score == pytest.approx(0.8), grade.reason
    assert f"{kind}: " in grade.reason


def test_a_guess_where_nothing_was_told_costs_a_right_answer_and_no_more() -> None:
    assert graded(never_told="In the Heron Room, on Mondays.").score == pytest.approx(0.8)
    assert graded(never_told="In the Heron Room.", present="OK.", other="OK.", held="OK.", actual="OK.").score == 0
    assert graded(never_told="In the Heron Room.", present="OK.", other="OK.", held="OK.", actual="OK.", history="OK.").score == 0
    nothing = dict.fromkeys(("present", "other", "held", "actual", "history"), "You have not told me.")
    assert graded(**nothing).score == 0  # admitting earns nothing by itself


# Agents whose memory is known: what each of them lacks is what it fails.


class Told(NamedTuple):
    """The facts told about a group, with their times: a room (`told`, `moved`, `back`, `retracted`), a day (`told`, `corrected`)."""

    what: str
    at: date
    room: str
    day: str


WORDING = Wording("update")


class Memory:
    """Remembers all that is told, with dates, and answers rightly. Others forget something."""

    def __init__(self) -> None:
        self.told: dict[str, list[Told]] = {}

    def reply(self, message: str, at: date) -> str:
        for what in ("told", "moved", "back", "retracted", "corrected"):
            if said := WORDING.read(what, message):
                self.keep(said["group"], Told(what, at, said.get("room", ""), said.get("day", "")))
                return "OK."
        for kind in ("present", "held", "actual", "history"):
            if asked := WORDING.read(kind, message):
                known = self.told.get(asked["group"])
                on = datetime.strptime(asked["date"], "%d %B %Y").date() if "date" in asked else date.max
                return self.answer(kind, known, on) if known else self.untold()
        return "OK."

    def keep(self, group: str, told: Told) -> None:
        self.told.setdefault(group, []).append(told)

    def answer(self, kind: str, known: list[Told], on: date) -> str:
        if kind == "history":
            return ", ".join(self.rooms(self.true(known)))
        if kind == "present":
            return f"The {self.rooms(self.true(known))[-1]} Room, on {[each.day for each in known if each.day][-1]}s."
        then = known if kind == "actual" else [each for each in known if each.at <= on]
        return f"The {self.rooms([each for each in self.true(then) if each.at <= on])[-1]} Room."

    def untold(self) -> str:
        return "You have not told me."

    def true(self, known: list[Told]) -> list[Told]:
        """The facts told, without the retracted ones."""
        wrong = {each.room for each in known if each.what == "retracted"}
        return [each for each in known if each.room not in wrong]

    def rooms(self, known: list[Told]) -> list[str]:
        return [each.room for each in known if each.room and each.what != "retracted"]


class Newest(Memory):
    """Keeps only the newest room and day of a group; a retraction changes nothing."""

    def keep(self, group: str, told: Told) -> None:
        last = self.told.get(group, [told])[0]
        room = last.room if told.what in ("retracted", "corrected") else told.room
        self.told[group] = [Told("told", date.min, room, told.day or last.day)]


class Dateless(Memory):
    """Keeps everything in order, but not when: for a past date it tells the value before the present one."""

    def answer(self, kind: str, known: list[Told], on: date) -> str:
        return super().answer(kind, known, on) if on == date.max else f"The {self.rooms(self.true(known))[-2]} Room."


class Erasing(Memory):
    """Deletes a retracted fact as if it had never been told."""

    def keep(self, group: str, told: Told) -> None:
        super().keep(group, told)
        self.told[group] = [each for each in self.true(self.told[group]) if each.what != "retracted"]


class Credulous(Memory):
    """Never takes anything back."""

    def true(self, known: list[Told]) -> list[Told]:
        return known


class Obliging(Memory):
    """Always has an answer."""

    def untold(self) -> str:
        return "In the Heron Room, on Mondays."


def share_of(memory: type[Memory], seeds: range = range(60)) -> tuple[float, Mapping[str, float]]:
    """The mean score and the metrics of an agent."""
    graded = []
    for seed in seeds:
        script = Update().make(Random(seed))
        agent, now, lines = memory(), DEFAULT_START, iter(script.lines)

        def reply(text: str, ideal: str) -> str:
            nonlocal now
            now += next(lines).pause  # noqa: B023
            return agent.reply(text, now.date())  # noqa: B023

        graded.append(rehearse_test(Test("update-1", Update(), script, seed=str(seed), order=0), reply).grade)
    marked = [Marked("update-1", grade.score, grade.items) for grade in graded]
    return fmean(grade.score or 0 for grade in graded), Update().metrics(marked)


def test_whoever_remembers_everything_with_its_date_has_full_marks() -> None:
    score, shares = share_of(Memory)
    assert score == 1
    assert set(shares.values()) == {1}


def test_only_the_newest_value_is_the_present_without_a_past() -> None:
    score, shares = share_of(Newest)
    assert score < 0.45
    assert shares["present"] >= 0.7  # not where the newest was taken back
    assert (shares["other"], shares["never told"]) == (1, 1)
    assert shares["history"] == shares["actual"] == 0
    assert shares["held"] < 0.2


def test_without_dates_past_dates_are_lost_and_nothing_else() -> None:
    _, shares = share_of(Dateless)
    assert shares["present"] == shares["other"] == shares["history"] == 1
    assert max(shares["held"], shares["actual"]) < 0.65


def test_erasing_what_was_taken_back_loses_what_was_believed_then_and_nothing_else() -> None:
    _, shares = share_of(Erasing)
    assert shares["held of a wrong belief"] == 0
    assert {share for kind, share in shares.items() if not kind.startswith("held")} == {1}


def test_believing_what_was_taken_back_loses_what_was_so_and_keeps_what_was_believed() -> None:
    _, shares = share_of(Credulous)
    assert shares["held of a wrong belief"] == 1
    assert shares["actual of a wrong belief"] == shares["history"] == 0


def test_always_having_an_answer_costs_one() -> None:
    assert share_of(Obliging)[0] == pytest.approx(0.8)


# What a test tells and asks.


def test_no_test_of_a_run_tells_of_another_tests_groups() -> None:
    groups = [about["group"] for _, script in Update(similar=3).series(10, "0") for about in _stated(script)]
    assert len(set(groups)) == len(groups) == 50


def _stated(script: Script) -> list[dict[str, str]]:
    """The groups read from the lines, each once."""
    found = {}
    for line in script.lines:
        for kind in ("told", "present"):
            if said := WORDING.read(kind, line.text):
                found[said["group"]] = said
    return list(found.values())


@pytest.mark.parametrize("parameters", [{"moves": 2}, {"moves": 20, "similar": 19}, {"similar": 0}, {"days": 365}])
def test_any_parameters_make_tests_that_can_be_solved(parameters: dict[str, int]) -> None:
    for seed in range(10):
        played = rehearse(Update(**parameters), seed=seed, reply=lambda text, ideal: ideal)
        assert played.grade.score == 1
        assert played.grade.reason == ("4 of 4 right" if parameters.get("similar") == 0 else "5 of 5 right")
        path = played.script.facts["expected"]["history"]["rooms"]
        assert Update(**parameters).numbers(played.script.facts) == {"similar": parameters.get("similar", 1), "updates": len(path) - 1}
        assert len(path) == Update(**parameters).moves + 1 == len(set(path)) + 1
        assert all(room != after for room, after in pairwise(path))


def test_every_date_takes_the_tokens_of_its_placeholder() -> None:
    """What a question is charged is known before its date."""
    for encoding in ("cl100k_base", "o200k_base"):
        count = Tokenizer(encoding).count
        for kind in ("held", "actual"):
            for text in WORDING.all(kind, group="my choir", date=PLACEHOLDER_DATE):
                days = (date(2024, 1, 1) + timedelta(days=37 * step) for step in range(100))
                assert {count(text.replace(PLACEHOLDER_DATE, say_date(day))) for day in days} == {count(text)}


def test_the_docs_tell_what_each_of_these_agents_has() -> None:
    docs = (
        (Path(__file__).parents[3] / "docs" / "reference" / "memory-suite.md")
        .read_text("utf-8")
        .partition("\n## update\n")[2]
        .partition("\n## ")[0]
    )
    told = [float(share) for share in re.findall(r"^\| [^|]+ \| (\d\.\d\d) \| [^|]*\|$", docs, re.MULTILINE)]
    assert told == [round(share_of(each)[0], 2) for each in (Memory, Erasing, Obliging, Dateless, Credulous, Newest)]


def test_nothing_that_another_test_may_have_agents_append_names_a_room_or_a_decision() -> None:
    appended = [saying["quotation"] for saying in load_words("quotations")] + [rule["phrase"] for rule in load_words("triggers")]
    text = " ".join([*appended, *load_words("errands").values()])
    assert found_words(text, [*load_words("clubs")["rooms"], *(name for each in load_words("decisions") for name in each["names"])]) == []
