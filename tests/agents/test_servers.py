"""Servers as they are: what each rejects and how it answers, from its documentation and public reports, from `check` to a graded run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import trio
from tests.loopback import Asked, Quirks, Raw, Server, Status
from tests.loopback.quirks import say_nothing, say_openai

from longspan.agents.base import AgentError
from longspan.agents.models.anthropic import AnthropicCore
from longspan.agents.models.core import ChatMessage
from longspan.agents.models.google import GoogleCore
from longspan.agents.models.openai import OPENAI, OpenAICore
from longspan.simulator.contract.findings import Finding
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.results.analysis.comparable import describe_differences
from longspan.simulator.results.gradebook.gradebook import grade_run
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.preflight.checkup import check_agent
from longspan.simulator.running.preflight.estimate import estimate_run
from longspan.simulator.running.runner import play_plans
from longspan.simulator.subject.purse import Purse
from longspan.simulator.suite.agent_spec import AgentSpec
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

pytestmark = pytest.mark.usefixtures("impatient", "openai_key")


def think(text: str) -> str:
    """Answer as a good model does."""
    if "prime" in text:
        return '{"prime": true}'
    if "JSON object" in text:
        return '{"holds": true, "why": "it says so"}'
    return "It is locker 4417." if "locker" in text else "OK."


def say_pydantic(part: str) -> Any:
    """Return the error of a server that validates requests with pydantic, which repeats the value."""
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", part], "msg": "Extra inputs are not permitted", "input": "temperature"}]}


def say_mistral(part: str) -> Any:
    return {"object": "error", "message": say_pydantic(part), "type": "invalid_request_error", "param": None, "code": None}


def say(message: str, **more: Any) -> Callable[[str], Any]:
    """Return an error in OpenAI's form with this message, in which {} is the rejected part."""
    return lambda part: {"error": {"message": message.format(part), "type": "invalid_request_error"} | more}


def say_vllm(part: str) -> Any:
    problem = f"[{{'type': 'extra_forbidden', 'loc': ('body', '{part}'), 'msg': 'Extra inputs are not permitted', 'input': 1}}]"
    return {"object": "error", "message": problem, "type": "BadRequestError", "param": None, "code": 400}


def say_serde(part: str) -> Any:
    """Return Amazon Bedrock's error for an open model: it lists the fields that exist."""
    known = "expected one of messages, model, max_tokens, max_completion_tokens, response_format, temperature, top_p, tools"
    problem = f"Failed to deserialize the JSON body into the target type: {part}: unknown field {part}, {known} at line 1 column 445"
    return {"message": f"The model returned the following errors: {problem}"}


def say_litellm(part: str) -> Any:
    told = f"litellm.UnsupportedParamsError: gpt-5 models don't support {part}=0.0. Only {part}=1 is supported. To drop unsupported params"
    return {"error": {"message": f"{told} set `litellm.drop_params = True`", "type": "None", "param": "None", "code": "400"}}


def harmony(text: str) -> str:
    return f"<|channel|>analysis<|message|>Hm. {{no}}<|end|><|start|>assistant<|channel|>final<|message|>{text}<|return|>"


def magistral(text: str) -> Any:
    return [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": text}, {"type": "reference"}]


@dataclass(frozen=True)
class Named:
    """A server: the path of its API, a model, options that users try with it, its quirks, and what is dropped by role."""

    name: str
    path: str
    model: str
    quirks: Quirks
    options: str = ""
    agent: tuple[str, ...] = ()
    judge: tuple[str, ...] = ()
    official: bool = False
    dropped: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        roles = {
            "agent": sorted(self.agent),
            "judge": sorted({*self.agent, *self.judge} - {"system role"}),
        }  # a judge has no system message
        object.__setattr__(self, "dropped", {role: names for role, names in roles.items() if names})

    def spec(self, server: Server) -> str:
        address = "" if self.official else f"&base_url={server.address}{self.path}"
        return f"openai/{self.model}?timeout=20&context=8k{address}{self.options}"


SERVERS = [
    Named("OpenAI", "/v1", "gpt-5", Quirks(("max_tokens", "temperature=0.0"), complain=say_openai), judge=("temperature",), official=True),
    Named(
        "Azure OpenAI", "/openai/v1", "my-gpt-5", Quirks(("max_tokens", "temperature", "top_p")), "&top_p=0.9", ("top_p",), ("temperature",)
    ),
    Named(
        "DeepSeek",
        "/v1",
        "deepseek-chat",
        Quirks(("response_format.type=json_schema",), complain=say("This response_format type is unavailable now", param=None)),
        judge=("json_schema",),
    ),
    Named(
        "Mistral",
        "/v1",
        "magistral-medium-latest",
        Quirks(("seed", "repetition_penalty", "repeat_penalty"), complain=say_mistral, status=422, shape=magistral),
        "&seed=3&repetition_penalty=1.1",
        ("seed", "repetition_penalty", "repeat_penalty"),
    ),
    Named(
        "Groq",
        "/openai/v1",
        "llama-3.3-70b-versatile",
        Quirks(
            ("response_format.type=json_schema",),
            complain=say("'response_format.type' : value is not one of the allowed values ['text','json_object']"),
        ),
        judge=("json_schema",),
    ),
    Named(
        "Together",
        "/v1",
        "meta-llama/Llama-3.3-70B-Instruct-Turbo",
        Quirks(("response_format",), complain=say("structured output is not supported by this model", param="response_format")),
        judge=("json_schema", "response_format"),
    ),
    Named(
        "Fireworks",
        "/inference/v1",
        "accounts/fireworks/models/qwen3-8b",
        Quirks(
            ("reasoning_effort",),
            complain=say("Extra inputs are not permitted, field: '{}', value: 'low'"),
            shape="<think>Hm.</think>{}".format,
        ),
        "&reasoning_effort=low",
        ("reasoning_effort",),
    ),
    Named(
        "OpenRouter",
        "/api/v1",
        "some/model",
        Quirks(
            ("response_format.json_schema",),
            complain=lambda _: {"error": {"message": "No endpoints found that can handle the requested parameters.", "code": 404}},
            status=404,
        ),
        judge=("json_schema",),
    ),
    Named(
        "OpenRouter, in an answer with status 200",
        "/api/v1",
        "other/model",
        Quirks(
            ("temperature",),
            complain=lambda part: {
                "error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps(say_openai(part))}}
            },
            status=200,
        ),
        judge=("temperature",),
    ),
    Named(
        "xAI",
        "/v1",
        "grok-4-fast-reasoning",
        Quirks(
            ("reasoning_effort",),
            complain=lambda _: {
                "code": "Client specified an invalid argument",
                "error": "Model grok-4-fast-reasoning does not support parameter reasoningEffort.",
            },
        ),
        "&reasoning_effort=low",
        ("reasoning_effort",),
    ),
    Named(
        "Cohere",
        "/compatibility/v1",
        "command-a-03-2025",
        Quirks(("stream_options",), complain=lambda part: {"id": "1", "message": f"{part} is not supported"}, status=422),
        "&stream=true",
        ("stream_options",),
    ),
    Named(
        "Gemini",
        "/v1beta/openai",
        "gemini-2.5-flash",
        Quirks(
            ("repetition_penalty", "repeat_penalty"),
            complain=lambda part: [
                {
                    "error": {
                        "code": 400,
                        "message": f'Invalid JSON payload received. Unknown name "{part}": Cannot find field.',
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ],
        ),
        "&repetition_penalty=1.1",
        ("repetition_penalty", "repeat_penalty"),
    ),
    Named("Perplexity", "", "sonar-reasoning", Quirks(shape="<think>\nHm.\n</think>\n{}".format), "&stream=true"),
    Named(
        "vLLM with gpt-oss",
        "/v1",
        "gpt-oss-20b",
        Quirks(("max_completion_tokens", "stream_options"), complain=say_vllm, shape=harmony),
        "&stream=true",
        ("stream_options",),
    ),
    Named(
        "Ollama",
        "/v1",
        "gemma3:4b",
        Quirks(
            ("reasoning_effort",), complain=say('"gemma3:4b" does not support thinking', type="api_error"), shape="```json\n{}\n```".format
        ),
        "&reasoning_effort=low",
        ("reasoning_effort",),
    ),
    Named(
        "LM Studio",
        "/v1",
        "gemma-2-9b-it",
        Quirks(
            ("system", "response_format.type=json_object"),
            complain=lambda part: {"error": 'Error rendering prompt with jinja template: "System role not supported".'},
        ),
        "&system=Be brief.",
        ("system role",),
    ),
    Named(
        "Amazon Bedrock",
        "/openai/v1",
        "openai.gpt-oss-20b-1:0",
        Quirks(("seed",), complain=say_serde, shape="<reasoning>Hm.</reasoning>{}".format),
        "&seed=3",
        ("seed",),
    ),
    Named("a LiteLLM proxy", "/v1", "gpt-5-mini", Quirks(("temperature",), complain=say_litellm), judge=("temperature",)),
    Named(
        "a gateway that gives no reason",
        "/v1",
        "any",
        Quirks(("max_tokens", "temperature"), complain=say_nothing, headers={"content-type": "text/plain"}),
        judge=("temperature",),
    ),
    Named(
        "a server that validates with pydantic",
        "/v1",
        "any",
        Quirks(("max_tokens", "response_format", "seed", "system"), complain=say_pydantic, status=422),
        "&seed=3&system=Be brief.",
        ("seed", "system role"),
        ("json_schema", "response_format"),
    ),
]


def inspect(spec: str) -> list[Finding]:
    """Return what `check` finds."""

    async def check() -> list[Finding]:
        return [finding async for finding in check_agent(AgentSpec.parse(spec))]

    return trio.run(check)


def play(spec: str, out: Path, judge: str | None) -> RunFolder:
    suite = load_suite("ltm").apply_changes([], [], ["jokes"], 1)
    plan = plan_run(RunSettings(suite=suite, span=1500, seed=3, agent=spec, isolated=True, judge=judge), out)
    (outcome,) = trio.run(play_plans, [plan])
    assert outcome.error is None
    return RunFolder(outcome.folder)


def rejections(server: Server) -> list[Asked]:
    return [asked for asked in server.asked if asked.used is None]


@pytest.mark.parametrize("named", SERVERS, ids=lambda named: named.name)
def test_a_user_gets_from_check_to_a_graded_run(named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(reply=think, quirks=named.quirks).running() as server:
        if named.official:
            monkeypatch.setattr(OpenAICore, "vendor", replace(OPENAI, url=f"{server.address}{named.path}"))
        spec = named.spec(server)
        findings = {finding.check: finding for finding in inspect(spec)}
        assert [finding for finding in findings.values() if finding.verdict == "bad"] == []
        assert [name for name in named.agent if name not in findings["request fields"].what] == []
        tried = len(rejections(server))
        for judge in (None, spec):
            result = grade_run(play(spec, tmp_path, judge))
            (test,) = result.tests
            assert test.status == "scored"
            assert ("judged: it says so" in test.reason) is (judge is not None)
            assert result.dropped == {role: names for role, names in named.dropped.items() if judge is not None or role == "agent"}
        rejected = rejections(server)
        assert len(rejected) - tried <= len(named.judge) + 2, "what was learned is not tried again"
        replies = [json.loads(line) for path in tmp_path.rglob("journal*.jsonl") for line in path.read_text().splitlines()]
        assert {reply["text"] for reply in replies if reply.get("type") == "reply" and reply.get("asked", True)} <= {
            "OK.",
            "```json\nOK.\n```",
        }


# How it is learned.


def core(server: Server, model: str, **options: Any) -> OpenAICore:
    return OpenAICore(model, OpenAICore.Options(base_url=server.base_url("openai"), timeout=20, **options))


def complete(model: OpenAICore, text: str = "Hello.") -> Any:
    return trio.run(lambda: model.complete([ChatMessage("user", text)]))


def test_requests_at_the_same_time_wait_for_the_first_one_to_learn(impatient: None) -> None:
    with Server(quirks=Quirks(("max_tokens", "temperature", "top_p", "seed"), complain=say_nothing)).running() as server:

        async def ask() -> None:
            model = core(server, "busy", temperature=0.5, top_p=0.5, seed=1)
            async with trio.open_nursery() as nursery:
                for _ in range(30):
                    nursery.start_soon(model.complete, [ChatMessage("user", "Hello.")])

        trio.run(ask)
        assert len([asked for asked in server.asked if asked.used]) == 30
        assert len(rejections(server)) <= 30 + 3 * 4
        before = len(rejections(server))
        assert complete(core(server, "busy", temperature=0.5)).dropped == ("temperature",)
        assert complete(core(server, "busy")).dropped == (), "there was nothing to leave out"
        assert len(rejections(server)) == before


def test_without_a_remedy_the_first_error_counts_and_nothing_is_learned(server: Server) -> None:
    server.always = Status(400, "no")
    model = core(server, "hopeless", temperature=0.5)
    for tried in (5, 6):  # once as it is, once more, without temperature, and the last two with the limit's other name
        with pytest.raises(AgentError, match=r"rejected the request \(400: no\)$"):
            complete(model)
        assert len(server.asked) == tried
    server.always = None
    assert complete(model).dropped == ()
    assert server.asked[-1].body["temperature"] == 0.5


@pytest.mark.parametrize("status", [Status(404, "no such page"), Status(400, "the model is not available"), Status(403, "temperature")])
def test_an_error_about_something_else_is_not_tried_again(server: Server, status: Status) -> None:
    server.always = status
    with pytest.raises(AgentError):
        complete(core(server, "other", temperature=0.5))
    assert len(server.asked) == 1


def test_a_server_that_has_accepted_a_request_is_believed(server: Server) -> None:
    model = core(server, "once", temperature=0.5)
    complete(model)
    server.script([Status(400, "who knows")])
    with pytest.raises(AgentError, match="who knows"):
        complete(model)
    server.script([Status(400, "temperature is no longer supported")])
    assert complete(model).dropped == ("temperature",)


def test_an_error_that_happens_once_teaches_nothing(server: Server) -> None:
    server.script([Status(400, "who knows")])
    assert complete(core(server, "flaky", temperature=0.5)).dropped == ()


def test_what_is_named_first_is_dropped_first(server: Server) -> None:
    server.script([Status(400, "`temperature` and `top_p` cannot both be specified for this model")])
    assert complete(core(server, "one-of-two", temperature=0.5, top_p=0.5)).dropped == ("temperature",)


def test_a_limit_that_is_too_large_is_not_renamed(server: Server) -> None:
    server.always = Status(400, "Invalid max_tokens value, the valid range of max_tokens is [1, 2048]")
    with pytest.raises(AgentError, match="the valid range"):
        complete(core(server, "short"))
    assert len(server.asked) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_may_only_stream_or_not_at_all(server: Server, stream: bool) -> None:
    server.script([Status(400, "This model only supports stream mode" if not stream else "streaming is not supported")])
    model = core(server, f"stream-{stream}", stream=stream)
    assert (complete(model).text, complete(model).dropped) == ("re: Hello.", ())
    assert [asked.body.get("stream", False) for asked in server.asked] == [stream, not stream, not stream]


def test_an_empty_reply_does_not_end_the_conversation(server: Server) -> None:
    messages = [ChatMessage("user", "Hm?"), ChatMessage("assistant", ""), ChatMessage("user", "Hello.")]
    server.script([Status(400, "Assistant message must have either content or tool_calls, but not none.")])
    answer = trio.run(core(server, "wordy").complete, messages)
    assert answer.dropped == ("empty messages",)
    assert [text for _, text in server.asked[-1].texts] == ["Hm?", "(empty)", "Hello."]


@pytest.mark.parametrize(
    "error",
    [
        Status(500, "Error rendering the chat template: System role not supported"),
        Raw(b'{"error": {"message": "system messages", "code": "unsupported_value"}}'),
        Raw(b'data: {"error": {"message": "no system message please", "code": "400"}}\n\n'),
        Raw(b'data: {"error": {"message": "roles must alternate user/assistant", "code": 400}}\n\n'),
    ],
)
def test_a_rejection_may_have_any_status(server: Server, error: Any, request: pytest.FixtureRequest) -> None:
    server.script([error])
    messages = [ChatMessage("system", "Be brief."), ChatMessage("user", "Hello.")]
    assert trio.run(core(server, f"any-{request.node.name[-8:]}").complete, messages).dropped == ("system role",)
    assert server.asked[-1].texts == [("user", "Be brief.\n\nHello.")]


def test_the_answerer_of_a_memory_is_a_role_of_its_own(tmp_path: Path) -> None:
    with Server(reply=think, quirks=Quirks(("temperature",))).running() as server:
        given = f"answerer.base_url={server.base_url('openai')}&answerer.temperature=0.5"
        result = grade_run(play(f"memory/bm25?answerer=openai/m&{given}", tmp_path, None))
    assert result.dropped == {"answerer": ["temperature"]}


def test_rejected_requests_are_free(server: Server) -> None:
    server.script([Status(400, "temperature"), Status(400, "top_p")])
    purse = Purse()

    async def ask() -> None:
        with purse.pay_in_context():
            model = core(server, "paid", temperature=0.5, top_p=0.5, price_in=1.0, price_out=1.0)
            await model.complete([ChatMessage("user", "Hello.")])

    trio.run(ask)
    *rejected, accepted = server.asked
    assert len(rejected) == 2
    assert accepted.used is not None
    assert purse.ledger.spent.tokens == accepted.used.prompt + accepted.used.output


@pytest.mark.parametrize("kind", ["anthropic", "google"])
def test_other_vendors_servers_are_learned_too(server: Server, kind: str) -> None:
    core_class = AnthropicCore if kind == "anthropic" else GoogleCore
    server.script([Status(400, "temperature is deprecated for this model"), Status(400, "JSON mode is not enabled for this model")])
    model = core_class("some-model", core_class.Options(base_url=server.base_url(kind), timeout=20, temperature=0.0))
    answer = trio.run(lambda: model.complete([ChatMessage("user", "Is it so?")], schema={"type": "object"}))
    assert answer.dropped == ("temperature", "json_schema")
    (text,) = [text for role, text in server.asked[-1].texts if role == "user"]
    assert text.endswith('It must match this JSON schema:\n{"type": "object"}')


# What users see.


def test_a_temperature_of_none_is_taken_everywhere(server: Server, tmp_path: Path) -> None:
    spec = f"{server.model('gpt-5')}&temperature=none"
    server.reply = think
    assert [finding for finding in inspect(spec) if finding.verdict == "bad"] == []
    run = play(spec, tmp_path, spec)
    assert grade_run(run).tests[0].status == "scored"
    assert not any("temperature" in asked.body for asked in server.asked)
    suite = load_suite("ltm").apply_changes([], [], ["jokes"], 1)
    assert trio.run(estimate_run, plan_run(RunSettings(suite=suite, span=1500, agent=spec), tmp_path)).turns


def test_check_says_that_dates_before_messages_are_answered_worse(server: Server) -> None:
    server.reply = lambda text: "It is sunny." if text.startswith("[") else think(text)
    found = {finding.check: finding for finding in inspect(server.model("dateless"))}
    assert found["dates"].verdict == "note"
    assert found["dates"].what.endswith("set timestamps=false")
    assert "dates" not in {finding.check for finding in inspect(f"{server.model('dateless')}&timestamps=false")}


def test_a_judge_without_json_gets_advice(server: Server, tmp_path: Path) -> None:
    server.reply = lambda text: "I would rather not say." if "Statement:" in text else "OK."
    (test,) = grade_run(play(server.model("agent"), tmp_path, server.model("prose"))).tests
    assert 'add extra_body={"response_format":{"type":"json_object"}} to its spec' in test.reason


def test_a_comparison_tells_what_was_dropped_on_one_side(tmp_path: Path) -> None:
    folders = []
    for quirks in (Quirks(), Quirks(("temperature",))):
        with Server(reply=think, quirks=quirks).running() as server:
            folders.append(play(f"{server.model('m')}&temperature=0.5", tmp_path, None))
    runs = [GradedRun(folder, folder.manifest, grade_run(folder)) for folder in folders]
    assert any("what servers rejected in requests differs" in line and "temperature (agent)" in line for line in describe_differences(runs))
