"""Figures of runs. Each is one file; a medium shows whatever these have to say, and knows none of them.

The order is that in which they are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from longspan.simulator.base.document import Document, merged
from longspan.simulator.measures.by_distance import ByDistance
from longspan.simulator.measures.costs import Costs
from longspan.simulator.measures.evidence_recall import EvidenceRecall
from longspan.simulator.measures.experiments import Experiments
from longspan.simulator.measures.farewells import Farewells
from longspan.simulator.measures.ingestion import Ingestion
from longspan.simulator.measures.leaks import Leaks
from longspan.simulator.measures.measure import Measure, SideBySide
from longspan.simulator.measures.memory_losses import WhereLost
from longspan.simulator.measures.nights import Nights
from longspan.simulator.measures.own_figures import OwnFigures
from longspan.simulator.measures.refusals import Refusals
from longspan.simulator.measures.skills import Skills
from longspan.simulator.results.result import Result
from longspan.simulator.suite.manifest import Manifest

__all__ = ["MEASURES", "compared", "shown"]

MEASURES: Final[Sequence[type[Measure]]] = (
    Refusals,
    Leaks,
    WhereLost,
    EvidenceRecall,
    Ingestion,
    Nights,
    Farewells,
    Costs,
    Experiments,
    Skills,
    ByDistance,
    OwnFigures,
)


def shown(manifest: Manifest, result: Result) -> Document:
    """Return what is said of one run's results."""
    return merged([measure.shown(manifest, result) for measure in MEASURES])


def compared(side: SideBySide) -> Document:
    """Return what is said of runs side by side."""
    return merged([measure.compared(side) for measure in MEASURES])
