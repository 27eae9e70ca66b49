"""A model's vocabulary: its tokens and its chat template."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import create_string_buffer
from typing import Any, final

from longspan.agents.base import AgentError
from longspan.agents.models.gguf.library import load_library

__all__ = ["Vocabulary"]


@final
class Vocabulary:
    """The tokens of a model loaded by llama.cpp, and its chat template in Jinja, if any."""

    def __init__(self, model: Any) -> None:
        self._llama = load_library()
        self.handle = self._llama.llama_model_get_vocab(model)
        template: bytes | None = self._llama.llama_model_chat_template(model, None)
        self.template = template.decode("utf-8", "replace") if template is not None else None

    @property
    def begin_and_end(self) -> tuple[str, str]:
        """The tokens that mark beginning and end (BOS, EOS), spelled as in chat templates; empty if missing."""
        tokens = self._llama.llama_vocab_bos(self.handle), self._llama.llama_vocab_eos(self.handle)
        begin, end = (self._spelling(token) if token >= 0 else "" for token in tokens)
        return begin, end

    def control_tokens(self) -> list[str]:
        """Return the spellings of control tokens, such as the marks between messages."""
        every = range(self._llama.llama_vocab_n_tokens(self.handle))
        return [self._spelling(token) for token in every if self._llama.llama_vocab_is_control(self.handle, token)]

    def ends(self, token: int) -> bool:
        """Return whether `token` ends an answer."""
        return bool(self._llama.llama_vocab_is_eog(self.handle, token))

    def tokens(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of `text`, including control tokens that it spells. Raises AgentError if it is too long.

        `special`: add the tokens that the model expects around the text, and treat control tokens in it as plain text, since it is not a
        prompt.
        """
        data = text.encode("utf-8", "replace")
        room = (self._llama.llama_token * (len(data) + 8))()
        count = self._llama.llama_tokenize(self.handle, data, len(data), room, len(room), special, not special)
        if count < 0:
            raise AgentError(f"llama.cpp cannot tokenize {len(text):,} characters at a time")
        return list(room[:count])

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without control tokens. Invalid UTF-8 becomes U+FFFD."""
        array = (self._llama.llama_token * len(tokens))(*tokens)
        size = 16 * len(tokens) + 16
        while True:
            room = create_string_buffer(size)
            count = self._llama.llama_detokenize(self.handle, array, len(tokens), room, size, False, False)
            if count >= 0:
                return room.raw[:count].decode("utf-8", "replace")
            size = -count

    def _spelling(self, token: int) -> str:
        spelling: bytes = self._llama.llama_vocab_get_text(self.handle, token)
        return spelling.decode("utf-8", "replace")
