"""What people say about summaries, claim by claim, beside the grader; and how far they agree with it and with each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from statistics import fmean
from typing import Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.errors import InputError, JournalError, first_problem
from longspan.simulator.grading.grades import Result, grade_run, scenarios_of
from longspan.simulator.judging.agreement import pearson
from longspan.simulator.judging.sheets import Sheet, Sheets
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.tables import Table

__all__ = ["LEVELS", "Agreement", "Annotation", "Level", "agreement", "agreements", "annotate", "open_claims", "said_by", "sheets"]

Level = Literal["full", "partial", "none"]

LEVELS: Final[Mapping[Level, float]] = {"full": 1.0, "partial": 0.5, "none": 0.0}
"""What a claim scores for being covered so far."""

GRADER: Final = "the grader"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Annotation(_Frozen):
    """What a person says of a claim: how far it is covered, and by which bullet, counted from 1; None for none."""

    test: str
    claim: str
    coverage: Level
    bullet: int | None = Field(ge=1)
    by: str = Field(min_length=1, max_length=100)


@final
class Agreement(NamedTuple):
    """How far two agree on `n` claims: Pearson's correlation of the coverage (None where one always says the same), the share of
    claims on whose coverage they agree, and the share of those both found covered (`linked`) for which they name one bullet."""

    n: int
    correlation: float | None
    same: float
    linked: int
    links: float | None


Said = Mapping[tuple[str, str], tuple[float, int | None]]
"""Coverage and bullet by test and claim."""


def sheets(run: RunFolder) -> dict[str, Sheet]:
    """The sheets of a run's tests that were played, by test. Raises InputError where none of its scenarios has any."""
    scenarios = {name: each for name, each in scenarios_of(run.manifest).items() if isinstance(each, Sheets)}
    if not scenarios:
        raise InputError(f"{run.path}: none of its tests can be annotated; those of the suite summhay can")
    found = {}
    for transcript in run.transcripts().values():
        for id, played in transcript.tests.items():
            scenario, facts = scenarios.get(played.definition.scenario), played.definition.facts
            if scenario is not None and facts is not None and played.status == "played":
                found[id] = scenario.sheet(facts, transcript.record(played))
    return found


def annotate(run: RunFolder, known: Mapping[str, Sheet], annotation: Annotation) -> None:
    """Keep what a person says; the last that one says of a claim counts. Raises InputError for what cannot be said of the run, and
    while another process plays it."""
    sheet = known.get(annotation.test)
    if sheet is None or annotation.claim not in sheet.claims:
        raise InputError(f"{run.path} has no claim {annotation.claim!r:.60} of a test {annotation.test!r:.60}")
    if (annotation.coverage == "none") != (annotation.bullet is None):
        raise InputError("a bullet is named for what is covered, and none for what is not")
    if annotation.bullet is not None and annotation.bullet > len(sheet.bullets):
        raise InputError(f"there is no bullet {annotation.bullet}; the summary has {len(sheet.bullets)}")
    with run.lock():
        run.add_annotation(annotation.model_dump())


def said_by(run: RunFolder) -> dict[str, dict[tuple[str, str], Annotation]]:
    """What each person said last of each claim, by person. Raises JournalError for a file that is not what `annotate` wrote."""
    found: dict[str, dict[tuple[str, str], Annotation]] = {}
    try:
        for each in map(Annotation.model_validate, run.annotations()):
            found.setdefault(each.by, {})[each.test, each.claim] = each
    except ValidationError as error:
        raise JournalError(f"{run.path / 'annotations.jsonl'}: not an annotation: {first_problem(error)}") from None
    return found


def agreements(run: RunFolder) -> Table:
    """How far each person agrees with the grades as they are now, and with each other."""
    said: dict[str, Said] = {GRADER: _graded(grade_run(run))}
    said |= {by: {key: (LEVELS[each.coverage], each.bullet) for key, each in those.items()} for by, those in said_by(run).items()}
    rows = []
    for first, second in combinations(said, 2):
        if (found := agreement(said[first], said[second])) is not None:
            rows.append([f"{second} and {first}", str(found.n), _share(found.correlation), _share(found.same), _share(found.links)])
    return Table(
        title="Agreement",
        columns=["who", "claims", "correlation", "same coverage", "same bullet"],
        rows=rows,
        note="Correlation: Pearson's, of coverage (1, 0.5, 0) over claims. Same bullet: of the claims that both found covered.",
    )


def agreement(first: Said, second: Said) -> Agreement | None:
    """How far two agree on the claims that both have judged; None where there is none."""
    shared = [(first[key], second[key]) for key in first if key in second]
    if not shared:
        return None
    links = [one[1] == two[1] for one, two in shared if one[1] is not None and two[1] is not None]
    return Agreement(
        n=len(shared),
        correlation=pearson([one[0] for one, _ in shared], [two[0] for _, two in shared]),
        same=fmean(one[0] == two[0] for one, two in shared),
        linked=len(links),
        links=fmean(links) if links else None,
    )


def _graded(result: Result) -> Said:
    items = ((test.id, item) for test in result.tests for item in test.items if item.score is not None and "coverage" in item.numbers)
    return {(test, item.name): (item.numbers["coverage"], _bullet(item.numbers.get("bullet"))) for test, item in items}


def _bullet(number: float | None) -> int | None:
    return None if number is None else int(number)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def open_claims(known: Mapping[str, Sheet], done: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The tests and claims that a person who has done those has still to judge, in order."""
    over = set(done)
    return [(test, claim) for test, sheet in known.items() for claim in sheet.claims if (test, claim) not in over]
