"""Summary of a Haystack: documents in one message or spread over a conversation, and a summary with sources."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final, Literal, final, get_args

from pydantic import Field, model_validator

from longspan.scenarios.shared.digests import hash_texts
from longspan.scenarios.shared.own_prompts import Places, fill_prompt, read_prompts
from longspan.scenarios.summhay.bullets import split_bullets
from longspan.scenarios.summhay.generated import generate_haystack
from longspan.scenarios.summhay.grading import TEMPLATES, Grading, grade_summary
from longspan.scenarios.summhay.haystacks import DOMAINS, LABELS, Domain, Haystack, Insight, Subtopic
from longspan.scenarios.summhay.retrievers import Position, Retriever, ShownDocument, arrange_documents, pick_best, score_documents
from longspan.scenarios.summhay.tables import scores_of, summhay_tables
from longspan.scenarios.summhay.topic_files import read_haystacks
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.graded_record import Grade, Marked, Record
from longspan.simulator.contract.queries import template
from longspan.simulator.contract.scenario import Measure, Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.contract.sheets import Sheet

__all__ = ["SummHay"]

PLACES: Final[Places] = {
    "ask": ("documents", "count", "topic", "participants", "subtopic", "query", "bullets"),
    "document": ("label", "number", "text"),
    "judge": ("insight", "bullets"),
}
"""The prompts that a user may supply: the message, each document in it, and the judge's. `count`: the number of documents shown."""

POSITIONS: Final[tuple[Position, ...]] = get_args(Position)


@final
class SummHay(Scenario):
    """Summarise about a hundred documents in answer to a query, with a bullet for each insight that cites its documents.

    Each subtopic of a haystack is a test. Without `data`, haystacks of `documents` documents of about `words` words are generated; with
    it, they are read from topic files. `delivery`: send documents and query in one message (message), or send documents as messages of
    the long conversation and the query a span later (interleave). `retriever`: select the documents to show; all but `full` take the
    best ones up to `budget` tokens. `position`: position of the relevant documents with `full`; "all" plays each subtopic in all four
    orders. `grading`: by rules, which is the default for generated haystacks and possible only there, or by the judge. `prompts`: a file
    with other prompts for the message and the judge.

    An insight that is in no document counts too, as in the authors' program. Only in the news domain are correspondingly fewer bullets
    requested.
    """

    name: ClassVar[str] = "summhay"
    skills: ClassVar[tuple[Skill, ...]] = ("recall", "information integration")
    topics: ClassVar[frozenset[str]] = frozenset({"documents"})

    domain: Domain | None = None
    retriever: Retriever = "full"
    delivery: Literal["message", "interleave"] = "message"
    position: Position | Literal["all"] = "stored"
    budget: int = Field(default=15_000, ge=100, le=100_000)
    embedder: str | None = None
    reranker: str | None = None
    grading: Grading | None = None
    subtopics: int = Field(default=9, ge=1, le=10)
    documents: int = Field(default=100, ge=20, le=110)
    words: int = Field(default=750, ge=100, le=1000)
    data: Path | None = None
    prompts: Path | None = None

    @model_validator(mode="after")
    def _fits(self) -> SummHay:
        if self.position != "stored" and self.retriever != "full":
            raise ValueError(f"position {self.position!r} is for retriever=full: the others sort documents themselves")
        if self.embedder is not None and self.retriever not in ("vect", "longe"):
            raise ValueError("embedder is for retriever=vect and retriever=longe")
        if self.reranker is not None and self.retriever != "rerank":
            raise ValueError("reranker is for retriever=rerank")
        if self.grading == "rules" and self.data is not None:
            raise ValueError("grading=rules is only for made-up haystacks, because the signs of others are unknown")
        if self.prompts is not None and self.delivery != "message":
            raise ValueError("prompts are for delivery=message")
        return self

    @property
    def measure(self) -> Measure:
        return Measure("joint score", made_up=self.data is None)

    def make(self, random: Random) -> Script:
        """Make a test about one subtopic. Raises InputError for unreadable data or an unusable model."""
        seed = str(random.random())
        haystack = random.choice(read_haystacks(self.data, self.domain)) if self.data else self._generate(random, seed)
        return self._script(haystack, random.choice(haystack.subtopics), random.choice(self._positions()), seed)

    def series(self, tests: int, seed: str) -> Iterable[tuple[str, Script]]:
        """Yield a test for each subtopic of `tests` haystacks and each requested position, named HAYSTACK-SUBTOPIC."""
        if self.data:
            every = read_haystacks(self.data, self.domain)[:tests]
        else:
            every = [self._generate(Random(f"{seed}/{number}"), f"{seed}/{number}") for number in range(1, tests + 1)]
        for number, haystack in enumerate(every, 1):
            for place, subtopic in enumerate(haystack.subtopics, 1):
                for position in self._positions():
                    suffix = f"-{position}" if self.position == "all" else ""
                    yield f"{number}-{place}{suffix}", self._script(haystack, subtopic, position, seed)

    def _generate(self, random: Random, name: str) -> Haystack:
        domain = self.domain or DOMAINS[0]
        return generate_haystack(random, domain=domain, subtopics=self.subtopics, documents=self.documents, words=self.words, name=name)

    def _positions(self) -> Sequence[Position]:
        return POSITIONS if self.position == "all" else (self.position,)

    def _script(self, haystack: Haystack, subtopic: Subtopic, position: Position, seed: str) -> Script:
        if self.retriever == "full":
            shown = arrange_documents(haystack, subtopic, position, seed)
        else:
            model = self.reranker if self.retriever == "rerank" else self.embedder
            shown = pick_best(haystack, score_documents(haystack, subtopic, self.retriever, seed, model), self.budget)
        own = read_prompts(self.prompts, PLACES, ("ask", "document")) if self.prompts else {}
        told = [insight for insight in subtopic.insights if haystack.sources[insight.id]]
        facts = {
            "domain": haystack.domain,
            "topic": haystack.topic,
            "subtopic": subtopic.subtopic,
            "query": subtopic.query,
            "source": _source(haystack, subtopic, position),
            "retriever": self.retriever,
            "position": position,
            "generated": haystack.generated,
            # As in the authors' program, only news summaries are asked for fewer bullets than insights.
            "bullets": len(told if haystack.domain == "news" else subtopic.insights),
            "shown": [each.number for each in shown],
            "insights": [_fact(haystack, insight) for insight in subtopic.insights],
        }
        if "judge" in own:
            facts["judge"] = own["judge"]
        ideal = "\n".join(f"- {_line(insight.text)} {sorted(haystack.sources[insight.id])}" for insight in told)
        lines = [*_lines(haystack, shown)] if self.delivery == "interleave" else []
        asked = _fill_message(own, facts, haystack, shown) if own else _render_question(facts, [] if lines else shown)
        needs = tuple(at for at, each in enumerate(shown) if any(each.number in haystack.sources[one.id] for one in told))
        lines.append(Line(asked, ideal=ideal, asks=True, needs=needs if lines else ()))
        farewell = f"That was all about this: {haystack.topic}. Those documents are of no use any more."
        recorded = None if haystack.generated else hash_texts([haystack.topic, *(document.text for document in haystack.documents)])
        return Script(facts=facts, lines=lines, alone=self.delivery == "message", farewell=farewell, recorded=recorded)

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        return grade_summary(facts, record, self.grading or ("rules" if facts["generated"] else "judge"))

    def metrics(self, tests: Sequence[Marked]) -> Mapping[str, float]:
        found = scores_of(item for test in tests for item in test.items if item.score is not None)
        return {} if found is None else {name: value for name, value in found._asdict().items() if value is not None}

    def tables(self, runs: Mapping[str, Sequence[Marked]]) -> Sequence[Table]:
        return summhay_tables(runs)

    def sheet(self, facts: Mapping[str, Any], record: Record) -> Sheet:
        """Return the sheet for a person who judges the summary."""
        claims = {insight["id"]: insight["text"] for insight in facts["insights"]}
        return Sheet(question=facts["query"], bullets=tuple(split_bullets(record.answer.reply)), claims=claims)


def _source(haystack: Haystack, subtopic: Subtopic, position: Position) -> str:
    """Return the source of a summary, which is the same in all runs with the same query and order, and in no others."""
    text = "\n".join([haystack.topic, subtopic.query, *(insight.text for insight in subtopic.insights)])
    known = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{subtopic.subtopic} ({known}{'' if position == 'stored' else f', {position}'})"


def _fact(haystack: Haystack, insight: Insight) -> dict[str, Any]:
    return {"id": insight.id, "text": insight.text, "documents": sorted(haystack.sources[insight.id]), "signs": sorted(insight.signs)}


def _line(text: str) -> str:
    """Return `text` on one line, since a line is a bullet, and without brackets, since brackets cite."""
    return " ".join(text.split()).replace("[", "(").replace("]", ")")


def _lines(haystack: Haystack, shown: Sequence[ShownDocument]) -> Iterator[Line]:
    for each in shown:
        yield Line(
            template(TEMPLATES, "show").render(label=LABELS[haystack.domain], number=each.number, topic=haystack.topic, text=each.text)
        )


def _fill_message(own: Mapping[str, str], facts: Mapping[str, Any], haystack: Haystack, shown: Sequence[ShownDocument]) -> str:
    """Return the message from the user's prompts."""
    label = LABELS[haystack.domain]
    documents = "".join(fill_prompt(own["document"], label=label, number=each.number, text=each.text) for each in shown)
    known = {name: facts[name] for name in ("topic", "subtopic", "query", "bullets")}
    return fill_prompt(own["ask"], documents=documents, count=len(shown), participants=", ".join(haystack.participants), **known)


def _render_question(facts: Mapping[str, Any], shown: Sequence[ShownDocument]) -> str:
    return template(TEMPLATES, "ask").render(facts, label=LABELS[facts["domain"]], documents=shown)
