"""longspan resume, replay, score and correct: commands on an existing run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longspan.simulator.base.shares import percent
from longspan.simulator.base.terminal import complain, confirm, say, say_json, typed
from longspan.simulator.cli import completion
from longspan.simulator.cli.options import MaxTokens, OtelOption, TimeLimit
from longspan.simulator.cli.run import FailedOption

if TYPE_CHECKING:
    from longspan.simulator.archive.run_folder import RunFolder
    from longspan.simulator.results.result import Result

__all__ = ["RunArgument", "TrustOption", "correct", "open_run", "replay", "rerun", "resume", "score", "user"]

RunArgument = Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN", autocompletion=completion.runs)]
AgentOption = Annotated[
    str | None, typer.Option(help="The agent, such as openai/gpt-4o.", metavar="SPEC", autocompletion=completion.agents)
]
TrustOption = Annotated[bool, typer.Option("--trust", help="Allow the code and addresses that the run's manifest names.")]


def resume(
    run: RunArgument,
    agent: AgentOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before turns are repeated.")] = False,
    trust: TrustOption = False,
    max_cost: Annotated[
        float | None, typer.Option(help="Maximum dollars for the whole run, including earlier cost.", min=0, metavar="USD")
    ] = None,
    max_tokens: MaxTokens = None,
    time_limit: TimeLimit = None,
    failed: FailedOption = 5,
    otel: OtelOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print the result, as a JSON list.")] = False,
) -> int:
    """Continue an interrupted run exactly where it stopped.

    The agent is restored from its last snapshot and shown the turns after it; what that takes is shown first. A run that was
    played here resumes without --trust.
    """
    from math import inf

    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.cli.progress import Progress
    from longspan.simulator.cli.run import finish
    from longspan.simulator.report import Report
    from longspan.simulator.running.planning import replan
    from longspan.simulator.running.runner import describe_catch_up
    from longspan.simulator.running.runner import resume as continue_run
    from longspan.simulator.subject.spending_limit import limit_of
    from longspan.simulator.tracing import telling

    limit = limit_of(max_cost, max_tokens)
    folder = open_run(run, trust, agent)
    manifest = folder.manifest
    if agent is not None and agent != manifest.agent and manifest.imported is None:
        raise InputError(
            f"{run} was played with {manifest.agent}, not {agent}; to play its tests with another agent, use `longspan replay --agent`"
        )
    plan = replan(manifest, manifest.agent, folder.path.parent)
    with folder.lock():  # first, because another process may be playing it
        folder.check()
        before = folder.grades()
        notice, costly = trio.run(describe_catch_up, folder, plan.agent)
    say(notice)
    if costly and not yes and (json_ or not confirm("Continue?")):
        raise InputError(f"{notice}; --yes skips the question")
    with telling(otel), Progress([plan]) as progress:
        heard, seconds = progress.heard, time_limit or inf
        outcome = trio.run(
            lambda: continue_run(folder, manifest.agent, listener=heard, pages=Report, signals=True, limit=limit, seconds=seconds)
        )
    changed = _changes(before, outcome.result) if outcome.result is not None else {}
    if graded_otherwise := {id: scores for id, scores in changed.items() if scores[0] is not None}:
        complain(f"longspan: {run}: {_describe(graded_otherwise)}")
    return finish([outcome], json_, failed)


def replay(
    run: RunArgument,
    agent: AgentOption = None,
    out: Annotated[Path | None, typer.Option(help="The folder for the new run, with --agent.", metavar="DIR")] = None,
    trust: TrustOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print JSON.")] = False,
) -> int:
    """Replay a run from its journal, or play its tests with another agent.

    Without --agent no model is asked: it checks that events and grades are the same. With --agent it plays the same tests, seed
    and settings with another agent, as a new run.
    """
    import trio

    from longspan.simulator.cli.progress import Progress
    from longspan.simulator.cli.run import finish
    from longspan.simulator.report import Report
    from longspan.simulator.running.planning import made_of, replan
    from longspan.simulator.running.runner import play
    from longspan.simulator.running.runner import replay as play_again
    from longspan.simulator.suite.agent_spec import AgentSpec, begun, inspected
    from longspan.simulator.suite.manifest import versions

    agent = str(begun(AgentSpec.parse(agent))) if agent is not None else None
    folder = open_run(run, trust, agent)
    if agent is None:
        result = trio.run(lambda: play_again(folder))
        changed = _changes(folder.grades(), result)
        if json_:
            say_json([{"folder": str(run), "changed": changed} | result.model_dump(mode="json")])
        else:
            verdict = "matches the journal" if folder.manifest.imported is None else "follows from earlier ones"
            say(f"{run}: every event of {result.turns:,} turns {verdict}; {_describe(changed)}")
        return 1 if changed else 0
    spec = AgentSpec.parse(agent)
    with inspected(spec):
        pass
    plan = replan(folder.manifest.model_copy(update={"agent": agent}), agent, out or folder.path.parent)
    plan = replace(plan, manifest=plan.manifest.model_copy(update={"versions": versions(), "label": None, **made_of(spec)}))
    with Progress([plan]) as progress:
        outcomes = trio.run(lambda: play([plan], listener=progress.heard, pages=Report, signals=True))
    return finish(outcomes, json_)


def rerun(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="The folder for the new run.", metavar="DIR", show_default="the run's")] = None,
    trust: TrustOption = False,
    max_cost: Annotated[float | None, typer.Option(help="Maximum dollars for the new run.", min=0, metavar="USD")] = None,
    max_tokens: MaxTokens = None,
    otel: OtelOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print the result, as a JSON list.")] = False,
) -> int:
    """Play a run's failed tests again, as a new run: those that lost points or have no score.

    Questions about a history come with the history. The conversation is shorter than the whole, so that the scores are no
    measure of the agent; they show whether a test fails again.
    """
    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.cli.progress import Progress
    from longspan.simulator.cli.run import finish
    from longspan.simulator.report import Report
    from longspan.simulator.results.graded_runs import load
    from longspan.simulator.running.planning import plan_some
    from longspan.simulator.running.runner import play
    from longspan.simulator.subject.spending_limit import limit_of
    from longspan.simulator.tracing import telling

    folder = open_run(run, trust)
    (graded,), _ = load([run])
    chosen = [test.id for test in graded.result.tests if test.score is None or test.score < 1]
    if not chosen:
        raise InputError(f"{run}: no test lost points, so that there is nothing to play")
    limit = limit_of(max_cost, max_tokens)
    plan = plan_some(folder.manifest, chosen, out or folder.path.parent, folder.path.resolve().name)
    with telling(otel):
        with Progress([plan]) as progress:
            outcomes = trio.run(lambda: play([plan], listener=progress.heard, pages=Report, signals=True, limit=limit))
        return finish(outcomes, json_, len(chosen))


def score(
    run: RunArgument,
    judge: Annotated[
        str | None,
        typer.Option(
            help="The model that grades what rules cannot.",
            metavar="SPEC",
            autocompletion=completion.agents,
        ),
    ] = None,
    before_damage: Annotated[bool, typer.Option("--before-damage", help="Grade a damaged journal up to its damage.")] = False,
    trust: TrustOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print JSON.")] = False,
) -> int:
    """Grade a run again from its journal, and show what changed.

    Earlier grades are kept in grades.jsonl. With --judge, a model grades what rules cannot; its earlier answers are reused.
    """
    import trio

    from longspan.simulator.archive.answer_store import AnswerStore
    from longspan.simulator.cli.scores import print_scores
    from longspan.simulator.judging.background import judge_run
    from longspan.simulator.judging.cached_model import CachedModel
    from longspan.simulator.report import Report
    from longspan.simulator.running.scoring import Scoring

    folder = open_run(run, trust)
    with folder.lock():
        scoring = Scoring(folder, Report, before_damage=before_damage)
        scoring.read()
        if judge is not None:
            trio.run(judge_run, scoring.gradebook, CachedModel(judge, AnswerStore.of(folder), record=folder.spending))
        before = folder.grades()
        result = scoring.write()
        changed = _changes(before, result)
    if json_:
        say_json([{"folder": str(run), "changed": changed} | result.model_dump(mode="json")])
    else:
        print_scores(folder.manifest, result)
        say(_describe(changed))
    return 0


def correct(
    run: RunArgument,
    test: Annotated[str, typer.Argument(help="The test, such as jokes-2.", metavar="TEST", autocompletion=completion.tests)],
    value: Annotated[float, typer.Option("--score", help="The correct score, from 0 to 1.", min=0, max=1, metavar="S")],
    why: Annotated[str, typer.Option(help="The reason, which the report shows.", metavar="TEXT")],
    by: Annotated[str | None, typer.Option(help="Who corrects it.", metavar="NAME", show_default="the user's name")] = None,
    trust: TrustOption = False,
) -> int:
    """Correct a test's score by hand.

    The correction counts from then on. The report shows both scores.
    """
    from pydantic import ValidationError

    from longspan.simulator.archive.run_folder import Correction
    from longspan.simulator.base.errors import InputError, first_problem
    from longspan.simulator.base.suggestions import meant
    from longspan.simulator.report import Report
    from longspan.simulator.running.scoring import score as grade_again

    folder = open_run(run, trust)
    known = [planned.id for _, planned in folder.manifest.graded]
    if test not in known:
        raise InputError(f"{run} has no test {test!r:.60}{meant(test, known, '`' + typed('longspan', 'show', run) + '` lists them')}")
    if not why.strip():
        raise InputError("--why: the reason must not be empty")
    with folder.lock():
        try:
            correction = Correction(test=test, score=value, why=why, by=by or user())
        except ValidationError as error:
            raise InputError(f"correction: {first_problem(error)}") from None
        folder.check()
        folder.correct(correction)
        result = next(each for each in grade_again(folder, Report).tests if each.id == test)
    say(f"{test}: {value} by {by or user()} counts; the machine gave {result.machine_score}")
    return 0


def open_run(run: Path, trust: bool, agent: str | None = None) -> RunFolder:
    """Open a run's folder. Everything that its manifest names is allowed if the user trusts the run, or named the same thing as `agent`."""
    from longspan.simulator.archive.run_folder import RunFolder
    from longspan.simulator.suite.trust import admit

    folder = RunFolder(run)
    admit(folder.path, folder.manifest, trust=trust, given=[agent] if agent is not None else [])
    return folder


def _changes(grades: list[dict[str, Any]], result: Result) -> dict[str, tuple[float | None, float | None]]:
    """Return the tests whose score, by the grader or corrected, differs from the last one in grades.jsonl, with both scores."""
    previous = {str(entry.get("id")): entry for entry in grades}
    changed: dict[str, tuple[float | None, float | None]] = {}
    for test in result.tests:
        was = previous.get(test.id)
        for name, score in (("score", test.score), ("machine_score", test.machine_score)):
            if was is not None and was.get(name) != score:
                changed[test.id] = was.get(name), score
    return changed


def _describe(changed: dict[str, tuple[float | None, float | None]]) -> str:
    if not changed:
        return "no grade has changed"
    return "changed: " + ", ".join(f"{id} {_score(was)} -> {_score(current)}" for id, (was, current) in changed.items())


def _score(value: float | None) -> str:
    return "unscored" if value is None else percent(value)


def user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
