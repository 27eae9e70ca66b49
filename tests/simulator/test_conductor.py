"""Spans are kept: the conductor driven by made-up tests and by an agent whose replies have random lengths."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from random import Random
from statistics import fmean

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rig import Babbler, made_test, play, setting

from longspan.simulator import events
from longspan.simulator.scenario import Test
from longspan.simulator.script import Line, Placement, Segment
from longspan.simulator.stage import Stage
from longspan.simulator.transcript import Transcript

WORD = " the"


@st.composite
def suites(draw: st.DrawFn, *, replies: int = 60) -> list[Test]:
    """Random tests: scripted or dynamic, with waits on tokens, turns and time, shared topics, watches, farewells."""
    tests: list[Test] = []
    topics = ["sea", "wind", "sand"]
    for kind in range(draw(st.integers(1, 6))):
        name = f"kind{kind}"
        shared = frozenset(draw(st.sets(st.sampled_from(topics), max_size=1)))
        segments = draw(st.integers(2, 7))
        size = draw(st.integers(2, 60))
        pauses = draw(st.booleans())
        dynamic = draw(st.booleans())
        watch = draw(st.none() | st.integers(1, 6))
        farewell = draw(st.none() | st.just("Never mind that."))
        for number in range(1, draw(st.integers(1, 4)) + 1):
            order = len(tests)
            if dynamic:
                outline, body = _outline(segments, size), _play(segments, size, watch)
                test = made_test(name, number, order, topics=shared, farewell=farewell, outline=outline, play=body)
            else:
                lines = [
                    Line(WORD * size, asks=i == segments - 1, pause=timedelta(minutes=45 * (pauses and i > 0))) for i in range(segments)
                ]
                test = made_test(name, number, order, topics=shared, farewell=farewell, lines=lines)
            tests.append(test)
    return tests


def _outline(segments: int, size: int) -> list[Segment]:
    return [Segment(0.9 * i / (segments - 1), size, 1) for i in range(segments)]


def _play(segments: int, size: int, watch: int | None):  # type: ignore[no-untyped-def]
    async def body(stage: Stage) -> None:
        for segment in _outline(segments, size)[:-1]:
            if segment.at:
                await stage.wait(span=segment.at)
            await stage.say(WORD * size)
        await stage.wait(span=0.9)
        await stage.ask(WORD * size, ideal="OK.")
        if watch:
            async for _ in stage.watch(turns=watch):
                pass

    return body


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tests=suites(), span=st.sampled_from([2000, 4000, 20_000]), length=st.integers(0, 60), early=st.booleans())
def test_spans_are_always_kept_if_all_replies_are_alike(
    tests: list[Test], span: int, length: int, early: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    where = setting(span, placement="early" if early else "uniform")
    agent = Babbler(0, lambda _: length)
    transcript = play(tests, agent, where, tmp_path_factory.mktemp("run") / "journal.jsonl")
    late = [test.id for test, good in zip(transcript.tests.values(), kept(transcript, span), strict=True) if not good]
    assert not late


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tests=suites(), seed=st.integers(0, 10**6), span=st.sampled_from([2000, 4000, 20_000]), early=st.booleans())
def test_random_suites_end_in_order_and_time_never_goes_back(
    tests: list[Test], seed: int, span: int, early: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    placement: Placement = "early" if early else "uniform"
    seen: list[list[dict[str, object]]] = []
    for _ in range(2):
        times: list[object] = []
        found: list[dict[str, object]] = []

        def on_event(event: events.Event, times: list[object] = times, found: list[dict[str, object]] = found) -> None:
            found.append(event.model_dump(exclude={"measured"}))
            if isinstance(event, events.Message):
                times.append(event.sent_at)

        where = setting(span, seed=seed, placement=placement)
        transcript = play(tests, Babbler(seed), where, tmp_path_factory.mktemp("run") / "journal.jsonl", listener=on_event)
        assert transcript.closed, "no deadlock: the conversation came to its end"
        assert {test.status for test in transcript.tests.values()} <= {"played"}
        assert times == sorted(times)
        seen.append(found)
    assert seen[0] == seen[1], "the order is reproducible"


def kept(transcript: Transcript, span: int) -> list[bool]:
    return [test.certified(span) and test.at_distance(span) for test in transcript.tests.values()]


def random_suite(random: Random, span: int) -> list[Test]:
    """Tests as in a suite of a dozen scenarios, of any shape that fits in the span."""
    tests: list[Test] = []
    kinds = [
        (f"kind{kind}", random.randint(2, 10), random.randint(5, max(6, span // 100)), random.random() < 0.2, random.random() < 0.2)
        for kind in range(random.randint(4, 12))
    ]
    for number in range(1, random.randint(2, 4)):
        for name, segments, size, pauses, watches in random.sample(kinds, len(kinds)):
            order = len(tests)
            if watches:
                body = _play(segments, min(size, 60), random.randint(1, 8))
                tests.append(made_test(name, number, order, outline=_outline(segments, min(size, 60)), play=body))
            else:
                lines = [
                    Line(WORD * size, asks=i == segments - 1, pause=timedelta(minutes=random.randint(30, 240) * (pauses and i > 0)))
                    for i in range(segments)
                ]
                tests.append(made_test(name, number, order, lines=lines, farewell=random.choice([None, "Never mind that."])))
    return tests


@pytest.mark.parametrize("span", [2000, 4000, 32_000, 120_000])
def test_random_suites_keep_their_spans(span: int, tmp_path: Path) -> None:
    found: list[bool] = []
    for seed in range(20):
        tests = random_suite(Random(f"{span}/{seed}"), span)
        found += kept(play(tests, Babbler(seed), setting(span, seed=seed), tmp_path / f"{seed}.jsonl"), span)
    assert len(found) > 200
    assert fmean(found) >= 0.99
