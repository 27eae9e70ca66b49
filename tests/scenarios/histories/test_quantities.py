"""Quantities are compared by value and unit, in the notations of several locales; codes are compared as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.histories import Question
from longspan.scenarios.histories.rules import grade_reply

EQUAL = """
2 PM | at 14:00
2 PM | 2pm
2 PM | 2 p.m.
2 PM | It starts at two in the afternoon.
2 PM | 14.00 Uhr
3:30 pm | 15:30
3:30 pm | half past three
3:30 pm | 15h30
15:30 | 3:30 p.m.
9 AM | 09:00
9 AM | nine o'clock
12 PM | noon
12 AM | midnight
$5 | 5 dollars
$5 | USD 5
$5 | It cost $5.00.
$5 | 5
£1,250 | £1250
£1,250 | 1,250 pounds
£1,250 | £1.25k
$3 million | $3m
$3 million | $3,000,000
$3 million | three million dollars
1.200,50 € | Es waren 1.200,50 €.
1.200,50 € | €1,200.50
1.200 € | 1200 euros
1 234,56 € | 1,234.56 EUR
₹1,00,000 | ₹1,00,000
₹1,00,000 | 1 lakh rupees
₹1,00,000 | Rs. 100,000
1 lakh | 100,000
2 crore | 20,000,000
1.5 million | 1,500,000
5k | 5,000
CHF 1'250 | 1250 francs
25% | 25 percent
25% | 25 per cent
25% | 0.25
25% | 25
0.25 | 25%
-5°C | It was minus 5 degrees.
-5°C | −5 °C
5°C | 5 degrees Celsius
5°C | 5 degrees
2.5 kg | 2,5 kg
2.5 kg | 2500 g
1,234 | 1.234
1,200 | twelve hundred
1,005 | one thousand and five
0042 | The code is 0042.
A12 | It was A12.
12 jars | After several hours 12 jars.
5 pounds | 5 lbs
27 | two dozen and three
""".strip().splitlines()

UNEQUAL = """
3 PM | 3 AM
3 PM | 03:00
3 PM | at 3 in the morning
3:30 pm | 3:45 pm
12 PM | midnight
$5 | £5
$5 | 5 euros
$5 | -$5
$5 | $5 million
5°C | -5°C
-5°C | 5°C
5°C | 5°F
0042 | 42
42 | The code is 0042.
42 | A42
A12 | A13
25% | 0.5
25% | 2.5%
0.25 | 25
1.200,50 € | 1.200,05 €
1 lakh | 10,000
2 crore | 200,000
1.5 million | 1.5
2.5 kg | 25 kg
1,200 | 1.2
3 m | $3m
5 pounds | 5 kg
$5 | $4 or $5
8 | 8,10
""".strip().splitlines()


def points(gold: str, reply: str) -> float | None:
    verdict = grade_reply(Question("1", "What was it?", gold), reply)
    return None if verdict is None else verdict.score


@pytest.mark.parametrize("row", EQUAL)
def test_a_quantity_equals_itself_in_another_notation(row: str) -> None:
    assert points(*row.split(" | ")) == 1


@pytest.mark.parametrize("row", UNEQUAL)
def test_another_quantity_is_not_right(row: str) -> None:
    assert points(*row.split(" | ")) != 1


LOCALES = [(",", "."), (".", ","), ("\u00a0", ","), ("\u202f", ","), (" ", ","), ("'", "."), ("\u2019", ",")]


@given(st.integers(0, 10**9), st.integers(0, 99), st.sampled_from(LOCALES), st.sampled_from(LOCALES))
def test_an_amount_is_read_back_in_every_locale(units: int, cents: int, one: tuple[str, str], other: tuple[str, str]) -> None:
    gold, reply = (f"{units:,}".replace(",", group) + f"{mark}{cents:02} \u20ac" for group, mark in (one, other))
    assert points(gold, f"It was {reply}.") == 1
    assert points(gold, f"It was {reply.replace(reply[0], str((int(reply[0]) + 1) % 10), 1)}.") != 1


@given(st.integers(0, 23), st.integers(0, 59))
def test_a_time_is_read_back_on_both_clocks(hour: int, minute: int) -> None:
    half, other = ("AM", "PM") if hour < 12 else ("PM", "AM")
    assert points(f"{hour:02}:{minute:02}", f"At {(hour - 1) % 12 + 1}:{minute:02} {half}.") == 1
    assert points(f"{(hour - 1) % 12 + 1}:{minute:02} {half}", f"At {hour:02}:{minute:02}.") == 1
    assert points(f"{(hour - 1) % 12 + 1}:{minute:02} {half}", f"At {(hour - 1) % 12 + 1}:{minute:02} {other}.") != 1


@given(st.integers(10**3, 10**9))
def test_indian_groups_are_read_back(value: int) -> None:
    head, tail = f"{value}"[:-3], f"{value}"[-3:]
    pairs = [head[max(0, at - 2) : at] for at in range(len(head), 0, -2)][::-1]
    assert points(f"{value:,}", f"\u20b9{','.join([*pairs, tail])}") == 1
