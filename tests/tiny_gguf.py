"""GGUF models with random weights, for tests and for benchmarks, because speed does not depend on the weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, TokenType
from numpy.typing import NDArray

__all__ = ["CHATML", "SHAPES", "TINY", "Shape", "write_model"]

CHATML: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

BLOCK: Final = 18
"""Bytes of 32 weights in Q4_0: their scale as a 16-bit float, and four bits each."""

CONTROLS: Final = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

WORDS: Final = (
    "system user assistant the of and to in is you that it he she was for on are with his her they be at have this from or had by "
    "not but what all were when we there can an your which their said if do will each about how up out them then so some would make "
    "like him into has look two more see go way could my than been call who its now find long down day did get come made may part "
    "over new take only little work know place year me back give most very after thing our just name good man think say where help "
    "through much before line right too mean old any same tell follow came want show also around three put end does another well "
    "again off even because here must such why ask read need different home us try hand city country colour drink list called "
).split()


class Shape(NamedTuple):
    """Sizes of a Llama: `vocabulary` in tokens (at least what the words need), `context` what it claims to be trained on."""

    layers: int
    embedding: int
    heads: int
    kv_heads: int
    hidden: int
    context: int
    vocabulary: int = 0
    quantised: bool = True


TINY: Final = Shape(layers=1, embedding=64, heads=2, kv_heads=1, hidden=128, context=8192, quantised=False)

SHAPES: Final = {
    "tiny": TINY._replace(context=131_072),
    "1b": Shape(layers=16, embedding=2048, heads=32, kv_heads=8, hidden=8192, context=131_072, vocabulary=128_256),
    "8b": Shape(layers=32, embedding=4096, heads=32, kv_heads=8, hidden=14_336, context=131_072, vocabulary=128_256),
}
"""Shapes for benchmarks: those of Llama 3.2 1B and Llama 3.1 8B have four-bit weights (Q4_0)."""


def write_model(path: Path, shape: Shape = TINY, *, template: str | None = CHATML, seed: int = 0) -> Path:
    """Write a model, with one tensor in memory at a time. The shape 8b takes 4.5 GB on disk."""
    writer = GGUFWriter(path, "llama")
    _describe(writer, shape)
    _tokenizer(writer, shape)
    if template is not None:
        writer.add_chat_template(template)
    tensors = dict(_tensors(shape))
    for name, size in tensors.items():
        if shape.quantised and len(size) == 2:
            row = size[1] // 32 * BLOCK
            writer.add_tensor_info(name, (size[0], row), np.dtype(np.uint8), size[0] * row, GGMLQuantizationType.Q4_0)
        else:
            writer.add_tensor_info(name, size, np.dtype(np.float32), 4 * int(np.prod(size)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    random = np.random.default_rng(seed)
    for name, size in tensors.items():
        writer.write_tensor_data(_weights(name, size, shape, random))
    writer.close()
    return path


def _describe(writer: GGUFWriter, shape: Shape) -> None:
    writer.add_name("random")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.embedding)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.embedding // shape.heads)
    writer.add_rope_freq_base(500_000.0)
    writer.add_file_type(LlamaFileType.MOSTLY_Q4_0 if shape.quantised else LlamaFileType.ALL_F32)


def _tokenizer(writer: GGUFWriter, shape: Shape) -> None:
    """Add tokens for bytes and a few common words."""
    merges = _merges(WORDS)
    plain = [*_letters(), *dict.fromkeys(left + right for left, right in merges)]
    plain += [f"<unused{number}>" for number in range(shape.vocabulary - len(plain) - len(CONTROLS))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*plain, *CONTROLS])
    writer.add_token_types([TokenType.NORMAL] * len(plain) + [TokenType.CONTROL] * len(CONTROLS))
    writer.add_token_merges([f"{left} {right}" for left, right in merges])
    writer.add_bos_token_id(len(plain))
    writer.add_eos_token_id(len(plain) + CONTROLS.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_vocab_size(len(plain) + len(CONTROLS))


def _letters() -> list[str]:
    """Return the characters of a byte-level tokenizer's 256 bytes: printable ones are themselves, others start at U+0100."""
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = iter(range(0x100, 0x200))
    return [chr(byte) if byte in seen else chr(next(hidden)) for byte in range(256)]


def _merges(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return the merges in order of rank: letter by letter into words, and a space (Ġ) with a whole word."""
    found: dict[tuple[str, str], None] = {}
    for word in words:
        for end in range(1, len(word)):
            found[word[:end], word[end]] = None
    return [*found, *(("Ġ", word) for word in words)]


def _tensors(shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield names and sizes, rows first."""
    wide, kv = shape.embedding, shape.embedding // shape.heads * shape.kv_heads
    vocabulary = max(shape.vocabulary, 256 + len({left + right for left, right in _merges(WORDS)}) + len(CONTROLS))
    yield "token_embd.weight", (vocabulary, wide)
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        yield block + "attn_norm.weight", (wide,)
        yield block + "attn_q.weight", (wide, wide)
        yield block + "attn_k.weight", (kv, wide)
        yield block + "attn_v.weight", (kv, wide)
        yield block + "attn_output.weight", (wide, wide)
        yield block + "ffn_norm.weight", (wide,)
        yield block + "ffn_gate.weight", (shape.hidden, wide)
        yield block + "ffn_up.weight", (shape.hidden, wide)
        yield block + "ffn_down.weight", (wide, shape.hidden)
    yield "output_norm.weight", (wide,)
    yield "output.weight", (vocabulary, wide)


def _weights(name: str, size: tuple[int, ...], shape: Shape, random: np.random.Generator) -> NDArray[np.float32] | NDArray[np.uint8]:
    """Return weights that preserve the magnitude of signals. Quantised ones repeat random rows, which does not affect speed."""
    if len(size) == 1:
        return np.ones(size, np.float32)
    rows, columns = size
    scale = 1.0 if name == "token_embd.weight" else columns**-0.5
    if not shape.quantised:
        return (random.standard_normal(size, np.float32) * np.float32(scale)).astype(np.float32)
    blocks = columns // 32
    few = np.empty((64, blocks, BLOCK), np.uint8)
    few[:, :, :2] = np.frombuffer(np.float16(scale / 4.6).tobytes(), np.uint8)
    few[:, :, 2:] = random.integers(0, 256, (64, blocks, BLOCK - 2), np.uint8)
    return np.resize(few.reshape(64, -1), (rows, blocks * BLOCK))
