"""Checksums in the files that longspan writes and reads back, to detect damage.

The last key of every object is `sum`: 64 bits in hexadecimal, over the bytes before it.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Final, final

from longspan.simulator.base.errors import InputError

__all__ = ["SEAL_LENGTH", "ChecksumError", "RunningSum", "add_checksum", "verify_checksum"]

SEAL: Final = b',"sum":"%s"}\n'
"""The end of a line."""

SEAL_LENGTH: Final = len(SEAL % (b"0" * 16))
"""The number of bytes of a line's end."""

FILE_SEAL: Final = b',\n "sum": "%s"\n}\n'
"""The end of a file that contains one object, indented by 1."""


class ChecksumError(ValueError):
    """A checksum is missing or wrong. The message says which."""

    @classmethod
    def of(cls, end: bytes, seal: bytes) -> ChecksumError:
        found = end.startswith(seal[: seal.index(b"%s")])
        return cls("its checksum does not match" if found else "it has no checksum")


@final
class RunningSum:
    """The checksum of a file's lines so far. Each line's checksum also covers the line before it, so a missing line is detected."""

    def __init__(self) -> None:
        self._sum = b""

    def __str__(self) -> str:
        return self._sum.decode()

    def seal(self, fields: bytes, apart: bytes = b"") -> bytes:
        """Return the next line with its checksum. `fields` is an object without its closing brace. The checksum does not cover `apart`."""
        self._sum = _digest(self._sum + fields)
        return fields + apart + SEAL % self._sum

    def check(self, line: bytes, fields: bytes) -> None:
        """Check the next line's checksum, which covers `fields`, the start of the line. Raises ChecksumError."""
        digest = _digest(self._sum + fields)
        if line[-SEAL_LENGTH:] != SEAL % digest:
            raise ChecksumError.of(line[-SEAL_LENGTH:], SEAL)
        self._sum = digest

    def follow(self, line: bytes) -> None:
        """Continue after `line` without verifying it. Raises ChecksumError if it has no checksum."""
        digest = line[-SEAL_LENGTH:].removeprefix(SEAL[:8])[:16]
        if line[-SEAL_LENGTH:] != SEAL % digest:
            raise ChecksumError.of(b"", SEAL)
        self._sum = digest


def add_checksum(text: str) -> str:
    """Return the JSON text of an object, indented by 1, with its checksum."""
    fields = text.removesuffix("\n}")
    return fields + (FILE_SEAL % _digest(fields.encode())).decode()


def verify_checksum(content: bytes, path: Path, remedy: str) -> bytes:
    """Return the JSON text of a sealed file without its checksum. Raises InputError with the remedy if the checksum is wrong."""
    length = len(FILE_SEAL % (b"0" * 16))
    fields, end = content[:-length], content[-length:]
    if end != FILE_SEAL % _digest(fields):
        raise InputError(f"{path}: damaged: {ChecksumError.of(end, FILE_SEAL)}; {remedy}")
    return fields + b"\n}"


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=8).hexdigest().encode()
