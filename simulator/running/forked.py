"""Where conversations of a run leave others, and the snapshots that their agents go on from."""

from __future__ import annotations

from longspan.simulator.archive.run_folder import RunFolder
from longspan.simulator.journal.forks import Fork, fork_of
from longspan.simulator.subject.snapshots import Snapshots

__all__ = ["fork_in", "snapshots_in"]


def fork_in(run: RunFolder, id: str) -> Fork | None:
    """Return where a conversation leaves another; None if it shares nothing with it."""
    experiment = run.manifest.experiments.get(id)
    return fork_of(experiment, run.journal(experiment.conversation)) if experiment is not None and experiment.shares else None


def snapshots_in(run: RunFolder, id: str, fork: Fork | None) -> Snapshots | None:
    """Return the snapshots of a conversation's agent: a twin takes the other conversation's from before they part; a lesion has none."""
    if fork is None:
        return Snapshots(run.snapshots(id), run.owner(id))
    trunk = fork.point.conversation
    kept = Snapshots(run.snapshots(trunk), run.owner(trunk), copied=True, until=fork.point.turn)
    return kept if fork.experiment.kind == "twin" else None
