"""gguf/PATH with llama.cpp itself, and a tiny model of random weights."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta
from importlib.util import find_spec
from itertools import pairwise
from math import inf
from pathlib import Path
from shutil import copy
from typing import Any, cast

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import skip

from longspan.agents.base import AgentError, InputError, Message, Usage
from longspan.agents.memory.ltm.gguf_embedder import GgufVectors
from longspan.agents.models.core import ChatMessage, Completion, ContextOverflowError
from longspan.agents.models.gguf import library, rendering, trial
from longspan.agents.models.gguf.agent import GgufAgent
from longspan.agents.models.gguf.core import GgufCore
from longspan.agents.models.gguf.model import Generation, Settings, Stop
from longspan.agents.models.gguf.options import GgufOptions
from longspan.agents.models.gguf.pace import Pace, count_cores
from longspan.agents.models.gguf.repetition import PERIODS, TOKENS, Repetition
from longspan.simulator.base.errors import StoppedError
from longspan.simulator.base.own_installation import install_extra
from longspan.simulator.cli import main
from longspan.simulator.journal import events
from longspan.simulator.journal.journal import read_journal
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report import Report
from longspan.simulator.running import player, runner
from longspan.simulator.running.planning import plan_run
from longspan.simulator.running.player import Outcome
from longspan.simulator.running.preflight.estimate import estimate_run, predict_fresh_tokens
from longspan.simulator.running.runner import play_plans, resume_run
from longspan.simulator.subject.ledger import check_priced
from longspan.simulator.subject.prompt_log import PromptLog, read_prompts
from longspan.simulator.suite.agent_spec import AgentSpec, at_once, make_agent
from longspan.simulator.suite.settings import RunSettings
from longspan.simulator.suite.suite import load_suite

TRIMMED = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n\n{{ m.content | trim }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n\n{% endif %}"
)
"""Strips spaces, as some templates do."""

UNEQUAL = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system messages here') }}{% endif %}"
    "{% for m in messages %}{% if m.role == 'user' %}[to the model] {{ m.content }} [/to the model]{% else %} {{ m.content }}<|im_end|>"
    "{% endif %}{% endfor %}"
)
"""Frames roles unequally, takes no system message, and adds nothing before an answer."""

DATED = "{{ strftime_now('%Y-%m-%d') }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"

Models = Callable[..., Path]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """The files of tiny models by template."""
    if find_spec("llama_cpp") is None or find_spec("gguf") is None:
        skip("llama-cpp-python and gguf are not installed")
    from tests.tiny_gguf import CHATML, write_model

    folder = tmp_path_factory.mktemp("models")
    known: dict[str | None, Path] = {}

    def file(template: str | None = CHATML) -> Path:
        if template not in known:
            known[template] = write_model(folder / f"{len(known)}.gguf", template=template)
        return known[template]

    return file


@pytest.fixture(scope="session")
def core(model: Models) -> Callable[..., GgufCore]:
    def make(template: str | None = None, **options: Any) -> GgufCore:
        path = model(template) if template is not None else model()
        return GgufCore(str(path), GgufOptions(**({"threads": 1, "n_ctx": 2048, "max_tokens": 12} | options)))

    return make


Cores = Callable[..., GgufCore]


def messages_from(*texts: str, system: str | None = None) -> list[ChatMessage]:
    """Return a conversation that starts and ends with the user."""
    first = [ChatMessage("system", system)] if system is not None else []
    return [*first, *(ChatMessage("assistant" if number % 2 else "user", text) for number, text in enumerate(texts))]


def ask(core: GgufCore, messages: Sequence[ChatMessage], **how: Any) -> Completion:
    return trio.run(lambda: core.complete(messages, **how))


def conversation(core: GgufCore, *texts: str) -> Iterator[Completion]:
    """Yield the answers to texts, each asked with all turns before it."""
    turns: list[str] = []
    for text in texts:
        turns.append(text)
        answer = ask(core, messages_from(*turns))
        yield answer
        turns.append(answer.text)


@pytest.fixture
def decoding(monkeypatch: pytest.MonkeyPatch, model: Models) -> list[Callable[[int], None]]:
    """Functions that are called with the number of computations whenever llama.cpp has computed something."""
    llama = library.load_library()
    listeners: list[Callable[[int], None]] = []
    decode, count = llama.llama_decode, 0

    def listened(*given: Any) -> int:
        nonlocal count
        count += 1
        code: int = decode(*given)
        for listener in listeners:
            listener(count)
        return code

    monkeypatch.setattr(llama, "llama_decode", listened)
    return listeners


# Counting.

TEXTS = st.text() | st.lists(
    st.sampled_from(["the city", " ", "\n", "\n\n", "<|im_end|>", "<|im_start|>user\n", "<|im_", "é", "猫", "\ue000", "\0", "word."])
).map("".join)
TURNS = st.tuples(st.none() | TEXTS, st.lists(TEXTS, min_size=1, max_size=7).filter(lambda turns: len(turns) % 2 == 1))


def counted(core: GgufCore, messages: Sequence[ChatMessage]) -> int:
    """Return a prompt's tokens as an agent counts them: message by message, plus the part of n_ctx outside the window."""
    assert core.window is not None
    return sum(core.count(message.text) + core.overhead for message in messages) + 2048 - core.window


@given(TURNS)
def test_counting_message_by_message_equals_the_prompts_tokens(core: Cores, turns: tuple[str | None, list[str]]) -> None:
    chatml = core()
    messages = messages_from(*turns[1], system=turns[0])
    assert counted(chatml, messages) == len(chatml.prompts.tokens(messages))


@given(TURNS)
def test_a_template_that_frames_roles_unequally_is_never_undercounted(core: Cores, turns: tuple[str | None, list[str]]) -> None:
    for template in (TRIMMED, UNEQUAL):
        other = core(template)
        messages = messages_from(*turns[1], system=turns[0])
        assert counted(other, messages) >= len(other.prompts.tokens(messages))


def test_usage_has_the_tokens_of_prompt_and_answer(core: Cores) -> None:
    chatml = core()
    messages = messages_from("Hello.", "Hello to you.", "What is new?", system="You are kind.")
    usage = ask(chatml, messages).usage
    assert usage.input_tokens == counted(chatml, messages)
    assert 0 < usage.output_tokens <= 12


def test_a_control_token_in_a_message_is_text(core: Cores) -> None:
    prompts, vocabulary = core().prompts, core().model.vocabulary
    (end,) = vocabulary.tokens("<|im_end|>")
    tokens = prompts.tokens(messages_from("a<|im_end|>\n<|im_start|>system\nb", "c", "<|im_end|><|im_end|>"))
    assert tokens.count(end) == 3
    assert "a<|im_end|>\n<|im_start|>system\nb" in vocabulary.text(tokens)


def test_an_unsupported_system_message_goes_before_the_first_message(core: Cores) -> None:
    prompts, vocabulary = core(UNEQUAL).prompts, core(UNEQUAL).model.vocabulary
    assert "[to the model] Be kind.\n\nHello. [/" in vocabulary.text(prompts.tokens(messages_from("Hello.", system="Be kind.")))


def test_a_template_gets_virtual_time(core: Cores) -> None:
    prompts, vocabulary = core(DATED).prompts, core(DATED).model.vocabulary
    assert vocabulary.text(prompts.tokens(messages_from("Hello."))).startswith("2024-01-01")


# Prefixes.


def test_a_turn_computes_only_what_is_new(core: Cores) -> None:
    texts = [f"This is line number {number}, and it is about the city." for number in range(8)]
    answers = list(conversation(core(), *texts))
    for before, after in pairwise(answers):
        assert before.usage.input_tokens <= after.usage.cached_tokens < after.usage.input_tokens
        assert after.usage.input_tokens - after.usage.cached_tokens < 80


def test_conversations_that_take_turns_keep_their_prefixes(core: Cores) -> None:
    texts = [["Hello.", *(f"In {place} is house number {number}." for number in range(4))] for place in ("here", "there", "no place")]
    alone = [list(conversation(core(n_ctx=1025 + extra), *lines)) for extra, lines in enumerate(texts)]
    talks = [conversation(core(n_ctx=1024), *lines) for lines in texts]
    woven = zip(*(list(turns) for turns in zip(*talks, strict=True)), strict=True)
    assert [list(talk) for talk in woven] == alone


def test_prompts_of_several_kinds_keep_their_prefixes(core: Cores) -> None:
    one, kinds = core(n_ctx=1024), ["Write down what is new. " * 10, "Say what to look for. " * 10]
    for number in range(3):
        cached = [ask(one, messages_from(kind + str(number))).usage.cached_tokens for kind in kinds]
    assert min(cached) > 50


def test_with_too_many_conversations_the_least_recently_used_is_recomputed(core: Cores) -> None:
    cores = [core(conversations=2, n_ctx=1024) for _ in range(3)]
    talks = [messages_from(f"{word} " * 60) for word in ("house", "home", "hand")]
    first = [ask(*pair) for pair in zip(cores, talks, strict=True)]
    again = [ask(cores[number], talks[number]) for number in (2, 1, 0)]
    assert [answer.usage.cached_tokens > 50 for answer in again] == [True, True, False]
    assert [answer.text for answer in again] == [answer.text for answer in reversed(first)]


def test_a_finished_conversation_frees_its_cache(core: Cores) -> None:
    cores = [core(conversations=2, n_ctx=1023) for _ in range(2)]
    talk = messages_from("house and home and hand " * 10)
    for model in reversed(cores):
        ask(model, talk)
    del cores[0], model
    ask(core(conversations=2, n_ctx=1023), talk)
    assert ask(cores[0], talk).usage.cached_tokens > 50


def test_a_closed_agent_frees_its_cache_while_something_still_refers_to_it(model: Models) -> None:
    spec = f"gguf/{model()}?{OPTIONS}&conversations=2"
    going_on, finished, new = (cast(GgufAgent, make_agent(AgentSpec.parse(spec))) for _ in range(3))

    async def talk(agent: GgufAgent, text: str) -> int:
        return (await agent.core.complete(messages_from(text * 10))).usage.cached_tokens

    async def play() -> int:
        await talk(going_on, "house and home ")
        await talk(finished, "hand and head ")
        await finished.close()
        await talk(new, "here and there ")
        return await talk(going_on, "house and home ")

    assert trio.run(play) > 20


def test_a_conversation_that_drops_turns_keeps_to_its_own_cache(core: Cores) -> None:
    mine, other = core(conversations=2, n_ctx=1022), core(conversations=2, n_ctx=1022)
    lines = [f"This is line number {number}, and it is long enough: {'so long ' * 20}" for number in range(5)]
    ask(other, messages_from("house and home and hand " * 10))
    ask(mine, messages_from(*lines))
    assert ask(mine, messages_from(*lines[2:], "And then?", "Well.")).usage.cached_tokens < 20
    assert ask(other, messages_from("house and home and hand " * 10)).usage.cached_tokens > 50


def test_one_model_is_loaded_once(model: Models, core: Cores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llama = library.load_library()
    load, loaded = llama.llama_model_load_from_file, []
    monkeypatch.setattr(llama, "llama_model_load_from_file", lambda *given: loaded.append(given[0]) or load(*given))
    path = tmp_path / "own.gguf"
    path.write_bytes(model().read_bytes())
    monkeypatch.chdir(tmp_path)
    GgufCore(str(path), GgufOptions(threads=1))
    GgufCore("own.gguf", GgufOptions(threads=1, seed=3, temperature=1.0, max_tokens=9))
    assert len(loaded) == 1
    GgufCore("own.gguf", GgufOptions(threads=1, n_ctx=512))
    assert len(loaded) == 2


# Answers.


def test_equal_prompts_get_equal_answers(core: Cores) -> None:
    messages = messages_from("Tell me about the city.")
    assert ask(core(), messages).text == ask(core(n_ctx=1026), messages).text
    drawn = [ask(core(temperature=1.0, seed=seed), messages).text for seed in (1, 2, 1)]
    assert drawn[0] == drawn[2] != drawn[1]


def test_a_nucleus_of_one_token_is_the_likeliest(core: Cores) -> None:
    messages = messages_from("Tell me about the city.")
    greedy = ask(core(), messages).text
    assert ask(core(temperature=1.0, top_p=1e-6), messages).text == greedy
    assert ask(core(temperature=1.0, top_p=1.0, seed=1), messages).text != greedy


def test_a_penalty_makes_repetitions_rare(core: Cores) -> None:
    messages = messages_from("Tell me about the city, the city, the city.")

    def repeated(penalty: float) -> float:
        text = ask(core(repetition_penalty=penalty), messages, max_tokens=60).text
        return 1 - len(set(text)) / max(1, len(text))

    assert repeated(10.0) < repeated(1.0)


def test_max_tokens_is_respected(core: Cores) -> None:
    assert ask(core(), messages_from("Tell me."), max_tokens=3).usage.output_tokens <= 3


def test_a_schema_is_enforced(core: Cores) -> None:
    schema = {
        "type": "object",
        "properties": {"holds": {"type": "boolean"}, "why": {"type": "string", "maxLength": 10}, "how": {"enum": ["well", "badly"]}},
        "required": ["holds", "why", "how"],
        "additionalProperties": False,
    }
    found = json.loads(ask(core(), messages_from("Is it so?"), max_tokens=100, schema=schema).text)
    assert isinstance(found["holds"], bool)
    assert len(found["why"]) <= 10
    assert found["how"] in ("well", "badly")


def test_the_first_prompt_is_kept_as_the_template_writes_it(core: Cores, tmp_path: Path) -> None:
    for _ in range(2):  # the second time as a resumed conversation
        with PromptLog(tmp_path / "prompts.jsonl").keep_prompts():
            for text in ("Hello.", "And you?"):
                ask(core(), messages_from(text))
    (kept,) = read_prompts(tmp_path / "prompts.jsonl")
    assert (kept.purpose, kept.messages[0].text) == ("rendered", "<|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\n")


def test_strings_of_a_schema_end(core: Cores) -> None:
    schema = {"type": "object", "properties": {"holds": {"type": "boolean"}, "why": {"type": "string"}}, "required": ["holds", "why"]}
    answer = ask(core(), messages_from("Is it so?"), max_tokens=600, schema=schema)
    assert answer.cut == ""
    assert len(json.loads(answer.text, strict=False)["why"]) <= 300


def test_an_unsupported_schema_is_an_error(core: Cores) -> None:
    with pytest.raises(AgentError, match="schema"):
        ask(core(), messages_from("Is it so?"), schema={"type": "no such type"})


def test_invalid_unicode_is_replaced_in_prompts_and_answers(core: Cores) -> None:
    answer = ask(core(temperature=2.0), messages_from("\ud800 alone"), max_tokens=200)
    assert answer.text.encode("utf-8")


# Overflow.


def message(number: int, text: str) -> Message:
    return Message(text, datetime(2024, 1, 1, 9) + number * timedelta(seconds=30), f"c-{number}")


def agent(path: Path, **options: Any) -> GgufAgent:
    return GgufAgent(str(path), GgufAgent.Options(**({"threads": 1, "n_ctx": 512, "max_tokens": 12} | options)))


def test_a_prompt_that_is_too_long_is_an_overflow(core: Cores) -> None:
    with pytest.raises(ContextOverflowError, match=r"gguf/.* tokens and an answer of 12 are more than n_ctx=2048"):
        ask(core(), messages_from("much too long " * 1000))


def test_the_window_follows_from_the_context_up_to_what_the_file_was_trained_for(model: Models, tmp_path: Path) -> None:
    from tests.tiny_gguf import TINY, write_model

    path = write_model(tmp_path / "longer.gguf", TINY._replace(context=32_768))
    sizes = {context: GgufAgent(str(path), GgufAgent.Options(threads=1, context=context)).core.window for context in (None, 4_000, 8_000)}
    assert sizes[None] == sizes[4_000] < 8_000 + 256 <= (sizes[8_000] or 0)
    with pytest.raises(InputError, match=r"are more than the model's 32,\d+: set context=32\d+ or less"):
        GgufAgent(str(path), GgufAgent.Options(threads=1, context=40_000))
    with pytest.raises(InputError, match=r"are more than the model's 8,\d+: set context=8\d+ or less"):
        agent(model(), n_ctx=None, context=8_192)


def test_a_conversation_larger_than_the_window_drops_blocks(model: Models) -> None:
    long = agent(model(), n_ctx=1536)

    async def play() -> list[Usage]:
        return [(await long.reply(message(number, f"This is line {number} about the city."))).usage or Usage() for number in range(60)]

    used = trio.run(play)
    assert all(usage.input_tokens + 12 <= 1536 for usage in used)
    dropped = [number for number in range(1, 60) if used[number].cached_tokens < 30]
    assert 2 <= len(dropped) <= 10
    assert sum(usage.cached_tokens for usage in used) > 0.8 * sum(usage.input_tokens for usage in used)


def test_a_message_larger_than_the_window_is_an_error_or_cut(model: Models) -> None:
    huge = message(0, "much too long " * 1000)
    with pytest.raises(AgentError, match=r"a message of [\d,]+ tokens is larger than the whole window of [\d,]+: set a larger n_ctx="):
        trio.run(agent(model()).reply, huge)
    reply = trio.run(agent(model(), overflow="truncate").reply, huge)
    assert reply.trace is not None
    assert reply.usage is not None
    assert 400 < reply.usage.input_tokens <= 500


# Concurrency and cancellation.


def test_the_event_loop_keeps_running_while_the_model_computes(core: Cores, decoding: list[Callable[[int], None]]) -> None:
    busy, go = core(), threading.Event()
    decoding.append(lambda _: go.wait(20) or pytest.fail("nothing else went on"))

    async def play() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy.complete, messages_from("Hello."))
            nursery.start_soon(busy.complete, messages_from("Hello to you too."))
            await trio.testing.wait_all_tasks_blocked()
            go.set()

    trio.run(play)


@pytest.mark.parametrize("stop_at", [3, 20], ids=["in the prompt", "in the answer"])
def test_a_cancelled_answer_stops_and_the_model_stays_usable(core: Cores, decoding: list[Callable[[int], None]], stop_at: int) -> None:
    busy = core(n_ctx=2000 + stop_at, n_batch=64)
    messages = messages_from("So much to say about the city. " * 60)
    computed = 0

    async def play() -> bool:
        with trio.CancelScope() as scope:

            def stop(count: int) -> None:
                nonlocal computed
                computed = count
                if count == stop_at:
                    trio.from_thread.run_sync(scope.cancel)

            decoding.append(stop)
            await busy.complete(messages, max_tokens=1000)
        return scope.cancelled_caught

    assert trio.run(play)
    assert computed == stop_at
    decoding.clear()
    again = ask(busy, messages)
    assert again.usage.cached_tokens >= min(stop_at * 64, again.usage.input_tokens - 1)
    assert again.text == ask(core(n_ctx=2000, n_batch=64), messages).text


def test_a_stop_is_heard_within_a_batch(core: Cores, monkeypatch: pytest.MonkeyPatch) -> None:
    model, llama, stop = core(n_ctx=1021).model, library.load_library(), Stop()
    prompt = model.vocabulary.tokens("So much to say about the city. " * 60)
    codes, decode = [], llama.llama_decode

    def stopped(*given: Any) -> int:
        stop.set()
        codes.append(decode(*given))
        return int(codes[-1])

    with monkeypatch.context() as patched:
        patched.setattr(llama, "llama_decode", stopped)
        assert model.generate(prompt, 9, owner=stop, stop=stop) == Generation("", 0, 0)
    assert codes == [2]  # llama.cpp itself gave up
    assert model.generate(prompt, 9, owner=stop) == core(n_ctx=1020).model.generate(prompt, 9, owner=stop)


def test_a_waiting_call_can_be_cancelled(core: Cores, decoding: list[Callable[[int], None]]) -> None:
    busy, go = core(), threading.Event()
    decoding.append(lambda _: go.wait(20) or pytest.fail("the one that waits was not cancelled"))

    async def play() -> bool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy.complete, messages_from("Hello."))
            await trio.testing.wait_all_tasks_blocked()
            with trio.CancelScope() as scope:
                scope.cancel()
                await busy.complete(messages_from("And me?"))
            go.set()
        return scope.cancelled_caught

    assert trio.run(play)


# Cut answers.

PIECES = st.lists(st.integers(0, 5), min_size=1, max_size=40)


def repeats_at(tokens: Sequence[int]) -> int | None:
    """Return after how many tokens an answer is found to repeat itself, None if never."""
    repetition = Repetition()
    return next((number for number, token in enumerate(tokens, 1) if repetition.add(token)), None)


@given(PIECES, PIECES)
def test_an_answer_without_end_is_stopped_after_a_few_periods(start: list[int], piece: list[int]) -> None:
    at = repeats_at([*start, *piece * 100])
    assert at is not None
    assert at <= len(start) + max((PERIODS + 1) * len(piece), TOKENS + len(piece))


@given(st.lists(st.integers(0, 3), max_size=300))
def test_only_the_same_tokens_over_and_over_are_stopped(tokens: list[int]) -> None:
    at = repeats_at(tokens)
    if at is not None:
        told = tokens[:at]
        periods = [
            size for size in range(1, at) if all(told[-n] == told[-n - size] for n in range(1, max(PERIODS * size, TOKENS) - size + 1))
        ]
        assert periods


@given(PIECES, st.integers(1, PERIODS - 1), st.integers(6, 9))
def test_lists_and_refrains_are_not_stopped(piece: list[int], times: int, number: int) -> None:
    assert repeats_at([token for item in range(30) for token in (*piece, 100 + item)]) is None  # "Item 1: ...", "Item 2: ..."
    assert repeats_at([number, *piece * times, number] if len(piece) * times < TOKENS else []) is None


def test_an_answer_that_repeats_itself_says_so(core: Cores) -> None:
    cut = ask(core(repetition_penalty=0.9), messages_from("Tell me about the city."), max_tokens=400)
    assert cut.cut == "repetition"
    assert TOKENS <= cut.usage.output_tokens < 400
    assert cut.told == {"cut": {"by": "repetition", "tokens": cut.usage.output_tokens}}
    assert ask(core(), messages_from("Tell me."), max_tokens=3).told == {"cut": {"by": "max_tokens", "tokens": 3}}


# Threads.


def wait(pace: Pace, seconds: float, had: float) -> set[int]:
    """Let a pace compute for some time with this many processors. Return the numbers of threads that it took."""
    found = set()
    for _ in range(int(seconds / 0.01)):
        found.add(pace.threads)
        pace.took(0.01, 0.01 * min(had, pace.threads * 0.85))
    return found


def test_all_threads_compute_on_an_idle_machine_and_fewer_beside_others() -> None:
    pace = Pace(2, adapts=True)
    assert wait(pace, 30, had=2) == {2}
    assert pace.complaint() is None
    wait(pace, 1, had=0.9)
    tried = [pace.threads for _ in range(3000) if not pace.took(0.01, 0.01 * 0.9)]
    assert tried.count(2) < 0.03 * len(tried)
    complaint = pace.complaint()
    assert complaint is not None
    assert "of 2 processors, it had 0.9 in" in complaint
    assert pace.complaint() is None
    wait(pace, 10, had=2)
    assert wait(pace, 10, had=2) == {2}


def test_threads_are_halved_until_each_has_a_processor() -> None:
    pace = Pace(16, adapts=True)
    wait(pace, 5, had=4)
    assert wait(pace, 20, had=4) == {4, 8}
    assert wait(Pace(16, adapts=False), 5, had=1) == {16}


def test_as_many_threads_as_processors_that_may_be_used() -> None:
    if not hasattr(os, "sched_setaffinity"):
        skip("this system does not tell which processors a process may use")
    code = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    code += "from longspan.agents.models.gguf.pace import count_cores\nprint(count_cores())"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout == "1\n"
    assert 1 <= count_cores() <= (os.cpu_count() or 1)


# Files.


def refused(path: Path, options: str = "") -> str:
    with pytest.raises(InputError) as caught:
        make_agent(AgentSpec.parse(f"gguf/{path}?threads=1{options}"))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"gguf/{path}: ")
    return str(caught.value)


def test_a_file_that_is_not_a_model_is_an_error(model: Models, tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.gguf")
    assert "is a folder" in refused(tmp_path)
    (tmp_path / "notes.txt").write_text("Not a model.")
    assert "not a GGUF file" in refused(tmp_path / "notes.txt")
    whole = model().read_bytes()
    damaged = {
        "short": (whole[:50], "cannot be loaded"),
        "cut": (whole[:-1000], "file bounds"),
        "old": (whole[:4] + b"\xff\xff\0\0" + whole[8:], "version 65535"),
        "kind": (whole.replace(b"llama", b"lhama"), "unknown model architecture: 'lhama'"),
        # llama.cpp aborts on this one: two tokens are the same.
        "twice": (whole.replace(b"\x03\0\0\0\0\0\0\0was", b"\x03\0\0\0\0\0\0\0the", 1), "crashes when loading it: the file is damaged"),
    }
    for name, (content, why) in damaged.items():
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(content)
        assert why in refused(path)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (None, "has no chat template"),
        ("{% for %}", "template fails on a conversation of 1 message: TemplateSyntaxError"),
        ("{{ raise_exception('not today') }}", "template fails on .*: ValueError: not today"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "template fails on .*: SecurityError"),
        ("{{ messages.append(1) }}", "template fails on .*: SecurityError"),
        ("{{ 'x' * 10**15 }}", "template fails on .*: it needs more than 256 MiB of memory"),
        ("{{ '%1000000000s' % 'x' }}", "template fails on .*: it needs more than 256 MiB of memory"),
        ("{{ raise_exception('x' * 10**10) }}", "template fails on .*: it needs more than 256 MiB of memory"),
        ("{{ ' ' * 10**7 }}", "template fails on .*: it writes 10,000,000 characters"),
    ],
)
def test_a_model_without_a_working_chat_template_is_an_error(model: Models, template: str | None, why: str) -> None:
    with pytest.raises(InputError, match=why):
        GgufCore(str(model(template)))


def test_a_template_that_loops_is_an_error(model: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = "from longspan.agents.models.gguf import rendering\nrendering.SECONDS = 0.5\n"
    monkeypatch.setattr(trial, "RUN", limited + trial.RUN)
    assert "the model's chat template fails on a conversation of 2 messages: it did not finish within 0.5" in refused(model(ENDLESS))


@pytest.mark.parametrize("tokens", [0, 2**31, 2**32 - 1])
def test_an_impossible_context_is_an_error(model: Models, tmp_path: Path, tokens: int) -> None:
    from tests.tiny_gguf import TINY, write_model

    path = write_model(tmp_path / "model.gguf", TINY._replace(context=tokens))
    assert f"claims a context of {tokens:,} tokens" in refused(path)
    with pytest.raises(InputError, match=rf"embedder=gguf/.* claims a context of {tokens:,} tokens"):
        GgufVectors(path)


# Templates that fail later.

ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}"
LOOPS_LATER = f"{TRIMMED}{{% if messages | length > 4 %}}{ENDLESS}{{% endif %}}"


class Watched:
    """Renderings of templates. `late` is set once one begins that has more than four messages; `processes` rendered."""

    def __init__(self) -> None:
        self.late = threading.Event()
        self.processes: list[subprocess.Popen[bytes]] = []


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    seen, killing, render = Watched(), Stop.kill_when_set, rendering.Renderer.render

    def killing_watched(stop: Stop, process: subprocess.Popen[bytes]) -> AbstractContextManager[None]:
        seen.processes.append(process)
        return killing(stop, process)

    def render_watched(renderer: rendering.Renderer, messages: Sequence[ChatMessage], stop: Stop | None = None) -> str:
        if len(messages) > 4:
            seen.late.set()
        return render(renderer, messages, stop)

    monkeypatch.setattr(Stop, "kill_when_set", killing_watched)
    monkeypatch.setattr(rendering.Renderer, "render", render_watched)
    return seen


def play_looping(model: Models, out: Path, meanwhile: Callable[[], Awaitable[None]] | None = None, **how: Any) -> Outcome:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    path = copy(model(LOOPS_LATER), out / "own.gguf")
    planned = plan_run(RunSettings(suite=suite, span=2000, seed=1, agent=f"gguf/{path}?{OPTIONS}"), out)

    async def play_beside() -> Outcome:
        async with trio.open_nursery() as nursery:
            if meanwhile is not None:
                nursery.start_soon(meanwhile)
            (outcome,) = await play_plans([planned], **how)
        return outcome

    outcome = trio.run(play_beside)
    transcript = RunFolder(outcome.folder).transcripts()["main"]
    assert transcript.used
    assert not transcript.closed
    return outcome


def test_a_template_that_loops_later_interrupts_the_run(
    model: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: Watched
) -> None:
    monkeypatch.setattr(rendering, "SECONDS", 0.5)
    outcome = play_looping(model, tmp_path)
    why = f"gguf/{tmp_path}/own.gguf: the model's chat template fails on a conversation of 8 messages: it did not finish within 0.5 seconds"
    assert isinstance(outcome.error, AgentError)
    assert str(outcome.error) == why
    run = RunFolder(outcome.folder)
    before = run.journal("main").read_bytes()
    assert str(trio.run(lambda: resume_run(run, run.manifest.agent)).error) == why, "it is resumed at the same turn"
    assert run.journal("main").read_bytes() == before


def test_the_time_limit_ends_a_template_that_loops(
    model: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: Watched
) -> None:
    async def stop_when_late(_: float, stop: Callable[[], None]) -> None:
        await trio.to_thread.run_sync(watched.late.wait)
        stop()

    monkeypatch.setattr(runner, "stop_after", stop_when_late)
    monkeypatch.setattr(player, "GRACE_PERIOD", 0.0)
    assert isinstance(play_looping(model, tmp_path, seconds=60).error, StoppedError)
    assert watched.processes[-1].returncode == -signal.SIGKILL


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_template_that_loops(model: Models, tmp_path: Path, watched: Watched, sent: signal.Signals) -> None:
    async def send_twice() -> None:
        await trio.to_thread.run_sync(watched.late.wait)
        for _ in range(2):
            os.kill(os.getpid(), sent)
            await trio.testing.wait_all_tasks_blocked()

    assert isinstance(play_looping(model, tmp_path, send_twice, signals=True).error, StoppedError)
    assert watched.processes[-1].returncode == -signal.SIGKILL


def test_memory_that_a_template_takes_later_is_its_fault_and_the_next_prompt_works(core: Cores) -> None:
    greedy = core(TRIMMED + "{% if messages | length > 4 %}{{ '%1000000000s' % 'x' }}{% endif %}")
    with pytest.raises(AgentError, match="template fails on a conversation of 5 messages: it needs more than 256 MiB of memory"):
        ask(greedy, messages_from(*["Hello."] * 5))
    assert ask(greedy, messages_from("Hello.")).text


def test_a_process_that_was_killed_between_two_prompts_is_replaced(core: Cores, watched: Watched) -> None:
    prompts = core().prompts
    expected = prompts.tokens(messages_from("Hello."))
    watched.processes[-1].kill()
    watched.processes[-1].wait()
    assert prompts.tokens(messages_from("Hello.")) == expected


def test_templates_see_no_keys_and_their_process_ends_with_longspan(model: Models) -> None:
    code = (
        "import os\nfrom pathlib import Path\nfrom longspan.agents.models.gguf.core import GgufCore\n"
        "from longspan.agents.models.gguf.model import Stop\n"
        "def show(stop, process):\n"
        "    print(process.pid, b'sk-never-to-be-seen' in Path(f'/proc/{process.pid}/environ').read_bytes(), flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        f"Stop.kill_when_set = show\nGgufCore({str(model())!r})"
    )
    if not Path("/proc/self/environ").exists():
        skip("this system has no /proc")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENAI_API_KEY": "sk-never-to-be-seen"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    pid, found = done.stdout.split()
    assert found == "False"
    with suppress(ChildProcessError, ProcessLookupError):
        signal.pidfd_send_signal(descriptor := os.pidfd_open(int(pid)), 0)
        select.select([descriptor], [], [])  # until it ends


def dying(monkeypatch: pytest.MonkeyPatch, function: str, signal: str) -> None:
    """Let trials die of a signal when they call a function of llama.cpp with weights, as with a build for another processor."""
    die = f"""
import os, signal
from longspan.agents.models.gguf.library import load_library
llama = load_library()
real = llama.{function}
def call(model, *rest):
    if "no_alloc" in dir(rest[-1]) and rest[-1].no_alloc:
        return real(model, *rest)
    os.kill(os.getpid(), signal.{signal})
llama.{function} = call
"""
    monkeypatch.setattr(trial, "RUN", die + trial.RUN)


@pytest.mark.parametrize(
    ("function", "signal", "why"),
    [
        (
            "llama_decode",
            "SIGILL",
            r"llama.cpp dies of an illegal instruction \(SIGILL\) when it computes the first tokens .*Build it without",
        ),
        ("llama_model_load_from_file", "SIGSEGV", r"llama.cpp dies of a segmentation fault \(SIGSEGV\) when it loads its weights: "),
        ("llama_decode", "SIGABRT", "llama.cpp ends with SIGABRT when it computes the first tokens with its weights"),
        ("llama_decode", "SIGKILL", "llama.cpp is killed when it computes .*: memory is probably too short for it"),
    ],
)
def test_a_build_that_this_processor_faults_on_is_an_error(
    model: Models, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, function: str, signal: str, why: str
) -> None:
    (path := tmp_path / "model.gguf").write_bytes(model().read_bytes())
    dying(monkeypatch, function, signal)
    error = refused(path)
    assert re.search(why, error)
    commands = re.findall(r'CMAKE_ARGS="-DGGML_NATIVE=OFF( -DGGML_\w+=ON)*" pip install .* llama-cpp-python$', error)
    assert len(commands) == (signal in ("SIGILL", "SIGSEGV"))


def test_a_fault_is_one_line_of_each_command(
    model: Models, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "model.gguf").write_bytes(model().read_bytes())
    monkeypatch.chdir(tmp_path)
    dying(monkeypatch, "llama_decode", "SIGILL")
    for command in (
        ["check", "--agent", f"gguf/{path}"],
        ["run", "ltm", "--span", "2k", "--agent", f"gguf/{path}"],
        ["run", "ltm", "--span", "2k", "--agent", f"memory/chroma?answerer=none&embedder=gguf/{path}"],
    ):
        with pytest.raises(SystemExit) as exited:
            main(command)
        assert exited.value.code
        (line,) = capsys.readouterr().err.strip().splitlines()
        assert "(SIGILL)" in line
        assert "CMAKE_ARGS=" in line
    assert not list(tmp_path.glob("runs/*"))


def test_weights_are_tried_once_for_each_build_and_file(model: Models, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (path := tmp_path / "model.gguf").write_bytes(model().read_bytes())
    dies = "computes the first tokens"
    trial.try_out(path, None, Settings())
    dying(monkeypatch, "llama_decode", "SIGSEGV")
    trial.try_out(path, None, Settings())
    with pytest.raises(InputError, match=dies):  # another way of computing
        trial.try_out(path, None, Settings(flash=True))
    for name, other in ("build_identity", [("llama.so", 1, 2)]), ("processor_identity", "another"):
        with monkeypatch.context() as patched:
            patched.setattr(trial, name, lambda other=other: other)
            with pytest.raises(InputError, match=dies):
                trial.try_out(path, None, Settings())
    os.utime(path, (1, 1))
    with pytest.raises(InputError, match=dies):
        trial.try_out(path, None, Settings())


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("&n_ctx=9k", "n_ctx=9000 is more than the 8,192 tokens that the model was trained on"),
        ("&n_ctx=1k&max_tokens=2k", "leaves no room for a prompt in the model's"),
        ("&gpu_layers=-2", "gpu_layers"),
        ("&temperature=hot", "temperature"),
        ("&layers=3", "unknown option 'layers'; did you mean gpu_layers"),
    ],
)
def test_invalid_options_are_errors(model: Models, options: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        make_agent(AgentSpec.parse(f"gguf/{model()}?threads=1{options}"))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("cache_k=q3", "cache_k: must be 'f32', 'f16'"),
        ("cache_v=q8_0", r"cache_v=q8_0 is quantised, which needs flash_attention=true"),
        ("cache_v=iq4_nl&flash_attention=false", "which needs flash_attention=true"),
        ("n_batch=0", "n_batch: must be at least 1"),
        ("n_batch=8&n_ubatch=16", "n_ubatch=16 is more than n_batch=8"),
        ("tensor_split=3,1", "tensor_split divides layers among GPUs: it needs gpu_layers"),
        ("gpu_layers=-1&tensor_split=3,-1", "tensor_split: expected shares for at most 16 GPUs, such as 3,1; got '3,-1'"),
        ("gpu_layers=-1&tensor_split=nan", "tensor_split: expected shares"),
        ("gpu_layers=-1&tensor_split=0,0", "tensor_split: expected shares"),
        ("chat_template=none.jinja", r"none\.jinja: cannot be read: No such file"),
        ("chat_template=.", "is a folder, not a regular file"),
        ("chat_template=large.jinja", "large.jinja has more than 1,048,576 bytes: it is no chat template"),
        ("chat_template=broken.jinja", "the chat template of chat_template= fails on a conversation of 1 message: TemplateSyntaxError"),
        ("chat_template=bytes.jinja", "bytes.jinja is not UTF-8 text"),
    ],
)
def test_options_of_the_cache_and_the_template_are_checked_at_the_door(
    model: Models, options: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("large.jinja").write_bytes(b"x" * (2**20 + 1))
    Path("broken.jinja").write_text("{% for %}")
    Path("bytes.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=why) as caught:
        make_agent(AgentSpec.parse(f"gguf/{model()}?threads=1&{options}"))
    assert "\n" not in str(caught.value)


def test_a_quantised_cache_takes_less_memory(core: Cores, monkeypatch: pytest.MonkeyPatch) -> None:
    llama, contexts = library.load_library(), list[Any]()
    begin = llama.llama_init_from_model
    monkeypatch.setattr(llama, "llama_init_from_model", lambda *given: contexts.append(begin(*given)) or contexts[-1])

    def bytes_of(**options: Any) -> int:
        ask(core(flash_attention=True, **options), messages_from("the city is in the country"), max_tokens=1)
        size: int = llama.llama_state_seq_get_size(contexts[-1], 0)
        return size

    whole, keys, both = bytes_of(), bytes_of(cache_k="q8_0"), bytes_of(cache_k="q8_0", cache_v="q8_0")
    assert both < keys < whole


def test_a_prompt_is_computed_in_batches(core: Cores, decoding: list[Callable[[int], None]]) -> None:
    counts: list[int] = []
    decoding.append(counts.append)
    answer = ask(core(n_batch=16, n_ubatch=8), messages_from("the city " * 40), max_tokens=1)
    assert len(counts) == -(-answer.usage.input_tokens // 16)


def test_a_chat_template_from_a_file_replaces_the_models_own(core: Cores, model: Models, tmp_path: Path) -> None:
    file = tmp_path / "trimmed.jinja"
    file.write_text(TRIMMED)
    messages = messages_from("  the city  ")
    expected = core(TRIMMED).prompts.tokens(messages)
    for made in (core(chat_template=str(file)), GgufCore(str(model(None)), GgufOptions(threads=1, n_ctx=2048, chat_template=str(file)))):
        assert made.prompts.tokens(messages) == expected
    assert core().prompts.tokens(messages) != expected


def test_a_missing_gpu_is_an_error(core: Cores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.load_library(), "llama_supports_gpu_offload", lambda: False)
    with pytest.raises(InputError, match=r"gpu_layers: llama\.cpp was built without GPU support"):
        core(gpu_layers=-1)


def test_a_path_may_have_any_characters_and_be_relative(model: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "what? & 100%.gguf").write_bytes(model().read_bytes())
    monkeypatch.chdir(tmp_path)
    made = make_agent(AgentSpec.parse("gguf/what%3F %26 100%25.gguf?threads=1&n_ctx=1k&max_tokens=9"))
    assert isinstance(made, GgufAgent)
    assert AgentSpec.parse(made.core.name) == AgentSpec("gguf", "what? & 100%.gguf", {}, made.core.name)
    assert trio.run(made.reply, message(0, "Hello.")).text


def test_without_the_extra_it_says_which_to_install(model: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    library.load_library.cache_clear()
    monkeypatch.setitem(sys.modules, "llama_cpp.llama_cpp", None)
    with pytest.raises(InputError, match=re.escape(install_extra("gguf"))):
        GgufCore(str(model()), GgufOptions(n_ctx=777))
    library.load_library.cache_clear()


def test_llama_cpp_prints_nothing(model: Models, tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(model().read_bytes()[:-1000])
    code = (
        "import trio\nfrom longspan.agents.models.core import ChatMessage\nfrom longspan.agents.models.gguf.core import GgufCore\n"
        f"core = GgufCore({str(model())!r})\ntrio.run(lambda: core.complete([ChatMessage('user', 'Hello.')], max_tokens=3))\n"
        f"GgufCore({str(tmp_path / 'cut.gguf')!r})"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert "Traceback" in done.stderr.splitlines()[0]
    assert "file bounds" in done.stderr.splitlines()[-1]


# Runs.

OPTIONS = "threads=1&n_ctx=2k&max_tokens=12&system=You are helpful."


def begin(
    path: Path, out: Path, listener: Callable[..., None] | None = None, tests: int | None = None, *, isolated: bool = False
) -> Outcome:
    suite = load_suite("ltm").apply_changes([], [], [], tests)
    planned = plan_run(RunSettings(suite=suite, span=2000, seed=1, agent=f"gguf/{path}?{OPTIONS}", isolated=isolated), out)
    (outcome,) = trio.run(lambda: play_plans([planned], listener=listener, pages=Report))
    return outcome


def test_a_run_finishes_with_journal_costs_and_report(model: Models, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = begin(model(), tmp_path)
    assert outcome.error is None
    assert outcome.result is not None
    assert len(outcome.result.tests) == 30
    assert {test.status for test in outcome.result.tests} == {"scored"}
    assert outcome.folder.name.startswith("ltm-2k-gguf-0-n-ctx-2k-max-tokens-12-")
    figures = outcome.result.metrics
    assert 0 < figures["cut_at_max_tokens"] <= figures["answers"]
    told = f"{figures['cut_at_max_tokens']:,.0f} of {figures['answers']:,.0f} answers were cut at 12 tokens"
    assert told in (outcome.folder / "report.html").read_text("utf-8")
    with pytest.raises(SystemExit):
        main(["score", str(outcome.folder)])
    assert told in " ".join(" ".join(capsys.readouterr()).split())
    transcript = RunFolder(outcome.folder).transcripts()["main"]
    assert transcript.closed
    assert {(part, cost) for part, _, cost in transcript.used} == {("agent", 0.0)}
    used = [usage for _, usage, _ in transcript.used]
    assert sum(usage["cached_tokens"] for usage in used) > 0.7 * sum(usage["input_tokens"] for usage in used)
    assert (outcome.folder / "report.html").stat().st_size > 10_000
    check_priced(make_agent(AgentSpec.parse(f"gguf/{model()}?{OPTIONS}")), "gguf")


def test_isolated_tests_are_played_as_many_at_once_as_have_caches(model: Models, tmp_path: Path) -> None:
    outcome = begin(model(), tmp_path, tests=1, isolated=True)
    assert outcome.result is not None
    transcripts = RunFolder(outcome.folder).transcripts()
    assert len(transcripts) > GgufOptions().conversations
    for name, transcript in transcripts.items():
        used = [usage for _, usage, _ in transcript.used]
        assert all(after["cached_tokens"] >= before["input_tokens"] for before, after in pairwise(used)), name


@pytest.mark.parametrize(
    ("spec", "most"),
    [
        ("gguf/{file}?conversations=3", 3),
        ("ltm/gguf/{file}?conversations=3&embedder=hash", 3),
        ("memory/bm25?answerer=gguf/{file}", GgufOptions().conversations),
        ("memory/bm25?answerer=gguf/{file}&answerer.conversations=1", 1),
        ("memory/bm25?answerer=words", inf),
        ("openai/gpt-4o", inf),
    ],
)
def test_whoever_uses_a_model_here_holds_as_many_conversations_as_it_has_caches(spec: str, most: float, model: Models) -> None:
    assert at_once(AgentSpec.parse(spec.format(file=model()))) == most


def test_questions_about_a_history_are_asked_with_one_cache(model: Models, tmp_path: Path) -> None:
    agent = f"memory/bm25?answerer=gguf/{model()}&answerer.conversations=1&answerer.max_tokens=8&answerer.threads=1"
    suite = load_suite("history").apply_changes([], [], [], 1)
    (outcome,) = trio.run(play_plans, [plan_run(RunSettings(suite=suite, span=8000, agent=agent), tmp_path)])
    assert outcome.error is None
    assert outcome.result is not None
    assert {test.status for test in outcome.result.tests} == {"scored"}


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.agents.test_gguf import begin
heard = []
def listener(event):
    heard.append(event)
    if len(heard) == 60:
        os.kill(os.getpid(), signal.SIGKILL)
begin(Path(sys.argv[1]), Path(sys.argv[2]), listener, tests=1)
"""


def test_a_killed_run_is_resumed(model: Models, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", KILLED, str(model()), str(tmp_path)], env=environment, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    (folder,) = tmp_path.iterdir()
    run = RunFolder(folder)
    before = run.journal("main").read_bytes()
    outcome = trio.run(lambda: resume_run(run, run.manifest.agent))
    assert outcome.error is None
    assert run.journal("main").read_bytes().startswith(before)
    assert run.transcripts()["main"].closed


def test_the_tokens_to_compute_are_predicted_without_the_model(model: Models, tmp_path: Path) -> None:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    agent = f"gguf/{model()}?threads=1&context=2k&max_tokens=6"
    planned = plan_run(RunSettings(suite=suite, span=1_000, seed=0, agent=agent), tmp_path)
    predicted = trio.run(predict_fresh_tokens, planned, 6, lambda: False)
    assert trio.run(predict_fresh_tokens, planned, 6, lambda: True) == {}
    (outcome,) = trio.run(lambda: play_plans([planned]))
    journal = read_journal(RunFolder(outcome.folder).journal("main"))
    used = [event.usage or {} for event in journal if isinstance(event, events.Reply) and event.asked]
    fresh = [each["input_tokens"] - each.get("cached_tokens", 0) for each in used]
    assert len(predicted["main"]) == len(fresh)
    assert sum(predicted["main"]) == pytest.approx(sum(fresh), rel=0.3)


@pytest.mark.parametrize("agent", ["gguf/{}?threads=1&n_ctx=4k&max_tokens=12", "memory/bm25?answerer=gguf/{}&answerer.n_ctx=4k"])
def test_an_estimate_times_a_model_in_this_process(agent: str, model: Models, tmp_path: Path) -> None:
    suite = load_suite("ltm").apply_changes([], [], ["colours"], 1)
    timed, free = (
        trio.run(estimate_run, plan_run(RunSettings(suite=suite, span=2_000, seed=0, agent=named), tmp_path))
        for named in (agent.format(model()), "notebook")
    )
    assert timed.minutes is not None
    assert 0 <= timed.minutes[0] <= timed.minutes[1]
    assert free.minutes is None
