from recall import recall
from smolagents import CodeAgent, Model
from smolagents.models import ChatMessage, MessageRole
from smolagents.monitoring import TokenUsage


class Recalling(Model):
    def generate(self, messages, **options):
        said = [part["text"] for message in messages for part in message.content if "New task" in part["text"]]
        text = f"Thought: I know.\n<code>\nfinal_answer({recall(said)!r})\n</code>"
        return ChatMessage(role=MessageRole.ASSISTANT, content=text, token_usage=TokenUsage(10, 2))


agent = CodeAgent(tools=[], model=Recalling(), verbosity_level=0)
