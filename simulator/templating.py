"""Jinja templates from folders of ours: what they are not given is an error, and they are compiled once per user."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import jinja2
from jinja2 import BaseLoader, BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from longspan.simulator import cache

__all__ = ["environment"]

MAKERS: Final = f"Python {sys.version} Jinja {jinja2.__version__}"
"""What wrote compiled templates, besides their source."""


def environment(*folders: Path, **options: Any) -> Environment:
    """The templates in these folders, looked up in this order. The options are Jinja's; text is escaped for HTML only with `autoescape`."""
    loader: BaseLoader = FileSystemLoader(folders)
    options = {"autoescape": False, **options}
    kept = _Compiled({name: value for name, value in options.items() if not callable(value)})
    return Environment(loader=loader, undefined=StrictUndefined, bytecode_cache=kept, **options)  # noqa: S701


class _Compiled(BytecodeCache):
    """Compiled templates in the user's cache folder. Jinja checks that their source is the same.

    Jinja applies a filter to a constant when it compiles a template, so one that has that keeps the result of an older filter.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options

    def load_bytecode(self, bucket: Bucket) -> None:
        content = cache.read(self._file(bucket))
        if content is not None:
            bucket.bytecode_from_string(content)

    def dump_bytecode(self, bucket: Bucket) -> None:
        cache.write(self._file(bucket), bucket.bytecode_to_string())

    def _file(self, bucket: Bucket) -> str:
        """The name of a template's file. Its place in another checkout, or other options, make it another file."""
        return sha256(f"{bucket.key} {MAKERS} {sorted(self._options.items())}".encode()).hexdigest()[:32] + ".template"
