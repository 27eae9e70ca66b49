"""llama.cpp through llama-cpp-python's low-level interface: loaded on first use, with its log captured."""

from __future__ import annotations

import os
import re
from collections import deque
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from longspan.agents.base import InputError
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.base.sizes import MAX_TOKENS

__all__ = ["build_identity", "load_library", "load_model", "read_context", "take_error"]

ERROR: Final = 4
"""The log level of llama.cpp's errors (GGML_LOG_LEVEL_ERROR)."""

SPINS: Final = "2000"
"""How often an idle OpenMP thread polls before it sleeps: about 30 microseconds. By default it polls for milliseconds. If another program
runs, it thereby takes the CPU from the thread that it waits for.
"""

_errors: Final[deque[str]] = deque(maxlen=100)


@lru_cache(maxsize=1)
def load_library() -> Any:
    """Return the library. Raises InputError if it is not installed or cannot be loaded."""
    chosen = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & os.environ.keys()
    if not chosen:
        os.environ["GOMP_SPINCOUNT"] = SPINS  # libgomp reads it once, when loaded
    try:
        llama = import_module("llama_cpp.llama_cpp")
    except ImportError as error:
        raise InputError(f"gguf needs an extra: {install_extra('gguf')}") from error
    except Exception as error:
        raise InputError(f"gguf: llama-cpp-python cannot be loaded, reinstall it: {error!s:.200}") from error
    finally:
        if not chosen:
            del os.environ["GOMP_SPINCOUNT"]
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # else a crash starts a debugger
    llama.llama_log_set(_listener(llama), None)
    llama.llama_backend_init()
    return llama


def build_identity() -> list[tuple[str, int, int]]:
    """Return an identity of the installed build: its files with modification times and sizes."""
    folder = Path(import_module("llama_cpp").__file__ or "").parent
    files = [path for path in folder.rglob("*") if path.suffix in (".so", ".dylib", ".dll", ".py") and path.is_file()]
    return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files)


@lru_cache(maxsize=1)
def _listener(llama: Any) -> Any:
    """Return the log callback, which keeps llama.cpp from writing to standard error.

    The cache keeps it alive: llama.cpp stores only its address.
    """

    def listen(level: int, text: bytes | None, _: object) -> None:
        if level == ERROR and text:
            _errors.append(re.sub(r"^(\w+: )?(error loading model: )?", "", text.decode("utf-8", "replace").strip()))

    return llama.llama_log_callback(listen)


def take_error() -> str:
    """Return the first error since the last call, in one line. Later errors are less specific."""
    message = _errors[0] if _errors else "llama.cpp gives no reason"
    _errors.clear()
    return "".join(character if character.isprintable() else " " for character in message[:300])


def load_model(path: Path, **settings: object) -> Any:
    """Load a model from a file with llama.cpp's model parameters. Raises InputError if that fails."""
    llama = load_library()
    params = llama.llama_model_default_params()
    for name, value in settings.items():
        setattr(params, name, value)
    take_error()
    model = llama.llama_model_load_from_file(bytes(path), params)
    if not model:
        raise InputError(f"it cannot be loaded: {take_error()}")
    return model


def read_context(model: Any) -> int:
    """Return the context length that a model was trained on. Raises InputError if its file claims an impossible one."""
    tokens: int = load_library().llama_model_n_ctx_train(model) % 2**32  # stored unsigned, but returned signed
    if not 1 <= tokens <= MAX_TOKENS:
        raise InputError(
            f"its metadata claims a context of {tokens:,} tokens, and longspan takes models of 1 to {MAX_TOKENS:,}: the file is damaged"
        )
    return tokens
