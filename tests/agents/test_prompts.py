"""What models were sent is kept with --keep-prompts, once each, and shown."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from tests.loopback import Server
from tests.sealing import read_lines, write_lines

from longspan.simulator.base.errors import JournalError
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report, write_report
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.subject.prompt_log import PromptLog, note_prompt, read_prompts
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

KEY = "sk-something-secret"


@pytest.fixture(scope="module")
def model() -> Iterator[Server]:
    with Server(reply=lambda text: f"Noted: {text[-40:]}").running() as server:
        yield server


@pytest.fixture(scope="module")
def kept(model: Server, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run that has kept its prompts. One of them contains a key."""
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    agent = f"{model.model()}&context=600&system=Say%20{KEY}"
    settings = RunSettings(suite=suite, span=2_000, agent=agent, filler_size=200, keep_prompts=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", KEY)
        (outcome,) = trio.run(lambda: play_plans([plan_run(settings, tmp_path_factory.mktemp("runs"))], pages=Report))
    assert outcome.error is None
    return RunFolder(outcome.folder)


def test_prompts_are_kept_as_they_were_sent_but_for_keys(kept: RunFolder, model: Server) -> None:
    found = list(read_prompts(kept.prompts("main")))
    sent = [[(role, text.replace(KEY, "[OPENAI_API_KEY]")) for role, text in each.texts] for each in model.asked]
    assert [list(map(tuple, prompt.messages)) for prompt in found] == sent
    assert [prompt.turn for prompt in found] == [event.turn for event in kept.events("main") if event.type == "reply" and event.asked]
    assert {prompt.purpose for prompt in found} == {"reply"}
    assert KEY not in kept.prompts("main").read_text("utf-8")


def test_the_report_shows_what_a_model_was_sent(kept: RunFolder) -> None:
    report = (kept.path / "report.html").read_text("utf-8")
    assert f'"prompt":"{next(read_prompts(kept.prompts("main"))).model}, for: reply' in report
    assert "system: Say [OPENAI_API_KEY]" in report


def test_a_long_conversation_is_kept_about_once(tmp_path: Path) -> None:
    """With the oldest turns leaving one by one, prompts of 20 turns would take 20 times as much."""
    path, system, said = tmp_path / "prompts.jsonl", ("system", "Be brief."), [("user", "Hello."), ("assistant", "OK.")]
    with PromptLog(path).keep_prompts():
        for turn in range(100):
            said.append(("user", f"{turn}: {'word ' * 200}"))
            note_prompt("openai/gpt-4o", [system, *said[-20:]])
            said.append(("assistant", "OK."))
    assert path.stat().st_size < 3 * sum(len(text) for _, text in said)
    found = [list(map(tuple, prompt.messages)) for prompt in read_prompts(path)]
    assert found[0] == [system, *said[:3]]
    assert found[-1] == [system, *said[-21:-1]]


def test_a_resumed_run_goes_on_numbering(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    first, second = [("user", "one")], [("user", "one"), ("assistant", "1"), ("user", "two")]
    for prompt in (first, second):
        with PromptLog(path).keep_prompts():
            note_prompt("m", prompt, "notes")
    assert [list(map(tuple, prompt.messages)) for prompt in read_prompts(path)] == [first, second]
    assert path.read_text("utf-8").count("one") == 1


@pytest.mark.parametrize("entry", [{"messages": [[0, 9]]}, {"messages": [[0, 0]] * 100_001}, {"turn": "x"}, {"new": [["user"]]}])
def test_a_forged_file_is_an_error_that_names_it(entry: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    with PromptLog(path).keep_prompts():
        note_prompt("m", [("user", "one")])
    write_lines(path, [line | entry for line in read_lines(path)])
    with pytest.raises(JournalError, match=r"prompts\.jsonl, line 1: not a prompt"):
        list(read_prompts(path))


def test_a_report_reads_little_of_what_a_forged_file_names_again_and_again(kept: RunFolder, tmp_path: Path) -> None:
    copy = RunFolder(shutil.copytree(kept.path, tmp_path / "run"))
    entry = {"turn": 0, "sent_at": None, "model": "m", "for": "reply"}
    many = entry | {"new": [], "messages": [[0, 99_999]]}
    first = {"of": copy.owner("main").named} | entry | {"new": [["", ""]] * 100_000, "messages": []}
    write_lines(copy.prompts("main"), [first, *[many] * 5_000])
    *_, prompt = read_prompts(copy.prompts("main"))
    assert len(prompt.messages) == 100_000
    write_report(copy, read_result(copy))
    assert "99,949 messages left out" in (copy.path / "report.html").read_text("utf-8")


def test_the_script_in_the_documentation_prints_a_prompt(kept: RunFolder, tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "debugging.md").read_text("utf-8")
    (script,) = re.findall(r"^```python\n(# prompt\.py\n.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    *_, prompt = read_prompts(kept.prompts("main"))
    printed = subprocess.run(
        [sys.executable, "-c", script, kept.prompts("main"), str(prompt.turn)], capture_output=True, text=True, check=True
    ).stdout
    assert printed.splitlines()[0] == f"-- {prompt.model}, for: reply"
    assert all(f"{role}: {text}\n" in printed for role, text in prompt.messages)
