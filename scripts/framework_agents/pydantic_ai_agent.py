from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel
from recall import recall


def answer(messages, info):
    said = [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return ModelResponse(parts=[TextPart(recall(said))])


agent = Agent(FunctionModel(answer), instructions="Remember everything.")
