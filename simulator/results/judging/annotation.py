"""Human judgements of summaries, claim by claim, and their agreement with the grader and with each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from statistics import fmean
from typing import Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base.agreement import pearson
from longspan.simulator.base.blame import at_line, is_fault
from longspan.simulator.base.errors import InputError, JournalError, first_problem, one_line
from longspan.simulator.base.tables import Table
from longspan.simulator.contract.sheets import Sheet, Sheets
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.gradebook.gradebook import grade_run, scenarios_of
from longspan.simulator.results.result import Result

__all__ = [
    "LEVELS",
    "Agreement",
    "Annotation",
    "Level",
    "agreement_table",
    "annotations_by",
    "measure_agreement",
    "open_claims",
    "read_sheets",
    "save_annotation",
]

Level = Literal["full", "partial", "none"]

LEVELS: Final[Mapping[Level, float]] = {"full": 1.0, "partial": 0.5, "none": 0.0}
"""The score of a claim by its coverage."""

GRADER: Final = "the grader"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class Annotation(_Frozen):
    """A person's judgement of a claim: its coverage, and the bullet that covers it, counted from 1, or None."""

    test: str
    claim: str
    coverage: Level
    bullet: int | None = Field(ge=1)
    by: str = Field(min_length=1, max_length=100)


@final
class Agreement(NamedTuple):
    """The agreement of two raters on `n` claims.

    `correlation` is Pearson's correlation of the coverage, or None if one rater's coverage is constant. `same` is the share of claims with
    the same coverage. `linked` is the number of claims that both raters found covered, `links` the share of these with the same bullet.
    """

    n: int
    correlation: float | None
    same: float
    linked: int
    links: float | None


Ratings = Mapping[tuple[str, str], tuple[float, int | None]]
"""A rater's coverage and bullet for each claim, by test and claim."""


def read_sheets(run: RunFolder) -> dict[str, Sheet]:
    """Return the sheets of a run's played tests, by test.

    Raises InputError if no scenario of the run has sheets, and JournalError if a sheet cannot be made from the journal.
    """
    scenarios = {name: scenario for name, scenario in scenarios_of(run.manifest).items() if isinstance(scenario, Sheets)}
    if not scenarios:
        raise InputError(f"{run.path}: none of its tests has a sheet to annotate")
    found = {}
    for transcript in run.transcripts().values():
        for id, played in transcript.tests.items():
            scenario, facts = scenarios.get(played.definition.scenario), played.definition.facts
            if scenario is not None and facts is not None and played.status == "played":
                try:
                    found[id] = scenario.sheet(facts, transcript.record(played))
                except BaseException as error:
                    if not is_fault(error):
                        raise
                    why = f"{one_line(error)}{at_line(error, type(scenario))}"
                    raise JournalError(f"{run.path}: test {id} cannot be annotated: {why}") from error
    return found


def save_annotation(run: RunFolder, known: Mapping[str, Sheet], annotation: Annotation) -> None:
    """Save a judgement. A person's last judgement of a claim counts.

    Raises InputError if the judgement does not fit the run, or if another process is playing the run.
    """
    sheet = known.get(annotation.test)
    if sheet is None or annotation.claim not in sheet.claims:
        raise InputError(f"{run.path} has no claim {annotation.claim!r:.60} of a test {annotation.test!r:.60}")
    if (annotation.coverage == "none") != (annotation.bullet is None):
        raise InputError("a bullet is required for coverage full and partial, and must be null for none")
    if annotation.bullet is not None and annotation.bullet > len(sheet.bullets):
        raise InputError(f"bullet {annotation.bullet} does not exist; the summary has {len(sheet.bullets)}")
    with run.lock():
        run.add_annotation(annotation.model_dump())


def annotations_by(run: RunFolder) -> dict[str, dict[tuple[str, str], Annotation]]:
    """Return each person's last judgement of each claim, by person. Raises JournalError for a damaged file."""
    by_person: dict[str, dict[tuple[str, str], Annotation]] = {}
    try:
        for annotation in map(Annotation.model_validate, run.annotations()):
            by_person.setdefault(annotation.by, {})[annotation.test, annotation.claim] = annotation
    except ValidationError as error:
        raise JournalError(f"{run.path / 'annotations.jsonl'}: not an annotation: {first_problem(error)}") from None
    return by_person


def agreement_table(run: RunFolder) -> Table:
    """Return a table of each person's agreement with the current grades and with the other people."""
    ratings: dict[str, Ratings] = {GRADER: _grader_ratings(grade_run(run))}
    ratings |= {
        by: {claim: (LEVELS[annotation.coverage], annotation.bullet) for claim, annotation in by_claim.items()}
        for by, by_claim in annotations_by(run).items()
    }
    rows = []
    for first, second in combinations(ratings, 2):
        if (both := measure_agreement(ratings[first], ratings[second])) is not None:
            rows.append([f"{second} and {first}", str(both.n), _share(both.correlation), _share(both.same), _share(both.links)])
    return Table(
        title="Agreement",
        columns=["raters", "claims", "correlation", "same coverage", "same bullet"],
        rows=rows,
        note="Correlation: Pearson's, of coverage (1, 0.5, 0) over claims. Same bullet: among claims that both found covered.",
    )


def measure_agreement(first: Ratings, second: Ratings) -> Agreement | None:
    """Measure the agreement of two raters on the claims that both have judged. Returns None if they share no claim."""
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


def _grader_ratings(result: Result) -> Ratings:
    items = ((test.id, item) for test in result.tests for item in test.items if item.score is not None and "coverage" in item.numbers)
    return {(test, item.name): (item.numbers["coverage"], _bullet(item.numbers.get("bullet"))) for test, item in items}


def _bullet(number: float | None) -> int | None:
    return None if number is None else int(number)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def open_claims(known: Mapping[str, Sheet], done: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the tests and claims that are not in `done`, in order."""
    judged = set(done)
    return [(test, claim) for test, sheet in known.items() for claim in sheet.claims if (test, claim) not in judged]
