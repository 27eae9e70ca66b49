"""Token counting without a network: tiktoken's encodings, built from rank files that come with longspan.

tiktoken itself downloads the ranks when an encoding is first used. NOTICE names the source of longspan's copies, which
`scripts/pack_ranks.py` packs.
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
"""The encodings that longspan can count with."""

PHRASES = 100_000
"""The largest number of phrases whose counts are remembered."""

LONG = 100
"""The length, in characters, of the longest phrase whose count is remembered."""

CLOSING = '?!.,:;")]\n'
"""Characters that may follow the last word of a phrase and are counted separately."""

RANKS = Path(__file__).parent / "data" / "ranks"

BLANKS = 500_000
"""The longest run of white space passed to tiktoken at once, whose regular expressions fail at a million characters."""

BEGINS = "\r"
"""Marks a word at the start of a line. It does not occur in texts that are counted by words."""

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
"""The regular expressions by which tiktoken splits a text before it encodes the pieces."""

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
"""Special tokens, which can be decoded but which no text is encoded to."""

_SPACES = re.compile(r"[^\S \n]")
_NO_SPACES = bytes(code for code in range(128) if not _SPACES.match(chr(code)))

_loading = threading.Lock()  # the table below is shared by all threads
_encodings: dict[str, Encoding] = {}


@final
class Tokenizer:
    """Counts the tokens of a text in one encoding. Special tokens in a text are treated as ordinary text.

    Loading takes about 0.2 s, once per process and encoding. Safe to use from any thread.

    Raises InputError for an unknown encoding.
    """

    def __init__(self, name: EncodingName = "cl100k_base") -> None:
        if name not in get_args(EncodingName):
            raise InputError(f"unknown tokenizer {name!r}; choose one of {', '.join(get_args(EncodingName))}")
        self._name: EncodingName = name
        self._encoding = _encoding(name)
        self._first, self._later = _counts(self._encoding)
        self.count_piece: Callable[[str], int] = self._first.__getitem__
        """Like `count_plain`, but remembers the whole piece: for pieces of text that come often. The counts of a text's pieces add up
        if each piece begins with a space, or with punctuation (except an apostrophe) after an ASCII letter or digit."""

    @property
    def name(self) -> EncodingName:
        return self._name

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`. Never raises: invalid Unicode (a lone surrogate) counts as U+FFFD.

        Each word is counted once per process. In both encodings a piece that is encoded may begin with a single space but
        never continues past one. So the counts of words add up, unless the text has white space other than single spaces and
        line breaks.
        """
        if "  " in text or " \n" in text or _other_space(text):
            return _encoded(self._encoding, text)
        if "\n" in text and "\n\n" not in text and "\n/" not in text:
            text = text.replace("\n", f"\n {BEGINS}")  # count lines separately, or the words around each break would count as one new word
        return self.count_plain(text)

    def count_plain(self, text: str) -> int:
        """Count the tokens of a text whose only white space is single spaces between words, and line breaks not after a space."""
        first, *later = text.split(" ")
        return self._first[first] + sum(map(self._later.__getitem__, later))

    def encode(self, text: str) -> list[int]:
        """Encode `text`. Invalid Unicode (a lone surrogate) is read as U+FFFD."""
        return [token for piece in _pieces(text) for token in self._encoding.encode_ordinary(piece)]

    def decode(self, tokens: list[int]) -> str:
        """Decode `tokens`. Bytes that are not valid UTF-8, such as half a character, become U+FFFD."""
        return self._encoding.decode(tokens)

    def __repr__(self) -> str:
        return f"Tokenizer({self._name!r})"


class _Counts(dict[str, int]):
    """Token counts by phrase, each computed at first use: of phrases at the start of a text or, given `first`, after a space.

    Lines are counted separately, and so is the punctuation after a last word: see `_cut`.
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
    """Return where a phrase can be split so that the counts of both parts add up, or 0.

    An encoded piece ends with its line breaks, unless a slash or white space follows. It also ends with a letter or digit before
    punctuation, except for an apostrophe.
    """
    word = phrase.rstrip(CLOSING)
    if len(word) < len(phrase) and word[-1:].isascii() and word[-1:].isalnum():
        return len(word)
    begin = phrase.rstrip("\n").rfind("\n") + 1
    return begin if begin and phrase[begin] != "/" else 0


def _other_space(text: str) -> bool:
    """Return whether it has white space other than spaces and line breaks."""
    if text.isascii():
        return bool(text.encode().translate(None, _NO_SPACES))  # much faster than a search
    return _SPACES.search(text) is not None


def _encoded(encoding: Encoding, text: str) -> int:
    return sum(len(encoding.encode_ordinary(piece)) for piece in _pieces(text))


@cache
def _counts(encoding: Encoding) -> tuple[_Counts, _Counts]:
    """Return the counts of phrases at the start of a text and after a space, shared by all conversations of a process."""
    first = _Counts(encoding)
    return first, _Counts(encoding, first)


def _pieces(text: str) -> Iterator[str]:
    """Yield `text` in pieces that have at most BLANKS characters of white space in a row."""
    begin = 0
    for run in re.finditer(r"\s+", text) if len(text) > BLANKS else ():
        for cut in range(run.start() + BLANKS, run.end(), BLANKS):
            yield text[begin:cut]
            begin = cut
    yield text[begin:]


def _encoding(name: EncodingName) -> Encoding:
    """Return tiktoken's encoding, loaded once per process."""
    with _loading:
        if name not in _encodings:
            _encodings[name] = _load(name)
        return _encodings[name]


def _load(name: EncodingName) -> Encoding:
    from tiktoken import Encoding

    return Encoding(name, pat_str=_PATTERNS[name], mergeable_ranks=_ranks(name), special_tokens=_SPECIAL[name])


def _ranks(name: EncodingName) -> dict[bytes, int]:
    """Return the ranks of an encoding's tokens."""
    packed = (RANKS / f"{name}.xz").read_bytes()
    kept = f"{name}-{hashlib.sha256(packed).hexdigest()[:16]}-{sys.implementation.cache_tag}.ranks"
    tokens: list[bytes] = marshal.loads(cached(kept, lambda: marshal.dumps(_unpacked(packed))))  # noqa: S302
    return dict(zip(tokens, range(len(tokens)), strict=True))


def _unpacked(packed: bytes) -> list[bytes]:
    """Return the tokens in a packed file. Each is one byte with its length, then its bytes."""
    import lzma

    records = lzma.decompress(packed)
    tokens, at = [], 0
    while at < len(records):
        end = at + 1 + records[at]
        tokens.append(records[at + 1 : end])
        at = end
    return tokens
