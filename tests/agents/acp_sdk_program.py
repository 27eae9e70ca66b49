"""A program of the ACP SDK: it answers with the earlier message of its session that shares most words with the newest.

It needs agent-client-protocol.
"""

import asyncio
from uuid import uuid4

from acp import Agent, InitializeResponse, NewSessionResponse, PromptResponse, run_agent, text_block, update_agent_message


class Recall(Agent):
    def __init__(self):
        self.sessions = {}

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, **more):
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, **more):
        session = uuid4().hex
        self.sessions[session] = []
        return NewSessionResponse(session_id=session)

    async def prompt(self, prompt, session_id, **more):
        text, earlier = "".join(block.text for block in prompt), self.sessions[session_id]
        words = set(text.lower().split())
        reply = max(earlier, key=lambda said: len(words & set(said.lower().split())), default="Nothing yet.")
        earlier.append(text)
        await self.client.session_update(session_id=session_id, update=update_agent_message(text_block(reply)))
        return PromptResponse(stop_reason="end_turn")


asyncio.run(run_agent(Recall()))
