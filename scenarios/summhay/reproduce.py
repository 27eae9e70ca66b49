"""Reproduce the paper's figures from published files.

Annotated samples yield judges against annotators (Table 1) and the judges' preferences (appendix A.3). Topic files with summaries and
evaluations yield models and retrievers (Tables 2 and 3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NamedTuple, final

from pydantic import BaseModel, ConfigDict, ValidationError

from longspan.scenarios.summhay import printed
from longspan.scenarios.summhay.bullets import find_citations, mean_length
from longspan.scenarios.summhay.joint_scores import COVERED, InsightScores, PooledScores, pool_scores, score_insight
from longspan.scenarios.summhay.topic_files import EvaluatedInsight, Topic, parse_topic, read_published
from longspan.simulator.base.agreement import pearson
from longspan.simulator.base.errors import InputError, first_problem
from longspan.simulator.base.files.file_io import parse_json
from longspan.simulator.base.tables import Table
from longspan.simulator.results.papers import Cell, Reproduction, Rules

__all__ = ["collect_judges", "pool_results", "read_files", "reproduce"]

PAPER: Final = "summhay"

PRINTED: Final[Mapping[str, tuple[float, float]]] = {
    "prompted_gemini-1.5-pro": (0.751, 0.893),
    "9fs_gpt-4o": (0.719, 0.892),
    "prompted_gpt-4o": (0.716, 0.889),
    "prompted_claude3-opus": (0.677, 0.879),
    "prompted_claude3-haiku": (0.498, 0.877),
    "prompted_gpt3.5": (0.495, 0.867),
}
"""Table 1: correlation and link accuracy of each judge."""

PREDICTIONS: Final = "predictions_"
SUMMARY: Final = "summary_subtopic_"

WHOLE: Final = "full context"
"""Name, in place of a retriever, for summaries of the whole haystack."""

SORTED: Final[Mapping[str, str]] = {"fl-ctxt-sort": "top", "fl-ctxt-middle": "middle", "fl-ctxt-rev-sort": "bottom"}
"""Names of summaries of sorted haystacks, with the position of the relevant documents."""

LEVELS: Final[Mapping[str, float]] = {
    "full_coverage": COVERED["full"],
    "fully_covered": COVERED["full"],
    "partial_coverage": COVERED["partial"],
    "partially_covered": COVERED["partial"],
    "no_coverage": COVERED["none"],
    "not_covered": COVERED["none"],
}


class _Annotation(BaseModel):
    """An annotation of an insight. `candidate_id` is a bullet's number from 0, as text, or "no_selection"."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    insight_id: str
    coverage: str
    candidate_id: str = "no_selection"


@final
class _Sample(BaseModel):
    """A summary that annotators and models judged."""

    model_config = ConfigDict(frozen=True, extra="allow")

    annotation: list[_Annotation]
    summkey: str = ""
    summary: list[str] = []


@final
class Judge(NamedTuple):
    """A model's answers about the insights of all samples, compared with the annotators'.

    `coverage`: pairs of the annotators' and the model's. `links`: whether both named the same bullet.
    """

    coverage: list[tuple[float, float]]
    links: list[bool]


@final
class Row(NamedTuple):
    """The scores of a model's summaries with a retriever. `words`: the mean words per bullet."""

    retriever: str
    model: str
    scores: PooledScores
    words: float


def reproduce(paths: Sequence[Path], rules: Rules) -> Reproduction:
    """Compute the figures from files of annotated samples and topic files.

    `rules` have no effect, because the evaluations are recorded. Raises InputError for files in another format.
    """
    samples, topics = read_files(paths)
    found = collect_judges(samples)
    rows = pool_results(topics)
    if not found and not rows:
        raise InputError(f"{paths[0]}: neither judged samples nor topics with evaluated summaries found; give the published files")
    bias = list(_bias_cells(samples))
    cells = [*_judge_cells(found), *bias, *_result_cells(rows, len(topics)), *_position_cells(rows, len(topics))]
    tables = [*_judge_tables(found, len(samples)), *_bias_tables(bias, len(samples)), *_result_tables(rows, cells, len(topics))]
    return Reproduction(cells=cells, tables=tables)


def read_files(paths: Sequence[Path]) -> tuple[list[_Sample], list[Topic]]:
    """Read the annotated samples and the topics in files and folders. Raises InputError."""
    samples: list[_Sample] = []
    topics: list[Topic] = []
    for path in (file for each in paths for file in _files(each)):
        content = read_published(path)
        if content.lstrip()[:1] == b"[":
            samples += _samples(content, path)
        else:
            topics.append(parse_topic(content, path))
    return samples, topics


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.name.endswith((".json", ".json.gz")))
    if not files:
        raise InputError(f"{path}: no .json or .json.gz files found; give the published ones")
    return files


def _samples(content: bytes, path: Path) -> list[_Sample]:
    try:
        return [_Sample.model_validate(sample) for sample in parse_json(content, str(path))]
    except ValidationError as error:
        raise InputError(f"{path}: not a list of annotated samples: {first_problem(error)}") from None


# ---- Table 1: judges


def collect_judges(samples: Sequence[_Sample]) -> dict[str, Judge]:
    """Return each judge's answers, by name, about all insights of all samples that it judged.

    Raises InputError if an annotated insight is missing, or for an unknown coverage.
    """
    found: dict[str, Judge] = {}
    for number, sample in enumerate(samples, 1):
        extra = sample.model_extra or {}
        for name in (name for name in extra if name.startswith(PREDICTIONS)):
            where = f"sample {number}, {name}"
            predicted = {answer.insight_id: answer for answer in _parse_evaluated(extra[name], where)}
            judge = found.setdefault(name.removeprefix(PREDICTIONS), Judge([], []))
            for annotated in sample.annotation:
                answer = predicted.get(annotated.insight_id)
                if answer is None:
                    raise InputError(f"{where}: says nothing about insight {annotated.insight_id:.60}, which was annotated")
                judge.coverage.append((_level(annotated.coverage, where), _level(answer.coverage, where)))
                judge.links.extend(_compare_links(annotated, answer))
    return found


def _parse_evaluated(value: Any, where: str) -> list[EvaluatedInsight]:
    try:
        return [EvaluatedInsight.model_validate(answer) for answer in value]
    except (ValidationError, TypeError) as error:
        why = first_problem(error) if isinstance(error, ValidationError) else "not a list"
        raise InputError(f"{where}: {why}") from None


def _compare_links(annotated: _Annotation, answer: EvaluatedInsight) -> Iterator[bool]:
    """Yield whether both name the same bullet, if the annotators selected one and the model named exactly one."""
    if type(answer.bullet_id) is int and annotated.candidate_id.isdecimal():
        yield annotated.candidate_id == str(answer.bullet_id - 1)


def _level(coverage: str, where: str) -> float:
    if coverage.lower() not in LEVELS:
        raise InputError(f"{where}: unknown coverage {coverage!r:.60}; expected one of {', '.join(LEVELS)}")
    return LEVELS[coverage.lower()]


def _measure_judge(judge: Judge) -> tuple[float | None, float | None]:
    agreed = pearson([theirs for theirs, _ in judge.coverage], [own for _, own in judge.coverage])
    return agreed, fmean(judge.links) if judge.links else None


def _judge_cells(found: Mapping[str, Judge]) -> Iterator[Cell]:
    for name, judge in found.items():
        counts = (len(judge.coverage), len(judge.links))
        both = PRINTED.get(name, (None, None))
        for column, ours, published, n in zip(("correlation", "link_accuracy"), _measure_judge(judge), both, counts, strict=True):
            yield _cell("judges", name, column, ours, n, published)


def _judge_tables(found: Mapping[str, Judge], samples: int) -> Iterator[Table]:
    if not found:
        return
    rows = []
    for name, judge in sorted(found.items(), key=lambda each: -(_measure_judge(each[1])[0] or 0)):
        agreed, links = _measure_judge(judge)
        both = PRINTED.get(name, (None, None))
        counts = str(len(judge.coverage)), str(len(judge.links))
        rows.append([name, _share(agreed), _share(both[0]), counts[0], _share(links), _share(both[1]), counts[1]])
    note = f"Printed: over {printed.SAMPLES} samples; these are {samples}."
    columns = ["judge", "correlation", "printed", "insights", "link accuracy", "printed ", "links"]
    yield Table(title=f"Judges against annotators (Table 1), {samples} samples", columns=columns, rows=rows, note=note)


# ---- appendix A.3: what judges favour


def _bias_cells(samples: Sequence[_Sample]) -> Iterator[Cell]:
    """Yield how much each judge's mean coverage exceeds the annotators', by the model that wrote the summary.

    `mean` is over these models. `length-difference` and `length-score` are the correlations of that difference, and of the judge's
    coverage, with the words in a bullet, over the samples.
    """
    judges_ = dict.fromkeys(name for sample in samples for name in sample.model_extra or {} if name.startswith(PREDICTIONS))
    for name in judges_:
        judged = [sample for sample in samples if name in (sample.model_extra or {}) and sample.annotation and sample.summary]
        means = [_means(sample, name) for sample in judged]
        differences: dict[str, list[float]] = {}
        for sample, (own, theirs) in zip(judged, means, strict=True):
            differences.setdefault(sample.summkey.rpartition("_")[2], []).append(own - theirs)
        words = [_words(sample.summary) for sample in judged]
        by_model = {model: (fmean(each), len(each)) for model, each in sorted(differences.items())}
        figures: dict[str, tuple[float | None, int]] = dict(by_model)
        if by_model:
            figures["mean"] = fmean(difference for difference, _ in by_model.values()), len(judged)
            figures["length-difference"] = pearson([own - theirs for own, theirs in means], words), len(judged)
            figures["length-score"] = pearson([own for own, _ in means], words), len(judged)
        column = name.removeprefix(PREDICTIONS)
        yield from (
            _cell("bias", row, column, ours, n, printed.printed_bias(row, column, len(samples))) for row, (ours, n) in figures.items()
        )


def _means(sample: _Sample, judge: str) -> tuple[float, float]:
    """Return the mean coverage of a sample's insights by a judge and by its annotators."""
    predicted = {answer.insight_id: answer.coverage for answer in _parse_evaluated((sample.model_extra or {})[judge], judge)}
    own = fmean(_level(predicted[annotated.insight_id], judge) for annotated in sample.annotation)
    return own, fmean(_level(annotated.coverage, judge) for annotated in sample.annotation)


def _words(bullets: Sequence[str]) -> float:
    """Return the mean words in a bullet as the authors count them: all blanks plus one, divided by the number of bullets."""
    return (re.sub(r"\s{2,}", " ", "\n".join(bullets)).count(" ") + 1) / len(bullets)


def _bias_tables(cells: Sequence[Cell], samples: int) -> Iterator[Table]:
    if not cells:
        return
    known = {(cell.row, cell.column): cell for cell in cells}
    columns = list(dict.fromkeys(cell.column for cell in cells))
    last = ["mean", "length-difference", "length-score"]
    rows = [row for row in dict.fromkeys(cell.row for cell in cells) if row not in last] + last
    lines = [[row, *(_beside(known.get((row, column))) for column in columns)] for row in rows]
    of = _in_brackets(printed.SAMPLES, samples, "samples")
    note = (
        "How much more coverage a judge finds than the annotators, by the model that wrote the summary; then the correlations of that "
        f"difference, and of the coverage that the judge finds, with the words of a bullet. {of}"
    )
    yield Table(title=f"What judges favour (appendix A.3), {samples} samples", columns=["", *columns], rows=lines, note=note)


def _in_brackets(whole: int, number: int, what: str) -> str:
    return "In brackets: the authors' figures." if number == whole else f"The authors' figures are of {whole} {what}; these are {number}."


def _beside(cell: Cell | None) -> str:
    """Return our figure, followed by the printed one in brackets if there is one."""
    if cell is None or cell.ours is None:
        return ""
    return f"{cell.ours:.3f}" + (f" ({cell.published:g})" if cell.published is not None else "")


# ---- Tables 2 and 3: models and retrievers


def pool_results(topics: Sequence[Topic]) -> list[Row]:
    """Return each model's scores with each retriever, pooled over all insights of all topics.

    Raises InputError for an evaluation whose summary is missing.
    """
    every: dict[str, list[InsightScores]] = {}
    words: dict[str, list[float]] = {}
    for read in topics:
        sources: dict[str, set[int]] = {}
        for number, document in enumerate(read.documents, 1):
            for insight in document.insights_included:
                sources.setdefault(insight, set()).add(number)
        for subtopic in read.subtopics:
            for name, evaluated in subtopic.eval_summaries.items():
                summary = subtopic.summaries.get(name)
                if summary is None:
                    raise InputError(f"topic {read.topic:.60}: {name} was evaluated, but its summary is missing")
                where = f"topic {read.topic:.60}, {name}"
                every.setdefault(name, []).extend(_score_answer(answer, summary, sources, where) for answer in evaluated)
                words.setdefault(name, []).append(mean_length(summary))
    rows = []
    for name, found in every.items():
        if (scores := pool_scores(found)) is not None:
            rows.append(Row(*_split_name(name), scores, fmean(words[name])))
    return sorted(rows, key=lambda row: (row.model, row.retriever))


def _score_answer(answer: EvaluatedInsight, summary: Sequence[str], sources: Mapping[str, set[int]], where: str) -> InsightScores:
    coverage = _level(answer.coverage, where)
    if not coverage:
        return score_insight(0.0, frozenset(), frozenset())
    cited = find_citations(summary[number - 1]) if (number := _number(answer.bullet_id)) and number <= len(summary) else frozenset()
    return score_insight(coverage, cited, sources.get(answer.insight_id, set()))


def _number(bullet: object) -> int | None:
    """Return the number of a bullet, or None if an evaluation names none or several. It then counts as citing nothing."""
    if isinstance(bullet, str) and bullet.isdecimal() and len(bullet) < 10:
        return int(bullet)
    return bullet if type(bullet) is int and bullet > 0 else None


def _split_name(name: str) -> tuple[str, str]:
    """Return the retriever and the model of a summary named summary_subtopic_RETRIEVER_MODEL or summary_subtopic_MODEL."""
    retriever, _, model = name.removeprefix(SUMMARY).rpartition("_")
    return SORTED.get(retriever, retriever) or WHOLE, model


def _row(row: Row) -> str:
    return row.model if row.retriever == WHOLE else f"{row.retriever}_{row.model}"


def _result_cells(rows: Iterable[Row], topics: int) -> Iterator[Cell]:
    for row in rows:
        covered = row.scores
        figures = {
            "coverage": covered.coverage,
            "citation": covered.citation,
            "joint": covered.joint,
            "precision": covered.precision,
            "recall": covered.recall,
            "words": row.words,
        }
        for column, ours in figures.items():
            yield _cell("results", _row(row), column, ours, covered.n, printed.printed_result("results", _row(row), column, topics))


def _sensitivity(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """Return, for each model whose documents were also sorted, the joint score by position and the sensitivity.

    The sensitivity is the largest absolute difference from the stored order.
    """
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.retriever in (WHOLE, *SORTED.values()):
            found.setdefault(row.model, {})["stored" if row.retriever == WHOLE else row.retriever] = row.scores.joint
    whole = {model: joint for model, joint in found.items() if "stored" in joint and len(joint) > 1}
    for joint in whole.values():
        joint["sensitivity"] = max(abs(each - joint["stored"]) for position, each in joint.items() if position != "stored")
    return whole


def _position_cells(rows: Sequence[Row], topics: int) -> Iterator[Cell]:
    n = {row.model: row.scores.n for row in rows}
    for model, joint in _sensitivity(rows).items():
        for position, ours in joint.items():
            yield _cell("positions", model, position, ours, n[model], printed.printed_result("positions", model, position, topics))


def _cell(table: str, row: str, column: str, ours: float | None, n: int, published: float | None = None) -> Cell:
    return Cell(paper=PAPER, table=table, row=row, column=column, ours=None if ours is None else round(ours, 6), published=published, n=n)


def _result_tables(rows: Sequence[Row], cells: Sequence[Cell], topics: int) -> Iterator[Table]:
    if not rows:
        return
    known = {(cell.table, cell.row, cell.column): cell for cell in cells}
    lines = [
        [
            row.model,
            row.retriever,
            *(_beside(known["results", _row(row), column]) for column in ("coverage", "citation", "joint", "precision", "recall")),
            f"{row.words:.1f}",
            str(row.scores.n),
        ]
        for row in rows
    ]
    columns = ["model", "retriever", "coverage", "citation", "joint", "precision", "recall", "words a bullet", "insights"]
    note = _in_brackets(printed.TOPICS, topics, "topics")
    yield Table(title=f"Models and retrievers (Table 2), {topics} topics", columns=columns, rows=lines, note=note)
    if found := _sensitivity(rows):
        columns = ["model", "top", "middle", "bottom", "stored", "sensitivity"]
        lines = [[model, *(_beside(known.get(("positions", model, column))) for column in columns[1:])] for model in found]
        note = f"The joint score by where the relevant documents were, and the largest absolute difference from the stored order. {note}"
        yield Table(title="Position bias (Table 3)", columns=columns, rows=lines, note=note)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
