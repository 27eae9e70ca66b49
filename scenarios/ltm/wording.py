"""Message templates of the `ltm` suite."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, final

from longspan.scenarios.shared import wording

__all__ = ["Wording"]


@final
class Wording(wording.Wording):
    """Message templates of a scenario in the `ltm` suite."""

    folder: ClassVar[Path] = Path(__file__).parent / "templates"
