"""Judges for tests: what a server on this machine answers to an arena's prompts, by rules that a reader can follow."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from longspan.scenarios.cream.sentences import split_sentences

__all__ = ["by_sentences", "lines"]


def by_sentences(prompt: str) -> str:
    """A judge to whom every sentence is a key fact, which a summary holds if it has the same sentence; "wrong" marks an error."""
    fence = re.search(r"---- [0-9a-f]{16}", prompt)
    assert fence, prompt
    _, *parts, _ = prompt.split(f"\n{fence[0]}\n")
    if len(parts) == 1:
        return json.dumps({"thoughts": "read", "facts": split_sentences(parts[0])})
    written = re.findall(r"^\[\d+\] (.*)$", parts[1], re.MULTILINE)
    if parts[0].startswith("TEXT"):
        text = parts[0].removeprefix("TEXT\n")
        named = [
            {"fact": each, "why": "", "holds": each in written, "sentences": [at for at, one in enumerate(written, 1) if one == each]}
            for each in dict.fromkeys(split_sentences(text))
        ]
        return json.dumps({"thoughts": "read", "facts": named})
    if parts[0].startswith("FACTS"):
        facts = re.findall(r"^\d+\. (.*)$", parts[0], re.MULTILINE)
        found = [
            {"fact": number, "why": "", "holds": fact in written, "sentences": [at for at, each in enumerate(written, 1) if each == fact]}
            for number, fact in enumerate(facts, 1)
        ]
        return json.dumps({"facts": found})
    found = [{"sentence": at, "why": f"it is: {each}", "faithful": "wrong" not in each} for at, each in enumerate(written, 1)]
    return json.dumps({"sentences": found})


def lines(path: Path, summaries: dict[str, dict[str, str]], **more: Any) -> Path:
    """A file of JSON lines with summaries by source and system."""
    written = [(source, system, text) for source, each in summaries.items() for system, text in each.items()]
    found = [{"source": source, "system": system, "summary": text} | more for source, system, text in written]
    path.write_text("".join(json.dumps(line) + "\n" for line in found), "utf-8")
    return path
