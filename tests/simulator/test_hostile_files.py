"""Untrusted files: reading them raises longspan's own errors or nothing, whatever they contain."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.sealing import resealed, write_json

from longspan.simulator.base.errors import InputError, JournalError, LongspanError
from longspan.simulator.base.files.checksums import add_checksum
from longspan.simulator.journal.journal import Journal, read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Transcript
from longspan.simulator.results.gradebook.commitment import read_published, verify_scores
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.running.planning import plan_run, replan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite, make_tests

FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished run."""
    suite = load_suite("ltm").apply_changes([], [], ["colours", "jokes", "prospective_memory"], 1)
    out = tmp_path_factory.mktemp("runs")
    (outcome,) = trio.run(lambda: play_plans([plan_run(RunSettings(suite=suite, span=2_000, seed=1, agent="notebook"), out)]))
    return RunFolder(outcome.folder)


@st.composite
def mutated(draw: st.DrawFn, lines: list[bytes]) -> bytes:
    """A file with damaged lines: bytes changed, fields replaced, lines lost, duplicated or swapped. It may have new checksums."""
    found = list(lines)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(found) - 1))
        match draw(st.sampled_from(["bytes", "field", "drop", "double", "swap", "cut"])):
            case "bytes":
                place = draw(st.integers(0, len(found[at])))
                found[at] = found[at][:place] + draw(st.binary(max_size=6)) + found[at][place + draw(st.integers(0, 4)) :]
            case "field":
                try:
                    entry = json.loads(found[at])
                except ValueError:
                    continue
                if isinstance(entry, dict) and entry:
                    entry[draw(st.sampled_from(sorted(entry)))] = draw(JSON)
                    found[at] = json.dumps(entry).encode() + b"\n"
            case "drop":
                del found[at]
            case "double":
                found.insert(at, found[at])
            case "swap":
                found[at], found[0] = found[0], found[at]
            case "cut":
                found[at] = found[at][: draw(st.integers(0, len(found[at])))]
        if not found:
            break
    return resealed(b"".join(found)) if draw(st.booleans()) else b"".join(found)


def harmless(action: Callable[[], Any]) -> None:
    """Run an action that may only raise a LongspanError of one line."""
    message = "done"
    try:
        action()
    except LongspanError as error:
        message = str(error)
    assert message
    assert "\n" not in message.strip()


@FUZZ
@given(data=st.data())
def test_journals(data: st.DataObject, run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> None:
    lines = run.journal("main").read_bytes().splitlines(keepends=True)
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    path.write_bytes(data.draw(mutated(lines) | st.binary(max_size=200)))
    harmless(lambda: Transcript.of(read_journal(path)))
    harmless(lambda: Journal(path).__exit__(None, None, None))


@FUZZ
@given(data=st.data())
def test_runs_with_a_damaged_journal(data: st.DataObject, run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = copy(run, tmp_path_factory)
    lines = run.journal("main").read_bytes().splitlines(keepends=True)
    other.journal("main").write_bytes(data.draw(mutated(lines)))
    harmless(lambda: grade_run(other))


@FUZZ
@given(data=st.data())
def test_manifests(data: st.DataObject, run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = copy(run, tmp_path_factory)
    content = json.loads((run.path / "manifest.json").read_text("utf-8"))
    content[data.draw(st.sampled_from(sorted(content)))] = data.draw(JSON)
    made = json.dumps(content, indent=1)
    damaged = st.just(made.encode()) | mutated([made.encode()]) | st.binary(max_size=100)
    (other.path / "manifest.json").write_bytes(data.draw(st.just(add_checksum(made).encode()) | damaged))
    harmless(lambda: other.manifest)
    harmless(lambda: grade_run(other))
    harmless(lambda: replan_run(other.manifest, "silent", other.path.parent))


@FUZZ
@given(data=st.data(), name=st.sampled_from(["incidents.jsonl", "corrections.jsonl", "grades.jsonl"]))
def test_files_beside_the_journals(data: st.DataObject, name: str, run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = copy(run, tmp_path_factory)
    lines = (run.path / "grades.jsonl").read_bytes().splitlines(keepends=True)
    (other.path / name).write_bytes(data.draw(mutated(lines) | st.binary(max_size=200)))
    harmless(lambda: grade_run(other))
    harmless(other.grades)


@FUZZ
@given(content=st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()))
@example(content=b"a: &a [*a]")
@example(content=b"[" * 5000)
@example(content=b"name: x\nscenarios: {colours: {changes: 99999999999999999999}}")
@example(content=b"name: ../../up\nscenarios: {colours: {}}")
@example(content=b"!!python/object/apply:os.system ['true']")
@example(content=b"name: x\ntests: 1.5\nscenarios: {colours: {}}")
def test_suites(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("suite") / "suite.yaml"
    path.write_bytes(content)
    harmless(lambda: make_tests(load_suite(str(path)), 0, "uniform"))


@FUZZ
@given(parameters=st.dictionaries(st.sampled_from(["changes", "tests", "x"]), JSON, max_size=3))
def test_suites_with_any_parameters(parameters: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("suite") / "suite.yaml"
    path.write_text(json.dumps({"name": "x", "scenarios": {"colours": parameters}}))
    harmless(lambda: make_tests(load_suite(str(path)), 0, "uniform"))


@FUZZ
@given(content=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_published_scores(content: bytes, run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("published") / "published.json"
    path.write_bytes(content)
    harmless(lambda: list(verify_scores(read_published(path), run)))


@pytest.mark.parametrize("name", ["../../etc", "/etc", "a/b", "..", "", "A"])
def test_names_cannot_leave_the_runs_folder(name: str, run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = copy(run, tmp_path_factory)
    content = json.loads((run.path / "manifest.json").read_text("utf-8"))
    content["conversations"] = {name: content["conversations"]["main"]}
    write_json(other.path / "manifest.json", content)
    with pytest.raises(InputError, match="conversations"):
        other.manifest  # noqa: B018


def test_errors_name_the_damaged_line(run: RunFolder, tmp_path: Path) -> None:
    lines = run.journal("main").read_bytes().splitlines(keepends=True)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join([*lines[:5], b"not JSON\n", *lines[6:]]))
    with pytest.raises(JournalError, match="damaged at line 6: it has no checksum"):
        list(read_journal(path))


def copy(run: RunFolder, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Copy the run's manifest and journal to a new folder."""
    path = tmp_path_factory.mktemp("copy")
    other = RunFolder(path)
    other.journal("main").parent.mkdir(parents=True)
    other.journal("main").write_bytes(run.journal("main").read_bytes())
    (path / "manifest.json").write_bytes((run.path / "manifest.json").read_bytes())
    return other


UNPACKING = """
import sys
from pathlib import Path
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import read_packed

try:
    read_packed(Path(sys.argv[1]), 200 * 2**20)
except InputError as error:
    print(error)
print(int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024)
"""


def test_what_gzip_expands_to_is_measured_before_it_takes_memory(tmp_path: Path) -> None:
    (path := tmp_path / "data.json.gz").write_bytes(gzip.compress(bytes(10 * 2**20)) * 30)
    told = subprocess.run([sys.executable, "-c", UNPACKING, path], capture_output=True, check=True, text=True).stdout.splitlines()
    assert told[:-1] == [f"{path}: larger than 209,715,200 bytes; split it"]
    assert int(told[-1]) < 100, "MiB"
