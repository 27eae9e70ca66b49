"""Trials of GGUF files in a separate process.

llama.cpp aborts on some damaged files, and a build for another processor dies at the first unsupported instruction.
"""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from ctypes import c_void_p
from hashlib import sha256
from pathlib import Path
from typing import Final

from longspan.agents.base import AgentError, InputError
from longspan.agents.models.gguf.chat_prompts import Prompts
from longspan.agents.models.gguf.library import build_identity, load_library, load_model, read_context
from longspan.agents.models.gguf.model import Model, Settings
from longspan.agents.models.gguf.vocabulary import Vocabulary
from longspan.agents.outside.protocol import make_printable
from longspan.simulator.base import cache

__all__ = ["main", "processor_identity", "try_out"]

RUN: Final = "from longspan.agents.models.gguf.trial import main; main()"

TIMEOUT: Final = 60
"""The maximum seconds for everything but the weights. A vocabulary of 128,000 tokens takes less than one."""

CONTEXT: Final = 256
"""Tokens of the trial's context."""

TEXT: Final = "The quick brown fox jumps over the lazy dog, and comes back. " * 6
"""The trial's prompt. It has several tokens, since llama.cpp uses other instructions for a prompt than for single tokens."""

REJECTED: Final = 3
"""The exit code of a trial that rejected the file with an InputError."""

LOADING: Final = "loading"
COMPUTING: Final = "computing"
DONE: Final = "done"
"""The output lines of a trial: loading the weights, computing with them, and done."""

FAULTS: Final = {
    signal.SIGILL: "an illegal instruction",
    signal.SIGSEGV: "a segmentation fault",
    signal.SIGBUS: "a bus error",
    signal.SIGFPE: "an arithmetic fault",
}

FEATURES: Final = {"avx2": "AVX2", "fma": "FMA", "f16c": "F16C", "avx512f": "AVX512"}
"""Instruction sets, safe if listed, by their name in /proc/cpuinfo with the name in llama.cpp's build."""


def try_out(path: Path, template: str | None = None, settings: Settings | None = None) -> None:
    """Raise InputError if the file's vocabulary or its chat template (or `template`) does not work, or if llama.cpp crashes on it.

    Without `settings`, it is an embedding model, which needs no template. Loading and computing with the weights is tried once for each
    combination of file, settings, build of llama.cpp and processor.
    """
    load_library()
    state = path.stat()
    tried = ["gguf", str(path), state.st_mtime_ns, state.st_size, settings, build_identity(), processor_identity()]
    name = f"gguf-{sha256(json.dumps(tried).encode()).hexdigest()[:40]}"
    weights = cache.read_cached(name) is None
    request = {"path": str(path), "template": template, "settings": settings and settings._asdict(), "weights": weights}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code, told, errors = _run([sys.executable, "-P", "-c", RUN], environment, json.dumps(request).encode())
    stage = next((stage for stage in (DONE, COMPUTING, LOADING) if stage in told), None)
    if code == REJECTED:
        raise InputError("\n".join(told))
    if code and stage is None:
        raise InputError("llama.cpp crashes when loading it: the file is damaged")
    if code and stage != DONE:
        raise InputError(_death(code, "loads its weights" if stage == LOADING else "computes the first tokens with its weights", errors))
    if stage == DONE:
        cache.write_cached(name, b"")


def _run(command: list[str], environment: Mapping[str, str], request: bytes) -> tuple[int, list[str], str]:
    """Return a trial's exit code, lines and standard error. Raises InputError if it takes too long before loading weights."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe) as trial:  # noqa: S603
        try:
            try:
                told, errors = trial.communicate(request, timeout=TIMEOUT)
            except subprocess.TimeoutExpired as late:
                if LOADING.encode() not in (late.output or b"").split():
                    raise InputError(f"its vocabulary and chat template did not load within {TIMEOUT} seconds") from None
                told, errors = trial.communicate()  # loading is not limited here, since llama.cpp may need long
        except BaseException:
            trial.kill()
            raise
    return trial.returncode, told.decode("utf-8", "replace").split("\n")[:-1], errors.decode("utf-8", "replace")


def _death(code: int, doing: str, errors: str) -> str:
    """Describe a trial that died while `doing` something with the weights."""
    fault = FAULTS.get(signal.Signals(-code)) if code < 0 else None
    if fault is not None:
        remedy = f"CMAKE_ARGS={_portable()} pip install --force-reinstall --no-cache-dir --no-binary llama-cpp-python llama-cpp-python"
        return (
            f"llama.cpp dies of {fault} ({signal.Signals(-code).name}) when it {doing}: it is built for instructions that fail on this "
            f"machine, or the file is damaged. Build it without them: {remedy}"
        )
    if code == -signal.SIGKILL:
        return f"llama.cpp is killed when it {doing}: memory is probably too short for it"
    lines = [line for line in errors.splitlines() if line.strip()]
    how = f"ends with {signal.Signals(-code).name if code < 0 else f'status {code}'}"
    return f"llama.cpp {how} when it {doing}{f': {make_printable(lines[-1])}' if lines else ''}"


def _portable() -> str:
    """Return CMake arguments for a build of llama.cpp with only the instructions that this processor certainly has."""
    flags = set(processor_identity().split())
    return '"' + " ".join(["-DGGML_NATIVE=OFF", *(f"-DGGML_{name}=ON" for flag, name in FEATURES.items() if flag in flags)]) + '"'


def processor_identity() -> str:
    """Return an identity of this machine's processor, with its instructions if the system lists them."""
    try:
        known = dict(re.findall(r"^(model name|flags|Features)\s*: (.*)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE))
    except OSError:
        known = {}
    return " ".join([platform.machine(), platform.processor(), *known.values()])


# In the separate process.


def main() -> None:
    """Run the trial described on standard input. The exit code and the printed lines are its result."""
    request = json.load(sys.stdin)
    path, settings = Path(request["path"]), request["settings"] and Settings(**request["settings"])
    llama = load_library()
    try:
        model = load_model(path, no_alloc=True, load_mode=llama.LLAMA_LOAD_MODE_NONE)
        read_context(model)
        if settings is not None:
            Prompts(Vocabulary(model), request["template"])
    except InputError as error:
        print(error)
        sys.exit(REJECTED)
    params = llama.llama_context_default_params()
    params.n_ctx = CONTEXT
    llama.llama_init_from_model(model, params)
    if request["weights"]:
        print(LOADING, flush=True)
        try:
            _compute_vector(path) if settings is None else _answer(path, settings)
        except (InputError, AgentError):
            return  # reported when the model is really loaded
        print(DONE, flush=True)


def _answer(path: Path, settings: Settings) -> None:
    model = Model(path, settings)
    print(COMPUTING, flush=True)
    model.generate(model.vocabulary.tokens(TEXT)[: model.window - 2], 2, owner=_answer)


def _compute_vector(path: Path) -> None:
    llama = load_library()
    model = load_model(path)
    print(COMPUTING, flush=True)
    params = llama.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = min(CONTEXT, read_context(model))
    params.embeddings = True
    context: c_void_p = llama.llama_init_from_model(model, params)
    tokens = Vocabulary(model).tokens(TEXT, special=True)[: params.n_ctx]
    batch = llama.llama_batch_get_one((llama.llama_token * len(tokens))(*tokens), len(tokens))
    if context:
        (llama.llama_encode if llama.llama_model_has_encoder(model) else llama.llama_decode)(context, batch)
