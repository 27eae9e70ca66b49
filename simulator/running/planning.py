"""Plans runs: creates a run's tests from its settings or its manifest, and checks them before anything is written."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, final
from unicodedata import normalize

from longspan.simulator.base.address_space import check_room
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import content_digest, hash_file, resolve_path
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.contract.agent import Agent, can_observe, can_rewind, describe_missing_abilities, has_snapshots
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.contract.scenario import Test
from longspan.simulator.filler.filler import Filler, Source
from longspan.simulator.filler.talk import Talk
from longspan.simulator.filler.trivia import Trivia
from longspan.simulator.play.setting import Setting
from longspan.simulator.results.judging.cached_model import check_model
from longspan.simulator.running.prepared_agents import PreparedAgents
from longspan.simulator.subject.purse import Purse
from longspan.simulator.suite.agent_spec import AgentSpec, agent_source, inspect_agent, pin_defaults, resolve_spec
from longspan.simulator.suite.branching import conversations_of, experiments_of
from longspan.simulator.suite.definitions import read_definitions, tests_for, tests_of
from longspan.simulator.suite.manifest import Manifest, PlannedTest, commit_definitions, package_versions
from longspan.simulator.suite.provenance import commit_of, utc_now
from longspan.simulator.suite.settings import Conditions, RunSettings
from longspan.simulator.suite.suite import Suite
from longspan.simulator.suite.trust import require_trust, vouch_for

__all__ = [
    "Plan",
    "agent_for",
    "check_branches",
    "check_filler",
    "describe_repetitions",
    "identify_run",
    "plan_run",
    "plan_some",
    "replan_run",
    "setting_of",
]

MAX_PART: Final = 90
"""The maximum number of characters of the agent in the name of a run's folder."""

LONE_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
"""Python's representation of a byte on the command line that is not UTF-8."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """A run to be played: its manifest, the tests of each conversation, its agent, and the parent `out` of its folder.

    If every test has its own conversation, `agent` has no timestamps unless its spec sets them: no test asks about time there, and a test
    may depend on the exact length and digits of its text.
    """

    manifest: Manifest
    tests: dict[str, list[Test]]
    agent: AgentSpec
    out: Path
    agents: PreparedAgents | None = field(default=None, compare=False, repr=False)

    def take_agent(self) -> tuple[Agent, Purse] | None:
        """Hand over the agent that was made to plan the run, with its purse; None if there is none any more."""
        return self.agents.take(self.agent) if self.agents is not None else None

    @contextmanager
    def inspect_agent(self) -> Iterator[Agent]:
        """Have an agent, to ask what it is able to do. Raises as `make_agent` does."""
        if self.agents is not None:
            yield self.agents.inspect(self.agent)
        else:
            with inspect_agent(self.agent) as agent:
                yield agent

    def tests_in(self, conversation: str) -> list[Test]:
        """Return the tests of a conversation or an experiment."""
        experiment = self.manifest.experiments.get(conversation)
        if experiment is None:
            return self.tests[conversation]
        tests = self.tests[experiment.conversation]
        return tests if experiment.shares else [test for test in tests if test.id == experiment.test]

    @property
    def made_up(self) -> list[str]:
        """The scenarios that play made-up data instead of published or the user's own data."""
        return sorted({test.scenario.name for group in self.tests.values() for test in group if test.scenario.measure.made_up})

    @property
    def name(self) -> str:
        """The preferred name of the run's folder."""
        manifest = self.manifest
        span = f"-{manifest.span // 1000}k" if manifest.span % 1000 == 0 else f"-{manifest.span}"
        span = "" if manifest.alone else span
        agent = _folder_part(_shorten_agent(manifest.agent)) or "agent"
        data = "-made-up" if self.made_up else "".join(_data_parts(manifest)) if manifest.alone else ""
        label = f"-{part}" if (part := _folder_part(manifest.label or "")) else ""
        mode = ("-definitions" if manifest.definitions else "") + ("-isolated" if manifest.isolated else "")
        mode += "-rerun" if manifest.parent is not None else ""
        mode += f"-nights{manifest.nights}" if manifest.nights else ""
        mode += "-farewells" if manifest.score_farewells else ""
        mode += {"on": "", "off": "-unbranched", "retell": "-retold"}[manifest.asked]
        return f"{manifest.suite.name}{data}{span}{mode}-{agent}{label}-seed{manifest.seed}"


def _shorten_agent(agent: str) -> str:
    """Return an agent's spec with the stems of model files instead of their paths, and without options that do not change results."""
    stems = re.sub(r"(?<=gguf[/:])(?:[^?&]*/)?([^/?&]+?)(?:\.gguf)?(?=[?&]|$)", r"\1", agent)
    return re.sub(r"(?<=[?&])(?:threads|conversations)=[^&]*(?:&|$)", "", stems).rstrip("?&")


def _data_parts(manifest: Manifest) -> Iterator[str]:
    """Yield the names of the user's data files, as parts of a folder's name, unless they begin with the suite's name."""
    for name, path in manifest.suite.paths().items():
        part = _folder_part(Path(path.name.removesuffix(".gz")).stem)
        if name.endswith(".data") and part and not part.startswith(manifest.suite.name):
            yield f"-{part}"


def _folder_part(text: str) -> str:
    """Return `text` as a part of a folder's name.

    A hash replaces the end of a long part. It is also added if characters other than ASCII were replaced, so that no two texts have the
    same part.
    """
    plain = normalize("NFKD", text).encode("ascii", "ignore").decode()
    part = re.sub(r"[^A-Za-z0-9.]+", "-", plain).strip("-.")
    if text.isascii() and len(part) <= MAX_PART:
        return part
    return f"{part[: MAX_PART - 9].rstrip('-.')}-{sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}".lstrip("-")


def identify_run(agent: AgentSpec) -> dict[str, Any]:
    """Return the fields of a new run's manifest that identify it: a nonce, the time, and the commit of its agent's code."""
    file = agent_source(agent)
    return {"run_nonce": token_hex(16), "created": utc_now(), "agent_commit": commit_of(file) if file is not None else None}


def plan_run(settings: RunSettings, out: Path, agents: PreparedAgents | None = None) -> Plan:
    """Create a run's tests, or take them from its definitions, and check as much as possible before the run.

    The settings are the user's own: everything that they name may be run, called and read. The agent that is made to find out what it can
    do is kept in `agents`, and closed again without them.

    Raises InputError for invalid settings, and if no test fits in the span.
    """
    check_room()
    spec = pin_defaults(AgentSpec.parse(settings.agent))
    with PreparedAgents() as own:
        used = own if agents is None else agents
        used.inspect(spec)  # first, since the tests may take long to make
        planned = _plan_for(spec, settings, out)
        check_branches(planned, used.inspect(spec))
        return planned if agents is None else replace(planned, agents=agents)


def _plan_for(spec: AgentSpec, settings: RunSettings, out: Path) -> Plan:
    if settings.judge is not None:
        check_model(settings.judge)
    definitions = read_definitions(settings.definitions) if settings.definitions else None
    if definitions is not None and settings.placement == "early":
        raise InputError("--placement early only works with generated tests; leave it out, because definitions place their own lines")
    settings = settings.model_copy(
        update={
            "suite": settings.suite.with_run_settings(settings.tokenizer, settings.span),
            "agent": str(spec),
            "judge": str(resolve_spec(AgentSpec.parse(settings.judge))) if settings.judge is not None else None,
            "filler": resolve_path(settings.filler) if settings.filler else None,
            "definitions": definitions.folder if definitions else None,
            "placement": "uniform" if definitions else settings.placement,
        }
    )
    _check_unicode(settings)
    setting = _setting(settings, "all")
    tests: list[Test] = []
    candidates, left_out = tests_for(settings.suite, settings.seed, settings.span, settings.placement, definitions)
    for test in candidates:
        reason = setting.reason_to_omit(test)
        if reason is None:
            tests.append(test)
        else:
            left_out.append(reason)
    if settings.nights and (settings.isolated or all(test.script.alone for test in tests)):
        raise InputError("--nights: every test has a separate conversation, without a span for nights; leave it out")
    if not tests:
        raise InputError(f"no test of suite {settings.suite.name} fits in a span of {settings.span:,} tokens: {left_out[0]}")
    starts_at = min([settings.starts_at, *(date for test in tests for date in test.script.dates())])
    settings = settings.model_copy(update={"starts_at": starts_at})
    conversations = conversations_of(tests, settings)
    nonce = token_hex(32)
    manifest = Manifest(
        **dict(settings),
        filler_sha256=hash_file(settings.filler) if settings.filler else None,
        definitions_sha256=definitions.sha256 if definitions else None,
        scenario_versions=_versions(settings.suite),
        data={name: content_digest(path) for name, path in settings.suite.paths().items()},
        conversations=_plan_conversations(conversations),
        experiments=experiments_of(conversations, settings),
        left_out=left_out,
        late=_late(settings.suite) if settings.placement == "early" else [],
        nonce=nonce,
        commitment=commit_definitions(nonce, settings.seed, (test.definition() for test in tests)),
        versions=package_versions(),
        **identify_run(spec),
    )
    vouch_for(manifest)
    return Plan(manifest, conversations, agent_for(manifest, spec), out)


def describe_repetitions(plans: Iterable[Plan]) -> list[str]:
    """Return notes to the user about runs that make an agent play the same tests several times.

    A recorded history in its own conversation is the same for every seed and span.
    """
    found: dict[tuple[object, ...], list[Manifest]] = defaultdict(list)
    for manifest in (each.manifest for each in plans):
        planned = [test for group in manifest.conversations.values() for test in group]
        if all(test.alone and test.recorded is not None for test in planned):
            conditions = manifest.model_dump_json(include={*Conditions.model_fields, "suite", "agent", "pace_s"})
            found[conditions, *sorted({(test.id, test.recorded) for test in planned})].append(manifest)
    sentences = []
    for runs in found.values():
        known = {test.recorded for group in runs[0].conversations.values() for test in group}
        what, count = ("history", "it counts") if len(known) == 1 else (f"{len(known):,} histories", "they count")
        if (times := len(runs)) > 1:
            sentences.append(
                f"note: {times:,} runs of {runs[0].agent} play the same recorded {what} and ask the same questions for every seed and "
                f"span: this costs {times:,} times as much, but {count} once; one run is enough, unless its replies vary"
            )
    return sentences


def _check_environment(manifest: Manifest) -> None:
    """Raise InputError if the environment now sets an option of the agent or the judge that it did not set when the run began."""
    for spec in (AgentSpec.parse(text) for text in (manifest.agent, manifest.judge) if text is not None):
        now = resolve_spec(spec)
        if more := [f"{name}={value}" for name, value in now.options.items() if name not in spec.options]:
            raise InputError(f"the run was begun with {spec}; the environment now adds {', '.join(more)}: unset that variable")


def replan_run(manifest: Manifest, agent: str, out: Path) -> Plan:
    """Plan a run again from its manifest, for `agent`.

    Raises InputError for an imported run, except to replay one whose answers alone were imported. Raises it for a run of 0.2, and a run
    whose tests this version of longspan generates differently. Also raises it for anything in the manifest that the user has not allowed
    (see `trust`).
    """
    check_room()
    if manifest.format == 1:
        made = manifest.versions.get("longspan", "0.2")
        raise InputError(
            f"the run was made by longspan {made}, where messages depended on the agent's replies: it cannot be resumed, replayed "
            "or played again by this version; `longspan score`, `view`, `compare` and `export` read it"
        )
    if manifest.imported is not None and manifest.imported.only_answers and agent == manifest.agent:
        raise InputError(
            f"the run's answers were given elsewhere ({manifest.imported.file}): score the file again, or play its questions with "
            "`longspan replay --agent SPEC`"
        )
    if manifest.imported is not None and not manifest.imported.only_answers:
        raise InputError(
            f"the run was imported from {manifest.imported.file}: it cannot be resumed or played with another agent; "
            "`longspan run ltm --definitions DIR --agent SPEC` plays its tests"
        )
    require_trust(manifest, "scenarios", "sources", *(("agent", "judge") if agent == manifest.agent else ()))
    if agent == manifest.agent:
        _check_environment(manifest)
    _check_unicode(manifest)
    tests = tests_of(manifest)
    ids = [plan.id for group in manifest.conversations.values() for plan in group]
    if any(id not in tests for id in ids):
        raise InputError("the manifest lists tests that its suite does not have: it was changed or needs another version of longspan")
    check_filler(manifest)
    definitions = (tests[id].definition() for id in dict.fromkeys(ids))
    if commit_definitions(manifest.nonce, manifest.seed, definitions) != manifest.commitment:
        _check_data(manifest)
        raise InputError(
            "the manifest's tests differ from the tests that the run was created with: a scenario, its data or the manifest has changed, "
            f"or the run needs longspan {manifest.versions.get('longspan')}, which created it"
        )
    conversations = {id: [tests[plan.id] for plan in group] for id, group in manifest.conversations.items()}
    return Plan(manifest, conversations, agent_for(manifest, AgentSpec.parse(agent)), out)


def plan_some(manifest: Manifest, chosen: Collection[str], out: Path, parent: str) -> Plan:
    """Plan a new run of some of a run's tests, chosen by id. Questions about a history include the test that plays it.

    `parent` is the name of the run's folder. Raises InputError as `replan_run` does.
    """
    whole = replan_run(manifest, manifest.agent, out)
    told = {id: {planned.trunk for planned in group if planned.id in chosen} for id, group in manifest.conversations.items()}
    for branch, trunk in manifest.trunks.items():
        told[trunk] |= told[branch]
    kept = {
        id: [planned for planned in group if (planned.id in told[id] if planned.tells else planned.id in chosen)]
        for id, group in manifest.conversations.items()
    }
    kept = {id: group for id, group in kept.items() if group}
    tests = {id: [test for test in whole.tests[id] if test.id in {planned.id for planned in group}] for id, group in kept.items()}
    nonce = token_hex(32)
    definitions = {test.id: test.definition() for group in tests.values() for test in group}
    new = {
        "conversations": kept,
        "experiments": {},
        "twins": 0,
        "lesion": None,
        "control": False,
        "nonce": nonce,
        "commitment": commit_definitions(nonce, manifest.seed, definitions.values()),
        "versions": package_versions(),
        "parent": parent,
        **identify_run(AgentSpec.parse(manifest.agent)),
    }
    made = Manifest(**{name: getattr(manifest, name) for name in Manifest.model_fields} | new)
    vouch_for(made)  # replan has cleared it
    return Plan(made, tests, whole.agent, out)


def check_branches(plan: Plan, agent: Agent) -> None:
    """Raise InputError if an agent cannot return to a state to be asked several questions, or to the start of an experiment.

    Some agents report their abilities only once they are started.
    """
    _check_experiments(plan, agent)
    if has_snapshots(agent) or can_rewind(agent):
        return
    for trunk, branches in Counter(plan.manifest.trunks.values()).items():
        if branches > 1:
            count = Tokenizer(plan.manifest.tokenizer).count
            tokens = sum(segment.tokens for test in plan.tests[trunk] for segment in test.script.segments(count, "uniform"))
            raise InputError(
                f"agent {plan.agent} has {describe_missing_abilities(agent)}, so that the {branches:,} questions about {trunk} "
                "cannot each be asked from the same state: --branch off asks them one after another, where one may reveal another's "
                f"answer; --branch retell repeats the {tokens:,} tokens for each"
            )


def _check_experiments(plan: Plan, agent: Agent) -> None:
    kinds = {experiment.kind for experiment in plan.manifest.experiments.values() if experiment.shares}
    if can_observe(agent) or not kinds or (kinds == {"twin"} and has_snapshots(agent)):
        return
    need, option = ("observe, nor save and load", "--experiment twins") if kinds == {"twin"} else ("observe", "--experiment lesion")
    raise InputError(
        f"agent {plan.agent} has no {need}, so that the turns before a test's branch could only be sent to it again, for it to answer: "
        f"give it {need.replace('nor', 'or')}, or leave out {option}"
    )


def agent_for(manifest: Manifest, agent: AgentSpec) -> AgentSpec:
    """Return an agent's spec as the run uses it (see `Plan`)."""
    return agent.unless_given(timestamps="false") if manifest.alone else agent


def check_filler(manifest: Manifest) -> None:
    """Raise InputError if the filler's file has changed since the run was created. The user must have allowed it (see `trust`)."""
    if manifest.filler is not None and hash_file(manifest.filler) != manifest.filler_sha256:
        raise InputError(f"filler {manifest.filler}: not the file that the run was created with")


def _check_data(manifest: Manifest) -> None:
    """Raise InputError if a file or folder with data has changed since the run was created."""
    for name, path in manifest.suite.paths().items():
        if name in manifest.data and (now := content_digest(path)) != (then := manifest.data[name]):
            raise InputError(f"{name} {path}: changed since the run was created (SHA-256 {then[:12]} then, {now[:12]} now); restore it")


def _check_unicode(settings: RunSettings) -> None:
    """Raise InputError for text that is not valid Unicode, such as a file's name: a manifest cannot contain it."""
    for name, value in settings.model_dump().items():
        text = json.dumps(value, default=str, ensure_ascii=False)
        if found := LONE_SURROGATE.search(text):
            got = text[: found.start()].rpartition('"')[2] + text[found.start() :].partition('"')[0]
            raise InputError(f"{name}: must be valid Unicode, got {got!r:.200}; if it is a file's name, rename the file")


def _plan_conversations(conversations: Mapping[str, Sequence[Test]]) -> dict[str, list[PlannedTest]]:
    """Return the plan of each conversation's tests."""
    trunks = {test.trunk for group in conversations.values() for test in group}

    def planned(test: Test) -> PlannedTest:
        scenario, script = test.scenario, test.script
        return PlannedTest(
            id=test.id,
            scenario=scenario.name,
            skills=list(scenario.skills),
            chance=scenario.chance(script.facts),
            alone=script.alone,
            trunk=test.trunk,
            tells=test.id in trunks,
            tags=list(script.tags),
            counts=script.counts,
            recorded=script.recorded,
        )

    return {id: list(map(planned, group)) for id, group in conversations.items()}


def _late(suite: Suite) -> list[str]:
    """Return the names of the scenarios that do not allow early placement."""
    return [name for name, parameters in suite.scenarios.items() if not make_scenario(name, parameters).early]


def _versions(suite: Suite) -> dict[str, int]:
    """Return the versions of the suite's scenarios that are above 1, by name."""
    made = {name: make_scenario(name, parameters).version for name, parameters in suite.scenarios.items()}
    return {name: version for name, version in made.items() if version > 1}


def setting_of(manifest: Manifest, conversation: str) -> Setting:
    """Return the setting of one conversation of a run. Raises InputError for anything that the user has not allowed (see `trust`)."""
    require_trust(manifest, "sources")
    experiment = manifest.experiments.get(conversation)
    if experiment is not None and not experiment.shares:
        return _setting(manifest.model_copy(update={"isolated": True}), conversation)
    like = experiment.conversation if experiment is not None else conversation
    alone = any(planned.alone for planned in manifest.conversations[like])
    pinned = frozenset(each.test for each in manifest.experiments.values() if each.kind == "twin" and each.conversation == like)
    return _setting(manifest, conversation, alone=alone, branched=like in manifest.trunks.values(), pinned=pinned)


def _setting(
    settings: RunSettings, id: str, *, alone: bool = False, branched: bool = False, pinned: frozenset[str] = frozenset()
) -> Setting:
    tokenizer = Tokenizer(settings.tokenizer)
    source: Source = Trivia(settings.filler, seed=settings.seed) if settings.filler else Talk(settings.seed)
    return Setting(
        id=id,
        run=settings.run_name if isinstance(settings, Manifest) else None,
        span=settings.span,
        placement=settings.placement,
        isolated=settings.isolated,
        alone=alone,
        branched=branched,
        pinned=pinned,
        tokenizer=tokenizer,
        filler=Filler(source, tokenizer, max_tokens=settings.filler_size),
        starts_at=settings.starts_at,
        pace=timedelta(seconds=settings.pace_s),
        nights=settings.nights,
        score_farewells=settings.score_farewells,
    )
