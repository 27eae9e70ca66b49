"""Jinja environments for longspan's templates. Undefined variables raise an error; compiled templates are cached per user."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import jinja2
from jinja2 import BaseLoader, BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from longspan.simulator.base import cache

__all__ = ["environment"]

COMPILER: Final = f"Python {sys.version} Jinja {jinja2.__version__}"
"""The versions that compiled templates depend on."""


def environment(*folders: Path, **options: Any) -> Environment:
    """Return an environment that looks for templates in these folders, in this order. HTML is escaped only with `autoescape`.

    A template is read once: Jinja would look for a newer file each time that a template imports another.
    """
    loader: BaseLoader = FileSystemLoader(folders)
    options = {"autoescape": False, **options}
    bytecode_cache = _CompiledTemplates({name: value for name, value in options.items() if not callable(value)})
    return Environment(loader=loader, undefined=StrictUndefined, bytecode_cache=bytecode_cache, auto_reload=False, **options)  # noqa: S701


class _CompiledTemplates(BytecodeCache):
    """Compiled templates in the user's cache folder. Jinja checks that their source has not changed.

    When Jinja compiles a template, it applies filters to constants, so a cached template keeps the result of an older filter.
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
        """Return the cache file's name, which depends on the template's path, the compiler and the options."""
        return sha256(f"{bucket.key} {COMPILER} {sorted(self._options.items())}".encode()).hexdigest()[:32] + ".template"
