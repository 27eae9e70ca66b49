"""Texts as vectors: the embedders that memories are found with.

hash            words and parts of words, hashed; offline, the same everywhere
minilm          all-MiniLM-L6-v2 as Chroma brings it; downloaded once
openai/MODEL    OpenAI's embeddings, or those of a server that speaks its API
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import log
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, final

import trio

from longspan.agents.base import AgentError, InputError, Usage
from longspan.agents.models.api import dig, events, used
from longspan.agents.models.limits import TransientError
from longspan.agents.models.openai import OPENAI
from longspan.agents.models.provider import Provider, ProviderOptions
from longspan.simulator.errors import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

__all__ = ["THREADS", "DryEmbedder", "Embedded", "Embedder", "HashEmbedder", "make_embedder"]

THREADS: Final = trio.CapacityLimiter(4)
"""Threads that embed and search: their own, so that agents that block threads do not keep them waiting."""

DIMENSIONS: Final = 512
"""Of hashed vectors. Fewer, and words begin to share a place too often; with more nothing more is found."""

COMMON: Final = 0.1
"""What a word counts that says little, such as "the", against 1 for others."""

PARTS: Final = 1.0
"""What a word's parts count together, so that "harbours" is near "harbour"."""

LENGTHS: Final = (4, 5)
"""Characters of such a part."""

STOP: Final = frozenset(
    """a about above actually after again ago all also although always am an and another any anymore anyway are as at away back be
    because been before being below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't done
    down during each either else ever every everything few finally first for from further get gets getting go going gone got had has
    have having he hello her here here's hers hey hi him his how however i i'd i'll i'm i've if in instead into is isn't it it's its
    itself just let let's longer lot made make makes many may maybe me might mine more moreover most much must my myself never new next
    no nor not nothing now of off oh ok okay on once one ones only onto or other others our ours out over own per perhaps please quite
    rather really right same shall she should since so some something soon still such sure than thank thanks that that's the their
    theirs them themselves then there there's these they thing things this those though through thus till to today together too under
    until up upon us used very want wanted was wasn't way we we're well were what what's when where whether which while who who's whom
    whose why will with without won't would wouldn't yes yet you you'd you'll you're you've your yours yourself far given giving give
    gave said say saying says tell telling told mention mentioned remember remind recall know currently lately recently nowadays days
    moment present several later afterwards last earlier use using""".split()
)
"""Words that say little. Vectors depend on this list: do not change it."""

WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

BATCH: Final = 100
"""Texts in one request for embeddings."""


class Embedded(NamedTuple):
    """Vectors of length 1, one a row, and the tokens that their provider counted (0: nobody has to be paid)."""

    vectors: Vectors
    tokens: int


class Embedder(Protocol):
    """Makes vectors of texts: near ones for texts that are about the same."""

    name: str

    @property
    def model(self) -> str | None:
        """The model that is paid for, as PROVIDER/MODEL; None where it costs nothing."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """A vector for each text, of which there is at least one. Raises AgentError."""
        ...


def make_embedder(name: str, url: str | None = None) -> Embedder:
    """The embedder that `name` names; `url` is the base address for `openai/MODEL`. Raises InputError."""
    kind, _, model = name.partition("/")
    if kind == "openai" and model:
        return OpenAIEmbedder(model, url)
    if url is not None:
        raise InputError(f"embedder_url is for embedder=openai/MODEL, got embedder={name!s:.60}")
    if name == "hash":
        return HashEmbedder()
    if name == "minilm":
        return MiniLMEmbedder()
    raise InputError(f"there is no embedder {name!r:.60}; there are hash, minilm, openai/MODEL")


@final
class HashEmbedder:
    """Every word, and every part of it of four or five characters, has a place and a sign in the vector by its CRC-32; a
    word said n times counts 1 + ln n. No weights by how rare a word is: those would change as memories are added."""

    name = "hash"
    model = None

    async def embed(self, texts: Sequence[str]) -> Embedded:
        return Embedded(await trio.to_thread.run_sync(self._embed, list(texts), limiter=THREADS), 0)

    def _embed(self, texts: list[str]) -> Vectors:
        import numpy as np

        vectors = np.stack([_hashed(text) for text in texts])
        vectors[~vectors.any(axis=1), 0] = 1.0  # nothing in it: a place of its own, so that its length is 1 too
        return _unit(vectors)


def _hashed(text: str) -> Any:
    import numpy as np

    words = Counter(word.casefold() for word in WORD.findall(text))
    if not words:
        return np.zeros(DIMENSIONS)
    features = [_features(word[:60]) for word in words]
    weights = np.repeat([1 + log(times) for times in words.values()], [len(places) for places, _ in features])
    places, values = (np.concatenate(column) for column in zip(*features, strict=True))
    return np.bincount(places, values * weights, minlength=DIMENSIONS)


@lru_cache(maxsize=65_536)
def _features(word: str) -> tuple[Any, Any]:
    """Where a word goes in a vector, and with what values."""
    import numpy as np

    if word in STOP:
        found = [_place(f"word {word}", COMMON)]
    else:
        framed = f"<{word}>"
        parts = [framed[at : at + length] for length in LENGTHS for at in range(len(framed) - length + 1)]
        found = [_place(f"word {word}", 1.0), *(_place(f"part {part}", PARTS / len(parts) ** 0.5) for part in parts)]
    places, values = zip(*found, strict=True)
    return np.array(places), np.array(values)


def _place(feature: str, value: float) -> tuple[int, float]:
    hashed = zlib.crc32(feature.encode("utf-8", "replace"))
    return hashed % DIMENSIONS, value if hashed >> 31 else -value


@final
class DryEmbedder:
    """Stands in for an embedder that is paid for: hashes, and counts the tokens that it would have used. For estimates."""

    def __init__(self, model: str | None, count: Callable[[str], int]) -> None:
        self.name, self.model = "dry", model
        self._hash = HashEmbedder()
        self._count = count

    async def embed(self, texts: Sequence[str]) -> Embedded:
        vectors, _ = await self._hash.embed(texts)
        return Embedded(vectors, sum(map(self._count, texts)))


@final
class MiniLMEmbedder:
    """all-MiniLM-L6-v2 in Chroma's packing, run by onnxruntime; it reads the first 256 word pieces of a text.

    Made, it makes sure that the model is there, and downloads it where it is not. Raises InputError where that fails.
    """

    name = "minilm"
    model = None

    def __init__(self) -> None:
        try:
            from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

            self._function: Any = ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"])
            self._function._download_model_if_not_exists()
        except Exception as error:
            raise InputError(
                f"embedder=minilm: its model is not here and cannot be fetched ({one_line(error, 120)}); "
                "go on once with a network, or take embedder=hash or embedder=openai/MODEL"
            ) from error

    async def embed(self, texts: Sequence[str]) -> Embedded:
        try:
            return Embedded(await trio.to_thread.run_sync(self._embed, list(texts), limiter=THREADS), 0)
        except Exception as error:
            raise AgentError(f"embedder minilm failed: {one_line(error)}") from error

    def _embed(self, texts: list[str]) -> Vectors:
        import numpy as np

        return _unit(np.stack(self._function(texts)))


@final
class OpenAIEmbedder:
    """Asks an embeddings API like OpenAI's, under the limits of the models behind the same address.

    Raises InputError where the library, the key or a usable address is missing.
    """

    def __init__(self, model: str, url: str | None = None) -> None:
        self._model = model
        self._provider = Provider(OPENAI, model, ProviderOptions(base_url=url))
        self.name = self.model = self._provider.name

    async def embed(self, texts: Sequence[str]) -> Embedded:
        import numpy as np

        parts: list[Vectors] = []
        tokens = 0
        for at in range(0, len(texts), BATCH):
            part, usage = await self._provider.call(partial(self._ask, texts[at : at + BATCH]), tokens=sum(map(len, texts)) // 4)
            parts.append(part)
            tokens += usage.input_tokens
        if len({part.shape[1] for part in parts}) > 1:
            raise AgentError(f"{self.name}: its vectors do not all have the same length")
        return Embedded(np.concatenate(parts), tokens)

    async def _ask(self, texts: Sequence[str], client: Any) -> tuple[Vectors, Usage]:
        """One request. Servers may answer anything; the library does not check it."""
        import numpy as np

        create: Any = client.embeddings.with_streaming_response.create
        async with create(model=self._model, input=list(texts), encoding_format="float") as response:
            (answer,) = events(await response.read(), stream=False)
        data = dig(answer, "data")
        try:
            rows = {dig(each, "index"): dig(each, "embedding") for each in data} if isinstance(data, list) else {}
            vectors = np.array([rows[number] for number in range(len(texts))], dtype=np.float32)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise TransientError("gave something else than a vector for each text") from None
        if vectors.ndim != 2 or not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise TransientError("gave vectors that are not of numbers, or have no direction")
        counted = used(inputs=dig(answer, "usage", "prompt_tokens"), cached=0, output=0)
        return _unit(vectors), counted or Usage(sum(map(len, texts)) // 4)


def _unit(vectors: Any) -> Vectors:
    """Rows of length 1."""
    import numpy as np

    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit
