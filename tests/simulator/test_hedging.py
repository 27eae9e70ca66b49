"""Which of several candidates a reply settles on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.timing import growth

from longspan.simulator.reading.replies.reading import settled_words

CANDIDATES = ["red", "blue", "green", "brown", "sky blue", "cr\u00e8me"]

ONE = [
    "Red.",
    "RED",
    "**Red**",
    "Your favourite is `red`.",
    "Red's your favourite.",
    "It's red, not blue.",
    "It's red not blue",
    "It's not blue, but red.",
    "It isn\u2019t blue. Red!",
    "It is neither blue nor green. It is red.",
    "Not blue, green or brown, but red",
    "It used to be blue, but it is now red.",
    "It was blue, now red.",
    "It was blue and is red now",
    "Red (formerly blue)",
    "Red instead of blue, as you wished.",
    "Red rather than blue.",
    "It's red \u2014 it isn't blue anymore.",
    "Red; blue was before that.",
    "You changed it from blue to red.",
    "You told me it was red.",
    "Earlier in our talk you told me that it was red.",
    "You first said blue, then red.",
    "Previously: blue, green. Now: red.",
    "Once it was blue; nowadays it's red.",
    "I'm not sure, but I believe it's red.",
    "If I'm not mistaken, red.",
    "You mentioned brown, green and red; the current one is red.",
    "It is red. Although you spoke of brown and green earlier, you said red last.",
    "It is red. You initially said brown, then changed it to green, and most recently stated red.",
    "[5 minutes ago] You said brown.\n[3 minutes ago] You said green.\n[2 minutes ago] You said red.\n\nHence the latest is red.",
    "Past favourites:\n- blue\n- green\n\nCurrent favourite: red",
    "It's red, and has been since you moved on from blue.",
    "blue \u2192 red",
]

HEDGES = [
    "Red or blue.",
    "Red/blue",
    "Red and blue",
    "I think red, maybe blue.",
    "Either red or blue, I am not sure which.",
    "It's red. Or was it blue? Perhaps it is blue.",
    "You said blue, then red.",
    "You have told me red and blue at different times.",
    "I think you said it was blue, but then you said it was red?",
    "1. Red\n2. Blue",
    "Your favourites are red, also blue.",
]

NEITHER = [
    "",
    "No idea.",
    "It is shared.",
    "Credible, bluish.",
    "Not red.",
    "It is no longer red.",
    "It used to be red.",
    "I don't know whether it's red or blue.",
    "You never named red or blue",
]


@pytest.mark.parametrize("text", ONE)
def test_settles_on_one(text: str) -> None:
    assert settled_words(text, CANDIDATES) == ["red"]


@pytest.mark.parametrize("text", HEDGES)
def test_hedges(text: str) -> None:
    assert settled_words(text, CANDIDATES) == ["red", "blue"]


@pytest.mark.parametrize("text", NEITHER)
def test_settles_on_nothing(text: str) -> None:
    assert settled_words(text, CANDIDATES) == []


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("Sky blue", ["sky blue"]),
        ("sky-blue", ["sky blue"]),
        ("Sky blue or blue", ["blue", "sky blue"]),
        ("dark blue", ["blue"]),
        ("CREME", ["cr\u00e8me"]),
        ("green, brown", ["green", "brown"]),
        ("brown, green", ["green", "brown"]),
    ],
)
def test_candidates(text: str, settled: list[str]) -> None:
    assert settled_words(text, CANDIDATES) == settled


def test_without_candidates() -> None:
    assert settled_words("red", []) == []
    assert settled_words("red", [""]) == []


PIECES = st.sampled_from([*CANDIDATES, "not", "was", "now", "and", "or", "from", ",", ".", "(", "\n", "-", "'"])


@given(st.one_of(st.text(), st.lists(PIECES).map(" ".join)))
def test_any_text(text: str) -> None:
    settled = settled_words(text, CANDIDATES)
    assert settled == [word for word in CANDIDATES if word in settled]


@given(st.sampled_from(ONE + HEDGES + NEITHER), st.text("xyz ", max_size=30))
def test_words_that_say_nothing_change_nothing(text: str, noise: str) -> None:
    assert settled_words(f"{noise}. {text} {noise}.", CANDIDATES) == settled_words(text, CANDIDATES)


@pytest.mark.parametrize("piece", ["red, ", "red not ", "lorem ", ",", "red ", "now. ", "\u2019s", "a-"])
def test_time_is_linear(piece: str) -> None:
    assert growth(lambda size: settled_words(piece * (size // len(piece)) + " red", CANDIDATES), 30_000) < 40
