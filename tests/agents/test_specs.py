from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from longspan.agents.outside.remote import count_processors
from longspan.agents.reference.silent import Silent
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.installed import AGENTS as GROUP
from longspan.simulator.base.installed import find_entry_points
from longspan.simulator.base.sizes import Tokens, parse_size
from longspan.simulator.contract.agent import Agent
from longspan.simulator.suite.agent_spec import AgentSpec, at_once, make_agent

Install = Callable[[str, dict[str, str]], None]


@pytest.mark.parametrize(
    ("text", "kind", "target", "options"),
    [
        ("oracle", "oracle", "", {}),
        (" notebook?window=8k ", "notebook", "", {"window": "8k"}),
        ("openai/gpt-4o?context=16k&seed=1", "openai", "gpt-4o", {"context": "16k", "seed": "1"}),
        ("openai/vendor/name:free", "openai", "vendor/name:free", {}),
        ("openai/m?base_url=http://127.0.0.1:8000/v1", "openai", "m", {"base_url": "http://127.0.0.1:8000/v1"}),
        ("openai/m?base_url=http://h/v1?a=b", "openai", "m", {"base_url": "http://h/v1?a=b"}),
        ("openai/m?base_url=http://h/?a=b%26c=d", "openai", "m", {"base_url": "http://h/?a=b&c=d"}),
        ("ltm/openai/gpt-4o?memory=json", "ltm", "openai/gpt-4o", {"memory": "json"}),
        ("gguf/models/tiny model.gguf?gpu_layers=-1", "gguf", "models/tiny model.gguf", {"gpu_layers": "-1"}),
        ("python:package.module:Class", "python", "package.module:Class", {}),
        ("python:m:C?greeting=a+b&empty=", "python", "m:C", {"greeting": "a+b", "empty": ""}),
        ("exec:./talk --what%3F | tee log", "exec", "./talk --what? | tee log", {}),
        ("silent?", "silent", "", {}),
    ],
)
def test_a_spec_is_parsed(text: str, kind: str, target: str, options: dict[str, str]) -> None:
    spec = AgentSpec.parse(text)
    assert (spec.kind, spec.target, dict(spec.options), str(spec)) == (kind, target, options, text.strip())


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "KIND/MODEL"),
        ("?window=8k", "KIND/MODEL"),
        ("/gpt-4o", "KIND/MODEL"),
        ("note book", "KIND/MODEL"),
        ("notebook?window", "name=value"),
        ("notebook?=8k", "name=value"),
        ("notebook?window=8k&&", "name=value"),
        ("notebook?window=8k&window=9k", "window is given twice"),
    ],
)
def test_an_invalid_spec_is_rejected_in_one_line(text: str, part: str) -> None:
    with pytest.raises(InputError, match=re.escape(part)) as caught:
        AgentSpec.parse(text)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_spec_or_rejected(text: str) -> None:
    try:
        spec = AgentSpec.parse(text)
    except InputError:
        return
    assert AgentSpec.parse(str(spec)) == spec


@pytest.mark.parametrize("kind", ["oracle", "silent", "stateless", "notebook"])
def test_reference_agents_are_created_by_name(install: Install, kind: str) -> None:
    agent = make_agent(AgentSpec.parse(kind))
    assert isinstance(agent, Agent)
    assert type(agent).__name__.lower() == kind


def test_every_kind_that_the_project_declares_can_be_loaded() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    for value in project["project"]["entry-points"]["longspan.agents"].values():
        module, _, name = value.partition(":")
        assert isinstance(getattr(import_module(module), name), type)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("notbook", ["'notbook'", "did you mean notebook?"]),
        ("nobody", ["'nobody'", "exec, http, https, human, notebook, oracle, python, runnable, silent, stateless"]),
        ("notebook?windows=8k", ["'windows'", "did you mean window?"]),
        ("notebook?window=many", ["window", "'many'", "8k"]),
        ("notebook?window=0", ["window", "from 1 to"]),
        ("silent?window=8k", ["'window'", "takes no options"]),
        ("oracle/gpt-4o", ["takes no model", "'gpt-4o'"]),
    ],
)
def test_the_error_for_a_wrong_spec_has_a_remedy(install: Install, text: str, parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make_agent(AgentSpec.parse(text))
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_a_plugin_adds_a_kind(install: Install) -> None:
    install("quiet-agents", {"quiet": "longspan.agents.reference.silent:Silent"})
    assert isinstance(make_agent(AgentSpec.parse("quiet")), Silent)
    assert "quiet" in find_entry_points(GROUP)


def test_a_kind_that_two_distributions_register_is_ambiguous(install: Install) -> None:
    install("quiet-agents", {"silent": "longspan.agents.reference.silent:Silent"})
    with pytest.raises(InputError, match="longspan and quiet-agents"):
        make_agent(AgentSpec.parse("silent"))
    make_agent(AgentSpec.parse("oracle"))


@pytest.mark.parametrize("value", ["no.such.module:Agent", "longspan.agents.reference.silent:NoSuchAgent"])
def test_a_plugin_that_cannot_be_loaded_is_named(install: Install, value: str) -> None:
    install("broken-agents", {"broken": value})
    with pytest.raises(InputError, match=r"'broken' \(broken-agents\) cannot be loaded"):
        make_agent(AgentSpec.parse("broken"))


def test_the_error_for_a_plugin_without_agent_methods_has_a_remedy(install: Install, module: Callable[[str], str]) -> None:
    name = module("class Half:\n    def __init__(self, target, options): pass\n    async def reply(self, message): ...\n")
    sys.path.insert(0, str(Path.cwd()))
    install("half-agents", {"half": f"{name}:Half"})
    with pytest.raises(InputError, match="is not a class derived from longspan"):
        make_agent(AgentSpec.parse("half"))


def test_without_any_kinds_installed_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.simulator.base.installed.distributions", tuple)
    with pytest.raises(InputError, match="install longspan"):
        make_agent(AgentSpec.parse("silent"))


@pytest.mark.parametrize(
    ("text", "size"),
    [("2k", 2000), ("32k", 32_000), ("1.5k", 1500), ("500000", 500_000), ("1", 1), ("8K", 8000), ("1.36M", 1_360_000)],
)
def test_a_size_is_parsed(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        *["", "0", "0k", "-1", "-2k", "1.5", "0.0001k", "k", "2kk", "2 thousand", "1e3", "nan", "inf", "٣k", "9" * 500, "2k\n3k"],
        *[" 8k", "8_000", "08", "8.0", "1000001k"],
    ],
)
def test_an_invalid_size_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match="whole number of tokens"):
        parse_size(text)


class _Sized(BaseModel):
    size: Tokens


@pytest.mark.parametrize(("value", "size"), [("8k", 8000), (8000, 8000), (8000.0, None), (0.5, None), (True, None), (None, None)])
def test_a_size_is_a_field(value: object, size: int | None) -> None:
    if size is None:
        with pytest.raises(ValueError, match="whole number of tokens"):
            _Sized.model_validate({"size": value})
    else:
        assert _Sized.model_validate({"size": value}).size == size


@pytest.mark.usefixtures("install")
def test_how_many_conversations_are_held_at_once_depends_on_kind_and_option(monkeypatch: pytest.MonkeyPatch) -> None:
    def limits(*specs: str) -> list[float]:
        return [at_once(AgentSpec.parse(spec)) for spec in specs]

    assert limits("silent", "python:m:C", "http://127.0.0.1/") == [inf] * 3
    assert limits("exec:python3", "python:m:C?interpreter=python3") == [count_processors()] * 2
    specs = [f"{spec}?at_once=5" for spec in ("python:m:C", "runnable:m:graph", "http://127.0.0.1/", "exec:python3")]
    assert limits(*specs) == [5] * 4
    monkeypatch.setenv("LONGSPAN_PROCESSES", "2")
    assert limits(*specs) == [2] * 4
    assert limits("silent", "exec:python3?at_once=1") == [inf, 1]
