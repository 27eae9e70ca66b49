"""A real MCP server, a small memory: `mcp_memory.py [FILE]`. Without a file it remembers in its process.

Facts that hold a word of a few do something else: they break it, end it, or make it wait for ever.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

FILE = Path(sys.argv[1]) if len(sys.argv) > 1 else None
facts: list[str] = json.loads(FILE.read_text()) if FILE is not None and FILE.exists() else []
server = MCPServer("memory", instructions="Remember what the user tells you.")


@server.tool()
def remember(fact: str) -> str:
    """Store a fact."""
    if "BREAK" in fact:
        raise ValueError("the shelf is full")
    if "DIE" in fact:
        print("out of paper", file=sys.stderr, flush=True)
        os._exit(3)
    if "WAIT" in fact:
        time.sleep(1000)
    facts.append(fact)
    if FILE is not None:
        FILE.write_text(json.dumps(facts))
    return f"Stored as number {len(facts)}."


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def recall(query: str) -> str:
    """Return the facts that share a word with a query, oldest first."""
    if "HUGE" in query:
        return "tide " * 10**6
    words = set(query.lower().split())
    return "\n".join(fact for fact in facts if words & set(fact.lower().split())) or "Nothing."


server.run()
