"""Scrub whole conversations: turns, speakers, questions with answers and evidence, and ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from longspan.scenarios.histories.formats.assembly import LEFT_OUT, SPEAKERS, Conversation
from longspan.scenarios.histories.history import Question
from longspan.scenarios.histories.repairs import number_duplicates
from longspan.scenarios.histories.scrubbing.scrubber import NO_GUARANTEE, Scrubber
from longspan.scenarios.histories.telling import ROLES

__all__ = ["describe_scrubbing", "scrub_conversations"]

PLURALS: Final = {"address": "addresses", "e-mail": "e-mail addresses", "IP": "IP addresses"}


def scrub_conversations(conversations: Sequence[Conversation]) -> tuple[list[Conversation], Scrubber]:
    """Return conversations with personal data replaced, the same data alike in all of them, and what replaced it."""
    scrubber = Scrubber()
    turns = [turn for each in conversations for part in each.parts for turn in part.turns]
    questions = [text for each in conversations for question in each.questions for text in _texts(question)]
    named = [remark.removeprefix(SPEAKERS) for each in conversations for remark in each.remarks if remark.startswith(SPEAKERS)]
    names = [name.partition(": ")[2] for remark in named for name in remark.split(", ")]
    scrubber.learn([*(turn.text for turn in turns), *questions], [*(turn.speaker for turn in turns if turn.speaker not in ROLES), *names])
    ids = _scrub_ids([each.id for each in conversations], scrubber)
    return [_scrub_conversation(each, ids[each.id], scrubber) for each in conversations], scrubber


def describe_scrubbing(scrubber: Scrubber, *, show: bool) -> Iterator[str]:
    """Yield how much was replaced, by kind, and each replacement with `show`."""
    different = [kind for kind, _ in scrubber.replaced]
    kinds = sorted(set(different), key=lambda kind: (-different.count(kind), kind))
    counts = [f"{different.count(kind):,} {_plural(kind) if different.count(kind) > 1 else _singular(kind)}" for kind in kinds]
    places = sum(scrubber.counts.values())
    yield f"scrubbed {', '.join(counts) or 'nothing'}, in {places:,} place{'s' * (places != 1)}"
    if show:
        yield from (f"  {kind}: {original} -> {made}" for (kind, original), made in sorted(scrubber.replaced.items()))
    yield NO_GUARANTEE


def _plural(kind: str) -> str:
    return PLURALS.get(kind, f"{kind}s")


def _singular(kind: str) -> str:
    return _plural(kind).removesuffix("es") if kind in PLURALS else kind


def _texts(question: Question) -> Iterator[str]:
    yield from (question.text, question.answer or "", question.trap, *question.options, *question.rubric)


def _scrub_conversation(conversation: Conversation, id: str, scrubber: Scrubber) -> Conversation:
    scrub = scrubber.scrub
    sessions = _scrub_ids([part.id or "" for part in conversation.parts], scrubber)
    turns = _scrub_ids([turn.id or "" for part in conversation.parts for turn in part.turns], scrubber)
    ids = _scrub_ids([question.id for question in conversation.questions], scrubber)
    return conversation._replace(
        id=id,
        parts=tuple(
            part._replace(
                id=sessions[part.id or ""],
                turns=[
                    turn._replace(
                        id=turns[turn.id or ""],
                        speaker=turn.speaker if turn.speaker in ROLES else scrubber.scrub_speaker(turn.speaker),
                        text=scrub(turn.text),
                    )
                    for turn in part.turns
                ],
            )
            for part in conversation.parts
        ),
        questions=tuple(
            replace(
                question,
                id=ids[question.id],
                text=scrub(question.text),
                answer=None if question.answer is None else scrub(question.answer),
                kind=scrub(question.kind),
                trap=scrub(question.trap),
                evidence=tuple(turns[label] for label in question.evidence),
                options=tuple(map(scrub, question.options)),
                rubric=tuple(map(scrub, question.rubric)),
            )
            for question in conversation.questions
        ),
        remarks=tuple(scrub(remark) for remark in conversation.remarks if not remark.startswith(LEFT_OUT)),
        befores={ids[question]: turns[turn] for question, turn in conversation.befores.items()},
    )


def _scrub_ids(ids: Sequence[str], scrubber: Scrubber) -> Mapping[str, str]:
    """Return the new ids. They differ, as the old ones do: two addresses in one id each may become the same."""
    return dict(zip(ids, number_duplicates(map(scrubber.scrub, ids)), strict=True))
