"""Text on the terminal: nothing that is not ours controls it, and nothing is lost."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from longspan.simulator.base.terminal import (
    as_line,
    complain,
    confirm_question,
    escape_invisible,
    prepare_streams,
    prompt_user,
    say,
    say_json,
)
from longspan.simulator.terminal.console import Console

HOSTILE = "\x1b]0;owned\x07 \x1b[2J \x9b31m \x85 \x08\x7f\r \u202egnp.exe \u2066x\u2069 \udc9b"

texts = st.text(st.one_of(st.characters(), st.sampled_from(HOSTILE), st.sampled_from("[]:/ abc\n\t")))


def controls(text: str) -> list[str]:
    """The characters of `text` that control a terminal or change the direction of the text after them."""
    return [
        each
        for each in text
        if (each < " " and each not in "\n\t")
        or "\x7f" <= each <= "\x9f"
        or each in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    ]


class Stream(io.TextIOWrapper):
    """A standard stream in memory."""

    def __init__(self, encoding: str, content: bytes = b"") -> None:
        self.raw_bytes = io.BytesIO(content)
        super().__init__(self.raw_bytes, encoding)


@given(texts)
def test_what_is_shown_controls_nothing_and_hides_nothing(text: str) -> None:
    for shown in (escape_invisible(text), as_line(text)):
        assert controls(shown.replace("\r\n", "\n")) == []
        shown.encode()
    assert len(as_line(text).splitlines()) <= 1
    if not controls(text.replace("\r", "")):
        assert escape_invisible(text).replace("[U+000D]", "\r") == text or any(
            "\ud800" <= each <= "\udfff" or each in "\ufffe\uffff" for each in text
        )


@given(texts, st.integers(1, 40))
def test_a_console_writes_no_control_sequence_but_its_own(text: str, width: int) -> None:
    console = Console(io.StringIO(), width=width, force_terminal=True, color_system=None)
    table = Table(text, title=text)
    table.add_row(text)
    table.add_row(Text(text, style="red"))
    for thing in (text, Text(text), table):
        console.print(thing, style="bold")
    console.say(text, "red", mark=text)
    console.say(text)
    assert isinstance(console.file, io.StringIO)
    assert [each for each in controls(console.file.getvalue()) if each != "\x1b"] == []
    plain = console.file.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "\x1b" not in plain


def test_a_console_shows_markup_and_emoji_codes_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[bold]a[/bold] :smile: [link=https://example.org]b[/link]"
    Console().print(text)
    assert capsys.readouterr().out == f"{text}\n"


@given(st.recursive(texts | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8))
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_loses_nothing_and_controls_nothing(encoding: str, value: object) -> None:
    written = Stream(encoding)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", written)
        say_json(value)
    raw = written.raw_bytes.getvalue().decode(encoding)
    assert controls(raw) == []
    assert json.loads(raw) == value


def test_lines_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say("one\nlongspan: forged\u2028and\x85more")
    complain("two\r\nlongspan: forged")
    say("three\nfour", lines=True)
    out, err = capsys.readouterr()
    assert out == "one longspan: forged and more\nthree\nfour\n"
    assert err == "two longspan: forged\n"


def test_a_terminal_that_cannot_show_a_character_gets_a_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Stream("ascii"), Stream("ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(sys, "stdin", Stream("ascii", "naïve\n".encode()))
    prepare_streams()
    say("Crème brûlée · 日本")
    complain("Crème")
    Console().print(Table("Crème"))
    assert prompt_user("Dîner?") == "na\ufffd\ufffdve"
    assert out.raw_bytes.getvalue().startswith(b"Cr?me br?l?e ? ??\n+")
    assert err.raw_bytes.getvalue() == b"Cr?me\n"


def test_a_closed_standard_error_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.TextIOWrapper(io.BytesIO(), "utf-8")
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        complain("nobody hears this")
    monkeypatch.setattr(sys, "stdout", None)
    say("nor this")


@pytest.mark.parametrize(("typed", "agreed"), [("y\n", True), (" YES \n", True), ("\n", False), ("n\n", False), ("yellow\n", False)])
def test_only_yes_is_yes(typed: str, agreed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert confirm_question("Continue?") == agreed
    assert capsys.readouterr().out == "Continue? [y/N]: "
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(EOFError):
        confirm_question("Continue?")


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_question_without_a_terminal_has_no_answer(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, stream, None)
    with pytest.raises(EOFError):
        prompt_user("you:")
