from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from recall import recall


@component
class Recalling:
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: list | None = None):
        text = recall([message.text for message in messages if message.role.value == "user"])
        usage = {"prompt_tokens": 10, "completion_tokens": 2}
        return {"replies": [ChatMessage.from_assistant(text, meta={"usage": usage})]}


agent = Agent(chat_generator=Recalling(), system_prompt="Remember everything.")
