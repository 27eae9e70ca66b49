"""longspan publish and verify: scores without the tests, and the proof afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longspan.simulator.cli.runs import RunArgument, TrustOption, open_run

__all__ = ["publish", "verify"]


def publish(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="The file to write; by default named after the commitment.", metavar="FILE")] = None,
    trust: TrustOption = False,
) -> int:
    """Write a run's scores without its seed, its texts and its nonce.

    They hold a commitment to the tests: `longspan verify` proves later, from the run, that these were played.
    """
    from longspan.simulator.analysis.commitment import publish as write

    folder = open_run(run, trust, [], agents=False)
    path = out or Path(f"published-{folder.manifest.commitment[:12]}.json")
    published = write(folder, path)
    typer.echo(f"{path}: score {published.score} of {published.max_score}, commitment {published.commitment}")
    return 0


def verify(
    published: Annotated[Path, typer.Argument(help="What `longspan publish` wrote.", metavar="PUBLISHED")],
    run: RunArgument,
    trust: TrustOption = False,
) -> int:
    """Open a commitment: are the published scores those of this run, and of the tests it was committed to?"""
    from longspan.simulator.analysis.commitment import read_published
    from longspan.simulator.analysis.commitment import verify as check

    holds = True
    for each in check(read_published(published), open_run(run, trust, [], agents=False)):
        typer.echo(f"{'ok ' if each.holds else 'NO '} {each.name:12}{each.found}")
        holds = holds and each.holds
    return 0 if holds else 1
