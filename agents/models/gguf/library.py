"""llama.cpp, as llama-cpp-python's low-level interface has it: loaded late, and silent."""

from __future__ import annotations

import os
import re
from collections import deque
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from longspan.agents.base import InputError

__all__ = ["complaint", "library", "load"]

ERROR: Final = 4
"""The level at which llama.cpp reports errors (GGML_LOG_LEVEL_ERROR)."""

_complaints: Final[deque[str]] = deque(maxlen=100)


@lru_cache(maxsize=1)
def library() -> Any:
    """The library. Raises InputError where it is not installed, or cannot be loaded."""
    try:
        llama = import_module("llama_cpp.llama_cpp")
    except ImportError as error:
        raise InputError("gguf needs more than longspan itself: pip install 'longspan[gguf]'") from error
    except Exception as error:
        raise InputError(f"gguf: llama-cpp-python cannot be loaded, install it again: {error!s:.200}") from error
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # where it breaks down it would have a debugger print one
    llama.llama_log_set(_listener(llama), None)
    llama.llama_backend_init()
    return llama


@lru_cache(maxsize=1)
def _listener(llama: Any) -> Any:
    """Where llama.cpp writes instead of standard error. Kept in the cache: llama.cpp itself keeps no more than its address."""

    def listen(level: int, text: bytes | None, _: object) -> None:
        if level == ERROR and text:
            _complaints.append(re.sub(r"^(\w+: )?(error loading model: )?", "", text.decode("utf-8", "replace").strip()))

    return llama.llama_log_callback(listen)


def complaint() -> str:
    """The first error that llama.cpp has reported since this was last asked, in one line: those after it say less."""
    said = _complaints[0] if _complaints else "llama.cpp does not say why"
    _complaints.clear()
    return "".join(letter if letter.isprintable() else " " for letter in said[:300])


def load(path: Path, **settings: object) -> Any:
    """A model, loaded from a file with llama.cpp's parameters for models. Raises InputError where it cannot be."""
    llama = library()
    params = llama.llama_model_default_params()
    for name, value in settings.items():
        setattr(params, name, value)
    complaint()
    model = llama.llama_model_load_from_file(bytes(path), params)
    if not model:
        raise InputError(f"it cannot be loaded: {complaint()}")
    return model
