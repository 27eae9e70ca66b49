"""ChapterBreak (GoodAI, section 3.2; Sun et al., 2022): which opening of the next chapter agrees with the pages of a book?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any, ClassVar, Final, final

from pydantic import Field

from longspan.scenarios.ltm.chapterbreak.choice import find_choice
from longspan.scenarios.ltm.chapterbreak.novel import Novel, write_novel
from longspan.scenarios.ltm.chapterbreak.published_chapters import Example, read_examples
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.digests import hash_texts
from longspan.scenarios.shared.paging import cut_pages, take_head, take_tail
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.sizes import Tokens
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script

__all__ = ["ChapterBreak"]

PAGE_TOKENS: Final = 750
"""Approximate length of a page."""
OPENING_TOKENS: Final = 150
"""Approximate maximum length of an opening, without its heading."""


@final
class ChapterBreak(Scenario):
    """Read about `tokens` tokens of a book in pages and six openings of its next chapter, and ask which opening is true.

    Without `data` the book is generated, and each of five openings contradicts a different fact in the pages. With `data`, an example of
    the published data is used: the last pages of the context, and the beginnings of the openings. About 60% of those examples are
    unsolvable (GoodAI, section 3.2); `samples` selects the ones to use, such as "ao3/12653258/1".
    """

    name: ClassVar[str] = "chapterbreak"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "conflicting information", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"book"})
    uninterrupted: ClassVar[bool] = True
    early: ClassVar[bool] = False
    """The pages are read in one piece."""

    tokens: Annotated[Tokens, Field(ge=3000, le=32_000)] = 8000
    data: Path | None = None
    samples: tuple[str, ...] = ()

    def make(self, random: Random) -> Script:
        """Make a test. Raises InputError for unreadable data."""
        wording, recorded = Wording(self.name), None
        if self.data is None:
            pages, openings, facts = _cut_made_up(write_novel(random, self.tokens))
            question = wording.say(random, "question", openings=len(openings))
        else:
            example = _sample(random, self.data, self.samples)
            pages, openings, facts = _cut_published(random, example, self.tokens)
            recorded = hash_texts([example.context])
            question = wording.say(random, "question_published", openings=len(openings))
        lines = [Line(wording.say(random, "intro", pages=len(pages), openings=len(openings)), needle=False)]
        for number, page in enumerate(pages, 1):
            heading = wording.say(random, "page", number=number, pages=len(pages))
            lines.append(Line(f"{heading}\n\n{page}", together=True))
        for number, opening in enumerate(openings, 1):
            heading = wording.say(random, "opening", number=number, openings=len(openings))
            lines.append(Line(f"{heading}\n\n{opening}", needle=False, together=True))
        lines.append(Line(question, ideal=str(facts["answer"]), asks=True, needs=tuple(range(len(pages))), together=True))
        return Script(facts=facts, lines=lines, farewell=wording.say(random, "farewell"), recorded=recorded)

    def chance(self, facts: Mapping[str, Any]) -> float:
        return 1 / int(facts["openings"])

    def guess(self, message: str) -> str | None:
        asked = Wording(self.name).read("question", message)
        return str(Random(message).randint(1, int(asked["openings"]))) if asked else None

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        named = find_choice(record.answer.reply).numbers
        right = named == (facts["answer"],)
        return Grade(
            score=float(right),
            reason=f"expected opening {facts['answer']}, the reply chooses {_format_given(named)}{_why(facts, named)}",
            turns=(record.answer.turn,),
        )


_Parts = tuple[Sequence[str], Sequence[str], dict[str, Any]]
"""Pages, openings and facts."""


def _cut_made_up(novel: Novel) -> _Parts:
    """Return a novel's parts. `facts` contains, for each false opening, its false claim and the pages' version."""
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
    """Return the number of the page that contains the sentence."""
    return 1 + next(at for at, page in enumerate(novel.pages) if told in page)


def _cut_published(random: Random, example: Example, tokens: int) -> _Parts:
    openings = [example.right, *example.wrong]
    order = random.sample(range(len(openings)), len(openings))
    facts = {"answer": 1 + order.index(0), "openings": len(openings), "source": example.where}
    return cut_pages(take_tail(example.context, tokens), PAGE_TOKENS), [take_head(openings[at], OPENING_TOKENS) for at in order], facts


def _sample(random: Random, data: Path, samples: Sequence[str]) -> Example:
    """Draw one of the file's examples, or of those in `samples`."""
    candidates = read_examples(data)
    if samples:
        known = {example.where: example for example in candidates}
        for sample in samples:
            if sample not in known:
                raise InputError(f"{data}: unknown sample {sample!r:.80}; samples are named like {candidates[0].where!r}")
        candidates = tuple(known[sample] for sample in samples)
    return random.choice(candidates)


def _format_given(named: Sequence[float]) -> str:
    return " and ".join(f"{number:g}" for number in named[:6]) or "no number"


def _why(facts: Mapping[str, Any], named: Sequence[float]) -> str:
    """Return the false statement in the chosen opening, if there is one."""
    false = facts.get("false", {}).get(f"{named[0]:g}") if len(named) == 1 else None
    return f", which says {false['says']!r}, but page {false['page']} says {false['told']!r}" if false else ""
