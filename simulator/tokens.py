"""Counting tokens, without a network: tiktoken's encodings, made from rank files packed beside this module.

tiktoken itself would fetch the ranks when an encoding is first used. NOTICE says where ours come from, and
`scripts/pack_ranks.py` packs them.
"""

from __future__ import annotations

import hashlib
import marshal
import re
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, final, get_args

from longspan.simulator.cache import cached
from longspan.simulator.errors import InputError

if TYPE_CHECKING:
    from tiktoken import Encoding

__all__ = ["EncodingName", "Tokenizer"]

EncodingName = Literal["cl100k_base", "o200k_base"]
"""The encodings that longspan can count in."""

PHRASES = 100_000
"""Phrases whose counts are remembered at most."""

LONG = 100
"""Characters of the longest phrase whose count is remembered."""

CLOSING = '?!.,:;")]\n'
"""What may follow the last word of a phrase and counts apart from it."""

RANKS = Path(__file__).parent / "data" / "ranks"

BLANKS = 500_000
"""The longest run of white space given to tiktoken in one piece: its regular expressions abort the call at a million."""

BEGINS = "\r"
"""What a word has before it that begins a line. No text has it that is counted by words."""

_PATTERNS: Final[dict[EncodingName, str]] = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
"""How tiktoken splits a text before it makes tokens of the pieces."""

_SPECIAL: Final[dict[EncodingName, dict[str, int]]] = {
    "cl100k_base": {
        "<|endoftext|>": 100257,
        "<|fim_prefix|>": 100258,
        "<|fim_middle|>": 100259,
        "<|fim_suffix|>": 100260,
        "<|endofprompt|>": 100276,
    },
    "o200k_base": {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
}
"""Tokens that no text encodes to here, though they can be decoded."""

_SPACES = re.compile(r"[^\S \n]")
_NO_SPACES = bytes(code for code in range(128) if not _SPACES.match(chr(code)))

_loading = threading.Lock()  # the table below is the process's
_encodings: dict[str, Encoding] = {}


@final
class Tokenizer:
    """Counts text in tokens of one encoding. Special tokens in a text are taken as ordinary text.

    Loading takes about a fifth of a second, once per process and encoding. Safe to use from any thread.

    Raises InputError for an encoding longspan does not have.
    """

    def __init__(self, name: EncodingName = "cl100k_base") -> None:
        if name not in get_args(EncodingName):
            raise InputError(f"unknown tokenizer {name!r}: take one of {', '.join(get_args(EncodingName))}")
        self._name: EncodingName = name
        self._encoding = _encoding(name)
        self._first, self._later = _counts(self._encoding)
        self.count_piece: Callable[[str], int] = self._first.__getitem__
        """`count` of a piece that comes often, remembered as a whole; its only white space is as that of `count_plain`. Pieces of a
        text count apart where one begins with a space, or with punctuation, but for an apostrophe, after a letter or digit of ASCII's."""

    @property
    def name(self) -> EncodingName:
        return self._name

    def count(self, text: str) -> int:
        """How many tokens `text` is. Never raises: what is no valid Unicode (a lone surrogate) counts as U+FFFD.

        Each word is counted once per process: in either encoding a piece that is made tokens of never goes on beyond a single
        space, it begins with it. So a text is the sum of its words, unless it holds more white space than that and line breaks.
        """
        if "  " in text or " \n" in text or _other_space(text):
            return _encoded(self._encoding, text)
        if "\n" in text and "\n\n" not in text and "\n/" not in text:
            text = text.replace("\n", f"\n {BEGINS}")  # lines count apart: else the words around each break were one, and a new one
        return self.count_plain(text)

    def count_plain(self, text: str) -> int:
        """The same, for text of which it is known that its only white space is one space between two words, and line breaks
        that do not follow a space."""
        first, *later = text.split(" ")
        return self._first[first] + sum(map(self._later.__getitem__, later))

    def encode(self, text: str) -> list[int]:
        """The tokens of `text`; what is no valid Unicode (a lone surrogate) is read as U+FFFD."""
        return [token for piece in _pieces(text) for token in self._encoding.encode_ordinary(piece)]

    def decode(self, tokens: list[int]) -> str:
        """The text of `tokens`; bytes that are no UTF-8, as in half a character, become U+FFFD."""
        return self._encoding.decode(tokens)

    def __repr__(self) -> str:
        return f"Tokenizer({self._name!r})"


class _Counts(dict[str, int]):
    """Counts by phrase, each made when it is first asked for: of what a text begins with, or (`first` being those) of what
    comes after a space.

    Lines count apart, and so does the punctuation after a last word: see `_cut`.
    """

    def __init__(self, encoding: Encoding, first: _Counts | None = None) -> None:
        self._encoding = encoding
        self._first = self if first is None else first
        self._before = "" if first is None else " "

    def __missing__(self, phrase: str) -> int:
        count = self._counted(phrase)
        if len(phrase) <= LONG:
            if len(self) >= PHRASES:
                self.clear()
            self[phrase] = count
        return count

    def _counted(self, phrase: str) -> int:
        if phrase.startswith(BEGINS):
            return self._first[phrase.removeprefix(BEGINS)]
        if len(phrase) <= LONG and (cut := _cut(phrase)):
            return self[phrase[:cut]] + self._first[phrase[cut:]]
        return _encoded(self._encoding, self._before + phrase)


def _cut(phrase: str) -> int:
    """Where a phrase falls into two that count apart, or 0. A piece that is made tokens of ends with its line breaks, if a slash
    or white space does not follow, and with a letter or digit that punctuation follows, but for an apostrophe."""
    word = phrase.rstrip(CLOSING)
    if len(word) < len(phrase) and word[-1:].isascii() and word[-1:].isalnum():
        return len(word)
    begin = phrase.rstrip("\n").rfind("\n") + 1
    return begin if begin and phrase[begin] != "/" else 0


def _other_space(text: str) -> bool:
    """Whether it has white space other than spaces and line breaks."""
    if text.isascii():
        return bool(text.encode().translate(None, _NO_SPACES))  # much faster than to look for each
    return _SPACES.search(text) is not None


def _encoded(encoding: Encoding, text: str) -> int:
    return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(text))


@cache
def _counts(encoding: Encoding) -> tuple[_Counts, _Counts]:
    """Those of what a text begins with and of what comes after a space: all conversations of a process share them."""
    first = _Counts(encoding)
    return first, _Counts(encoding, first)


def _pieces(text: str) -> Iterator[str]:
    """`text` in one piece, or cut where its white space would run on for more than BLANKS characters."""
    begin = 0
    for run in re.finditer(r"\s+", text) if len(text) > BLANKS else ():
        for cut in range(run.start() + BLANKS, run.end(), BLANKS):
            yield text[begin:cut]
            begin = cut
    yield text[begin:]


def _encoding(name: EncodingName) -> Encoding:
    """tiktoken's encoding, loaded once per process."""
    with _loading:
        if name not in _encodings:
            _encodings[name] = _load(name)
        return _encodings[name]


def _load(name: EncodingName) -> Encoding:
    from tiktoken import Encoding

    return Encoding(name, pat_str=_PATTERNS[name], mergeable_ranks=_ranks(name), special_tokens=_SPECIAL[name])


def _ranks(name: EncodingName) -> dict[bytes, int]:
    """An encoding's tokens, each with its rank."""
    packed = (RANKS / f"{name}.xz").read_bytes()
    kept = f"{name}-{hashlib.sha256(packed).hexdigest()[:16]}-{sys.implementation.cache_tag}.ranks"
    tokens: list[bytes] = marshal.loads(cached(kept, lambda: marshal.dumps(_unpacked(packed))))  # noqa: S302
    return dict(zip(tokens, range(len(tokens)), strict=True))


def _unpacked(packed: bytes) -> list[bytes]:
    """The tokens in a packed file: each a byte with its length, then its bytes."""
    import lzma

    records = lzma.decompress(packed)
    tokens, at = [], 0
    while at < len(records):
        end = at + 1 + records[at]
        tokens.append(records[at + 1 : end])
        at = end
    return tokens
