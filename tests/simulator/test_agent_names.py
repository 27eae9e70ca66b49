"""Short names of agents are unambiguous, and have what differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.simulator.base.agent_names import short_names
from longspan.simulator.base.shares import format_interval, format_percent, format_share_range

words = st.sampled_from(["a", "b", "memory", "bm25", "x.y", "8k", "1"])
heads = st.lists(words, min_size=1, max_size=4).flatmap(
    lambda parts: st.lists(st.sampled_from("/:"), min_size=len(parts) - 1, max_size=len(parts) - 1).map(
        lambda marks: "".join(part + mark for part, mark in zip(parts, [*marks, ""], strict=True))
    )
)
options = st.dictionaries(st.sampled_from(["k", "context", "answerer"]), words, max_size=3)
specs = st.builds(
    lambda head, given, label: head + "?" * bool(given) + "&".join(f"{name}={value}" for name, value in given.items()) + label,
    heads,
    options,
    st.sampled_from(["", " [v1]", " [v2]"]),
)


@given(st.lists(specs, min_size=1, max_size=6, unique=True))
def test_names_are_distinct_and_have_every_option_in_which_agents_of_a_kind_differ(agents: list[str]) -> None:
    names = short_names(agents).names
    assert list(names) == agents
    assert len(set(names.values())) == len(agents)
    assert short_names(agents) == short_names(agents)
    for agent, name in names.items():
        head, _, query = agent.removesuffix(" [v1]").removesuffix(" [v2]").partition("?")
        kind = head.replace(":", "/").partition("/")[0]
        like = [each for each in agents if each.replace("?", "/").replace(":", "/").replace(" ", "/").partition("/")[0] == kind]
        for option in filter(None, query.split("&")):
            have = [option in each.removesuffix(" [v1]").removesuffix(" [v2]").partition("?")[2].split("&") for each in like]
            assert all(have) or option in name
        assert name == agent or (agent.startswith(head) and name.split("?")[0].split(" [")[0] in head)


@given(st.lists(st.text(max_size=12), min_size=1, max_size=6, unique=True))
def test_whatever_agents_are_called_no_two_names_are_equal(agents: list[str]) -> None:
    names = short_names(agents).names
    assert len(set(names.values())) == len(agents)
    assert all("\n" not in name and "\x1b" not in name for name in names.values())


@pytest.mark.parametrize(
    ("agents", "expected", "told"),
    [
        (
            ["memory/bm25?answerer=none", "memory/chroma?answerer=none"],
            ["bm25", "chroma"],
            "Short names: all are memory/…?answerer=none.",
        ),
        (
            ["memory/bm25?k=5&answerer=none", "memory/bm25?k=10&answerer=none", "notebook"],
            ["bm25?k=5", "bm25?k=10", "notebook"],
            "Short names: bm25?k=5 and bm25?k=10 are memory/…?answerer=none.",
        ),
        (["python:a.b:Agent [v1]", "python:a.b:Agent [v2]"], ["Agent [v1]", "Agent [v2]"], "Short names: all are python:a.b:…."),
        (["python:a:One", "python:b:Two?x=1"], ["One", "Two?x=1"], "Short names: One is python:a:One; Two?x=1 is python:b:Two?x=1."),
        (["openai/gpt-4o", "ltm/openai/gpt-4o"], ["openai/gpt-4o", "ltm/openai/gpt-4o"], ""),
        (["http://127.0.0.1:8000", "http://127.0.0.1:8001"], ["http://127.0.0.1:8000", "http://127.0.0.1:8001"], ""),
        (["memory/bm25?answerer=none"], ["memory/bm25?answerer=none"], ""),
        (["a  b", "a b"], ["a b", "a b (2)"], ""),
    ],
)
def test_what_names_leave_out_is_said_once(agents: list[str], expected: list[str], told: str) -> None:
    found = short_names(agents)
    assert list(found.names.values()) == expected
    assert found.describe_omissions() == told


def test_letters_may_stand_for_names() -> None:
    found = short_names(["memory/bm25?answerer=none", "memory/chroma?answerer=none", "silent"])
    assert found.describe_omissions({"bm25": "A", "chroma": "B", "silent": "C"}) == "Short names: A and B are memory/…?answerer=none."


def test_shares_are_whole_percents_but_for_what_is_nearly_none_or_all() -> None:
    assert [format_percent(each) for each in (0, 1, 0.5, 0.004, 0.996, 0.99996, 1e-9, 1 - 1e-9)] == [
        *("0%", "100%", "50%", "0.4%", "99.6%", "99.996%", "0%", "100%")
    ]
    assert [format_percent(each, sign=True) for each in (0, 0.1, -0.1, -1e-9)] == ["0%", "+10%", "−10%", "0%"]
    assert (format_share_range(0.1, 0.1), format_share_range(0.1, 0.2), format_interval(None), format_interval((0.3, 2.7), whole=3)) == (
        "10%",
        "10%–20%",
        "",
        " [10%, 90%]",
    )
