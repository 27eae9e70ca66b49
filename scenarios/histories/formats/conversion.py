"""Convert a log to longspan's plain form, and describe the formats of logs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from longspan.scenarios.histories.formats.assembly import Conversation
from longspan.scenarios.histories.formats.own import write_lines
from longspan.scenarios.histories.formats.reading import read_conversations
from longspan.scenarios.histories.formats.registry import list_formats
from longspan.scenarios.histories.scrubbing.conversations import describe_scrubbing, scrub_conversations
from longspan.scenarios.histories.scrubbing.scrubber import Scrubber
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import write_new_file
from longspan.simulator.reading.matching import join_some

__all__ = ["convert_log", "describe_formats"]


def convert_log(log: Path, out: Path, *, questions: Path | None = None, scrub: bool = False, show: bool = False) -> Iterator[str]:
    """Write a log in the plain form to a new file. Yields what was read, and what was changed or left out. Raises InputError.

    `questions`: a file with more questions to write. Conversations that have none are then left out, as when they are played.
    `scrub`: replace personal data. `show`: also yield each replacement.
    """
    conversations: Sequence[Conversation] = read_conversations(log, questions)
    if not any(each.parts for each in conversations):
        raise InputError("; ".join([f"{log}: has no turns", *(remark for each in conversations for remark in each.remarks)])[:500])
    left_out = [each.id for each in conversations if questions is not None and not each.questions]
    conversations = [each for each in conversations if questions is None or each.questions]
    scrubbed: Scrubber | None = None
    if scrub:
        conversations, scrubbed = scrub_conversations(conversations)
    with write_new_file(out, "name another file") as partial, partial.open("x", encoding="utf-8") as file:
        for each in conversations:
            file.writelines(f"{json.dumps(line, ensure_ascii=False)}\n" for line in write_lines(each))
    for each in conversations:
        turns = sum(len(part.turns) for part in each.parts)
        counts = ((len(each.parts), "session"), (turns, "turn"), (len(each.questions), "question"))
        yield f"{each.id}: {', '.join(f'{count:,} {what}' + 's' * (count != 1) for count, what in counts)}"
        yield from each.remarks
    if left_out:
        yield f"left out, without a question: {join_some(left_out)}"
    if scrubbed is not None:
        yield from describe_scrubbing(scrubbed, show=show)


def describe_formats() -> list[tuple[str, str, str]]:
    """Return the name of each format, what it is, and its smallest form."""
    return [(each.name, each.what, each.example) for each in list_formats()]
