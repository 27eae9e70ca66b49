"""The figures of runs, one file each. A medium renders their documents and knows no figure by name.

Media show the figures in the order of `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from longspan.simulator.base.document import Document, merged
from longspan.simulator.measures.by_distance import ByDistance
from longspan.simulator.measures.costs import Costs
from longspan.simulator.measures.cut_answers import CutAnswers
from longspan.simulator.measures.evidence_recall import EvidenceRecall
from longspan.simulator.measures.experiments import Experiments
from longspan.simulator.measures.farewells import Farewells
from longspan.simulator.measures.ingestion import Ingestion
from longspan.simulator.measures.inner_calls import InnerCalls
from longspan.simulator.measures.items import Items
from longspan.simulator.measures.leaks import Leaks
from longspan.simulator.measures.meaning import ScoreMeaning
from longspan.simulator.measures.measure import Measure, SideBySide
from longspan.simulator.measures.memory_losses import WhereLost
from longspan.simulator.measures.nights import Nights
from longspan.simulator.measures.own_figures import OwnFigures
from longspan.simulator.measures.reach import Reach
from longspan.simulator.measures.refusals import Refusals
from longspan.simulator.measures.shown import Shown
from longspan.simulator.measures.skills import Skills
from longspan.simulator.measures.stages import Stages
from longspan.simulator.measures.stuck import Stuck
from longspan.simulator.measures.unchecked import Unchecked
from longspan.simulator.results.graded_runs import Graded
from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["MEASURES", "compared", "listed", "shown"]

MEASURES: Final[Sequence[type[Measure]]] = (
    ScoreMeaning,
    Reach,
    Refusals,
    Stuck,
    InnerCalls,
    CutAnswers,
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


def shown(manifest: Manifest, result: Result) -> Document:
    """Return one document with all measures of a run."""
    return merged([measure.shown(manifest, result) for measure in MEASURES])


def listed(runs: Sequence[Graded]) -> Document:
    """Return one document with all measures of runs in a list."""
    return merged([measure.listed(runs) for measure in MEASURES])


def compared(side: SideBySide) -> Document:
    """Return one document with all measures of runs side by side."""
    return merged([measure.compared(side) for measure in MEASURES])
