"""Read ChapterBreak as published (Sun et al., 2022): JSON, or JSON compressed with zstd.

At the top level are splits ("pg19", "ao3"), each a dictionary from a work's id to a list of examples. An example is a dictionary of
`ctx` (the text before a chapter break), `pos` (the beginning of the next chapter) and `negs` (five beginnings of other chapters). The
levels of splits and works are optional.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import MAX_BYTES, file_stamp, parse_json, read_packed
from longspan.simulator.base.own_installation import install_extra

__all__ = ["Example", "read_examples"]

ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""The magic bytes of a zstd frame."""
NEGATIVES: Final = 5
"""Number of beginnings of other chapters in an example."""
REMEDY: Final = "give chapterbreak's data as JSON or as JSON in zst"
MAX_DEPTH: Final = 4
"""Maximum nesting of an example in splits, works and lists."""


@final
class Example(NamedTuple):
    """A published example. `where`: its split, work and number, such as "pg19/1342/0"."""

    where: str
    context: str
    right: str
    wrong: tuple[str, ...]


def read_examples(path: Path) -> tuple[Example, ...]:
    """Return the file's examples, in order. The file is reread only if it changes.

    Examples with a blank text are skipped. Raises InputError if the file is unreadable, contains anything other than examples, or has
    only examples with a blank text.
    """
    return _load(path, file_stamp(path, REMEDY))


@lru_cache(maxsize=1)
def _load(path: Path, changed: tuple[int, int]) -> tuple[Example, ...]:
    found = tuple(_examples(_parse_file(path), path, "", MAX_DEPTH))
    if not found:
        raise InputError(f'{path}: no examples found: expected {{"pg19": {{WORK: [{{"ctx": ..., "pos": ..., "negs": [...]}}, ...]}}}}')
    usable = tuple(example for example in found if all(text.strip() for text in (example.context, example.right, *example.wrong)))
    if not usable:
        raise InputError(f"{path}: every example has a blank text, so none can be used")
    return usable


def _parse_file(path: Path) -> Any:
    content = read_packed(path, MAX_BYTES, REMEDY)
    if content.startswith(ZSTD) or path.suffix in (".zst", ".zstd"):
        content = _decompress(content, path)
    return parse_json(content, str(path))


def _decompress(content: bytes, path: Path) -> bytes:
    try:
        import zstandard
    except ImportError as error:
        raise InputError(f"{path}: reading zst needs the zstandard package: {install_extra('zst')}, or unpack the file") from error
    try:
        with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as reader:
            unpacked: bytes = reader.read(MAX_BYTES + 1)
    except zstandard.ZstdError as error:
        raise InputError(f"{path}: not zst, or damaged: {error}") from error
    if len(unpacked) > MAX_BYTES:
        raise InputError(f"{path}: larger than {MAX_BYTES:,} bytes; {REMEDY}")
    return unpacked


def _examples(value: Any, path: Path, where: str, depth: int) -> Iterator[Example]:
    """Yield the examples in `value`, which is at `where` in the file."""
    if isinstance(value, dict) and value.keys() & {"ctx", "pos", "negs"}:
        yield _example(value, path, where)
    elif isinstance(value, (dict, list)) and depth:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _examples(inner, path, f"{where}/{key}" if where else str(key), depth - 1)
    else:
        raise InputError(f"{path}: at {where or 'the top'}: expected an example, or works with examples, got {_kind(value)}")


def _example(value: dict[str, Any], path: Path, where: str) -> Example:
    for key in ("ctx", "pos", "negs"):
        if key not in value:
            raise InputError(f"{path}: at {where or 'the top'}: the example has no {key!r}; it needs ctx, pos and negs")
    context, right, wrong = value["ctx"], value["pos"], value["negs"]
    for key, text in (("ctx", context), ("pos", right)):
        if not isinstance(text, str):
            raise InputError(f"{path}: at {where or 'the top'}: {key!r} must be a string, got {_kind(text)}")
    if not isinstance(wrong, list) or len(wrong) != NEGATIVES or not all(isinstance(text, str) for text in wrong):
        got = f"{len(wrong)} values" if isinstance(wrong, list) else _kind(wrong)
        raise InputError(f"{path}: at {where or 'the top'}: 'negs' must be a list of {NEGATIVES} strings, got {got}")
    return Example(where, context, right, tuple(wrong))


def _kind(value: Any) -> str:
    """Return the kind of a JSON value, for an error message."""
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
