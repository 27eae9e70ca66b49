"""The points where conversations of a run diverge, and the snapshots that their agents start from."""

from __future__ import annotations

from longspan.simulator.journal.forks import Fork, fork_of
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.subject.snapshots import Snapshots

__all__ = ["fork_in", "snapshots_in"]


def fork_in(run: RunFolder, id: str) -> Fork | None:
    """Return the point where a conversation diverges from another; None if it shares no turns with another."""
    experiment = run.manifest.experiments.get(id)
    return fork_of(experiment, run.journal(experiment.conversation)) if experiment is not None and experiment.shares else None


def snapshots_in(run: RunFolder, id: str, fork: Fork | None) -> Snapshots | None:
    """Return the snapshots for a conversation's agent. A twin uses the other conversation's, from before the fork; a lesion has none."""
    if fork is None:
        return Snapshots(run.snapshots(id), run.owner(id))
    trunk = fork.point.conversation
    kept = Snapshots(run.snapshots(trunk), run.owner(trunk), copied=True, until=fork.point.turn)
    return kept if fork.experiment.kind == "twin" else None
