from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai.types import Content, GenerateContentResponseUsageMetadata, Part
from recall import recall


class Recalling(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        text = recall([part.text for content in llm_request.contents if content.role == "user" for part in content.parts])
        usage = GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=2, total_token_count=12)
        yield LlmResponse(content=Content(role="model", parts=[Part(text=text)]), usage_metadata=usage)


agent = LlmAgent(name="assistant", model=Recalling(model="recalling"), instruction="Remember everything.")
