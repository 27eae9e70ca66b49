"""Files of longspan that tests change by hand, with checksums as longspan would write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from longspan.simulator.base.files.checksums import RunningSum, add_checksum

__all__ = ["change_json", "change_lines", "nameless", "read_lines", "resealed", "write_json", "write_lines"]


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file that is one object."""
    fields = {name: value for name, value in content.items() if name != "sum"}
    path.write_text(add_checksum(json.dumps(fields, indent=1, ensure_ascii=False)), "utf-8")


def change_json(path: Path, change: Callable[[Any], object]) -> None:
    """Change a file that is one object in place."""
    content = json.loads(path.read_bytes())
    change(content)
    write_json(path, content)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of lines, such as a journal, without the checksums."""
    entries = [json.loads(line) for line in path.read_bytes().splitlines()]
    for entry in entries:
        del entry["sum"]
    return entries


def nameless(path: Path) -> list[dict[str, Any]]:
    """Read a journal without what differs between runs of the same conversation: the run's name, measurements, and checksums."""
    return [{name: value for name, value in entry.items() if name not in ("run", "measured")} for entry in read_lines(path)]


def write_lines(path: Path, entries: Iterable[dict[str, Any]]) -> None:
    """Write a file of lines, such as a journal."""
    running = RunningSum()
    path.write_bytes(b"".join(_line(running, entry) for entry in entries))


def resealed(content: bytes) -> bytes:
    """Return a file's content with the checksums of those lines made right that are objects."""
    running = RunningSum()
    lines = []
    for line in content.splitlines(keepends=True):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        lines.append(_line(running, entry) if isinstance(entry, dict) else line)
    return b"".join(lines)


def change_lines(path: Path, change: Callable[[Any], object]) -> None:
    """Change the entries of a file of lines in place: `change` gets them as a list."""
    entries = read_lines(path)
    change(entries)
    write_lines(path, entries)


def _line(running: RunningSum, entry: dict[str, Any]) -> bytes:
    order = sorted(entry, key=lambda name: name != "seq")  # which is at the start of a journal's lines
    fields = {name: entry[name] for name in order if name not in ("sum", "measured")}
    measured = {"measured": entry["measured"]} if "measured" in entry else {}
    return running.seal(_json(fields)[:-1], b"," + _json(measured)[1:-1] if measured else b"")


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
