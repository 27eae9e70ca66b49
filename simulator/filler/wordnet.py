"""Facts about words and the world: relations of Princeton WordNet, packed by scripts/pack_wordnet.py (see NOTICE)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, final

from longspan.simulator.base.cache import cached

__all__ = ["WordNet", "wordnet"]

PACKED: Final = Path(__file__).parents[1] / "data" / "wordnet.xz"


@final
@dataclass(frozen=True, slots=True)
class WordNet:
    """Words by their relations.

    `kinds`: by group, what is a kind of what; nothing in one group is a kind of something in another. `parts`, `members`,
    `substances`: pairs of what is part (member, substance) of what. `ways`: verbs, and ways to do it. `similar`: adjectives, and
    others close in meaning. `pertaining`: pairs of an adjective and its noun, or an adverb and its adjective. `fields`: fields of
    knowledge, and their terms. `people`: names with what they were. `places`: names with what they are and where ("" if unknown).
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
def wordnet() -> WordNet:
    packed = PACKED.read_bytes()
    return WordNet(**json.loads(cached(f"wordnet-{hashlib.sha256(packed).hexdigest()[:16]}.json", lambda: _unpacked(packed))))


def _unpacked(packed: bytes) -> bytes:
    import lzma

    return lzma.decompress(packed)
