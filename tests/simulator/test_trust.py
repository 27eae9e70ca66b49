"""Trust: anything that a folder names is harmless, allowed by the user, or refused. Permissions are remembered outside the folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from tests.sealing import change_json

from longspan.simulator.base.errors import InputError, StoppedError
from longspan.simulator.base.installed import AGENTS as GROUP
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.cli import main
from longspan.simulator.contract.agent import Danger, never_asked
from longspan.simulator.contract.plugins import own_class
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.runner import resume_run
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite
from longspan.simulator.suite.trust import NamedDanger, admit_manifest, is_trusted, require_trust, spec_danger, vouch_for
from longspan.simulator.terminal.scores import print_outcome

CODE: Final = "python:tests.durability.agents:Keeper"

SUITE: Final = Suite(name="ltm", tests=1, scenarios={"colours": {}})


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own folder for trust decisions."""
    monkeypatch.setenv("LONGSPAN_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state" / "trusted"


def command(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exited:
        main([str(each) for each in arguments])
    assert isinstance(exited.value.code, int)
    return exited.value.code


def made(out: Path, agent: str = CODE, **more: Any) -> Path:
    """Make a run's folder as `longspan run` does, without playing it."""
    planned = plan_run(RunSettings(suite=SUITE, span=1500, agent=agent, filler_size=500, **more), out)
    return RunFolder.create(planned.out, planned.name, planned.manifest).path


def change(run: Path, **fields: Any) -> None:
    change_json(run / "manifest.json", lambda manifest: manifest.update(fields))


def asks(run: Path) -> bool:
    """Whether resuming a run is refused."""
    try:
        require_trust(RunFolder(run).manifest, "agent", "judge", "scenarios", "sources")
    except InputError:
        return True
    return False


# What could do harm.


def test_no_kind_of_ours_has_an_option_that_its_class_does_not_know() -> None:
    """An option of text may name an address, a file or a program. If you add one that does, let its name end in `url`, or say so in the
    class's `danger`."""
    harmless = {"system", "memory", "embedder", "eviction", "overflow", "answerer", "answerer.NAME", "batch", "conversation"}
    for group in (GROUP, "longspan.memories", "longspan.cores"):
        for name, points in find_entry_points(group).items():
            cls = own_class(group, name)
            assert cls is points[0].load(), name  # each says what it could do
            fields = cls.Options.model_fields
            for option in (info.alias or field for field, info in fields.items() if "str" in str(info.annotation)):
                asked = cls.danger("openai/m" if name == "ltm" else "none", {option.replace("NAME", "x"): "x"})
                assert asked or option.endswith("url") or option in harmless, (name, option)


ASKED: Final = {
    None: """
        silent stateless oracle notebook notebook?window=8k human given given/Agent?timeout=3 openai/gpt-4o?context=16k&temperature=0
        openai:gpt-4o google/gemini-2.5-pro anthropic/claude?thinking_budget=2000&reasoning_effort=low&keep_thinking=true
        ltm/openai/gpt-4o?memory=json&embedder=minilm ltm:openai/gpt-4o ltm/openai:gpt-4o ltm/openai/m?embedder=openai/e acme acme/model
        memory/none?answerer=none memory:bm25?answerer=words memory/bm25?answerer=op%65nai/m memory/chroma?embedder=hash&answerer=none
        local local?n_ctx=4k ltm/local?embedder=local memory/bm25?answerer=local memory/chroma?embedder=wordllama&answerer=none
        memory/recent?tokens=2k&answerer=openai/gpt-4o&answerer.temperature=0 OPENAI/gpt-4o op_enai
        groq/m openrouter/vendor/m?stream=true ollama/m ltm/azure/m memory/bm25?answerer=mistral/m
    """,
    "run": """
        python:mine:Agent python/mine:Agent?x=1 runnable:mine:graph exec:true exec/true mcp:server?model=openai/m python exec acme/a:b
        acme?x=1 acme:model?x=1 OPENAI/m?temperature=0 Python:mine:Agent silent2?x=1 op%65nai/m memory/mine?answerer=none memory memory/
        memory/python:mine:Memory?answerer=none memory/mcp:server?answerer=none memory/BM25 memory/n%25one memory/bm25?answerer=acme/m
        memory/bm25?answerer=exec:true memory/bm25?answerer=python:mine:Agent memory/bm25?answerer=OPENAI/m
        memory/bm25?answerer=ltm/openai/m memory/bm25?answerer= ltm ltm/ ltm/acme/m ltm/python:mine:Agent ltm/pyth%6Fn:mine:Agent
        ltm/openai/m?embedder=python:mine:Class memory/chroma?answerer=none&embedder=p%79thon:mine:Class
        ltm/exec:true ltm/OPENAI/m ltm/ltm/openai/m ltm/memory/bm25 ltm/http/m ltm//openai/m 7 ?x=1 a&b
    """,
    "call": """
        azure/m?base_url=h litellm/openai/m?base_url=h
        http://127.0.0.1:1 https://h http:h openai/m?base_url=h openai/m?x=http://h openai/http%253A%252F%252Fh anthropic/m?base_url=h
        memory/http://127.0.0.1:1/?answerer=none memory/https:h memory/bm25?answerer=openai/m&answerer.base_url=127.0.0.1
        memory/chroma?chroma_url=h&answerer=none ltm/openai/m?embedder=openai/e&embedder_url=h ltm/openai/m?chroma_url=h
        ltm/openai/m?base_url=h&key_env=K ltm/gguf/m?chroma_url=h silent?hook=http://h
    """,
    "send": """
        litellm/openai/m?key_env=K groq/m?key_env=K
        openai/m?key_env=AWS_SECRET_ACCESS_KEY openai/m?header.X-Team=a openai/m?extra_body={"tools":[]} openai/m?price_in=0&price_out=0
        ltm/anthropic/m?key_env=K ltm/anthropic/m?header.x=y ltm/google/m?extra_body={} ltm/google/m?price_in=0&price_out=0
        given/Agent?price_in=0&price_out=0 memory/bm25?answerer=openai/m&answerer.header.x=y
        memory/bm25?answerer=openai/m&answerer.key_env=K
    """,
    "use": """
        litellm/openai/m ltm/litellm/azure/m memory/bm25?answerer=litellm/vllm/m
        gguf/m.gguf gguf:m.gguf?context=1k ltm/gguf/m.gguf ltm:gguf:m.gguf ltm/gg%75f/m.gguf ltm/openai/m?embedder=gguf/e
        ltm/openai/m?embedder=g%67uf/e memory/bm25?answerer=gguf/m.gguf memory/bm25?answerer=gg%75f%2Fm.gguf
        memory/chroma?answerer=none&embedder=gguf/e memory/chroma?answerer=openai/m&embedder=gguf/e
        local?chat_template=f ltm/local?chat_template=f memory/bm25?answerer=local&answerer.chat_template=f
    """,
}
"""What specs could do at worst."""


@pytest.mark.parametrize("how", ASKED)
def test_what_an_agent_could_do_at_worst_is_known(how: Danger | None) -> None:
    specs = ASKED[how].split()
    assert {spec: spec_danger(spec) for spec in specs} == {spec: None if how is None else NamedDanger(how, spec) for spec in specs}


@pytest.mark.parametrize(
    ("spec", "how"),
    [
        ("memory/python:mine:Memory?answerer=openai/m&answerer.base_url=h", "run"),
        ("memory/http://h?answerer=gguf/m.gguf", "call"),
        ("ltm/openai/m?embedder=gguf/e&key_env=K", "send"),
    ],
)
def test_the_worst_is_said_of_what_could_do_several_things(spec: str, how: Danger) -> None:
    assert spec_danger(spec) == NamedDanger(how, spec)


OTHERS: Final = """
import sys

print("the stranger's code was run")

class Acme:
    @classmethod
    def danger(cls, target, options):
        return None
"""


def test_other_packages_are_not_asked_and_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    groups = {
        GROUP: "acme = acme_agents:Acme\nlongspanish = longspanish:Acme\nbook = longspan.agents.reference.notebook:Notebook\n"
        "part = longspan.agents.reference.notebook:NOTED\nsilent = acme_agents:Acme\nodd = longspan.?\n",
        "longspan.memories": "acme = acme_agents:Acme\n",
        "longspan.cores": "acme = acme_agents:Acme\n",
    }
    (info / "entry_points.txt").write_text("".join(f"[{group}]\n{lines}" for group, lines in groups.items()))
    (tmp_path / "acme_agents.py").write_text(OTHERS)
    (tmp_path / "longspanish.py").write_text(OTHERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import_module("importlib_metadata")  # LiteLLM imports it; from then on, the standard library raises an error for the name `odd`
    harmless = ["acme", "acme/m", "silent", "book?window=8k"]  # the last one is longspan's own by another name
    assert [spec_danger(spec) for spec in harmless] == [None] * 4
    asked = [
        "acme?x=1",
        "acme/a:b",
        "longspanish?x=1",
        "part?x=1",
        "silent?x=1",
        "memory/acme",
        "ltm/acme/m",
        "memory/bm25?answerer=acme/m",
    ]
    assert [spec_danger(spec) for spec in asked] == [NamedDanger("run", spec) for spec in asked]
    assert not {"acme_agents", "longspanish"} & sys.modules.keys()
    assert capsys.readouterr().out == ""


@given(st.sampled_from(["python", "runnable", "exec", "http", "https", "gguf", "ltm", "ltm/gguf", "memory", "acme"]), st.text(max_size=20))
@example("exec", "\n")
@example("acme", "?x=%2Fbin%2Fsh")
def test_no_target_makes_a_dangerous_kind_harmless(kind: str, rest: str) -> None:
    spec = f"{kind}:{rest}"
    try:
        parsed = AgentSpec.parse(spec)
    except InputError:
        assert spec_danger(spec) is not None
        return
    inner = re.split("[/:]", parsed.target)[0]
    if (parsed.kind == "ltm" and inner in find_entry_points("longspan.cores")) or (
        parsed.kind == "memory" and inner in find_entry_points("longspan.memories")
    ):
        return
    if parsed.kind == "acme" and not parsed.options and ":" not in parsed.target:
        return
    assert spec_danger(spec) is not None


@given(
    st.sampled_from(["silent", "human", "openai/m", "ltm/openai/m", "ltm/gguf/m", "memory/none", "memory/chroma", "given", "nobody"]),
    st.dictionaries(
        st.sampled_from(["answerer", "answerer.key_env", "answerer.x", "embedder", "key_env", "header.x", "k", "price_in", "x"]),
        st.sampled_from(["none", "words", "openai/m", "gguf/m", "exec:true", "hash", "K", "3", "silent", "memory/none"]),
        max_size=4,
    ),
)
def test_what_is_not_asked_about_does_nothing_or_cannot_be_made(kind: str, options: dict[str, str]) -> None:
    """An option that its agent does not have need not be asked about."""
    spec = f"{kind}?{'&'.join(f'{name}={value}' for name, value in options.items())}"
    if spec_danger(spec) is not None:
        return
    harmless = {"answerer": ["none", "words", "openai/m"], "embedder": ["hash", "openai/m"], "k": ["3"]}
    if all(value in harmless.get(name, []) for name, value in options.items()):
        return
    with never_asked(), pytest.raises(InputError):
        make_agent(AgentSpec.parse(spec))


# Permissions are remembered.


def test_a_run_of_ones_own_is_not_asked_about_and_a_changed_or_moved_one_is(tmp_path: Path, state: Path) -> None:
    run = made(tmp_path / "runs", judge=None)
    assert len(list(state.iterdir())) == 1
    assert state.stat().st_mode & 0o777 == 0o700
    assert not asks(run)
    whole = (run / "manifest.json").read_bytes()
    for fields in (
        {"agent": CODE[:-1]},
        {"agent": f"{CODE}?x=1"},
        {"judge": "openai/gpt-4o"},
        {"suite": {"name": "ltm", "tests": 1, "scenarios": {"colours": {"changes": 2}}}},
        {"suite": {"name": "ltm", "tests": 1, "scenarios": {"colours": {}, "python:mine:Mine": {}}}},
        {"filler": str(tmp_path / "trivia.json")},
        {"filler_sha256": "0" * 64},
        {"definitions": str(tmp_path)},
    ):
        change(run, **fields)
        assert asks(run), fields
        (run / "manifest.json").write_bytes(whole)
        assert not asks(run)
    moved = run.rename(tmp_path / "moved")
    assert asks(moved)
    run.symlink_to(moved)  # the content is no longer the trusted one
    assert asks(run)
    run.unlink()
    moved.rename(run)
    assert not asks(run)
    copied = shutil.copytree(run, tmp_path / "copied")
    assert asks(copied)


def test_a_run_that_names_nothing_harmful_is_not_remembered(tmp_path: Path, state: Path) -> None:
    assert not asks(made(tmp_path, "silent"))
    assert not state.exists()


def test_trust_is_remembered_and_so_is_naming_the_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = made(tmp_path)
    for name, trust in {"trusted": ["--trust"], "named": ["--agent", CODE]}.items():
        run = shutil.copytree(original, tmp_path / name)
        assert command("resume", run, "--yes", "--max-cost", "1") == 2
        assert f"{run} names code to run: {CODE}; --trust runs it, if you trust its author" in capsys.readouterr().err
        for arguments in (trust, []):
            assert command("resume", run, "--yes", *arguments) == 0, capsys.readouterr().err


def test_naming_the_agent_allows_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = shutil.copytree(made(tmp_path), tmp_path / "elsewhere")
    change(run, judge="openai/m?base_url=http://127.0.0.1:1")
    assert command("resume", run, "--yes", "--agent", CODE) == 2
    assert "names an address to call: openai/m?base_url=http://127.0.0.1:1; --trust calls it" in capsys.readouterr().err
    assert not is_trusted(run, RunFolder(run).manifest)


def test_a_run_played_again_with_another_agent_is_ones_own(tmp_path: Path) -> None:
    run = made(tmp_path, "silent")
    assert command("resume", run, "--yes") == 0
    assert command("replay", run, "--agent", CODE, "--out", tmp_path / "again") == 0
    (again,) = (tmp_path / "again").iterdir()
    assert not asks(again)


def test_a_file_that_was_trusted_is_asked_about_when_it_names_more(tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.yaml"
    sweep = ("sweep", file, "--out", tmp_path / "out")
    content = {"agents": [CODE], "scenarios": ["colours"], "tests": 1, "spans": [1500], "filler_size": 500}
    file.write_text(json.dumps(content))
    assert command(*sweep) == 2
    assert f"{file} names code to run: {CODE}; --trust" in capsys.readouterr().err
    assert command(*sweep, "--trust") == 0
    assert command(*sweep) == 0
    (run,) = (path.parent for path in (tmp_path / "out").glob("*/manifest.json"))
    assert not asks(run)
    shutil.rmtree(state)
    assert asks(run)
    assert command(*sweep, "--trust") == 0
    assert not asks(run)
    file.write_text(json.dumps(content | {"agents": [CODE, f"{CODE}?x=1"]}))
    assert command(*sweep) == 2


def spoiled_by_group(state: Path) -> None:
    state.chmod(0o770)


def spoiled_by_others(state: Path) -> None:
    for file in state.iterdir():
        file.chmod(0o602)


def spoiled_by_a_link(state: Path) -> None:
    state.rename(state.parent / "real")
    state.symlink_to(state.parent / "real")


def spoiled_by_links(state: Path) -> None:
    for file in list(state.iterdir()):
        file.rename(state.parent / file.name)
        file.symlink_to(state.parent / file.name)


def spoiled_by_damage(state: Path) -> None:
    for file in state.iterdir():
        file.write_bytes(file.read_bytes()[:-1])


def spoiled_by_pipes(state: Path) -> None:
    for file in list(state.iterdir()):
        file.unlink()
        os.mkfifo(file, 0o600)


def spoiled_by_a_file(state: Path) -> None:
    shutil.rmtree(state)
    state.write_bytes(b"")


@pytest.mark.parametrize(
    "spoil",
    [spoiled_by_group, spoiled_by_others, spoiled_by_a_link, spoiled_by_links, spoiled_by_damage, spoiled_by_pipes, spoiled_by_a_file],
)
def test_a_memory_that_others_could_have_written_counts_for_nothing(spoil: Callable[[Path], None], tmp_path: Path, state: Path) -> None:
    run = made(tmp_path)
    assert not asks(run)
    spoil(state)
    assert asks(run)


def test_without_a_memory_it_asks_again_and_fails_at_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LONGSPAN_STATE_DIR", str(tmp_path / "file" / "below"))
    run = made(tmp_path)
    for _ in range(2):
        assert asks(run)
        assert command("resume", run, "--yes", "--trust") == 0


def test_the_memory_is_in_the_users_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGSPAN_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    made(tmp_path / "one")
    assert len(list((tmp_path / "xdg" / "longspan" / "trusted").iterdir())) == 1
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made(tmp_path / "two")
    assert len(list((tmp_path / "home" / ".local" / "state" / "longspan" / "trusted").iterdir())) == 1


# The hint after an interruption.


@pytest.mark.parametrize(
    ("agent", "known", "hint"), [("silent", True, ""), (CODE, True, ""), ("silent", False, ""), (CODE, False, " --trust")]
)
def test_the_hint_says_trust_only_where_resuming_would_ask(
    agent: str, known: bool, hint: str, tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made(tmp_path, agent)
    if not known:
        shutil.rmtree(state, ignore_errors=True)
    print_outcome(Outcome(run, None, StoppedError("stopped")))
    assert f"resume  longspan resume {run}{hint}\n" in capsys.readouterr().out


# Without the command line.


def test_a_folder_from_elsewhere_is_refused_by_the_engine_too(tmp_path: Path) -> None:
    run = RunFolder(shutil.copytree(made(tmp_path), tmp_path / "elsewhere"))
    with pytest.raises(InputError, match="names code to run"):
        trio.run(resume_run, run, run.manifest.agent)
    admit_manifest(run.path, run.manifest, given=[CODE])
    assert trio.run(resume_run, run, run.manifest.agent).error is None


def test_what_was_allowed_for_one_manifest_is_not_for_another(tmp_path: Path) -> None:
    manifest = RunFolder(made(tmp_path, "silent")).manifest
    vouch_for(manifest)
    with pytest.raises(InputError, match="names code to run"):
        require_trust(manifest.model_copy(update={"agent": "exec:true"}), "agent")
