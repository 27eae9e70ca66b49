"""Kinds for other vendors and local servers with OpenAI's API, such as `groq/MODEL`.

Their classes are created from a table when an entry point names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from longspan.agents.models.openai import OPENAI, OpenAIAgent, OpenAICore

__all__ = ["VENDORS"]

VENDORS: Final[Mapping[str, tuple[str, ...]]] = {
    "azure": ("{AZURE_OPENAI_ENDPOINT}/openai/v1", "AZURE_OPENAI_API_KEY"),
    "bedrock": ("https://bedrock-runtime.{AWS_REGION}.amazonaws.com/openai/v1", "AWS_BEARER_TOKEN_BEDROCK"),
    "cerebras": ("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "cohere": ("https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY", "CO_API_KEY"),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": ("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "lmstudio": ("http://127.0.0.1:1234/v1", "LM_API_TOKEN"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "nvidia": ("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
    "ollama": ("http://127.0.0.1:11434/v1", "OLLAMA_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "perplexity": ("https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    "together": ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "vertex": (
        "https://{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com/v1/projects/{GOOGLE_CLOUD_PROJECT}"
        "/locations/{GOOGLE_CLOUD_LOCATION}/endpoints/openapi",
        "GOOGLE_OAUTH_ACCESS_TOKEN",
    ),
    "vllm": ("http://127.0.0.1:8000/v1", "VLLM_API_KEY"),
    "xai": ("https://api.x.ai/v1", "XAI_API_KEY"),
}
"""Addresses, with environment variables in braces, and the variables that may hold a key. A server on this machine needs none."""


@cache
def __getattr__(kind: str) -> type[OpenAIAgent]:
    """Return the class of a kind's agents, whose `core_class` is that of its models."""
    if kind not in VENDORS:
        raise AttributeError(kind)
    url, *keys = VENDORS[kind]
    vendor = replace(OPENAI, kind=kind, url=url, keys=tuple(keys), url_variable=f"{kind.upper()}_BASE_URL")
    core: Any = type(f"{kind.title()}Core", (OpenAICore,), {"__doc__": f"A chat model at {url}.", "vendor": vendor})
    return type(f"{kind.title()}Agent", (OpenAIAgent,), {"__doc__": f"An agent that is a chat model at {url}.", "core_class": core})
