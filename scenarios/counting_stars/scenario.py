"""Counting-Stars (Song, Zheng and Luo, 2024): list all of the M stars scattered evenly over texts of N lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Annotated, Any, ClassVar, Final, Literal, final

from pydantic import BeforeValidator, Field, model_validator

from longspan.scenarios.counting_stars import sky as skies
from longspan.scenarios.counting_stars.answers import StarMark, mark_stars, read_numbers
from longspan.scenarios.counting_stars.endless_story import Language
from longspan.scenarios.counting_stars.stars import BLOCK, Stars, draw_stars, read_published_stars
from longspan.scenarios.counting_stars.tables import star_tables
from longspan.scenarios.counting_stars.wording import WORDINGS, Task, Wording, read_own_wording
from longspan.scenarios.shared.digests import hash_texts
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.sizes import Tokens
from longspan.simulator.base.tables import Table
from longspan.simulator.base.tokens import EncodingName, Tokenizer
from longspan.simulator.contract.graded_record import Grade, Item, Marked, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import LAST, Line, Script
from longspan.simulator.reading.matching import join_some

__all__ = ["CountingStars"]

MAX_STARS: Final = 1024
MAX_LENGTHS: Final = 128


def _variant(value: object) -> str:
    text = str(value)
    stars, dash, lengths = text.partition("-")
    if not (dash and stars.isdecimal() and lengths.isdecimal() and len(text) <= 8 and text.isascii()):
        raise ValueError("a variant is M-N, M stars at N lengths, such as 32-32")
    if not (1 <= int(stars) <= MAX_STARS and 1 <= int(lengths) <= MAX_LENGTHS):
        raise ValueError(f"a variant must have 1 to {MAX_STARS} stars and 1 to {MAX_LENGTHS} lengths, got {text}")
    return f"{int(stars)}-{int(lengths)}"


@final
class CountingStars(Scenario):
    """Scatter sentences with numbers ("stars") over a long text or conversation, and ask for all the numbers.

    `delivery=message`: for each of N lengths, i times `max_context` / N tokens, send a single message that contains M stars, in a
    separate conversation. `delivery=scatter`: make each star a needle of the long conversation. `task=reasoning`: each star gives a
    wrong number before the right one. `scoring`: a star counts if it is anywhere in the answer (membership), or only in its place
    (slot); the tables show both. `prompts`: a file with other prompts. `tokenizer` is the run's.
    """

    name: ClassVar[str] = "counting_stars"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"stars"})

    variant: Annotated[str, BeforeValidator(_variant)] = "32-16"
    max_context: Annotated[Tokens, Field(le=2_000_000)] = 32_000
    language: Language = "en"
    task: Task = "searching"
    delivery: Literal["message", "scatter"] = "message"
    scoring: Literal["membership", "slot"] = "membership"
    sky: Path | None = None
    stars: Path | None = None
    prompts: Path | None = None
    tokenizer: EncodingName = "cl100k_base"

    @model_validator(mode="after")
    def _one_sky(self) -> CountingStars:
        if self.sky is not None and self.delivery == "scatter":
            raise ValueError("delivery=scatter uses the conversation as its sky: leave sky out, or set delivery=message")
        return self

    @property
    def number(self) -> int:
        """M, the number of stars."""
        return int(self.variant.partition("-")[0])

    @property
    def lengths(self) -> list[int]:
        """The N context lengths in tokens, evenly spaced up to `max_context`."""
        steps = int(self.variant.partition("-")[2])
        return [self.max_context * step // steps for step in range(1, steps + 1)]

    # ---- making

    def make(self, random: Random) -> Script:
        """Make the longest text, or the stars of a conversation. Raises InputError for unusable data."""
        if self.delivery == "scatter":
            return self._scatter(random)
        sky = self._sky(random)
        return self._message(random, sky, self.lengths[-1])

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield `tests` tests of each length, named after it; with delivery=scatter, `tests` tests.

        All texts begin alike, as the paper's do. Each text has its own numbers.
        """
        if self.delivery == "scatter":
            yield from super().series(tests, seed)
            return
        sky = self._sky(Random(f"{seed}/sky"))
        for number in range(1, tests + 1):
            for length in self.lengths:
                id = f"{length}-{number}" if tests > 1 else f"{length}"
                yield id, self._message(Random(f"{seed}/{length}/{number}"), sky, length)

    def _sky(self, random: Random) -> skies.Sky:
        """Return the sky for the messages. Raises InputError if it is too short, or if the shortest message cannot fit the stars."""
        count, wording, (*_, longest) = self._count, self._wording, self.lengths
        largest = BLOCK * self.number
        needed = skies.min_length([wording.tells(largest, largest, self.task)] * self.number, wording.asks(self.task, talk=False), count)
        if self.lengths[0] < needed:
            suggested = -(-needed * len(self.lengths) // 1000)
            raise InputError(
                f"counting_stars: the shortest context of {self.variant} up to {longest:,} tokens has {self.lengths[0]:,}; "
                f"{self.number} star{'s'[: self.number != 1]}, the question and some text need {needed:,}: "
                f"use --set max_context={suggested}k or more, or fewer stars or lengths"
            )
        if self.sky is None:
            return skies.Sky.from_story(self.language, random, count, longest)
        return skies.Sky.from_files(self.sky, count, longest)

    def _message(self, random: Random, sky: skies.Sky, length: int) -> Script:
        stars, wording = self._stars(random), self._wording
        sentences = [wording.tells(right, wrong, self.task) for right, wrong in zip(stars.right, stars.wrong, strict=True)]
        text = skies.scatter_stars(sky, sentences, wording.asks(self.task, talk=False), length, self._count)
        line = Line(text, ideal=wording.ideal(stars.right), asks=True, needs=())
        return Script(facts=self._facts(stars, length), lines=[line], alone=True, recorded=self._recorded(stars))

    def _scatter(self, random: Random) -> Script:
        stars, wording = self._stars(random), self._wording
        share = LAST / len(stars.right)  # evenly, as in the paper
        told = enumerate(zip(stars.right, stars.wrong, strict=True))
        lines = [Line(wording.tells(right, wrong, self.task), at=share * number) for number, (right, wrong) in told]
        lines.append(Line(wording.asks(self.task, talk=True), ideal=wording.ideal(stars.right), asks=True))
        return Script(facts=self._facts(stars, None), lines=lines, farewell=wording.farewell, recorded=self._recorded(stars))

    def _stars(self, random: Random) -> Stars:
        if self.stars is None:
            return draw_stars(random, self.number)
        return read_published_stars(self.stars, self.number, random, reasoning=self.task == "reasoning")

    def _recorded(self, stars: Stars) -> str | None:
        return None if self.stars is None else hash_texts(map(str, stars.right))

    def _facts(self, stars: Stars, length: int | None) -> dict[str, Any]:
        wrong = list(stars.wrong) if self.task == "reasoning" else None
        return {"right": list(stars.right), "wrong": wrong, "context": length}

    @property
    def _wording(self) -> Wording:
        return read_own_wording(self.prompts, self.language, self.task) if self.prompts else WORDINGS[self.language]

    @property
    def _count(self) -> Callable[[str], int]:
        return Tokenizer(self.tokenizer).count

    # ---- grading

    def chance(self, facts: Mapping[str, Any]) -> float:
        """Return the score of guessing M numbers up to the largest.

        Reasoning adds wrong counts, each worth a quarter: within a block, three inner numbers in eight are wrong counts.
        """
        right: list[int] = facts["right"]
        share = (len(right) if self.scoring == "membership" else 1) / max(right)
        return min(1.0, share * (1.0 if facts["wrong"] is None else 1 + 0.25 * 1.5))

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        right, wrong, context = facts["right"], facts["wrong"], facts["context"]
        answer = record.answer
        names = read_numbers(answer.reply)
        stars = mark_stars(right, wrong, names)
        score = sum(map(self._score, stars)) / len(stars)
        items = tuple(self._item(at, len(right), right[at], context, mark, answer.turn) for at, mark in enumerate(stars))
        return Grade(score=score, reason=_reason(right, wrong, stars, bool(names)), turns=(answer.turn,), items=items)

    def _score(self, mark: StarMark) -> float:
        return mark.membership if self.scoring == "membership" else mark.slot

    def _item(self, at: int, stars: int, right: int, context: int | None, mark: StarMark, turn: int) -> Item:
        """Return the item of a star of a test."""
        numbers = {"star": at + 1, "stars": stars, "membership": mark.membership, "slot": mark.slot}
        if context is not None:
            numbers["context"] = context
        labels = {"star": str(at + 1)} | ({"context": f"{context:,}"} if context is not None else {})
        note = f"{right}: {_note(mark)}"
        return Item(name=f"star {at + 1}", score=self._score(mark), labels=labels, numbers=numbers, note=note, turn=turn)

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        items = [item.numbers for test in tests for item in test.items]
        return {name: fmean(numbers[name] for numbers in items) for name in ("membership", "slot")} if items else {}

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        return star_tables(runs)


def _note(mark: StarMark) -> str:
    """Describe how much of a star an answer has."""
    if mark.right:
        return "both counts" if mark.wrong else "named" if mark.slot == 1 else "named in another place"
    return "only the wrong count" if mark.wrong else "missing"


def _reason(right: Sequence[int], wrong: Sequence[int] | None, stars: Sequence[StarMark], answered: bool) -> str:
    """Describe the expected and the given answer in words."""
    if not answered:
        return f"expected {len(right)} numbers, the reply lists none"
    in_place = sum(mark.slot == 1 for mark in stars)
    missing = [str(count) for count, mark in zip(right, stars, strict=True) if not mark.right]
    lacks = f"; missing: {join_some(missing)}" if missing else ""
    if wrong is None:
        return f"{sum(mark.right for mark in stars)} of {len(right)} stars are in the answer, {in_place} in their places{lacks}"
    only_right = sum(mark.right and not mark.wrong for mark in stars)
    both = sum(mark.right and mark.wrong for mark in stars)
    only_wrong = sum(mark.wrong and not mark.right for mark in stars)
    return (
        f"of {len(right)} stars the answer has only the right count for {only_right}, both for {both}, only the wrong one for "
        f"{only_wrong}; {in_place} in their places{lacks}"
    )
