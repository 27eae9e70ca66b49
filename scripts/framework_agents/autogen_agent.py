from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import ChatCompletionClient, CreateResult, RequestUsage, UserMessage
from recall import recall

USAGE = RequestUsage(prompt_tokens=10, completion_tokens=2)


class Recalling(ChatCompletionClient):
    model_info = dict.fromkeys(("vision", "function_calling", "json_output", "structured_output"), False) | {"family": "unknown"}
    capabilities = model_info

    async def create(self, messages, **options):
        text = recall([message.content for message in messages if isinstance(message, UserMessage)])
        return CreateResult(finish_reason="stop", content=text, usage=USAGE, cached=False)

    def create_stream(self, messages, **options):
        raise NotImplementedError

    async def close(self):
        pass

    def actual_usage(self):
        return USAGE

    def total_usage(self):
        return USAGE

    def count_tokens(self, messages, **options):
        return 10

    def remaining_tokens(self, messages, **options):
        return 10_000


agent = AssistantAgent("assistant", Recalling())
team = RoundRobinGroupChat([AssistantAgent("member", Recalling())], max_turns=1)
