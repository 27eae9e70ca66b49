"""The numbers of stars: drawn from a seed, or read from the published lists."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, final

from longspan.simulator.errors import InputError

__all__ = ["BLOCK", "RIGHT", "WRONG", "Stars", "drawn", "published"]

BLOCK: Final = 4
"""One of so many numbers in a row is a count, so that counts are neither continuous nor regular (section 2.2)."""

RIGHT: Final = "a_stars.txt"
WRONG: Final = "r_stars.txt"
"""What the published files are called: the counts that are right, and those that are told first and taken back."""

LARGEST: Final = 16_000_000
"""Characters of a file of lists, and the largest number in one."""


@final
class Stars(NamedTuple):
    """The right count of each star, in the order in which they are told; and for reasoning, the wrong count told before it."""

    right: tuple[int, ...]
    wrong: tuple[int, ...]


def drawn(random: Random, number: int) -> Stars:
    """So many counts, one of each block of four numbers, shuffled; the wrong ones are one more or one less.

    No wrong count is that of another star, right or wrong: what an answer names is always one star's.
    """
    right = [BLOCK * block + random.randint(1, BLOCK) for block in range(number)]
    random.shuffle(right)
    return Stars(tuple(right), _beside(random, right, "the drawn counts"))


def _beside(random: Random, right: Sequence[int], where: str) -> tuple[int, ...]:
    """A wrong count for each right one, one away from it and from no other. Raises InputError where there is none left."""
    taken = set(right)
    found: dict[int, int] = {}
    for count in sorted(right):
        free = [each for each in (count - 1, count + 1) if each > 0 and each not in taken]
        if not free:
            raise InputError(f"{where}: no number beside {count} is free for a wrong count: give the folder of {RIGHT} and {WRONG}")
        found[count] = random.choice(free)
        taken.add(found[count])
    return tuple(found[count] for count in right)


def published(path: Path, number: int, random: Random, *, reasoning: bool) -> Stars:
    """The list for so many stars in a published file, or in the folder that holds both files.

    The wrong counts are those of the folder's second file; with a file alone they are drawn. Raises InputError for what
    cannot be read, has no list for this number, or has a list that is none.
    """
    folder = path.is_dir()
    right = _counts(path / RIGHT if folder else path, number)
    if len(set(right)) < number:
        raise InputError(f"{path}: a count comes twice in the list for {number} stars: nobody could tell which star an answer means")
    if not reasoning:
        return Stars(right, right)
    if not folder:
        return Stars(right, _beside(random, right, str(path)))
    wrong = _counts(path / WRONG, number)
    if clash := sorted(set(right) & set(wrong)):
        raise InputError(f"{path / WRONG}: {clash[0]} is a right count too, in {RIGHT}: an answer could not be graded")
    return Stars(right, wrong)


def _counts(path: Path, number: int) -> tuple[int, ...]:
    lists = _lists(path)
    found = lists.get(str(number))
    if found is None:
        raise InputError(f"{path}: holds no list for {number} stars; there are lists for {', '.join(list(lists)[:20]) or 'none'}")
    if not (isinstance(found, list) and all(type(each) is int and 0 < each < LARGEST for each in found)):
        raise InputError(f"{path}: the list for {number} stars has to hold whole numbers above 0 and nothing else")
    if len(found) != number:
        raise InputError(f"{path}: the list for {number} stars holds {len(found)} numbers")
    return tuple(found)


def _lists(path: Path) -> dict[str, Any]:
    """Lists by their lengths as text: {'32': [15, 117, ...], ...}, as Python or JSON writes them."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST)
        found = ast.literal_eval(text.strip())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; name {RIGHT} of the published data, or its folder") from error
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise InputError(f"{path}: not a file of star lists such as {{'32': [15, 117, ...]}}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: not a file of star lists such as {{'32': [15, 117, ...]}}")
    return {str(key): value for key, value in found.items()}
