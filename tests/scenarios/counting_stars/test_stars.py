"""The numbers of stars."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.counting_stars.stars import draw_stars, read_published_stars
from longspan.simulator.base.errors import InputError


@given(st.integers(0, 10_000), st.integers(1, 300))
def test_one_count_of_each_block_of_four_and_wrong_ones_beside_them_that_are_nobody_elses(seed: int, number: int) -> None:
    stars = draw_stars(Random(seed), number)
    assert sorted((count - 1) // 4 for count in stars.right) == list(range(number))
    assert all(abs(right - wrong) == 1 and wrong > 0 for right, wrong in zip(*stars, strict=True))
    assert len({*stars.right, *stars.wrong}) == 2 * number
    assert stars == draw_stars(Random(seed), number)


def test_counts_are_shuffled() -> None:
    found = [draw_stars(Random(seed), 32).right for seed in range(5)]
    assert all(list(each) != sorted(each) for each in found)
    assert len(set(found)) == 5


def test_the_published_lists_are_read(counting_stars: Path) -> None:
    alone = read_published_stars(counting_stars / "a_stars.txt", 32, Random(0), reasoning=True)
    both = read_published_stars(counting_stars, 32, Random(0), reasoning=True)
    assert alone.right == both.right
    assert both.right[:3] == (15, 117, 42)
    assert both.wrong[:3] == (16, 116, 43)
    assert len({*alone.right, *alone.wrong}) == 64
    with pytest.raises(InputError, match="no list for 31 stars; there are lists for 32, 64"):
        read_published_stars(counting_stars, 31, Random(0), reasoning=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a file of star lists"),
        ("[1, 2]", "not a file of star lists"),
        ("__import__('os').getcwd()", "not a file of star lists"),
        ("{'2': [1, 2]" + "[" * 100_000, "not a file of star lists"),
        ("{'2': [1, 1]}", "repeats a count"),
        ("{'2': [1, 'x']}", "whole numbers"),
        ("{'2': [1, True]}", "whole numbers"),
        ("{'2': [0, -5]}", "whole numbers"),
        ("{'2': [1, 2, 3]}", "must have 2 numbers, got 3"),
        ("{'3': [1, 2, 3]}", "no list for 2 stars; there are lists for 3"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "stars.txt"
    file.write_text(text, "utf-8")
    with pytest.raises(InputError, match=message):
        read_published_stars(file, 2, Random(0), reasoning=False)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_published_stars(tmp_path / "none.txt", 2, Random(0), reasoning=False)
    with pytest.raises(InputError, match="cannot be read"):
        read_published_stars(tmp_path, 2, Random(0), reasoning=False)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a file of star lists"):
        read_published_stars(tmp_path / "binary", 2, Random(0), reasoning=False)


def test_counts_that_leave_no_room_for_wrong_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a_stars.txt").write_text("{'3': [7, 8, 9]}", "utf-8")
    with pytest.raises(InputError, match="no number next to 8 is free"):
        read_published_stars(tmp_path / "a_stars.txt", 3, Random(0), reasoning=True)
    (tmp_path / "r_stars.txt").write_text("{'3': [6, 9, 10]}", "utf-8")
    with pytest.raises(InputError, match="9 is also a right count"):
        read_published_stars(tmp_path, 3, Random(0), reasoning=True)
