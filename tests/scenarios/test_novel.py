"""Novels: long enough, never the same sentence twice, consistent, and with openings that only their reader can tell apart."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import pytest

from longspan.scenarios.ltm.chapterbreak import novel
from longspan.scenarios.ltm.chapterbreak.novel import Fact, Novel, Person, write_novel
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.deck import Deck
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.base.words import plain
from longspan.simulator.reading.matching import contains_phrase

NOVELS = 200
MOST = 0.27
"""The most that a guesser may be right who has not read: chance is a sixth, and 200 novels give it a deviation of 0.026."""

SENTENCE = re.compile(r"[^.?!\n]+[.?!]+\"?")


@pytest.fixture(scope="module")
def novels() -> list[Novel]:
    return [write_novel(Random(f"novel {seed}"), 8000) for seed in range(NOVELS)]


def sentences(text: str) -> list[str]:
    return [sentence.strip() for sentence in SENTENCE.findall(text)]


def test_sizes(novels: list[Novel]) -> None:
    count = Tokenizer().count
    for made in novels[:40]:
        pages = [count(page) for page in made.pages]
        assert min(pages) >= 600
        assert max(pages) <= 900
        assert 7200 <= sum(pages) <= 8800
        assert all(90 <= count(opening.text) <= 170 for opening in made.openings)


@pytest.mark.parametrize("tokens", [3000, 5000, 16_000, 32_000])
def test_other_sizes(tokens: int) -> None:
    count = Tokenizer().count
    pages = [count(page) for page in write_novel(Random(7), tokens).pages]

    assert all(600 <= size <= 900 for size in pages)
    assert 0.85 * tokens <= sum(pages) <= 1.12 * tokens


def test_no_sentence_is_said_twice(novels: list[Novel]) -> None:
    for made in novels[:60]:
        said = Counter(sentences("\n".join([*made.pages, *(opening.text for opening in made.openings)])))
        assert said.most_common(1)[0][1] == 1, said.most_common(3)


def test_no_sentence_is_said_twice_in_a_long_one() -> None:
    said = Counter(sentences("\n".join(write_novel(Random(3), 32_000).pages)))

    assert said.most_common(1)[0][1] == 1, said.most_common(3)


def test_every_slot_is_filled_and_articles_fit(novels: list[Novel]) -> None:
    for made in novels[:60]:
        text = "\n".join([*made.pages, *(opening.text for opening in made.openings)])
        assert not re.search(r"[<>{}]|  | ,|\bNone\b", text)
        assert not re.search(r"\ba (?:[aei]|o(?!ne))\w", text, re.IGNORECASE), re.findall(r"\ba (?:[aei]|o(?!ne))\w+", text)
        assert all(sentence[0].isupper() or sentence[0] == '"' for page in made.pages for sentence in page.split("\n") if sentence)


def test_exactly_one_opening_is_true_and_the_others_have_one_fact_wrong(novels: list[Novel]) -> None:
    for made in novels:
        assert sorted(sum(not claim.true for claim in opening.claims) for opening in made.openings) == [0, 1, 1, 1, 1, 1]


def test_what_is_claimed_stands_in_the_opening_and_what_was_told_on_a_page(novels: list[Novel]) -> None:
    for made in novels[:60]:
        for opening in made.openings:
            assert all(claim.says in opening.text for claim in opening.claims)
            assert all(any(claim.told in page for page in made.pages) for claim in opening.claims)
        told = [claim.told for opening in made.openings for claim in opening.claims]
        assert len(set(told)) == len(told)


def test_the_false_value_is_of_somebody_else_or_has_been_taken_back() -> None:
    """Of every fact the pages tie the true value to its bearer, and the foil only earlier, if at all."""
    for seed in range(15):
        made = write_novel(Random(f"fact {seed}"), 8000)
        told = [sentence for page in made.pages for sentence in sentences(page)]
        for fact in made.facts:
            if isinstance(fact.value, Person):
                continue
            right, wrong = (_ties(told, fact, value) for value in (fact.value, fact.foil))
            assert right, fact
            assert not wrong or (fact.other is None and max(wrong) <= max(right)), fact


def _ties(told: Sequence[str], fact: Fact, value: Person | str) -> list[int]:
    who = fact.who.name if isinstance(fact.who, Person) else fact.who
    said = value.name if isinstance(value, Person) else value
    return [at for at, sentence in enumerate(told) if contains_phrase(sentence, who) and contains_phrase(sentence, said)]


def test_the_dead_and_departed_play_no_other_part(novels: list[Novel]) -> None:
    """Nobody whom an opening calls dead, gone or guilty is spoken of in another one."""
    for made in novels[:60]:
        for opening in made.openings:
            for claim in opening.claims:
                for name in re.findall(r"(\w+)'s grave|grave where (\w+) lay|took (\w+) away for good", claim.says):
                    others = " ".join(other.text for other in made.openings if other is not opening)
                    assert not contains_phrase(others, "".join(name))


def test_the_same_seed_gives_the_same_novel_and_another_one_another() -> None:
    assert write_novel(Random(5), 8000) == write_novel(Random(5), 8000)
    assert not set(write_novel(Random(5), 8000).pages) & set(write_novel(Random(6), 8000).pages)


def test_the_true_opening_is_anywhere(novels: list[Novel]) -> None:
    places = Counter([opening.true for opening in made.openings].index(True) for made in novels)

    assert set(places) == set(range(6))
    assert max(places.values()) / NOVELS <= MOST


Guess = Callable[[list[str], list[list[str]]], list[float]]
"""Given the words of the pages and of each opening, how much speaks for each."""


def _grams(said: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(said[at : at + length]) for at in range(len(said) - length + 1)]


def _overlap(length: int) -> Guess:
    def guess(pages: list[str], openings: list[list[str]]) -> list[float]:
        known = set(_grams(pages, length))
        return [len(set(grams) & known) / len(set(grams)) for grams in (_grams(opening, length) for opening in openings)]

    return guess


def _frequency(pages: list[str], openings: list[list[str]]) -> list[float]:
    counts = Counter(pages)
    return [sum(math.log1p(counts[word]) for word in opening) / len(opening) for opening in openings]


def _rarity(pages: list[str], openings: list[list[str]]) -> list[float]:
    counts = Counter(pages)
    return [sum(1 / counts[word] for word in set(opening) if word in counts) for opening in openings]


def _lately(pages: list[str], openings: list[list[str]]) -> list[float]:
    return _overlap(1)(pages[len(pages) // 2 :], openings)


def _alike(pages: list[str], openings: list[list[str]]) -> list[float]:
    """How much each opening shares with the others: a vote of the openings among themselves."""
    return [sum(len(set(one) & set(other)) for other in openings if other is not one) / len(set(one)) for one in openings]


def _length(pages: list[str], openings: list[list[str]]) -> list[float]:
    return [float(len(" ".join(opening))) for opening in openings]


GUESSES: dict[str, Guess] = {
    "words": _overlap(1), "pairs": _overlap(2), "triples": _overlap(3), "frequency": _frequency, "rarity": _rarity, "lately": _lately,
    "alike": _alike, "length": _length,
}  # fmt: skip


def test_nothing_but_reading_tells_the_true_opening(novels: list[Novel]) -> None:
    hits: Counter[str] = Counter()
    for made in novels:
        pages = plain(" ".join(made.pages)).split()
        openings = [plain(opening.text).split() for opening in made.openings]
        right = [opening.true for opening in made.openings].index(True)
        for name, guess in GUESSES.items():
            scores = guess(pages, openings)
            hits[f"most {name}"] += scores.index(max(scores)) == right
            hits[f"least {name}"] += scores.index(min(scores)) == right

    assert {name: count / NOVELS for name, count in hits.items() if count / NOVELS > MOST} == {}


def test_every_kind_of_fact_has_its_sentences() -> None:
    wording = Wording("novel")
    for kind in load_words("novel")["kinds"]:
        needed = ["tell", "echo", "open", *(["change"] if kind in novel.MOVABLE else [])]
        assert all(len(wording.all(f"{kind}_{macro}")) >= 2 for macro in needed), kind
    for kind in novel.PERSONAL:
        assert all(len(wording.all(f"{kind}_{macro}")) >= 2 for macro in ("tell", "foil", "open")), kind


def test_sentences_that_tell_nothing_do_not_speak_of_facts() -> None:
    """What fills a story must not contain what a fact can be, or a false opening might be right after all."""
    wording, lists = Wording("novel"), load_words("novel")
    macros = "scene sense arrive gesture talk thought gossip react close dawn mid end introduce".split()
    filler = " ".join(line for macro in macros for line in wording.all(macro))
    filler += " ".join(value for name in novel.VOCABULARY for value in lists[name])
    filler += " ".join(place for setting in lists["settings"] for place in setting["places"])

    assert [value for values in lists["kinds"].values() for value in values if contains_phrase(filler, value)] == []


def test_lists_hold_nothing_twice() -> None:
    lists = load_words("novel")
    values = [value for kind in lists["kinds"].values() for value in kind]

    assert len(set(values)) == len(values)
    assert not set(lists["women"]) & set(lists["men"])


def test_a_deck_deals_everything_before_it_deals_anything_again() -> None:
    deck = Deck(Random(1), "abcd")
    dealt = [deck.deal() for _ in range(12)]

    assert [sorted(dealt[at : at + 4]) for at in (0, 4, 8)] == [list("abcd")] * 3
