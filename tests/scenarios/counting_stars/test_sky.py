"""The sky, its lengths, and where the stars in it stand."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.scenarios.counting_stars.endless_story import Language, tell_story
from longspan.scenarios.counting_stars.sky import Sky, list_text_files, min_length, scatter_stars
from longspan.simulator.base.errors import InputError
from longspan.simulator.base.tokens import Tokenizer

COUNT = Tokenizer().count
QUESTION = 'How many ★ were seen? Answer as JSON: {"owl": [n, ...]}.'


def stars_of(number: int) -> list[str]:
    return [f"The owl saw {3 + 4 * each} ★." for each in range(number)]


def made_up(language: Language, tokens: int) -> Sky:
    return Sky.from_story(language, Random(1), COUNT, tokens)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize(("number", "length"), [(1, 60), (8, 300), (32, 1000), (32, 4000), (64, 30_000)])
def test_a_message_has_its_length_to_one_star_and_all_stars_in_order(language: Language, encoding: str, number: int, length: int) -> None:
    count = Tokenizer(encoding).count  # type: ignore[arg-type]  # one of the two
    sky, stars = Sky.from_story(language, Random(1), count, length), stars_of(number)
    text = scatter_stars(sky, stars, QUESTION, length, count)
    assert 0 <= length - count(text) < min(map(count, stars))
    assert [line for line in text.splitlines() if "★." in line] == stars
    assert text.endswith(f"\n{QUESTION}")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_stars_are_spread_evenly_and_words_stay_whole(language: Language) -> None:
    stars = stars_of(16)
    text = scatter_stars(made_up(language, 16_000), stars, QUESTION, 16_000, COUNT)
    ends = [COUNT(text[: text.index(star) + len(star)]) for star in stars]
    apart = [after - before for before, after in pairwise([0, *ends])]
    assert all(0.8 < each / (16_000 / 16) < 1.2 for each in apart)
    sky = made_up(language, 16_000).text
    told = [part.strip() for part in re.split("|".join(map(re.escape, stars)), text)]
    assert all(part in sky for part in told[:-1])
    assert all(part.endswith((".", '"', "。", "”")) for part in told[: len(stars) - 1])


@settings(max_examples=40)
@given(
    st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30), min_size=1, max_size=20),
    st.integers(1, 12),
    st.integers(0, 1500),
)
def test_any_text_will_do_for_a_sky(pieces: list[str], number: int, more: int) -> None:
    stars = stars_of(number)
    length = min_length(stars, QUESTION, COUNT) + more
    text = "".join(f"{piece} word" for piece in pieces * 400)
    text = scatter_stars(Sky([text], COUNT, 0, "made"), stars, QUESTION, min(length, COUNT(text)), COUNT)
    assert text.endswith(QUESTION)
    assert [line for line in text.split("\n") if line in stars] == stars


STRANGE = ["a" * 40_000, "字" * 40_000, " " * 40_000, "\n" * 40_000, "ab cd. " * 8000, "e\u0301" * 20_000, "👩\u200d👧" * 4000]


@pytest.mark.parametrize("text", STRANGE)
def test_strange_skies_meet_their_length(text: str) -> None:
    stars = stars_of(4)
    sky = Sky([text], COUNT, 0, "made")
    length = min(800, COUNT(text) // 2 + min_length(stars, QUESTION, COUNT))
    found = scatter_stars(sky, stars, QUESTION, length, COUNT)
    assert COUNT(found) <= length
    if text.strip():
        assert length - COUNT(found) < min(map(COUNT, stars))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_story_is_long_varied_and_holds_nothing_that_could_be_an_answer(language: Language) -> None:
    text = made_up(language, 128_000).text
    assert COUNT(text) >= 128_000
    assert not re.search(r"[0-9★]|\bstars?\b|\bowls?\b|\bcount|星|数|猫头鹰|<|>", text)
    sentences = [each for each in re.split(r"(?<=[.!?。！？])", text) if each.strip()]
    assert len(set(sentences)) > 0.9 * len(sentences)
    assert list(islice(tell_story(language, Random(5)), 50)) == list(islice(tell_story(language, Random(5)), 50))


# ---- user texts


def test_a_folder_is_read_in_the_order_of_its_paths(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/B.md", "a.txt", "c.jpg", ".hidden.txt", ".git/x.txt"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"This is {name}. ", "utf-8")
    assert [str(each.relative_to(tmp_path)) for each in list_text_files(tmp_path)] == ["a/B.md", "a/z.txt", "a.txt", "b.txt"]
    assert Sky.from_files(tmp_path, COUNT, 10).text.startswith("This is a/B.md.")
    assert list_text_files(tmp_path / "c.jpg") == [tmp_path / "c.jpg"]


def test_line_ends_and_marks_of_other_systems_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "unix.txt").write_bytes("One line.\nAnother: 字.\n".encode())
    (tmp_path / "windows.txt").write_bytes(b"\xef\xbb\xbf" + "One line.\r\nAnother: 字.\r\n".encode())
    unix, windows = (Sky.from_files(tmp_path / name, COUNT, 5).text for name in ("unix.txt", "windows.txt"))
    assert unix == windows


def test_texts_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        Sky.from_files(tmp_path / "none", COUNT, 5)
    with pytest.raises(InputError, match="no text files found"):
        Sky.from_files(tmp_path, COUNT, 5)
    (tmp_path / "latin.txt").write_bytes("f\xfcr alle".encode("latin-1"))
    with pytest.raises(InputError, match="not UTF-8 text"):
        Sky.from_files(tmp_path, COUNT, 5)
    (tmp_path / "latin.txt").write_text("", "utf-8")
    with pytest.raises(InputError, match=r"has \d tokens, but 500 are needed"):
        Sky.from_files(tmp_path, COUNT, 500)
