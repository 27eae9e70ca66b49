"""longspan publish: publish scores without the tests, and prove later that they belong to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longspan.simulator.base.terminal import say
from longspan.simulator.cli.runs import RunArgument, TrustOption, open_run

__all__ = ["publish"]


def publish(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="The file to write.", metavar="FILE", show_default="published-COMMITMENT.json")] = None,
    verify: Annotated[
        Path | None, typer.Option(help="Instead, verify this published file against the run and its tests.", metavar="FILE")
    ] = None,
    trust: TrustOption = False,
) -> int:
    """Publish a run's scores with a commitment to its tests, or verify published ones.

    The file has no seed, texts or nonce. With the run, --verify can prove later that these tests were played.
    """
    from longspan.simulator.base.errors import InputError
    from longspan.simulator.results.gradebook.commitment import publish_scores, read_published, verify_scores

    if verify is not None:
        if out is not None:
            raise InputError("--out and --verify exclude each other; leave out one of them")
        valid = True
        for finding in verify_scores(read_published(verify), open_run(run, trust)):
            say(f"{'ok ' if finding.holds else 'NO '} {finding.name:12}{finding.found}")
            valid = valid and finding.holds
        return 0 if valid else 1
    folder = open_run(run, trust)
    path = out or Path(f"published-{folder.manifest.commitment[:12]}.json")
    published = publish_scores(folder, path)
    say(f"{path}: {published.measured} {published.score} of {published.max_score}, commitment {published.commitment}")
    return 0
