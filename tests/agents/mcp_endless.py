"""A server that never gets as far as to offer its tools, or offers too many: what it does is its first argument.

It ignores requests to end, and says in the file of its second argument, if there is one, that it has started.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

act = sys.argv[1]
if sys.argv[2:]:
    Path(sys.argv[2]).touch()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
NOTE = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "tide"}}) + "\n"
ASK = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n"
ENDLESS = {"garbage": "tide\n" * 1000, "notes": NOTE * 100, "requests": ASK * 100, "line": "tide " * 1000, "blank": "\n" * 1000}
while act in ENDLESS:
    sys.stdout.write(ENDLESS[act])
if act == "half":
    sys.stdout.write('{"jsonrpc": "2.0", "id": 1, "res')
    sys.stdout.flush()
if act == "child":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
if act in ("silent", "half", "child"):
    time.sleep(1000)
while act == "errors":
    sys.stderr.write("tide " * 1000 + "\n")


def tool(number):
    schema = {"type": "object", "properties": {"fact": {"type": "string"}}}
    return {"name": f"tool-{number}", "description": "tide " * 8, "inputSchema": schema}


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "rude", "version": "1"}}
    if request["method"] == "tools/list":
        result = {
            "tools": lambda: {"tools": [tool(number) for number in range(10**5)]},
            "nothings": lambda: {"tools": [{}] * 600_000},
            "parts": lambda: {"tools": [tool(1) | {"inputSchema": {"type": "object", "properties": {"fact": {"anyOf": [{}] * 30_000}}}}]},
            "pages": lambda: {"tools": [], "nextCursor": "more"},
        }[act]()
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
    sys.stdout.flush()
