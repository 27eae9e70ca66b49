"""A program that speaks ACP: `acp_program.py [FOLDER]`. With a folder, it keeps its sessions there and can load them.

It answers with the number of messages that its session has, and does what the message asks for.
"""

import itertools
import json
import sys
from pathlib import Path

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
sessions = {}
ids = itertools.count(1)


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(session, kind, text):
    told = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    send(method="session/update", params={"sessionId": session, "update": told})


def request(method, **params):
    send(id=f"a{next(ids)}", method=method, params=params)
    return json.loads(sys.stdin.readline())


def prompt(session, text):
    sessions[session].append(text)
    if folder:
        (folder / session).write_text(json.dumps(sessions[session]))
    update(session, "agent_thought_chunk", "Hm.")
    stop = "end_turn"
    if text == "permission":
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}, {"optionId": "no", "name": "No", "kind": "reject_once"}]
        update(session, "agent_message_chunk", json.dumps(request("session/request_permission", options=options)["result"]))
    elif text == "bare permission":
        update(session, "agent_message_chunk", json.dumps(request("session/request_permission", options=[])["result"]))
    elif text == "file":
        update(session, "agent_message_chunk", str(request("fs/read_text_file", path="/etc/passwd")["error"]["code"]))
    elif text == "die":
        print("out of luck", file=sys.stderr, flush=True)
        sys.exit(3)
    elif text == "refuse":
        stop = "refusal"
    else:
        update(session, "agent_message_chunk", f"{len(sessions[session])} ")
        update(session, "plan", "Nothing.")
        update(session, "agent_message_chunk", "said")
    return {"stopReason": stop}


for line in sys.stdin:
    call = json.loads(line)
    params, result = call.get("params", {}), {}
    if call["method"] == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": folder is not None}}
    elif call["method"] == "session/new":
        session = f"s{len(list(folder.iterdir())) + 1}" if folder else f"s{len(sessions) + 1}"
        sessions[session] = []
        result = {"sessionId": session}
    elif call["method"] == "session/load":
        session = params["sessionId"]
        if not (folder / session).exists():
            send(id=call["id"], error={"code": -32002, "message": "no such\nsession"})
            continue
        sessions[session] = json.loads((folder / session).read_text())
        for text in sessions[session]:
            update(session, "user_message_chunk", text)
            update(session, "agent_message_chunk", "said before")
    elif call["method"] == "session/prompt":
        result = prompt(params["sessionId"], params["prompt"][0]["text"])
    send(id=call["id"], result=result)
