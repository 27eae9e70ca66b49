"""`longspan view`: a local web page that lists runs, opens reports and comparisons, and follows runs while they are played."""

from __future__ import annotations

import socket
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from secrets import token_urlsafe

import trio
from hypercorn.config import Config
from hypercorn.trio import serve

from longspan.simulator.errors import InputError
from longspan.simulator.view.following import Followers
from longspan.simulator.view.guard import Guard
from longspan.simulator.view.pages import Pages
from longspan.simulator.view.run_list import Shelf

__all__ = ["view"]


async def view(folder: Path, host: str, port: int, *, ready: Callable[[str], None]) -> None:
    """Serve the runs in `folder` until cancelled; `ready` is told the address, with the token where one is needed.

    Raises InputError for a folder that holds no runs of its own, and for an address that cannot be listened at.
    """
    shelf = Shelf(folder)
    with _listen(host, port) as listening:
        address, port = listening.getsockname()[:2]
        local = ip_address(address).is_loopback
        token = None if local else token_urlsafe(32)
        names = {"localhost"} if local else {"localhost", host.lower(), socket.gethostname().lower()}
        async with trio.open_nursery() as nursery:
            app = Pages(shelf, Followers(nursery)).app()
            await nursery.start(serve, Guard(app, names=frozenset(names), local=local, token=token), _config(listening))
            ready(f"http://{_shown(address)}:{port}/{f'?token={token}' if token else ''}")


def _config(listening: socket.socket) -> Config:
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.accesslog = None
    config.loglevel = "WARNING"
    config.include_server_header = False
    return config


def _shown(address: str) -> str:
    """The address as it stands in a URL; this machine's name where it listens at all of its addresses."""
    if ip_address(address).is_unspecified:
        return socket.gethostname()
    return f"[{address}]" if ":" in address else address


def _listen(host: str, port: int) -> socket.socket:
    """A socket bound to `host` and `port`; 0 picks a free one. Raises InputError where that cannot be."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a name"
        raise InputError(f"--host {host:.80}: {why}; give an address of this machine, or leave it out") from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
    except OSError as error:
        found.close()
        raise InputError(f"--host {host} --port {port}: cannot be listened at: {error.strerror}; --port 0 picks a free port") from error
    return found
