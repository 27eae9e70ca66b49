"""Which option a reply chooses, in the many ways models say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.ltm.chapterbreak.choice import find_choice

QUOTE = ' "The river does not ask the bridge for leave." - Somebody Wise'


@pytest.mark.parametrize(
    "reply",
    [
        "3", "3.", " 3 \n", "(3)", "**3**", "`3`", "#3", "3️⃣", "three", "Three.", "THREE", "the third", "The third one.", "third", "3rd",
        "the 3rd opening",
        "Option 3", "option 3.", "**Option 3**", "Opening 3", "Opening number three", "No. 3", "Number 3", "Option #3", "option three",
        "The third option.",
        "Option: 3", "Answer: 3", "Answer: Option 3", "The answer is 3.", "The answer is **3**.", "My answer is option 3.",
        '{"answer": 3}', '```json\n{"answer": 3}\n```',
        "[3]", "I think it's 3.", "I believe the third opening is the true one.", "I'd go with option 3.", "I choose 3", "I would say 3",
        "It is 3.", "It must be 3.",
        "Sure! 3", "3 - it agrees with the pages.", "3: the injury fits.", "3\n\nThe others contradict what was told on pages 2 and 7.",
        "Option 3, because option 5 contradicts page 2.", "3. Options 1, 2, 4, 5 and 6 each get one fact wrong.",
        "Option 3 is the true continuation.", "Opening 3 fits best: 1 has the wrong knee, 2 the wrong hat.",
        "Options 1 and 2 contradict page 4; 4, 5 and 6 contradict page 8. So the answer is 3.",
        "Let me think. Option 1 has the wrong hat. Option 2 has the wrong knee. Therefore, I choose option 3.",
        "Of the six openings, option 3.", "Not 2. Option 3.", "It can't be 4, it's 3.", "I rule out 1 and choose 3.",
        "Final answer: 3", "**Final answer:** Option 3",
        "Option 1 has the wrong hat. Option 2 has the wrong knee. Only option 3 agrees with every page.",
       
        "I can't be sure without more. Still, option 3 appears to be the most plausible next-chapter beginning, as it builds on page 9.",
        "Option 3. Option 4 was tempting, though.", "Option 2 is wrong. Option 3 is right.",
        "The true opening of the next chapter is number 3.", "the one that fits is 3", "Out of 6, it is 3.", "3/6",
        "Based on page 5 and chapter 2, I think the true opening is Option 3.", "First, the pages say she is lame. The answer is 3.",
        "３", "Option 3." + QUOTE, "3" + QUOTE, "The third." + QUOTE,
    ],
)  # fmt: skip
def test_replies_that_choose_the_third(reply: str) -> None:
    assert find_choice(reply).numbers == (3,), find_choice(reply)


@pytest.mark.parametrize(
    ("reply", "numbers"),
    [
        ("3 or 4", (3, 4)),
        ("Option 3 or maybe option 4", (3, 4)),
        ("3 and 4", (3, 4)),
        ("3, 4", (3, 4)),
        ("Either 3 or 5.", (3, 5)),
        ("The answer is 3. The answer is 4.", (3, 4)),
        ("1 2 3 4 5 6", (1, 2, 3, 4, 5, 6)),
        ("Option 1 is nice. Option 2 is nicer.", (1, 2)),
        ("7", (7,)),
        ("Option 12", (12,)),
        ("0", (0,)),
        ("-3", (-3,)),
        ("3.5", (3.5,)),
        ("the ninth", (9,)),
        ("9" * 50, (10**6,)),
    ],
)
def test_replies_that_choose_several_or_what_is_not_there(reply: str, numbers: tuple[float, ...]) -> None:
    assert find_choice(reply).numbers == numbers


@pytest.mark.parametrize(
    "reply",
    [
        "", "   ", "OK.", "I don't know.", "None of the openings.", "I'm sorry, but I can't tell.", "?", "Option A", "Page 3",
        "See page 3 and chapter 4.",
        "I am unable to determine which of the openings is true. It depends on the author.",
        "I don't see any options. Please provide the options.", "Each of the six openings could follow.", "The one with the dog.",
        "No one can say.",
    ],
)  # fmt: skip
def test_replies_that_choose_nothing(reply: str) -> None:
    assert find_choice(reply).numbers == (), find_choice(reply)


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(["3", "option", "the", "third", "or", "not", ".", "\n", "answer is", "-", "#", "²", "٣", "Ⅲ"])).map(" ".join)
)
def test_no_reply_raises(reply: str) -> None:
    assert all(isinstance(number, (int, float)) for number in find_choice(reply).numbers)
