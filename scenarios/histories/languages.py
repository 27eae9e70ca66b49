"""Names the language of replies that the rules cannot read, and splits text in scripts without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

__all__ = ["contains_negation", "detect_language", "split_characters"]

_UNSPACED: Final = (
    r"\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f"
    r"\u1780-\u17ff"
)
"""Japanese, Chinese, Thai, Lao, Burmese and Khmer characters."""
_CHARACTER: Final = re.compile(f"[{_UNSPACED}]")
_MARKS: Final = re.compile(r"[\u3000-\u303f\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\u2018-\u201d\u2026]")

_SCRIPTS: Final = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean", "DEVANAGARI": "Hindi"}
"""Languages of scripts. Other scripts are named themselves, such as "Thai script"."""
_FUNCTION_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.casefold().split())
    for language, words in {
        "English": "the a an is was are were in of and to it you your i my for with that not on at he she they this did do does "
        "have has no",
        "German": "der die das ist und nicht ich du sie es ein eine war waren hat haben mit auf f\u00fcr von zu dein deine ihr "
        "ihre kein keine wei\u00df leider dem den dir mir im am aber ahnung hei\u00dft seine",
        "French": "le les est et ne pas je tu vous il elle une dans pour avec que qui sur mon ton votre c'est j'ai n'ai s'appelle "
        "sais \u00e9tait ont du au d\u00e9sol\u00e9 mais des",
        "Spanish": "el es y una que con por para fue est\u00e1 su tu lo se muy pero s\u00e9 tiene ha has del al yo usted los las "
        "como llama",
        "Italian": "il \u00e8 e una che non con per sono era ha hai tuo tua lo si ma della nel di gli mi so questo",
        "Portuguese": "o \u00e9 e uma que n\u00e3o com por para foi est\u00e1 seu sua eu voc\u00ea mas do da em sei os as tem",
        "Dutch": "de het een is en niet ik je jij zij hij van met voor op dat weet geen maar was zijn heeft aan uw jouw",
    }.items()
}
_NEGATIONS: Final = re.compile(
    r"\b(?:nicht|kein(?:e[nmrs]?)?|nie|pas|jamais|no|nunca|non|mai|n\u00e3o|niet|geen|nooit)\b|[\u4e0d\u6ca1\u6c92\u65e0\u7121\u975e]"
    r"|\u306a\u3044|\u307e\u305b\u3093|\u0e44\u0e21\u0e48",
    re.IGNORECASE,
)
LEAST: Final = 2
"""Minimum number of different function words that identify a language."""
_WORD: Final = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
EXAMINED: Final = 1_000
"""Number of characters of a text that are examined."""


def split_characters(text: str) -> str:
    """Return `text` with spaces around each character of a script without spaces, and without such scripts' punctuation."""
    return _CHARACTER.sub(r" \g<0> ", _MARKS.sub(" ", text)) if _CHARACTER.search(text) else text


def contains_negation(text: str) -> bool:
    """Return whether a text in another language than English has a word such as "nicht", so that it may deny what it names."""
    return _NEGATIONS.search(text) is not None


@lru_cache(maxsize=1000)
def detect_language(text: str) -> str | None:
    """Return the language of a text if it is not English, such as "German" or "Thai script"; otherwise None.

    A script other than Latin decides if most letters are in it. In Latin script, common function words decide; a text with few of them,
    such as a name, counts as English.
    """
    text = text[:EXAMINED]
    scripts = Counter(unicodedata.name(char, "").split(" ")[0] for char in text if char > "\u024f" and char.isalpha())
    if scripts and scripts.total() * 2 > sum(map(str.isalpha, text)):
        script = next((kana for kana in ("HIRAGANA", "KATAKANA") if kana in scripts), scripts.most_common(1)[0][0])
        return _SCRIPTS.get(script, f"{script.title()} script")
    words = set(_WORD.findall(text.casefold().replace("\u2019", "'")))
    counts = {language: len(words & known) for language, known in _FUNCTION_WORDS.items()}
    language = max(counts, key=counts.__getitem__)
    return language if language != "English" and counts[language] >= LEAST and counts[language] > counts["English"] else None
