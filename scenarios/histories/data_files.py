"""Find the files at a user's path: a file, a folder, or a zip or tar of either. Each may be gzipped."""

from __future__ import annotations

import gzip
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.simulator.base.errors import InputError, first_problem, one_line
from longspan.simulator.base.files.file_io import MAX_BYTES, parse_json, read_packed

__all__ = ["PublishedPart", "Source", "blame_value", "entry_name", "find_beside", "find_near", "find_only", "list_sources"]

GZIP: Final = b"\x1f\x8b"
ZIP: Final = b"PK\x03\x04"
TAR: Final = b"ustar"
"""Magic bytes of a tar file, at byte 257."""

MAX_FILES: Final = 200_000
"""Maximum number of files in a folder or an archive."""


class PublishedPart(BaseModel):
    """A part of a published file. Unused keys are ignored."""

    model_config = ConfigDict(frozen=True, strict=True)


@final
class Source(NamedTuple):
    """A file: `where` it is, its `name` relative to the user's path without `.gz`, and a function that returns its unpacked content."""

    where: str
    name: str
    content: Callable[[], bytes]

    def json(self) -> Any:
        """Parse the file as JSON. Raises InputError."""
        return parse_json(self.content(), self.where)

    def lines(self) -> Iterator[tuple[str, Any]]:
        """Yield the place and the JSON value of each line. Raises InputError."""
        for number, line in enumerate(BytesIO(self.content()), 1):
            if line.strip():
                where = f"{self.where}, line {number}"
                yield where, parse_json(line, where)


@contextmanager
def blame_value(where: str) -> Iterator[None]:
    """Convert errors about a value to an InputError that names its place."""
    try:
        yield
    except ValidationError as error:
        raise InputError(f"{where}: {first_problem(error)}") from None
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


def entry_name(value: Any, key: str, number: int) -> str:
    """Return an entry's name: the string under `key`, or else its number."""
    name = value.get(key) if isinstance(value, dict) else None
    return f"{name!r:.80}" if isinstance(name, str) else str(number)


def list_sources(path: Path) -> list[Source]:
    """Return the files at a path, sorted by name: the file itself, those in a folder and its subfolders, or those in an archive.

    Raises InputError if the path cannot be read.
    """
    if path.is_dir():
        return [_file(file, file.relative_to(path).as_posix()) for file in sorted(_inside(path))]
    content = read_packed(path, MAX_BYTES)
    if content.startswith(ZIP):
        return _in_zip(path, content)
    if content[257:262] == TAR:
        return _in_tar(path, content)
    return [Source(str(path), path.name.removesuffix(".gz"), lambda: content)]


def find_only(path: Path, ending: str, what: str) -> Source:
    """Return the only file at a path whose name ends with `ending`. A file given directly may have any name. Raises InputError."""
    found = list_sources(path)
    if len(found) > 1 or path.is_dir():
        found = [source for source in found if source.name.endswith(ending)]
    if len(found) == 1:
        return found[0]
    several = f"has several files {ending} ({', '.join(source.name for source in found[:3])} ...): name one of them"
    raise InputError(f"{path}: {several if found else f'has no file {ending}'}; expected {what}")


def find_beside(path: Path, name: str) -> Source:
    """Return the file with this name, possibly gzipped, in the same folder as a path. Raises InputError if it does not exist."""
    places = [path.with_name(name), path.with_name(f"{name}.gz")]
    return _file(next((place for place in places if place.exists()), places[0]), name)


def find_near(paths: Iterable[Path], name: str) -> tuple[Source, Any] | None:
    """Return the JSON file with this name, with its value, from the folder of one of the paths or its parent, or None."""
    places = [folder / name for path in paths for folder in (path.parent, path.parent.parent)]
    there = next((place for place in places if place.is_file() or place.with_name(f"{name}.gz").is_file()), None)
    if there is None:
        return None
    source = find_beside(there, name)
    with suppress(InputError):  # the user did not ask for this file, so its faults are no error
        return source, source.json()
    return None


def _file(path: Path, name: str) -> Source:
    return Source(str(path), name.removesuffix(".gz"), lambda: read_packed(path, MAX_BYTES))


def _inside(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders. Links to files are followed, links to folders are not."""
    count = 0
    for place, _, names in os.walk(folder):
        for name in names:
            count += 1
            if count > MAX_FILES:
                raise InputError(f"{folder}: has more than {MAX_FILES:,} files; name the folder with the data")
            yield Path(place, name)


def _in_zip(path: Path, content: bytes) -> list[Source]:
    with _blame_archive(path):
        archive = zipfile.ZipFile(BytesIO(content))
        entries = {entry.filename: entry for entry in archive.infolist()[:MAX_FILES] if not entry.is_dir()}
    return [_member(path, name, entry.file_size, partial(archive.read, entry)) for name, entry in sorted(entries.items())]


def _in_tar(path: Path, content: bytes) -> list[Source]:
    with _blame_archive(path):
        archive = tarfile.TarFile(fileobj=BytesIO(content))
        entries = {entry.name: entry for entry in archive.getmembers()[:MAX_FILES] if entry.isreg()}
    return [_member(path, name, entry.size, partial(_extract_entry, archive, entry)) for name, entry in sorted(entries.items())]


def _extract_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(entry)
    return file.read() if file else b""


def _member(path: Path, name: str, size: int, read: Callable[[], bytes]) -> Source:
    where = f"{path}/{name}"

    def content() -> bytes:
        if size > MAX_BYTES:
            raise InputError(f"{where}: larger than {MAX_BYTES:,} bytes; unpack it and name a smaller part")
        with _blame_archive(path):
            found = read()
            if found.startswith(GZIP):
                found = gzip.GzipFile(fileobj=BytesIO(found)).read(MAX_BYTES + 1)
        if len(found) > MAX_BYTES:
            raise InputError(f"{where}: larger than {MAX_BYTES:,} bytes; unpack it and name a smaller part")
        return found

    return Source(where, name.removeprefix("./").removesuffix(".gz"), content)


@contextmanager
def _blame_archive(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be unpacked: {one_line(error)}; unpack it and name the folder") from error
