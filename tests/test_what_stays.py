"""Names that users depend on do not disappear unnoticed (docs/reference/stability.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts import what_stays

FILE = Path(__file__).parent / "what_stays.json"


def missing(known: Any, now: Any, where: str = "") -> Iterator[str]:
    """Yield the names in `known` that are not in `now`."""
    if isinstance(known, dict):
        for key, inner in known.items():
            if key in now:
                yield from missing(inner, now[key], f"{where}/{key}")
            else:
                yield f"{where}/{key}"
    else:
        yield from (f"{where}/{name}" for name in known if name not in now)


def test_no_name_that_users_depend_on_is_gone() -> None:
    assert list(missing(json.loads(FILE.read_text("utf-8")), what_stays.find_names())) == []


def test_a_missing_name_is_noticed() -> None:
    known = json.loads(FILE.read_text("utf-8"))
    now = what_stays.find_names()
    now["commands"]["run"].remove("--agent")
    del now["journal"]["reply"]
    assert list(missing(known, now)) == ["/commands/run/--agent", "/journal/reply"]


def test_the_list_is_of_today() -> None:
    assert list(missing(json.loads(json.dumps(what_stays.find_names(), default=list)), json.loads(FILE.read_text("utf-8")))) == [], (
        "python -m scripts.what_stays tests/what_stays.json"
    )
