"""The pages of `longspan view`: lists of runs, reports, comparisons, runs while they are played, and figures to download."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from time import time
from typing import Any, Final, final
from urllib.parse import quote, unquote, urlencode

import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from longspan.simulator.base.agent_names import short_names
from longspan.simulator.base.errors import InputError, LongspanError, one_line
from longspan.simulator.base.files.locks import is_locked
from longspan.simulator.base.terminal import escape_invisible, quote_command
from longspan.simulator.journal.run_folder import RESULT, RunFolder
from longspan.simulator.pages.report import POLICY, report_of
from longspan.simulator.pages.report.page import ASSETS, element_id
from longspan.simulator.pages.report.side_by_side import Side, SideBySide, side_by_side
from longspan.simulator.pages.report.story import Story
from longspan.simulator.pages.report.timeline import grade_of
from longspan.simulator.pages.view.annotating import AnnotationPages, can_be_judged
from longspan.simulator.pages.view.arranging import ORDERS, columns_in_names, group_by_seed, in_order
from longspan.simulator.pages.view.comparison_pages import ComparisonPage, compare_folder
from longspan.simulator.pages.view.folder_list import FolderList
from longspan.simulator.pages.view.following import LiveEvent, LiveRun, LiveRuns
from longspan.simulator.pages.view.page_rendering import render_page
from longspan.simulator.pages.view.question_pages import QuestionPages
from longspan.simulator.pages.view.run_list import MissingError, RunList, filter_runs
from longspan.simulator.results.analysis.changes import list_changed_options, list_chosen_scenarios
from longspan.simulator.results.analysis.matrix import natural_sort_key
from longspan.simulator.results.analysis.statements import NAME
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.measures.trends import has_versions
from longspan.simulator.suite.manifest import Manifest

__all__ = ["EventStream", "Pages"]

VIEW_ASSETS: Final = Path(__file__).parent / "assets"

FILES: Final = {
    "base.css": (ASSETS / "base.css", "text/css"),
    "pictures.css": (ASSETS / "pictures.css", "text/css"),
    "timeline.css": (ASSETS / "timeline.css", "text/css"),
    "turns.js": (ASSETS / "turns.js", "text/javascript"),
    "timeline.js": (ASSETS / "timeline.js", "text/javascript"),
    "view.css": (VIEW_ASSETS / "view.css", "text/css"),
    "list.js": (VIEW_ASSETS / "list.js", "text/javascript"),
    "keys.js": (VIEW_ASSETS / "keys.js", "text/javascript"),
    "copy.js": (VIEW_ASSETS / "copy.js", "text/javascript"),
    "beside.js": (VIEW_ASSETS / "beside.js", "text/javascript"),
    "live.js": (VIEW_ASSETS / "live.js", "text/javascript"),
}
"""All static files, with their media types."""

NO_FRAMES: Final = "; frame-ancestors 'none'"
"""Added to a page's own policy, since this directive works only in a header."""

HEARTBEAT: Final = 15.0
"""The number of seconds between messages to an idle client, so that a closed connection is noticed."""

SEND_TIMEOUT: Final = 60.0
"""The maximum number of seconds that a client may take to read an event."""

KEPT_REPORTS: Final = 8
"""The number of rendered reports that are kept until something in their runs' folders changes."""

KEPT_COMPARISONS: Final = 4
"""The same for comparisons."""

REPORT_LIMITER: Final = trio.CapacityLimiter(2)
"""Limits the number of reports that are rendered concurrently."""

COMPARISON_LIMITER: Final = trio.CapacityLimiter(1)
"""Limits comparisons to one at a time, since matplotlib draws one figure at a time."""


@final
class Pages:
    """The pages about the runs in a folder."""

    def __init__(self, runs: RunList, live_runs: LiveRuns, questions: QuestionPages | None = None) -> None:
        self._runs = runs
        self._questions = questions
        self._folders = FolderList(runs)
        self._live_runs = live_runs
        self._annotation = AnnotationPages(runs)
        self._reports: dict[str, tuple[object, bytes]] = {}
        self._comparisons: dict[object, ComparisonPage] = {}

    def app(self) -> Starlette:
        routes = [
            Route("/", self.index),
            Route("/runs/{name:path}/report", self.report),
            Route("/runs/{name:path}/live", self.live),
            Route("/runs/{name:path}/events", self.events),
            Route("/runs/{name:path}/result.json", self.result),
            Route("/runs/{name:path}/card.svg", self.card),
            Route("/runs/{name:path}/annotate", self._annotation.page),
            Route("/runs/{name:path}/annotate", self._annotation.save, methods=["POST"]),
            Route("/compare", self.comparison),
            Route("/compare.{suffix}", self.figures),
            Route("/side-by-side", self.side_by_side),
            Route("/assets/{name}", self.file),
            Route("/favicon.ico", _no_content),
        ]
        if self._questions is not None:
            routes += [
                Route("/questions", self._questions.review),
                Route("/questions", self._questions.decide, methods=["POST"]),
                Route("/runs/{name:path}/question", self._questions.failure),
                Route("/runs/{name:path}/question", self._questions.save, methods=["POST"]),
            ]
        return Starlette(routes=routes, exception_handlers={404: _not_found, MissingError: _not_found, LongspanError: _error})

    async def index(self, request: Request) -> Response:
        """Return the page with the runs that match the query, in the requested order."""
        query = request.query_params
        wanted = {name: query.get(name, "") for name in ("suite", "span", "agent", "text")}
        folder, order, each_seed = query.get("in", ""), query.get("sort", "changed"), bool(query.get("seeds"))
        entries = self._runs.entries(folder)
        manifests = [entry.manifest for entry in entries if entry.manifest is not None]
        choices = {
            "suite": sorted({manifest.suite.name for manifest in manifests}),
            "span": [str(span) for span in sorted({manifest.span for manifest in manifests})],
            "agent": sorted({manifest.agent for manifest in manifests}),
        }
        found = in_order(filter_runs(entries, **wanted), order)
        kept = {name: value for name, value in (wanted | {"in": folder, "seeds": "each" if each_seed else ""}).items() if value}
        return render_page(
            "list.html.j2",
            root=str(self._runs.root),
            folder=folder,
            folders=[] if any(wanted.values()) else self._folders.entries(folder),
            told=columns_in_names(found),
            choices=choices,
            wanted=wanted,
            order=order,
            orders=ORDERS,
            sorted_by=lambda name: f"?{urlencode(kept | {'sort': f'-{name}' if name == order else name})}",
            groups=None if each_seed else group_by_seed(found, order),
            entries=found,
            total=len(entries),
            trend=has_versions(entry.manifest for entry in entries if entry.manifest is not None and entry.max_score),
            scenarios={entry.name: list_chosen_scenarios(entry.manifest) for entry in found if entry.manifest is not None},
            options={entry.name: list_changed_options(entry.manifest) for entry in found if entry.manifest is not None},
            resume=self._resume,
            ago=_ago(),
            can_be_judged=can_be_judged,
            questions=self._questions is not None,
        )

    def _resume(self, name: str) -> str:
        """Return the command that continues a run."""
        return quote_command("longspan", "resume", self._runs.root / name)

    async def report(self, request: Request) -> Response:
        """Return a run's report, rendered from its journals and results, because its report.html is untrusted."""
        name = _name(request)
        state = self._runs.state(name)
        live = f"/runs/{quote(name)}/live" if is_locked(self._runs.root / name) else None
        if live is not None and not (self._runs.root / name / RESULT).is_file():
            return RedirectResponse(live, 303)
        if self._reports.get(name, (None,))[0] != state:
            graded = self._runs.load_graded(name)
            links = {"home": _list_of(name), "live": live, "run_path": quote_command(self._runs.root / name)}
            links["question_page"] = f"/runs/{quote(name)}/question" if self._questions is not None else None
            render = partial(_render_report, graded.folder, graded.result, links)
            self._reports[name] = state, await trio.to_thread.run_sync(render, limiter=REPORT_LIMITER)
            while len(self._reports) > KEPT_REPORTS:
                del self._reports[next(iter(self._reports))]
        rendered = self._reports[name][1]
        return HTMLResponse(rendered, headers={"Content-Security-Policy": POLICY + NO_FRAMES})

    async def result(self, request: Request) -> Response:
        """Return a run's results after they were read and checked."""
        graded = self._runs.load_graded(_name(request))
        return _download(graded.result.model_dump_json(), "json", graded.name)

    async def card(self, request: Request) -> Response:
        """Return a run's card."""
        graded = self._runs.load_graded(_name(request))
        return _download(await trio.to_thread.run_sync(_card, graded, limiter=COMPARISON_LIMITER), "svg", graded.name)

    async def live(self, request: Request) -> Response:
        """Return the page of a run while it is played. A script fills it from `events`."""
        name = _name(request)
        manifest = self._runs.run(name).manifest
        return render_page(
            "live.html.j2",
            name=name,
            short=name.rpartition("/")[2],
            home=_list_of(name),
            manifest=manifest,
            planned=_plan_panel(manifest),
            resume=self._resume(name),
        )

    async def events(self, request: Request) -> Response:
        """Return the events of a run as server-sent events."""
        name = _name(request)
        run = self._runs.run(name)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return EventStream(self._live_runs, name, run)

    async def comparison(self, request: Request) -> Response:
        """Return the page with the selected runs, or the runs of a folder, side by side."""
        found = await self._compare(request)
        return HTMLResponse(found.page, headers={"Content-Security-Policy": found.policy + NO_FRAMES})

    async def figures(self, request: Request) -> Response:
        """Return the figures of the same runs as CSV or JSON."""
        suffix = request.path_params["suffix"]
        if suffix not in ("csv", "json"):
            raise MissingError(f"{suffix:.80}: no such file")
        found = await self._compare(request)
        return _download(found.csv if suffix == "csv" else found.json, suffix, "comparison")

    async def _compare(self, request: Request) -> ComparisonPage:
        """Return the comparison for a request, computed again if one of its runs has changed.

        Runs of a folder that play different tests are compared in groups; a request selects a group by its number.
        """
        query = request.query_params
        folder, group = query.get("in"), query.get("group", "1")
        if folder is not None:
            place = self._runs.folder(folder)
            names = [entry.name for entry in self._runs.entries(folder) if entry.max_score or entry.state == "interrupted"]
        else:
            place, names = None, [*dict.fromkeys(map(unquote, query.getlist("run")))]
        if not names:
            raise InputError("no runs selected; go back and select the runs to compare")
        paths = [self._runs.run(name).path for name in names]
        number = int(group) if group.isascii() and group.isdigit() and len(group) < 5 else 1
        key = (folder, number, tuple((name, self._runs.state(name)) for name in names), _status_of(place))
        if key not in self._comparisons:
            make = partial(_comparison, paths, self._runs.root, place, number)
            self._comparisons[key] = await trio.to_thread.run_sync(make, limiter=COMPARISON_LIMITER)
            while len(self._comparisons) > KEPT_COMPARISONS:
                del self._comparisons[next(iter(self._comparisons))]
        return self._comparisons[key]

    async def side_by_side(self, request: Request) -> Response:
        """Return the page with a test of two runs side by side."""
        names = [*map(unquote, request.query_params.getlist("run"))]
        if len(names) != 2:
            raise InputError("side by side needs two runs; go back and choose two")
        one, other = map(self._runs.load_graded, names)
        found = await trio.to_thread.run_sync(_side_by_side, one, other, request.query_params.get("test", ""), limiter=REPORT_LIMITER)
        choices = [
            (entry.name, entry.manifest.labelled)
            for folder in dict.fromkeys(name.rpartition("/")[0] for name in names)
            for entry in sorted(self._runs.entries(folder), key=lambda entry: natural_sort_key(entry.name))
            if entry.manifest is not None and entry.max_score and _same_tests(entry.manifest, one.manifest)
        ]
        results = [side.test.result for side in found.sides]
        lanes = [_link_side(side, name) for side, name in zip(found.sides, names, strict=True) if side.lane is not None]
        tokens = max([lane["tokens"] for lane in lanes], default=1)
        return render_page(
            "side_by_side.html.j2",
            id=results[0].id,
            sides=found.sides,
            names=names,
            home=_list_of(names[0]),
            exchanges=found.exchanges,
            stories=[Story.of(side.test).sentence for side in found.sides],
            panel={"conversation": results[0].conversation or "", "tokens": tokens, "lanes": lanes},
            grades=[grade_of(result.score, result.chance) for result in results],
            tests=[test.id for test in one.result.tests],
            choices=choices,
            called=short_names([*(run.manifest.labelled for run in (one, other)), *(agent for _, agent in choices)]).names,
        )

    async def file(self, request: Request) -> Response:
        """Return one of the static files."""
        name = request.path_params["name"]
        if name not in FILES:
            raise MissingError(f"{name:.80}: no such file")
        path, type = FILES[name]
        return Response(path.read_bytes(), media_type=type)


@final
class EventStream(Response):
    """Server-sent events of a run, until the client disconnects or does not read in time."""

    def __init__(self, live_runs: LiveRuns, name: str, run: RunFolder) -> None:
        super().__init__(media_type="text/event-stream")
        self._live_runs = live_runs
        self._run = run
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(key, value) for key, value in self.raw_headers if key != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        with self._live_runs.follow(self._name, self._run) as live_run:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._wait_for_disconnect, receive, nursery.cancel_scope)
                await self._send_events(live_run, send)
                nursery.cancel_scope.cancel()

    async def _wait_for_disconnect(self, receive: Receive, scope: trio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _send_events(self, run: LiveRun, send: Send) -> None:
        tests, turns, status = 0, 0, ""
        while True:
            events = [*run.tests[tests:], *run.turns(turns)]
            tests, turns = len(run.tests), run.turn_count
            if run.status != status:
                status = run.status
                events.append(LiveEvent("status", status))
            if run.damage is not None:
                events.append(run.damage)
            if not await _send_chunk(send, "".join(f"event: {kind}\ndata: {data}\n\n" for kind, data in events) or ": heartbeat\n\n"):
                return
            if (tests, turns, status) == (len(run.tests), run.turn_count, run.status):
                with trio.move_on_after(HEARTBEAT):
                    await run.changes()


async def _send_chunk(send: Send, text: str) -> bool:
    """Send a part of a response. Return whether the client took it in time."""
    with trio.move_on_after(SEND_TIMEOUT) as timeout:
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
    return not timeout.cancelled_caught


def _name(request: Request) -> str:
    name: str = request.path_params["name"]
    return name


@contextmanager
def _guard_untrusted(problem: str) -> Iterator[None]:
    """Turn any error that untrusted files can cause into an InputError that begins with `problem`."""
    try:
        yield
    except LongspanError:
        raise
    except Exception as error:
        raise InputError(f"{problem}: {one_line(error)}") from error


def _render_report(run: RunFolder, result: Any, links: Mapping[str, Any]) -> bytes:
    """Render a report with links to other pages. Raises InputError if that fails, since the files are untrusted."""
    with _guard_untrusted(f"{run.path.name}: cannot make a report from its files"):
        return "".join(report_of(run, result, **links)).encode()


def _list_of(name: str) -> str:
    """Return the address of the list that contains a run."""
    folder = name.rpartition("/")[0]
    return f"/?{urlencode({'in': folder})}" if folder else "/"


def _card(run: GradedRun) -> bytes:
    """Draw a run's card. The import is inside because it is slow. Raises InputError if drawing fails, since the files are untrusted."""
    from longspan.simulator.pages.report.card import draw_card

    with _guard_untrusted(f"{run.name}: cannot draw a card from its files"):
        return draw_card(run, "svg")


def _download(content: str | bytes, suffix: str, name: str) -> Response:
    """Return a file to download, named after a run."""
    type = {"csv": "text/csv", "json": "application/json", "svg": "image/svg+xml"}[suffix]
    headers = {"Content-Disposition": f'attachment; filename="{re.sub(r"[^A-Za-z0-9._-]", "-", name)[:100]}.{suffix}"'}
    return Response(content, media_type=type, headers=headers)


def _status_of(folder: Path | None) -> object:
    """Return a value that changes if the contrasts stated in a folder change."""
    if folder is None:
        return None
    try:
        status = (folder / NAME).lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _comparison(paths: Sequence[Path], root: Path, folder: Path | None, number: int) -> ComparisonPage:
    """Compare runs. Raises InputError if they cannot be compared, since the files are untrusted."""
    with _guard_untrusted("these runs cannot be compared"):
        return compare_folder(paths, root, folder, number)


def _side_by_side(one: GradedRun, other: GradedRun, test: str) -> SideBySide:
    """Return a test side by side. Raises InputError if it cannot be shown, since the files are untrusted."""
    with _guard_untrusted(f"{one.name} and {other.name}: cannot be shown side by side"):
        return side_by_side(one, other, test)


def _link_side(side: Side, name: str) -> dict[str, Any]:
    """Return the lane of a side as JSON, with the agent's name and the address of the lane in its report."""
    lane = side.lane.data() if side.lane is not None else {}
    address = f"/runs/{quote(name)}/report#lane-{element_id(side.test.result.id)}"
    return lane | {"id": escape_invisible(side.run.manifest.labelled), "address": address}


def _plan_panel(manifest: Manifest) -> dict[str, Any]:
    """Return the panel of a timeline as JSON for the page's script, with a lane for each planned test."""
    (conversation, *others) = manifest.conversations or [None]
    tokens = max(1, manifest.span)
    lanes = [
        {
            "id": escape_invisible(plan.id),
            "group": escape_invisible(plan.tags[0] if plan.tags else plan.scenario),
            "grade": "waiting",
            "tokens": tokens,
        }
        for _, plan in manifest.graded
    ]
    return {"conversation": None if others else conversation, "tokens": 0 if others else tokens, "lanes": lanes}


def _same_tests(one: Manifest, other: Manifest) -> bool:
    """Return whether two runs play the same tests of the same conversations."""

    def key(manifest: Manifest) -> tuple[object, ...]:
        made_by = manifest.versions.get("longspan")
        data = tuple(sorted(manifest.data.items()))
        return manifest.suite.name, manifest.span, manifest.isolated, manifest.seed, manifest.definitions_sha256, data, made_by

    return key(one) == key(other)


def _ago() -> Callable[[float], str]:
    """Return a function that describes when something changed, given in seconds since 1970; 0 is unknown."""
    now = time()

    def ago(changed: float) -> str:
        minutes = max(0, int((now - changed) / 60))
        if not changed:
            return ""
        if minutes < 1:
            return "just now"
        return f"{minutes} min ago" if minutes < 60 else f"{datetime.fromtimestamp(changed):%Y-%m-%d %H:%M}"

    return ago


async def _no_content(request: Request) -> Response:
    return Response(status_code=204)


async def _not_found(request: Request, error: Exception) -> Response:
    return render_page("message.html.j2", 404, title="Page not found", message="This run or page does not exist.")


async def _error(request: Request, error: Exception) -> Response:
    return render_page("message.html.j2", 422, title="Cannot show this page", message=str(error))
