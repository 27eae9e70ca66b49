"""Facts about words and the world: relations of Princeton WordNet, packed by scripts/pack_wordnet.py (see NOTICE)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, final

from longspan.simulator.base.cache import read_or_make

__all__ = ["WordNet", "load_wordnet"]

PACKED: Final = Path(__file__).parents[1] / "data" / "wordnet.xz"


@final
@dataclass(frozen=True, slots=True)
class WordNet:
    """Words by their relations.

    - `kinds`: for each group, kinds of things and their members. Nothing in one group is a member of a kind in another.
    - `parts`, `members`, `substances`: pairs of a part (member, substance) and its whole.
    - `ways`: verbs, and specific ways to do what they mean.
    - `similar`: adjectives, and others with a similar meaning.
    - `pertaining`: pairs of an adjective and its noun, or an adverb and its adjective.
    - `fields`: fields of knowledge, and their terms.
    - `people`: names and professions.
    - `places`: names with their kind and location ("" if unknown).
    """

    kinds: dict[str, dict[str, list[str]]]
    parts: list[list[str]]
    members: list[list[str]]
    substances: list[list[str]]
    opposites: list[list[str]]
    ways: dict[str, list[str]]
    similar: dict[str, list[str]]
    synonyms: list[list[str]]
    pertaining: list[list[str]]
    fields: dict[str, list[str]]
    people: list[list[str]]
    places: list[list[str]]


@cache
def load_wordnet() -> WordNet:
    packed = PACKED.read_bytes()
    return WordNet(**json.loads(read_or_make(f"wordnet-{hashlib.sha256(packed).hexdigest()[:16]}.json", lambda: _decompress(packed))))


def _decompress(packed: bytes) -> bytes:
    import lzma

    return lzma.decompress(packed)
