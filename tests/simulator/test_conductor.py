"""Spans are kept by construction: the conductor driven by made-up tests and by an agent whose replies have random lengths."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rig import Babbler, made_test, play, setting

from longspan.simulator.contract.scenario import Test
from longspan.simulator.contract.script import Line, Placement, Segment
from longspan.simulator.contract.stage import Stage
from longspan.simulator.journal import events
from longspan.simulator.journal.transcript import Transcript

WORD = " the"
PLACEMENTS: list[Placement] = ["spread", "uniform", "early"]


@st.composite
def suites(draw: st.DrawFn) -> tuple[Placement, list[Test]]:
    """Random tests: scripted or dynamic, with waits on tokens, turns and time, shared topics, watches, farewells."""
    tests: list[Test] = []
    placement = draw(st.sampled_from(PLACEMENTS))
    topics = ["sea", "wind", "sand"]
    for kind in range(draw(st.integers(1, 6))):
        name = f"kind{kind}"
        shared = frozenset(draw(st.sets(st.sampled_from(topics), max_size=1)))
        segments = draw(st.integers(2, 7))
        size = draw(st.integers(2, 60))
        pauses = draw(st.booleans())
        dynamic = draw(st.booleans())
        watch = draw(st.integers(0, 6))
        turns = draw(st.integers(0, 2))
        farewell = draw(st.none() | st.just("Never mind that."))
        for number in range(1, draw(st.integers(1, 4)) + 1):
            order = len(tests)
            if dynamic:
                outline, body = _outline(segments, size, watch, turns), _play(segments, size, watch)
                options = {"outline": outline, "play": body}
            else:
                options = {"lines": _lines(segments, size, timedelta(minutes=45 * pauses))}
            tests.append(made_test(name, number, order, topics=shared, farewell=farewell, placement=placement, **options))
    return placement, tests


def _lines(segments: int, size: int, pause: timedelta) -> list[Line]:
    return [Line(WORD * size, asks=i == segments - 1, pause=pause if i else timedelta(0)) for i in range(segments)]


def _outline(segments: int, size: int, watch: int = 0, turns: int = 0) -> list[Segment]:
    return [Segment(None, size, 1, after_turns=turns, watch=watch if i == segments - 1 else 0) for i in range(segments)]


def _play(segments: int, size: int, watch: int):  # type: ignore[no-untyped-def]
    async def body(stage: Stage) -> None:
        for _ in range(segments - 1):
            await stage.say(WORD * size)
            await stage.wait()
        await stage.ask(WORD * size, ideal="OK.")
        if watch:
            async for _ in stage.watch(turns=watch):
                pass

    return body


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(drawn=suites(), seed=st.integers(0, 10**6), span=st.sampled_from([2000, 4000, 20_000]))
def test_random_suites_end_in_order_keep_their_spans_and_time_never_goes_back(
    drawn: tuple[Placement, list[Test]], seed: int, span: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    placement, tests = drawn
    times: list[object] = []

    def on_event(event: events.Event) -> None:
        if isinstance(event, events.Message):
            times.append(event.sent_at)

    where = setting(span, seed=seed, placement=placement)
    transcript = play(tests, Babbler(seed), where, tmp_path_factory.mktemp("run") / "journal.jsonl", listener=on_event)
    assert transcript.closed, "no deadlock: the conversation came to its end"
    assert {test.status for test in transcript.tests.values()} <= {"played"}
    assert times == sorted(times)
    assert not late(transcript, span)


def late(transcript: Transcript, span: int) -> list[str]:
    """Return the tests that did not keep their span as dealt: no longer than it, and the question in its last tenth."""
    return [test.id for test in transcript.tests.values() if not (0.9 * span <= test.span_dealt <= span and test.dealt is not None)]


def random_suite(random: Random, span: int, placement: Placement) -> list[Test]:
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
                watch, small = random.randint(1, 8), min(size, 60)
                options = {"outline": _outline(segments, small, watch), "play": _play(segments, small, watch)}
            else:
                pause = timedelta(minutes=random.randint(30, 240) * pauses)
                options = {"lines": _lines(segments, size, pause), "farewell": random.choice([None, "Never mind that."])}
            tests.append(made_test(name, number, order, placement=placement, **options))  # type: ignore[arg-type]
    return tests


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("span", [2000, 4000, 32_000])
def test_suites_of_a_dozen_scenarios_keep_their_spans(span: int, placement: Placement, tmp_path: Path) -> None:
    played = 0
    for seed in range(4):
        tests = random_suite(Random(f"{span}/{seed}"), span, placement)
        transcript = play(tests, Babbler(seed), setting(span, seed=seed, placement=placement), tmp_path / f"{seed}.jsonl")
        assert not late(transcript, span)
        played += len(transcript.tests)
    assert played > 40
