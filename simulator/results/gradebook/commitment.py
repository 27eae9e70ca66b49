"""Publication of a run's scores without its tests, and later verification against the commitment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.files.checksums import verify_checksum
from longspan.simulator.base.files.file_io import read_packed, write_json
from longspan.simulator.contract.scenario import Test
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import PlayedTest
from longspan.simulator.results.gradebook.gradebook import Gradebook, grade_run
from longspan.simulator.results.result import Result, ScenarioResult
from longspan.simulator.suite.definitions import tests_of
from longspan.simulator.suite.manifest import Manifest, commit_definitions

__all__ = ["Published", "ScoreCheck", "publish_scores", "read_published", "verify_scores"]


MAX_BYTES: Final = 1 << 26
"""The maximum bytes of a file of published scores. A test takes about 200 bytes."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class PublishedTest(_Frozen):
    """One test's result, without its text."""

    id: str
    scenario: str
    score: float | None
    machine_score: float | None
    certified: bool | None
    at_distance: bool


@final
class Published(_Frozen):
    """A run's scores and the commitment that ties them to the run, without its seed, its text or its nonce.

    It has no token counts either, because they would reveal the seed if the agent is deterministic.
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
    measured: str = "score"
    scenarios: dict[str, ScenarioResult]
    tests: list[PublishedTest]
    versions: dict[str, str]


class ScoreCheck(NamedTuple):
    """A check made by `verify_scores`: whether it passed, and the finding in words."""

    name: str
    holds: bool
    found: str


def publish_scores(run: RunFolder, path: Path) -> Published:
    """Write a run's scores to `path` without revealing its tests. Raises InputError if `path` exists."""
    _refuse_import(run)
    result = grade_run(run)
    if any(test.status == "unfinished" for test in result.tests):
        raise InputError(f"{run.path}: not finished; `longspan resume` finishes it")
    published = _make_published(run.manifest, result)
    if path.exists():
        raise InputError(f"{path}: already exists; choose another file with --out")
    try:
        write_json(path, published)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    return published


def read_published(path: Path) -> Published:
    """Read a file written by `publish_scores`. Raises InputError for anything else."""
    try:
        content = read_packed(path, MAX_BYTES, "name a file that `longspan publish` wrote")
        return Published.model_validate_json(verify_checksum(content, path, "get the file again as it was published"))
    except ValidationError as error:
        raise InputError(f"{path}: not published scores: {first_problem(error)}") from None


def verify_scores(published: Published, run: RunFolder) -> Iterator[ScoreCheck]:
    """Check that published scores belong to this run, and that it played the tests it committed to.

    Yields each check when it is done. Raises JournalError for a damaged journal.
    """
    _refuse_import(run)
    manifest = run.manifest
    tests = tests_of(manifest)
    ids = list(dict.fromkeys(plan.id for group in manifest.conversations.values() for plan in group))
    known = all(id in tests for id in ids)
    opened = (
        commit_definitions(manifest.nonce, manifest.seed, [tests[id].definition() for id in ids])
        if known
        else "tests unknown to this version"
    )
    yield ScoreCheck(
        "commitment", opened == published.commitment, f"published {published.commitment[:16]}..., the run gives {opened[:16]}..."
    )
    gradebook = Gradebook.of(run)
    played = [test for transcript in gradebook.transcripts.values() for test in transcript.tests.values()]
    others = [test.id for test in played if not _matches(test, tests.get(test.id))]
    finding = f"not as committed to: {', '.join(others)}" if others else f"{len(played)} tests were played as committed to"
    yield ScoreCheck("tests", not others, finding)
    current = _make_published(manifest, gradebook.result(run))
    # Only fields that the file has are compared: an older version may not have written the others.
    given = [name for name in Published.model_fields if name in published.model_fields_set and name != "versions"]
    differing = [name for name in given if getattr(current, name) != getattr(published, name)]
    finding = f"they differ in {', '.join(differing)}" if differing else "they are as published"
    yield ScoreCheck("scores", not differing, f"graded again, {finding}")


def _refuse_import(run: RunFolder) -> None:
    if run.manifest.imported is not None:
        raise InputError(f"{run.path}: an imported run has no commitment from before it was played, so nothing can be verified")


def _make_published(manifest: Manifest, result: Result) -> Published:
    # A scenario's description is text, which published scores must not contain.
    return Published(
        commitment=manifest.commitment,
        placement=manifest.placement,
        isolated=manifest.isolated,
        tokenizer=manifest.tokenizer,
        versions=manifest.versions,
        scenarios={name: scenario.model_copy(update={"about": ""}) for name, scenario in result.scenarios.items()},
        tests=[PublishedTest.model_validate(test.model_dump(include=set(PublishedTest.model_fields))) for test in result.tests],
        **{name: getattr(result, name) for name in ("suite", "span", "agent", "score", "score_bounds", "max_score", "measured")},
    )


def _matches(played: PlayedTest, test: Test | None) -> bool:
    """Return whether a test was played as defined, and whether its past turns match its lines."""
    if test is None:
        return False
    if played.tells:
        lines = [(line.text, line.reply) for line in test.script.lines]
        if lines[: len(played.exchanges)] != [(exchange.text, exchange.reply) for exchange in played.exchanges]:
            return False
    forms = (test.opening(), test.definition())  # journals of 0.3 contain the whole definition
    return any({name: getattr(played.definition, name) for name in form} == form for form in forms)
