"""Generate a history from a seed: a user's log with an assistant over several weeks, with questions that rules can grade.

Facts and questions come from `made_up_cases`, with chat about other people and the world between them. The same seed, length and number
of questions give the same history.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from longspan.scenarios.histories.history import History, Question, Session, Utterance
from longspan.scenarios.histories.made_up_cases import CASES, MAX_EACH, Case, CaseExchange, Deal
from longspan.scenarios.histories.quantities import without_unit
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.filler.draws import Draws
from longspan.simulator.filler.talk import Talk
from longspan.simulator.reading.matching import found_words

__all__ = ["MAX_TOKENS", "MIN_TOKENS", "ROOM", "write_history", "wrong_values"]

MIN_TOKENS: Final = 5_000
MAX_TOKENS: Final = 10_000_000
ROOM: Final = 200
"""A history may be this many tokens shorter than requested. It is never longer."""
SESSION: Final = 1_000
"""Approximate number of tokens in a session."""
MIN_SESSIONS: Final = 6
_REMARKS: Final = ("I see.", "Is that so?", "How curious.", "Thank you for sharing that.", "Interesting!", "Well, well.", "Go on.")


def write_history(seed: int | str, tokens: int = 20_000, questions: int = 2) -> History:
    """Return the history for a seed. `tokens`: its length in tokens of cl100k_base. `questions`: how many to ask of each kind.

    The newest session answers no question. A question's `trap` is easily mistaken for its answer: the value before an update, or a
    statement about another person. Raises ValueError if the length or the number is out of range.
    """
    if not MIN_TOKENS <= tokens <= MAX_TOKENS:
        raise ValueError(f"tokens must be from {MIN_TOKENS:,} to {MAX_TOKENS:,}, got {tokens:,}")
    if not 1 <= questions <= MAX_EACH:
        raise ValueError(f"questions must be from 1 to {MAX_EACH}, got {questions}")
    draw = Draws(f"made-up history/{seed}")
    starts = _starts(draw, max(MIN_SESSIONS, tokens // SESSION))
    deal = Deal(draw, starts, (starts[-1] + timedelta(days=draw.random.randint(2, 12))).replace(hour=9, minute=0))
    cases = [make(deal) for make in CASES.values() for _ in range(questions)]
    exchanges = _fill_with_talk(draw, f"{seed}", _deal_turns(draw, cases, len(starts)), tokens, cases)
    sessions: list[Session] = []
    evidence: dict[int, list[str]] = {}
    for number, (start, session) in enumerate(zip(starts, exchanges, strict=True), 1):
        turns: list[Utterance] = []
        for told, case in session:
            for speaker, text in (("user", told.user), ("assistant", told.assistant)):
                turns.append(Utterance(f"{number}:{len(turns) + 1}", speaker, text))
                if case is not None and told.evidence == speaker:
                    evidence.setdefault(case, []).append(turns[-1].id)
        sessions.append(Session(str(number), start, tuple(turns)))
    asked = tuple(_question(case, number, evidence.get(number, []), deal.asked) for number, case in enumerate(cases))
    return History(f"made-up-{seed}", tuple(sessions), asked)


def wrong_values(history: History, question: Question) -> tuple[str, ...]:
    """Return the values that a wrong reply could name instead of the answer to a question of a generated history."""
    others = (value for each in history.questions if not each.options for value in (each.trap, each.answer if each.answerable else ""))
    return tuple(dict.fromkeys(value for value in (question.trap, *others) if value and value != question.answer))


_Placed = tuple[CaseExchange, int | None]
"""An exchange, and the index of its case, or None for filler."""


def _starts(draw: Draws, number: int) -> list[datetime]:
    """Return the sessions' start times, on different days."""
    start = datetime(2024, 1, 1) + timedelta(days=draw.random.randrange(366))
    starts = []
    for _ in range(number):
        start += timedelta(days=draw.random.randint(4, 12))
        starts.append(start.replace(hour=draw.random.randint(8, 21), minute=draw.random.randrange(60)))
    return starts


def _deal_turns(draw: Draws, cases: list[Case], number: int) -> list[list[_Placed]]:
    """Return the exchanges of each session that belong to cases, in random order."""
    sessions: list[list[_Placed]] = [[] for _ in range(number)]
    for index, case in enumerate(cases):
        for told in case.told:
            sessions[told.session].append((told, index))
    return [draw.shuffle(session) for session in sessions]


def _fill_with_talk(draw: Draws, seed: str, sessions: list[list[_Placed]], tokens: int, cases: list[Case]) -> list[list[_Placed]]:
    """Insert chat between the facts, so that the sessions together reach the requested number of tokens."""
    count = Tokenizer("cl100k_base").count
    left = tokens - sum(count(told.user) + count(told.assistant) for session in sessions for told, _ in session)
    answers = [without_unit(value) for case in cases if not case.options for value in (case.answer, case.trap)]
    talk = _talk(draw, seed)
    waiting = next(talk)
    for number, session in enumerate(sessions):
        share = left // (len(sessions) - number)
        added: list[_Placed] = []
        while (cost := count(waiting.user) + count(waiting.assistant)) <= share or (not session and not added and cost <= left):
            # Chat that contains an answer or a trap would be evidence for the wrong turn.
            if not found_words(f"{waiting.user} {waiting.assistant}", answers):
                added.append((waiting, None))
                share, left = share - cost, left - cost
            waiting = next(talk)
        places = sorted(draw.random.randint(0, len(added)) for _ in session)
        for place, told in zip(reversed(places), reversed(session), strict=True):
            added.insert(place, told)
        session[:] = added
    return sessions


def _talk(draw: Draws, seed: str) -> Iterator[CaseExchange]:
    """Yield exchanges about other people and the world."""
    talk = Talk(f"made-up history/{seed}")
    sources = talk.pairs(), talk.chat()
    while True:
        text, reply = next(draw.random.choice(sources))
        yield CaseExchange(0, text, reply or draw.random.choice(_REMARKS))


def _question(case: Case, number: int, evidence: list[str], at: datetime) -> Question:
    return Question(
        id=str(number + 1),
        text=case.text,
        answer=case.answer,
        kind=case.kind,
        at=at,
        evidence=tuple(evidence),
        sessions=tuple(dict.fromkeys(turn.partition(":")[0] for turn in evidence)),
        options=case.options,
        answerable=case.answerable,
        trap=case.trap,
    )
