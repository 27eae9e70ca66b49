"""Update the outputs of commands shown in the documentation. The tests check the same (`tests/docs/test_docs.py`).

python scripts/docs_outputs.py [PAGE...]

A block marked `console` holds commands, after `$ `, each with its output. A block without a language is the output of the command in the
comment above it: `<!-- longspan list suites -->`. In an output, `...` stands for anything; seconds are not compared.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, NamedTuple, final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"

GUIDES: Final = (
    "start/reach.md",
    "guides/scenarios.md",
    "start/agents.md",
    "guides/own-agents.md",
    "guides/connecting.md",
    "guides/models.md",
    "guides/local-models.md",
    "guides/memory-agents.md",
    "guides/memory.md",
    "guides/memory-systems.md",
    "reference/journal.md",
    "reference/json.md",
    "start/running.md",
    "start/conversation.md",
    "guides/many-runs.md",
    "guides/resuming.md",
    "guides/costs.md",
    "guides/publishing.md",
    "guides/experiments.md",
    "guides/controls.md",
    "guides/comparing.md",
    "reference/exports.md",
    "guides/report.md",
    "guides/debugging.md",
    "reference/arena.md",
    "reference/counting-stars.md",
    "reference/elitr.md",
    "guides/calibration.md",
    "reference/summhay.md",
    "guides/histories.md",
    "reference/history-formats.md",
    "reference/history-grading.md",
    "reference/memory-suite.md",
    "guides/tracing.md",
)
"""The pages in docs/ whose files and commands belong together."""

PAGES: Final = (ROOT / "README.md", *(DOCS / name for name in GUIDES))


def page_named(name: str) -> Path:
    """Return the page of this name, whatever folder of docs/ it is in."""
    (found,) = DOCS.rglob(name)
    return found


COLUMNS: Final = 100
"""The width of the terminal in the examples."""

PORT: Final = "8765"
"""Where the servers of the guides listen. When they are run it is another port, which is free."""

DRIVER: Final = """
import contextlib, io, json, os, shlex, subprocess, sys
import numpy.random, rich.table, rich.live
import longspan.agents.models.chat, longspan.agents.outside.python, longspan.agents.outside.remote, longspan.agents.reference.notebook
import longspan.simulator.running.preflight, longspan.simulator.pages.report, longspan.simulator.running.runner
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.terminal import progress, scores
from longspan.simulator.cli import estimate, main, run as _
from longspan.simulator.suite.suite import load_suite, make_tests

def run(commands):
    found, started = [], []
    for command in commands:
        said = io.StringIO()
        if command.endswith(" &"):
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            started.append(subprocess.Popen(["bash", "-c", "exec " + command.removesuffix(" &")], **quiet))
            code, text = 0, ""
        elif command.startswith("longspan ") and "|" not in command:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                try:
                    main(shlex.split(command)[1:])
                except SystemExit as leaving:
                    code = leaving.code
            text = said.getvalue()
        else:
            done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            code, text = done.returncode, done.stdout
        found.append([code, text])
    for each in started:
        each.kill()
        each.wait()
    return found

Tokenizer()
make_tests(load_suite("ltm"), 0, "spread")
for line in sys.stdin:
    folder, commands = json.loads(line)
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        print(json.dumps(run(commands)), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print("null", flush=True)
"""
"""Runs the commands of each line of its input, one after the other in a folder, and tells their exit codes and what they print; longspan's
in one process, to save time. Those that end in `&` run beside the others. Each line has a process of its own, forked from one that has
imported longspan, which takes longer than most pages."""

_PROGRESS: Final = re.compile(r"\S+: (?:\d+ tests? to play|\d+/\d+ tests, .*)")
"""Lines that a terminal does not show, or no longer, when a run is over."""

_EXAMPLES: Final = re.compile(
    r"^```console\n(?P<console>.*?)^```$|^<!-- (?P<command>longspan [^\n]*) -->\n```\n(?P<output>.*?)^```$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A fenced block: its language, and its lines."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The file that it is, if its first line is a comment with a file's name."""
        match = re.match(r"(?:#|//|\{#) ([\w./-]+\.\w+)(?: #\})?\n", self.text)
        return match[1] if match else None

    @property
    def content(self) -> str:
        """What the file holds; JSON without the comment, which it does not know."""
        return self.text.partition("\n")[2] if self.language == "json" else self.text


class Command(NamedTuple):
    """A command, and what the page shows that it prints, from character `start` to `end`. Equal if nothing is shown."""

    text: str
    shown: str
    start: int
    end: int


class Printed(NamedTuple):
    """What a command did: its exit code, and what it printed."""

    code: int
    text: str


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that have a language."""
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)]


def files() -> dict[str, Block]:
    """Return the files that the guides show, by path. A block marked `diff` changes a file."""
    found = [block for name in GUIDES for block in blocks(DOCS / name) if block.file and block.language != "diff"]
    if len({block.file for block in found}) < len(found):
        raise ValueError("two blocks have the same file name")
    return {block.file: block for block in found if block.file}


def commands(text: str) -> Iterator[Command]:
    """Yield the commands of a page's text, in their order."""
    for example in _EXAMPLES.finditer(text):
        if (command := example["command"]) is not None:
            yield Command(command, example["output"], *example.span("output"))
            continue
        for match in re.finditer(r"^\$ (?P<command>.*)\n(?P<shown>(?:(?!\$ ).*\n)*)", example["console"], re.MULTILINE):
            start, end = (example.start("console") + place for place in match.span("shown"))
            yield Command(match["command"], match["shown"], start, end)


def workshop(folder: Path) -> Path:
    """Write all files that the guides show, except package files, into a folder. Return the folder."""
    for path, block in files().items():
        if "/" not in path and path != "pyproject.toml":
            (folder / path).write_text(block.content, "utf-8")
    return folder


def environment(bin: Path, *path: Path) -> dict[str, str]:
    """Return a command's environment variables: with the programs in `bin`, and `path` for Python to look in."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "PYTEST_ADDOPTS")}
    return kept | {
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
        "OPENAI_API_KEY": "none",
    }


@final
class Driver:
    """Runs commands with the longspan of the environment whose programs are in `bin`."""

    def __init__(self, bin: Path) -> None:
        command = [bin / "python", "-c", DRIVER]
        self._process = subprocess.Popen(command, env=environment(bin), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, wanted: Iterable[Command], folder: Path) -> list[Printed]:
        """Run commands in a folder that is a `workshop`."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
        for path in folder.glob("*_server.py"):
            path.write_text(path.read_text("utf-8").replace(PORT, port), "utf-8")
        given = [str(folder), [command.text.replace(PORT, port) for command in wanted]]
        print(json.dumps(given), file=self._process.stdin, flush=True)
        return [Printed(code, _tidy(text.replace(port, PORT))) for code, text in json.loads(next(self._process.stdout or iter(())))]


def is_as_shown(command: Command, printed: Printed) -> bool:
    """Return whether a command did what the page says: it failed if the page shows an error of longspan, else succeeded, and printed the
    same output.
    """
    fails = any(line.startswith("longspan: ") for line in command.shown.splitlines())
    return (printed.code == 2) == fails and (not command.shown or _as_shown(command.shown).fullmatch(printed.text) is not None)


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines() if not _PROGRESS.fullmatch(line))


def _as_shown(shown: str) -> re.Pattern[str]:
    """A pattern for a command's possible outputs, given the output shown."""
    parts = re.split(r"\.\.\.|\d+\.\d+ s\b", _tidy(shown))
    return re.compile(".*".join(map(re.escape, parts)), re.DOTALL)


# Writing again.


def renewed(shown: str, printed: str) -> str:
    """Return what to show of what a command prints: the lines like those that were shown, or everything."""
    lines = printed.splitlines()
    if not any(line.strip() == "..." for line in shown.splitlines()):
        return printed + "\n" if printed else ""
    kept, at = [], 0
    for line in shown.splitlines():
        if line.strip() == "...":
            kept.append("...")
            continue
        likely = [SequenceMatcher(None, line.replace("...", ""), other).ratio() for other in lines[at:]]
        if not likely or max(likely) < 0.5:
            continue
        exact = next((number for number, other in enumerate(lines[at:]) if _as_shown(line).fullmatch(other)), None)
        at += likely.index(max(likely)) if exact is None else exact
        kept.append(lines[at] if exact is None else line)
        at += 1
    new = "\n".join(kept) + "\n"
    return new if _as_shown(new).fullmatch(printed) else printed + "\n"


def renew(page: Path, driver: Driver) -> list[str]:
    """Rewrite a page with its commands' current outputs. Return the commands whose output changed."""
    text = page.read_text("utf-8")
    wanted = list(commands(text))
    with tempfile.TemporaryDirectory() as folder:
        done = driver.run(wanted, workshop(Path(folder)))
    changed = []
    for command, printed in reversed(list(zip(wanted, done, strict=True))):
        if not is_as_shown(command, printed):
            text = text[: command.start] + renewed(command.shown, printed.text) + text[command.end :]
            changed.append(command.text)
    if changed:
        page.write_text(text, "utf-8")
    return changed[::-1]


if __name__ == "__main__":
    with Driver(Path(sys.executable).parent) as driver:
        for page in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
            for command in renew(page, driver):
                print(f"{page.relative_to(ROOT)}: $ {command}")
