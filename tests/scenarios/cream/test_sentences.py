"""Summaries as numbered sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.scenarios.cream.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One ends. Another begins! Is it the last? Yes", ["One ends.", "Another begins!", "Is it the last?", "Yes"]),
        ("Dr. Smith met J. R. Jones at 3.5 p.m. They agreed.", ["Dr. Smith met J. R. Jones at 3.5 p.m. They agreed."]),
        ("It cost 3.50 in all. No. 5 won, e.g. by luck.", ["It cost 3.50 in all.", "No. 5 won, e.g. by luck."]),
        ("He said no. She left.", ["He said no.", "She left."]),
        ("He wrote etc. and left. Then ...well, he came back.", ["He wrote etc. and left.", "Then ...well, he came back."]),
        ('"It is late." "I know."', ['"It is late."', '"I know."']),
        (
            "# Minutes\n\n- The budget grew [1, 4].\n* It was cut. [3]\n2) Anna left\n---\n",
            [
                "Minutes",
                "The budget grew [1, 4].",
                "It was cut. [3]",
                "Anna left",
            ],
        ),
        ("会議は終わった。次は金曜日だ。", ["会議は終わった。", "次は金曜日だ。"]),
        ("مرحبا بكم. هذا هو النص.", ["مرحبا بكم.", "هذا هو النص."]),
        ("one\u2028two\ttabs   and  spaces", ["one", "two tabs and spaces"]),
        ("", []),
        ("\n ... !! --- \n•\n", []),
    ],
)
def test_sentences_are_found(text: str, found: list[str]) -> None:
    assert split_sentences(text) == found


@given(st.text(st.sampled_from("aA1.!? \n\"'[]-*。…(x\u2028\u00a0é"), max_size=80) | st.text(max_size=80))
def test_no_letter_is_lost_and_no_sentence_has_lines(text: str) -> None:
    found = split_sentences(text)
    assert all(each and each == " ".join(each.split()) and any(map(str.isalnum, each)) for each in found)
    letters = [char for char in text if char.isalpha()]
    kept = [char for each in found for char in each if char.isalpha()]
    assert len(letters) - len(kept) <= text.count("\n") + text.count("\u2028") + len(text.splitlines()), "more than the marks of lists went"
