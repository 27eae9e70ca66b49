"""An agent in another process, for tests: `peer.py exec|http [ABILITY,...] [repeatable]`. It needs only Python.

Its replies are JSON with all requests of the conversation. Over HTTP its first line of output is its port.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

how, can, repeatable = [*sys.argv[1:], "", ""][:3]
conversations = {}
closed = []


def answer(request):
    call = request["call"]
    heard = conversations.setdefault(request["conversation"], [])
    if call == "hello":
        return {"protocol": 1, "can": can.split(",") if can else [], "repeatable": bool(repeatable)}
    if call == "observe":
        heard.append(request)
    if call == "reply":
        heard.append(request)
        usage = {"input_tokens": 100 * len(heard), "cached_tokens": 10, "output_tokens": 1}
        trace = {"written": [{"id": f"m{len(heard)}", "text": request["text"]}], "prompt_tokens": 7}
        return {"text": json.dumps({"heard": heard, "closed": closed}), "usage": usage, "trace": trace}
    if call == "save" and "folder" in request:
        Path(request["folder"], "heard.json").write_text(json.dumps(heard))
        return {}
    if call == "save":
        return {"state": heard}
    if call in ("load", "reset"):
        heard[:] = request.get("state") or []
    if call == "load" and "folder" in request:
        heard[:] = json.loads(Path(request["folder"], "heard.json").read_text())
    if call == "close":
        closed.append(request["conversation"])
    return {}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        content = json.dumps(answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


if how == "http":
    ThreadingHTTPServer.request_queue_size = 100
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
else:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
