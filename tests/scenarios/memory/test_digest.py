"""The scenario digest: what its score means, and how digests are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from random import Random
from statistics import fmean

import pytest

from longspan.scenarios.memory.digest import Digest
from longspan.scenarios.memory.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.clock import DEFAULT_PACE, DEFAULT_START
from longspan.simulator.contract.graded_record import Exchange, Grade, Marked, Record
from longspan.simulator.contract.scenario import Test
from longspan.simulator.running.preflight.rehearsal import rehearse, rehearse_test

TOLD = [
    ["sell the piano", "decided"],
    ["paint the shed", "decided"],
    ["dig a pond", "decided"],
    ["put up a rope ladder", "decided after talk"],
    ["keep bees", "older"],
    ["adopt a donkey", "older"],
    ["oil the swing", "older"],
    ["build a bread oven", "reversed"],
    ["set up a birdbath", "talk"],
]
RIGHT = "Sell the piano.\nPaint the shed.\nDig a pond.\nPut up a rope ladder."

STANDING = ("piano", "shed", "pond", "rope ladder")
REPLIES = [
    (4, "[x] sell the piano\n[x] paint the shed\n[x] dig a pond\n[x] put up a rope ladder\n[ ] build a bread oven\n[ ] set up a birdbath"),
    (4, f"{RIGHT}\n\nThe bread oven will not be built after all, and the birdbath was just talk."),
    (4, "\n".join(f"- item: {each}\n  status: decided" for each in STANDING) + "\n- item: bread oven\n  status: reversed"),
    (4, json.dumps([{"decision": each, "status": "active"} for each in STANDING] + [{"decision": "bread oven", "status": "reversed"}])),
    (4, json.dumps([{"decision": each, "stands": True} for each in STANDING] + [{"decision": "bread oven", "stands": False}])),
    (4, "Piano: sold. Shed: to be painted. Pond: go ahead. Ladder: go ahead. Bread oven: off. Birdbath: undecided."),
    (4, "Of the nine things that came up, four still stand:\n- the piano\n- the shed\n- the pond\n- the rope ladder"),
    (4, f"{RIGHT}\n\nLet me know if you'd like the older ones (bees, donkey, swing) as well!"),
    (4, "Minus the bread oven, which you took back, and the birdbath, which was only talk: piano, shed, pond, rope ladder."),
    (4, "Bees, donkey and swing are from before. The oven was reversed.\n\nWhat is left:\n• piano\n• shed\n• pond\n• ladder"),
    (4, "RESOLVED – piano\nRESOLVED – shed\nRESOLVED – pond\nRESOLVED – rope ladder\nRESCINDED – bread oven"),
    (3, "Sell the piano\nPaint the shed\nDig a pond\nPut up a rope ladder\nBuy a garden bench"),
    (4, f"{RIGHT}\nBuild a bread oven.\n\nSorry, the bread oven was called off."),
    (4, "Sell the piano\nPaint the shed\nDig a pond\n\nOops, I forgot the rope ladder."),
    (3, "- Sell the piano\n- Paint the shed\n- Dig a pond\n- Build a bread oven\n\nWait, you reversed the oven."),
    (4, '"sell the piano", "paint the shed", "dig a pond" and "put up a strong rope ladder"'),
    (4, "piano: active\nshed: active\npond: active\nrope ladder: active\nbread oven: closed\nbirdbath: an idea"),
    (4, "Put up a rope ladder (no more than an idea at first)\nDig a pond\nPaint the shed\nSell the piano"),
    (4, "The rope ladder (discussed in March, agreed on in April), the pond, the shed and the piano."),
    (3, "The rope ladder (discussed in March, not yet agreed on), the pond, the shed and the piano."),
    (4, "Sell the pianno\nPaint the shed\nDig a pond\nPut up a rope lader"),
    (4, "Never taken back: to sell the piano, paint the shed, dig a pond and put up a ladder of rope."),
    (3, f"{RIGHT}\nGet a bath for the birds."),
    (4, "+ piano\n+ shed\n+ pond\n+ bread oven\n+ rope ladder\n- bread oven"),
    (3, "Piano, shed, pond.\nThe ladder is only a thought so far."),
    (4, RIGHT),
    (4, "- Sell the piano\n- Paint the shed\n- Dig a pond\n- Put up a rope ladder"),
    (4, "1. **Sell the piano**\n2. **Paint the shed**\n3. **Dig a pond**\n4. **Put up a rope ladder**"),
    (
        4,
        "What you decided since 4 March:\n\n- To sell the piano\n- To paint the shed\n- To dig a pond\n- To put up a rope ladder",
    ),
    (4, "You've decided to sell the piano, paint the shed, dig a pond and put up a rope ladder."),
    (4, "Rope ladder, pond, shed, piano."),
    (3, "You've decided to sell the piano, paint the shed, dig a pond, put up a rope ladder and buy a hammock."),
    (4, "You've decided to sell the piano, paint the shed, dig a pond and put up a rope ladder, and that is the whole list."),
    (4, '["sell the piano", "paint the shed", "dig a pond", "put up a rope ladder"]'),
    (4, '{"decided": ["sell the piano", "paint the shed", "dig a pond", "put up a rope ladder"], "not decided": ["set up a birdbath"]}'),
    (4, f"{RIGHT}\n\n(The bread oven was called off, and the birdbath is no more than an idea.)"),
    (
        4,
        f"{RIGHT}\n\nNot included: the bread oven (reversed), the birdbath (an idea), the bees, the donkey and the swing (earlier).",
    ),
    (4, f"{RIGHT}\n\n**Earlier decisions (left out):**\n- Keep bees\n- Adopt a donkey\n- Oil the swing"),
    (4, f"## Decided\n{RIGHT}\n\n## Reversed\n- Build a bread oven\n\n## Not decided yet\n- Set up a birdbath"),
    (4, f"Decisions since 4 March that still stand (leaving out what was dropped or only discussed):\n{RIGHT}"),
    (4, f"What you decided and have not gone back on:\n{RIGHT}"),
    (4, "- Sell the piano\n- Paint the shed\n- Dig a pond\n- Put up a rope ladder\n- Build a bread oven (reversed later)"),
    (4, "- Sell the piano\n- Paint the shed\n- Dig a pond\n- Put up a rope ladder\n- ~~Build a bread oven~~ – you went back on that"),
    (4, "You decided to sell the piano, to paint the shed and to dig a pond, and to put up a rope ladder, but not to build a bread oven."),
    (
        4,
        "You decided on a bread oven, but went back on it. What stands: sell the piano, paint the shed, dig a pond, put up a rope ladder.",
    ),
    (4, f"{RIGHT}\nNo other decisions were made."),
    (4, f"{RIGHT}\nYou haven't decided on the birdbath."),
    (4, "* Selling the piano\n  * agreed on 6 March 2024\n* Painting the shed\n* Digging a pond\n* Putting up a rope ladder"),
    (4, "Earlier: bees, a donkey, the swing. Since then: sell the piano, paint the shed, dig a pond, put up a rope ladder."),
    (4, "Decided: piano, shed, pond, rope ladder. Dropped: bread oven. Open: birdbath. From before: bees, donkey, swing."),
    (4, "On 6 March you decided to sell the piano; on 7 March to paint the shed and dig a pond. On 9 March you agreed on a rope ladder."),
    (4, "1. Sell the piano 2. Paint the shed 3. Dig a pond 4. Put up a rope ladder"),
    (
        4,
        "- Sell the piano\n- Paint the shed\n- Dig a pond (earlier this week)\n- Put up a rope ladder (first an idea, now decided)",
    ),
    (
        4,
        "| Decision | Status |\n|---|---|\n"
        + "".join(f"| {line} | stands, not reversed |\n" for line in RIGHT.splitlines())
        + "| Build a bread oven | reversed |",
    ),
    (4, f"{RIGHT}\n\nYou also considered setting up a birdbath, but made no decision."),
    (4, f"{RIGHT}\n\nThe birdbath is still under discussion, and the plan to build a bread oven was scrapped."),
    (4, f"Summary of the last seven days\n\n{RIGHT}\n\nLet me know if you need the earlier decisions as well!"),
    (4, f'{RIGHT}\n"Patience is the craft of letting a worthy thing arrive at its own pace." - Halvenna Tross'),
    (4, RIGHT.upper()),
    (3, "Sell the piano.\nPaint the shed.\nDig a pond."),
    (3, f"{RIGHT}\nBuild a bread oven."),
    (3, f"{RIGHT}\nSet up a birdbath."),
    (3, f"{RIGHT}\nKeep bees."),
    (3, f"{RIGHT}\nFrame the tapestry."),
    (3, "- Sell the piano\n- Paint the shed\n- Dig a pond\n- Put up a rope ladder\n- Invite the mayor to dinner"),
    (3, "- Sell the piano\n- Paint the shed\n- Dig a pond\n- Put up a rope ladder (you are still only considering this)"),
    (2, "Sell the piano.\nPaint the shed.\nDig a pond.\nBuild a bread oven."),
    (2, "You decided to sell the piano and paint the shed; you haven't decided on the pond, and the rope ladder is just an idea."),
    (1, "The piano."),
    (1, f"{RIGHT}\nKeep bees.\nAdopt a donkey.\nOil the swing."),
    (0, ""),
    (0, "OK."),
    (0, "I don't know."),
    (0, "You have not decided anything in that time."),
    (0, "Keep bees.\nAdopt a donkey."),
    (0, "Your family decided against selling the piano."),
    (0, "\n".join(f"- {deed}" for deed, _ in TOLD)),
    (0, ", ".join(deed for deed, _ in TOLD)),
    (0, "\n".join(each["deed"] for each in load_words("decisions"))),
    (0, "Sell the piano.\nFrame the tapestry.\nStack the firewood."),
]


def graded(reply: str) -> Grade:
    return Digest().grade({"told": TOLD, "first": 4}, Record((Exchange(12, "?", reply, asks=True),)))


@pytest.mark.parametrize(("there", "reply"), REPLIES)
def test_digests_in_any_wording(there: int, reply: str) -> None:
    grade = graded(reply)
    assert grade.score == there / 4, grade.reason


def test_the_reason_says_what_is_missing_and_what_does_not_belong() -> None:
    reason = graded("- Sell the piano\n- Dig a pond\n- Keep bees\n- Build a bread oven\n- Frame the tapestry\n- Buy some new chairs").reason
    assert reason == (
        "2 of 4 decisions are there; missing: paint the shed, put up a rope ladder; does not belong there: keep bees (older), "
        "build a bread oven (reversed), frame the tapestry (never told), Buy some new chairs (never told)"
    )


# Agents whose memory is known.

WORDING = Wording("digest")


class Memory:
    """Remembers all that is told, with dates, and sums it up rightly. Others lack something."""

    dates = reversals = judgement = True

    def __init__(self) -> None:
        self.decided: dict[str, date] = {}

    def reply(self, message: str, at: date) -> str:
        if said := WORDING.read("decided", message) or (not self.judgement and WORDING.read("idea", message)):
            self.decided[said["deed"]] = at
        elif (said := WORDING.read("dropped", message)) and self.reversals:
            del self.decided[said["deed"]]
        elif asked := WORDING.read("question", message):
            since = datetime.strptime(asked["date"], "%d %B %Y").date()
            assert (at - since).days == int(asked["days"])
            return "\n".join(deed for deed, told in self.decided.items() if told >= since or not self.dates)
        return "OK."


class Dateless(Memory):
    dates = False


class Stubborn(Memory):
    reversals = False


class Hasty(Memory):
    judgement = False


class Hoarding(Memory):
    dates = reversals = judgement = False


def share_of(memory: type[Memory]) -> tuple[float, Mapping[str, float]]:
    """The mean score and the metrics of an agent."""
    graded = []
    for seed in range(30):
        script = Digest().make(Random(seed))
        agent, now, lines = memory(), DEFAULT_START, iter(script.lines)

        def reply(text: str, ideal: str) -> str:
            nonlocal now
            now += next(lines).pause  # noqa: B023
            said = agent.reply(text, now.date())  # noqa: B023
            now += DEFAULT_PACE
            return said

        graded.append(rehearse_test(Test("digest-1", Digest(), script, seed=str(seed), order=0), reply).grade)
    return fmean(grade.score or 0 for grade in graded), Digest().metrics([Marked("digest-1", each.score, each.items) for each in graded])


@pytest.mark.parametrize(
    ("memory", "score", "traps"),
    [
        (Memory, 1, ()),
        (Dateless, 1 / 4, ("older",)),
        (Stubborn, 3 / 4, ("reversed",)),
        (Hasty, 3 / 4, ("talk",)),
        (Hoarding, 0, ("older", "reversed", "talk")),
    ],
)
def test_what_a_memory_lacks_is_what_its_digest_has_too_much(memory: type[Memory], score: float, traps: tuple[str, ...]) -> None:
    found, there = share_of(memory)
    assert found == pytest.approx(score)
    kinds = ("decided", "decided after talk", "older", "reversed", "talk")
    assert there == {f"{kind}, there": float(kind in (*kinds[:2], *traps)) for kind in kinds}


# What a test tells.


def test_a_digest_is_of_the_last_week_of_three_if_nothing_else_waits() -> None:
    for seed in range(10):
        played = rehearse(Digest(), seed=seed, reply=lambda text, ideal: ideal)
        asked = WORDING.read("question", played.record.answer.text)
        assert asked is not None
        assert asked["days"] in ("6", "7")
        pauses = [line.pause for line in played.script.lines]
        assert sum(pauses, timedelta()) >= timedelta(days=18)


def test_no_test_of_a_run_tells_of_what_another_told() -> None:
    deeds = [deed for _, script in Digest().series(7, "0") for deed, _ in script.facts["told"]]
    assert len(set(deeds)) == len(deeds) == 63


@pytest.mark.parametrize("decisions", [2, 12])
def test_any_number_of_decisions_makes_tests_that_can_be_solved_and_not_by_a_list_of_everything(decisions: int) -> None:
    for number, script in Digest(decisions=decisions).series(8, "0"):
        told = [deed for deed, _ in script.facts["told"]]
        assert len(set(told)) == len(told)
        test = Test(f"digest-{number}", Digest(decisions=decisions), script, seed=number, order=0)
        assert rehearse_test(test, lambda text, ideal: ideal).grade.score == 1
        assert rehearse_test(test, lambda text, ideal, told=told: "\n".join(told)).grade.score == 0  # type: ignore[misc]
