"""Publishing a run's scores without giving its tests away, and opening the commitment later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator import events
from longspan.simulator.definitions import tests_of
from longspan.simulator.errors import InputError, first_problem
from longspan.simulator.files import write_json
from longspan.simulator.grading.grades import Gradebook, Result, ScenarioResult, grade_run
from longspan.simulator.manifest import Manifest, commit
from longspan.simulator.run_folder import RunFolder

__all__ = ["Check", "Published", "publish", "read_published", "verify"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class PublishedTest(_Frozen):
    """One test's outcome, without a word of it."""

    id: str
    scenario: str
    score: float | None
    machine_score: float | None
    certified: bool
    at_distance: bool


@final
class Published(_Frozen):
    """A run's scores and the commitment that ties them to the run, without its seed, its texts and its nonce.

    Nor does it hold token counts: with an agent that always replies alike, they tell one seed from another.
    """

    format: Literal[1] = 1
    commitment: str = Field(pattern=r"^[0-9a-f]{64}$")
    suite: str
    span: int
    agent: str
    placement: str
    isolated: bool
    tokenizer: str
    score: float | None
    score_bounds: tuple[float, float]
    max_score: int
    scenarios: dict[str, ScenarioResult]
    tests: list[PublishedTest]
    versions: dict[str, str]


class Check(NamedTuple):
    """One thing that `verify` looked at, whether it held, and what was found."""

    name: str
    holds: bool
    found: str


def publish(run: RunFolder, path: Path) -> Published:
    """Write a run's scores to `path`, without what would give its tests away. Raises InputError where that is taken."""
    _refuse_import(run)
    result = grade_run(run)
    if any(test.status == "unfinished" for test in result.tests):
        raise InputError(f"{run.path} is not finished; `longspan resume` plays it to its end")
    published = _published(run.manifest, result)
    if path.exists():
        raise InputError(f"{path}: exists already; name another file with --out")
    try:
        write_json(path, published)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    return published


def read_published(path: Path) -> Published:
    """What `publish` wrote. Raises InputError for anything else."""
    try:
        return Published.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{path}: not published scores: {first_problem(error)}") from None


def verify(published: Published, run: RunFolder) -> Iterator[Check]:
    """Open the commitment: whether the published scores are those of this run, and of the tests committed to.

    Yields each check as it is made. Raises JournalError for a run that cannot be read.
    """
    _refuse_import(run)
    manifest = run.manifest
    made = {id: test.definition() for id, test in tests_of(manifest).items()}
    ids = [plan.id for group in manifest.conversations.values() for plan in group]
    known = all(id in made for id in ids)
    opened = commit(manifest.nonce, manifest.seed, [made[id] for id in ids]) if known else "tests this longspan does not make"
    yield Check("commitment", opened == published.commitment, f"published {published.commitment[:16]}..., the run gives {opened[:16]}...")
    gradebook = Gradebook.of(run)
    played = [test.definition for transcript in gradebook.transcripts.values() for test in transcript.tests.values()]
    other = [event.test for event in played if not _is(event, made.get(event.test))]
    yield Check("tests", not other, f"{len(played)} tests were played as committed to" if not other else f"others: {', '.join(other)}")
    now = _published(manifest, gradebook.result(run))
    differing = [name for name in Published.model_fields if getattr(now, name) != getattr(published, name) and name != "versions"]
    yield Check("scores", not differing, "graded again, they are as published" if not differing else f"differ in {', '.join(differing)}")


def _refuse_import(run: RunFolder) -> None:
    if run.manifest.imported is not None:
        raise InputError(f"{run.path} was imported: nobody committed to its tests before they were played, so that nothing can be proven")


def _published(manifest: Manifest, result: Result) -> Published:
    return Published(
        commitment=manifest.commitment,
        placement=manifest.placement,
        isolated=manifest.isolated,
        tokenizer=manifest.tokenizer,
        versions=manifest.versions,
        tests=[PublishedTest.model_validate(test.model_dump(include=set(PublishedTest.model_fields))) for test in result.tests],
        **{name: getattr(result, name) for name in ("suite", "span", "agent", "score", "score_bounds", "max_score", "scenarios")},
    )


def _is(event: events.Open, defined: dict[str, Any] | None) -> bool:
    """Whether the test that opened is the one that is defined so."""
    return defined is not None and {name: getattr(event, name) for name in defined} == defined
