"""Tries a GGUF file out in a process of its own: llama.cpp ends the process over some that are damaged, and a chat template may
never come to an end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from longspan.agents.base import InputError
from longspan.agents.models.gguf.library import library, load
from longspan.agents.models.gguf.prompts import Prompts
from longspan.agents.models.gguf.vocabulary import Vocabulary

__all__ = ["main", "try_out"]

SECONDS: Final = 60
"""How long the trial may take; a vocabulary of 128,000 tokens takes less than one."""

TINY: Final = 256
"""Tokens of the trial's context."""

REFUSED: Final = 3
"""The exit code of a trial that ended with an error of ours."""


def try_out(path: Path) -> None:
    """Raises InputError for a file that has no tokens and chat template to work with."""
    library()
    command = [sys.executable, "-P", "-c", "from longspan.agents.models.gguf.trial import main; main()", str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(  # noqa: S603
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"its chat template has come to no end after {SECONDS} seconds") from None
    if done.returncode == REFUSED:
        raise InputError(done.stdout.decode("utf-8", "replace").strip())
    if done.returncode:
        raise InputError("llama.cpp breaks down over it: the file is damaged")


def main() -> None:
    """The trial: all but the weights is loaded. Its exit code says how it went."""
    llama = library()
    try:
        model = load(Path(sys.argv[1]), no_alloc=True, load_mode=llama.LLAMA_LOAD_MODE_NONE)
        Prompts(Vocabulary(model))
    except InputError as error:
        print(error)
        sys.exit(REFUSED)
    params = llama.llama_context_default_params()
    params.n_ctx = TINY
    llama.llama_init_from_model(model, params)
