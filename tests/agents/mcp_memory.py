"""A real MCP server, a small memory: `mcp_memory.py FILE`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

FILE = Path(sys.argv[1])
server = MCPServer("memory", instructions="Remember what the user tells you.")


def facts() -> list[str]:
    found: list[str] = json.loads(FILE.read_text()) if FILE.exists() else []
    return found


@server.tool()
def remember(fact: str) -> str:
    """Store a fact."""
    if not fact.strip():
        raise ValueError("an empty fact")
    FILE.write_text(json.dumps([*facts(), fact]))
    return f"Stored as number {len(facts())}."


@server.tool()
def forget(request: str) -> str:
    """Remove the facts with the last word of a request."""
    last = request.rstrip(".").split()[-1]
    FILE.write_text(json.dumps([fact for fact in facts() if last not in fact]))
    return "Forgotten."


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def recall(query: str, limit: int = 100) -> str:
    """Return the facts that share most words with a query."""
    words = set(re.findall(r"\w+", query.lower()))
    shared = [(len(words & set(re.findall(r"\w+", fact.lower()))), fact) for fact in facts()]
    best = sorted((pair for pair in shared if pair[0]), key=lambda pair: -pair[0])
    return "\n".join(" ".join(fact.split()) for _, fact in best[:limit])


server.run()
