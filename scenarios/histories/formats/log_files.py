"""Read the values and texts of a log's files. JSON lines are streamed, so that a large file is never in memory as a whole."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, final

from longspan.scenarios.histories.data_files import TAR, ZIP
from longspan.simulator.base.errors import InputError, one_line
from longspan.simulator.base.files.file_io import MAX_BYTES, open_regular, parse_json

__all__ = ["Found", "is_archive", "parse_value", "read_stream", "read_values"]

GZIP: Final = b"\x1f\x8b"
REPLACED: Final = "characters that are not valid Unicode were replaced"
HEAD: Final = 1 << 16
"""The number of bytes in which a text format must be recognised."""

_STAMP: Final = re.compile(r"[\s\u200e\ufeff]*\[[0-9]+[./-][0-9]+[./-][^\]\"]+\]")
"""Chats such as WhatsApp's begin lines with a time in brackets, as in `[3/1/24, 18:05:00]`."""
_SPACE: Final = re.compile(r"\s*")


@final
class Found(NamedTuple):
    """A JSON value or, if `text`, the text of a file, with its place."""

    where: str
    value: Any
    text: bool = False


def is_archive(path: Path) -> bool:
    """Return whether a path is a folder, or a zip or tar, which may be gzipped. Raises InputError."""
    if path.is_dir():
        return True
    with open_regular(path) as file:
        head = file.read(HEAD)
        if head.startswith(GZIP):
            try:
                file.seek(0)
                head = gzip.GzipFile(fileobj=file).read(HEAD)
            except (gzip.BadGzipFile, EOFError, zlib.error) as error:
                raise InputError(f"{path}: cannot be read: damaged gzip: {one_line(error)}") from error
    return head.startswith(ZIP) or head[257:262] == TAR


def read_values(path: Path, notes: set[str]) -> Iterator[Found]:
    """Yield the contents of a single file, which may be gzipped. Raises InputError."""
    with open_regular(path) as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        try:
            yield from read_stream(gzip.GzipFile(fileobj=file) if packed else file, str(path), notes)  # type: ignore[arg-type]
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InputError(f"{path}: cannot be read: damaged gzip: {one_line(error)}") from error


def read_stream(file: BinaryIO, where: str, notes: set[str]) -> Iterator[Found]:
    """Yield a JSON value for each line of JSON lines, or the values or the text of another file. Raises InputError."""
    first = b""
    number = size = 0
    while not first.strip() or first == b"\xef\xbb\xbf\n":
        line = file.readline(MAX_BYTES + 1)
        if not line:
            return
        size += len(line)
        _check_size(size, where)
        first, number = line, number + 1
    first = first.removeprefix(b"\xef\xbb\xbf")
    more = file.readline(MAX_BYTES + 1)
    if not _is_json(first) or (not more.strip() and first.lstrip().startswith(b"[")):
        rest = file.read(MAX_BYTES + 1 - size) if more else b""
        _check_size(size + len(more) + len(rest), where)
        yield from _whole(first + more + rest, where, notes)
        return
    for line in _lines(first, more, file):
        size += len(line)
        _check_size(size, where)
        if line.strip():
            place = f"{where}, line {number}"
            yield Found(place, parse_value(_decode(line, where, notes), place, notes))
        number += 1


def _lines(first: bytes, more: bytes, file: BinaryIO) -> Iterator[bytes]:
    yield first
    while more:
        yield more
        more = file.readline(MAX_BYTES + 1)


def _check_size(size: int, where: str) -> None:
    if size > MAX_BYTES:
        raise InputError(f"{where}: larger than {MAX_BYTES:,} bytes; split it")


def _is_json(content: bytes) -> bool:
    if content.lstrip()[:1] not in b'{["0123456789-tfn':
        return False
    try:
        json.loads(content)
    except UnicodeDecodeError:
        return content.rstrip().endswith((b"}", b"]"))
    except RecursionError:  # reported later, with its place
        return True
    except ValueError:
        return False
    return True


def _whole(content: bytes, where: str, notes: set[str]) -> Iterator[Found]:
    """Yield the values of JSON that is not one value a line, or a text."""
    text = _decode(content, where, notes)
    start = text.lstrip()[:1]
    if _STAMP.match(text):
        yield Found(where, text, text=True)
        return
    if start not in ("{", "[") and not _is_json(text.encode()):
        yield Found(where, text, text=True)
        return
    try:
        yield Found(where, parse_value(text, where, notes))
        return
    except InputError as error:
        if "Extra data" not in str(error):
            raise
    decoder = json.JSONDecoder()
    at, number = len(text) - len(text.lstrip()), 1
    while at < len(text):  # several values that may take several lines each
        place = f"{where}, value {number}"
        try:
            end = decoder.raw_decode(text, at)[1]
        except (ValueError, RecursionError):
            end = len(text)
        yield Found(place, parse_value(text[at:end], place, notes))
        at, number = _SPACE.match(text, end).end(), number + 1  # type: ignore[union-attr]


def parse_value(text: str, where: str, notes: set[str]) -> Any:
    """Return a JSON value. Halves of surrogate pairs, which cannot be encoded, are replaced and noted. Raises InputError."""
    value = parse_json(text, where, unique=True)
    if "\\ud" not in text and "\\uD" not in text:
        return value
    try:
        clean = _clean(value)
    except RecursionError as error:
        raise InputError(f"{where}: not JSON: nested too deeply") from error
    if clean != value:
        notes.add(REPLACED)
    return clean


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_clean(key): _clean(inner) for key, inner in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list) else value


def _decode(content: bytes, where: str, notes: set[str]) -> str:
    """Return text in the encoding that the bytes show. Anything but UTF-8 is noted."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in content[:4]:
        encoding = json.detect_encoding(content)
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError as error:
            raise InputError(f"{where}: begins like {encoding} but is not: {one_line(error)}; save it as UTF-8") from None
        notes.add(f"read as {encoding}")
        return text
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        with suppress(UnicodeDecodeError):  # Java and MySQL encode the halves of a surrogate pair one by one
            clean: str = _clean(content.decode("utf-8-sig", "surrogatepass"))
            notes.add(REPLACED)
            return clean
        loose = content.decode("utf-8-sig", "replace")
        bad = loose.count("\ufffd")
        if sum(not character.isascii() for character in loose) > 2 * bad:
            notes.add("bytes that are not UTF-8 were replaced")
            return loose
        notes.add("text that is not UTF-8 was read as Windows-1252")
        return content.decode("cp1252", "replace")
