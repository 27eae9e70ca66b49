from recall import recall
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.connectors.ai.completion_usage import CompletionUsage
from semantic_kernel.contents import AuthorRole, ChatMessageContent


class Recalling(ChatCompletionClientBase):
    async def _inner_get_chat_message_contents(self, chat_history, settings):
        text = recall([message.content for message in chat_history.messages if message.role == AuthorRole.USER])
        usage = CompletionUsage(prompt_tokens=10, completion_tokens=2)
        return [ChatMessageContent(role=AuthorRole.ASSISTANT, content=text, metadata={"usage": usage})]


agent = ChatCompletionAgent(service=Recalling(ai_model_id="recalling"), name="assistant", instructions="Remember everything.")
