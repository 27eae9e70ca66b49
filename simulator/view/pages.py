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

from longspan.simulator.analysis.changes import changed_options, chosen_scenarios
from longspan.simulator.analysis.matrix import natural
from longspan.simulator.analysis.statements import NAME
from longspan.simulator.archive.run_folder import RESULT, RunFolder
from longspan.simulator.base.errors import InputError, LongspanError, one_line
from longspan.simulator.base.terminal import typed, visible
from longspan.simulator.files.locks import is_locked
from longspan.simulator.report import POLICY, report_of
from longspan.simulator.report.page import ASSETS, anchor
from longspan.simulator.report.side_by_side import Side, SideBySide, side_by_side
from longspan.simulator.report.story import Story
from longspan.simulator.report.timeline import grade_of
from longspan.simulator.results.graded_runs import Graded
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.view.annotating import AnnotationPages, can_be_judged
from longspan.simulator.view.arranging import ORDERS, arranged, in_order, told_by_names
from longspan.simulator.view.comparing import Compared, compared
from longspan.simulator.view.folder_list import FolderList
from longspan.simulator.view.following import LiveEvent, LiveRun, LiveRuns
from longspan.simulator.view.rendering import page
from longspan.simulator.view.run_list import MissingError, RunList, matching

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
    "copy.js": (VIEW_ASSETS / "copy.js", "text/javascript"),
    "beside.js": (VIEW_ASSETS / "beside.js", "text/javascript"),
    "live.js": (VIEW_ASSETS / "live.js", "text/javascript"),
}
"""All static files, with their media types."""

NO_FRAMES: Final = "; frame-ancestors 'none'"
"""Added to a page's own policy: this directive works only in a header."""

HEARTBEAT: Final = 15.0
"""The number of seconds between messages to an idle client, so that a closed connection is noticed."""

SEND_TIMEOUT: Final = 60.0
"""How many seconds a client may take to read an event."""

KEPT_REPORTS: Final = 8
"""The number of rendered reports that are kept, until something in their runs' folders changes."""

KEPT_COMPARISONS: Final = 4
"""The same of comparisons."""

REPORT_LIMITER: Final = trio.CapacityLimiter(2)
"""Limits how many reports are rendered at once."""

COMPARISON_LIMITER: Final = trio.CapacityLimiter(1)
"""Limits comparisons to one at a time, since matplotlib draws one figure at a time."""


@final
class Pages:
    """The pages about the runs in a folder."""

    def __init__(self, runs: RunList, live_runs: LiveRuns) -> None:
        self._runs = runs
        self._folders = FolderList(runs)
        self._live_runs = live_runs
        self._annotation = AnnotationPages(runs)
        self._reports: dict[str, tuple[object, bytes]] = {}
        self._comparisons: dict[object, Compared] = {}

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
        return Starlette(routes=routes, exception_handlers={404: _not_found, MissingError: _not_found, LongspanError: _error})

    async def index(self, request: Request) -> Response:
        """Return the page with the runs that match the query, in its order."""
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
        found = in_order(matching(entries, **wanted), order)
        kept = {name: value for name, value in (wanted | {"in": folder, "seeds": "each" if each_seed else ""}).items() if value}
        return page(
            "list.html.j2",
            root=str(self._runs.root),
            folder=folder,
            folders=[] if any(wanted.values()) else self._folders.entries(folder),
            told=told_by_names(found),
            choices=choices,
            wanted=wanted,
            order=order,
            orders=ORDERS,
            sorted_by=lambda name: f"?{urlencode(kept | {'sort': f'-{name}' if name == order else name})}",
            groups=None if each_seed else arranged(found, order),
            entries=found,
            total=len(entries),
            scenarios={entry.name: chosen_scenarios(entry.manifest) for entry in found if entry.manifest is not None},
            options={entry.name: changed_options(entry.manifest) for entry in found if entry.manifest is not None},
            resume=self._resume,
            ago=_ago(),
            can_be_judged=can_be_judged,
        )

    def _resume(self, name: str) -> str:
        """Return the command that continues a run."""
        return typed("longspan", "resume", self._runs.root / name)

    async def report(self, request: Request) -> Response:
        """Return a run's report, rendered from its journals and results, because its report.html is untrusted."""
        name = _name(request)
        state = self._runs.state(name)
        live = f"/runs/{quote(name)}/live" if is_locked(self._runs.root / name) else None
        if live is not None and not (self._runs.root / name / RESULT).is_file():
            return RedirectResponse(live, 303)
        if self._reports.get(name, (None,))[0] != state:
            graded = self._runs.graded(name)
            links = {"home": _list_of(name), "live": live, "run_path": typed(self._runs.root / name)}
            render = partial(_render_report, graded.folder, graded.result, links)
            self._reports[name] = state, await trio.to_thread.run_sync(render, limiter=REPORT_LIMITER)
            while len(self._reports) > KEPT_REPORTS:
                del self._reports[next(iter(self._reports))]
        rendered = self._reports[name][1]
        return HTMLResponse(rendered, headers={"Content-Security-Policy": POLICY + NO_FRAMES})

    async def result(self, request: Request) -> Response:
        """Return a run's results, as they were read and checked."""
        graded = self._runs.graded(_name(request))
        return _download(graded.result.model_dump_json(), "json", graded.name)

    async def card(self, request: Request) -> Response:
        """Return a run's card."""
        graded = self._runs.graded(_name(request))
        return _download(await trio.to_thread.run_sync(_card, graded, limiter=COMPARISON_LIMITER), "svg", graded.name)

    async def live(self, request: Request) -> Response:
        """Return the page of a run while it is played. A script fills it from `events`."""
        name = _name(request)
        manifest = self._runs.run(name).manifest
        return page(
            "live.html.j2",
            name=name,
            short=name.rpartition("/")[2],
            home=_list_of(name),
            manifest=manifest,
            planned=_planned(manifest),
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
        """Return the page with the selected runs, or those of a folder, side by side."""
        found = await self._compared(request)
        return HTMLResponse(found.page, headers={"Content-Security-Policy": found.policy + NO_FRAMES})

    async def figures(self, request: Request) -> Response:
        """Return the figures of the same runs as CSV or JSON."""
        suffix = request.path_params["suffix"]
        if suffix not in ("csv", "json"):
            raise MissingError(f"{suffix:.80}: no such file")
        found = await self._compared(request)
        return _download(found.csv if suffix == "csv" else found.json, suffix, "comparison")

    async def _compared(self, request: Request) -> Compared:
        """Return the comparison that a request asks for, made again if one of its runs has changed. Runs of a folder that play different
        tests are compared in groups, of which a request asks for one by its number."""
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
            raise InputError("a test is shown side by side for two runs; go back and choose two")
        one, other = map(self._runs.graded, names)
        found = await trio.to_thread.run_sync(_side_by_side, one, other, request.query_params.get("test", ""), limiter=REPORT_LIMITER)
        choices = [
            (entry.name, entry.manifest.labelled)
            for folder in dict.fromkeys(name.rpartition("/")[0] for name in names)
            for entry in sorted(self._runs.entries(folder), key=lambda entry: natural(entry.name))
            if entry.manifest is not None and entry.max_score and _same_tests(entry.manifest, one.manifest)
        ]
        results = [side.test.result for side in found.sides]
        lanes = [_linked(side, name) for side, name in zip(found.sides, names, strict=True) if side.lane is not None]
        tokens = max([lane["tokens"] for lane in lanes], default=1)
        return page(
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
        with self._live_runs.following(self._name, self._run) as live_run:
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
def _untrusted(problem: str) -> Iterator[None]:
    """Turn any error that files from anybody can cause into an InputError that begins with the problem."""
    try:
        yield
    except LongspanError:
        raise
    except Exception as error:
        raise InputError(f"{problem}: {one_line(error)}") from error


def _render_report(run: RunFolder, result: Any, links: Mapping[str, Any]) -> bytes:
    """Render a report with links to other pages. Raises InputError if that fails: the files are untrusted."""
    with _untrusted(f"{run.path.name}: cannot make a report from its files"):
        return "".join(report_of(run, result, **links)).encode()


def _list_of(name: str) -> str:
    """Return the address of the list that a run is in."""
    folder = name.rpartition("/")[0]
    return f"/?{urlencode({'in': folder})}" if folder else "/"


def _card(run: Graded) -> bytes:
    """Draw a run's card. The import is slow, so it is here. Raises InputError if that fails: the files are untrusted."""
    from longspan.simulator.report.card import draw_card

    with _untrusted(f"{run.name}: cannot draw a card from its files"):
        return draw_card(run, "svg")


def _download(content: str | bytes, suffix: str, name: str) -> Response:
    """Return a file to keep, whose name is that of a run."""
    type = {"csv": "text/csv", "json": "application/json", "svg": "image/svg+xml"}[suffix]
    headers = {"Content-Disposition": f'attachment; filename="{re.sub(r"[^A-Za-z0-9._-]", "-", name)[:100]}.{suffix}"'}
    return Response(content, media_type=type, headers=headers)


def _status_of(folder: Path | None) -> object:
    """Return what tells whether the contrasts that are stated in a folder have changed."""
    if folder is None:
        return None
    try:
        status = (folder / NAME).lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _comparison(paths: Sequence[Path], root: Path, folder: Path | None, number: int) -> Compared:
    """Compare runs. Raises InputError if they cannot be compared: the files are untrusted."""
    with _untrusted("these runs cannot be compared"):
        return compared(paths, root, folder, number)


def _side_by_side(one: Graded, other: Graded, test: str) -> SideBySide:
    """Return a test side by side. Raises InputError if it cannot be shown: the files are untrusted."""
    with _untrusted(f"{one.name} and {other.name}: cannot be shown side by side"):
        return side_by_side(one, other, test)


def _linked(side: Side, name: str) -> dict[str, Any]:
    """Return the lane of a side as JSON, with the agent's name and the address of the lane in its report."""
    lane = side.lane.data() if side.lane is not None else {}
    address = f"/runs/{quote(name)}/report#lane-{anchor(side.test.result.id)}"
    return lane | {"id": visible(side.run.manifest.labelled), "address": address}


def _planned(manifest: Manifest) -> dict[str, Any]:
    """Return the panel of a timeline, as JSON for the page's script, with a lane for each test that a run plans."""
    (conversation, *others) = manifest.conversations or [None]
    tokens = max(1, manifest.span)
    lanes = [
        {"id": visible(plan.id), "group": visible(plan.tags[0] if plan.tags else plan.scenario), "grade": "waiting", "tokens": tokens}
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
    """Return a function that says when something changed, given in seconds since 1970; 0 is unknown."""
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
    return page("message.html.j2", 404, title="Page not found", message="There is no such run or page.")


async def _error(request: Request, error: Exception) -> Response:
    return page("message.html.j2", 422, title="Cannot show this page", message=str(error))
