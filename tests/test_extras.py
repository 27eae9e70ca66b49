"""Extras: each is sufficient for its purpose, and a missing one is named in one line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from tests.environments import PROJECT, ROOT, Environment, build
from tests.loopback import Server

RUN = ("run", "--scenario", "colours", "--tests", "1", "--span", "2k", "--json")

EXTRAS = set(PROJECT["optional-dependencies"]) - {"all", "site", "test"}

AGENTS = ("openai", "anthropic", "google")

PROVES_THE_GUARD = """
import sys
sys.path.append({root!r})
from longspan import BaseAgent, Reply


class Curious(BaseAgent):
    async def reply(self, message):
        try:
            import scenarios
        except ImportError as error:
            return Reply(str(error))
"""
"""An agent that replies with the result of importing longspan's folder `scenarios` under its bare name."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """longspan without extras."""
    folder = tmp_path_factory.mktemp("bare")
    made = Environment(folder / "venv")
    made.install(build("wheel", folder))
    return made


@pytest.fixture
def having(bare: Environment, tmp_path: Path) -> Callable[..., Environment]:
    """A function that creates an environment with some extras."""

    def make(*extras: str) -> Environment:
        made = Environment(tmp_path / "venv", extras)
        made.share(bare)
        return made

    return make


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server().running() as running:
        yield running


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.tiny_gguf import write_model

    return write_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def played(bare: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, a sweep file and packed chapters."""
    folder = tmp_path_factory.mktemp("played")
    done = bare.run("longspan", *RUN, "--agent", "oracle", cwd=folder)
    assert done.returncode == 0, done.stderr
    example = {"ctx": "Ada went home. " * 20, "pos": "She slept.", "negs": [f"He ran {n} miles." for n in range(5)]}
    import zstandard

    (folder / "chapters.zst").write_bytes(zstandard.ZstdCompressor().compress(json.dumps({"ao3": {"7": [example]}}).encode()))
    (folder / "sweep.yaml").write_text(json.dumps({"scenarios": ["colours"], "tests": 1, "spans": ["2k"], "agents": ["oracle"]}), "utf-8")
    return folder


MISSING = """
import contextlib, io, json, sys
from longspan.simulator.cli import main
found = []
for arguments in json.load(sys.stdin):
    said = io.StringIO()
    code = None
    with contextlib.redirect_stderr(said):
        try:
            main(arguments)
        except SystemExit as leaving:
            code = leaving.code
    found.append([code, said.getvalue()])
json.dump(found, sys.stdout)
"""
"""Prints how commands fail."""


def test_a_missing_extra_is_named_in_one_line(bare: Environment, played: Path, model: Path) -> None:
    wanted = {
        "openai": [*RUN, "--agent", "openai/some?base_url=http://127.0.0.1:9/v1&context=2k"],
        "anthropic": [*RUN, "--agent", "anthropic/some?base_url=http://127.0.0.1:9&context=2k"],
        "google": [*RUN, "--agent", "google/some?base_url=http://127.0.0.1:9&context=2k"],
        "litellm": [*RUN, "--agent", "litellm/hosted_vllm/some?base_url=http://127.0.0.1:9/v1&context=2k"],
        "gguf": [*RUN, "--agent", f"gguf/{model}"],
        "local": [*RUN, "--agent", "local"],
        "ltm": [*RUN, "--agent", "ltm/openai/some?base_url=http://127.0.0.1:9/v1&context=2k&memory=semantic&embedder=hash"],
        "parquet": ["export", "runs", "--format", "parquet", "--out", "tables"],
        "inspect": ["export", "runs", "--format", "inspect", "--out", "logs"],
        "view": ["view", "--port", "0"],
        "mcp": [*RUN, "--agent", "mcp:true?model=openai/some&base_url=http://127.0.0.1:9/v1"],
        "ray": ["sweep", "sweep.yaml", "--on", "ray", "--out", "swept"],
        "zst": ["run", "--scenario", "chapterbreak", "--data", "chapterbreak=chapters.zst", "--span", "16k", "--agent", "oracle", "--json"],
        "otel": [*RUN, "--agent", "oracle", "--otel"],
    }
    assert set(wanted) == EXTRAS
    before = sorted(played.rglob("*"))
    done = subprocess.run(
        [bare.python, "-c", MISSING], cwd=played, env=bare.variables(), input=json.dumps(list(wanted.values())),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for extra, (code, said) in zip(wanted, json.loads(done.stdout), strict=True):
        assert code == 2, (extra, said)
        assert said.count("\n") == 1, (extra, said)
        named = "openai" if extra == "ltm" else extra  # its model is created first
        assert f"pip install 'longspan[{named}] @ file://" in said, (extra, said)
    assert sorted(played.rglob("*")) == before, "nothing is made"


@pytest.mark.parametrize("kind", [*AGENTS, "litellm/hosted_vllm"])
def test_a_model_is_asked(kind: str, having: Callable[..., Environment], server: Server, tmp_path: Path) -> None:
    extra = kind.partition("/")[0]
    agent = f"{kind}/some?base_url={server.base_url(kind if kind in AGENTS else 'openai')}&timeout=20&context=2k"
    done = having(extra).run("longspan", *RUN, "--agent", agent, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["tests"][0]["status"] == "scored"


def test_a_local_model_is_asked(having: Callable[..., Environment], model: Path, tmp_path: Path) -> None:
    done = having("gguf").run("longspan", *RUN, "--agent", f"gguf/{model}?n_ctx=4096&max_tokens=16&threads=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_the_extra_local_brings_is_all_that_its_embedder_needs(having: Callable[..., Environment], tmp_path: Path) -> None:
    code = (
        "import trio; from longspan.agents.memory.ltm import embedders; print(trio.run(embedders.make_embedder('local').embed, ['a'])[1])"
    )
    done = having("local").run("python", "-c", code, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_the_memory_agent_needs_its_extra_and_its_models(having: Callable[..., Environment], server: Server, tmp_path: Path) -> None:
    made = having("openai")
    agent = f"ltm/openai/some?base_url={server.base_url('openai')}&timeout=20&context=4k&memory=semantic&embedder=hash"
    done = made.run("longspan", *RUN, "--agent", agent, cwd=tmp_path)
    said = "longspan: agent ltm needs the package chromadb: pip install 'longspan[ltm] @ file://"
    assert (done.returncode, done.stderr[: len(said)]) == (2, said)


@pytest.mark.parametrize("extra", ["parquet", "inspect"])
def test_runs_are_exported(extra: str, having: Callable[..., Environment], played: Path, tmp_path: Path) -> None:
    done = having(extra).run("longspan", "export", played / "runs", "--format", extra, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "out").iterdir())


def test_packed_chapters_are_read(having: Callable[..., Environment], played: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from longspan.scenarios.ltm.chapterbreak.published_chapters import read_examples;"
        "print(*(example.where for example in read_examples(Path(sys.argv[1]))))"
    )
    done = having("zst").run("python", "-c", code, played / "chapters.zst", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("ao3/7/0\n", "")


def test_runs_are_traced(having: Callable[..., Environment], tmp_path: Path) -> None:
    from tests.loopback.otlp import Collector

    with Collector().running() as collector:
        address = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address}
        done = having("otel").run("longspan", *RUN, "--agent", "oracle", "--otel", cwd=tmp_path, env=address)
    assert done.returncode == 0
    assert all(line.startswith("ltm-2k-oracle-seed0: 1") for line in done.stderr.splitlines()), done.stderr  # progress alone
    assert collector.named("invoke_agent oracle")


def test_runs_are_viewed(having: Callable[..., Environment], played: Path) -> None:
    made = having("view")
    command = [made.bin / "longspan", "view", "runs", "--port", "0"]
    with subprocess.Popen(command, cwd=played, env=made.variables(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            browser = build_opener(HTTPCookieProcessor())  # the token goes into a cookie
            with browser.open(process.stdout.readline().strip(), timeout=20) as page:
                assert b"ltm-2k-oracle-seed0" in page.read()
        finally:
            process.terminate()


def test_a_sweep_is_played_on_ray(having: Callable[..., Environment], tmp_path: Path) -> None:
    made = having("ray")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").touch()
    (tmp_path / "agents" / "mine.py").write_text(PROVES_THE_GUARD.format(root=str(ROOT)), "utf-8")
    content = {"scenarios": ["colours"], "tests": 1, "spans": ["2k"], "agents": ["python:agents.mine:Curious"]}
    (tmp_path / "sweep.yaml").write_text(json.dumps(content), "utf-8")
    home = tmp_path / "home"
    home.mkdir()
    done = made.run("longspan", "sweep", "sweep.yaml", "--trust", "--on", "ray", "--json", cwd=tmp_path, env={"HOME": str(home)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (home / ".ray").exists(), "the cluster's token is in no file"
    (journal,) = tmp_path.rglob("journal.jsonl")
    assert "'scenarios' is longspan's own folder: install longspan and import longspan.scenarios" in journal.read_text("utf-8")
