"""The judge's questions: the key facts of two summaries, the facts that a summary contains, and the sentences that are faithful.

Facts are named once for a pair, and each summary is then compared with them. In the paper, they are named again for each summary, in the
question that compares the summary with them (`ask_new_facts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Final, final

from pydantic import AfterValidator, Field, model_validator

from longspan.simulator.base.words import plain
from longspan.simulator.contract.queries import Answer, Query, fence, template

__all__ = [
    "Aligned",
    "Alignment",
    "Anew",
    "Checked",
    "Facts",
    "Named",
    "Verdicts",
    "ask_alignment",
    "ask_faithfulness",
    "ask_new_facts",
    "key_facts",
]

TEMPLATES: Final = Path(__file__).parent / "templates"

MAX_CHARACTERS: Final = 600
"""The maximum number of characters in a key fact."""


def _distinct(facts: list[str]) -> list[str]:
    """Return the facts as single lines, without duplicates."""
    distinct: dict[str, str] = {}
    for line in (" ".join(fact.split()) for fact in facts):
        if line:
            distinct.setdefault(plain(line) or line, line)
    return list(distinct.values())


@final
class Facts(Answer):
    """Key facts, perhaps more than were asked for. `thoughts` come first, so that the model reasons before it answers."""

    thoughts: str
    facts: Annotated[list[Annotated[str, Field(max_length=MAX_CHARACTERS)]], AfterValidator(_distinct)]


@final
class Aligned(Answer):
    """Whether fact number `fact` follows from a summary, and from which of its sentences. Both count from 1."""

    fact: int
    why: str
    holds: bool
    sentences: list[int]


class Alignment(Answer):
    """Which facts a summary contains."""

    facts: list[Aligned]


@final
class Named(Answer):
    """A key fact, whether it follows from a summary, and from which of its sentences, counted from 1."""

    fact: Annotated[str, Field(max_length=MAX_CHARACTERS)]
    why: str
    holds: bool
    sentences: list[int]


class Anew(Answer):
    """The key facts of two summaries, and which of them one of the two contains."""

    thoughts: str
    facts: list[Named]


@final
class Checked(Answer):
    """Whether a sentence is faithful to the source."""

    sentence: int
    why: str
    faithful: bool


class Verdicts(Answer):
    """Which sentences of a summary are faithful."""

    sentences: list[Checked]


def key_facts(first: str, second: str, limit: int) -> Query[Facts]:
    """Ask for at most `limit` key facts of two summaries, given in this order (CREAM, section 4.1.2)."""
    text = f"{first.strip()}\n\n{second.strip()}"
    prompt = template(TEMPLATES, "facts").render(text=text, most=limit, fence=fence(text))
    return Query(prompt=prompt, answer=Facts, version="arena facts 1")


def ask_alignment(facts: Sequence[str], sentences: Sequence[str]) -> Query[Alignment]:
    """Ask which sentences each fact follows from. An answer must name each fact once, and only sentences that exist."""
    prompt = template(TEMPLATES, "alignment").render(facts=facts, sentences=sentences, fence=fence(*facts, *sentences))
    return Query(prompt=prompt, answer=_alignment(len(facts), len(sentences)), version="arena alignment 1")


def ask_new_facts(first: str, second: str, sentences: Sequence[str], limit: int) -> Query[Anew]:
    """Ask for at most `limit` key facts of two summaries, and for the ones that follow from these sentences of one summary (CREAM, A.2)."""
    text = f"{first.strip()}\n\n{second.strip()}"
    prompt = template(TEMPLATES, "anew").render(text=text, sentences=sentences, most=limit, fence=fence(text, *sentences))
    return Query(prompt=prompt, answer=_anew(len(sentences)), version="arena anew 1")


def ask_faithfulness(document: str, sentences: Sequence[str]) -> Query[Verdicts]:
    """Ask which sentences are faithful to the document. An answer must name each of them once."""
    prompt = template(TEMPLATES, "faithfulness").render(document=document, sentences=sentences, fence=fence(document, *sentences))
    return Query(prompt=prompt, answer=_verdicts(len(sentences)), version="arena faithfulness 1")


@lru_cache(maxsize=4096)
def _alignment(facts: int, sentences: int) -> type[Alignment]:
    @final
    class Complete(Alignment):
        @model_validator(mode="after")
        def _fits(self) -> Complete:
            _check_numbers([fact.fact for fact in self.facts], facts, "fact")
            _check_cited(self.facts, sentences)
            return self

    return Complete


@lru_cache(maxsize=4096)
def _anew(sentences: int) -> type[Anew]:
    @final
    class Complete(Anew):
        @model_validator(mode="after")
        def _fits(self) -> Complete:
            _check_cited(self.facts, sentences)
            return self

    return Complete


@lru_cache(maxsize=4096)
def _verdicts(sentences: int) -> type[Verdicts]:
    @final
    class Complete(Verdicts):
        @model_validator(mode="after")
        def _fits(self) -> Complete:
            _check_numbers([verdict.sentence for verdict in self.sentences], sentences, "sentence")
            return self

    return Complete


def _check_cited(facts: Sequence[Aligned] | Sequence[Named], sentences: int) -> None:
    if any(not 1 <= number <= sentences for fact in facts if fact.holds for number in fact.sentences):
        raise ValueError(f"cites a sentence that does not exist: there are {sentences}")


def _check_numbers(numbers: Sequence[int], count: int, what: str) -> None:
    if sorted(numbers) != list(range(1, count + 1)):
        raise ValueError(f"does not name each {what} from 1 to {count} once")
