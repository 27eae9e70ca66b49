"""longspan ask: ask a turn again, or chat with an agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longspan.simulator.base.integers import integer_parser
from longspan.simulator.base.shares import format_percent
from longspan.simulator.base.terminal import complain, confirm_question, prompt_user, say, say_json
from longspan.simulator.cli import completion
from longspan.simulator.cli.runs import TrustOption, open_run

if TYPE_CHECKING:
    from longspan.simulator.cli.outputs import AskedAgain
    from longspan.simulator.contract.graded_record import Grade
    from longspan.simulator.contract.question_files import EarlierTurn, Failure
    from longspan.simulator.running.asking import Again, Past

__all__ = ["ask"]


def ask(
    run: Annotated[
        Path | None,
        typer.Argument(help="A run's folder; without it, you chat with the agent.", metavar="RUN", autocompletion=completion.complete_runs),
    ] = None,
    turn: Annotated[
        int | None, typer.Argument(help="The turn's number, as the report shows it.", parser=integer_parser(0, 10**9), metavar="TURN")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            help="The agent, such as openai/gpt-4o.",
            metavar="SPEC",
            show_default="the run's, or notebook",
            autocompletion=completion.complete_agents,
        ),
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(help="The conversation, if the run has several: an isolated test's name.", metavar="ID")
    ] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="Also print the prompts sent to models.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(help="Add a turn of a recorded log as a question to this file, for --data questions=FILE.", metavar="FILE"),
    ] = None,
    answer: Annotated[str | None, typer.Option(help="With --save: the right answer.", metavar="TEXT")] = None,
    evidence: Annotated[
        list[str] | None,
        typer.Option(help="With --save: an earlier turn with the answer, by id or quotation; may be repeated.", metavar="TURN"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Repeat turns without asking.")] = False,
    trust: TrustOption = False,
    json_: Annotated[bool, typer.Option("--json", help="Only print JSON.")] = False,
) -> int:
    """Ask a turn of a run again, and compare the replies. Without a run, chat with an agent.

    The agent is restored from its last snapshot before the turn, if there is one, and shown the turns after that. Another agent is
    shown all turns before. Nothing is written to the run. In a chat, "+90m", "+2h" or "+1d" advances virtual time, and an empty line or
    Ctrl-D exits.

    --save makes a test of a turn where the agent forgot: played with the log, the question comes where the turn was.
    """
    import trio

    from longspan.simulator.base.errors import AgentError, InputError
    from longspan.simulator.running.asking import TurnAsker, find_failure, grades_of, past_of

    if run is None:
        from longspan.simulator.cli.chat import chat

        if conversation is not None or prompt or json_ or save is not None:
            raise InputError("--conversation, --prompt, --save and --json are for a turn of a run: name RUN and TURN")
        chat(agent or "notebook")
        return 0
    if turn is None:
        raise InputError(f"{run}: name the TURN to ask again, as the report numbers it")
    folder = open_run(run, trust, agent)
    past = past_of(folder, turn, conversation)
    if save is None and (answer is not None or evidence):
        raise InputError("--answer and --evidence are for a question: name its file with --save")
    failure = find_failure(folder, past) if save is not None else None
    asking = TurnAsker(folder, past, agent)

    def agree(notice: str, costly: bool) -> bool:
        say(notice)
        if costly and json_ and not yes:
            raise InputError(f"{notice}; --yes skips the question")
        return yes or not costly or confirm_question("Continue?")

    try:
        again = trio.run(asking.ask, agree)
    except AgentError:
        for line in asking.log.last_lines:
            complain(line)
        raise
    grades = grades_of(folder, past, again.reply.text)
    if json_:
        say_json(_as_json(past, again, str(asking.spec), grades))
    else:
        _print(past, again, prompt)
        for title, text in _verdict(past, again, grades):
            say(f"{title:9} {text}", lines=True)
    if failure is not None and save is not None:
        place = _save_failure(failure, save, answer, evidence or [])
        (complain if json_ else say)(f"saved     {place}")
    return 0


def _save_failure(failure: Failure, file: Path, answer: str | None, evidence: Sequence[str]) -> str:
    """Save a failure, ask for what is missing, and return its place. Raises InputError."""
    from longspan.simulator.base.errors import InputError

    try:
        answer = answer or prompt_user("right answer:").strip()
        return failure.save(file, failure.message, answer, evidence or _choose_evidence(failure.find_evidence(answer)))
    except EOFError:
        raise InputError(
            "nothing was saved: give the right answer with --answer, and an earlier turn that has it with --evidence"
        ) from None


def _choose_evidence(found: Sequence[EarlierTurn]) -> list[str]:
    for number, each in enumerate(found, 1):
        say(f"{number:>2}{'*' if each.answers else ' '} {each.line}")
    given = prompt_user("evidence, by number or quotation (Enter: those with *):").strip()
    numbers = given.replace(",", " ").split()
    if not given:
        return [each.id for each in found if each.answers]
    if all(each.isascii() and each.isdigit() and 0 < int(each) <= len(found) for each in numbers):
        return [found[int(each) - 1].id for each in numbers]
    return [given]


def _verdict(past: Past, again: Again, grades: tuple[Grade, Grade] | None) -> list[tuple[str, str]]:
    """Return labelled lines: whether the replies agree, and the grade of the new one."""
    if past.turn.reply is None:
        return []
    words, score = _agree(past, again, grades)
    said = "word for word" if words else "in score, not in words" if score else "no"
    if grades is None:
        return [("agree", said)]
    scores = ["no score" if grade.score is None else format_percent(grade.score) for grade in grades]
    return [("agree", said), ("grade", f"{scores[1]}, recorded {scores[0]}: {grades[1].reason}")]


def _agree(past: Past, again: Again, grades: tuple[Grade, Grade] | None) -> tuple[bool, bool | None]:
    """Return whether two replies have the same words, and whether they have the same score (None without grades)."""
    recorded = past.turn.reply.text if past.turn.reply is not None else ""
    return recorded.split() == again.reply.text.split(), grades[0].score == grades[1].score if grades is not None else None


def _print(past: Past, again: Again, prompt: bool) -> None:
    message, recorded = past.turn.message, past.turn.reply
    where = [f"turn {message.turn}", message.kind, *([message.test] if message.test else []), f"{message.sent_at:%Y-%m-%d %H:%M}"]
    say(" · ".join(where))
    if prompt:
        for each in again.prompts:
            say(f"sent to {each.model}, for: {each.purpose}")
            for role, text in each.messages:
                say(f"  {role}: {text}", lines=True)
    said = "(no reply: interrupted here)" if recorded is None else recorded.text
    expected = [("expected", past.expected)] if past.expected is not None else []
    for title, text in [("user", message.text), *expected, ("recorded", said), ("again", again.reply.text)]:
        say(f"{title:9} {text}", lines=True)


def _as_json(past: Past, again: Again, agent: str, grades: tuple[Grade, Grade] | None) -> AskedAgain:
    message, recorded, reply = past.turn.message, past.turn.reply, again.reply
    words, score = _agree(past, again, grades)
    return {
        "conversation": past.conversation,
        "turn": message.turn,
        "test": message.test,
        "text": message.text,
        "expected": past.expected,
        "recorded": {"text": recorded.text, "trace": recorded.trace} if recorded is not None else None,
        "again": {"agent": agent, "text": reply.text, "trace": reply.trace, "cost_usd": again.costs},
        "agree": {"words": words, "score": score},
        "grades": {"recorded": grades[0].model_dump(mode="json"), "again": grades[1].model_dump(mode="json")} if grades else None,
        "prompts": [
            {"model": model, "for": purpose, "messages": [{"role": role, "text": text} for role, text in messages]}
            for _, model, purpose, messages in again.prompts
        ],
    }
