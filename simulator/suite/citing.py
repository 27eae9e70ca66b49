"""BibTeX references to the sources of a suite's tests, and to longspan."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from longspan.simulator.base.installed import installed_suites
from longspan.simulator.suite.suite import Suite, load_suite

__all__ = ["keys_of", "list_references", "longspan_itself"]

_KEY: Final = re.compile(r"@[A-Za-z]{1,20}\{([A-Za-z0-9_:.+/-]{1,100}),")


def list_references(scenarios: Collection[str], played: Iterable[Suite] = ()) -> list[str]:
    """Return the references of all suites that contain any of these scenarios: of `played` and of longspan's own."""
    known = [*played, *map(load_suite, installed_suites())]
    found = [suite.reference.strip() for suite in known if suite.reference and not suite.scenarios.keys().isdisjoint(scenarios)]
    return list(dict.fromkeys(found))


def longspan_itself(version: str) -> str:
    """Return the reference to a version of longspan."""
    return f"""@misc{{longspan,
  title  = {{longspan: a simulator of one very long conversation that tests the memory of conversational agents}},
  author = {{{{The longspan authors}}}},
  year   = {{2026}},
  note   = {{Version {version}}},
}}"""


def keys_of(reference: str) -> list[str]:
    """Return the citation keys of the entries in a reference."""
    return _KEY.findall(reference)
