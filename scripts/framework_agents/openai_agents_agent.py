from agents import Agent, Model, ModelResponse, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from recall import recall

set_tracing_disabled(True)


class Recalling(Model):
    async def get_response(self, system_instructions, input, *rest, **more):
        text = recall([item["content"] for item in input if item.get("role") == "user"])
        content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
        output = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=content)
        return ModelResponse(output=[output], usage=Usage(1, 10, output_tokens=2, total_tokens=12), response_id=None)

    def stream_response(self, *rest, **more):
        raise NotImplementedError


agent = Agent("assistant", model=Recalling())
