"""The page where people judge a run's summaries. `longspan view` writes only their answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final, final
from urllib.parse import quote, urlencode

import trio
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from longspan.simulator.base.errors import InputError, LongspanError, first_problem
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.contract.plugins import scenario_class
from longspan.simulator.contract.sheets import Sheet
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.view.forms import FORM_HEADERS, read_form, render_form
from longspan.simulator.pages.view.run_list import RunList
from longspan.simulator.results.judging.annotation import (
    LEVELS,
    Annotation,
    agreement_table,
    annotations_by,
    open_claims,
    read_sheets,
    save_annotation,
)
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.trust import list_dangers

__all__ = ["AnnotationPages", "can_be_judged"]

READ_LIMITER: Final = trio.CapacityLimiter(2)
"""Limits the number of runs that are read concurrently."""

MARK: Final = re.compile(r"^\s*(?:[-*+•–]|[0-9]{1,3}[.)])\s+")
"""The mark at the beginning of a bullet."""


def can_be_judged(manifest: Manifest) -> bool:
    """Return whether a run has tests that people can judge, and no scenario from code outside longspan's plugins."""
    return not list_dangers(manifest, ["scenarios"]) and any(map(_has_sheets, manifest.suite.scenarios))


@lru_cache(maxsize=256)
def _has_sheets(scenario: str) -> bool:
    try:
        return callable(getattr(scenario_class(scenario), "sheet", None))
    except LongspanError:
        return False


@final
class AnnotationPages:
    """Shows claims one at a time to a person who has entered a name, and saves the answers."""

    def __init__(self, runs: RunList) -> None:
        self._runs = runs

    async def page(self, request: Request) -> Response:
        """Return the next claim that `by` has not judged, after `skip` skipped ones; at the end, the table of agreement."""
        run = self._run(request)
        by = request.query_params.get("by", "").strip()[:100]
        skip = request.query_params.get("skip", "0")
        load = partial(_values, run, by, int(skip) if skip.isascii() and skip.isdigit() and len(skip) < 7 else 0)
        values = await trio.to_thread.run_sync(load, limiter=READ_LIMITER)
        return render_form("annotate.html.j2", name=run.path.name, by=by, levels=list(LEVELS), error="", **values)

    async def save(self, request: Request) -> Response:
        """Save the answer in a form, and show the next claim."""
        run = self._run(request)
        form = {name: values[-1] for name, values in (await read_form(request)).items()}
        try:
            annotation = await trio.to_thread.run_sync(partial(_save, run, form), limiter=READ_LIMITER)
        except InputError as error:
            values = await trio.to_thread.run_sync(partial(_again, run, form), limiter=READ_LIMITER)
            if values is None:
                raise
            return render_form("annotate.html.j2", 422, name=run.path.name, levels=list(LEVELS), error=str(error), **values)
        skip = {"skip": form["skip"]} if form.get("skip") else {}
        return RedirectResponse(
            f"/runs/{quote(run.path.name, safe='')}/annotate?{urlencode({'by': annotation.by} | skip)}", 303, FORM_HEADERS
        )

    def _run(self, request: Request) -> RunFolder:
        """Return the run. Raises MissingError and InputError like `RunList.run`, and InputError if its tests cannot be judged here."""
        run = self._runs.run(request.path_params["name"])
        if not can_be_judged(run.manifest):
            why = "; its manifest names code, which is not run here" if list_dangers(run.manifest, ["scenarios"]) else ""
            raise InputError(f"{run.path.name}: none of its tests has a sheet to annotate{why}")
        return run


def _values(run: RunFolder, by: str, skip: int) -> Mapping[str, Any]:
    """Return values for the template: a claim with its sheet, or the table of agreement."""
    known = read_sheets(run)
    if not by:
        return {"claim": None, "table": agreement_table(run)}
    left = open_claims(known, annotations_by(run).get(by, {}))
    if skip >= len(left):
        return {"claim": None, "table": agreement_table(run)}
    test, claim = left[skip]
    return {"left": len(left) - skip, "skip": skip, "chosen": ""} | _claim(known[test], test, claim)


def _claim(sheet: Sheet, test: str, claim: str) -> dict[str, Any]:
    """Return values for the template: a claim with its sheet. The page numbers the bullets, so their own marks are removed."""
    bullets = [escape_invisible(MARK.sub("", bullet)) for bullet in sheet.bullets]
    return {
        "test": test,
        "claim": claim,
        "text": escape_invisible(sheet.claims[claim]),
        "question": escape_invisible(sheet.question),
        "bullets": bullets,
    }


def _again(run: RunFolder, form: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return values for the template: the claim of a rejected form, with its answers; None if the run has no such claim."""
    known, by = read_sheets(run), form.get("by", "").strip()[:100]
    test, claim = form.get("test", ""), form.get("claim", "")
    sheet = known.get(test)
    if sheet is None or claim not in sheet.claims or not by:
        return None
    left = open_claims(known, annotations_by(run).get(by, {}))
    answers = {"by": by, "skip": form.get("skip", ""), "chosen": form.get("bullet", "")}
    return {"left": len(left)} | answers | _claim(sheet, test, claim)


def _save(run: RunFolder, form: Mapping[str, str]) -> Annotation:
    """Save the answer in a form. Raises InputError if it does not fit the run."""
    coverage, bullet = form.get("coverage"), form.get("bullet", "")
    number = int(bullet) if bullet.isascii() and bullet.isdigit() and len(bullet) < 9 and coverage != "none" else None
    fields = {name: form.get(name, "").strip() for name in ("test", "claim", "by")}
    try:
        annotation = Annotation.model_validate(fields | {"coverage": coverage, "bullet": number})
    except ValidationError as error:
        raise InputError(f"the form is incomplete: {first_problem(error)}; go back and choose an answer") from None
    save_annotation(run, read_sheets(run), annotation)
    return annotation
