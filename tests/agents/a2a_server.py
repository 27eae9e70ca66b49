"""A server of the A2A SDK: `a2a_server.py VERSION`. Its first line of output is its port. It needs a2a-sdk[http-server] and uvicorn.

It answers with the earlier message of its context that shares most words with the newest, in the way that the message asks for.
"""

import asyncio
import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import get_message_text, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

contexts = {}


class Recall(AgentExecutor):
    async def execute(self, context, event_queue):
        text = get_message_text(context.message)
        earlier = contexts.setdefault(context.context_id, [])
        words = set(text.lower().split())
        reply = max(earlier, key=lambda said: len(words & set(said.lower().split())), default="Nothing yet.")
        earlier.append(text)
        if "task" not in text and context.current_task is None:
            await event_queue.enqueue_event(new_text_message(reply, context_id=context.context_id))
            return
        task = context.current_task or new_task_from_user_message(context.message)
        if context.current_task is None:
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await asyncio.sleep(0.2)
        if "input" in text:
            await updater.requires_input(updater.new_agent_message([new_text_part("Which one?")]))
        elif "fail" in text:
            await updater.failed(updater.new_agent_message([new_text_part("I cannot.")]))
        else:
            await updater.add_artifact([new_text_part(reply)])
            await updater.complete()

    async def cancel(self, context, event_queue):
        raise NotImplementedError


listening = socket.create_server(("127.0.0.1", 0))
port = listening.getsockname()[1]
interface = AgentInterface(url=f"http://127.0.0.1:{port}/", protocol_binding="JSONRPC", protocol_version=sys.argv[1])
card = AgentCard(
    name="recall",
    description="Recalls what it was told.",
    version="1.0.0",
    supported_interfaces=[interface],
    capabilities=AgentCapabilities(),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="recall", name="recall", description="Recalls.", tags=["memory"])],
)
handler = DefaultRequestHandler(agent_executor=Recall(), task_store=InMemoryTaskStore(), agent_card=card)
routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)]
print(port, flush=True)
uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="warning")).run([listening])
