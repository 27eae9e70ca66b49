"""Pack one of tiktoken's rank files for simulator/data/ranks.

usage: python scripts/pack_ranks.py FILE.tiktoken FILE.xz

The packed file is xz over one record per token, in the order of the ranks: a byte with its length, then its bytes.
Prints the input's SHA-256, for NOTICE. `longspan.simulator.base.tokens` reads the records.
"""

from __future__ import annotations

import hashlib
import lzma
import sys
from base64 import b64decode
from pathlib import Path


def pack(ranks: bytes) -> bytes:
    """The packed form of a rank file. Raises ValueError where its ranks are not 0, 1, 2 ... or a token is over 255 bytes."""
    records = bytearray()
    for expected, line in enumerate(ranks.splitlines()):
        token, _, rank = line.partition(b" ")
        if int(rank) != expected:
            raise ValueError(f"rank {expected} is missing: found {int(rank)} in its place")
        raw = b64decode(token, validate=True)
        records.append(len(raw))  # ValueError above 255
        records += raw
    return lzma.compress(bytes(records), preset=9 | lzma.PRESET_EXTREME)


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: python {sys.argv[0]} FILE.tiktoken FILE.xz")
    ranks = Path(sys.argv[1]).read_bytes()
    packed = pack(ranks)
    Path(sys.argv[2]).write_bytes(packed)
    print(f"{hashlib.sha256(ranks).hexdigest()}  {len(ranks)} -> {len(packed)} bytes")


if __name__ == "__main__":
    main()
