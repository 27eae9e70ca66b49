"""Embedders, which turn texts into vectors for retrieval.

local                  all-MiniLM-L6-v2 from the extra `local`
minilm                 the same as packaged by Chroma; downloaded once
wordllama              the mean of token vectors, from the package wordllama
openai/MODEL           embeddings from OpenAI or a server that speaks its API
gguf/PATH              a model from a GGUF file, with llama.cpp
python:module:Class    a user's class
hash                   hashed words and parts of words; the same on every machine, for tests
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from inspect import iscoroutinefunction
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, final

import trio

from longspan.agents.base import AgentError, Danger, InputError, Usage
from longspan.agents.models.api import dig_value, parse_events, parse_usage
from longspan.agents.models.limits import TransientError
from longspan.agents.models.openai import OPENAI
from longspan.agents.models.provider import Provider, ProviderOptions
from longspan.agents.models.weights import MINILM, installed_path
from longspan.simulator.base.blame import at_line
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.base.terminal import complain
from longspan.simulator.contract.agent import will_be_asked
from longspan.simulator.contract.plugins import find_class
from longspan.simulator.subject.purse import note_used

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

__all__ = [
    "THREADS",
    "DryEmbedder",
    "EmbeddedTexts",
    "Embedder",
    "HashEmbedder",
    "choose_embedder_option",
    "default_embedder",
    "embedder_address",
    "embedder_danger",
    "make_embedder",
    "tell_meaning",
]

THREADS: Final = trio.CapacityLimiter(4)
"""Separate threads for embedding and searching, so that agents that block threads do not delay them."""

DIMENSIONS: Final = 512
"""The dimensions of hashed vectors. With fewer, too many words collide; more do not improve retrieval."""

STOP_WEIGHT: Final = 0.1
"""The weight of a stop word, such as "the". Other words have weight 1."""

PARTS_WEIGHT: Final = 1.0
"""The total weight of a word's parts, which move "harbours" close to "harbour"."""

PART_LENGTHS: Final = (4, 5)
"""The lengths of these parts in characters."""

STOP_WORDS: Final = frozenset(
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
"""Words with little meaning. Vectors depend on this list: do not change it."""

WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

PROVIDERS: Final = {"openai": "openai/text-embedding-3-small"}
"""The default embedders of providers that offer embeddings."""

MEANING: Final = (
    f"embedder=hash finds only what shares words, or parts of them, with the question; embedder=local ({install_extra('local')}) or "
    "embedder=openai/MODEL also finds what means the same"
)
"""Advice for users of `hash`."""

EMBEDDERS: Final = "local, minilm, wordllama, openai/MODEL, gguf/PATH, python:module:Class or hash"

PACKAGED: Final = {
    "local": ("longspan.agents.memory.ltm.minilm", "load_minilm"),
    "wordllama": ("longspan.agents.memory.ltm.wordllama", "load_wordllama"),
}
"""The module and the function that load an embedder with weights in an installed package."""

OFFLINE: Final = (
    f"connect to a network once, or use embedder=local ({install_extra('local')}), embedder=wordllama, embedder=gguf/PATH, "
    "embedder=openai/MODEL, or embedder=hash, which finds only what shares words"
)
"""Alternatives if Chroma's model cannot be fetched."""

BATCH: Final = 100
"""Texts in one request for embeddings."""


class EmbeddedTexts(NamedTuple):
    """Unit vectors, one per row, and the tokens that the provider counted (0 if it is free)."""

    vectors: Vectors
    tokens: int


class Embedder(Protocol):
    """A model that maps texts to vectors, with similar texts close together."""

    name: str

    @property
    def model(self) -> str | None:
        """The model that costs money, as PROVIDER/MODEL; None if it is free."""
        ...

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        """Return a vector for each of `texts`, which must not be empty. Raises AgentError."""
        ...


def default_embedder(model: str) -> str:
    """Return the default embedder for a model, by its name PROVIDER/MODEL: the provider's, or else `minilm`.

    A model at another address than its vendor's has another name, so nothing is sent to the vendor.
    """
    return PROVIDERS.get(model.partition("/")[0], "minilm")


def choose_embedder_option() -> Mapping[str, str]:
    """Return a new run's option that names the installed embedder, nothing if `minilm` must be downloaded."""
    able = all(find_spec(module) is not None for module in ("onnxruntime", "tokenizers")) and installed_path(MINILM) is not None
    return {"embedder": "local"} if able else {}


def tell_meaning(embedder: Embedder) -> None:
    """Warn once about `hash` if the run will ask it anything."""
    if isinstance(embedder, HashEmbedder) and will_be_asked():
        _say_once(MEANING)


@cache
def _say_once(text: str) -> None:
    complain(text)


def make_embedder(name: str, url: str | None = None) -> Embedder:
    """Return the embedder called `name`. `url` is the base address for `openai/MODEL`. Raises InputError."""
    kind, _, model = name.partition("/")
    if kind == "openai" and model:
        return OpenAIEmbedder(model, url)
    if url is not None:
        raise InputError(f"embedder_url requires embedder=openai/MODEL, got embedder={name!s:.60}")
    if name == "hash":
        return HashEmbedder()
    if name == "minilm":
        return ChromaMiniLM()
    if name in PACKAGED:
        return PackagedEmbedder(name)
    if kind == "gguf" and model:
        return GgufEmbedder(model)
    if name.startswith("python:"):
        return PythonEmbedder(name)
    raise InputError(f"unknown embedder {name!r:.60}; expected {EMBEDDERS}")


@final
class HashEmbedder:
    """An embedder that hashes words, and their parts of four or five characters, to a dimension and a sign by CRC-32.

    A word that occurs n times counts 1 + ln n. Rarity has no weight, since it would change as memories are added.
    """

    name = "hash"
    model = None

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        return EmbeddedTexts(await trio.to_thread.run_sync(self._embed, list(texts), limiter=THREADS), 0)

    def _embed(self, texts: list[str]) -> Vectors:
        import numpy as np

        vectors = np.stack([_hash_vector(text) for text in texts])
        vectors[~vectors.any(axis=1), 0] = 1.0  # an empty text also needs a unit vector
        return _unit(vectors)


def _hash_vector(text: str) -> Any:
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
    """Return a word's dimensions in a vector and its values there."""
    import numpy as np

    if word in STOP_WORDS:
        features = [_place(f"word {word}", STOP_WEIGHT)]
    else:
        framed = f"<{word}>"
        parts = [framed[at : at + length] for length in PART_LENGTHS for at in range(len(framed) - length + 1)]
        features = [_place(f"word {word}", 1.0), *(_place(f"part {part}", PARTS_WEIGHT / len(parts) ** 0.5) for part in parts)]
    places, values = zip(*features, strict=True)
    return np.array(places), np.array(values)


def _place(feature: str, value: float) -> tuple[int, float]:
    hashed = zlib.crc32(feature.encode("utf-8", "replace"))
    return hashed % DIMENSIONS, value if hashed >> 31 else -value


@final
class DryEmbedder:
    """A stand-in for a paid embedder, for estimates: it hashes, and counts the tokens that would have been used."""

    def __init__(self, model: str | None, count: Callable[[str], int]) -> None:
        self.name, self.model = "dry", model
        self._hash = HashEmbedder()
        self._count = count

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        vectors, _ = await self._hash.embed(texts)
        return EmbeddedTexts(vectors, sum(map(self._count, texts)))


@final
class ChromaMiniLM:
    """all-MiniLM-L6-v2 as packaged by Chroma, run by onnxruntime. It reads the first 256 word pieces.

    The constructor downloads the model once and announces it, unless the run will ask nothing. Raises InputError if that fails.
    """

    name = "minilm"
    model = None

    def __init__(self) -> None:
        try:
            from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

            self._function: Any = ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"])
        except Exception as error:  # a package is missing or broken
            raise InputError(f"embedder=minilm needs an extra: {install_extra('ltm')} ({one_line(error, 120)})") from error
        if not will_be_asked():
            return
        try:
            if not (self._function.DOWNLOAD_PATH / self._function.EXTRACTED_FOLDER_NAME / "model.onnx").is_file():
                _say_once(f"embedder minilm: its model (80 MB) is fetched once and kept in {self._function.DOWNLOAD_PATH}")
            self._function._download_model_if_not_exists()
        except Exception as error:
            raise InputError(f"embedder=minilm: its model cannot be downloaded ({one_line(error, 120)}); {OFFLINE}") from error

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        return await _compute_vectors(self.name, self._function, texts)


@final
class PackagedEmbedder:
    """A model with weights in an installed package: `local` or `wordllama`. Raises InputError if they cannot be used."""

    model = None

    def __init__(self, name: str) -> None:
        self.name = name
        module, load = PACKAGED[name]
        self._model: Any = getattr(import_module(module), load)(asked=will_be_asked())

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        return await _compute_vectors(self.name, self._model.rows, texts)


@final
class PythonEmbedder:
    """A user's class with a method `embed` that takes a list of texts and returns a row of numbers for each; it may be async.

    Raises InputError if the class does not exist.
    """

    model = None

    def __init__(self, name: str) -> None:
        self.name = name
        made = find_class(name.removeprefix("python:"))
        try:
            embedder: Any = made()
        except Exception as error:
            raise InputError(f"embedder={name}: it cannot be made: {one_line(error)}{at_line(error)}") from error
        if not callable(getattr(embedder, "embed", None)):
            raise InputError(f"embedder={name}: it has no method embed, which takes a list of texts and returns a vector for each")
        self._embed: Any = embedder.embed

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        if not iscoroutinefunction(self._embed):
            return await _compute_vectors(self.name, self._embed, texts)
        try:
            rows = await self._embed(list(texts))
        except Exception as error:
            raise AgentError(f"embedder {self.name} failed: {one_line(error)}") from error
        return await _compute_vectors(self.name, lambda _: rows, texts)


async def _compute_vectors(name: str, compute: Callable[[list[str]], Any], texts: Sequence[str]) -> EmbeddedTexts:
    """Return the vectors from `compute`, run in a thread. Raises AgentError for a failure or invalid vectors."""

    def work() -> Vectors:
        import numpy as np

        try:
            rows = np.asarray(compute(list(texts)), dtype=np.float32)
        except AgentError:
            raise
        except Exception as error:
            raise AgentError(f"embedder {name} failed: {one_line(error)}") from error
        if rows.ndim != 2 or len(rows) != len(texts) or not rows.shape[1]:
            raise AgentError(f"embedder {name} gave an array of shape {rows.shape} for {len(texts):,} texts, not a vector for each")
        if not np.isfinite(rows).all() or not rows.any(axis=1).all():
            raise AgentError(f"embedder {name} gave a vector that is zero or not finite")
        return _unit(rows)

    return EmbeddedTexts(await trio.to_thread.run_sync(work, limiter=THREADS), 0)


@final
class GgufEmbedder:
    """A model from a GGUF file. Raises InputError if it cannot be used."""

    model = None

    def __init__(self, path: str) -> None:
        from longspan.agents.memory.ltm.gguf_embedder import GgufVectors

        self.name = f"gguf/{Path(path).name}"
        self._model = GgufVectors(Path(path))

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        return await _compute_vectors(self.name, self._model.rows, texts)


def embedder_address(name: str, url: str | None) -> dict[str, str]:
    """Return the option that the environment sets for this embedder: its address, unless `url` gives it."""
    address = OPENAI.address()
    return {"embedder_url": address} if name.startswith("openai/") and url is None and address != OPENAI.url else {}


def embedder_danger(options: Mapping[str, str]) -> Danger | None:
    """Return the danger of the embedder in an agent's or a memory's options."""
    embedder = options.get("embedder", "")
    return "run" if embedder.startswith("python") else "use" if embedder.startswith("gguf") else None


@final
class OpenAIEmbedder:
    """An embedder behind OpenAI's embeddings API or a compatible one. It shares rate limits with models at the same address.

    Raises InputError without the library, the key or a valid address.
    """

    def __init__(self, model: str, url: str | None = None) -> None:
        self._model = model
        self._provider = Provider(OPENAI, model, ProviderOptions(base_url=url))
        self.name = self.model = self._provider.name

    async def embed(self, texts: Sequence[str]) -> EmbeddedTexts:
        import numpy as np

        batches: list[Vectors] = []
        tokens = 0
        for at in range(0, len(texts), BATCH):
            batch, usage = await self._provider.call(partial(self._ask, part := texts[at : at + BATCH]), Usage(sum(map(len, part)) // 4))
            batches.append(batch)
            tokens += usage.input_tokens
        if len({batch.shape[1] for batch in batches}) > 1:
            raise AgentError(f"{self.name}: its vectors do not all have the same length")
        return EmbeddedTexts(np.concatenate(batches), tokens)

    async def _ask(self, texts: Sequence[str], client: Any) -> tuple[Vectors, Usage]:
        """Make one request. The answer is checked here, since servers may send anything and the library does not check it."""
        import numpy as np

        create: Any = client.embeddings.with_streaming_response.create
        async with create(model=self._model, input=list(texts), encoding_format="float") as response:
            (answer,) = parse_events(await response.read())
        usage = parse_usage(inputs=dig_value(answer, "usage", "prompt_tokens"), cached=0, output=0) or Usage(sum(map(len, texts)) // 4)
        note_used(usage)  # before parsing the vectors, which may fail
        data = dig_value(answer, "data")
        try:
            rows = {dig_value(row, "index"): dig_value(row, "embedding") for row in data} if isinstance(data, list) else {}
            vectors = np.array([rows[number] for number in range(len(texts))], dtype=np.float32)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise TransientError("did not give a vector for each text") from None
        if vectors.ndim != 2 or not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise TransientError("gave vectors that are zero or not finite")
        return _unit(vectors), usage


def _unit(vectors: Any) -> Vectors:
    """Scale rows to length 1."""
    import numpy as np

    unit: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit
