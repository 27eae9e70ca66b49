"""The contrasts of a sweep: stated in its folder before anything is played, and tested when everything has been played."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from longspan.simulator.analysis.contrasts import Contrasts
from longspan.simulator.analysis.statements import NAME, Statement, designed, state, statements
from longspan.simulator.base.errors import InputError
from longspan.simulator.files.folders import inside
from longspan.simulator.measures.comparing import load_finished
from longspan.simulator.report import outcome
from longspan.simulator.report.contrasts import Family
from longspan.simulator.suite.citing import references
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.provenance import now
from longspan.simulator.suite.suite import Suite
from longspan.simulator.sweeps.sweep import Indexed

__all__ = ["checked", "conclude", "declare"]


def checked(contrasts: Contrasts | None, manifests: Sequence[Manifest], file: Path, out: Path) -> Contrasts | None:
    """Return the contrasts of a sweep's file with each agent under its name in the runs to be played.

    Raises InputError if they name anything that is not played or could show nothing, and if there are none although some have been stated.
    """
    where = f"sweep {file}"
    known = statements(out)
    if contrasts is None:
        if known:
            what = f"contrasts were stated on {known[-1].at:%Y-%m-%d}, in {out / NAME}"
            raise InputError(f"{where}: {what}, and the file has none: put them back, or play into another folder with --out")
        return None
    settled = contrasts.settled(manifests, where)
    settled.check_can_show(manifests, where)
    return settled


def declare(out: Path, contrasts: Contrasts, entries: Sequence[Indexed], played: Collection[Suite]) -> bool:
    """Journal the `settled` contrasts of a sweep, unless they and the runs are the same as stated last. Return whether this is new."""
    scenarios = {scenario for suite in played for scenario in suite.scenarios}
    statement = Statement(
        at=now(),
        sha256=contrasts.sha256,
        design=designed([entry.folder for entry in entries]),
        contrasts=contrasts,
        runs=len(entries),
        begun=sum(entry.state != "not started" for entry in entries),
        finished=sum(entry.state == "finished" for entry in entries),
        references=references(scenarios, played),
    )
    return state(out, statement)


def conclude(out: Path, contrasts: Contrasts, entries: Sequence[Indexed]) -> tuple[Path, Family]:
    """Test a sweep's contrasts and write the results into its folder. Returns the folder of the files.

    Raises InputError or JournalError for a folder that cannot be written.
    """
    runs, unusable = load_finished([inside(out, entry.folder) for entry in entries])
    family = outcome.family_of(contrasts, runs, unusable, statements(out))
    folder = inside(out, outcome.NAME)
    try:
        folder.mkdir(exist_ok=True)
        outcome.write_outcome(folder, family, runs, unusable, out.resolve().name)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return folder, family
