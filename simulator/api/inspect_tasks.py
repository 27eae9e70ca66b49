"""Inspect AI's tasks, one for each suite: `inspect eval longspan/ltm` plays it with a model of Inspect AI.

Inspect AI imports this module through its entry point, and nothing else does: importing Inspect AI takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser
from inspect_ai.scorer import Score, mean, scorer, stderr
from inspect_ai.solver import solver
from pydantic import TypeAdapter, ValidationError

from longspan.simulator.api.playing import run_async
from longspan.simulator.base.errors import InputError, LongspanError, first_problem
from longspan.simulator.base.fields import Seeds
from longspan.simulator.base.installed import installed_suites
from longspan.simulator.contract.messages import Message
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import Result
from longspan.simulator.running.scoring import score_run

__all__ = ["TASKS", "make_task"]

RESULT: Final = "longspan"
"""The key of a sample's metadata with the result, which the solver writes and the scorer reads, even from a log."""


@final
class _Chat:
    """An agent that is Inspect AI's model with the whole conversation as its prompt. The sample's messages are the conversation."""

    def __init__(self, state: Any, generate: Any) -> None:
        self._state, self._generate = state, generate
        self.failure: Exception | None = None
        """What Inspect AI raised, such as an exceeded limit. longspan reports it as an agent's error."""

    async def reply(self, message: Message) -> str:
        with self._record_failure():
            self._state.messages.append(ChatMessageUser(content=message.text))
            await self._generate(self._state)
        return str(self._state.output.completion)

    async def observe(self, message: Message, reply: str) -> None:
        with self._record_failure():
            self._state.messages += [ChatMessageUser(content=message.text), ChatMessageAssistant(content=reply)]

    async def reset(self) -> None:
        self._state.messages.clear()

    @contextmanager
    def _record_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.failure = error
            raise


def make_task(suite: str, span: Any = None, seeds: Any = 0, out: str | None = None, **settings: Any) -> Any:
    """Return the task that plays a suite, with a sample for each seed. Parameters are those of `longspan.run`.

    `out`: a folder for the runs' folders, one for each sample; by default they are deleted. Raises InputError for invalid seeds.
    """
    try:
        numbers = TypeAdapter(Seeds).validate_python(seeds if isinstance(seeds, list) else [seeds])
    except ValidationError as error:
        raise InputError(f"seeds: {first_problem(error)}") from None
    about = f"{suite}{f'@{span}' if span else ''}"
    samples = [Sample(id=f"seed{number}", input=f"{about}, seed {number}", metadata={"seed": number}) for number in dict.fromkeys(numbers)]
    return Task(dataset=samples, solver=_solver(suite, span, out, settings), scorer=_scorer())


def _make_solver(suite: str, span: Any, out: str | None, settings: dict[str, Any]) -> Any:
    """Return the solver, which plays a sample's run. Cancelling it stops the run, and finished turns are graded."""

    async def solve(state: Any, generate: Any) -> Any:
        state.messages.clear()
        chat = _Chat(state, generate)
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", str(state.model)).strip("-.")[:60] or "model"
        with ExitStack() as stack:
            folder = Path(out, state.uuid) if out else Path(stack.enter_context(TemporaryDirectory()))
            try:
                seed = state.metadata["seed"]
                await run_async(suite, agent={name: chat}, span=span, seeds=seed, out=folder, progress=False, **settings)
            except LongspanError:
                if chat.failure is not None:
                    raise chat.failure from None
                raise
            finally:
                for manifest in folder.glob("*/manifest.json"):  # none if the run failed at its first turn
                    state.metadata[RESULT] = _summarise(score_run(RunFolder(manifest.parent)))
        return state

    return solve


def _summarise(result: Result) -> dict[str, Any]:
    """Return a result as JSON. Tests without a score count as 0, as those that a limit has cut off."""
    return {
        "share": result.score_bounds[0] / result.full,
        "chance": result.chance / result.full,
        "measure": result.measured,
        "tests": {test.id: test.score for test in result.tests},
        "lost": {test.id: test.reason for test in result.tests if test.counts and test.score != 1},
    }


def _make_scorer() -> Any:
    """Return the scorer: the share of full marks."""

    async def score(state: Any, target: Any) -> Any:
        found = state.metadata.get(RESULT)
        if found is None:
            return Score.unscored(reason="the sample ended before its first turn")
        why = [f"{test}: {reason}" for test, reason in found["lost"].items()]
        return Score(
            value=found["share"], explanation="\n".join(why), metadata={name: found[name] for name in ("tests", "chance", "measure")}
        )

    return score


_solver: Final = solver(name="longspan")(_make_solver)
_scorer: Final = scorer(metrics=[mean(), stderr()], name="longspan")(_make_scorer)


def _register(suite: str) -> Callable[..., Any]:
    def play(span: Any = None, seeds: Any = 0, out: str | None = None, **settings: Any) -> Any:
        return make_task(suite, span, seeds, out, **settings)

    registered: Callable[..., Any] = task(name=suite)(play)
    return registered


TASKS: Final = {suite: _register(suite) for suite in installed_suites()}
"""The tasks by suite. Inspect AI registers them when it imports this module."""
