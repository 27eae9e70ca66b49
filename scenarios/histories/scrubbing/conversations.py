"""Scrub whole conversations: turns, speakers, questions with answers and evidence, and ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from longspan.scenarios.histories.formats.assembly import Conversation, Part
from longspan.scenarios.histories.history import Question
from longspan.scenarios.histories.scrubbing.scrubber import NO_GUARANTEE, Scrubber
from longspan.scenarios.histories.telling import ROLES

__all__ = ["describe_scrubbing", "scrub_conversations"]

PLURALS: Final = {"address": "addresses", "e-mail": "e-mail addresses", "IP": "IP addresses"}


def scrub_conversations(conversations: Sequence[Conversation]) -> tuple[list[Conversation], Scrubber]:
    """Return conversations with personal data replaced, the same data alike in all of them, and what replaced it."""
    scrubber = Scrubber()
    turns = [turn for each in conversations for part in each.parts for turn in part.turns]
    questions = [text for each in conversations for question in each.questions for text in _texts(question)]
    scrubber.learn([*(turn.text for turn in turns), *questions], [turn.speaker for turn in turns if turn.speaker not in ROLES])
    return [_scrub_conversation(each, scrubber) for each in conversations], scrubber


def describe_scrubbing(scrubber: Scrubber, *, show: bool) -> Iterator[str]:
    """Yield how much was replaced, by kind, and each replacement with `show`."""
    different = [kind for kind, _ in scrubber.replaced]
    kinds = sorted(set(different), key=lambda kind: (-different.count(kind), kind))
    counts = [f"{different.count(kind):,} {_plural(kind) if different.count(kind) > 1 else _singular(kind)}" for kind in kinds]
    yield f"scrubbed {', '.join(counts) or 'nothing'}, in {sum(scrubber.counts.values()):,} places"
    if show:
        yield from (f"  {kind}: {original} -> {made}" for (kind, original), made in sorted(scrubber.replaced.items()))
    yield NO_GUARANTEE


def _plural(kind: str) -> str:
    return PLURALS.get(kind, f"{kind}s")


def _singular(kind: str) -> str:
    return _plural(kind).removesuffix("es") if kind in PLURALS else kind


def _texts(question: Question) -> Iterator[str]:
    yield from (question.text, question.answer or "", question.trap, *question.options, *question.rubric)


def _scrub_conversation(conversation: Conversation, scrubber: Scrubber) -> Conversation:
    scrub = scrubber.scrub
    return conversation._replace(
        id=scrub(conversation.id),
        parts=tuple(_scrub_part(part, scrubber) for part in conversation.parts),
        questions=tuple(
            replace(
                question,
                id=scrub(question.id),
                text=scrub(question.text),
                answer=None if question.answer is None else scrub(question.answer),
                trap=scrub(question.trap),
                evidence=tuple(map(scrub, question.evidence)),
                options=tuple(map(scrub, question.options)),
                rubric=tuple(map(scrub, question.rubric)),
            )
            for question in conversation.questions
        ),
        remarks=tuple(map(scrub, conversation.remarks)),
        befores={scrub(question): scrub(turn) for question, turn in conversation.befores.items()},
    )


def _scrub_part(part: Part, scrubber: Scrubber) -> Part:
    scrub = scrubber.scrub
    turns = [
        turn._replace(
            id=turn.id and scrub(turn.id),
            speaker=turn.speaker if turn.speaker in ROLES else scrub(turn.speaker),
            text=scrub(turn.text),
        )
        for turn in part.turns
    ]
    return part._replace(id=part.id and scrub(part.id), turns=turns)
