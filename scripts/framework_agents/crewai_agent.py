import os

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}

from crewai import Agent, BaseLLM, Crew, Task
from recall import recall


class Recalling(BaseLLM):
    def call(self, messages, *rest, **options):
        lines = [line for message in messages for line in str(message["content"]).splitlines()]
        said = [line for line in lines if line.startswith("user: ") or "Answer the user's message: " in line]
        said = [*said[1:], said[0]] if said else [message["content"] for message in messages if message["role"] == "user"]
        return f"Thought: I now can give a great answer\nFinal Answer: {recall(said)}"


assistant = Agent(role="assistant", goal="Remember everything.", backstory="-", llm=Recalling(model="recalling"))
task = Task(description="Answer the user's message: {message}\nThe conversation so far:\n{history}", expected_output="-", agent=assistant)
agent = Crew(agents=[assistant], tasks=[task])
