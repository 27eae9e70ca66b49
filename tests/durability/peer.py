"""An agent in another process whose every reply depends on all messages before: `peer.py [deaf] [http]`.

It needs nothing but Python. `deaf`: it can only be asked. Over HTTP its first line of output is its port.
"""

import hashlib
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORDS = ["sand", "tide", "gull", "pier", "rope", "mast", "buoy", "reef"]
DEAF = "deaf" in sys.argv
states = {}


def after(state, *said):
    return hashlib.sha256("|".join([state, *said]).encode()).hexdigest()


def answer(request):
    id, call = request["conversation"], request["call"]
    state = states.get(id, after(""))
    if call == "hello":
        return {"protocol": 1, "can": [] if DEAF else ["observe", "save", "load", "close"]}
    if call == "save":
        return {"state": state}
    if call == "load":
        states[id] = request["state"]
    if call == "close":
        states.pop(id, None)
    if call == "observe":
        states[id] = after(state, request["text"], request["reply"])
    if call == "reply":
        text = " ".join(WORDS[int(digit, 16) % len(WORDS)] for digit in state[: 1 + int(state[:4], 16) % 30])
        states[id] = after(state, request["text"], "" if DEAF else text)
        return {"text": text}
    return {}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        content = json.dumps(answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


if sys.argv[-1] == "http":
    ThreadingHTTPServer.request_queue_size = 100
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
else:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
