"""The contrasts of a sweep: stated in its folder before the runs, and tested after all of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.folders import path_inside
from longspan.simulator.pages.report import outcome
from longspan.simulator.pages.report.contrast_words import Family
from longspan.simulator.results.analysis.contrasts import Contrasts
from longspan.simulator.results.analysis.statements import NAME, Statement, append_statement, hash_design, read_statements
from longspan.simulator.results.measures.comparing import load_finished
from longspan.simulator.running.sweeps.sweep import IndexEntry
from longspan.simulator.suite.citing import list_references
from longspan.simulator.suite.manifest import Manifest
from longspan.simulator.suite.provenance import utc_now
from longspan.simulator.suite.suite import Suite

__all__ = ["check_contrasts", "conclude_contrasts", "declare_contrasts"]


def check_contrasts(contrasts: Contrasts | None, manifests: Sequence[Manifest], file: Path, out: Path) -> Contrasts | None:
    """Return the contrasts of a sweep's file, with each agent under its name in the planned runs.

    Raises InputError if they name anything that is not played or cannot show anything, or if contrasts were stated earlier and the file now
    has none.
    """
    where = f"sweep {file}"
    known = read_statements(out)
    if contrasts is None:
        if known:
            what = f"contrasts were stated on {known[-1].at:%Y-%m-%d}, in {out / NAME}"
            raise InputError(f"{where}: {what}, and the file has none: put them back, or play into another folder with --out")
        return None
    settled = contrasts.settle_names(manifests, where)
    settled.check_can_show(manifests, where)
    return settled


def declare_contrasts(out: Path, contrasts: Contrasts, entries: Sequence[IndexEntry], played: Collection[Suite]) -> bool:
    """Journal the `settled` contrasts of a sweep, unless they and the runs repeat the last statement. Return whether it is new."""
    scenarios = {scenario for suite in played for scenario in suite.scenarios}
    statement = Statement(
        at=utc_now(),
        sha256=contrasts.sha256,
        design=hash_design([entry.folder for entry in entries]),
        contrasts=contrasts,
        runs=len(entries),
        begun=sum(entry.state != "not started" for entry in entries),
        finished=sum(entry.state == "finished" for entry in entries),
        references=list_references(scenarios, played),
    )
    return append_statement(out, statement)


def conclude_contrasts(out: Path, contrasts: Contrasts, entries: Sequence[IndexEntry]) -> tuple[Path, Family]:
    """Test a sweep's contrasts and write the results into its folder. Returns the folder of the files.

    Raises InputError or JournalError for a folder that cannot be written.
    """
    runs, unusable = load_finished([path_inside(out, entry.folder) for entry in entries])
    family = outcome.family_of(contrasts, runs, unusable, read_statements(out))
    folder = path_inside(out, outcome.NAME)
    try:
        folder.mkdir(exist_ok=True)
        outcome.write_outcome(folder, family, runs, unusable, out.resolve().name)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
    return folder, family
