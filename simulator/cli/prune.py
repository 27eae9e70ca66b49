"""longspan prune: delete files that no result needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longspan.simulator.base.terminal import complain, say

__all__ = ["prune"]


def prune(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or a folder of runs.", metavar="DIR")] = Path("runs"),
    replicates: Annotated[
        bool,
        typer.Option("--replicates", help="Also delete runs superseded by a newer one with the same tests, agent, label and settings."),
    ] = False,
    pack: Annotated[bool, typer.Option("--pack", help="Also compress the journals of finished runs. All commands can read them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete and compress the files listed.")] = False,
) -> int:
    """Show which files no result needs. With --yes, delete them.

    These are agents' snapshots in finished runs and, with --replicates, superseded runs. --pack compresses journals. Without --yes, nothing
    is changed.
    """
    from longspan.simulator.base.errors import LongspanError
    from longspan.simulator.running.preflight.pruning import find_prunable

    found, left = find_prunable(folder, replicates=replicates, packing=pack)
    for why in left:
        complain(why)
    freed = failed = 0
    for each in found:
        try:
            size = each.prune() if yes else each.size
        except (LongspanError, OSError) as error:
            complain(f"longspan: {each.run.path}: {error}")
            failed += 1
            continue
        say(f"{each.run.path}: {each.what}, {_size(size)}{' freed' if yes else ''}")
        freed += size
    if not found:
        say(f"{folder}: nothing to delete")
    elif yes:
        say(f"{_size(freed)} freed")
    else:
        say(f"{_size(freed)} in all; --yes deletes {'or packs ' * pack}it")
    return 1 if failed else 0


def _size(count: int) -> str:
    """Format a number of bytes."""
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:
        size, units = size / 1000, units[1:]
    return f"{count:,} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"
