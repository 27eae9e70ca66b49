"""Cutting texts into pages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.timing import growth

from longspan.scenarios.shared.paging import cut_pages, estimate_tokens, take_head, take_tail
from longspan.simulator.base.tokens import Tokenizer

PROSE = (
    'The lamp had gone out again, and nobody cared to light it. "Leave it," said the old woman, "we know where everything is." '
    "Outside the rain went on; it had been going on since Tuesday. They listened. Somewhere beneath them, in the cellar, water ran. "
)


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("text", [PROSE * 10, (PROSE + "\n\n") * 10])
def test_estimates_come_close(text: str) -> None:
    assert estimate_tokens(text) == pytest.approx(Tokenizer().count(text), rel=0.1)


@pytest.mark.parametrize("size", [300, 750, 1000])
@pytest.mark.parametrize(
    "text", [PROSE * 60, (PROSE + "\n\n") * 60, (PROSE * 5 + "\n") * 12, PROSE.replace(".", "").replace("!", "") * 60, "x" * 40_000]
)
def test_pages_are_alike_in_size_and_lose_nothing(text: str, size: int) -> None:
    pages = cut_pages(text, size)

    assert squeezed("".join(pages)) == squeezed(text)
    assert all(0.8 * size <= estimate_tokens(page) <= 1.2 * size for page in pages) or "xxx" in text


def test_pages_end_with_paragraphs_where_they_can() -> None:
    pages = cut_pages("\n\n".join(f"{PROSE}{number}." for number in range(40)), 600)

    assert all(page.startswith("The lamp") and page[-1] == "." and page[-2].isdigit() for page in pages)


def test_the_tail_begins_and_the_head_ends_with_a_sentence() -> None:
    text = " ".join(f"This is sentence number {number} of a rather plain text." for number in range(400))

    assert estimate_tokens(take_tail(text, 500)) == pytest.approx(500, abs=25)
    assert text.endswith(take_tail(text, 500))
    assert take_tail(text, 500).startswith("This")
    assert estimate_tokens(take_head(text, 150)) <= 150
    assert text.startswith(take_head(text, 150))
    assert take_head(text, 150).endswith(".")


def test_a_text_that_is_short_enough_stays_whole() -> None:
    assert take_tail("Short.", 8000) == "Short."
    assert take_head("Short.", 150) == "Short."
    assert cut_pages("Short.", 750) == ["Short."]


@given(st.text(max_size=600), st.integers(60, 900))
def test_any_text_can_be_cut(text: str, size: int) -> None:
    assert squeezed("".join(cut_pages(text, size))) == squeezed(text)
    assert text.rstrip().endswith(take_tail(text, size))
    assert text.lstrip().startswith(take_head(text, size))


def test_a_huge_text_is_cut_at_once() -> None:
    def cut(size: int) -> None:
        for text in ("\n\n" * (2 * size // 5), "word " * (size // 5), "x" * size, ". " * (size // 5)):
            cut_pages(text, 750)
            take_tail(text, 8000)
            take_head(text, 150)

    assert growth(cut, 50_000) < 40
