"""longspan resume, replay and score: commands on an existing run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longspan.simulator.base.shares import format_percent
from longspan.simulator.base.terminal import complain, confirm_question, quote_command, say, say_json
from longspan.simulator.cli import completion
from longspan.simulator.cli.options import MaxTokens, OtelOption, TimeLimit
from longspan.simulator.cli.run import FailedOption
from longspan.simulator.cli.score_answers import score_answers

if TYPE_CHECKING:
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.results.result import Result
    from longspan.simulator.running.planning import Plan

__all__ = ["RunArgument", "TrustOption", "open_run", "replay", "resume", "score", "user_name"]

RunArgument = Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN", autocompletion=completion.complete_runs)]
AgentOption = Annotated[
    str | None, typer.Option(help="The agent, such as openai/gpt-4o.", metavar="SPEC", autocompletion=completion.complete_agents)
]
TrustOption = Annotated[bool, typer.Option("--trust", help="Allow the code and addresses that the run's manifest names.")]


def resume(
    run: RunArgument,
    agent: AgentOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Repeat turns without asking.")] = False,
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

    The agent is restored from its last snapshot and reads the turns after it. Their cost is printed first. A run that was played
    on this machine resumes without --trust.
    """
    from math import inf

    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.cli.run import print_outcomes
    from longspan.simulator.pages.report import Report
    from longspan.simulator.running.planning import replan_run
    from longspan.simulator.running.runner import describe_catch_up, resume_run
    from longspan.simulator.subject.spending_limit import limit_of
    from longspan.simulator.subject.tracing import export_and_report
    from longspan.simulator.terminal.progress import Progress

    limit = limit_of(max_cost, max_tokens)
    folder = open_run(run, trust, agent)
    manifest = folder.manifest
    if agent is not None and agent != manifest.agent and manifest.imported is None:
        raise InputError(
            f"{run} was played with {manifest.agent}, not {agent}; to play its tests with another agent, use `longspan replay --agent`"
        )
    plan = replan_run(manifest, manifest.agent, folder.path.parent)
    with folder.lock():  # lock before reading, because another process may be playing the run
        folder.check()
        before = folder.grades()
        notice, costly = trio.run(describe_catch_up, folder, plan.agent)
    say(notice)
    if costly and not yes and (json_ or not confirm_question("Continue?")):
        raise InputError(f"{notice}; --yes skips the question")
    with export_and_report(otel), Progress([plan]) as progress:
        heard, seconds = progress.take_event, time_limit or inf
        outcome = trio.run(
            lambda: resume_run(folder, manifest.agent, listener=heard, pages=Report, signals=True, limit=limit, seconds=seconds)
        )
    changed = _changes(before, outcome.result) if outcome.result is not None else {}
    if graded_otherwise := {id: scores for id, scores in changed.items() if scores[0] is not None}:
        complain(f"longspan: {run}: {_describe(graded_otherwise)}")
    return print_outcomes([outcome], json_, failed)


def replay(
    run: RunArgument,
    agent: AgentOption = None,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="Play the tests again that lost points or have no score, as a new run.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for the new run, with --agent or --only-failed.", metavar="DIR", show_default="the run's"),
    ] = None,
    trust: TrustOption = False,
    max_cost: Annotated[float | None, typer.Option(help="Maximum dollars for the new run.", min=0, metavar="USD")] = None,
    max_tokens: MaxTokens = None,
    otel: OtelOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print JSON.")] = False,
) -> int:
    """Replay a run from its journal, or play its tests again: with another agent, or only those that failed.

    Without --agent and --only-failed no model is asked: it checks that events and grades are the same. With --agent it plays the same
    tests, seed and settings with another agent, as a new run. With --only-failed, questions about a history come with the history; the
    conversation is shorter, so that the scores show only whether a test fails again.
    """
    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.cli.run import print_outcomes
    from longspan.simulator.pages.report import Report
    from longspan.simulator.running.runner import play_plans
    from longspan.simulator.subject.spending_limit import limit_of
    from longspan.simulator.subject.tracing import export_and_report
    from longspan.simulator.terminal.progress import Progress

    if agent is None and not only_failed:
        if given := [name for name, value in (("--out", out), ("--max-cost", max_cost), ("--max-tokens-total", max_tokens)) if value]:
            raise InputError(f"{given[0]} is for a new run: add --agent or --only-failed")
        return _check_journals(run, trust, json_)
    if agent is not None and only_failed:
        raise InputError("--agent and --only-failed exclude each other; leave out one of them")
    limit = limit_of(max_cost, max_tokens)
    plan = _plan_failed(run, out, trust) if agent is None else _plan_for(run, agent, out, trust)
    with export_and_report(otel):
        with Progress([plan]) as progress:
            outcomes = trio.run(lambda: play_plans([plan], listener=progress.take_event, pages=Report, signals=True, limit=limit))
        return print_outcomes(outcomes, json_, sum(map(len, plan.tests.values())) if only_failed else 5)


def _check_journals(run: Path, trust: bool, json_: bool) -> int:
    """Replay a run from its journals, and say whether events or grades differ."""
    import trio

    from longspan.simulator.running.runner import replay_run

    folder = open_run(run, trust)
    result = trio.run(lambda: replay_run(folder))
    changed = _changes(folder.grades(), result)
    if json_:
        say_json([{"folder": str(run), "changed": changed} | result.model_dump(mode="json")])
    else:
        imported = folder.manifest.imported
        verdict = "matches the journal" if imported is None or imported.only_answers else "follows from earlier ones"
        say(f"{run}: every event of {result.turns:,} turns {verdict}; {_describe(changed)}")
    return 1 if changed else 0


def _plan_for(run: Path, agent: str, out: Path | None, trust: bool) -> Plan:
    """Plan a run's tests for another agent."""
    from longspan.simulator.running.planning import identify_run, replan_run
    from longspan.simulator.suite.agent_spec import AgentSpec, inspect_agent, pin_defaults
    from longspan.simulator.suite.manifest import package_versions

    spec = pin_defaults(AgentSpec.parse(agent))
    folder = open_run(run, trust, str(spec))
    with inspect_agent(spec):
        pass
    plan = replan_run(folder.manifest.with_agent(str(spec)), str(spec), out or folder.path.parent)
    return replace(
        plan,
        manifest=plan.manifest.model_copy(update={"versions": package_versions(), "label": None, **identify_run(spec)}),
    )


def _plan_failed(run: Path, out: Path | None, trust: bool) -> Plan:
    """Plan a run's tests that lost points or have no score. Raises InputError if there are none."""
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.results.graded_runs import load_runs
    from longspan.simulator.running.planning import plan_some

    folder = open_run(run, trust)
    (graded,), _ = load_runs([run])
    chosen = [test.id for test in graded.result.tests if test.score is None or test.score < 1]
    if not chosen:
        raise InputError(f"{run}: no test lost points, so there is nothing to play")
    return plan_some(folder.manifest, chosen, out or folder.path.parent, folder.path.resolve().name)


def score(
    run: Annotated[
        Path | None, typer.Argument(help="A run's folder.", metavar="[RUN]", show_default=False, autocompletion=completion.complete_runs)
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(
            help="The model that grades what rules cannot.",
            metavar="SPEC",
            autocompletion=completion.complete_agents,
        ),
    ] = None,
    before_damage: Annotated[bool, typer.Option("--before-damage", help="Grade a damaged journal up to its damage.")] = False,
    correct: Annotated[
        str | None,
        typer.Option(help="Set a test's score by hand, from 0 to 1, such as jokes-2=1. jokes-2=auto undoes it.", metavar="TEST=SCORE"),
    ] = None,
    why: Annotated[str | None, typer.Option(help="With --correct: the reason, which the report shows.", metavar="TEXT")] = None,
    by: Annotated[str | None, typer.Option(help="With --correct: who corrects it.", metavar="NAME", show_default="the user's name")] = None,
    answers: Annotated[Path | None, typer.Option(help="Score this file of answers or ranked ids instead of a run.", metavar="FILE")] = None,
    questions: Annotated[
        str | None,
        typer.Option(help="With --answers: a log with questions, or a suite and its data as NAME=PATH.", metavar="PATH"),
    ] = None,
    data: Annotated[
        list[str] | None, typer.Option(help="With --answers: the log that --questions is about, as history=FILE.", metavar="NAME=PATH")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="With --answers: set a parameter of the scenario.", metavar="NAME=VALUE")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(help="With --answers: the system that answered.", metavar="NAME", show_default="the file's name"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="With --answers: the folder to create for the run.", metavar="RUN")] = None,
    trust: TrustOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print JSON.")] = False,
) -> int:
    """Grade a run again from its journal, and show what changed; correct a test's score by hand; or score answers given elsewhere.

    Earlier grades are kept in grades.jsonl. With --judge, a model grades what rules cannot; its earlier answers are reused. A correction
    counts from then on, and the report shows both scores. --answers makes a run from answers or ranked ids of a system that longspan
    did not play: it can be compared and gated like a run, and is marked as not played.
    """
    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.journal.answer_store import AnswerStore
    from longspan.simulator.pages.report import Report
    from longspan.simulator.results.judging.background import judge_run
    from longspan.simulator.results.judging.cached_model import CachedModel
    from longspan.simulator.running.scoring import RunScorer
    from longspan.simulator.terminal.scores import print_scores

    if answers is not None:
        if run is not None or correct is not None or before_damage or why is not None or by is not None:
            raise InputError("--answers makes a run: leave out the run's folder, --correct, --why, --by and --before-damage")
        if questions is None or out is None:
            raise InputError(f"--answers requires {'--questions' if questions is None else '--out'}")
        return score_answers(answers, questions, data or [], set_ or [], agent, judge, out, json_)
    if given := [name for name, value in (("--questions", questions), ("--data", data), ("--set", set_), ("--out", out)) if value]:
        raise InputError(f"{given[0]} requires --answers")
    if run is None:
        raise InputError("name a run's folder, or answers from elsewhere with --answers")
    if correct is not None:
        if judge is not None or before_damage or json_:
            raise InputError("--correct only goes with --why, --by and --trust; leave out the other options")
        test, value = _correction(correct)
        if why is None:
            raise InputError("--correct: give the reason with --why; the report shows it")
        return _correct(run, test, value, why, by or user_name(), trust)
    if why is not None or by is not None:
        raise InputError("--why and --by are for a correction: add --correct TEST=SCORE")
    folder = open_run(run, trust)
    with folder.lock():
        scoring = RunScorer(folder, Report, before_damage=before_damage)
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


def _correction(text: str) -> tuple[str, float | None]:
    """Return the test and the score of TEST=SCORE, or None for TEST=auto. Raises InputError."""
    from longspan.simulator.base.errors import InputError

    test, equals, number = text.rpartition("=")
    if test and number == "auto":
        return test, None
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not (test and equals and 0 <= value <= 1):
        raise InputError(f"--correct: must be TEST=SCORE with a score from 0 to 1, such as jokes-2=1, or auto, got {text!r:.80}")
    return test, value


def _correct(run: Path, test: str, value: float | None, why: str, by: str, trust: bool) -> int:
    """Correct a test's score by hand, or remove its correction. This counts from then on."""
    from pydantic import ValidationError

    from longspan.simulator.base.errors import InputError, first_problem
    from longspan.simulator.base.suggestions import suggest
    from longspan.simulator.journal.run_folder import CorrectionEntry
    from longspan.simulator.pages.report import Report
    from longspan.simulator.running.scoring import score_run

    folder = open_run(run, trust)
    known = [planned.id for _, planned in folder.manifest.graded]
    if test not in known:
        raise InputError(
            f"{run} has no test {test!r:.60}{suggest(test, known, '`' + quote_command('longspan', 'show', run) + '` lists them')}"
        )
    if not why.strip():
        raise InputError("--why: the reason must not be empty")
    with folder.lock():
        try:
            correction = CorrectionEntry(test=test, score=value, why=why, by=by)
        except ValidationError as error:
            raise InputError(f"correction: {first_problem(error)}") from None
        folder.check()
        if value is None and test not in folder.corrections():
            raise InputError(f"{run}: {test} has its automatic score; there is no correction to undo")
        folder.correct(correction)
        result = next(each for each in score_run(folder, Report).tests if each.id == test)
    say(f"{test}: set to {'automatic' if value is None else value} by {by} (automatic: {result.machine_score})")
    return 0


def open_run(run: Path, trust: bool, agent: str | None = None) -> RunFolder:
    """Open a run's folder, and check that everything its manifest names is trusted.

    `trust` allows all of it. `agent` is a spec that the user typed, so the same spec in the manifest is allowed too.
    """
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.suite.trust import admit_manifest

    folder = RunFolder(run)
    admit_manifest(folder.path, folder.manifest, trust=trust, given=[agent] if agent is not None else [])
    return folder


def _changes(grades: list[dict[str, Any]], result: Result) -> dict[str, tuple[float | None, float | None]]:
    """Return the tests whose score, automatic or corrected, differs from their last grade in grades.jsonl, with both scores."""
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
    return "unscored" if value is None else format_percent(value)


def user_name() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"
