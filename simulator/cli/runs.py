"""What can be done with a run afterwards: go on with it, play it again, grade it again, correct a grade."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from longspan.simulator.grading.grades import Result
    from longspan.simulator.run_folder import RunFolder

__all__ = ["RunArgument", "TrustOption", "correct", "open_run", "replay", "resume", "score", "user"]

RunArgument = Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN")]
AgentOption = Annotated[str | None, typer.Option(help="Who plays: KIND/MODEL?option=value&...", metavar="SPEC")]
TrustOption = Annotated[bool, typer.Option("--trust", help="Run code and call addresses that only the run's manifest names.")]


def resume(
    run: RunArgument,
    agent: AgentOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before an agent is asked turns again.")] = False,
    trust: TrustOption = False,
    max_cost: Annotated[
        float | None, typer.Option(help="Dollars that the run may cost in all, what it has cost so far included.", min=0, metavar="USD")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print a JSON list of the result and nothing else.")] = False,
) -> int:
    """Go on with a run exactly where it was broken off.

    The agent is restored from its last snapshot and shown the turns after it. What that costs is told first. --agent
    names the manifest's agent again, where it is code.
    """
    import trio

    from longspan.simulator.cli.progress import Progress
    from longspan.simulator.cli.run import finish
    from longspan.simulator.errors import InputError
    from longspan.simulator.planning import replan
    from longspan.simulator.run_folder import RunFolder
    from longspan.simulator.runner import describe_catch_up
    from longspan.simulator.runner import resume as go_on

    manifest = RunFolder(run).manifest
    if agent is not None and agent != manifest.agent and manifest.imported is None:
        raise InputError(f"{run} was played with {manifest.agent}, not {agent}; `longspan replay --agent` plays it with another agent")
    folder = open_run(run, trust, [agent] if agent else [])
    plan = replan(manifest, manifest.agent, folder.path.parent)
    with folder.lock():  # before anything is told: another process may be playing it
        told, dear = trio.run(describe_catch_up, folder, plan.agent)
    if not json_:
        typer.echo(told)
    if dear and not yes and (json_ or not typer.confirm("Go on?", default=False)):
        raise InputError(f"{told}; --yes goes on without asking")
    with Progress([] if json_ else [plan]) as progress:
        heard = None if json_ else progress.heard
        most = inf if max_cost is None else max_cost
        outcome = trio.run(lambda: go_on(folder, manifest.agent, listener=heard, signals=True, max_cost=most))
    return finish([outcome], json_)


def replay(
    run: RunArgument,
    agent: AgentOption = None,
    out: Annotated[Path | None, typer.Option(help="Where the new run lands, with --agent.", metavar="DIR")] = None,
    trust: TrustOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> int:
    """Play a run again from its journal, with no model: the same events, the same grades.

    With --agent, play the same tests, seed and manifest against another agent instead, as a new run.
    """
    import trio

    from longspan.simulator.agent_spec import AgentSpec, make_agent
    from longspan.simulator.cli.progress import Progress
    from longspan.simulator.cli.run import finish
    from longspan.simulator.manifest import versions
    from longspan.simulator.planning import replan
    from longspan.simulator.runner import play
    from longspan.simulator.runner import replay as play_again

    folder = open_run(run, trust, [agent] if agent else [], agents=False)
    if agent is None:
        result = trio.run(lambda: play_again(folder))
        changed = _changes(folder.grades(), result)
        if json_:
            _print_json([{"folder": str(run), "changed": changed} | result.model_dump(mode="json")])
        else:
            found = "is as the journal says" if folder.manifest.imported is None else "follows from those before"
            typer.echo(f"{run}: every event of {result.turns:,} turns {found}; {_told(changed)}")
        return 1 if changed else 0
    make_agent(AgentSpec.parse(agent))
    manifest = folder.manifest.model_copy(update={"agent": agent, "versions": versions()})
    plan = replan(manifest, agent, out or folder.path.parent)
    with Progress([] if json_ else [plan]) as progress:
        outcomes = trio.run(lambda: play([plan], listener=None if json_ else progress.heard, signals=True))
    return finish(outcomes, json_)


def score(
    run: RunArgument,
    judge: Annotated[str | None, typer.Option(help="The model that decides what rules cannot.", metavar="SPEC")] = None,
    trust: TrustOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> int:
    """Grade a run again from its journal and show what changed. Earlier grades are kept in grades.jsonl.

    With --judge, a model decides what the rules leave open. What it has been asked before is not asked again.
    """
    import trio

    from longspan.simulator.answer_store import AnswerStore
    from longspan.simulator.cli.progress import table_of
    from longspan.simulator.judging.background import judge_run
    from longspan.simulator.judging.cached_model import CachedModel
    from longspan.simulator.scoring import Scoring

    folder = open_run(run, trust, [], agents=False)
    with folder.lock():
        scoring = Scoring(folder)
        scoring.read()
        if judge is not None:
            trio.run(judge_run, scoring.gradebook, CachedModel(judge, AnswerStore(folder.path)))
        before = folder.grades()
        result = scoring.write()
        changed = _changes(before, result)
    if json_:
        _print_json([{"folder": str(run), "changed": changed} | result.model_dump(mode="json")])
    else:
        table_of(result)
        typer.echo(_told(changed))
    return 0


def correct(
    run: RunArgument,
    test: Annotated[str, typer.Argument(help="The test's name, such as jokes-2.", metavar="TEST")],
    value: Annotated[float, typer.Option("--score", help="What it should have scored, from 0 to 1.", min=0, max=1, metavar="S")],
    why: Annotated[str, typer.Option(help="Why, for those who read the report.", metavar="TEXT")],
    by: Annotated[str | None, typer.Option(help="Who says so; by default the user's name.", metavar="NAME")] = None,
    trust: TrustOption = False,
) -> int:
    """Put a person's score beside the machine's. It counts from then on; both are shown."""
    from pydantic import ValidationError

    from longspan.simulator.errors import InputError, first_problem
    from longspan.simulator.run_folder import Correction
    from longspan.simulator.scoring import score as grade_again

    folder = open_run(run, trust, [], agents=False)
    known = [plan.id for group in folder.manifest.conversations.values() for plan in group]
    if test not in known:
        raise InputError(f"{run} has no test {test!r:.60}; it has {', '.join(known)}")
    if not why.strip():
        raise InputError("--why needs a reason that others can follow")
    with folder.lock():
        try:
            correction = Correction(test=test, score=value, why=why, by=by or user())
        except ValidationError as error:
            raise InputError(f"correction: {first_problem(error)}") from None
        folder.correct(correction)
        result = next(each for each in grade_again(folder).tests if each.id == test)
    typer.echo(f"{test}: {value} by {by or user()} counts; the machine gave {result.machine_score}")
    return 0


def open_run(run: Path, trust: bool, named: list[str], *, agents: bool = True) -> RunFolder:
    """A run's folder, unless playing or grading it would run code that nobody here has asked for."""
    from longspan.simulator.cli.options import refuse_code
    from longspan.simulator.run_folder import RunFolder

    folder = RunFolder(run)
    code = [folder.manifest.agent, folder.manifest.judge or ""] if agents else []
    code += list(folder.manifest.suite.scenarios)
    refuse_code(run, code, named, trust)
    return folder


def _changes(grades: list[dict[str, Any]], result: Result) -> dict[str, tuple[float | None, float | None]]:
    """The tests whose grade is another than the last in grades.jsonl: then and now."""
    before = {str(entry.get("id")): entry.get("machine_score") for entry in grades}
    now = {test.id: test.machine_score for test in result.tests}
    return {id: (before[id], score) for id, score in now.items() if id in before and before[id] != score}


def _told(changed: dict[str, tuple[float | None, float | None]]) -> str:
    if not changed:
        return "every grade is as before"
    return "changed: " + ", ".join(f"{id} {_score(was)} -> {_score(now)}" for id, (was, now) in changed.items())


def _score(value: float | None) -> str:
    return "unscored" if value is None else f"{value:.2f}"


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, ensure_ascii=False, indent=1))


def user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"
