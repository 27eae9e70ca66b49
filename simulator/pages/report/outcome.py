"""The results of a sweep's contrasts as files: the comparison with its figures, and material for a paper."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from longspan import __version__
from longspan.simulator.base.files.file_io import replace_file, write_text
from longspan.simulator.base.files.folders import path_inside, read_file
from longspan.simulator.base.terminal import escape_invisible
from longspan.simulator.pages.report.comparison import as_html, links_from
from longspan.simulator.pages.report.contrast_words import Family, describe_contrast
from longspan.simulator.pages.report.figures import FIGURES, Format, draw_figure, missing_figures
from longspan.simulator.pages.report.methods import hash_commitments, write_methods
from longspan.simulator.results.analysis.comparable import group_comparable
from longspan.simulator.results.analysis.contrasts import Contrasts, evaluate_contrasts
from longspan.simulator.results.analysis.statements import Statement
from longspan.simulator.results.graded_runs import GradedRun, Unusable
from longspan.simulator.results.measures.comparing import compare_runs
from longspan.simulator.suite.citing import list_references, longspan_itself

__all__ = ["NAME", "ContrastRun", "contrasts_content", "family_of", "write_outcome"]

NAME: Final = "results"
"""The name of the folder for these files, inside a sweep's folder."""

MAX_BYTES: Final = 1 << 26
"""The largest contrasts.json that is read, in bytes."""

FORMATS: Final[tuple[Format, ...]] = ("svg", "pdf")


@final
class ContrastRun(NamedTuple):
    """A run compared by a contrast, as contrasts.json describes it."""

    folder: str
    suite: str
    span: int
    seed: int
    agent: str
    label: str | None
    created: str | None
    commitment: str
    score_bounds: tuple[float, float]
    max_score: int
    measure: str
    versions: dict[str, str]


def family_of(
    contrasts: Contrasts, runs: Sequence[GradedRun], unusable: Sequence[Unusable], statements: Collection[Statement] = ()
) -> Family:
    """Test `settled` contrasts in these runs."""
    return Family(contrasts, evaluate_contrasts(contrasts, runs), statements, sorted(each.path.name for each in unusable))


def write_outcome(folder: Path, family: Family, runs: Sequence[GradedRun], unusable: Sequence[Unusable], title: str = "") -> None:
    """Write the files into an existing folder, replacing older ones: comparison.html, contrasts.json, methods.md, references.bib and
    figures/.

    `title` is the name of the sweep. If the runs play different tests, each group of runs has its own page and figures, numbered from the
    second group on.

    Nothing is written if contrasts.json exists and would not change. Raises OSError, and JournalError if a folder inside is a link.
    """
    text = json.dumps(contrasts_content(family, runs), ensure_ascii=False, indent=1) + "\n"
    if _is_there(folder / "contrasts.json", text):
        return
    cited = [*list_references({name for run in runs for name in run.manifest.suite.scenarios})]
    stated = [escape_invisible(reference) for each in family.statements for reference in each.references]
    cited += [reference for reference in dict.fromkeys(stated) if reference not in cited]
    for number, group in enumerate(group_comparable(runs).values(), 1):
        suffix = f"-{number}" if number > 1 else ""
        comparison = compare_runs(group, unusable if number == 1 else [])
        write_text(folder / f"comparison{suffix}.html", as_html(comparison, links_from(folder, title, {"JSON": "contrasts.json"}), family))
        figures = path_inside(folder, f"figures{suffix}")
        figures.mkdir(exist_ok=True)
        left_out = missing_figures(comparison)
        for name in (name for name in FIGURES if name not in left_out):
            for format in FORMATS:
                with replace_file(figures / f"{name}.{format}") as partial:
                    partial.write_bytes(draw_figure(comparison, name, format))
    write_text(folder / "methods.md", write_methods(family, runs, cited))
    versions = sorted({run.manifest.versions.get("longspan", "unknown") for run in runs})
    write_text(folder / "references.bib", "\n\n".join([*cited, longspan_itself(", ".join(versions))]) + "\n")
    write_text(folder / "contrasts.json", text)  # last, so that its presence shows that all files are complete


def _is_there(path: Path, content: str) -> bool:
    try:
        return read_file(path, MAX_BYTES) == content.encode()
    except OSError:
        return False


def contrasts_content(family: Family, runs: Sequence[GradedRun]) -> dict[str, Any]:
    """Return the content of contrasts.json."""
    return {
        "format": 1,
        "longspan": __version__,
        "correction": family.contrasts.correction,
        "alpha": family.contrasts.alpha,
        "contrasts": [
            asdict(each) | {"contrast": each.contrast.model_dump(mode="json"), "sentence": describe_contrast(each, family.contrasts)}
            for each in family.tested
        ],
        "stated": [each.model_dump(mode="json", exclude={"references"}) for each in family.statements],
        "missing": list(family.missing),
        "commitments_sha256": hash_commitments(runs),
        "runs": [_run(run)._asdict() for run in sorted(runs, key=lambda run: run.name)],
    }


def _run(run: GradedRun) -> ContrastRun:
    manifest = run.manifest
    return ContrastRun(
        folder=run.name,
        suite=manifest.suite.name,
        span=manifest.span,
        seed=manifest.seed,
        agent=manifest.agent,
        label=manifest.label,
        created=None if manifest.created is None else manifest.created.isoformat(),
        commitment=manifest.commitment,
        score_bounds=run.result.score_bounds,
        max_score=run.result.max_score,
        measure=run.result.measured,
        versions=manifest.versions,
    )
