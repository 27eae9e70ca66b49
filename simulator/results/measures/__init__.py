"""The figures of runs, one file each. A medium renders their documents and knows no figure by name.

Media show the figures in the order of `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from longspan.simulator.base.document import Document, merge_documents
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.measures.by_distance import ByDistance
from longspan.simulator.results.measures.costs import Costs
from longspan.simulator.results.measures.cut_answers import CutAnswers
from longspan.simulator.results.measures.evidence_recall import EvidenceRecall
from longspan.simulator.results.measures.experiments import Experiments
from longspan.simulator.results.measures.farewells import Farewells
from longspan.simulator.results.measures.ingestion import Ingestion
from longspan.simulator.results.measures.inner_calls import InnerCalls
from longspan.simulator.results.measures.items import Items
from longspan.simulator.results.measures.leaks import Leaks
from longspan.simulator.results.measures.meaning import ScoreMeaning
from longspan.simulator.results.measures.measure import Measure, SideBySide
from longspan.simulator.results.measures.memory_losses import WhereLost
from longspan.simulator.results.measures.nights import Nights
from longspan.simulator.results.measures.own_figures import OwnFigures
from longspan.simulator.results.measures.prompt_sizes import Shown
from longspan.simulator.results.measures.reach import Reach
from longspan.simulator.results.measures.refusals import Refusals
from longspan.simulator.results.measures.rejected_fields import RejectedFields
from longspan.simulator.results.measures.skills import Skills
from longspan.simulator.results.measures.stages import Stages
from longspan.simulator.results.measures.stuck import Stuck
from longspan.simulator.results.measures.unchecked import Unchecked
from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["MEASURES", "document_comparison", "document_run", "document_runs"]

MEASURES: Final[Sequence[type[Measure]]] = (
    ScoreMeaning,
    Reach,
    Refusals,
    Stuck,
    InnerCalls,
    CutAnswers,
    RejectedFields,
    Leaks,
    Unchecked,
    Stages,
    Shown,
    WhereLost,
    EvidenceRecall,
    Ingestion,
    Nights,
    Farewells,
    Costs,
    Experiments,
    Items,
    Skills,
    ByDistance,
    OwnFigures,
)


def document_run(manifest: Manifest, result: Result) -> Document:
    """Return one document with all measures of a run."""
    return merge_documents([measure.describe_run(manifest, result) for measure in MEASURES])


def document_runs(runs: Sequence[GradedRun]) -> Document:
    """Return one document with all measures of runs in a list."""
    return merge_documents([measure.describe_runs(runs) for measure in MEASURES])


def document_comparison(side: SideBySide) -> Document:
    """Return one document with all measures of runs side by side."""
    return merge_documents([measure.describe_comparison(side) for measure in MEASURES])
