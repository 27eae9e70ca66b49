"""Haystacks that are made up: their guarantees, and that their checks find faults."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.summhay.checks import find_problems, nearly_same_words
from longspan.scenarios.summhay.checks import is_specific as specific
from longspan.scenarios.summhay.generated import generate_haystack
from longspan.scenarios.summhay.haystacks import DOMAINS, Domain, Haystack
from longspan.scenarios.summhay.signs import MONTHS, find_signs


def made(domain: Domain, seed: int = 0, documents: int = 100, subtopics: int = 9, words: int = 750) -> Haystack:
    return generate_haystack(Random(f"{domain}/{seed}"), domain=domain, subtopics=subtopics, documents=documents, words=words, name="1")


@pytest.fixture(scope="module", params=DOMAINS)
def haystack(request: pytest.FixtureRequest) -> Haystack:
    return made(request.param)


def test_a_haystack_has_about_the_size_of_the_papers(haystack: Haystack) -> None:
    lengths = [len(document.text.split()) for document in haystack.documents]
    assert len(lengths) == 100
    assert 700 < min(lengths) <= max(lengths) < 850
    assert len(haystack.subtopics) == 9
    assert all(5 <= len(subtopic.insights) <= 8 for subtopic in haystack.subtopics)


def test_what_an_insight_is_recognised_by_stands_in_its_documents_and_in_no_other(haystack: Haystack) -> None:
    for subtopic in haystack.subtopics[:3]:
        for insight in subtopic.insights:
            name, number, date = sorted(insight.signs, key=lambda sign: (sign[0].isdigit(), " " in sign))
            day, month = date.split()
            patterns = [re.compile(rf"\b{each}\b") for each in (name.title(), number, f"{day} {month.title()}")]
            for at, document in enumerate(haystack.documents, 1):
                there = {pattern.search(document.text) is not None for pattern in patterns}
                assert there == {at in haystack.sources[insight.id]} == {insight.id in document.insights}


def test_every_insight_stands_in_several_documents_but_not_in_most(haystack: Haystack) -> None:
    counts = [len(numbers) for numbers in haystack.sources.values()]
    assert 5 <= min(counts) <= max(counts) <= 25


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize(("documents", "subtopics", "words"), [(20, 1, 100), (20, 10, 1000), (110, 10, 300)])
def test_no_seed_makes_a_haystack_that_fails_its_checks(domain: Domain, documents: int, subtopics: int, words: int) -> None:
    for seed in range(4):
        haystack = made(domain, seed, documents, subtopics, words)
        assert find_problems(haystack) == []
        assert len(haystack.documents) == documents


def test_a_seed_means_one_haystack() -> None:
    assert made("news", 1, 12, 2, 100) == made("news", 1, 12, 2, 100)
    assert made("news", 1, 12, 2, 100) != made("news", 2, 12, 2, 100)


def test_the_checks_find_what_is_wrong() -> None:
    haystack = made("conversation", documents=20, subtopics=3, words=150)
    first, second, third = haystack.subtopics
    insight = first.insights[0]
    at = min(haystack.sources[insight.id]) - 1
    without = next(number for number, document in enumerate(haystack.documents) if insight.id not in document.insights)

    def changed(number: int, text: str) -> Haystack:
        documents = list(haystack.documents)
        documents[number] = replace(documents[number], text=text)
        return replace(haystack, documents=tuple(documents))

    family = next(sign for sign in insight.signs if sign.isalpha())
    wrong = {
        "lacks insight": changed(at, "Nothing to see."),
        "which was not planned": changed(without, f"{haystack.documents[without].text} {family.title()} waves."),
        "same as another": changed(0, haystack.documents[1].text),
        "are alike": replace(haystack, subtopics=(first, replace(second, subtopic=first.subtopic), third)),
        "repeat each other": replace(
            haystack, subtopics=(first, replace(second, insights=(replace(insight, id=second.insights[0].id), *second.insights[1:])), third)
        ),
        "no number, date or name": replace(
            haystack, subtopics=(replace(first, insights=(replace(insight, text="somebody did it", signs=frozenset()),)), second, third)
        ),
    }
    assert not find_problems(haystack)
    for words, broken in wrong.items():
        assert any(words in each for each in find_problems(broken)), words


@pytest.mark.parametrize(
    ("text", "is_specific"),
    [("They met on Tuesday.", True), ("It costs 30 dollars.", True), ("Costs went up.", False), ("The doctor asked Maria.", True)],
)
def test_what_is_specific(text: str, is_specific: bool) -> None:
    assert specific(text) == is_specific


def test_what_is_alike() -> None:
    assert nearly_same_words("Effects on animals and plants", "The effects on plants, animals")
    assert not nearly_same_words("Effects on animals and plants", "Loans, gifts and bills")


# signs


WAYS = ["{d} {m}", "{d}th of {m}", "{m} {d}", "{m} {d}, 2024", "the {d}th {m}", "{m} the {d}th", "({d} {s}.)", "{s} {d}"]


@pytest.mark.parametrize("way", WAYS)
def test_a_date_is_the_same_however_it_is_written(way: str) -> None:
    for month in MONTHS:
        text = way.format(d=14, m=month.title(), s=month[:3].title())
        assert f"14 {month}" in find_signs(text), text


def test_numbers_and_names_however_they_are_written() -> None:
    found = find_signs("NORRIGEN's loan of $1,350 (or 12.5 %), see [77, 8] [312]")
    assert {"norrigen", "1350", "12.5"} <= found
    assert not {"77", "8", "312"} & found


@given(st.text(max_size=300))
def test_any_text_has_signs(text: str) -> None:
    assert all(sign and sign == sign.casefold() for sign in find_signs(text))
