"""The results of a sweep's contrasts as files: the comparison with its figures, and material for a paper."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from longspan.simulator.analysis.comparable import comparable
from longspan.simulator.analysis.contrasts import Contrasts, evaluate
from longspan.simulator.analysis.statements import Statement
from longspan.simulator.base.terminal import visible
from longspan.simulator.files.folders import inside, read_file
from longspan.simulator.files.reading import replacing, write_text
from longspan.simulator.measures.comparing import compare
from longspan.simulator.report.comparison import as_html, links_from
from longspan.simulator.report.contrasts import Family, sentence
from longspan.simulator.report.figures import FIGURES, Format, draw, missing
from longspan.simulator.report.methods import committed, methods
from longspan.simulator.results.graded_runs import Graded, Unusable
from longspan.simulator.suite.citing import longspan_itself, references

__all__ = ["NAME", "ContrastRun", "content", "family_of", "write_outcome"]

NAME: Final = "results"
"""The name of the folder for these files, inside a sweep's folder."""

MAX_BYTES: Final = 1 << 26
"""The largest contrasts.json that is read, in bytes."""

FORMATS: Final[tuple[Format, ...]] = ("svg", "pdf")


@final
class ContrastRun(NamedTuple):
    """A run whose scores a contrast compares, as contrasts.json describes it."""

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


def family_of(contrasts: Contrasts, runs: Sequence[Graded], unusable: Sequence[Unusable], statements: Collection[Statement] = ()) -> Family:
    """Test `settled` contrasts in these runs."""
    return Family(contrasts, evaluate(contrasts, runs), statements, sorted(each.path.name for each in unusable))


def write_outcome(folder: Path, family: Family, runs: Sequence[Graded], unusable: Sequence[Unusable], title: str = "") -> None:
    """Write the files into an existing folder, and replace older ones: comparison.html, contrasts.json, methods.md, references.bib, and
    figures/. `title` is the name of the sweep. If the runs play different tests, each group of them has a page and figures, numbered from
    the second group on.

    Nothing is written if contrasts.json is already there and would not change. Raises OSError, and JournalError if a folder inside is a
    link.
    """
    text = json.dumps(content(family, runs), ensure_ascii=False, indent=1) + "\n"
    if _is_there(folder / "contrasts.json", text):
        return
    cited = [*references({name for run in runs for name in run.manifest.suite.scenarios})]
    stated = [visible(reference) for each in family.statements for reference in each.references]
    cited += [reference for reference in dict.fromkeys(stated) if reference not in cited]
    for number, group in enumerate(comparable(runs).values(), 1):
        suffix = f"-{number}" if number > 1 else ""
        comparison = compare(group, unusable if number == 1 else [])
        write_text(folder / f"comparison{suffix}.html", as_html(comparison, links_from(folder, title, {"JSON": "contrasts.json"}), family))
        figures = inside(folder, f"figures{suffix}")
        figures.mkdir(exist_ok=True)
        left_out = missing(comparison)
        for name in (name for name in FIGURES if name not in left_out):
            for format in FORMATS:
                with replacing(figures / f"{name}.{format}") as partial:
                    partial.write_bytes(draw(comparison, name, format))
    write_text(folder / "methods.md", methods(family, runs, cited))
    versions = sorted({run.manifest.versions.get("longspan", "unknown") for run in runs})
    write_text(folder / "references.bib", "\n\n".join([*cited, longspan_itself(", ".join(versions))]) + "\n")
    write_text(folder / "contrasts.json", text)  # last, so that its presence shows that all files are complete


def _is_there(path: Path, content: str) -> bool:
    try:
        return read_file(path, MAX_BYTES) == content.encode()
    except OSError:
        return False


def content(family: Family, runs: Sequence[Graded]) -> dict[str, Any]:
    """Return the content of contrasts.json."""
    return {
        "format": 1,
        "longspan": version("longspan"),
        "correction": family.contrasts.correction,
        "alpha": family.contrasts.alpha,
        "contrasts": [
            asdict(each) | {"contrast": each.contrast.model_dump(mode="json"), "sentence": sentence(each, family.contrasts)}
            for each in family.tested
        ],
        "stated": [each.model_dump(mode="json", exclude={"references"}) for each in family.statements],
        "missing": list(family.missing),
        "commitments_sha256": committed(runs),
        "runs": [_run(run)._asdict() for run in sorted(runs, key=lambda run: run.name)],
    }


def _run(run: Graded) -> ContrastRun:
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
