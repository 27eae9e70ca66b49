"""longspan publish and verify: publish scores without the tests, and prove later that they belong to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longspan.simulator.base.terminal import say
from longspan.simulator.cli.runs import RunArgument, TrustOption, open_run

__all__ = ["publish", "verify"]


def publish(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="The file to write.", metavar="FILE", show_default="published-COMMITMENT.json")] = None,
    trust: TrustOption = False,
) -> int:
    """Publish a run's scores with a commitment to its tests.

    The file has no seed, texts or nonce. With the run, `longspan verify` can prove later that these tests were played.
    """
    from longspan.simulator.gradebook.commitment import publish as write

    folder = open_run(run, trust)
    path = out or Path(f"published-{folder.manifest.commitment[:12]}.json")
    published = write(folder, path)
    say(f"{path}: {published.measured} {published.score} of {published.max_score}, commitment {published.commitment}")
    return 0


def verify(
    published: Annotated[Path, typer.Argument(help="The file that `longspan publish` wrote.", metavar="PUBLISHED")],
    run: RunArgument,
    trust: TrustOption = False,
) -> int:
    """Verify published scores against their run and its tests."""
    from longspan.simulator.gradebook.commitment import read_published
    from longspan.simulator.gradebook.commitment import verify as check

    valid = True
    for finding in check(read_published(published), open_run(run, trust)):
        say(f"{'ok ' if finding.holds else 'NO '} {finding.name:12}{finding.found}")
        valid = valid and finding.holds
    return 0 if valid else 1
