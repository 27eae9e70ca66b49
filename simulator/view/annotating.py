"""The page on which a person judges a run's summaries, and the only thing that `longspan view` writes: what they say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final, final
from urllib.parse import parse_qs, quote, urlencode

import trio
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from longspan.simulator.agent_spec import needs_trust
from longspan.simulator.errors import InputError, LongspanError, first_problem
from longspan.simulator.judging.annotation import LEVELS, Annotation, agreements, annotate, open_claims, said_by, sheets
from longspan.simulator.manifest import Manifest
from longspan.simulator.plugins import scenario_class
from longspan.simulator.report.excerpts import visible
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.view.rendering import page
from longspan.simulator.view.run_list import Shelf

__all__ = ["Annotating", "can_be_judged"]

LARGEST: Final = 10_000
"""Bytes of a form at most."""

READING: Final = trio.CapacityLimiter(2)
"""How many runs are read at once."""

POLITE: Final = {"Referrer-Policy": "same-origin"}
"""Without a referrer at all a browser would not say either which page a form was sent from."""


def can_be_judged(manifest: Manifest) -> bool:
    """Whether a run has tests that people can judge, and none of its scenarios is code that only the run names."""
    names = tuple(manifest.suite.scenarios)
    return not any(map(needs_trust, names)) and any(map(_has_sheets, names))


@lru_cache(maxsize=256)
def _has_sheets(scenario: str) -> bool:
    try:
        return callable(getattr(scenario_class(scenario), "sheet", None))
    except LongspanError:
        return False


@final
class Annotating:
    """Shows one claim after the other to whoever gives a name, and keeps what they say."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def page(self, request: Request) -> Response:
        """The next claim that `by` has not judged, of those after the first `skip`; at the end, how far all agree."""
        run = self._run(request)
        by = request.query_params.get("by", "").strip()[:100]
        skip = request.query_params.get("skip", "0")
        made = partial(_shown, run, by, int(skip) if skip.isascii() and skip.isdigit() and len(skip) < 7 else 0)
        found = await trio.to_thread.run_sync(made, limiter=READING)
        answer = page("annotate.html.j2", name=run.path.name, by=by, levels=list(LEVELS), **found)
        answer.headers.update(POLITE)
        return answer

    async def save(self, request: Request) -> Response:
        """Keep what a form says, and show the next claim."""
        run = self._run(request)
        form = await _form(request)
        given = await trio.to_thread.run_sync(partial(_save, run, form), limiter=READING)
        skip = {"skip": form["skip"]} if form.get("skip") else {}
        return RedirectResponse(f"/runs/{quote(run.path.name, safe='')}/annotate?{urlencode({'by': given.by} | skip)}", 303, POLITE)

    def _run(self, request: Request) -> RunFolder:
        """Raises MissingError and InputError, also for a run whose tests nobody can judge here."""
        run = self._shelf.run(request.path_params["name"])
        if not can_be_judged(run.manifest):
            raise InputError(f"{run.path.name}: none of its tests can be judged here; those of the suite summhay can")
        return run


def _shown(run: RunFolder, by: str, skip: int) -> Mapping[str, Any]:
    """What the page shows: a claim with its sheet, or the table of agreements."""
    known = sheets(run)
    if not by:
        return {"claim": None, "table": agreements(run)}
    left = open_claims(known, said_by(run).get(by, {}))
    if skip >= len(left):
        return {"claim": None, "table": agreements(run)}
    test, claim = left[skip]
    sheet = known[test]
    shown = {"text": visible(sheet.claims[claim]), "question": visible(sheet.question), "bullets": [*map(visible, sheet.bullets)]}
    return {"test": test, "claim": claim, "left": len(left) - skip, "skip": skip} | shown


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form. Raises InputError for what is none, or too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST:
            raise InputError("the form is larger than any that is sent from here")
    try:
        return {name: values[-1] for name, values in parse_qs(body.decode("utf-8"), max_num_fields=20).items()}
    except ValueError as error:
        raise InputError("this is no form that was sent from here") from error


def _save(run: RunFolder, form: Mapping[str, str]) -> Annotation:
    """Keep what a form says. Raises InputError for what cannot be said of the run."""
    coverage, bullet = form.get("coverage"), form.get("bullet", "")
    number = int(bullet) if bullet.isascii() and bullet.isdigit() and len(bullet) < 9 and coverage != "none" else None
    fields = {name: form.get(name, "").strip() for name in ("test", "claim", "by")}
    try:
        given = Annotation.model_validate(fields | {"coverage": coverage, "bullet": number})
    except ValidationError as error:
        raise InputError(f"the form is not complete: {first_problem(error)}; go back and choose") from None
    annotate(run, sheets(run), given)
    return given
