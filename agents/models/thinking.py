"""Thinking that a model writes into its answer, between tags such as `<think>` and `</think>`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["split_thinking", "trace_thinking"]

TAG: Final = re.compile(r"<(/?)(think|thinking|thought|reasoning)>|\[(/?)THINK\]|◁(/?)think▷")
"""The tags of thinking. An answer has only those with the spelling of its first one."""

CHANNEL: Final = re.compile(
    r"(?:<\|start\|>\w*)?(?:(?:<\|channel\|>\s*|\A\s*)(\w+)[^<]{0,200})?(?:<\|constrain\|>[^<]{0,200})?<\|message\|>"
)
"""The start of a message in the harmony format, which gpt-oss writes: thinking in the channel `analysis`, the answer in `final`."""

STRIPPED: Final = re.compile(r"\Aanalysis(?=\S)(.*?)assistantfinal", re.DOTALL)
"""The same where a server has removed the markers and left the words between them."""

CHANNEL_END: Final = re.compile(r"<\|(?:end|return|call)\|>(?:<\|start\|>\w*)?")

MAX_TRACED: Final = 10_000
"""The maximum characters of thinking in a trace."""


def split_thinking(text: str) -> tuple[str, str]:
    """Split an answer into its text and its thinking, in linear time.

    Thinking is text between two tags; text before a first closing tag, since some models' prompts end with the opening one; and an entire
    answer that begins with a tag that is never closed. In the harmony format, it is everything but the channel `final`.
    """
    if "<|message|>" in text and ("<|channel|>" in text or CHANNEL.match(text)):
        return _split_channels(text)
    text = STRIPPED.sub(r"<think>\1</think>", text)
    if (tag := TAG.search(text)) is None:
        return text, ""
    mark, opening = tag.group(), tag.group().replace("/", "")
    closing = mark if mark != opening else f"{opening[0]}/{opening[1:]}"
    said: list[str] = []
    thought: list[str] = []
    opened, closed = text.find(opening), text.find(closing)
    at = 0
    if closed >= 0 and not 0 <= opened < closed:
        thought.append(text[:closed])
        at = closed + len(closing)
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start)
        if end < 0 and text[at:start].strip():
            break
        said.append(text[at:start])
        thought.append(text[start + len(opening) : end if end >= 0 else len(text)])
        at = end + len(closing) if end >= 0 else len(text)
    said.append(text[at:])
    return _joined("".join(said), thought)


def _split_channels(text: str) -> tuple[str, str]:
    """Split an answer in the harmony format. Its first message may lack the opening, which some prompts end with."""
    before, *messages = CHANNEL.split(text)
    said, thought = "", [CHANNEL_END.sub("", before)]
    for channel, content in zip(messages[::2], (CHANNEL_END.sub("", message) for message in messages[1::2]), strict=True):
        if channel in ("final", None):
            said += content
        else:
            thought.append(content)
    return _joined(said, thought)


def _joined(said: str, thought: Sequence[str]) -> tuple[str, str]:
    return said.strip(), "\n".join(filter(None, map(str.strip, thought)))


def trace_thinking(thinking: str) -> dict[str, str]:
    """Return the trace of thinking, cut to its start if it is long. It is empty without thinking."""
    if not thinking:
        return {}
    return {"thinking": thinking if len(thinking) <= MAX_TRACED else f"{thinking[: MAX_TRACED - 1]}…"}
