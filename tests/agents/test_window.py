from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from longspan.agents.models.window import Window

SIZES = st.lists(st.integers(0, 60), max_size=80)


def fill(window: Window[int], sizes: list[int]) -> None:
    for number, tokens in enumerate(sizes):
        window.make_room(tokens)
        window.add(number, tokens)


@given(SIZES, st.integers(60, 300), st.sampled_from(["block", "sliding"]))
def test_it_holds_the_newest_items_that_fit(sizes: list[int], max_tokens: int, eviction: str) -> None:
    window: Window[int] = Window(max_tokens, eviction)  # type: ignore[arg-type]
    fill(window, sizes)
    held = list(window)
    assert held == list(range(len(sizes)))[len(sizes) - len(held) :]
    assert window.used == sum(sizes[number] for number in held) <= max_tokens


@given(SIZES, st.integers(60, 300))
def test_sliding_drops_nothing_that_would_still_fit(sizes: list[int], max_tokens: int) -> None:
    window: Window[int] = Window(max_tokens, "sliding")
    fill(window, sizes)
    dropped = len(sizes) - len(window)
    if dropped:
        # When the last one was dropped, it did not fit together with the later items; some of them may have been dropped since.
        assert any(sum(sizes[dropped - 1 : end]) > max_tokens for end in range(dropped, len(sizes) + 1))


@given(st.lists(st.integers(1, 10), min_size=40, max_size=200), st.integers(100, 300))
def test_a_block_leaves_room_for_many_turns(sizes: list[int], max_tokens: int) -> None:
    window: Window[int] = Window(max_tokens)
    first, moves = 0, []
    for number, tokens in enumerate(sizes):
        window.make_room(tokens)
        window.add(number, tokens)
        if next(iter(window)) != first:
            first = next(iter(window))
            moves.append(sum(sizes[:number]))
            assert window.used <= max_tokens * 0.75 + tokens
    for earlier, later in pairwise(moves):
        assert later - earlier >= max_tokens * 0.25 - 2 * 10  # the tokens freed, less the two messages at the ends


def test_an_item_that_does_not_fit_alone_empties_it() -> None:
    window: Window[int] = Window(100)
    fill(window, [30, 30, 30])
    window.make_room(101)
    assert len(window) == 0
    assert window.used == 0


def test_a_block_is_a_quarter_of_the_window() -> None:
    window: Window[int] = Window(1000)
    fill(window, [10] * 8)
    window.drop_block()
    assert list(window) == [2, 3, 4, 5, 6, 7]
