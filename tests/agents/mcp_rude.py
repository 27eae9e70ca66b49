"""The same memory without any library, in its process alone, which does not say what only reads; and with bad manners.

A fact of one word in capitals makes it misbehave: `DIE`, `HANG`, `SHOUT` (a huge result), `BABBLE` (an endless line). What it is
asked before it answers, it asks back.
"""

import json
import os
import sys
import time

facts = []
NAME = sys.argv[1] if len(sys.argv) > 1 else "memory.remember"
TEXT = {"type": "string"}


def tool(name, argument):
    return {"name": name, "description": f"{name} a {argument}", "inputSchema": {"type": "object", "properties": {argument: TEXT}}}


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    sys.stdout.flush()


def remember(fact):
    if fact == "DIE":
        print("out of \x1b[31mpaper", file=sys.stderr, flush=True)
        os._exit(3)
    if fact == "HANG":
        time.sleep(1000)
    if fact == "SHOUT":
        return "tide " * 10**6
    while fact == "BABBLE":
        sys.stdout.write("tide " * 10**5)
    facts.append(fact)
    return f"Stored as number {len(facts)}."


def recall(query):
    words = set(query.lower().split())
    return "\n".join(fact for fact in facts if words & set(fact.lower().split())) or "Nothing."


for line in sys.stdin:
    request = json.loads(line)
    method, given = request.get("method"), request.get("params", {})
    if "id" not in request or method is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "rude", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [tool(NAME, "fact"), tool("recall", "query")]}
    elif method == "tools/call":
        print("not a message")
        write({"id": "mine", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
        try:
            done = {NAME: remember, "recall": recall}[given["name"]](**given["arguments"])
        except TypeError as error:
            write({"id": request["id"], "error": {"code": -32602, "message": str(error)}})
            continue
        result = {
            "content": [{"type": "text", "text": done}, {"type": "image", "data": "", "mimeType": "image/png"}][: 1 + (done == "Nothing.")]
        }
    else:
        write({"id": request["id"], "error": {"code": -32601, "message": "unknown"}})
        continue
    write({"id": request["id"], "result": result})
