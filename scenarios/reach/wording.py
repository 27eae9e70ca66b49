"""The sentences of the suite `reach`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, final

from longspan.scenarios.shared import wording

__all__ = ["Wording"]


@final
class Wording(wording.Wording):
    """The sentences of the suite `reach`."""

    folder: ClassVar[Path] = Path(__file__).parent / "templates"
