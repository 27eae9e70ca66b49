"""The paper's grading rules where longspan's differ: the requirements of GoodAI's own graders.

Each function takes a scenario's facts and a record, like `Scenario.grade`, and returns a grade. The paper's rules are literal: a colour
counts inside another word and among other colours, and JSON in any other form scores 0.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Literal

from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.reading.matching import join_some

__all__ = ["Rules", "contains_quotation", "grade_colours", "grade_shopping", "name_list", "sally_anne", "spy_meeting", "trigger_response"]

Rules = Literal["longspan", "paper"]
"""Rules for grading: longspan's, or the paper's, which produced the published scores."""


def grade_colours(facts: Mapping[str, Any], record: Record) -> Grade:
    """Score 1 if the reply contains the colour, in any case and whatever else it contains."""
    colour, answer = facts["colour"], record.answer
    found = _within(colour, answer.reply)
    return Grade(score=float(found), reason=f"expected {colour}, {_say_found(found)} in the reply", turns=(answer.turn,))


def trigger_response(facts: Mapping[str, Any], record: Record) -> Grade:
    """Give an equal share for each reply that contains the phrase in any case, or is a close paraphrase of it (ROUGE-L)."""
    phrase, answers = facts["phrase"], record.answers
    hits = [_within(phrase, answer.reply) or _paraphrases(phrase, answer.reply) for answer in answers]
    return Grade(
        score=sum(hits) / max(facts["triggers"], len(hits)),
        reason=f'expected "{phrase}" at each of {facts["triggers"]} triggers, {", ".join(map(_say_found, hits)) or "none was played"}',
        turns=tuple(answer.turn for answer in answers),
    )


CLOSE: Final = 0.75
"""Replies with a higher ROUGE-L are paraphrases of a phrase."""


def _paraphrases(phrase: str, reply: str) -> bool:
    """Return whether the ROUGE-L of both texts exceeds `CLOSE`.

    It is twice the length of their longest common subsequence of words, divided by the number of words in both.
    """
    words, said = (re.findall(r"[a-z0-9]+", text.lower()) for text in (phrase, reply))
    if (2 / CLOSE - 1) * len(words) <= len(said):
        return False  # even with all words of the phrase; this also bounds the time for a long reply
    common = [0] * (len(said) + 1)  # the length of the common subsequence of the words so far and the first n said
    for word in words:
        longest = [0]
        for number, other in enumerate(said):
            longest.append(common[number] + 1 if word == other else max(common[number + 1], longest[number]))
        common = longest
    return 2 * common[-1] > CLOSE * (len(words) + len(said))


def name_list(facts: Mapping[str, Any], record: Record) -> Grade:
    """Score hits / max(names expected, names answered) for a JSON list of strings; anything else scores 0.

    An object counts as the list of its keys. Names are compared in lower case, letter by letter; a repeated name hits once.
    """
    answer = record.answer
    expected = Counter(name.lower() for name in facts["names"])
    value = _first_json(answer.reply)
    listed = value is not None and all(isinstance(name, str) for name in value)
    answered = Counter(name.lower() for name in value or ()) if listed else Counter()
    hits = (expected & answered).total()
    result = f"{hits} of {expected.total()} in {answered.total()} answered" if listed else "the reply is not a JSON list of names"
    return Grade(
        score=hits / max(expected.total(), answered.total()),
        reason=f"expected {join_some(facts['names'])}: {result}",
        turns=(answer.turn,),
    )


def contains_quotation(reply: str, quotation: str) -> bool:
    """Return whether the reply contains the quotation verbatim, ignoring case and ASCII punctuation."""
    return quotation.lower().translate(_UNMARKED) in reply.lower().translate(_UNMARKED)


_UNMARKED = str.maketrans("", "", string.punctuation)


def sally_anne(facts: Mapping[str, Any], record: Record) -> Grade:
    """Score 1 if the reply is a JSON object whose "answer" is the right container, letter by letter and in any case."""
    answer = record.answer
    value = _first_json(answer.reply)
    given = value.get("answer") if isinstance(value, dict) else None
    result = f"the JSON answers {join_some([str(given)])}" if given is not None else "the reply is not a JSON object with an answer"
    right = isinstance(given, str) and given.lower() == facts["answer"].lower()
    return Grade(score=float(right), reason=f"expected {facts['answer']}, {result}", turns=(answer.turn,))


def grade_shopping(facts: Mapping[str, Any], record: Record) -> Grade:
    """Give a third each for the share of entries that are expected items, the share with the right quantity, and nothing invented.

    The reply must be a JSON list of objects with a string "item" and a whole number "quantity", otherwise it scores 0. An entry counts
    as the first item whose name it contains. Several entries may match the same item, so a share may exceed 1 and make up for another;
    only the total is capped at 1.
    """
    answer, quantities = record.answer, {name.lower(): count for name, count in facts["list"].items()}
    expected = f"expected {join_some(f'{count} {name}' for name, count in quantities.items())}"
    value = _first_json(answer.reply)
    if not isinstance(value, list) or not all(map(_is_entry, value)):
        return Grade(score=0.0, reason=f"{expected}: the reply is not a JSON list of objects with item and quantity", turns=(answer.turn,))
    names = [next((name for name in quantities if name in entry["item"].lower()), None) for entry in value]
    listed = sum(name is not None for name in names)
    right = sum(name is not None and entry["quantity"] == quantities[name] for name, entry in zip(names, value, strict=True))
    invented = [entry["item"] for name, entry in zip(names, value, strict=True) if name is None]
    shares = [listed / len(quantities), right / len(quantities), float(not invented)]
    return Grade(
        score=min(1.0, sum(shares) / 3),
        reason=f"{expected}: {listed} listed, {right} in the right quantity, invented {join_some(invented) or 'none'}",
        turns=(answer.turn,),
    )


def spy_meeting(facts: Mapping[str, Any], record: Record) -> Grade:
    """Give a third for each `accepted` list with a word in the reply, less a third if the reply contains any `foreign` word.

    Words must match whole words, in the case of the lists. An accepted word is never foreign. (A later version of GoodAI's program also
    asks a language model about messages without a word; the published scores did not use it.)
    """
    answer = record.answer
    own = {word for words in facts["accepted"] for word in words}
    named = [_first(words, answer.reply) for words in facts["accepted"]]
    stray = _first([word for words in facts["foreign"] for word in words if word not in own], answer.reply)
    hits = [word for word in named if word is not None]
    return Grade(
        score=max(0, len(hits) - (stray is not None)) / len(named),
        reason=f"expected {join_some(words[0] for words in facts['accepted'])}; the reply names {join_some(hits) or 'none of them'}"
        + (f", and {stray}, which is from another message" if stray else ""),
        turns=(answer.turn,),
    )


def _within(phrase: str, reply: str) -> bool:
    return phrase.lower() in reply.lower()


def _say_found(found: bool) -> str:
    return "found" if found else "not found"


def _first(words: list[str], reply: str) -> str | None:
    """Return the first of `words` that is in the reply as a whole word."""
    return next((word for word in words if word in reply and re.search(rf"\b{re.escape(word)}\b", reply)), None)


def _is_entry(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("item"), str) and isinstance(entry.get("quantity"), int)


# ---- JSON

_FENCE = "```"
_INVALID = re.compile(r"//[^\n]*|\.\.\.|,(?=\s*[\]}])|\\(?=[\[\]{}])")
"""Removed from JSON that cannot be parsed otherwise: comments, ellipses, and commas and backslashes before a bracket."""


def _first_json(reply: str) -> list[Any] | dict[str, Any] | None:
    """Return the first list or object of the reply's last code block, or of a reply without one; None if it cannot be parsed."""
    parts = reply.split(_FENCE)
    text = parts[-2] if len(parts) > 2 else reply
    opening = re.search(r"[\[{]", text)
    if opening is None:
        return None
    for attempt in (text[opening.start() :], _INVALID.sub("", text[opening.start() :])):
        try:
            value: list[Any] | dict[str, Any] = json.JSONDecoder(strict=False).raw_decode(attempt)[0]
        except (ValueError, RecursionError):
            continue
        return value
    return None
