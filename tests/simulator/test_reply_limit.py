"""How much of a reply is read by graders and by tests while they are played. The journal keeps all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.report.pages import altered, played
from tests.rig import made_test, play, setting

from longspan.agents.base import BaseAgent
from longspan.simulator.contract.graded_record import MAX_CHARACTERS, Exchange, Record
from longspan.simulator.contract.messages import Message, Reply
from longspan.simulator.contract.script import Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.running.scoring import score_run

LENGTH = 250_000


class Talkative(BaseAgent):
    async def reply(self, message: Message) -> Reply:
        return Reply("la" * (LENGTH // 2))


def test_a_test_that_is_played_reads_so_much_of_a_reply(tmp_path: Path) -> None:
    read: list[str] = []

    async def ask(stage: Stage) -> None:
        read.append(await stage.ask("How are you?", ideal="Fine."))
        async for turn in stage.watch(turns=1):
            read.append(turn.reply)

    test = made_test("asking", 1, 0, outline=[Segment(0, 20, 1, watch=1)], play=ask)
    play([test], Talkative(), setting(2000), tmp_path / "journal.jsonl")
    assert read
    assert all(len(reply) == MAX_CHARACTERS for reply in read)
    replies = [event.text for event in read_journal(tmp_path / "journal.jsonl") if isinstance(event, events.Reply) and event.asked]
    assert all(len(reply) == LENGTH for reply in replies)


def test_graders_are_given_so_much_of_a_reply_and_the_reason_says_so(tmp_path: Path) -> None:
    whole = played(tmp_path, "colours", agent="oracle")

    def talk(entries: list[dict[str, object]]) -> None:
        (question,) = [entry["turn"] for entry in entries if entry.get("test") == "colours-1" and entry.get("needs")]
        (reply,) = [entry for entry in entries if entry["type"] == "reply" and entry["turn"] == question]
        reply["text"] = " " * (LENGTH - len(str(reply["text"]))) + str(reply["text"])

    run = RunFolder(altered(whole, tmp_path / "talking", talk))
    result = {test.id: test for test in score_run(run).tests}
    assert result["colours-1"].score == 0, "the answer comes after what is read"
    assert f"; only the first {MAX_CHARACTERS:,} of 250,000 characters of the reply in turn " in result["colours-1"].reason
    assert result["colours-2"].score == 1
    assert "characters" not in result["colours-2"].reason
    book = Gradebook.of(run)
    assert any(len(exchange.reply) == LENGTH for exchange in book.transcripts["main"].history)


@pytest.mark.parametrize(("long", "said"), [(0, ""), (1, "turn 3 were read"), (3, "turn 3, and of 2 more replies were read")])
def test_a_record_says_what_is_not_read(long: int, said: str) -> None:
    replies = ["x" * (MAX_CHARACTERS + (at < long)) for at in range(3)]
    record = Record([Exchange(3, "?", replies[0])], [Exchange(4 + at, "", reply) for at, reply in enumerate(replies[1:])])
    read = record.readable()
    assert {len(exchange.reply) for exchange in (*read.exchanges, *read.watched)} == {MAX_CHARACTERS}
    assert read.unread.endswith(said)
    assert bool(read.unread) == bool(long)
