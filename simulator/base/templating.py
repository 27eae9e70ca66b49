"""Jinja environments for longspan's templates. Undefined variables raise an error. Compiled templates are cached per user."""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import jinja2
from jinja2 import BaseLoader, BytecodeCache, Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket

from longspan.simulator.base import cache

__all__ = ["make_environment"]

COMPILER: Final = f"Python {sys.version} Jinja {jinja2.__version__}"
"""The versions that compiled templates depend on."""


def make_environment(*folders: Path, **options: Any) -> Environment:
    """Return an environment that looks for templates in these folders, in order. HTML is escaped only with `autoescape`.

    A template is read once. Jinja's reloading would check for a newer file at each import of a template.
    """
    loader: BaseLoader = FileSystemLoader(folders)
    options = {"autoescape": False, **options}
    bytecode_cache = _CompiledTemplates({name: value for name, value in options.items() if not callable(value)})
    return Environment(loader=loader, undefined=StrictUndefined, bytecode_cache=bytecode_cache, auto_reload=False, **options)  # noqa: S701


class _CompiledTemplates(BytecodeCache):
    """Compiled templates in the user's cache folder. Jinja checks that their source has not changed.

    Jinja applies filters to constants at compile time. So after a filter changes, a cached template still has the old result.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options

    def load_bytecode(self, bucket: Bucket) -> None:
        content = cache.read_cached(self._file(bucket))
        if content is not None:
            bucket.bytecode_from_string(content)

    def dump_bytecode(self, bucket: Bucket) -> None:
        cache.write_cached(self._file(bucket), bucket.bytecode_to_string())

    def _file(self, bucket: Bucket) -> str:
        """Return the cache file's name, which depends on the template's path, the compiler and the options."""
        return sha256(f"{bucket.key} {COMPILER} {sorted(self._options.items())}".encode()).hexdigest()[:32] + ".template"
