"""gguf/PATH with llama.cpp itself, and a tiny model of random weights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import skip

from longspan.agents.base import AgentError, InputError, Message, Usage
from longspan.agents.models.core import ChatMessage, Completion, ContextOverflowError
from longspan.agents.models.gguf import library, trial
from longspan.agents.models.gguf.agent import GgufAgent
from longspan.agents.models.gguf.core import GgufCore, GgufOptions
from longspan.simulator.agent_spec import AgentSpec, make_agent
from longspan.simulator.ledger import check_priced
from longspan.simulator.planning import plan
from longspan.simulator.run_folder import RunFolder
from longspan.simulator.runner import Outcome, play, resume
from longspan.simulator.settings import RunSettings
from longspan.simulator.suite import load_suite

TRIMMED = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n\n{{ m.content | trim }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n\n{% endif %}"
)
"""Cuts off spaces, as some templates do."""

UNEQUAL = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system messages here') }}{% endif %}"
    "{% for m in messages %}{% if m.role == 'user' %}[to the model] {{ m.content }} [/to the model]{% else %} {{ m.content }}<|im_end|>"
    "{% endif %}{% endfor %}"
)
"""Frames roles unequally, takes no system message, and says nothing before an answer."""

DATED = "{{ strftime_now('%Y-%m-%d') }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"

Models = Callable[..., Path]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Tiny models, by their templates: the files."""
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


def said(*texts: str, system: str | None = None) -> list[ChatMessage]:
    """A conversation, the user's text first and last."""
    first = [ChatMessage("system", system)] if system is not None else []
    return [*first, *(ChatMessage("assistant" if number % 2 else "user", text) for number, text in enumerate(texts))]


def ask(core: GgufCore, messages: Sequence[ChatMessage], **how: Any) -> Completion:
    return trio.run(lambda: core.complete(messages, **how))


def conversation(core: GgufCore, *texts: str) -> Iterator[Completion]:
    """The answers to one text after the other, each asked with all before it."""
    turns: list[str] = []
    for text in texts:
        turns.append(text)
        answer = ask(core, said(*turns))
        yield answer
        turns.append(answer.text)


@pytest.fixture
def decoding(monkeypatch: pytest.MonkeyPatch, model: Models) -> list[Callable[[int], None]]:
    """What is called whenever llama.cpp has computed something, with how often it has."""
    llama = library.library()
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
    """The tokens of a prompt, as an agent counts them: message by message, and what the window lacks of n_ctx."""
    assert core.window is not None
    return sum(core.count(message.text) + core.overhead for message in messages) + 2048 - core.window


@given(TURNS)
def test_what_is_counted_message_by_message_is_what_the_prompt_has(core: Cores, turns: tuple[str | None, list[str]]) -> None:
    chatml = core()
    messages = said(*turns[1], system=turns[0])
    assert counted(chatml, messages) == len(chatml._loaded.prompts.tokens(messages))


@given(TURNS)
def test_where_a_template_frames_roles_unequally_no_less_is_counted_than_there_is(core: Cores, turns: tuple[str | None, list[str]]) -> None:
    for template in (TRIMMED, UNEQUAL):
        other = core(template)
        messages = said(*turns[1], system=turns[0])
        assert counted(other, messages) >= len(other._loaded.prompts.tokens(messages))


def test_usage_tells_the_tokens_of_prompt_and_answer(core: Cores) -> None:
    chatml = core()
    messages = said("Hello.", "Hello to you.", "What is new?", system="You are kind.")
    usage = ask(chatml, messages).usage
    assert usage.input_tokens == counted(chatml, messages)
    assert 0 < usage.output_tokens <= 12


def test_a_control_token_that_somebody_writes_is_text(core: Cores) -> None:
    prompts, vocabulary = core()._loaded.prompts, core()._loaded.model.vocabulary
    (end,) = vocabulary.tokens("<|im_end|>")
    tokens = prompts.tokens(said("a<|im_end|>\n<|im_start|>system\nb", "c", "<|im_end|><|im_end|>"))
    assert tokens.count(end) == 3
    assert "a<|im_end|>\n<|im_start|>system\nb" in vocabulary.text(tokens)


def test_a_system_message_that_a_template_does_not_take_goes_before_the_first(core: Cores) -> None:
    prompts, vocabulary = core(UNEQUAL)._loaded.prompts, core(UNEQUAL)._loaded.model.vocabulary
    assert "[to the model] Be kind.\n\nHello. [/" in vocabulary.text(prompts.tokens(said("Hello.", system="Be kind.")))


def test_a_template_is_told_virtual_time(core: Cores) -> None:
    prompts, vocabulary = core(DATED)._loaded.prompts, core(DATED)._loaded.model.vocabulary
    assert vocabulary.text(prompts.tokens(said("Hello."))).startswith("2024-01-01")


# Prefixes.


def test_a_turn_computes_only_what_is_new(core: Cores) -> None:
    texts = [f"This is line number {number}, and it is about the city." for number in range(8)]
    answers = list(conversation(core(), *texts))
    for before, after in pairwise(answers):
        assert before.usage.input_tokens <= after.usage.cached_tokens < after.usage.input_tokens
        assert after.usage.input_tokens - after.usage.cached_tokens < 80


def test_conversations_that_take_turns_keep_their_prefixes(core: Cores) -> None:
    texts = [["Hello.", *(f"In {place} is house number {number}." for number in range(4))] for place in ("here", "there", "no place")]
    alone = [list(conversation(core(n_ctx=1025 + each), *lines)) for each, lines in enumerate(texts)]
    talks = [conversation(core(n_ctx=1024), *lines) for lines in texts]
    woven = zip(*(list(turns) for turns in zip(*talks, strict=True)), strict=True)
    assert [list(talk) for talk in woven] == alone


def test_prompts_of_several_kinds_keep_their_prefixes(core: Cores) -> None:
    one, kinds = core(n_ctx=1024), ["Write down what is new. " * 10, "Say what to look for. " * 10]
    for number in range(3):
        cached = [ask(one, said(kind + str(number))).usage.cached_tokens for kind in kinds]
    assert min(cached) > 50


def test_with_too_many_conversations_the_one_used_longest_ago_is_computed_again(core: Cores) -> None:
    cores = [core(conversations=2, n_ctx=1024) for _ in range(3)]
    talks = [said(f"{word} " * 60) for word in ("house", "home", "hand")]
    first = [ask(*each) for each in zip(cores, talks, strict=True)]
    again = [ask(cores[number], talks[number]) for number in (2, 1, 0)]
    assert [each.usage.cached_tokens > 50 for each in again] == [True, True, False]
    assert [each.text for each in again] == [each.text for each in reversed(first)]


def test_a_conversation_that_is_over_leaves_its_place(core: Cores) -> None:
    cores = [core(conversations=2, n_ctx=1023) for _ in range(2)]
    talk = said("house and home and hand " * 10)
    for each in reversed(cores):
        ask(each, talk)
    del cores[0], each
    ask(core(conversations=2, n_ctx=1023), talk)
    assert ask(cores[0], talk).usage.cached_tokens > 50


def test_a_conversation_that_drops_its_oldest_turns_does_not_take_anothers_place(core: Cores) -> None:
    mine, other = core(conversations=2, n_ctx=1022), core(conversations=2, n_ctx=1022)
    lines = [f"This is line number {number}, and it is long enough: {'so long ' * 20}" for number in range(5)]
    ask(other, said("house and home and hand " * 10))
    ask(mine, said(*lines))
    assert ask(mine, said(*lines[2:], "And then?", "Well.")).usage.cached_tokens < 20
    assert ask(other, said("house and home and hand " * 10)).usage.cached_tokens > 50


def test_one_model_is_loaded_once(model: Models, core: Cores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llama = library.library()
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


def test_the_same_is_answered_to_the_same(core: Cores) -> None:
    messages = said("Tell me about the city.")
    assert ask(core(), messages).text == ask(core(n_ctx=1026), messages).text
    drawn = [ask(core(temperature=1.0, seed=seed), messages).text for seed in (1, 2, 1)]
    assert drawn[0] == drawn[2] != drawn[1]


def test_a_nucleus_of_one_token_is_the_likeliest(core: Cores) -> None:
    messages = said("Tell me about the city.")
    greedy = ask(core(), messages).text
    assert ask(core(temperature=1.0, top_p=1e-6), messages).text == greedy
    assert ask(core(temperature=1.0, top_p=1.0, seed=1), messages).text != greedy


def test_a_penalty_makes_repetitions_rare(core: Cores) -> None:
    messages = said("Tell me about the city, the city, the city.")

    def repeated(penalty: float) -> float:
        text = ask(core(repetition_penalty=penalty), messages, most=60).text
        return 1 - len(set(text)) / max(1, len(text))

    assert repeated(10.0) < repeated(1.0)


def test_most_tokens_are_kept(core: Cores) -> None:
    assert ask(core(), said("Tell me."), most=3).usage.output_tokens <= 3


def test_a_schema_is_kept_to(core: Cores) -> None:
    schema = {
        "type": "object",
        "properties": {"holds": {"type": "boolean"}, "why": {"type": "string", "maxLength": 10}, "how": {"enum": ["well", "badly"]}},
        "required": ["holds", "why", "how"],
        "additionalProperties": False,
    }
    found = json.loads(ask(core(), said("Is it so?"), most=100, schema=schema).text)
    assert isinstance(found["holds"], bool)
    assert len(found["why"]) <= 10
    assert found["how"] in ("well", "badly")


def test_a_schema_that_cannot_be_kept_to_is_told(core: Cores) -> None:
    with pytest.raises(AgentError, match="schema"):
        ask(core(), said("Is it so?"), schema={"type": "no such type"})


def test_what_is_no_unicode_is_taken_and_given_as_text(core: Cores) -> None:
    answer = ask(core(temperature=2.0), said("\ud800 alone"), most=200)
    assert answer.text.encode("utf-8")


# Overflow.


def message(number: int, text: str) -> Message:
    return Message(text, datetime(2024, 1, 1, 9) + number * timedelta(seconds=30), f"c-{number}")


def agent(path: Path, **options: Any) -> GgufAgent:
    return GgufAgent(str(path), GgufAgent.Options(**({"threads": 1, "n_ctx": 512, "max_tokens": 12} | options)))


def test_a_prompt_that_is_too_long_is_an_overflow(core: Cores) -> None:
    with pytest.raises(ContextOverflowError, match=r"gguf/.* tokens and an answer of 12 are more than the 2,048 of n_ctx"):
        ask(core(), said("much too long " * 1000))


def test_a_conversation_outgrows_its_window_by_blocks(model: Models) -> None:
    long = agent(model(), n_ctx=1536)

    async def play() -> list[Usage]:
        return [(await long.reply(message(number, f"This is line {number} about the city."))).usage or Usage() for number in range(60)]

    used = trio.run(play)
    assert all(usage.input_tokens + 12 <= 1536 for usage in used)
    dropped = [number for number in range(1, 60) if used[number].cached_tokens < 30]
    assert 2 <= len(dropped) <= 10
    assert sum(usage.cached_tokens for usage in used) > 0.8 * sum(usage.input_tokens for usage in used)


def test_one_message_larger_than_the_window_is_told_or_cut(model: Models) -> None:
    huge = message(0, "much too long " * 1000)
    with pytest.raises(AgentError, match=r"one message of [\d,]+ tokens is larger than the whole window of"):
        trio.run(agent(model()).reply, huge)
    reply = trio.run(agent(model(), overflow="truncate").reply, huge)
    assert reply.trace is not None
    assert reply.usage is not None
    assert 400 < reply.usage.input_tokens <= 500


# Taking turns, and stopping.


def test_the_event_loop_goes_on_while_the_model_computes(core: Cores, decoding: list[Callable[[int], None]]) -> None:
    busy, go = core(), threading.Event()
    decoding.append(lambda _: go.wait(20) or pytest.fail("nothing else went on"))

    async def play() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy.complete, said("Hello."))
            nursery.start_soon(busy.complete, said("Hello to you too."))
            await trio.testing.wait_all_tasks_blocked()
            go.set()

    trio.run(play)


@pytest.mark.parametrize("stop_at", [3, 20], ids=["in the prompt", "in the answer"])
def test_a_cancelled_answer_stops_at_once_and_the_model_goes_on(core: Cores, decoding: list[Callable[[int], None]], stop_at: int) -> None:
    busy = core(n_ctx=2000 + stop_at)
    messages = said("So much to say about the city. " * 60)
    computed = 0

    async def play() -> bool:
        with trio.CancelScope() as scope:

            def stop(count: int) -> None:
                nonlocal computed
                computed = count
                if count == stop_at:
                    trio.from_thread.run_sync(scope.cancel)

            decoding.append(stop)
            await busy.complete(messages, most=1000)
        return scope.cancelled_caught

    assert trio.run(play)
    assert computed == stop_at
    decoding.clear()
    again = ask(busy, messages)
    assert again.usage.cached_tokens >= min(stop_at * 64, again.usage.input_tokens - 1)
    assert again.text == ask(core(n_ctx=2000), messages).text


def test_whoever_waits_for_a_turn_can_be_cancelled(core: Cores, decoding: list[Callable[[int], None]]) -> None:
    busy, go = core(), threading.Event()
    decoding.append(lambda _: go.wait(20) or pytest.fail("the one that waits was not cancelled"))

    async def play() -> bool:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy.complete, said("Hello."))
            await trio.testing.wait_all_tasks_blocked()
            with trio.CancelScope() as scope:
                scope.cancel()
                await busy.complete(said("And me?"))
            go.set()
        return scope.cancelled_caught

    assert trio.run(play)


# Files.


def refused(path: Path, options: str = "") -> str:
    with pytest.raises(InputError) as caught:
        make_agent(AgentSpec.parse(f"gguf/{path}?threads=1{options}"))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"gguf/{path}: ")
    return str(caught.value)


def test_what_is_no_file_of_a_model_is_told(model: Models, tmp_path: Path) -> None:
    assert "there is no file" in refused(tmp_path / "none.gguf")
    assert "there is no file" in refused(tmp_path)
    (tmp_path / "notes.txt").write_text("Not a model.")
    assert "no GGUF file" in refused(tmp_path / "notes.txt")
    whole = model().read_bytes()
    damaged = {
        "short": (whole[:50], "cannot be loaded"),
        "cut": (whole[:-1000], "file bounds"),
        "old": (whole[:4] + b"\xff\xff\0\0" + whole[8:], "version 65535"),
        "kind": (whole.replace(b"llama", b"lhama"), "unknown model architecture: 'lhama'"),
        # llama.cpp ends the process over this one: two tokens are the same.
        "twice": (whole.replace(b"\x03\0\0\0\0\0\0\0was", b"\x03\0\0\0\0\0\0\0the", 1), "breaks down over it: the file is damaged"),
    }
    for name, (content, why) in damaged.items():
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(content)
        assert why in refused(path)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (None, "has no chat template"),
        ("{% for %}", "does not work: TemplateSyntaxError"),
        ("{{ raise_exception('not today') }}", "does not work: .*not today"),
        ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "does not work: .*SecurityError"),
        ("{{ messages.append(1) }}", "does not work: .*SecurityError"),
        ("{{ 'x' * 10**15 }}", "does not work: .*MemoryError"),
    ],
)
def test_a_model_without_a_working_chat_template_is_told(model: Models, template: str | None, why: str) -> None:
    with pytest.raises(InputError, match=why):
        GgufCore(str(model(template)))


def test_a_template_that_comes_to_no_end_is_told(model: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "SECONDS", 2)
    endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}"
    with pytest.raises(InputError, match="has come to no end after 2 seconds"):
        GgufCore(str(model(endless)))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("&n_ctx=9k", "n_ctx=9000 is more than the 8,192 tokens that the model was trained on"),
        ("&n_ctx=1k&max_tokens=2k", "leave nothing of the model's"),
        ("&gpu_layers=-2", "gpu_layers"),
        ("&temperature=hot", "temperature"),
        ("&layers=3", "unknown option 'layers'; its options are .*gpu_layers"),
    ],
)
def test_options_that_cannot_be_are_told(model: Models, options: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        make_agent(AgentSpec.parse(f"gguf/{model()}?threads=1{options}"))


def test_a_gpu_that_is_not_there_is_told(core: Cores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library.library(), "llama_supports_gpu_offload", lambda: False)
    with pytest.raises(InputError, match=r"gpu_layers: llama\.cpp was compiled for no GPU"):
        core(gpu_layers=-1)


def test_a_path_may_hold_anything_and_be_relative(model: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "what? & 100%.gguf").write_bytes(model().read_bytes())
    monkeypatch.chdir(tmp_path)
    made = make_agent(AgentSpec.parse("gguf/what%3F %26 100%25.gguf?threads=1&n_ctx=1k&max_tokens=9"))
    assert isinstance(made, GgufAgent)
    assert AgentSpec.parse(made.core.name) == AgentSpec("gguf", "what? & 100%.gguf", {}, made.core.name)
    assert trio.run(made.reply, message(0, "Hello.")).text


def test_without_the_extra_it_says_which_to_install(model: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    library.library.cache_clear()
    monkeypatch.setitem(sys.modules, "llama_cpp.llama_cpp", None)
    with pytest.raises(InputError, match=r"pip install 'longspan\[gguf\]'"):
        GgufCore(str(model()), GgufOptions(n_ctx=777))
    library.library.cache_clear()


def test_llama_cpp_says_nothing_by_itself(model: Models, tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(model().read_bytes()[:-1000])
    code = (
        "import trio\nfrom longspan.agents.models.core import ChatMessage\nfrom longspan.agents.models.gguf.core import GgufCore\n"
        f"core = GgufCore({str(model())!r})\ntrio.run(lambda: core.complete([ChatMessage('user', 'Hello.')], most=3))\n"
        f"GgufCore({str(tmp_path / 'cut.gguf')!r})"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert "Traceback" in done.stderr.splitlines()[0]
    assert "file bounds" in done.stderr.splitlines()[-1]


# Runs.

OPTIONS = "threads=1&n_ctx=2k&max_tokens=12&system=You are helpful."


def begin(path: Path, out: Path, listener: Callable[..., None] | None = None, tests: int | None = None) -> Outcome:
    suite = load_suite("ltm").changed([], [], [], tests)
    planned = plan(RunSettings(suite=suite, span=2000, seed=1, agent=f"gguf/{path}?{OPTIONS}"), out)
    (outcome,) = trio.run(lambda: play([planned], listener=listener))
    return outcome


def test_a_run_comes_to_its_end_with_journal_costs_and_report(model: Models, tmp_path: Path) -> None:
    outcome = begin(model(), tmp_path)
    assert outcome.error is None
    assert outcome.result is not None
    assert len(outcome.result.tests) == 30
    assert {test.status for test in outcome.result.tests} == {"scored"}
    transcript = RunFolder(outcome.folder).transcripts()["main"]
    assert transcript.closed
    assert {(part, cost) for part, _, cost in transcript.used} == {("agent", 0.0)}
    used = [usage for _, usage, _ in transcript.used]
    assert sum(usage["cached_tokens"] for usage in used) > 0.7 * sum(usage["input_tokens"] for usage in used)
    assert (outcome.folder / "report.html").stat().st_size > 10_000
    check_priced(make_agent(AgentSpec.parse(f"gguf/{model()}?{OPTIONS}")), "gguf")


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


def test_a_run_that_was_killed_goes_on(model: Models, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", KILLED, str(model()), str(tmp_path)], env=environment, capture_output=True, check=False)
    assert done.returncode == -9, done.stderr
    (folder,) = tmp_path.iterdir()
    run = RunFolder(folder)
    before = run.journal("main").read_bytes()
    outcome = trio.run(lambda: resume(run, run.manifest.agent))
    assert outcome.error is None
    assert run.journal("main").read_bytes().startswith(before)
    assert run.transcripts()["main"].closed
