"""Write questions about a log with a model, and keep those that pass the checks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field

from longspan.scenarios.histories import rules
from longspan.scenarios.histories.formats.confirming import LOG_NOTE, REJECTED
from longspan.scenarios.histories.formats.reading import read_conversations
from longspan.scenarios.histories.history import Question
from longspan.scenarios.histories.quantities import date_key
from longspan.scenarios.histories.question_proposals import KINDS, Draft, LogIndex, Passage, answer_query, proposal_query, read_draft
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.fields import Seed
from longspan.simulator.base.words import plain
from longspan.simulator.contract.queries import Free, Query
from longspan.simulator.reading.abstentions import is_abstention
from longspan.simulator.reading.matching import contains_phrase
from longspan.simulator.reading.replies.splitting import SENTENCE_END
from longspan.simulator.running.data_writers import Asks, WrittenData

__all__ = ["QuestionWriter"]

MAX_ATTEMPTS: Final = 8
"""Maximum number of proposals per wanted question."""
ABSTENTION: Final = "abstention"

_YOU: Final = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)
_PARTS: Final = re.compile(r",|\band\b|&", re.IGNORECASE)


@final
class QuestionSettings(BaseModel):
    """`log`: the log. `out`: the name of the questions' file. `questions`: the wanted number."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    log: Path
    out: str
    questions: int = Field(default=40, ge=1, le=10_000)
    seed: Seed = 0


@final
class _Proposal(NamedTuple):
    """A proposed question about a passage of a conversation, or the reason to reject it."""

    conversation: str
    passage: Passage
    draft: Draft
    reason: str = ""
    reply: str = ""

    def rejected(self, reason: str, reply: str = "") -> _Proposal:
        return self._replace(reason=reason, reply=reply[:500])


@final
class QuestionWriter:
    """Writes a file of questions for `--data questions=FILE`, and a file of the rejected ones."""

    Settings: type[BaseModel] = QuestionSettings

    async def write(self, settings: QuestionSettings, asks: Asks, log: Callable[[str], None]) -> WrittenData:
        """Write questions until the wanted number is accepted, or the passages or attempts are used up. Raises InputError."""
        conversations = {each.id: LogIndex(each) for each in read_conversations(settings.log)}
        drafts = _Drafts(conversations, settings, asks)
        if not any(drafts.waiting.values()):
            raise InputError(f"{settings.log}: has no statement to ask about")
        tried = 0
        while (batch := drafts.next_batch()) and tried < MAX_ATTEMPTS * settings.questions:
            tried += len(batch)
            await drafts.check(batch)
            log(f"{len(drafts.accepted)} of {settings.questions} questions accepted, {len(drafts.rejected)} rejected")
        counts = Counter(each.passage.kind for each in drafts.accepted)
        reasons = Counter(each.reason for each in drafts.rejected)
        notes = [f"{'accepted':<9}{counts[kind]:>4} {kind}" for kind in KINDS]
        notes += [f"{'rejected':<9}{count:>4} {reason}" for reason, count in reasons.most_common()]
        files = {
            settings.out: "".join(_line(drafts.describe(each, number)) for number, each in enumerate(drafts.accepted, 1)),
            settings.out + REJECTED: "".join(
                _line(drafts.describe(each) | {"reason": each.reason} | ({"reply": each.reply} if each.reply else {}))
                for each in drafts.rejected
            ),
            settings.out + LOG_NOTE: str(settings.log.resolve()),
        }
        return WrittenData(files, notes, complete=len(drafts.accepted) >= settings.questions)


@final
class _Drafts:
    """The proposals so far, and the passages that are left, by kind."""

    def __init__(self, logs: dict[str, LogIndex], settings: QuestionSettings, asks: Asks) -> None:
        self._logs = logs
        self._asks = asks
        self._wanted = settings.questions
        self.accepted: list[_Proposal] = []
        self.rejected: list[_Proposal] = []
        self.waiting = {kind: _take_turns([(id, log.list_passages(kind, settings.seed)) for id, log in logs.items()]) for kind in KINDS}

    def next_batch(self) -> list[tuple[str, Passage]]:
        """Return a passage of each kind that still lacks questions. Kinds without passages leave their share to the others."""
        missing = self._wanted - len(self.accepted)
        counts = Counter(each.passage.kind for each in self.accepted)
        kinds = sorted((kind for kind in KINDS if self.waiting[kind]), key=lambda kind: counts[kind])
        share = -(-self._wanted // len(kinds)) if kinds else 0
        behind = [kind for kind in kinds if counts[kind] < share] or kinds
        return [self.waiting[kind].pop(0) for kind in behind[:missing]]

    async def check(self, batch: Sequence[tuple[str, Passage]]) -> None:
        """Have the model write a question about each passage, and check each one."""
        texts = await self._ask([self._propose(*each) for each in batch])
        drafts = [self._read(*each, text) for each, text in zip(batch, texts, strict=True)]
        for check in (self._check_draft, self._check_with_evidence, self._check_without, self._check_later):
            sound = [each for each in drafts if not each.reason]
            checked = iter(await check(sound))
            drafts = [each if each.reason else next(checked) for each in drafts]
        for each in drafts:
            (self.rejected if each.reason else self.accepted).append(each)

    def describe(self, proposal: _Proposal, number: int = 0) -> dict[str, Any]:
        """Return a proposal as an object of a questions file."""
        log = self._logs[proposal.conversation]
        draft = proposal.draft
        never = proposal.passage.kind == ABSTENTION
        return {
            **({"conversation": proposal.conversation} if len(self._logs) > 1 or proposal.conversation != "1" else {}),
            **({"id": f"q{number:03}"} if number else {}),
            "question": draft.question,
            **({"answerable": False} if never else {"answer": draft.answer}),
            "kind": proposal.passage.kind,
            **({} if never and number else {"evidence": [log.turns[turn].id for turn in proposal.passage.turns]}),
        }

    async def _ask(self, queries: Sequence[Query[Free]]) -> list[str | None]:
        return [None if isinstance(answer, str) else answer.text for answer in await self._asks.ask_all(queries)]

    def _lines(self, id: str, turns: Sequence[int], *near: str) -> list[str]:
        log = self._logs[id]
        words = log.find_rare(" ".join(near))
        return [log.turns[turn].line(dated=True, near=words) for turn in turns]

    def _propose(self, id: str, passage: Passage) -> Query[Free]:
        lines = self._lines(id, passage.turns)
        if passage.kind == ABSTENTION:
            lines[-1] += f" ({self._find_replaced(id, passage)})"
        return proposal_query(passage.kind, lines)

    def _find_replaced(self, id: str, passage: Passage) -> str:
        """Return the rarest word of a turn. Another word in its place makes a question that no turn answers."""
        log = self._logs[id]
        return log.find_rare(log.turns[passage.turns[-1]].text)[0]

    def _read(self, id: str, passage: Passage, text: str | None) -> _Proposal:
        draft = "the model did not answer" if text is None else read_draft(text)
        if isinstance(draft, str):
            return _Proposal(id, passage, Draft("", ""), draft, (text or "")[:500])
        if passage.kind == ABSTENTION:
            other = draft.answer
            changed = re.sub(rf"\b{re.escape(self._find_replaced(id, passage))}\b", lambda _: other, draft.question, flags=re.IGNORECASE)
            draft = Draft(changed, other)
        return _Proposal(id, passage, draft)

    async def _check_draft(self, drafts: Sequence[_Proposal]) -> list[_Proposal]:
        known = {plain(each.draft.question) for each in self.accepted}
        return [each.rejected(self._find_fault(each, known)) for each in drafts]

    def _find_fault(self, proposal: _Proposal, known: set[str]) -> str:
        """Return why a draft cannot be a question of its kind, or an empty string. `known`: the questions so far, which it joins."""
        draft, kind = proposal.draft, proposal.passage.kind
        log = self._logs[proposal.conversation]
        turns = [log.turns[turn] for turn in proposal.passage.turns]
        if plain(draft.question) in known:
            return "repeats another question"
        known.add(plain(draft.question))
        if _YOU.search(draft.question):
            return "the question is about the assistant"
        if kind == ABSTENTION:
            if not contains_phrase(draft.question, draft.answer):
                return "the question does not name the new thing"
            return "the log mentions the thing" if log.mentions(draft.answer) else ""
        if contains_phrase(draft.question, draft.answer):
            return "the question contains the answer"
        if is_abstention(draft.answer):
            return "the answer is that it is not known"
        if not any(log.find_rare(draft.question)[:1]):
            return "the question names nothing of the log"
        if kind == "temporal-reasoning":
            dates = {f"{date.fromisoformat(turn.at):%Y-%m-%d}" for turn in turns if turn.at}
            if not date_key(draft.answer):
                return "the answer is no date"
            if not any(_is_right(proposal, text) for text in (*dates, *(turn.text for turn in turns))):
                return "the answer is not in the evidence"
            return ""
        found = [turn for turn in turns if contains_phrase(turn.text, draft.answer) or self._reads(proposal, turn.text)]
        if kind == "multi-session":
            parts = [part for part in _PARTS.split(draft.answer) if plain(part)]
            owners = [{turn.id for turn in turns if contains_phrase(turn.text, part)} for part in parts]
            if len(parts) < 2 or not all(owners):
                return "the answer is not in the evidence"
            return "one session has the whole answer" if set.intersection(*owners) else ""
        if not found:
            return "the answer is not in the evidence"
        if kind == "knowledge-update" and turns[0] in found:
            return "the answer is not new"
        if kind == "knowledge-update" and not set(log.find_rare(turns[0].text)) & set(log.find_rare(draft.question)):
            return "the question is not about what changed"
        return ""

    def _reads(self, proposal: _Proposal, text: str) -> bool:
        """Return whether the rules read a sentence of a turn as the right answer."""
        return any(_is_right(proposal, sentence) for sentence in SENTENCE_END.split(text[:10_000]) if sentence.strip())

    async def _check_with_evidence(self, drafts: Sequence[_Proposal]) -> list[_Proposal]:
        shown = [self._find_shown(each) for each in drafts]
        replies = await self._replies(drafts, shown)
        return [
            each if reply is not None and _is_right(each, reply) else each.rejected("wrong from the evidence", reply or "")
            for each, reply in zip(drafts, replies, strict=True)
        ]

    def _find_shown(self, proposal: _Proposal) -> Sequence[int]:
        """Return the evidence, or the turns nearest to a question that no turn answers."""
        if proposal.passage.kind != ABSTENTION:
            return proposal.passage.turns
        near = self._logs[proposal.conversation].find_related(proposal.draft.question)
        return near or proposal.passage.turns

    async def _check_without(self, drafts: Sequence[_Proposal]) -> list[_Proposal]:
        answerable = [each for each in drafts if each.passage.kind != ABSTENTION]
        replies = iter(await self._replies(answerable, [()] * len(answerable)))
        found = [(each, "" if each.passage.kind == ABSTENTION else next(replies)) for each in drafts]
        return [
            each.rejected("right without the evidence", reply)
            if reply and (_is_right(each, reply) or contains_phrase(reply, each.draft.answer))
            else each.rejected("the model did not answer")
            if reply is None
            else each
            for each, reply in found
        ]

    async def _check_later(self, drafts: Sequence[_Proposal]) -> list[_Proposal]:
        """Ask again with the later turns about the same things."""
        later = []
        for each in drafts:
            log, last = self._logs[each.conversation], max(each.passage.turns)
            later.append([] if each.passage.kind == ABSTENTION else log.find_later(each.draft.question, each.draft.answer, last))
        changing = [(each, turns) for each, turns in zip(drafts, later, strict=True) if turns]
        asked = [each for each, _ in changing]
        replies = iter(await self._replies(asked, [(*each.passage.turns, *turns) for each, turns in changing]))
        pairs = [(each, next(replies) if turns else None, turns) for each, turns in zip(drafts, later, strict=True)]
        # A small model repeats the evidence's answer even if later turns change it, so it also reads the later turns alone.
        alone = iter(await self._replies(asked, [turns for _, turns in changing]))
        others = [next(alone) if turns else None for turns in later]
        return [
            each
            if not turns or (reply and other and _is_right(each, reply) and (is_abstention(other) or _is_right(each, other)))
            else each.rejected("changed by later turns", f"{reply}; from the later turns alone: {other}")
            for (each, reply, turns), other in zip(pairs, others, strict=True)
        ]

    async def _replies(self, drafts: Sequence[_Proposal], shown: Sequence[Sequence[int]]) -> list[str | None]:
        return await self._ask(
            [
                answer_query(each.draft.question, self._lines(each.conversation, turns, *each.draft))
                for each, turns in zip(drafts, shown, strict=True)
            ]
        )


def _is_right(proposal: _Proposal, reply: str) -> bool:
    """Return whether the rules that grade histories read a reply as the right answer."""
    draft, kind = proposal.draft, proposal.passage.kind
    never = kind == ABSTENTION
    verdict = rules.grade_reply(Question("q", draft.question, None if never else draft.answer, kind, answerable=not never), reply)
    return verdict is not None and verdict.score == 1


def _take_turns(passages: Sequence[tuple[str, list[Passage]]]) -> list[tuple[str, Passage]]:
    """Return the passages of conversations, one of each in turn."""
    most = max((len(each) for _, each in passages), default=0)
    return [(id, each[number]) for number in range(most) for id, each in passages if number < len(each)]


def _line(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode() + "\n"
