"""A run's manifest: everything that is needed to replay the run."""

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

from longspan.simulator.journal.experiment import Experiment
from longspan.simulator.suite.settings import Branch, RunSettings

__all__ = ["ImportSource", "Manifest", "PlannedTest", "commit", "versions"]

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,80}$")]
"""A name of a conversation or a test, which may become the name of a folder."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]

MAX_AGENT: Final = 100
"""The maximum number of characters of the agent in a run's name."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


@final
class PlannedTest(_Frozen):
    """A planned test of a run.

    `trunk`: the test that tells the history behind its questions. `tells`: the test only tells a history for others' questions, and is not
    graded. `tags`, `counts` and `recorded` come from its script.
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


@final
class Manifest(RunSettings):
    """A run's settings and its plan. `format` is 1 in runs of 0.2, whose conversations followed the agent's replies.

    `scenario_versions`: the version (see `Scenario.version`) of each scenario whose version is above 1.

    `data`: for each parameter that takes a path (`locomo.data`), the SHA-256 of the data there; runs of earlier versions have none.

    `conversations`: the tests of each conversation, in the order they were created. `left_out`: why tests were left out. `late`: the
    scenarios that do not allow the requested early placement. `experiments`: additional conversations, by id, that are not part of the
    score.

    `commitment` is the SHA-256 of `nonce`, the seed and the tests' definitions (see `commit`). Publish it before the run to prove later
    which tests were played. An `imported` run has no valid commitment and cannot be resumed.

    `parent`: the name of the run's folder whose failed tests it plays. `created`: when it was made, in UTC. `agent_commit`: the git commit
    of the agent's code, if known, with "-dirty" if the code had changed since. `run_nonce`: drawn for every run, even one that plays
    another's tests; None in runs of earlier versions.

    Two attributes are not in the file. `allowed` has the names in it that may be run, called or read (see `trust`). `folder` is the folder
    that it was read from; None if it was made here.
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

    def allow(self, names: Iterable[str]) -> None:
        """Allow anything with these names to be run, called or read. Only the gate calls this."""
        self._allowed |= frozenset(names)

    @classmethod
    def read(cls, folder: Path, content: bytes) -> Manifest:
        """Return the manifest in a run's folder, with nothing allowed. Raises pydantic's ValidationError."""
        manifest = cls.model_validate_json(content)
        manifest._folder = folder
        return manifest

    @model_validator(mode="after")
    def _check_trunks(self) -> Manifest:
        before: set[str] = set()
        for id in self.conversations:
            if id in self.trunks and self.trunks[id] not in before - self.trunks.keys():
                raise ValueError(f"conversation {id} branches from {self.trunks[id]}, which must come before it and be no branch")
            before.add(id)
        for id, experiment in self.experiments.items():
            tests = [planned.id for planned in self.conversations.get(experiment.conversation, [])]
            if id in before or experiment.test not in tests:
                raise ValueError(f"experiment {id} must have an id of its own, and a test that is planned in its conversation")
            if (experiment.tokens is None) != (experiment.kind != "lesion"):
                raise ValueError(f"experiment {id}: a lesion says how many tokens it leaves, and no other experiment does")
        return self

    @property
    def run_name(self) -> str | None:
        """The name of the run in its files, which distinguishes them from other runs'; None if it has no nonce.

        It begins with a digest (64 bits in hexadecimal) of the nonce and of everything fixed when a run is made. The suite, the seed and
        the agent follow, for people to read.
        """
        if self.run_nonce is None:
            return None
        source = self.imported.sha256 if self.imported is not None else None
        fixed = [self.run_nonce, self.commitment, self.suite.name, self.span, self.seed, self.agent, source]
        digest = hashlib.sha256(json.dumps(fixed).encode()).hexdigest()[:16]
        return f"{digest} {self.suite.name} seed {self.seed} {self.agent[:MAX_AGENT]}"

    @property
    def played(self) -> Sequence[str]:
        """The conversations that have a journal: the run's own, then its experiments'."""
        return [*self.conversations, *self.experiments]

    def experiments_in(self, conversation: str) -> Sequence[str]:
        """The experiments that share the beginning of a conversation, by id, in the order they are played."""
        return [id for id, experiment in self.experiments.items() if experiment.shares and experiment.conversation == conversation]

    @property
    def controls(self) -> Sequence[str]:
        """The experiments that share nothing with another conversation, by id."""
        return [id for id, experiment in self.experiments.items() if not experiment.shares]

    @cached_property
    def trunks(self) -> Mapping[str, str]:
        """The conversation that each branch branches off."""
        trunks = {}
        for id, group in self.conversations.items():
            told = next((planned.trunk for planned in group if planned.trunk is not None), None)
            if told is not None and all(planned.id != told for planned in group):
                trunks[id] = told
        return trunks

    def named(self, data: str) -> str:
        """The path that a parameter in `data` names; an empty string if its suite has no such parameter."""
        scenario, _, parameter = data.rpartition(".")
        return str(self.suite.scenarios.get(scenario, {}).get(parameter, ""))

    @cached_property
    def asked(self) -> Branch:
        """How the questions about histories are asked; "on" without histories."""
        return self.branch if any(planned.trunk for _, planned in self.graded) else "on"

    @cached_property
    def roots(self) -> Mapping[str, str]:
        """For each test, the test that tells its history, or else its conversation. Only tests with different roots are independent."""
        return {planned.id: planned.trunk or id for id, planned in self.graded}

    @cached_property
    def graded(self) -> Sequence[tuple[str, PlannedTest]]:
        """The graded tests, each with its conversation: all except those that only tell a history."""
        return [(id, planned) for id, group in self.conversations.items() for planned in group if not planned.tells]

    @property
    def labelled(self) -> str:
        """The agent's spec, with the run's label and its nights in brackets. Another label or other nights make it another agent in
        results."""
        nights = [f"{self.nights} {'night' if self.nights == 1 else 'nights'}"] if self.nights else []
        told = [*([self.label] if self.label is not None else []), *nights]
        return f"{self.agent} [{', '.join(told)}]" if told else self.agent

    @property
    def alone(self) -> bool:
        """Whether every test has its own conversation, and therefore no span to keep."""
        return all(planned.alone for group in self.conversations.values() for planned in group)


def commit(nonce: str, seed: int, definitions: Iterable[dict[str, Any]]) -> str:
    """Return the commitment to a seed and its tests' definitions: the SHA-256, in hexadecimal, of their JSON with sorted keys."""
    content = {"nonce": nonce, "seed": seed, "tests": sorted(definitions, key=lambda definition: str(definition["test"]))}
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a run's result may depend on."""
    packages = ("longspan", "tiktoken", "trio", "pydantic", "jinja2")
    return {"python": platform.python_version()} | {package: _version(package) for package in packages}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
