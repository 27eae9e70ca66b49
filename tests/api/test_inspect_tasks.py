"""Inspect AI's tasks: they play what longspan.run plays, with Inspect AI's model, limits and log."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from tests.threads import in_thread

import longspan
from longspan.simulator.base.installed import installed_suites
from longspan.simulator.journal import events
from longspan.simulator.journal.run_folder import RunFolder

# Inspect AI leaves streams unclosed, which Python reports whenever it collects them.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

ROOT = Path(__file__).parents[2]

PLAYED: dict[str, Any] = {"span": "2k", "scenarios": ["colours", "jokes"], "seeds": "0,1,0"}

CALL = 15
"""The tokens of a call of the model."""


def make_bot() -> Any:
    """The sample project's agent, which recalls some things."""
    spec = importlib.util.spec_from_file_location("bot", ROOT / "examples" / "pytest-project" / "bot.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.DiaryBot()


def play(folder: Path, *, seconds: float = 0, failing: bool = False, played: dict[str, Any] = PLAYED, **limits: Any) -> Any:
    """Evaluate the suite ltm with a model that replies as the bot does to the messages so far. Return the log as Inspect AI reads it."""
    import anyio
    from inspect_ai import eval
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from longspan.simulator.api.inspect_tasks import TASKS

    async def reply(messages: Any, *others: Any) -> ModelOutput:
        await anyio.sleep(seconds)
        if failing:
            raise ZeroDivisionError("the model is out of order")
        bot = make_bot()
        *_, text = [bot.reply(message) for message in messages if message.role == "user"]
        output = ModelOutput.from_content("mockllm/model", text)
        output.usage = ModelUsage(input_tokens=CALL - 5, output_tokens=5, total_tokens=CALL)
        return output

    def evaluate() -> Any:
        model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
        (log,) = eval(TASKS["ltm"](**played), model=model, display="none", log_dir=str(folder), **limits)
        return read_eval_log(log.location)

    return in_thread(evaluate)


def test_a_task_plays_and_grades_what_a_run_does(tmp_path: Path) -> None:
    log = play(tmp_path / "logs", played=PLAYED | {"out": str(tmp_path / "kept")})
    assert (log.status, log.eval.task, log.eval.model) == ("success", "longspan/ltm", "mockllm/model")
    shares = []
    for seed, sample in enumerate(log.samples):
        assert sample.id == f"seed{seed}"
        direct = longspan.run(agent=make_bot, out=tmp_path / "direct", **PLAYED | {"seeds": seed})
        score = sample.scores["longspan"]
        assert score.value == pytest.approx(direct.share, abs=1e-6)
        assert score.metadata["tests"] == dict(zip(direct.tests["test"], direct.tests["score"], strict=True))
        assert {line.partition(":")[0] for line in score.explanation.splitlines()} == {test.id for test in direct.failed()}
        shares.append(score.value)
        kept = longspan.load(tmp_path / "kept" / sample.uuid)
        said = [event.text for event in RunFolder(kept.folders[0]).events("main") if isinstance(event, events.Message)]
        calls = [event for event in sample.events if event.event == "model"]
        assert sample.model_usage["mockllm/model"].total_tokens == CALL * len(calls)
        assert [message.role for message in sample.messages] == ["user", "assistant"] * len(said)
        assert [message.text for message in sample.messages[::2]] == said
    assert 0 < fmean(shares) < 1
    metrics = log.results.scores[0].metrics
    assert metrics["mean"].value == pytest.approx(fmean(shares), abs=1e-6)
    assert metrics["stderr"].value == pytest.approx(stdev(shares) / 2**0.5, abs=1e-6)


@pytest.mark.parametrize(("kind", "limit", "seconds"), [("token", 20 * CALL, 0), ("message", 60, 0), ("time", 1, 0.03)])
def test_a_limit_ends_the_sample_and_finished_tests_count(tmp_path: Path, kind: str, limit: int, seconds: float) -> None:
    log = play(tmp_path, seconds=seconds, played=PLAYED | {"seeds": 0, "tests": 4}, **{f"{kind}_limit": limit})
    (sample,) = log.samples
    assert (log.status, sample.error, sample.limit.type) == ("success", None, kind)
    tests = sample.scores["longspan"].metadata["tests"]
    assert None in tests.values()
    assert 0 < sample.scores["longspan"].value < 1


def test_a_failure_of_the_model_is_the_samples_error_as_inspect_names_it(tmp_path: Path) -> None:
    log = play(tmp_path, failing=True, played=PLAYED | {"seeds": 0})
    assert log.status == "error"
    assert "ZeroDivisionError" in log.error.message
    assert not log.samples[0].scores


def test_the_entry_point_registers_each_suite() -> None:
    from inspect_ai._util.registry import registry_lookup

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]["inspect_ai"]
    module = EntryPoint("longspan", declared["longspan"], "inspect_ai").load()
    assert module is sys.modules["longspan.simulator.api.inspect_tasks"]
    for suite in installed_suites():
        assert registry_lookup("task", f"longspan/{suite}") is module.TASKS[suite]
    with pytest.raises(longspan.InputError, match=r"^seeds: .*'x'"):
        module.TASKS["ltm"](seeds="x")
