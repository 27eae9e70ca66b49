"""A run's manifest: all that is needed to replay the run."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final, Literal, final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from longspan import __version__
from longspan.simulator.suite.experiment import Experiment
from longspan.simulator.suite.provenance import own_commit
from longspan.simulator.suite.settings import Branch, RunSettings

__all__ = ["ANSWERS", "ImportSource", "Manifest", "PlannedTest", "commit_definitions", "package_versions"]

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,80}$")]
"""The name of a conversation or a test. It may become the name of a folder."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

MAX_AGENT: Final = 100
"""The most characters of the agent's spec in a run's name."""


ANSWERS: Final = "answers"
"""The kind of an import of answers that were given elsewhere."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class PlannedTest(_Frozen):
    """A planned test of a run.

    `trunk`: the test that plays the history behind its questions. `tells`: the test only plays a history for other tests' questions, and is
    not graded. `tags`, `counts` and `recorded` come from its script.
    """

    id: Name
    scenario: str
    skills: list[str]
    chance: float = Field(ge=0, le=1)
    alone: bool = False
    trunk: Name | None = None
    tells: bool = False
    tags: list[str] = []
    counts: bool = True
    recorded: Sha256 | None = None


@final
class ImportSource(_Frozen):
    """The file that a run was imported from: the importer (`kind`), the path and the SHA-256."""

    kind: str
    file: str
    sha256: Sha256

    @property
    def only_answers(self) -> bool:
        """Whether only the answers were imported, and longspan scheduled the conversations, so that they can be replayed."""
        return self.kind == ANSWERS


@final
class Manifest(RunSettings):
    """A run's settings and its plan. `format` is 1 in runs of version 0.2, whose conversations depended on the agent's replies.

    `scenario_versions`: the versions of scenarios (see `Scenario.version`), if above 1.

    `data`: for each parameter that takes a path, such as `locomo.data`, the SHA-256 of the data there. Runs of earlier versions have none.

    `conversations`: the tests of each conversation, in the order they were created. `left_out`: the reasons why tests were left out.
    `late`: the scenarios that do not allow the requested early placement. `experiments`: additional conversations, by id, that do not count
    toward the score.

    `commitment` is the SHA-256 of `nonce`, the seed and the tests' definitions (see `commit_definitions`). Publish it before the run to
    prove later which tests were played. An `imported` run has no valid commitment and cannot be resumed.

    `parent`: the name of the folder of the run whose failed tests this one plays again. `created`: the creation time in UTC.
    `agent_commit`: the git commit of the agent's code, if known, with "-dirty" if the code has uncommitted changes. `run_nonce`: random for
    every run, even one that plays another run's tests. It is None in runs of earlier versions.

    Two attributes are not in the file. `allowed` lists the names in it that may be run, called or read (see `trust`). `folder` is the
    folder that it was read from, or None if it was created in this process.
    """

    format: Literal[1, 2] = 2
    filler_sha256: str | None = None
    definitions_sha256: str | None = None
    scenario_versions: dict[str, int] = Field(default_factory=dict)
    data: dict[str, Sha256] = Field(default_factory=dict)
    imported: ImportSource | None = None
    conversations: dict[Name, list[PlannedTest]]
    experiments: dict[Name, Experiment] = Field(default_factory=dict)
    left_out: list[str]
    late: list[str]
    nonce: str = Field(pattern=r"^[0-9a-f]{64}$")
    commitment: str = Field(pattern=r"^[0-9a-f]{64}$")
    versions: dict[str, str]
    created: AwareDatetime | None = None
    parent: str | None = Field(default=None, min_length=1, max_length=255)
    agent_commit: str | None = Field(default=None, pattern=r"^[0-9a-f]{40,64}(-dirty)?$")
    run_nonce: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    _allowed: frozenset[str] = PrivateAttr(default=frozenset())
    _folder: Path | None = PrivateAttr(default=None)

    @property
    def allowed(self) -> frozenset[str]:
        return self._allowed

    @property
    def folder(self) -> Path | None:
        return self._folder

    def with_agent(self, spec: str) -> Manifest:
        """Return the manifest for another agent, which plays the questions even if another system only answered them."""
        imported = None if self.imported is not None and self.imported.only_answers else self.imported
        return self.model_copy(update={"agent": spec, "imported": imported})

    def allow(self, names: Iterable[str]) -> None:
        """Allow anything with these names to be run, called or read. Only the gate (`trust`) calls this."""
        self._allowed |= frozenset(names)

    @classmethod
    def read(cls, folder: Path, content: bytes) -> Manifest:
        """Return the manifest of a run's folder, with nothing allowed. Raises pydantic's ValidationError."""
        manifest = cls.model_validate_json(content)
        manifest._folder = folder
        return manifest

    @model_validator(mode="after")
    def _check_trunks(self) -> Manifest:
        before: set[str] = set()
        for id in self.conversations:
            if id in self.trunks and self.trunks[id] not in before - self.trunks.keys():
                raise ValueError(f"conversation {id} branches from {self.trunks[id]}, which must come before it and must not be a branch")
            before.add(id)
        for id, experiment in self.experiments.items():
            tests = [planned.id for planned in self.conversations.get(experiment.conversation, [])]
            if id in before or experiment.test not in tests:
                raise ValueError(f"experiment {id} needs a unique id, and a planned test of its conversation")
            if (experiment.tokens is None) != (experiment.kind != "lesion"):
                raise ValueError(f"experiment {id}: a lesion must state its tokens, and no other experiment may")
        return self

    @property
    def run_name(self) -> str | None:
        """The name of the run in its files, which distinguishes them from files of other runs, or None if it has no nonce.

        It begins with a digest (64 bits in hexadecimal) of the nonce and of all that is fixed when a run is created. The suite, the seed
        and the agent follow, for people to read.
        """
        if self.run_nonce is None:
            return None
        source = self.imported.sha256 if self.imported is not None else None
        fixed = [self.run_nonce, self.commitment, self.suite.name, self.span, self.seed, self.agent, source]
        digest = hashlib.sha256(json.dumps(fixed).encode()).hexdigest()[:16]
        return f"{digest} {self.suite.name} seed {self.seed} {self.agent[:MAX_AGENT]}"

    @property
    def played(self) -> Sequence[str]:
        """The conversations that have a journal: first the run's own, then its experiments'."""
        return [*self.conversations, *self.experiments]

    def experiments_in(self, conversation: str) -> Sequence[str]:
        """Return the experiments that share the beginning of a conversation, by id, in the order they are played."""
        return [id for id, experiment in self.experiments.items() if experiment.shares and experiment.conversation == conversation]

    @property
    def controls(self) -> Sequence[str]:
        """The experiments that share nothing with another conversation, by id."""
        return [id for id, experiment in self.experiments.items() if not experiment.shares]

    @cached_property
    def trunks(self) -> Mapping[str, str]:
        """The conversation that each branch branches off from."""
        trunks = {}
        for id, group in self.conversations.items():
            told = next((planned.trunk for planned in group if planned.trunk is not None), None)
            if told is not None and all(planned.id != told for planned in group):
                trunks[id] = told
        return trunks

    def named(self, data: str) -> str:
        """Return the path that a parameter in `data` names, or "" if the suite has no such parameter."""
        scenario, _, parameter = data.rpartition(".")
        return str(self.suite.scenarios.get(scenario, {}).get(parameter, ""))

    @cached_property
    def asked(self) -> Branch:
        """How questions about histories are asked. "on" if there are no histories."""
        return self.branch if any(planned.trunk for _, planned in self.graded) else "on"

    @cached_property
    def roots(self) -> Mapping[str, str]:
        """The root of each test: the test that plays its history, or else its conversation. Only tests with different roots are
        independent.
        """
        return {planned.id: planned.trunk or id for id, planned in self.graded}

    @cached_property
    def graded(self) -> Sequence[tuple[str, PlannedTest]]:
        """The graded tests, each with its conversation. Tests that only play a history are left out."""
        return [(id, planned) for id, group in self.conversations.items() for planned in group if not planned.tells]

    @property
    def labelled(self) -> str:
        """The agent's spec, with the run's label and nights in brackets. Results treat another label, or other nights, as another agent."""
        nights = [f"{self.nights} {'night' if self.nights == 1 else 'nights'}"] if self.nights else []
        told = [*([self.label] if self.label is not None else []), *nights]
        return f"{self.agent} [{', '.join(told)}]" if told else self.agent

    @property
    def alone(self) -> bool:
        """Whether every test has its own conversation, so that there is no span."""
        return all(planned.alone for group in self.conversations.values() for planned in group)


def commit_definitions(nonce: str, seed: int, definitions: Iterable[dict[str, Any]]) -> str:
    """Return the commitment to a seed and its tests' definitions: the SHA-256, in hexadecimal, of their JSON with sorted keys."""
    content = {"nonce": nonce, "seed": seed, "tests": sorted(definitions, key=lambda definition: str(definition["test"]))}
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a run's result may depend on, and longspan's commit."""
    packages = ("tiktoken", "trio", "pydantic", "jinja2")
    own = {"longspan": __version__, "longspan_commit": own_commit() or "unknown"}
    return own | {"python": platform.python_version()} | {package: _version(package) for package in packages}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
