"""The human agent, with a test typing at the other end of a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.forked import started

from longspan.agents.base import InputError
from longspan.agents.outside.human import Human


class Terminal:
    """A terminal with a program. Its output is kept until `until` takes it."""

    def __init__(self, folder: Path, arguments: tuple[str, ...]) -> None:
        self._shown = b""
        self._ours, self._theirs = pty.openpty()
        self.modes = termios.tcgetattr(self._theirs)
        theirs = Path(os.ttyname(self._theirs))
        env = os.environ | {"TERM": "xterm", "COLUMNS": "200"}
        self.program = started(*arguments, where=folder, streams=[theirs] * 3, env=env)

    @contextmanager
    def running(self) -> Iterator[Terminal]:
        try:
            yield self
        finally:
            self.program.kill()
            self.program.join()
            os.close(self._ours)
            os.close(self._theirs)

    def until(self, what: str) -> str:
        """Wait for `what` and return the output before it."""
        while what.encode() not in self._shown:
            self._read(f"{what!r} is not shown after {self._shown.decode()!r}")
        found, _, self._shown = self._shown.partition(what.encode())
        return found.decode().replace("\r\n", "\n")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def rest(self) -> str:
        """Return the output until the program ends."""
        ended = os.dup(self.program.sentinel)
        while not select.select([ended], [], [], 0)[0] or select.select([self._ours], [], [], 0)[0]:
            ready, _, _ = select.select([ended, self._ours], [], [], 60)
            assert ready, f"it does not end after {self._shown.decode()!r}"
            if self._ours in ready:
                self._read("")
        os.close(ended)
        self.program.join()
        assert termios.tcgetattr(self._theirs) == self.modes, "the terminal is as it was"
        found, self._shown = self._shown, b""
        return found.decode().replace("\r\n", "\n")

    def _read(self, problem: str) -> None:
        assert select.select([self._ours], [], [], 60)[0], problem
        self._shown += os.read(self._ours, 65_536)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(Terminal(tmp_path, arguments).running())


ONE = ("run", "--scenario", "colours", "--tests", "1", "--isolated", "--agent")
"""Arguments for one isolated test: the person answers all of its messages."""


def replies(folder: Path) -> list[str]:
    """Return the replies in the only journal."""
    (path,) = folder.glob("runs/*/conversations/*/journal.jsonl")
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [event["text"] for event in events if event["type"] == "reply"]


def test_a_person_is_shown_each_message_with_its_time_and_types_the_reply(start: Callable[..., Terminal], tmp_path: Path) -> None:
    terminal = start(*ONE, "human")
    assert terminal.until("you: ").startswith("\n[Mon 01 Jan 2024 09:00] Over the course of this conversation")
    terminal.type("\n")
    terminal.until("you: ")
    terminal.type("Understooo\x7fd. \N{GRINNING FACE}\n")
    given = ["Understood. \N{GRINNING FACE}"]
    while True:
        shown = terminal.until("\n")
        if shown.startswith("[Mon 01 Jan 2024 09:0"):
            terminal.until("you: ")
            terminal.type("Red.\n")
            given.append("Red.")
        if "score" in shown:
            break
    assert "so far" not in terminal.rest(), "a person who is the agent is not shown the score while it is played"
    assert terminal.program.exitcode == 0
    assert replies(tmp_path) == given
    assert len(given) > 3


def test_a_reply_may_have_several_lines(start: Callable[..., Terminal], tmp_path: Path) -> None:
    terminal = start(*ONE, "human")
    terminal.until("you: ")
    terminal.type('"""\nOne.\n\n  Two.\n"""\n')
    terminal.until("you: ")
    terminal.type("\x04")
    terminal.rest()
    assert replies(tmp_path) == ["One.\n\n  Two."]


def test_text_typed_before_the_message_is_shown_is_not_a_reply(start: Callable[..., Terminal], tmp_path: Path) -> None:
    terminal = start(*ONE, "human")
    terminal.until("you: ")
    terminal.type("These are\nthree lines\nthat were pasted.\n")
    terminal.until("you: ")
    terminal.type("\x04")
    terminal.rest()
    assert replies(tmp_path) == ["These are"]


@pytest.mark.parametrize("key", ["\x03", "\x04", "some words\x03", '"""\nbegun\n\x03', '"""\nbegun\n\x04'])
def test_leaving_stops_the_run(start: Callable[..., Terminal], tmp_path: Path, key: str) -> None:
    terminal = start(*ONE, "human")
    terminal.until("you: ")
    terminal.type("Yes.\n")
    terminal.until("you: ")
    terminal.type(key)
    shown = terminal.rest()
    assert terminal.program.exitcode == 130, shown
    assert "interrupted: stopped by the person" in shown
    assert "Traceback" not in shown
    assert "score so far" not in shown
    assert replies(tmp_path) == ["Yes."]


def test_a_run_resumes_where_the_person_left_it(start: Callable[..., Terminal], tmp_path: Path) -> None:
    terminal = start(*ONE, "human")
    terminal.until("you: ")
    terminal.type("Yes.\n")
    terminal.until("you: ")
    terminal.type("\x04")
    terminal.rest()
    (run,) = (tmp_path / "runs").iterdir()
    again = start("resume", str(run))
    assert "reply: Yes." in again.until("you: ")
    again.type("\x04")
    again.rest()
    assert again.program.exitcode == 130


def test_conversations_take_turns_and_all_stop_when_the_person_leaves(start: Callable[..., Terminal], tmp_path: Path) -> None:
    terminal = start("run", "--scenario", "colours", "--tests", "3", "--isolated", "--agent", "human")
    terminal.until("you: ")
    terminal.type("Yes.\n")
    terminal.until("you: ")
    terminal.type("\x04")
    shown = terminal.rest()
    assert terminal.program.exitcode == 130, shown
    journals = [path.read_text().count('"type":"reply"') for path in tmp_path.glob("runs/*/conversations/*/journal.jsonl")]
    assert sorted(journals) == [0, 0, 1]


@pytest.mark.parametrize("option", ["", "?filler=false"])
def test_observed_turns_can_be_hidden(start: Callable[..., Terminal], option: str) -> None:
    terminal = start("run", "--scenario", "colours", "--tests", "1", "--agent", f"human{option}")
    shown = ""
    for _ in range(3):
        shown += terminal.until("you: ")
        terminal.type("OK.\n")
    terminal.until("you: ")
    terminal.type("\x03")
    terminal.rest()
    assert ("\nreply: " in shown) == (not option)


def test_without_a_terminal_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> int:
        raise OSError

    monkeypatch.setattr("longspan.agents.outside.human.os.open", absent)
    with pytest.raises(InputError, match="human needs a terminal"):
        Human()
