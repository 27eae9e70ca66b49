"""The sentences about stars, in English and Chinese, in longspan's own words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, final

from longspan.scenarios.counting_stars.endless_story import Language
from longspan.scenarios.shared.own_prompts import Places, fill_prompt, read_prompts

__all__ = ["WORDINGS", "Task", "Wording", "read_own_wording"]

Task = Literal["searching", "reasoning"]

PLACES: Final[Places] = {"star": ("right",), "corrected": ("wrong", "right"), "question": ()}
"""The prompts that a user may supply: the sentence of a star, for searching and for reasoning, and the question."""


@final
class Wording(NamedTuple):
    """The sentences of a language.

    `star` gives the right count; `corrected` gives the wrong count first. The question refers to the text before it (`text`) or to the
    conversation (`talk`). `only_right` is added for reasoning, and `form` gives the format of the answer.
    """

    key: str
    star: str
    corrected: str
    text: str
    talk: str
    only_right: str
    form: str
    farewell: str

    def tells(self, right: int, wrong: int, task: Task) -> str:
        """Return the sentence of a star."""
        return fill_prompt(self.star if task == "searching" else self.corrected, right=right, wrong=wrong)

    def asks(self, task: Task, *, talk: bool) -> str:
        """Return the question, which asks for a JSON list and no sums."""
        parts = [self.talk if talk else self.text, self.only_right if task == "reasoning" else "", self.form]
        return (" " if self.key.isascii() else "").join(part for part in parts if part)

    def ideal(self, right: Sequence[int]) -> str:
        """Return the ideal answer to the question."""
        return json.dumps({self.key: list(right)}, ensure_ascii=False)


def read_own_wording(path: Path, language: Language, task: Task) -> Wording:
    """Return a wording from a user's file of prompts, completed from the language's wording. Raises InputError."""
    star = "star" if task == "searching" else "corrected"
    prompts = read_prompts(path, PLACES, (star, "question"))
    question = prompts["question"]
    given = {star: prompts[star], "text": question, "talk": question, "only_right": "", "form": ""}
    return WORDINGS[language]._replace(**given)


WORDINGS: Final[dict[Language, Wording]] = {
    "en": Wording(
        key="owl",
        star="The young owl looked up and saw {{right}} ★.",
        corrected="The young owl looked up and believed it saw {{wrong}} ★; that was a mistake: it looked again, and {{right}} ★ is right.",
        text="Again and again in the text above a young owl looks up and tells how many ★ it sees.",
        talk="Again and again in our conversation I told you of a young owl that looks up and sees some ★.",
        only_right="Where it made a mistake at first, only the right number matters.",
        form='Give all these numbers, each by itself and in the order in which they came, as JSON like {"owl": [n, n, ...]}. '
        "Do not add them up. Reply with the JSON alone.",
        farewell="Please forget the young owl and the numbers of ★ that it saw.",
    ),
    "zh": Wording(
        key="猫头鹰",
        star="小猫头鹰抬起头，看见{{right}}颗★。",
        corrected="小猫头鹰抬起头，以为看见{{wrong}}颗★，其实看错了；它重新看了一遍，对的是{{right}}颗★。",
        text="上面的文字里，小猫头鹰一次又一次抬起头，说出自己看见几颗★。",
        talk="在我们的谈话里，我一次又一次讲到小猫头鹰抬起头，看见几颗★。",
        only_right="凡是起初看错的，只要后来改对的那个数。",
        form='请按出现的先后，把这些数一个一个列出来，写成这样的JSON：{"猫头鹰": [n, n, ...]}。不要相加。只回答JSON，不要写别的。',
        farewell="请忘掉小猫头鹰，也忘掉它看见的★的数目。",
    ),
}
