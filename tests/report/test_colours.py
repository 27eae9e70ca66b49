"""The colours of grades, with and without colour vision."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from longspan.simulator.pages.report.page import ASSETS

Colour = tuple[float, float, float]

VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""Linear RGB as it is seen (Machado, Oliveira and Fernandes, 2009)."""


def linear(colour: str) -> Colour:
    digits = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    first, second, third = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in (red, green, blue))
    return first, second, third


def luminance(colour: Colour) -> float:
    return 0.2126 * colour[0] + 0.7152 * colour[1] + 0.0722 * colour[2]


def lab(colour: Colour) -> Colour:
    """CIE L*a*b*, where equal distances look about equally large."""
    red, green, blue = (min(1.0, max(0.0, value)) for value in colour)
    x, y, z = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in (
            (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047,
            0.2126 * red + 0.7152 * green + 0.0722 * blue,
            (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883,
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_grades_are_told_apart_with_any_colour_vision_and_can_be_read(scheme: str) -> None:
    roots = re.findall(r":root \{(.*?)\}", (ASSETS / "base.css").read_text("utf-8"), re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): #([0-9a-f]+)", roots[scheme == "dark"]))
    for grade in ("full", "part", "low"):
        for ground in (f"{grade}-page", "card", "page"):
            low, high = sorted(luminance(linear(colours[name])) for name in (grade, ground))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (grade, ground)
    for vision, rows in VISION.items():
        places = []
        for grade in ("full", "part", "low"):
            seen = linear(colours[grade])
            red, green, blue = (sum(a * b for a, b in zip(row, seen, strict=True)) for row in rows)
            places.append(lab((red, green, blue)))
        nearest = min(sum((a - b) ** 2 for a, b in zip(*pair, strict=True)) ** 0.5 for pair in combinations(places, 2))
        assert nearest > 25, f"{vision}: about 10 is seen at a glance where colours touch, and these do not"
