"""Turn a failure of the agent in a user's log into a question that is asked at the same place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

from pydantic import ValidationError

from longspan.scenarios.histories.formats.assembly import Conversation
from longspan.scenarios.histories.formats.confirming import dump_question
from longspan.scenarios.histories.formats.own import NamedQuestion
from longspan.scenarios.histories.formats.questions import read_named
from longspan.scenarios.histories.formats.reading import read_conversations
from longspan.scenarios.histories.question_proposals import LogIndex
from longspan.scenarios.histories.scenario import Histories
from longspan.scenarios.histories.telling import tell_turns
from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.contract.question_files import EarlierTurn
from longspan.simulator.contract.scenario import Scenario
from longspan.simulator.reading.matching import contains_phrase

__all__ = ["LoggedFailure", "find_failure"]

MOST_SHOWN: Final = 8
"""Maximum number of earlier turns that are suggested as evidence."""


def find_failure(scenario: Scenario, facts: Mapping[str, Any], place: int, message: str) -> LoggedFailure:
    """Return the turn of a log at a place of a told history. See `FailureFinder`."""
    if not isinstance(scenario, Histories) or scenario.data is None:
        raise InputError("the history is made up: only turns of a recorded log become questions")
    if scenario.delivery != "told":
        raise InputError(f"the run has the log among other tests (delivery={scenario.delivery}): play it again without this setting")
    history = next((each for each in scenario.load() if each.id == facts.get("history")), None)
    told = tell_turns(history) if history is not None else []
    if history is None or place >= len(told) or told[place].message != message:
        raise InputError(f"{scenario.data}: has changed since the run: its turn {place} is another one; play the log again")
    # The longest id, because one conversation may be `a` and another `a@b`.
    among = [each for each in read_conversations(scenario.data) if f"{history.id}@".startswith(f"{each.id}@")]
    conversation = max(among, key=lambda each: len(each.id))
    if conversation.parts[0].turns[0].id in told[place].turns:
        raise InputError(f"turn {place} is the first of the log: nothing was said before that the agent could remember")
    return LoggedFailure(scenario.data, conversation, told[place].turns, message, told[place].reply)


@final
class LoggedFailure:
    """A message of a log with the agent's reply. `turns`: the ids of the turns that they consist of."""

    def __init__(self, log: Path, conversation: Conversation, turns: Sequence[str], message: str, reply: str) -> None:
        self.message = message
        self.reply = reply
        self._log = log
        self._conversation = conversation.id
        self._index = LogIndex(conversation)
        self._before = next(number for number, turn in enumerate(self._index.turns) if turn.id in turns)

    def find_evidence(self, answer: str) -> Sequence[EarlierTurn]:
        """Return the earlier turns that share the most words with the message and the answer, those with the answer first."""
        near = self._index.find_before(f"{self.message} {answer}", self._before, MOST_SHOWN)
        words = self._index.find_rare(f"{answer} {self.message}")
        turns = [self._index.turns[number] for number in near]
        having = [turn for turn in turns if contains_phrase(turn.text, answer)]
        # An assistant often repeats what the user has said.
        having = [turn for turn in having if turn.speaker != "assistant"] or having
        found = [EarlierTurn(turn.id, turn.line(dated=True, near=words), turn in having) for turn in turns]
        return sorted(found, key=lambda each: not each.answers)

    def save(self, file: Path, question: str, answer: str, evidence: Sequence[str]) -> str:
        """Add the question to a file of JSON lines, which is created if it is missing. See `Failure`."""
        if not evidence:
            raise InputError("the question needs evidence: name an earlier turn that has the answer, by its id or a quotation")
        if not answer.strip():
            raise InputError("the question needs an answer")
        if file.exists() and not file.is_file():  # opening a pipe would wait for its reader
            raise InputError(f"{file}: is not a regular file; name another one")
        own = {} if self._conversation == "1" else {"conversation": self._conversation}
        before = self._index.turns[self._before].id
        given = {"question": question, "answer": answer, "evidence": list(evidence), "before": before, "confirmed": True, **own}
        try:
            asked = NamedQuestion.model_validate(given)
        except ValidationError as error:
            raise InputError(f"the question cannot be saved: {first_problem(error)}") from None
        line = json.dumps(dump_question(asked), ensure_ascii=False) + "\n"
        self._check(line)
        known = [each for _, each in read_named(file, set())] if file.exists() and file.stat().st_size else []
        if any((each.question, each.before, each.conversation) == (question, before, asked.conversation) for each in known):
            raise InputError(f"{file}: has this question already; edit the file to change it")
        try:
            earlier = file.read_text("utf-8") if known else ""
            if known and not earlier.lstrip("\ufeff\n ").startswith("{"):
                raise InputError(f"{file}: is not in JSON lines; name another file")
            # Appended in one step, so that two programs can add to the file, and an interruption leaves it whole.
            with file.open("a", encoding="utf-8") as out:
                out.write(line if not earlier or earlier.endswith("\n") else f"\n{line}")
        except (OSError, UnicodeError) as error:
            raise InputError(f"{file}: cannot be written: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from error
        return f"{file}, question {len(known) + 1}"

    def _check(self, line: str) -> None:
        """Raise InputError if the question does not fit the log."""
        with TemporaryDirectory() as folder:
            alone = Path(folder, "question.jsonl")
            try:
                alone.write_text(line, "utf-8")
                read_conversations(self._log, alone)
            except UnicodeEncodeError:
                raise InputError("the question cannot be saved: it is not valid Unicode") from None
            except InputError as error:
                raise InputError(str(error).removeprefix(f"{alone}, line 1: ")) from None
