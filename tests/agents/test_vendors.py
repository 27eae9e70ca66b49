"""The kinds for other vendors with OpenAI's API, against a server that speaks it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.environments import PROJECT, ROOT
from tests.loopback import Say, Server

from longspan.agents.base import InputError, Message, Usage
from longspan.agents.models import vendors
from longspan.agents.models.api_agent import ApiAgent
from longspan.agents.models.core import core_class
from longspan.agents.models.vendors import VENDORS
from longspan.simulator.base.keys import redact
from longspan.simulator.contract.plugins import load_plugin
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.result import read_result
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.subject.ledger import price_usage
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent, resolve_spec
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import Suite

KEY = "sk-marker-7f3a9c51-marker"
LOCAL = ("lmstudio", "ollama", "vllm")

pytestmark = pytest.mark.usefixtures("impatient")


def made(spec: str) -> ApiAgent:
    agent = make_agent(AgentSpec.parse(spec))
    assert isinstance(agent, ApiAgent)
    return agent


def ask(agent: ApiAgent) -> str:
    return trio.run(agent.reply, Message("Where is the parcel?", datetime(2024, 1, 1, 9), "c-0")).text


@pytest.fixture
def elsewhere(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server at the address that the environment gives every vendor, with a key for each."""
    for kind, (_, *keys) in VENDORS.items():
        monkeypatch.setenv(f"{kind.upper()}_BASE_URL", server.base_url("openai"))
        monkeypatch.setenv(keys[0], f"{KEY}-{kind}")
    return server


def test_each_vendor_in_the_table_is_a_kind_of_agent_and_of_model() -> None:
    for group, attribute in (("longspan.agents", ""), ("longspan.cores", ".core_class")):
        points = {name: value for name, value in PROJECT["entry-points"][group].items() if ".vendors:" in value}
        assert points == {kind: f"longspan.agents.models.vendors:{kind}{attribute}" for kind in VENDORS}
    for kind, (url, *_) in VENDORS.items():
        cls = load_plugin("longspan.agents", "kind of agent", kind)
        assert cls.__doc__ == f"An agent that is a chat model at {url}."
        assert cls.core_class is core_class(kind)
    with pytest.raises(AttributeError, match="nobody"):
        vendors.nobody  # noqa: B018


def test_the_guide_has_a_row_for_each_with_its_variables() -> None:
    page = (ROOT / "docs" / "guides" / "models.md").read_text("utf-8")
    cells = re.findall(r"^\| [^|]+ \| `(\w+)/[\w/]+` \| ([^|]+) \| [^|]+ \|$", page, re.MULTILINE)
    rows = {kind: set(re.findall(r"`([A-Z_]+)`", names)) for kind, names in cells if kind != "openai"}
    variables = {kind: {*re.findall(r"\{(\w+)\}", url), *keys} for kind, (url, *keys) in VENDORS.items()}
    assert rows == variables


@pytest.mark.parametrize("kind", VENDORS)
def test_it_is_asked_with_its_own_key_and_under_its_own_name(kind: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    _, *keys = VENDORS[kind]
    monkeypatch.setenv(keys[-1], KEY)
    core = core_class(kind)
    monkeypatch.setattr(core, "vendor", replace(core.vendor, url=server.base_url("openai")))
    agent = made(f"{kind}/some/model?max_tokens=77&repetition_penalty=1.1")
    assert ask(agent) == "re: Where is the parcel?"
    assert agent.models == {"agent": f"{kind}/some/model"}
    (asked,) = server.asked
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert {name: asked.body[name] for name in ("model", "max_tokens", "repetition_penalty")} == {
        "model": "some/model",
        "max_tokens": 77,
        "repetition_penalty": 1.1,
    }
    assert redact(f"key {KEY}") == f"key [{keys[-1]}]"
    assert resolve_spec(AgentSpec.parse(f"{kind}/some/model")).options == {}


@pytest.mark.parametrize("kind", VENDORS)
def test_without_a_key_its_variable_is_named_unless_it_is_on_this_machine(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, *keys = VENDORS[kind]
    for key in keys:
        monkeypatch.delenv(key, raising=False)
    with pytest.raises(InputError, match=f"needs a key: set the environment variable {' or '.join(keys)}$"):
        made(f"{kind}/m?base_url=https://gateway.example/v1")
    if kind in LOCAL:
        assert made(f"{kind}/m").models == {"agent": f"{kind}/m"}


FILLED = {
    "azure": ({"AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/"}, "https://mine.openai.azure.com/openai/v1", "azure"),
    "bedrock": ({"AWS_REGION": "eu-west-1"}, "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1", "aws"),
    "vertex": (
        {"GOOGLE_CLOUD_LOCATION": "europe-west4", "GOOGLE_CLOUD_PROJECT": "p-1"},
        "https://europe-west4-aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west4/endpoints/openapi",
        "google",
    ),
}


@pytest.mark.parametrize("kind", FILLED)
def test_an_address_is_completed_by_the_environment_and_recorded(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables, address, provider = FILLED[kind]
    monkeypatch.setenv(VENDORS[kind][1], KEY)
    for name in variables:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=f"{kind} needs an address: set the environment variable {' and '.join(variables)}, or base_url="):
        made(f"{kind}/m")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    spec = resolve_spec(AgentSpec.parse(f"{kind}/m"))
    assert spec.options == {"base_url": address}
    assert made(f"{kind}/m").models == made(str(spec)).models == {"agent": f"{provider}/m"}


def test_googles_global_location_is_not_in_the_name_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "global")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p-1")
    address = "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/endpoints/openapi"
    assert core_class("vertex").vendor.address() == address


@pytest.mark.parametrize("value", ["https://me:secret@example.org", "mine.openai.azure.com", "https://a?key=b"])
def test_an_address_that_may_hold_a_secret_or_is_none_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", value)
    with pytest.raises(InputError, match=r"^AZURE_OPENAI_ENDPOINT: "):
        core_class("azure").vendor.address()


@pytest.mark.parametrize(
    ("model", "known"),
    [
        *((f"groq/{name}", True) for name in ("llama-3.3-70b-versatile", "openai/gpt-oss-120b")),
        *((model, True) for model in ("openrouter/anthropic/claude-sonnet-4.5", "mistral/mistral-small-latest", "xai/grok-4")),
        *((model, False) for model in ("ollama/gpt-4o", "vllm/gpt-4o", "lmstudio/gpt-4o", "nvidia/meta/llama-3.1-8b-instruct")),
    ],
)
def test_the_price_list_knows_the_vendors_by_these_names(model: str, known: bool) -> None:
    assert (price_usage(model, Usage(1000, 0, 100)) is not None) is known


def test_an_agent_a_judge_and_an_answerer_take_their_names(elsewhere: Server, tmp_path: Path) -> None:
    elsewhere.reply = lambda text: Say('{"reason": "as said", "verdict": true}' if "JSON" in text else "Green.")

    def planned(agent: str) -> Any:
        suite = Suite(name="ltm", tests=1, scenarios={"colours": {}})
        settings = RunSettings(suite=suite, span=1500, agent=agent, judge="groq/judge", filler_size=500)
        return plan_run(settings, tmp_path)

    specs = ("openrouter/vendor/subject?context=4k", "memory/bm25?answerer=mistral/answerer", "ltm/deepseek/inner")
    for outcome in trio.run(play_plans, [planned(spec) for spec in specs]):
        assert outcome.error is None
        assert read_result(RunFolder(outcome.folder)).score is not None
    sent = {(asked.body["model"], asked.headers["authorization"].rpartition("-")[2]) for asked in elsewhere.asked}
    assert sent >= {("vendor/subject", "openrouter"), ("answerer", "mistral"), ("inner", "deepseek")}
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"openrouter/vendor/subject" in written
    assert KEY.encode() not in written
