"""longspan view: show runs in the browser."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from longspan.simulator.base.integers import integer_parser
from longspan.simulator.base.terminal import say

__all__ = ["view"]


def view(
    folder: Annotated[Path, typer.Argument(help="The folder of runs.", metavar="DIR")] = Path("runs"),
    host: Annotated[str, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port to listen on; 0 picks a free one.", parser=integer_parser(0, 65535), metavar="N")
    ] = 8642,
    questions: Annotated[
        Path | None,
        typer.Option(help="A file of questions to review, and to add turns of recorded logs to.", metavar="FILE"),
    ] = None,
    from_: Annotated[
        Path | None, typer.Option("--from", help="With --questions: the log. Default: the one that they were written about.", metavar="LOG")
    ] = None,
) -> None:
    """Show runs in the browser.

    Lists runs, opens reports, compares runs, and follows runs while they are played. Prints the address. Ctrl-C stops it.
    """
    import trio

    from longspan.simulator.base.errors import InputError
    from longspan.simulator.base.own_installation import install_extra

    if from_ is not None and questions is None:
        raise InputError("--from is for a file of questions: name it with --questions")
    try:
        from longspan.simulator.pages.view import serve_runs
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in ("starlette", "hypercorn"):
            raise InputError(f"longspan view needs an extra: {install_extra('view')}") from error
        raise

    async def until_stopped() -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as stopped:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: serve_runs(folder, host, port, ready=say, questions=questions, log=from_))
                async for _ in stopped:
                    break
                nursery.cancel_scope.cancel()

    trio.run(until_stopped)
