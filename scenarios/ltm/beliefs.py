"""Read where, according to a reply, a person believes something to be, apart from other beliefs, events and facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Final, final

from longspan.simulator.reading.abstentions import is_abstention
from longspan.simulator.reading.replies.lexicon import LEXICON
from longspan.simulator.reading.replies.mentions import is_alternative
from longspan.simulator.reading.replies.reading import Reading, SettledValues
from longspan.simulator.reading.replies.splitting import SENTENCE, Clause
from longspan.simulator.reading.replies.values import Values

__all__ = ["find_beliefs"]

_STORY: Final = ["TV show", "TV programme", "TV program", "show", "programme", "story"]
_OTHER_STORIES: Final = ["film", "movie", "book", "novel", "play", "other show", "other programme", "other story"]
BARE: Final = 8
"""Maximum number of words in a clause that consists of an answer only."""
_FILLING: Final = frozenset(
    "the a an in inside it is s that would be so therefore thus hence answer final my correct container one i d say then must guess".split()
)

_JOINS: Final = ("and", "or")
_SELVES: Final = frozenset(("himself", "herself", "themselves"))
_SPEAKERS: Final = frozenset("i me my you your we people everyone everybody anyone most many".split())
"""Words that attribute a belief to people outside the story."""


@final
class _Frame(Enum):
    """The subject of a clause."""

    ANSWER = auto()
    """A value and nothing else."""
    ASKED = auto()
    """A belief of a person in question."""
    OTHERS = auto()
    """A belief of another person."""
    HAPPENED = auto()
    """An event or a fact."""
    PLAIN = auto()


def find_beliefs(reply: str, places: Sequence[str], asked: Sequence[str], people: Sequence[str]) -> SettledValues:
    """Return the places where, according to a reply, a person believes something to be.

    `asked`: the person whose belief is in question and, for a belief about a belief, the person whom that belief is about. `people`:
    everyone else. The answer is a statement about that belief, or a bare value. Failing that, clauses that are about no belief, event or
    fact count, and finally any clause, unless the reply admits ignorance. Replies that mention no person are read as usual. Runs in
    linear time and never raises.
    """
    said, values = Reading(reply), Values(places, forms=False)
    frames = _frames(said.clauses, values, asked, people)
    if not frames:
        return said.of(values, (_STORY, _OTHER_STORIES))
    answers = {at for at, frame in frames.items() if frame in (_Frame.ANSWER, _Frame.ASKED)}
    plain = {at for at, frame in frames.items() if frame is _Frame.PLAIN}
    for heeded in (answers, plain):
        if (settled := said.of(values, (_STORY, _OTHER_STORIES), heeds=heeded.__contains__)).values:
            return settled
    if is_abstention(reply):
        return SettledValues([], [])
    return said.of(values, (_STORY, _OTHER_STORIES), heeds=lambda at: frames[at] is not _Frame.OTHERS)


def _frames(clauses: Sequence[Clause], values: Values, asked: Sequence[str], people: Sequence[str]) -> Mapping[int, _Frame]:
    """Return the subject of each clause; empty if the reply mentions no person and no belief."""
    names = Values([*asked, *people], forms=False)
    frames: dict[int, _Frame] = {}
    nested: set[int] = set()
    told, last = False, None
    both = len(asked) > 1 and any(found.value == asked[1] for clause in clauses for found in names.find(clause.text))
    for at, clause in enumerate(clauses):
        named = [found.value for found in names.find(clause.text)]
        rest = _without(clause.text, values)
        before = frames.get(at - 1)
        told = told or bool(named)
        led = before in (_Frame.ASKED, _Frame.OTHERS, _Frame.HAPPENED) and clause.part < SENTENCE and clause.link != "joint"
        titled = led and (":" in clause.gap or "(" in clause.gap or "->" in clause.gap or "\u2192" in clause.gap)
        if LEXICON.has("believed", rest) and (named or not _SPEAKERS.intersection(rest.split())):
            told = True
            own = both and not named and not _SELVES.isdisjoint(rest.split())  # "he himself would look in"
            frames[at] = _Frame.ASKED if (not named or named[0] in asked) and not own else _Frame.OTHERS
        elif LEXICON.has("happened", rest):
            frames[at] = _Frame.HAPPENED
        elif named and rest == named[0].casefold():
            frames[at] = _Frame.ASKED if named[0] in asked[both:] else _Frame.OTHERS
        elif titled and before is not None:
            frames[at] = before
        elif last is not None and is_alternative(clause):
            frames[at] = last  # "in the red one, or maybe the blue one"
        elif before is _Frame.HAPPENED and clause.gap.strip().casefold() == "and" and _FILLING.issuperset(rest.split()):
            frames[at] = before  # "No idea of the red one and the blue one"
        else:
            frames[at] = _Frame.ANSWER if _FILLING.issuperset(rest.split()) and len(rest.split()) <= BARE else _Frame.PLAIN
        last = frames[at] if values.find(clause.text) else last
        if named[:1] == list(asked[:1]) and frames[at] is _Frame.ASKED:
            nested.add(at)
    if not told:
        return {}
    for at in range(len(clauses) - 1, 0, -1):
        if frames[at - 1] is _Frame.ANSWER and clauses[at].gap.strip().casefold() in _JOINS and values.find(clauses[at].text):
            frames[at - 1] = frames[at]  # "The red one and the blue one came later"
    if len(asked) > 1 and nested:
        asides = {
            at + 1 for at in nested if not values.find(clauses[at].text)
        }  # "in the opinion of Ada, Ben believes it to be in the red one"
        frames |= {
            at: _Frame.OTHERS
            for at, frame in frames.items()
            if frame is _Frame.ASKED and at not in asides and _names_only(clauses[at], names, asked[1])
        }
    return frames


def _names_only(clause: Clause, names: Values, name: str) -> bool:
    return {found.value for found in names.find(clause.text)} == {name}


def _without(clause: str, values: Values) -> str:
    """Return the words of a clause without its values."""
    kept: list[str] = []
    at = 0
    for found in values.find(clause):
        kept.append(clause[at : found.start])
        at = found.end
    return " ".join(" ".join([*kept, clause[at:]]).split())
