from llama_index.core.agent import ReActAgent
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, ChatResponse, MockLLM
from recall import recall


class Recalling(MockLLM):
    prefix: str = ""

    def __init__(self, prefix=""):
        super().__init__(is_chat_model=True)
        self.prefix = prefix

    def chat(self, messages, **options):
        text = recall([message.content for message in messages if message.role.value == "user"])
        return ChatResponse(message=ChatMessage(role="assistant", content=self.prefix + text))

    async def achat(self, messages, **options):
        return self.chat(messages)


agent = ReActAgent(llm=Recalling("Thought: I can answer without tools.\nAnswer: "), streaming=False)
engine = SimpleChatEngine.from_defaults(llm=Recalling())
