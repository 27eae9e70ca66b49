"""Small tasks with known replies, such as anyone might ask for in passing. A program can solve them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from longspan.simulator.filler.draws import Draws, join_words
from longspan.simulator.filler.questions import member_of, words_of

__all__ = ["TASKS"]

Task = tuple[str, str]
"""A task and its reply. Each is one line."""

VOWELS: Final = "aeiou"

POLITE: Final = (
    ("Send the {} at once.", "Could you please send the {} when it suits you?"),
    ("Move the {}.", "Would you mind moving the {}?"),
    ("Give the {} back.", "I would be grateful to have the {} back."),
    ("Nobody needs your {}.", "Thank you for the {}, but we are well provided for."),
    ("Do not touch the {}.", "May I ask you to leave the {} as it is?"),
    ("Fix the {}.", "Could I ask you to see to the {} when you have a moment?"),
    ("Where is the {}?", "Would you happen to know where the {} might be?"),
)
RUDE: Final = ("Put this more politely: {}", "Rewrite so that nobody takes offence: {}", "Make this sound kinder: {}")


def _pick_form(draw: Draws, *forms: str) -> str:
    return draw.random.choice(forms)


def _words(draw: Draws) -> list[str]:
    return words_of(draw, draw.random.randint(4, 11))


def sort(draw: Draws) -> Task:
    words = _words(draw)
    ask = _pick_form(draw, "Sort these words: {}.", "Put in alphabetical order: {}.", "Alphabetically, please: {}.", "From A to Z: {}.")
    return ask.format(", ".join(words)), ", ".join(sorted(words))


def by_length(draw: Draws) -> Task:
    words = _words(draw)
    ask = _pick_form(draw, "Order by length, shortest first: {}.", "From the shortest word to the longest: {}.")
    return ask.format(", ".join(words)), ", ".join(sorted(words, key=lambda word: (len(word), word)))


def backwards(draw: Draws) -> Task:
    (word,) = words_of(draw, 1)
    return _pick_form(draw, "Spell {} backwards.", "How does {} read from right to left?", "Write {} in reverse.").format(word), word[::-1]


def reverse(draw: Draws) -> Task:
    words = _words(draw)
    return _pick_form(draw, "Turn this row around: {}.", "The same in reverse order: {}.").format(" ".join(words)), " ".join(words[::-1])


def count_letters(draw: Draws) -> Task:
    words = words_of(draw, draw.random.randint(1, 3))
    ask = _pick_form(draw, "How many letters are there in {}?", "Count the letters of {}.", "Letters in {} altogether?")
    return ask.format(join_words(words)), f"{sum(map(len, words))} letters"


def count_vowels(draw: Draws) -> Task:
    (word,) = words_of(draw, 1)
    number = sum(letter in VOWELS for letter in word)
    ask = _pick_form(draw, "How often do a, e, i, o and u occur in {}?", "Count a, e, i, o, u in {}.")
    return ask.format(word), f"{number} in {word}"


def without_vowels(draw: Draws) -> Task:
    words = words_of(draw, 2)
    short = " ".join("".join(letter for letter in word if letter not in VOWELS) for word in words)
    return _pick_form(draw, "Leave out a, e, i, o and u: {}", "Write {} without a, e, i, o and u").format(" ".join(words)), short


def capitals(draw: Draws) -> Task:
    words = _words(draw)
    return _pick_form(draw, "In capitals, please: {}", "Make a headline in capitals of {}").format(" ".join(words)), " ".join(words).upper()


def initials(draw: Draws) -> Task:
    words = _words(draw)
    ask = _pick_form(draw, "Which abbreviation do {} give?", "First letters only: {}.", "Make an acronym out of {}.")
    return ask.format(join_words(words)), "".join(word[0].upper() for word in words)


def hyphens(draw: Draws) -> Task:
    words = _words(draw)
    return _pick_form(draw, "Join with hyphens: {}", "Make one word with hyphens out of {}").format(" ".join(words)), "-".join(words)


def count_words(draw: Draws) -> Task:
    words = words_of(draw, draw.random.randint(5, 15))
    return _pick_form(draw, "How many words are these: {}?", "Count: {}.").format(
        " ".join(words)
    ), f"{len(words)} words, {words[-1]} the last"


def containing(draw: Draws) -> Task:
    words = _words(draw)
    letter = draw.random.choice(draw.random.choice(words))
    found = [word for word in words if letter in word]
    ask = _pick_form(draw, "Which of {} have the letter {}?", "Out of {}, list those with the letter {}.")
    return ask.format(", ".join(words), letter), ", ".join(found)


def politely(draw: Draws) -> Task:
    rude, polite = draw.random.choice(POLITE)
    thing, _ = member_of(draw, "things")
    return draw.random.choice(RUDE).format(rude.format(thing)), polite.format(thing)


def numbers(draw: Draws) -> Task:
    found = [draw.random.randint(1, 9999) for _ in range(draw.random.randint(3, 7))]
    ask = _pick_form(draw, "Sort from small to large: {}.", "These in ascending order: {}.")
    return ask.format(", ".join(map(str, found))), ", ".join(map(str, sorted(found)))


def largest(draw: Draws) -> Task:
    found = [draw.random.randint(1, 9999) for _ in range(draw.random.randint(3, 6))]
    ask = _pick_form(draw, "The largest and the smallest of {}?", "Between which bounds do {} lie?")
    return ask.format(", ".join(map(str, found))), f"{min(found)} to {max(found)}"


TASKS: Final[dict[str, Callable[[Draws], Task]]] = {
    each.__name__: each
    for each in (
        sort, by_length, backwards, reverse, count_letters, count_vowels, without_vowels, capitals, initials, hyphens, count_words,
        containing, politely, numbers, largest,
    )
}  # fmt: skip
"""The kinds of task, by name."""
