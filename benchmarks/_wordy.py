"""An agent that never stops talking, for reports: every reply is hundreds of words of Markdown, and its trace tells of its memory."""

from __future__ import annotations

from longspan.agents.base import BaseAgent
from longspan.simulator.contract.messages import Message, Reply

__all__ = ["Wordy"]

SECTIONS = 4
KEPT = 5
"""Memories that it reads for each reply: its latest."""


class Wordy(BaseAgent):
    """Stores every message, reads the latest, and answers what it was told with an essay that answers nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._memories: list[dict[str, str]] = []

    async def reply(self, message: Message) -> Reply:
        topic = " ".join(message.text.split()[:12])
        read = self._memories[-KEPT:]
        written = {"id": f"m{len(self._memories)}", "turn": message.turn_id, "text": message.text}
        self._memories.append(written)
        return Reply(essay(topic, len(self._memories)), trace={"written": [written], "read": read})


def essay(topic: str, number: int) -> str:
    """Some hundreds of words in Markdown about a topic."""
    parts = [f"# On “{topic}”\n\nThank you for **message {number}**. There is a good deal to be said about it, so I shall take it in turn."]
    for section in range(1, SECTIONS + 1):
        parts.append(
            f"## {section}. A consideration\n\nYou wrote about *{topic}*, which, taken for itself, leaves several matters open. "
            f"It is worth asking what follows from point {section} of them, and for whom, before anything is decided in haste.\n\n"
            f"- First, what was said in `message_{number}` may be read in more ways than one, and each reading has its friends.\n"
            f"- Second, whoever agrees with the first reading need not accept what follows from it.\n"
            f"1. There is the question of order: what comes first is seldom what matters most.\n"
            f"2. There is the question of measure, which I would rather leave to you.\n"
        )
    return "\n\n".join([*parts, "Please tell me if I should go on; I have kept the rest of my remarks for later."])
