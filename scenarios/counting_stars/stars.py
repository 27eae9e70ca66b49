"""Numbers of the stars: drawn from a seed, or read from the published lists."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.errors import InputError
from longspan.simulator.base.files.file_io import read_packed

__all__ = ["BLOCK", "RIGHT", "WRONG", "Stars", "draw_stars", "read_published_stars"]

BLOCK: Final = 4
"""Each block of this many consecutive numbers contributes one count, so that counts are neither continuous nor regular (section 2.2)."""

RIGHT: Final = "a_stars.txt"
WRONG: Final = "r_stars.txt"
"""Names of the published files: the right counts, and the wrong ones that are stated first and then corrected."""

LIMIT: Final = 16_000_000
"""Maximum size in bytes of a file of lists, and upper bound for the numbers in it."""


@final
class Stars(NamedTuple):
    """The right count of each star, in the order of the text, and the wrong count stated before it for reasoning."""

    right: tuple[int, ...]
    wrong: tuple[int, ...]


def draw_stars(random: Random, number: int) -> Stars:
    """Draw `number` counts, one from each block of four numbers, shuffled. The wrong ones differ by one.

    No wrong count is another star's count, so that a number in an answer always belongs to one star.
    """
    right = [BLOCK * block + random.randint(1, BLOCK) for block in range(number)]
    random.shuffle(right)
    return Stars(tuple(right), _wrong_counts(random, right, "the drawn counts"))


def _wrong_counts(random: Random, right: Sequence[int], where: str) -> tuple[int, ...]:
    """Draw a wrong count for each right one, adjacent to it and unused. Raises InputError if none is left."""
    taken = set(right)
    wrong: dict[int, int] = {}
    for count in sorted(right):
        free = [number for number in (count - 1, count + 1) if number > 0 and number not in taken]
        if not free:
            raise InputError(f"{where}: no number next to {count} is free for a wrong count; give the folder of {RIGHT} and {WRONG}")
        wrong[count] = random.choice(free)
        taken.add(wrong[count])
    return tuple(wrong[count] for count in right)


def read_published_stars(path: Path, number: int, random: Random, *, reasoning: bool) -> Stars:
    """Read the list for `number` stars from a published file, or from the folder with both files.

    The wrong counts come from the folder's second file; for a single file they are drawn. Raises InputError if the file is unreadable or
    has no valid list for this number.
    """
    folder = path.is_dir()
    right = _counts(path / RIGHT if folder else path, number)
    if len(set(right)) < number:
        raise InputError(f"{path}: the list for {number} stars repeats a count, so answers would be ambiguous")
    if not reasoning:
        return Stars(right, right)
    if not folder:
        return Stars(right, _wrong_counts(random, right, str(path)))
    wrong = _counts(path / WRONG, number)
    if clash := sorted(set(right) & set(wrong)):
        raise InputError(f"{path / WRONG}: {clash[0]} is also a right count in {RIGHT}, so answers could not be graded")
    return Stars(right, wrong)


def _counts(path: Path, number: int) -> tuple[int, ...]:
    lists = _lists(path)
    counts = lists.get(str(number))
    if counts is None:
        raise InputError(f"{path}: no list for {number} stars; there are lists for {', '.join(list(lists)[:20]) or 'none'}")
    if not (isinstance(counts, list) and all(type(count) is int and 0 < count < LIMIT for count in counts)):
        raise InputError(f"{path}: the list for {number} stars must be of whole numbers above 0")
    if len(counts) != number:
        raise InputError(f"{path}: the list for {number} stars must have {number} numbers, got {len(counts)}")
    return tuple(counts)


def _lists(path: Path) -> dict[str, Any]:
    """Return the lists by their lengths as strings: {'32': [15, 117, ...], ...}, in Python or JSON notation."""
    try:
        lists = ast.literal_eval(read_packed(path, LIMIT, f"give {RIGHT} of the published data, or its folder").decode().strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise InputError(f"{path}: not a file of star lists such as {{'32': [15, 117, ...]}}") from error
    if not isinstance(lists, dict):
        raise InputError(f"{path}: not a file of star lists such as {{'32': [15, 117, ...]}}")
    return {str(key): value for key, value in lists.items()}
