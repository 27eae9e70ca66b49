"""Trust: anything that a folder names is harmless, allowed by the user, or refused. Permissions are remembered outside the folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from tests.sealing import change_json

from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.base.errors import InputError, StoppedError
from longspan.simulator.base.installed import AGENTS as GROUP
from longspan.simulator.base.installed import installed
from longspan.simulator.cli import main
from longspan.simulator.cli.scores import print_outcome
from longspan.simulator.running.planning import plan
from longspan.simulator.running.runner import Outcome, resume
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.plugins import origin
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite
from longspan.simulator.suite.trust import MEMORIES, MODELS, REFERENCE, SENT, Named, admit, clear, danger, is_trusted, vouch

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
    planned = plan(RunSettings(suite=SUITE, span=1500, agent=agent, filler_size=500, **more), out)
    return RunFolder.create(planned.out, planned.name, planned.manifest).path


def change(run: Path, **fields: Any) -> None:
    change_json(run / "manifest.json", lambda manifest: manifest.update(fields))


def asks(run: Path) -> bool:
    """Whether resuming a run is refused."""
    try:
        clear(RunFolder(run).manifest, "agent", "judge", "scenarios", "sources")
    except InputError:
        return True
    return False


# What could do harm.


def test_no_kind_of_ours_has_an_option_that_the_gate_does_not_know() -> None:
    """An option of text may name an address, a file or a program. If you add one that does, let its name end in `url`."""
    harmless = {"system", "memory", "embedder", "eviction", "overflow", "answerer", "answerer.NAME", "batch"}
    asked = {"python", "runnable", "exec", "mcp", "http", "https", "gguf"}
    points = [point for points in installed(GROUP).values() for point in points]
    kinds = {point.name: point.load() for point in points if origin(point) == "longspan"}
    assert kinds.keys() == {*REFERENCE, *MODELS, *asked, "ltm", "memory"}
    memories = {name: point.load() for name, points in installed("longspan.memories").items() for point in points}
    assert memories.keys() == {*MEMORIES, "python", "http", "https", "mcp"}
    kinds |= {f"memory/{name}": memories[name] for name in MEMORIES}
    for name in kinds.keys() - asked:
        fields = getattr(kinds[name], "Options", None)
        texts = {info.alias or field for field, info in (fields.model_fields if fields else {}).items() if "str" in str(info.annotation)}
        assert {field for field in texts if not field.endswith("url") and not SENT.fullmatch(field)} <= harmless, name


@pytest.mark.parametrize(
    "spec",
    [
        *(
            "silent",
            "stateless",
            "oracle",
            "notebook?window=8k",
            "human",
            "openai/gpt-4o?context=16k&temperature=0",
            "google/gemini-2.5-pro",
        ),
        *("anthropic/claude", "ltm/openai/gpt-4o?memory=json&embedder=minilm", "ltm:openai/gpt-4o", "acme", "acme/model"),
        "anthropic/claude?thinking_budget=2000&reasoning_effort=low&keep_thinking=true",
    ],
)
def test_an_agent_that_can_do_no_harm_is_not_asked_about(spec: str) -> None:
    assert danger(spec) is None


@pytest.mark.parametrize(
    "option", ["key_env=AWS_SECRET_ACCESS_KEY", "header.X-Team=a", 'extra_body={"tools":[]}', "price_in=0&price_out=0"]
)
@pytest.mark.parametrize("model", ["openai/gpt-4o", "ltm/anthropic/claude"])
def test_what_a_stranger_would_have_sent_is_asked_about(model: str, option: str) -> None:
    assert danger(f"{model}?{option}") == Named("send", f"{model}?{option}")


@given(st.sampled_from(["python", "runnable", "exec", "http", "https", "gguf", "ltm", "ltm/gguf", "acme"]), st.text(max_size=20))
@example("exec", "\n")
@example("acme", "?x=%2Fbin%2Fsh")
def test_no_target_makes_a_dangerous_kind_harmless(kind: str, rest: str) -> None:
    spec = f"{kind}:{rest}"
    try:
        parsed = AgentSpec.parse(spec)
    except InputError:
        assert danger(spec) is not None
        return
    if parsed.kind == "ltm" and parsed.target.split("/")[0].split(":")[0] in (*MODELS, *REFERENCE):
        return
    if parsed.kind == "acme" and not parsed.options and ":" not in parsed.target:
        return
    assert danger(spec) is not None


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
        trio.run(resume, run, run.manifest.agent)
    admit(run.path, run.manifest, given=[CODE])
    assert trio.run(resume, run, run.manifest.agent).error is None


def test_what_was_allowed_for_one_manifest_is_not_for_another(tmp_path: Path) -> None:
    manifest = RunFolder(made(tmp_path, "silent")).manifest
    vouch(manifest)
    with pytest.raises(InputError, match="names code to run"):
        clear(manifest.model_copy(update={"agent": "exec:true"}), "agent")
