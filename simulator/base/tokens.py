"""Counts tokens without a network: tiktoken's encodings, built from rank files that are part of longspan.

tiktoken itself downloads the ranks when an encoding is first used. NOTICE names the source of longspan's copies, and
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

from longspan.simulator.base.cache import read_or_make
from longspan.simulator.base.errors import InputError

if TYPE_CHECKING:
    from tiktoken import Encoding

__all__ = ["EncodingName", "Tokenizer", "encodings", "split_pieces", "unpack_tokens"]

EncodingName = Literal["cl100k_base", "o200k_base"]
"""The encodings that longspan can count tokens in."""

RANKS = Path(__file__).parents[1] / "data" / "ranks"

PIECE: Final = 100_000
LONGEST: Final = 500_000
"""The most characters to pass to tiktoken in one call: PIECE if the text can be cut there without changing its tokens, otherwise LONGEST.
tiktoken's memory grows with its input, the process dies if memory runs out, and its regular expressions fail at a million characters."""

_CERTAIN: Final = re.compile(r"(?s:.*)\S(?= )")
"""Matches up to the last space after another character. In both encodings, no token crosses such a space, and no token before it depends on
the text after it."""

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
"""tiktoken's regular expressions, which split text into pieces before encoding."""

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
"""Special tokens. They can be decoded, but text is never encoded to them."""

_ASCII: Final = {
    r"\p{L}++": "[A-Za-z]++",
    r"\p{N}{1,3}": "[0-9]{1,3}",
    r"\p{L}": "A-Za-z",
    r"\p{N}": "0-9",
    r"\p{Lu}": "A-Z",
    r"\p{Ll}": "a-z",
    **dict.fromkeys((r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{M}"), ""),
}
"""ASCII equivalents for Python's `re`, which does not support `\\p`."""

LINE: Final = 1_000
"""The most characters of text whose pieces are cached. A line of filler is shorter."""

PIECES: Final = 65_536
"""The most pieces whose token counts are cached. 500,000 tokens of filler have 40,000 different pieces."""

_loading = threading.Lock()  # protects `encodings`, which threads share
encodings: Final[dict[str, Encoding]] = {}
"""The encodings loaded in this process, by name."""


@final
class Tokenizer:
    """Counts the tokens of text in one encoding. Special tokens in the text count as ordinary text.

    Loading an encoding takes about 0.2 s, once per process. Thread-safe. Raises InputError for an unknown encoding.
    """

    def __init__(self, name: EncodingName = "cl100k_base") -> None:
        if name not in get_args(EncodingName):
            raise InputError(f"unknown tokenizer {name!r}; choose one of {', '.join(get_args(EncodingName))}")
        self._name: EncodingName = name
        self._encoding = _encoding(name)

    @property
    def name(self) -> EncodingName:
        return self._name

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`. Never raises: invalid Unicode (a lone surrogate) counts as U+FFFD."""
        if len(text) <= PIECE:  # the usual case: filler is counted line by line
            return len(self._encoding.encode_ordinary(text))
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in split_pieces(text))

    def count_pieces(self, text: str) -> int:
        """Return the same as `count`. Takes two thirds of the time if the words of `text` have been counted before."""
        if len(text) > LINE or not text.isascii():
            return self.count(text)
        split, counted = _load_piece_counts(self._name)
        return sum(map(counted.__getitem__, split(text)))

    def encode(self, text: str) -> list[int]:
        """Encode `text`. Invalid Unicode (a lone surrogate) is encoded as U+FFFD."""
        return [token for piece in split_pieces(text) for token in self._encoding.encode_ordinary(piece)]

    def decode(self, tokens: list[int]) -> str:
        """Decode `tokens`. Bytes that are not valid UTF-8, such as half a character, become U+FFFD."""
        return self._encoding.decode(tokens)

    def __repr__(self) -> str:
        return f"Tokenizer({self._name!r})"


def split_pieces(text: str) -> Iterator[str]:
    """Yield `text` in pieces whose concatenated tokens are the tokens of `text`.

    Text without a space in LONGEST characters, such as an image in base64, is cut anyway. This changes the number of tokens by a few.
    """
    begin = 0
    while len(text) - begin > PIECE:
        found = _CERTAIN.match(text, begin, begin + PIECE) or _CERTAIN.match(text, begin, begin + LONGEST)
        if found is None and len(text) - begin <= LONGEST:
            break
        end = found.end() if found is not None else begin + LONGEST
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _encoding(name: EncodingName) -> Encoding:
    """Return tiktoken's encoding, loaded once per process."""
    with _loading:
        if name not in encodings:
            encodings[name] = _load(name)
        return encodings[name]


@final
class _Pieces(dict[str, int]):
    """The token counts of an encoding's pieces, computed on first use."""

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self._encode = encoding.encode_ordinary

    def __missing__(self, piece: str) -> int:
        count = len(self._encode(piece))
        if len(self) < PIECES:
            self[piece] = count
        return count


@cache
def _load_piece_counts(name: EncodingName) -> tuple[Callable[[str], list[str]], _Pieces]:
    """Return a function that splits ASCII text as an encoding does, and the counts of its pieces. Shared by all of the process's
    tokenizers."""
    pattern = _PATTERNS[name]
    for term, ours in _ASCII.items():
        pattern = pattern.replace(term, ours)
    return re.compile(pattern, re.ASCII).findall, _Pieces(_encoding(name))


def _load(name: EncodingName) -> Encoding:
    from tiktoken import Encoding

    return Encoding(name, pat_str=_PATTERNS[name], mergeable_ranks=_ranks(name), special_tokens=_SPECIAL[name])


def _ranks(name: EncodingName) -> dict[bytes, int]:
    """Return the ranks of an encoding's tokens."""
    packed = (RANKS / f"{name}.xz").read_bytes()
    kept = f"{name}-{hashlib.sha256(packed).hexdigest()[:16]}-{sys.implementation.cache_tag}.ranks"
    tokens: list[bytes] = marshal.loads(read_or_make(kept, lambda: marshal.dumps(unpack_tokens(packed))))  # noqa: S302
    return dict(zip(tokens, range(len(tokens)), strict=True))


def unpack_tokens(packed: bytes) -> list[bytes]:
    """Return the tokens in a packed file. Each is stored as one byte for its length, followed by its bytes."""
    import lzma

    records = lzma.decompress(packed)
    tokens, at = [], 0
    while at < len(records):
        end = at + 1 + records[at]
        tokens.append(records[at + 1 : end])
        at = end
    return tokens
