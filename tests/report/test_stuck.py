"""An agent that is stuck is told from one that forgets: by answers that are alike, other tests' formats, and refusals in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import longspan
from longspan.agents.base import BaseAgent, Reply
from longspan.agents.reference.notebook import Notebook
from longspan.simulator.cli import main
from longspan.simulator.contract.messages import Message
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.measures import document_run
from longspan.simulator.results.measures.stuck import PlacedAnswer, group_alike, refuses_help
from longspan.simulator.results.result import Result, StuckResult, read_result

FORMATS = ["restaurant", "name_list", "colours"]

LOOP = "The sentence is a common idiomatic expression that refers to a saying that is often used to describe a saying "


def carries() -> Callable[[str], str]:
    """A model that answers everything in the last format that it was asked for."""
    formats = [""]

    def reply(text: str) -> str:
        if "JSON list" in text:
            formats[:] = ['["Ann", "Ben"]']
        elif '"Order: ' in text:
            formats[:] = ["I should like that.\nOrder: Tuna with sesame"]
        return formats[0] or f"You said {len(text)} letters."

    return reply


def loops() -> Callable[[str], str]:
    """A small model that repeats its own reply, cut wherever its tokens end, now and then with another number or mark."""
    said = [0]

    def reply(text: str) -> str:
        said[0] += 1
        return (LOOP * 3)[: 110 + said[0] % 7] + ("" if said[0] % 3 else f" {said[0]}!")

    return reply


def learns_nothing(text: str) -> str:
    return "I'm sorry, but I don't know that; you have not told me." if "?" in text else "Okay."


def refuses_all(text: str) -> str:
    return f"I'm sorry, but I can't assist with that ({len(text)} letters about {text.split()[-1]} in {text.split()[0]})."


def stuck(agent: object, out: Path, *, suite: str = "ltm@2k", tests: int = 2, **settings: Any) -> tuple[Path, Result]:
    (folder,) = longspan.run(suite, agent=agent, tests=tests, out=out, progress=False, **settings).folders
    return folder, read_result(RunFolder(folder))


def found(result: Result) -> StuckResult:
    assert result.stuck is not None
    return result.stuck


def told(folder: Path, result: Result) -> str:
    return " ".join(notice.text for notice in document_run(RunFolder(folder).manifest, result).notices)


def echoes(text: str) -> str:
    return f"Reminder: {text.upper()}" if "?" in text else f"I was told: {text}"


def test_a_model_that_repeats_the_message_is_said_to_be_stuck(tmp_path: Path) -> None:
    folder, result = stuck(echoes, tmp_path, suite="memory@2k")
    each = found(result)
    assert each.echoed > each.replies * 0.9, "all but the briefest messages"
    assert f"{each.echoed} of {each.replies} replies repeat the message. Most of these are where it fails: the agent is stuck" in told(
        folder, result
    )


class Repeats(BaseAgent):
    """A notebook that repeats each message before its answer. With `stuck`, it only repeats messages from this reply on, and only answers
    before."""

    def __init__(self, stuck: str = "") -> None:
        super().__init__()
        self.notebook = Notebook()
        self.replies, self.stuck = 0, int(stuck) if stuck else None

    async def reply(self, message: Message) -> Reply:
        self.replies += 1
        answer = (await self.notebook.reply(message)).text
        repeated = f"You wrote: {message.text}"
        if self.stuck is None:
            return Reply(f"{repeated}\n\n{answer}")
        return Reply(answer if self.replies < self.stuck else repeated)

    async def observe(self, message: Message, reply: str) -> None:
        await self.notebook.observe(message, reply)

    async def reset(self) -> None:
        await self.notebook.reset()


REPEATS = "python:tests.report.test_stuck:Repeats"


def test_an_agent_that_repeats_the_message_before_each_right_answer_is_not_stuck(tmp_path: Path) -> None:
    folder, result = stuck(REPEATS, tmp_path, scenarios=["colours", "jokes"])
    each = found(result)
    assert result.score == result.max_score
    assert each.echoed > each.replies / 2 > 5
    assert each.wrong == {}
    assert told(folder, result) == ""


def test_an_agent_that_repeats_the_message_before_mostly_right_answers_is_not_stuck(tmp_path: Path) -> None:
    """The signs say nothing of its few wrong answers, since the right ones have the same."""
    folder, result = stuck(REPEATS, tmp_path, scenarios=["colours", "jokes"], tests=4)
    each = found(result)
    assert each.replies / 10 < each.wrong["echoed"] < each.echoed / 2
    assert told(folder, result) == ""


def test_an_agent_that_is_stuck_in_the_middle_of_a_run_is_said_to_be(tmp_path: Path) -> None:
    folder, result = stuck(f"{REPEATS}?stuck=20", tmp_path, scenarios=["colours"], tests=8)
    each = found(result)
    assert 0.3 < (result.score or 0) < 0.7
    assert each.wrong["echoed"] > each.echoed / 2
    assert "replies repeat the message. Most of these are where it fails: the agent is stuck" in told(folder, result)


def test_a_reply_that_quotes_a_part_repeats_nothing(tmp_path: Path) -> None:
    def quotes(text: str) -> str:
        return f'You said "{" ".join(text.split()[:6])} ...". I see.'

    assert found(stuck(quotes, tmp_path)[1]).echoed == 0


def test_a_model_that_repeats_itself_is_said_to_be_stuck(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, result = stuck(loops, tmp_path)
    each = found(result)
    assert each.alike == each.most_alike == each.answers > 20
    said = f"All {each.answers} answers to questions are the same or nearly so: “The sentence is a common idiomatic expression"
    with pytest.raises(SystemExit, match="0"):
        main(["score", str(folder)])
    shown = " ".join(capsys.readouterr().out.split())
    assert said in shown
    assert "the agent is stuck" in shown
    assert "--isolated plays each test in a separate conversation" in shown
    report = (folder / "report.html").read_text("utf-8")
    assert "<strong>Stuck.</strong>" in report
    assert said in report


def test_a_format_of_another_test_is_told_from_one_that_was_asked_for(tmp_path: Path) -> None:
    folder, result = stuck(carries, tmp_path, scenarios=FORMATS)
    each = found(result)
    assert {"Order:", "JSON"} <= set(each.formats)
    assert 5 <= each.borrowed < each.replies
    assert f"{each.borrowed} of {each.replies} replies have a format that only another test asked for (" in told(folder, result)
    alone, isolated = stuck(carries, tmp_path / "alone", scenarios=FORMATS, isolated=True)
    assert found(isolated).borrowed == 0
    assert "--isolated" not in told(alone, isolated)


def test_refusals_in_words_are_counted_that_no_model_reports(tmp_path: Path) -> None:
    folder, result = stuck(refuses_all, tmp_path, scenarios=["colours", "jokes"], tests=4)
    assert (result.refused, found(result).refusing) == (0, found(result).answers)
    assert f"{found(result).answers} of {found(result).answers} answers refuse to help, though the agent does" in told(folder, result)


def test_a_model_that_declines_whatever_it_is_told_is_stuck(tmp_path: Path) -> None:
    def reply(text: str) -> str:
        return f"I'm sorry, but I don't have any information about {text.split()[-1]} Could you please provide more context?"

    folder, result = stuck(reply, tmp_path, scenarios=["name_list", "locations"])
    each = found(result)
    assert (each.declined, each.alike) == (each.told, 0)
    assert f"{each.told} of {each.told} messages that only state something are answered as if they asked for something" in told(
        folder, result
    )


@pytest.mark.parametrize(
    ("agent", "suite"),
    [
        ("notebook", "ltm@2k"),
        ("notebook", "memory@2k"),
        ("oracle", "ltm@2k"),
        ("memory/bm25?answerer=words", "ltm@2k"),
        ("memory/bm25?answerer=none", "ltm@2k"),
        (learns_nothing, "ltm@2k"),
    ],
)
def test_agents_that_answer_or_forget_are_not_stuck(agent: object, suite: str, tmp_path: Path) -> None:
    assert told(*stuck(agent, tmp_path, suite=suite, tests=1)) == ""


def test_several_runs_begin_with_those_that_are_stuck(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "--scenario", "colours", "--scenario", "jokes", "--agent", "silent", "--agent", "notebook", "--out", str(tmp_path)]
    with pytest.raises(SystemExit, match="0"):
        main(words)
    said = [line.split(": ")[:2] for line in capsys.readouterr().out.splitlines() if " stuck" in line]
    assert said == [["ltm-2k-silent-seed0", "All 6 answers to questions are the same or nearly so"]]


def groups(*answers: str) -> list[list[str]]:
    return [[each.text for each in group] for group in group_alike([PlacedAnswer(answer) for answer in answers])]


def test_answers_are_alike_but_for_case_numbers_punctuation_and_where_they_were_cut() -> None:
    whole = "The joke is a classic example of a clever pun, with a clever pun"
    same = [whole, whole.upper(), f"{whole}!", f"{whole} 12.", f"{whole} and a clever pu"]
    assert [sorted(group) for group in groups(*same, "It is red.")] == [sorted(same)]
    assert groups("412", "413", "414") == []
    assert groups("Room 412.", "Room 413.", "Room 414.") == []
    assert groups("In Leeds", "In Leeds, I think", "In Leeds, by the sea") == []
    assert groups("I do not know.", "I do not know.", "I do not know.") == []


def test_brief_acknowledgements_of_what_is_told_are_no_answers() -> None:
    told = [PlacedAnswer("Okay.", asked=False) for _ in range(20)]
    assert group_alike([*told, PlacedAnswer("It is red."), PlacedAnswer("A wedding.")]) == []
    assert [len(group) for group in group_alike([*told, *(PlacedAnswer("Okay.") for _ in range(5)), PlacedAnswer("It is red.")])] == [5]


@pytest.mark.parametrize(
    ("reply", "is_refusal"),
    [
        ("I'm sorry, but I can't assist with that.", True),
        ("I am sorry, but I cannot help with that request.", True),
        ("I’m unable to assist you with this.", True),
        ("We will not comply with this.", True),
        ("I'm sorry, I can't help you there: you never told me her name.", False),
        ("She cannot help laughing at it.", False),
        ("I do not know.", False),
        ("It is on the shelf.", False),
    ],
)
def test_a_refusal_is_told_from_not_knowing(reply: str, is_refusal: bool) -> None:
    assert refuses_help(reply) is is_refusal


@pytest.mark.parametrize("text", ["[" * 10**6, 'x "' * 10**6, "A" * 10**6, "I am I am " * 10**5, "- A: " * 10**5])
def test_long_replies_are_read_quickly(text: str, tmp_path: Path) -> None:
    _, result = stuck(lambda _: text, tmp_path, scenarios=["colours"], tests=1)
    assert found(result).answers == 1
