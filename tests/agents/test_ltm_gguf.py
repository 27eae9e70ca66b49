"""The memory agent with a local model: real llama.cpp and a tiny model of random weights."""

from __future__ import annotations

from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.agents.thinker import START
from tests.conftest import skip

from longspan.agents.base import InputError, Message
from longspan.agents.memory.ltm.embedders import make_embedder
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite


def test_a_run_with_a_local_model_finishes(tmp_path: Path) -> None:
    if find_spec("llama_cpp") is None or find_spec("gguf") is None:
        skip("llama-cpp-python and gguf are not installed")
    from tests.tiny_gguf import write_model

    model = write_model(tmp_path / "tiny.gguf")
    spec = f"ltm/gguf/{model}?threads=1&n_ctx=4k&max_tokens=12&embedder=hash"
    suite = load_suite("ltm").apply_changes([], [], [], tests=1)
    (outcome,) = trio.run(
        lambda: play_plans([plan_run(RunSettings(suite=suite, span=2_000, seed=1, agent=spec), tmp_path / "runs")], pages=Report)
    )
    assert outcome.error is None
    assert outcome.result is not None
    assert {test.status for test in outcome.result.tests} == {"scored"}
    run = RunFolder(outcome.folder)
    transcript = run.transcripts()["main"]
    assert transcript.closed
    assert {(part, cost) for part, _, cost in transcript.used} == {("agent", 0.0)}
    replies = [event for event in read_journal(run.journal("main")) if isinstance(event, events.Reply) and event.trace]
    calls = [call for reply in replies if reply.trace for call in reply.trace["calls"]]
    assert {call["for"] for call in calls} == {"reply", "queries", "notes"}
    for purpose, counted in outcome.result.calls.items():  # random weights write no JSON
        of_purpose = [call for call in calls if call["for"] == purpose]
        assert (counted.calls, counted.failed) == (len(of_purpose), sum("problem" in call for call in of_purpose))
    assert outcome.result.calls["queries"].failed > 0
    noted = int(outcome.result.metrics["notes_taken"])
    report = (run.path / "report.html").read_text("utf-8")
    assert "answers to requests for queries could not be used: no queries in the answer." in report
    assert f"The notes did not change in {noted:,} of the {noted:,} times that they were taken." in report
    assert sum(call["usage"]["cached_tokens"] for call in calls) > 0.5 * sum(call["usage"]["input_tokens"] for call in calls)
    assert sum(len(reply.trace["read"]) for reply in replies if reply.trace) > len(replies)
    assert (run.path / "report.html").exists()


def test_a_local_model_makes_vectors_and_a_file_that_cannot_is_refused_in_one_line(tmp_path: Path) -> None:
    if find_spec("llama_cpp") is None or find_spec("gguf") is None:
        skip("llama-cpp-python and gguf are not installed")
    from tests.tiny_gguf import write_model

    model = write_model(tmp_path / "tiny.gguf", template=None)
    embedder = make_embedder(f"gguf/{model}")
    texts = ["My bicycle is called Bertram.", "It rained on ten days.", "My bicycle is called Bertram.", "", "word " * 2000]
    vectors, tokens = trio.run(embedder.embed, texts)
    assert (len(vectors), tokens, embedder.model) == (5, 0, None)
    cosines = vectors @ vectors[0]
    assert cosines[0] == pytest.approx(1)
    assert cosines[2] == pytest.approx(1)
    assert cosines[1] < 0.999
    for text, together in zip(texts, vectors, strict=True):
        alone, _ = trio.run(embedder.embed, [text])
        assert together == pytest.approx(alone[0], abs=1e-4)

    async def first() -> str:
        agent: Any = make_agent(AgentSpec.parse(f"memory/chroma?embedder=gguf/{model}&answerer=none&k=1"))
        for number, text in enumerate(texts[:2]):
            await agent.observe(Message(text, START + number * timedelta(minutes=1), f"t{number}"), "")
        reply = await agent.reply(Message(texts[1], START, "t9"))
        await agent.close()
        return str(reply.trace["read"][0]["text"])

    assert trio.run(first) == texts[1]
    (tmp_path / "bad.gguf").write_bytes(model.read_bytes()[:2000])
    for name, said in (
        ("bad.gguf", "bad.gguf: (it cannot be loaded|llama.cpp crashes)"),
        ("none.gguf", "none.gguf: there is no such file"),
    ):
        with pytest.raises(InputError, match=f"embedder=gguf/.*{said}"):
            make_embedder(f"gguf/{tmp_path / name}")
