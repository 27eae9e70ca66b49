"""Plans: the tests a run is to play, made from its settings or from a manifest, and checked before anything is written."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from secrets import token_hex
from typing import final

from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.conversation import Setting
from longspan.simulator.definitions import read_definitions, tests_for, tests_of
from longspan.simulator.errors import InputError
from longspan.simulator.filler.almanac import Almanac
from longspan.simulator.filler.filler import Filler, Source
from longspan.simulator.filler.trivia import Trivia
from longspan.simulator.judging.cached_model import check_model
from longspan.simulator.manifest import Manifest, PlannedTest, commit, versions
from longspan.simulator.plugins import make_scenario
from longspan.simulator.scenario import Test
from longspan.simulator.settings import RunSettings
from longspan.simulator.suite import Suite
from longspan.simulator.tokens import Tokenizer

__all__ = ["Plan", "plan", "replan", "setting_of"]


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """A run about to be played: its manifest, the tests of each conversation, and where it will land."""

    manifest: Manifest
    tests: dict[str, list[Test]]
    agent: AgentSpec
    out: Path

    @property
    def name(self) -> str:
        """The folder's name, where it is not taken."""
        manifest = self.manifest
        span = f"-{manifest.span // 1000}k" if manifest.span % 1000 == 0 else f"-{manifest.span}"
        span = "" if manifest.alone else span
        agent = re.sub(r"[^A-Za-z0-9.]+", "-", manifest.agent).strip("-.")[:60] or "agent"
        mode = ("-definitions" if manifest.definitions else "") + ("-isolated" if manifest.isolated else "")
        return f"{manifest.suite.name}{span}{mode}-{agent}-seed{manifest.seed}"


def plan(settings: RunSettings, out: Path) -> Plan:
    """Make a run's tests, or take those of its definitions, and check all that can be checked before anything is written.

    Raises InputError for what is wrong, also where no test fits into the span.
    """
    spec = AgentSpec.parse(settings.agent)
    make_agent(spec)
    if settings.judge is not None:
        check_model(settings.judge)
    definitions = read_definitions(settings.definitions) if settings.definitions else None
    if definitions is not None and settings.placement == "early":
        raise InputError("--placement early places generated tests only: definitions say themselves where their lines go")
    settings = settings.model_copy(
        update={
            "suite": settings.suite.counted_in(settings.tokenizer),
            "agent": str(spec),
            "filler": settings.filler.resolve() if settings.filler else None,
            "definitions": definitions.folder if definitions else None,
        }
    )
    setting = _setting(settings, "all")
    tests: list[Test] = []
    made, dropped = tests_for(settings.suite, settings.seed, settings.span, definitions)
    for test in made:
        why = setting.left_out(test)
        if why is None:
            tests.append(test)
        else:
            dropped.append(why)
    if not tests:
        raise InputError(f"no test of suite {settings.suite.name} fits into a span of {settings.span:,} tokens: {dropped[0]}")
    conversations = {test.id: [test] for test in tests if settings.isolated or test.script.alone}
    if woven := [test for test in tests if test.id not in conversations]:
        conversations = {"main": woven} | conversations
    nonce = token_hex(32)
    manifest = Manifest(
        **dict(settings),
        filler_sha256=_sha256(settings.filler) if settings.filler else None,
        definitions_sha256=definitions.sha256 if definitions else None,
        conversations={id: [_planned(test) for test in group] for id, group in conversations.items()},
        left_out=dropped,
        late=_late(settings.suite) if settings.placement == "early" else [],
        nonce=nonce,
        commitment=commit(nonce, settings.seed, (test.definition() for test in tests)),
        versions=versions(),
    )
    return Plan(manifest, conversations, spec, out)


def replan(manifest: Manifest, agent: str, out: Path) -> Plan:
    """The plan of a run that has a manifest, for `agent`. Raises InputError where this longspan makes other tests of it, and for
    a run that was imported: nobody knows what would have come next."""
    if manifest.imported is not None:
        raise InputError(
            f"the run was imported from {manifest.imported.file}: it cannot be gone on with, nor played with another agent; "
            "`longspan run ltm --definitions DIR --agent SPEC` plays its tests"
        )
    made = tests_of(manifest)
    ids = [plan.id for group in manifest.conversations.values() for plan in group]
    if any(id not in made for id in ids):
        raise InputError("the manifest lists tests that its suite does not make: it was changed, or made by another longspan")
    if manifest.filler is not None and _sha256(manifest.filler) != manifest.filler_sha256:
        raise InputError(f"filler {manifest.filler}: not the file that the run was made with")
    definitions = (made[id].definition() for id in ids)
    if commit(manifest.nonce, manifest.seed, definitions) != manifest.commitment:
        raise InputError(
            "the tests made from the manifest are not those it was made with: a scenario, its data or the manifest has changed, "
            f"or the run needs another longspan (it was made with {manifest.versions.get('longspan')})"
        )
    tests = {id: [made[plan.id] for plan in group] for id, group in manifest.conversations.items()}
    return Plan(manifest, tests, AgentSpec.parse(agent), out)


def _planned(test: Test) -> PlannedTest:
    scenario = test.scenario
    chance = scenario.chance(test.script.facts)
    return PlannedTest(id=test.id, scenario=scenario.name, skills=list(scenario.skills), chance=chance, alone=test.script.alone)


def _late(suite: Suite) -> list[str]:
    """The scenarios whose form forbids early placement."""
    return [name for name, parameters in suite.scenarios.items() if not make_scenario(name, parameters).early]


def setting_of(manifest: Manifest, conversation: str) -> Setting:
    """What a conversation of a run is played with."""
    return _setting(manifest, conversation, alone=any(planned.alone for planned in manifest.conversations[conversation]))


def _setting(settings: RunSettings, id: str, *, alone: bool = False) -> Setting:
    tokenizer = Tokenizer(settings.tokenizer)
    source: Source = Trivia(settings.filler, seed=settings.seed) if settings.filler else Almanac(settings.seed)
    return Setting(
        id=id,
        span=settings.span,
        placement=settings.placement,
        isolated=settings.isolated,
        alone=alone,
        tokenizer=tokenizer,
        filler=Filler(source, tokenizer, most=settings.filler_size),
        starts_at=settings.starts_at,
        pace=timedelta(seconds=settings.pace_s),
    )


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
