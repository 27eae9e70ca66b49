"""Whatever users name as a file or write as a number is read up to a limit, or refused in one line."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import ValidationError

from longspan.simulator.base import plain_yaml
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import hash_file, open_regular, read_packed
from longspan.simulator.base.files.labels import read_rows
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.base.integers import is_finite, parse_integer
from longspan.simulator.base.lists import seeds_in
from longspan.simulator.cli import main
from longspan.simulator.cli.options import GridOptions
from longspan.simulator.contract.plugins import load_plugin, make_scenario
from longspan.simulator.journal.run_folder import MANIFEST
from longspan.simulator.running.sweeps.sweep import read_sweep
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent
from longspan.simulator.suite.grid import Grid
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.suite import load_suite
from tests.attack import sample, tried

DEEP: Final = 100_000
SMALL: Final = 1 << 16
"""The limit of bytes that all readers have here, so that hostile files can be small."""

LAUGHS: Final = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 10)}]\n" for number in range(1, 12)
)


def containing(content: bytes) -> Callable[[Path], None]:
    return lambda path: (path.write_bytes(content), None)[1]


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


UNREADABLE: Final[dict[str, Callable[[Path], None]]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "dangling link": lambda path: path.symlink_to("nothing"),
    "loop of links": lambda path: path.symlink_to(path.name),
    "terabyte": sparse,
    "gzip bomb": containing(gzip.compress(bytes(4 * SMALL))),
    "cut gzip": containing(gzip.compress(b"{}" * 1000)[:-20]),
}
"""Makes of a path something that nobody can read as a file."""

STRANGE: Final[dict[str, Callable[[Path], None]]] = {
    "empty": containing(b""),
    "nothing": containing(b"null"),
    "line": containing(b"a" * (SMALL - 1)),
    "null characters": containing(b"\x00" * 1000),
    "no text": containing(b"\xff\xfe\xff" * 100),
    "deep list": containing(b"[" * (SMALL - 1)),
    "deep object": containing(b'{"a":' * 10_000),
    "deep flow": containing(b"a: " + b"[" * 10_000 + b"]" * 10_000),
    "laughs": containing(LAUGHS.encode()),
    "itself": containing(b"&a [*a]"),
    "digits": containing(b"9" * 10_000),
    "digits in a list": containing(b"[" + b"9" * 10_000 + b"]"),
    "digits by name": containing(b'{"Data": ' + b"9" * 10_000 + b', "tests": 1}'),
    "surrogate": containing(b'{"Data": "\\ud800", "scenarios": "\\udfff"}'),
    "zip": containing(b"PK\x03\x04" + b"\xff" * 100),
    "zst": containing(b"\x28\xb5\x2f\xfd" + b"\xff" * 100),
}
"""Makes a file whose content is not what any reader expects."""

READERS: Final[dict[str, list[str]]] = {
    "filler": ["run", "--scenario", "colours", "--filler", "PATH"],
    "suite": ["run", "PATH.yaml"],
    "sweep": ["sweep", "PATH.yaml", "--out", "swept"],
    "definitions": ["run", "--definitions", "Definitions"],
    "configuration": ["run", "--definitions", "Configured"],
    "chapterbreak": ["run", "--scenario", "chapterbreak", "--data", "chapterbreak=PATH"],
    "stars": ["run", "counting-stars", "--tests", "1", "--data", "stars=PATH", "--set", "max_context=10000"],
    "sky": ["run", "counting-stars", "--tests", "1", "--data", "sky=PATH", "--set", "max_context=10000"],
    "questions": ["run", "elitr", "--data", "elitr=.", "--data", "questions=PATH"],
    "topics": ["run", "summhay", "--data", "summhay=PATH"],
    "labels": ["calibrate", "--judge", "openai/gpt-4o", "--labels", "PATH"],
    "summaries": ["cream", "arena", "PATH", "--judge", "openai/gpt-4o"],
    "published": ["publish", "run", "--verify", "PATH"],
    "log": ["import", "goodai-log", "PATH", "--out", "imported"],
    "goodai": ["goodai-ltm", "reproduce", "PATH"],
    "recorded counts": ["counting-stars", "reproduce", "PATH"],
    "responses": ["elitr-bench", "reproduce", "PATH"],
    "samples": ["summhay", "reproduce", "PATH"],
    "model": ["run", "--scenario", "colours", "--agent", "gguf:PATH"],
    "filler of a run": ["replay", "run"],
}
"""What reads the file at PATH."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder. All limits of bytes in modules that are loaded are small."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, module in list(sys.modules.items()):
        if name.startswith("longspan."):
            for constant in ("MAX_BYTES", "LARGEST", "LIMIT"):
                if isinstance(getattr(module, constant, None), int):
                    monkeypatch.setattr(module, constant, SMALL)
    return tmp_path


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The manifest of a run with filler from a file."""
    folder = tmp_path_factory.mktemp("made")
    entries = [{"Question": f"What is {number}?", "Answer": {"Value": f"Number {number}"}} for number in range(50)]
    (folder / "filler.json").write_text(json.dumps({"Data": entries}))
    run = ["run", "--scenario", "colours", "--tests", "1", "--agent", "silent", "--filler", str(folder / "filler.json")]
    assert called([*run, "--out", str(folder)]) == 0
    (path,) = folder.glob(f"*/{MANIFEST}")
    made: dict[str, Any] = json.loads(path.read_text())
    return made


def called(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    assert isinstance(leaving.value.code, int)
    return leaving.value.code


def attempt(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command, which may fail in one line. Returns its code and that line."""
    capsys.readouterr()
    code = called(arguments)
    error = capsys.readouterr().err
    if code:
        assert error.startswith("longspan: "), error[-2000:]
        assert error.count("\n") == 1, error[-2000:]
        assert len(error) < 2000, error[-2000:]
    return code, error


def place(name: str, folder: Path, manifest: dict[str, Any]) -> Path:
    """Return the path where a reader expects its file."""
    if name == "definitions":
        (folder / "Definitions" / "Colours").mkdir(parents=True)
        return folder / "Definitions" / "Colours" / "0.def.json"
    if name == "configuration":
        (folder / "Configured" / "Colours").mkdir(parents=True)
        test = {"script": ["My favourite colour is red.", "What is it?"], "is_question": [False, True], "waits": [{}, {}]}
        test |= {"expected_responses": ["red"], "is_temporal": False, "uses_callback": False}
        (folder / "Configured" / "Colours" / "0.def.json").write_text(json.dumps(test))
        return folder / "Configured" / "config.yml"
    if name in ("filler of a run", "published"):
        (folder / "run").mkdir()
        (folder / "run" / MANIFEST).write_text(json.dumps(manifest | {"filler": str(folder / "hostile")}))
    return folder / ("hostile.yaml" if name in ("suite", "sweep") else "hostile")


@pytest.mark.parametrize(
    ("reader", "kind"), sample([(reader, kind) for reader in READERS for kind in [*UNREADABLE, *STRANGE]], at_least=60)
)
def test_a_hostile_file_is_refused_in_one_line(
    reader: str, kind: str, folder: Path, manifest: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    path = place(reader, folder, manifest)
    {**UNREADABLE, **STRANGE}[kind](path)
    code, error = attempt([argument.replace("PATH", str(folder / "hostile")) for argument in READERS[reader]], capsys)
    may_be_valid = reader == "sky" or (reader == "configuration" and kind in STRANGE)
    assert code == 2 or may_be_valid, error
    if kind in ("pipe", "terabyte", "gzip bomb", "cut gzip") and code:
        assert path.name in error
    tried("hostile files")


@pytest.mark.parametrize("kind", [*UNREADABLE, "terabyte behind a link"])
def test_the_reader_of_files_names_what_it_does_not_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    UNREADABLE.get(kind, lambda path: (sparse(path.with_name("large")), path.symlink_to("large"), None)[2])(path)
    with pytest.raises(InputError, match=r"file: .*; give another$"):
        read_packed(path, SMALL, "give another")
    if "gzip" not in kind:
        with pytest.raises(InputError, match="file: "):
            hash_file(path)
    tried("hostile files")


def test_a_path_with_a_null_character_is_refused() -> None:
    for read in (lambda path: read_packed(path, SMALL), hash_file, lambda path: open_regular(path).__enter__()):
        with pytest.raises(InputError, match="null"):
            read(Path("a\x00b"))


def test_standard_input_is_read_if_it_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "content").write_bytes(b"here")
    with (tmp_path / "content").open("rb") as file:
        assert read_packed(Path(f"/dev/fd/{file.fileno()}"), SMALL) == b"here"
    reading, writing = os.pipe()
    try:
        with pytest.raises(InputError, match="is a pipe, not a regular file"):
            read_packed(Path(f"/dev/fd/{reading}"), SMALL)
    finally:
        os.close(reading)
        os.close(writing)


# Numbers.

ODD: Final = ["0-9", "1_0", "+7", " 7", "7 ", "07", "0x10", "0o7", "0b1", "1e1", "7.0", "1:30", "٣", "-0", "9" * 20, "9" * 5000]
"""Texts that are not whole numbers in plain digits, though something may read them as one."""

NUMBERS: Final[dict[str, Callable[[Any], object]]] = {
    "suite tests": lambda value: suite(tests=value),
    "suite span": lambda value: suite(span=value),
    "suite each": lambda value: suite(each={"colours": value}),
    "sweep seeds": lambda value: sweep(seeds=[value]),
    "sweep seed": lambda value: sweep(seeds=value),
    "sweep spans": lambda value: sweep(spans=value),
    "sweep tests": lambda value: sweep(tests=value),
    "sweep filler_size": lambda value: sweep(filler_size=value),
    "parameter": lambda value: make_scenario("colours", {"changes": value}),
    "parameters": lambda value: make_scenario("counting_stars", {"max_context": value}),
    "option": lambda value: make_agent(AgentSpec("notebook", options={"window": value})),
}
"""What reads a number from a file or a spec."""


def suite(**keys: Any) -> object:
    Path("s.yaml").write_text(as_yaml({"name": "s", "scenarios": {"colours": {}}} | keys))
    return load_suite("s.yaml")


def read_sweep_of(**keys: Any) -> list[Grid]:
    Path("s.yaml").write_text(as_yaml({"scenarios": ["colours"]} | keys))
    return read_sweep(Path("s.yaml"))[0]


def sweep(**keys: Any) -> object:
    return read_sweep_of(**keys)


def as_yaml(content: dict[str, Any]) -> str:
    """Write YAML whose texts stand without quotes, as users write them."""
    return "\n".join(f"{key}: {str(value).replace(chr(39), '')}" for key, value in content.items())


@pytest.mark.parametrize("reader", NUMBERS)
def test_only_plain_digits_are_a_number(reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for odd in [*ODD, True, 2.0]:
        if odd in (" 7", "7 ") and reader.startswith(("suite", "sweep")):
            continue  # YAML leaves out blanks around a value
        if odd == "0-9" and reader.startswith("sweep seed"):
            continue  # ten seeds
        with pytest.raises((InputError, ValidationError)) as refused:
            NUMBERS[reader](odd)
        assert "\n" not in str(refused.value)
        tried("odd numbers")


@pytest.mark.parametrize(
    ("text", "seeds"), [("0-9", range(10)), ("3,1, 4", [3, 1, 4]), ("-2-1,7", [-2, -1, 0, 1, 7]), ("-3--2", [-3, -2]), ("5-5", [5])]
)
def test_several_seeds_are_a_range_or_a_list(text: str, seeds: Sequence[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert seeds_in(text) == [*seeds]
    assert [run.seed for run in GridOptions(seed=[text], scenario=["colours"]).grid().runs()] == [*seeds]
    (grid,) = read_sweep_of(seeds=text)
    assert grid.seeds == [*seeds]


@pytest.mark.parametrize(
    "text", ["", ",", "1,", "1,,2", "9-0", "0-10000", "0-1-2", "1,02", "0 - 9", "a-b", "0–9", "0-99999999999999999999"]
)
def test_what_is_no_list_of_seeds_is_refused_in_one_line(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for read in (lambda: GridOptions(seed=[text]).grid(), lambda: read_sweep_of(seeds=f'"{text}"')):
        with pytest.raises(InputError, match="seed") as refused:
            read()
        assert "\n" not in str(refused.value)
        tried("lists of seeds")


def test_several_spans_are_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert GridOptions(span=["2k,32k", "1.5k"]).grid().spans == [2000, 32000, 1500]
    (grid,) = read_sweep_of(spans="2k, 32k")
    assert grid.spans == [2000, 32000]
    for text in ("", "2k,", "2k-32k", "1,000", "2k;32k"):
        with pytest.raises(InputError, match="--span: a size must be a whole number of tokens"):
            GridOptions(span=[text]).grid()


@pytest.mark.parametrize("option", ["--seed", "--tests", "--filler-size", "--span"])
def test_options_read_only_plain_digits(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for odd in sample([odd for odd in ODD if (option, odd) != ("--seed", "0-9")], at_least=4):
        code, error = attempt(["run", "--scenario", "colours", f"{option}={odd}"], capsys)
        assert code == 2
        assert "whole number" in error
        tried("odd numbers")


def test_every_whole_number_of_the_command_line_is_read_strictly() -> None:
    from typer.main import get_command

    from longspan.simulator.cli import whole_app

    found = [
        parameter
        for group in get_command(whole_app()).commands.values()
        for command in getattr(group, "commands", {"": group}).values()
        for parameter in command.params
        if re.search(r"\bint\b", str(parameter.type_descriptor.annotation))
    ]
    assert len(found) > 8
    for parameter in found:
        assert parameter.type_descriptor.parameter_info.parser is not None, parameter.name


@pytest.mark.parametrize("group", ["longspan.scenarios", "longspan.agents", "longspan.writers"])
def test_every_whole_number_has_a_maximum(group: str) -> None:
    for name in find_entry_points(group):
        loaded = load_plugin(group, "plugin", name)
        model = loaded if group == "longspan.scenarios" else loaded.Options if group == "longspan.agents" else loaded().Settings
        assert list(unlimited(model.model_json_schema())) == [], name


def unlimited(schema: Any, where: str = "") -> Iterator[str]:
    """Yield where a JSON schema allows an integer of any size. Limits of fields that read sizes have pydantic's names."""
    if isinstance(schema, dict):
        if schema.get("type") == "integer" and not schema.keys() & {"maximum", "exclusiveMaximum", "le", "lt"}:
            yield where
        for key, value in schema.items():
            yield from unlimited(value, f"{where}.{key}")
    elif isinstance(schema, list):
        for number, value in enumerate(schema):
            yield from unlimited(value, f"{where}.{number}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", 10**400),
        ("seed", "0-9"),
        ("span", 10**12),
        ("span", True),
        ("filler_size", 10**9),
        ("suite", {"tests": 10**9}),
        ("suite", {"span": 10**12}),
        ("suite", {"each": {"colours": 1_000_000_000}}),
        ("suite", {"each": {"colours": 0}}),
        ("starts_at", "2024-01-01T00:00:00Z"),
        ("starts_at", 5),
    ],
)
def test_a_manifests_numbers_have_limits(manifest: dict[str, Any], key: str, value: Any) -> None:
    changed = manifest | {key: manifest[key] | value if isinstance(value, dict) else value}
    with pytest.raises(ValidationError):
        Manifest.model_validate_json(json.dumps(changed))
    tried("manifests with impossible numbers")


def test_a_manifest_with_thousands_of_digits_is_refused(manifest: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Manifest.model_validate_json(json.dumps(manifest).replace('"seed": 0', f'"seed": {"9" * 100_000}'))


def test_yaml_reads_what_people_mean() -> None:
    text = "a: 7\nb: -7\nc: 1.5\nd: true\ne: 0x10\nf: 1_000\ng: 1:30\nh: 010\ni: +7\nj: 1e3\nk: 0-9\nl: -.5\nm: &x [1]\nn: *x\no: off\n"
    numbers = {"a": 7, "b": -7, "c": 1.5, "d": True, "o": "off", "l": -0.5, "m": [1], "n": [1]}
    assert plain_yaml.load_yaml(text) == numbers | {"e": "0x10", "f": "1_000", "g": "1:30", "h": "010", "i": "+7", "j": "1e3", "k": "0-9"}
    for hostile in (LAUGHS, "&a [*a]", "&a {b: *a}", "!!int 0x10", "a: 1\na: 2", "{a: {b: 1, b: 1}}"):
        with pytest.raises((yaml.YAMLError, ValueError)):
            plain_yaml.load_yaml(hostile)


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf"), True, "7", None])
def test_what_no_float_can_hold_is_not_finite(value: Any, tmp_path: Path) -> None:
    assert not is_finite(value)
    (tmp_path / "labels").write_text(json.dumps({"label": value}))
    if isinstance(value, int | float) and not isinstance(value, bool):
        with pytest.raises(InputError, match="must be a number"):
            read_rows(tmp_path / "labels", ["label"])[0].number("label")


@pytest.mark.parametrize("value", [7, -7, 0, "7", "-7", "0", "9" * 18])
def test_plain_digits_are_read(value: int | str) -> None:
    assert parse_integer(value) == int(value)


@pytest.mark.parametrize(
    "date", ["2024-01-01T00:00:00Z", "2024-01-01T09:00+01:00", "5", "1e400", "2024-13-01", "9000-01-01", "9" * 5000, "٢٠٢٤-01-01"]
)
def test_a_date_that_is_not_plain_is_refused(
    date: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, error = attempt(["run", "--scenario", "colours", "--starts-at", date], capsys)
    assert code == 2
    assert "--starts-at: " in error
    tried("odd dates")
