"""The pages that review a file of questions, and turn a failure in a user's log into a question. They write only to this file."""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import quote

import trio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.contract.question_files import Proposal, open_review
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.view.forms import FORM_HEADERS, read_form, render_form
from longspan.simulator.pages.view.run_list import RunList
from longspan.simulator.running.asking import find_failure, past_of

__all__ = ["QuestionPages"]

LIMITER: Final = trio.CapacityLimiter(1)
"""Limits reading and writing of the file to one request at a time."""
MAX_FORM_BYTES: Final = 1_000_000
"""A form may contain a whole message of a log, in which a letter may take nine bytes."""


@final
class QuestionPages:
    """Reviews the questions in `file`, and adds to it. `log`: what they are about, None if the file's own note names it."""

    def __init__(self, runs: RunList, file: Path, log: Path | None) -> None:
        self.file = file
        self._runs = runs
        self._log = log

    async def review(self, request: Request) -> Response:
        """Return the next question that nobody has confirmed."""
        return await self._show_next()

    async def decide(self, request: Request) -> Response:
        """Apply a decision about a question, and show the next one."""
        form = {name: values[-1].strip() for name, values in (await read_form(request, MAX_FORM_BYTES)).items()}
        try:
            error = await trio.to_thread.run_sync(self._apply, form, limiter=LIMITER)
        except InputError as problem:
            error = str(problem)
        return await self._show_next(error) if error else RedirectResponse("/questions", 303, FORM_HEADERS)

    def _apply(self, form: dict[str, str]) -> str:
        """Apply a decision, and return what is wrong with it, or an empty string. The file may have changed since the page was made."""
        review = open_review(self.file, self._log)
        proposal = review.find_next()
        if proposal is None or _identify(proposal) != form.get("proposal"):
            return "the file has changed meanwhile: this is its next question now"
        if form.get("decision") == "keep":
            answer = form.get("answer", "")
            # A browser's field has no line breaks, so white space says nothing.
            same = "".join(answer.split()) == "".join(escape_invisible(proposal.answer).split())
            review.keep(answer if answer and not same else None)
        elif form.get("decision") == "drop":
            review.drop(form.get("reason", ""))
        else:
            return "the form is incomplete: choose Keep or Drop"
        return ""

    async def _show_next(self, error: str = "") -> Response:
        summary, proposal = await trio.to_thread.run_sync(self._read, limiter=LIMITER)
        shown = None if proposal is None else Proposal(*map(_escape, proposal))
        values = {"file": str(self.file), "summary": summary, "proposal": shown, "error": error}
        return render_form("review.html.j2", 422 if error else 200, **values, id="" if proposal is None else _identify(proposal))

    def _read(self) -> tuple[str, Proposal | None]:
        if not self.file.exists():
            return "no questions yet", None
        review = open_review(self.file, self._log)
        return review.summary, review.find_next()

    async def failure(self, request: Request) -> Response:
        """Return the form that turns a recorded turn into a question."""
        query = request.query_params
        load = partial(self._load, self._runs.run(request.path_params["name"]), query.get("conversation", ""), query.get("turn", ""))
        return render_form("failure.html.j2", **await trio.to_thread.run_sync(load, limiter=LIMITER))

    async def save(self, request: Request) -> Response:
        """Save the question in a form."""
        run = self._runs.run(request.path_params["name"])
        form = await read_form(request, MAX_FORM_BYTES)
        save = partial(self._save, run, form)
        status, values = await trio.to_thread.run_sync(save, limiter=LIMITER)
        return render_form("failure.html.j2", status, **values)

    def _load(self, run: RunFolder, conversation: str, turn: str, answer: str = "") -> dict[str, Any]:
        """Return values for the template. Raises InputError if there is no such turn."""
        number = int(turn) if turn.isascii() and turn.isdigit() and len(turn) < 10 else -1
        failure = find_failure(run, past_of(run, number, conversation or None))
        return {
            "name": run.path.name,
            "path": f"/runs/{quote(str(run.path.relative_to(self._runs.root)))}",
            "file": str(self.file),
            "conversation": conversation,
            "turn": number,
            "question": escape_invisible(failure.message),
            "reply": escape_invisible(failure.reply),
            "answer": answer,
            "evidence": [each._replace(line=escape_invisible(each.line.removeprefix("- "))) for each in failure.find_evidence(answer)],
            "chosen": [],
            "quotation": "",
            "error": "",
            "saved": "",
        }

    def _save(self, run: RunFolder, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        given = {name: form.get(name, [""])[-1].strip() for name in ("conversation", "turn", "question", "answer", "quotation")}
        values = self._load(run, given["conversation"], given["turn"], given["answer"])
        chosen = form.get("evidence", [])
        values |= {"question": given["question"], "chosen": chosen, "quotation": given["quotation"]}
        failure = find_failure(run, past_of(run, values["turn"], given["conversation"] or None))
        # A browser sends line breaks as CR LF, and the page shows invisible characters as code points.
        same = given["question"].split() == escape_invisible(failure.message).split()
        question = failure.message if same else given["question"]
        evidence = [*chosen, *([given["quotation"]] if given["quotation"] else [])]
        try:
            return 200, values | {"saved": failure.save(self.file, question, given["answer"], evidence)}
        except InputError as error:
            return 422, values | {"error": str(error)}


def _identify(proposal: Proposal) -> str:
    """Return what a form names a proposal by: two questions may have the same words, and a browser changes line breaks and spaces."""
    return sha256(repr(proposal._replace(total=0)).encode("utf-8", "replace")).hexdigest()


def _escape(part: Any) -> Any:
    """Return a part of a proposal for a page, with invisible characters shown as code points."""
    if isinstance(part, str):
        return escape_invisible(part)
    return [escape_invisible(line) for line in part] if isinstance(part, list) else part
