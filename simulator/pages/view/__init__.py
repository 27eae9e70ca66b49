"""`longspan view`: a local web server that lists runs, shows reports and comparisons, and follows runs while they are played."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from secrets import token_urlsafe

import trio

from longspan.simulator.base.errors import InputError
from longspan.simulator.pages.view.connections import Connections
from longspan.simulator.pages.view.following import LiveRuns
from longspan.simulator.pages.view.guard import AccessGuard
from longspan.simulator.pages.view.pages import Pages
from longspan.simulator.pages.view.question_pages import QuestionPages
from longspan.simulator.pages.view.run_list import RunList

__all__ = ["serve_runs"]


async def serve_runs(
    folder: Path, host: str, port: int, *, ready: Callable[[str], None], questions: Path | None = None, log: Path | None = None
) -> None:
    """Serve the runs in `folder` until cancelled. `ready` is called with the URL, including the token.

    `questions`: the file of questions that pages review and add to, about `log` (see `open_review`). Raises InputError if its folder or
    `folder` does not exist, if `folder` is itself a run, and if the server cannot listen on the address.
    """
    runs = RunList(folder)
    if questions is not None and not questions.parent.is_dir():
        raise InputError(f"--questions {questions}: there is no folder {questions.parent}; create it first")
    with _listen(host, port) as listener:
        address, port = listener.getsockname()[:2]
        local = ip_address(address).is_loopback
        token = token_urlsafe(32)
        names = {"localhost"} if local else {"localhost", host.lower(), socket.gethostname().lower()}
        async with trio.open_nursery() as nursery:
            question_pages = None if questions is None else QuestionPages(runs, questions, log)
            app = Pages(runs, LiveRuns(nursery), question_pages).app()
            guard = AccessGuard(app, names=frozenset(names), local=local, token=token)
            await nursery.start(Connections(guard, listener).serve)
            ready(f"http://{_url_host(address)}:{port}/?token={token}")


def _url_host(address: str) -> str:
    """Return the address as a URL's host, or this machine's name if the server listens on all addresses."""
    if ip_address(address).is_unspecified:
        return socket.gethostname()
    return f"[{address}]" if ":" in address else address


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to `host` and `port`; port 0 picks a free one. Raises InputError if that fails."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a valid name"
        raise InputError(f"--host {host:.80}: {why}; give an address of this machine, or omit it") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise InputError(f"--host {host} --port {port}: cannot listen: {error.strerror}; --port 0 picks a free port") from error
    return listener
