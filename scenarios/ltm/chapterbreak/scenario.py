"""ChapterBreak (GoodAI, section 3.2; Sun et al., 2022): pages of a book, and which opening of its next chapter is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, ClassVar, Final, final

from pydantic import Field

from longspan.scenarios.ltm.chapterbreak.choice import chosen
from longspan.scenarios.ltm.chapterbreak.novel import Novel, write
from longspan.scenarios.ltm.chapterbreak.published_chapters import Example, examples
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.pages import head, paged, tail
from longspan.simulator.errors import InputError
from longspan.simulator.record import Grade, Record
from longspan.simulator.scenario import Scenario, Skill
from longspan.simulator.script import Line, Script
from longspan.simulator.sizes import Tokens

__all__ = ["ChapterBreak"]

PAGE: Final = 750
"""Tokens of a page, about."""
OPENING: Final = 150
"""Tokens of an opening, at most about; a little more goes to its heading."""


@final
class ChapterBreak(Scenario):
    """About `tokens` tokens of a book in pages, six openings of its next chapter, and the question which of them is true.

    Without `data` the book is made up: five openings contradict something that the pages told, each something else. With
    it, an example of the published data is asked: the context's last pages, and the openings' beginnings. About 60 % of
    those cannot be solved (GoodAI, section 3.2); `samples` names the ones to ask, such as "ao3/12653258/1".
    """

    name: ClassVar[str] = "chapterbreak"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "conflicting information", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"book"})
    uninterrupted: ClassVar[bool] = True
    early: ClassVar[bool] = False
    """A book is read in one go."""

    tokens: Annotated[Tokens, Field(ge=3000, le=32_000)] = 8000
    data: Path | None = None
    samples: tuple[str, ...] = ()

    def make(self, random: Random) -> Script:
        """Raises InputError for data that cannot be read."""
        wording = Wording(self.name)
        if self.data is None:
            pages, openings, facts = _made_up(write(random, self.tokens))
            question = wording.say(random, "question", openings=len(openings))
        else:
            pages, openings, facts = _published(random, _sample(random, self.data, self.samples), self.tokens)
            question = wording.say(random, "question_published", openings=len(openings))
        lines = [Line(wording.say(random, "intro", pages=len(pages), openings=len(openings)), needle=False)]
        for number, page in enumerate(pages, 1):
            heading = wording.say(random, "page", number=number, pages=len(pages))
            lines.append(Line(f"{heading}\n\n{page}", together=True))
        for number, opening in enumerate(openings, 1):
            heading = wording.say(random, "opening", number=number, openings=len(openings))
            lines.append(Line(f"{heading}\n\n{opening}", needle=False, together=True))
        lines.append(Line(question, ideal=str(facts["answer"]), asks=True, needs=tuple(range(len(pages))), together=True))
        return Script(facts=facts, lines=lines, farewell=wording.say(random, "farewell"))

    def chance(self, facts: Mapping[str, Any]) -> float:
        return 1 / int(facts["openings"])

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        named = chosen(record.answer.reply).numbers
        right = named == (facts["answer"],)
        return Grade(
            score=float(right),
            reason=f"expected opening {facts['answer']}, the reply gives {_given(named)}{_why(facts, named)}",
            turns=(record.answer.turn,),
        )


_Parts = tuple[Sequence[str], Sequence[str], dict[str, Any]]
"""Pages, openings and facts."""


def _made_up(novel: Novel) -> _Parts:
    """`facts` holds, for each false opening, what it says that is not so and what the pages told."""
    answer = 1 + next(at for at, opening in enumerate(novel.openings) if opening.true)
    false = {
        str(number): {"says": claim.says, "told": claim.told, "page": _page(novel, claim.told)}
        for number, opening in enumerate(novel.openings, 1)
        for claim in opening.claims
        if not claim.true
    }
    facts = {"answer": answer, "openings": len(novel.openings), "false": false}
    return novel.pages, [opening.text for opening in novel.openings], facts


def _page(novel: Novel, told: str) -> int:
    """The number of the page on which it was told."""
    return 1 + next(at for at, page in enumerate(novel.pages) if told in page)


def _published(random: Random, example: Example, tokens: int) -> _Parts:
    openings = [example.right, *example.wrong]
    order = random.sample(range(len(openings)), len(openings))
    facts = {"answer": 1 + order.index(0), "openings": len(openings), "source": example.where}
    return paged(tail(example.context, tokens), PAGE), [head(openings[at], OPENING) for at in order], facts


def _sample(random: Random, data: Path, samples: Sequence[str]) -> Example:
    """One of the file's examples, or of those among them that are asked for."""
    found = examples(data)
    if samples:
        known = {example.where: example for example in found}
        for sample in samples:
            if sample not in known:
                raise InputError(f"{data}: there is no sample {sample!r:.80}; samples are named like {found[0].where!r}")
        found = tuple(known[sample] for sample in samples)
    return random.choice(found)


def _given(named: Sequence[float]) -> str:
    return " and ".join(f"{number:g}" for number in named[:6]) or "no number"


def _why(facts: Mapping[str, Any], named: Sequence[float]) -> str:
    """What a false opening that was chosen has wrong."""
    false = facts.get("false", {}).get(f"{named[0]:g}") if len(named) == 1 else None
    return f", which says {false['says']!r} where page {false['page']} told {false['told']!r}" if false else ""
