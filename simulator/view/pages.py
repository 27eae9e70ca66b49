"""The pages of `longspan view`: the list of runs, a run's report, a run while it is played, and runs compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import time
from typing import Any, Final, final
from urllib.parse import unquote

import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from longspan.simulator.errors import InputError, LongspanError, one_line
from longspan.simulator.report import POLICY, report_of
from longspan.simulator.report.page import ASSETS
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.view.annotating import Annotating, can_be_judged
from longspan.simulator.view.following import Followed, Followers, News
from longspan.simulator.view.rendering import page
from longspan.simulator.view.run_list import Entry, MissingError, Shelf, fitting

__all__ = ["Pages"]

OWN: Final = Path(__file__).parent / "assets"

FILES: Final = {
    "base.css": (ASSETS / "base.css", "text/css"),
    "turns.js": (ASSETS / "turns.js", "text/javascript"),
    "view.css": (OWN / "view.css", "text/css"),
    "list.js": (OWN / "list.js", "text/javascript"),
    "live.js": (OWN / "live.js", "text/javascript"),
}
"""All files that are served as they are."""

FRAMED: Final = "; frame-ancestors 'none'"
"""What a page's own policy cannot say, and a header can."""

HEARTBEAT: Final = 15.0
"""Seconds after which a client is sent something, so that one that has gone is noticed."""

PATIENCE: Final = 60.0
"""Seconds that a client may take to read what it was sent."""

RENDERING: Final = trio.CapacityLimiter(2)
"""How many reports are made at once."""

DRAWING: Final = trio.CapacityLimiter(1)
"""The same for comparisons: matplotlib draws one figure at a time."""


@final
class Pages:
    """The pages about the runs on a shelf."""

    def __init__(self, shelf: Shelf, followers: Followers) -> None:
        self._shelf = shelf
        self._followers = followers
        self._annotating = Annotating(shelf)

    def app(self) -> Starlette:
        routes = [
            Route("/", self.listed),
            Route("/runs/{name}/report", self.report),
            Route("/runs/{name}/live", self.live),
            Route("/runs/{name}/events", self.events),
            Route("/runs/{name}/annotate", self._annotating.page),
            Route("/runs/{name}/annotate", self._annotating.save, methods=["POST"]),
            Route("/compare", self.compared),
            Route("/assets/{name}", self.file),
            Route("/favicon.ico", _nothing),
        ]
        return Starlette(routes=routes, exception_handlers={404: _lost, MissingError: _lost, LongspanError: _damaged})

    async def listed(self, request: Request) -> Response:
        """The runs, filtered by what the query asks for."""
        wanted = {name: request.query_params.get(name, "") for name in ("suite", "span", "agent", "text")}
        entries = self._shelf.entries()
        manifests = [entry.manifest for entry in entries if entry.manifest is not None]
        choices = {
            "suite": sorted({manifest.suite.name for manifest in manifests}),
            "span": [str(span) for span in sorted({manifest.span for manifest in manifests})],
            "agent": sorted({manifest.agent for manifest in manifests}),
        }
        shown: dict[str, Any] = {"entries": fitting(entries, **wanted), "total": len(entries), "ago": _ago(), "judged": can_be_judged}
        return page("list.html.j2", root=str(self._shelf.root), choices=choices, wanted=wanted, **shown)

    async def report(self, request: Request) -> Response:
        """A run's report, made afresh of its journals and results: what may lie there as report.html is anybody's."""
        graded = self._shelf.graded(_name(request))
        made = partial(_rendered, graded.folder, graded.result)
        rendered = await trio.to_thread.run_sync(made, limiter=RENDERING)
        return HTMLResponse(rendered, headers={"Content-Security-Policy": POLICY + FRAMED})

    async def live(self, request: Request) -> Response:
        """A run while it is played; a script fills the page with what `events` tells."""
        name = _name(request)
        return page("live.html.j2", name=name, manifest=self._shelf.run(name).manifest)

    async def events(self, request: Request) -> Response:
        """What happens in a run, as server-sent events."""
        name = _name(request)
        run = self._shelf.run(name)
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return _Events(self._followers, name, run)

    async def compared(self, request: Request) -> Response:
        """The chosen runs side by side."""
        names = dict.fromkeys(map(unquote, request.query_params.getlist("run")))
        if not names:
            raise InputError("no run was chosen; go back and tick those to compare")
        paths = [self._shelf.run(name).path for name in names]
        rendered, policy = await trio.to_thread.run_sync(_compared, paths, limiter=DRAWING)
        return HTMLResponse(rendered, headers={"Content-Security-Policy": policy + FRAMED})

    async def file(self, request: Request) -> Response:
        """One of our own scripts or styles."""
        name = request.path_params["name"]
        if name not in FILES:
            raise MissingError(f"{name:.80}: there is no such file")
        path, type = FILES[name]
        return Response(path.read_bytes(), media_type=type)


@final
class _Events(Response):
    """Server-sent events about a run, until the client goes. One that does not read in time is let go."""

    def __init__(self, followers: Followers, name: str, run: RunFolder) -> None:
        super().__init__(media_type="text/event-stream")
        self._followers = followers
        self._run = run
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(key, value) for key, value in self.raw_headers if key != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        with self._followers.following(self._name, self._run) as followed:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._until_gone, receive, nursery.cancel_scope)
                await self._tell(followed, send)
                nursery.cancel_scope.cancel()

    async def _until_gone(self, receive: Receive, scope: trio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _tell(self, followed: Followed, send: Send) -> None:
        tests, turns, standing = 0, 0, ""
        while True:
            news = [*followed.tests[tests:], *followed.turns(turns)]
            tests, turns = len(followed.tests), followed.count
            if followed.status != standing:
                standing = followed.status
                news.append(News("standing", standing))
            if followed.damage is not None:
                news.append(followed.damage)
            if not await _sent(send, "".join(f"event: {kind}\ndata: {data}\n\n" for kind, data in news) or ": still here\n\n"):
                return
            if (tests, turns, standing) == (len(followed.tests), followed.count, followed.status):
                with trio.move_on_after(HEARTBEAT):
                    await followed.changes()


async def _sent(send: Send, text: str) -> bool:
    """Send a part of a response. Returns whether it was taken in time."""
    with trio.move_on_after(PATIENCE) as patience:
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
    return not patience.cancelled_caught


def _name(request: Request) -> str:
    name: str = request.path_params["name"]
    return name


def _rendered(run: RunFolder, result: Any) -> bytes:
    """A report. Raises InputError for files that make none: they may be anybody's."""
    try:
        return "".join(report_of(run, result)).encode()
    except LongspanError:
        raise
    except Exception as error:
        raise InputError(f"{run.path.name}: no report can be made of its files: {one_line(error)}") from error


def _compared(paths: list[Path]) -> tuple[str, str]:
    """A comparison and its policy. What draws it is imported here: it takes a while."""
    from longspan.simulator.analysis.comparing import load_comparison
    from longspan.simulator.report.comparison import POLICY, as_html

    return as_html(load_comparison(paths)), POLICY


def _ago() -> Callable[[Entry], str]:
    """Tells how long ago an entry changed."""
    now = time()

    def ago(entry: Entry) -> str:
        minutes = max(0, int((now - entry.changed) / 60))
        if not entry.changed:
            return ""
        if minutes < 1:
            return "just now"
        if minutes < 120:
            return f"{minutes} min ago"
        return f"{minutes // 60} h ago" if minutes < 48 * 60 else f"{minutes // 1440:,} days ago"

    return ago


async def _nothing(request: Request) -> Response:
    return Response(status_code=204)


async def _lost(request: Request, error: Exception) -> Response:
    return page("message.html.j2", 404, title="There is no such page", message="There is no such run or page here.")


async def _damaged(request: Request, error: Exception) -> Response:
    return page("message.html.j2", 422, title="This cannot be shown", message=str(error))
