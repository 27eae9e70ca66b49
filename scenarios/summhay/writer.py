"""Write a haystack with a model, in the paper's order (section 3.1): subtopics, their insights, then the documents.

Each result is checked. Failures are written again, and dropped if they keep failing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field

from longspan.scenarios.summhay.checks import MIN_SOURCES, is_specific, nearly_same_words
from longspan.scenarios.summhay.generated import PER_DOCUMENT, plan_documents
from longspan.scenarios.summhay.haystacks import Document, Domain, Haystack, Insight, Subtopic
from longspan.scenarios.summhay.topic_files import dump_topic
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.fields import Seed
from longspan.simulator.contract.queries import Answer, Free, Query, fence, template
from longspan.simulator.running.data_writers import Asks, WrittenData

__all__ = ["HaystackWriter"]

TEMPLATES: Final = Path(__file__).parent / "templates"

MAX_ATTEMPTS: Final = 3
"""Maximum number of attempts at each part. Later attempts include the faults of earlier ones."""

LENGTHS: Final = (0.5, 1.6)
"""Bounds of a document's length, as multiples of the requested words."""

MIN_INSIGHTS: Final = 3
"""Minimum number of insights of a subtopic. With fewer it is too narrow (section 3.1)."""


class Named(Answer):
    name: str
    subtopic: str
    query: str


class Subtopics(Answer):
    """Subtopics of a topic, each with a question that asks for it."""

    subtopics: list[Named]


class Said(Answer):
    name: str
    insight: str


class Insights(Answer):
    """What can be learnt about a subtopic."""

    insights: list[Said]


class Numbers(Answer):
    """Numbers of the things in a list that something is true of."""

    numbers: list[int]


@final
class HaystackSettings(BaseModel):
    """`topic`: a sentence; for conversations, who talks about what; for news, the events."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str = Field(min_length=10, max_length=500)
    domain: Domain = "conversation"
    name: str = Field(default="written", pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")
    subtopics: int = Field(default=9, ge=1, le=20)
    insights: int = Field(default=7, ge=MIN_INSIGHTS, le=12)
    documents: int = Field(default=100, ge=4, le=200)
    words: int = Field(default=750, ge=50, le=1500)
    seed: Seed = 0


@final
class HaystackWriter:
    """Writes a topic file, which `--data summhay=DIR` plays."""

    Settings: type[BaseModel] = HaystackSettings
    name: ClassVar[str] = "summhay"

    async def write(self, settings: HaystackSettings, asks: Asks, told: Callable[[str], None]) -> WrittenData:
        """Write a haystack. Raises InputError if the result is unusable."""
        writing = _HaystackDraft(settings, asks, told)
        haystack = await writing.haystack()
        file = dump_topic(haystack, {"written": True, "dropped": writing.notes})
        return WrittenData({f"topic_{settings.name}.json": file}, writing.notes)


@final
class _Draft(NamedTuple):
    """A draft of a document: its number, its planned insights, its text, and the faults of the last version."""

    number: int
    plan: Sequence[Insight]
    text: str = ""
    wrong: str = ""


@final
class _HaystackDraft:
    """A haystack being written. `notes`: the parts that were dropped, with reasons."""

    def __init__(self, settings: HaystackSettings, asks: Asks, told: Callable[[str], None]) -> None:
        self._set = settings
        self._asks = asks
        self._told = told
        self.notes: list[str] = []

    async def haystack(self) -> Haystack:
        subtopics = await self._insights(await self._subtopics())
        self._told(f"{len(subtopics)} subtopics, {sum(len(each.insights) for each in subtopics)} insights")
        documents = await self._documents(subtopics)
        self._told(f"{len(documents)} documents")
        return self._keep_usable(subtopics, documents)

    def _query(self, name: str, answer: type[Any], **values: Any) -> Query[Any]:
        prompt = template(TEMPLATES, f"write_{name}").render(values, topic=self._set.topic, domain=self._set.domain)
        return Query(prompt=prompt, answer=answer, version=f"summhay {name} 1")

    async def _one(self, query: Query[Any]) -> Any:
        """Return the answer to a query. Raises InputError if the writer fails."""
        (answer,) = await self._asks.ask_all([query])
        if isinstance(answer, str):
            raise InputError(f"the writer gave no usable answer: {answer}; repeat the command to ask again")
        return answer

    # subtopics

    async def _subtopics(self) -> list[Named]:
        """Return the requested number of subtopics. They are distinct, and the model considers none too narrow or too close to another."""
        kept: list[Named] = []
        wrong: list[str] = []
        for _ in range(MAX_ATTEMPTS):
            missing = self._set.subtopics - len(kept)
            if not missing:
                break
            query = self._query("subtopics", Subtopics, count=missing, kept=kept, wrong=wrong)
            found = [each for each in (await self._one(query)).subtopics if each.subtopic.strip() and each.query.strip()][:missing]
            fresh: list[Named] = []
            for each in found:
                twin = next(
                    (one.subtopic for one in (*kept, *fresh) if one.name == each.name or nearly_same_words(one.subtopic, each.subtopic)),
                    None,
                )
                if twin is None:
                    fresh.append(each)
                else:
                    wrong.append(f"{each.subtopic} (too near {twin})")
            bad = await self._numbers("check_subtopics", len(fresh), kept=kept, fresh=fresh)
            wrong += [f"{fresh[number - 1].subtopic} (too near another, or too narrow)" for number in sorted(bad)]
            kept += [each for number, each in enumerate(fresh, 1) if number not in bad]
        if not kept:
            raise InputError("the writer found no distinct subtopics; give it a wider topic")
        if len(kept) < self._set.subtopics:
            self.notes.append(f"there are {len(kept)} of {self._set.subtopics} subtopics; rejected: {'; '.join(wrong)[:500]}")
        return kept

    async def _numbers(self, name: str, count: int, **values: Any) -> set[int]:
        """Return the numbers that the model gives, from 1 to `count`."""
        if not count:
            return set()
        answer = await self._one(self._query(name, Numbers, **values))
        return {number for number in answer.numbers if 1 <= number <= count}

    # insights

    async def _insights(self, named: Sequence[Named]) -> list[Subtopic]:
        """Return the subtopics with their insights, which are specific, distinct, and about this subtopic only."""
        kept: dict[int, list[Said]] = {number: [] for number in range(len(named))}
        wrong: dict[int, list[str]] = {number: [] for number in range(len(named))}
        for _ in range(MAX_ATTEMPTS):
            open_ = [number for number, each in kept.items() if len(each) < self._set.insights]
            queries = [
                self._query(
                    "insights",
                    Insights,
                    count=self._set.insights - len(kept[number]),
                    subtopic=named[number],
                    kept=kept[number],
                    wrong=wrong[number],
                    others=[each for at, each in enumerate(named) if at != number],
                )
                for number in open_
            ]
            for number, answer in zip(open_, await self._asks.ask_all(queries), strict=True):
                fresh = [] if isinstance(answer, str) else answer.insights[: self._set.insights - len(kept[number])]
                good = self._keep_new(fresh, [one for each in kept.values() for one in each], wrong[number])
                values = {"subtopic": named[number], "fresh": good, "subtopics": named, "kept": kept[number]}
                bad = await self._numbers("check_insights", len(good), **values)
                wrong[number] += [f"{good[at - 1].insight} (belongs elsewhere, or was said before)" for at in sorted(bad)]
                kept[number] += [each for at, each in enumerate(good, 1) if at not in bad]
        return self._whole(named, kept, wrong)

    def _keep_new(self, fresh: Sequence[Said], known: Sequence[Said], wrong: list[str]) -> list[Said]:
        """Return the insights that are specific and new, and add the faults of the others to `wrong`."""
        good: list[Said] = []
        for each in fresh:
            if not is_specific(each.insight):
                wrong.append(f"{each.insight} (names no number, date or name)")
            elif any(nearly_same_words(each.insight, one.insight) for one in (*known, *good)):
                wrong.append(f"{each.insight} (said before)")
            else:
                good.append(each)
        return good

    def _whole(self, named: Sequence[Named], kept: Mapping[int, list[Said]], wrong: Mapping[int, list[str]]) -> list[Subtopic]:
        found = []
        for number, each in enumerate(named):
            said = kept[number]
            if len(said) < self._set.insights:
                self.notes.append(f"subtopic {each.name}: {len(said)} of {self._set.insights} insights: {'; '.join(wrong[number])[:500]}")
            if len(said) < min(MIN_INSIGHTS, self._set.insights):
                self.notes.append(f"subtopic {each.name} was left out: it has too few insights")
                continue
            insights = tuple(Insight(f"i{number + 1}-{k}", one.name, one.insight) for k, one in enumerate(said, 1))
            found.append(Subtopic(f"s{number + 1}", each.name, each.subtopic, each.query, insights))
        if not found:
            raise InputError("the writer found no subtopic with enough insights; give it a wider topic")
        return found

    # documents

    async def _documents(self, subtopics: Sequence[Subtopic]) -> list[Document]:
        """Return documents that contain all of their planned insights and no others."""
        every = [insight for subtopic in subtopics for insight in subtopic.insights]
        planned = plan_documents(Random(f"{self._set.seed}/plans"), subtopics, self._set.documents, *PER_DOCUMENT[self._set.domain])
        drafts = [_Draft(number, plan) for number, plan in enumerate(planned, 1)]
        done: dict[int, _Draft] = {}
        for _ in range(MAX_ATTEMPTS):
            drafts = await self._check_drafts(await self._texts(drafts), every, done)
        self.notes += [f"document {draft.number} was left out: {draft.wrong}" for draft in drafts]
        ids = {number: tuple(insight.id for insight in draft.plan) for number, draft in done.items()}
        return [Document(f"d{number}", done[number].text, ids[number]) for number in sorted(done)]

    async def _texts(self, drafts: Sequence[_Draft]) -> list[_Draft]:
        values = [{"number": each.number, "plan": each.plan, "wrong": each.wrong, "words": self._set.words} for each in drafts]
        answers = await self._asks.ask_all([self._query("document", Free, **each) for each in values])
        return [
            draft._replace(text="", wrong=answer) if isinstance(answer, str) else draft._replace(text=answer.text.strip(), wrong="")
            for draft, answer in zip(drafts, answers, strict=True)
        ]

    async def _check_drafts(self, drafts: Sequence[_Draft], every: Sequence[Insight], done: dict[int, _Draft]) -> list[_Draft]:
        """Add the good drafts to `done`, and return the others with their faults."""
        told = {draft.text for draft in done.values()}
        failed = []
        asked = []
        for draft in drafts:
            if wrong := draft.wrong or self._plainly_wrong(draft, told):
                failed.append(draft._replace(wrong=wrong))
            else:
                told.add(draft.text)
                asked.append(draft)
        queries = [self._query("check_document", Numbers, text=each.text, insights=every, fence=fence(each.text)) for each in asked]
        for draft, answer in zip(asked, await self._asks.ask_all(queries), strict=True):
            if wrong := _differs(draft.plan, every, answer):
                failed.append(draft._replace(wrong=wrong))
            else:
                done[draft.number] = draft
        return sorted(failed)

    def _plainly_wrong(self, draft: _Draft, told: Iterable[str]) -> str:
        shortest, longest = (share * self._set.words for share in LENGTHS)
        words = len(draft.text.split())
        if not shortest <= words <= longest:
            return f"it has {words} words instead of {self._set.words}"
        return "it is the same as another" if draft.text in told else ""

    # the rest

    def _keep_usable(self, subtopics: Sequence[Subtopic], documents: Sequence[Document]) -> Haystack:
        """Return the haystack without insights that are in too few documents, and without subtopics that have lost all insights."""
        held = {insight.id: sum(insight.id in each.insights for each in documents) for each in subtopics for insight in each.insights}
        rare = {insight for insight, count in held.items() if count < MIN_SOURCES}
        self.notes += [f"insight {insight} was left out: it is in {held[insight]} documents" for insight in sorted(rare)]
        left = []
        for each in subtopics:
            insights = tuple(insight for insight in each.insights if insight.id not in rare)
            if insights:
                left.append(Subtopic(each.id, each.name, each.subtopic, each.query, insights))
            else:
                self.notes.append(f"subtopic {each.name} was left out: none of its insights is left")
        if not left:
            raise InputError("too few documents have their planned insights, so no haystack can be made; use another writer")
        texts = tuple(Document(each.id, each.text, tuple(one for one in each.insights if one not in rare)) for each in documents)
        return Haystack(self._set.name, self._set.domain, self._set.topic, tuple(left), texts)


def _differs(plan: Sequence[Insight], every: Sequence[Insight], answer: Numbers | str) -> str:
    """Describe the faults of a document that contains the insights in `answer`; "" if they are the planned ones."""
    if isinstance(answer, str):
        return answer
    said = {every[number - 1].id for number in answer.numbers if 1 <= number <= len(every)}
    missing = [each.text for each in plan if each.id not in said]
    foreign = [each.text for each in every if each.id in said and each not in plan]
    wrong = {"it does not say this": missing, "it must not say this": foreign}
    return "; ".join(f"{what}: {' / '.join(texts)}" for what, texts in wrong.items() if texts)
