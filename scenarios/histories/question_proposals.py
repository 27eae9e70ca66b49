"""Passages of a log that questions can be written about, and the prompts that ask a model for questions and answers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from math import gcd, log
from random import Random
from typing import Final, NamedTuple, final

from longspan.scenarios.histories.formats.assembly import Conversation
from longspan.simulator.base.words import plain
from longspan.simulator.contract.queries import Free, Query

__all__ = ["KINDS", "Draft", "LogIndex", "Passage", "Statement", "answer_query", "proposal_query", "read_draft"]

KINDS: Final[Mapping[str, str]] = {
    "single-session-user": "Ask about one fact that the line states.",
    "knowledge-update": "The last line is newer and changes what the first line says. Ask what is true now. "
    "The answer is in the last line.",
    "multi-session": "Ask one question that needs both lines. The answer names one thing from each line, joined by 'and'.",
    "temporal-reasoning": "Ask on what date the thing happened. The answer is a date.",
    "single-session-preference": "Ask what the person likes, prefers, hates or avoids, without naming that.",
    "abstention": "Ask about the word in brackets. Instead of the answer, write another word of the same kind after 'Other:'.",
}
"""The kinds of questions, with the instruction for each. The names are those of made-up histories."""
EXAMPLES: Final[Mapping[str, str]] = {
    "single-session-user": "- user: My sister Jo keeps bees in Arle.\nQuestion: Where does my sister Jo keep bees?\nAnswer: Arle",
    "knowledge-update": "- user: My van is blue.\n- user: I had the van painted green.\n"
    "Question: What colour is my van now?\nAnswer: green",
    "multi-session": (
        "- user: Jo's dog is called Rex.\n- user: Jo also has a cat, Mim.\nQuestion: What are Jo's two pets called?\nAnswer: Rex and Mim"
    ),
    "temporal-reasoning": "- [2023-02-07] user: I sold my van today.\nQuestion: On what date did I sell my van?\nAnswer: 2023-02-07",
    "single-session-preference": "- user: I never sit by the window when I travel with Jo.\n"
    "Question: Where do I never sit when I travel with Jo?\nAnswer: by the window",
    "abstention": "- user: My sister Jo keeps bees in Arle. (bees)\nQuestion: Where does my sister Jo keep her bees?\nOther: llamas",
}
SHOWN: Final = 300
"""Maximum length of a turn in a prompt, in characters: four turns and the instruction fit into a window of 1,000 tokens."""
MOST_TURNS: Final = 4
"""Maximum number of later turns that a model rereads a question with."""
WORDS: Final = range(5, 120)
"""Numbers of words of turns that questions are written about."""
RARE: Final = 0.01
"""Maximum share of turns that a rare word occurs in."""
COMMON: Final = 0.1
"""Maximum share of turns that a word occurs in for it to say what a turn is about."""
FEW: Final = 6
"""A word that occurs in at most this number of turns is rare in any log."""
LONGEST: Final = {"question": 200, "answer": 80}
"""Maximum lengths of the parts of a proposal, in characters."""

_WANTS: Final = re.compile(r"\b(?:like|love|prefer|favou?rite|hate|avoid|enjoy|dislike|can't stand|never)\b", re.IGNORECASE)
_CHANGES: Final = re.compile(
    r"\b(?:now|changed?|moved|instead|switched|no longer|any ?more|actually|replaced|renamed|new|swapped)\b", re.IGNORECASE
)
_WHEN: Final = re.compile(
    r"\b(?:[Tt]oday|[Tt]onight|[Tt]his (?:morning|afternoon|evening))\b|\b\d{1,2} [A-Z][a-z]{2,}|[A-Z][a-z]{2,} \d{1,2}\b|\d{4}-\d\d"
)
_RELATIVE: Final = re.compile(r"\b(?:yesterday|tomorrow|ago|last|next|since|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", re.IGNORECASE)
"""Times that small models cannot compute a date from."""
_LABELLED: Final = re.compile(r"^[\W\d_]{0,10}(question|answer|other)[\W\d_]{0,6}?[:\uff1a](.*)$", re.IGNORECASE)
_WORD: Final = re.compile(r"\w{3,}")


@final
class Statement(NamedTuple):
    """A turn of the log that a person could ask about. `at`: the date of its session, or empty."""

    id: str
    session: str
    at: str
    speaker: str
    text: str

    def line(self, *, dated: bool = False, near: Iterable[str] = ()) -> str:
        """Return the turn as one line of a prompt, cut around the first of the words `near`."""
        text = "".join(filter(str.isprintable, " ".join(self.text.split())))
        if len(text) > SHOWN:
            found = [place for word in near if (place := text.casefold().find(word)) >= 0]
            start = max(0, min(min(found, default=0) - SHOWN // 3, len(text) - SHOWN))
            text = text[start : start + SHOWN]
        return f"- {f'[{self.at}] ' if dated and self.at else ''}{self.speaker}: {text}"


@final
class Passage(NamedTuple):
    """The turns that a question is written about, in the order of the log."""

    kind: str
    turns: tuple[int, ...]


@final
class Draft(NamedTuple):
    """A question and its answer, as a model wrote them."""

    question: str
    answer: str


class LogIndex:
    """The turns of a conversation, and the turns that each word occurs in."""

    def __init__(self, conversation: Conversation) -> None:
        self.turns = [
            Statement(turn.id or "", part.id or "", f"{part.at:%Y-%m-%d}" if part.at else "", turn.speaker, turn.text)
            for part in conversation.parts
            for turn in part.turns
            if turn.kind == "said"
        ]
        self._places: dict[str, list[int]] = defaultdict(list)
        for number, turn in enumerate(self.turns):
            for word in set(_WORD.findall(plain(turn.text))):
                self._places[word].append(number)
        self._rare = max(FEW, int(RARE * len(self.turns)))

    def find_rare(self, text: str) -> list[str]:
        """Return the words of a text that few turns have, the rarest first."""
        found = {word: len(self._places[word]) for word in _WORD.findall(plain(text)) if word in self._places}
        return sorted((word for word, count in found.items() if count <= self._rare), key=lambda word: (found[word], word))

    def find_related(self, text: str) -> list[int]:
        """Return the turns that share the most rare words with a text, in the order of the log."""
        return self._find_nearest(self.find_rare(text), lambda place: True)

    def find_before(self, text: str, before: int, most: int) -> list[int]:
        """Return the statements before a turn that share the most words with a text, in the order of the log."""
        return self._find_nearest(
            self._find_known(text), lambda place: place < before and not self.turns[place].text.rstrip().endswith("?"), most
        )

    def find_later(self, question: str, answer: str, after: int) -> list[int]:
        """Return the turns after one that share the most words with a question, in the order of the log, without an assistant's.

        Words of the answer do not count, because a turn that changes a fact does not repeat it.
        """
        words = self._find_known(question, {*_WORD.findall(plain(answer))})
        return self._find_nearest(words, lambda place: place > after and self.turns[place].speaker != "assistant")

    def _find_known(self, text: str, without: Container[str] = ()) -> list[str]:
        """Return the words of a text that some turns have, but not most of them."""
        most = max(FEW, COMMON * len(self.turns))
        return sorted(word for word in {*_WORD.findall(plain(text))} if word not in without and 0 < len(self._places.get(word, ())) <= most)

    def _find_nearest(self, words: Iterable[str], fits: Callable[[int], bool], most: int = MOST_TURNS) -> list[int]:
        """Return the turns that fit and share the most words, in the order of the log. A word counts more the fewer turns have it."""
        weights: dict[int, float] = defaultdict(float)
        for word in words:
            for place in filter(fits, self._places[word]):
                weights[place] += log(1 + len(self.turns) / len(self._places[word]))
        return sorted(sorted(weights, key=lambda place: (-weights[place], -place))[:most])

    def mentions(self, thing: str) -> bool:
        """Return whether a turn has all the words of a thing."""
        sets = [set(self._places.get(word, ())) for word in _WORD.findall(plain(thing))]
        return not sets or bool(set.intersection(*sets))

    def list_passages(self, kind: str, seed: int) -> list[Passage]:
        """Return the passages for a kind of question, in an order that any number of the first ones spreads over the log."""
        usable = [number for number, turn in enumerate(self.turns) if turn.speaker != "assistant" and self._is_statement(turn)]
        usable = [number for number in usable if self.find_rare(self.turns[number].text)]
        if kind == "temporal-reasoning":
            usable = [number for number in usable if not _RELATIVE.search(self.turns[number].text)]
        if kind in _NEEDS:
            usable = [number for number in usable if _NEEDS[kind].search(self.turns[number].text)]
        if kind in ("knowledge-update", "multi-session"):
            passages = [Passage(kind, (other, number)) for number in usable for other in self._find_earlier(number)]
        else:
            passages = [Passage(kind, (number,)) for number in usable if kind != "temporal-reasoning" or self.turns[number].at]
        # A repeated text would give the same question again.
        passages = list({tuple(self.turns[turn].text for turn in each.turns): each for each in passages}.values())
        return list(_spread(passages, Random(f"{seed} {kind}").random()))

    def _is_statement(self, turn: Statement) -> bool:
        return len(turn.text.split()) in WORDS and not turn.text.rstrip().endswith("?")

    def _find_earlier(self, number: int) -> Iterator[int]:
        """Yield the earlier turn, of another session, that shares the most rare words with a turn."""
        shared: dict[int, int] = defaultdict(int)
        for word in self.find_rare(self.turns[number].text):
            for place in self._places[word]:
                turn = self.turns[place]
                own = self.turns[number]
                if place < number and turn.session != own.session and turn.text != own.text and turn.speaker == own.speaker:
                    shared[place] += self._is_statement(turn)
        best = max(shared, key=lambda place: (shared[place], place), default=None)
        if best is not None and shared[best]:
            yield best


_NEEDS: Final = {"knowledge-update": _CHANGES, "single-session-preference": _WANTS, "temporal-reasoning": _WHEN}


def _spread(passages: Sequence[Passage], start: float) -> Iterator[Passage]:
    """Yield all passages once, in steps near the golden ratio of their number."""
    count = len(passages)
    step = next((step for step in range(int(0.618 * count) or 1, count + 1) if gcd(step, count) == 1), 1)
    for number in range(count):
        yield passages[(int(start * count) + number * step) % count]


def proposal_query(kind: str, lines: Sequence[str]) -> Query[Free]:
    """Return the query for a question of a kind about lines of a log."""
    prompt = (
        f"Write a question that the user could ask later, with 'I' and 'my', about the lines at the end. {KINDS[kind]}\n"
        "The answer has at most six words, copied from the lines. The question does not contain the answer. It names what it is about, "
        "because its reader does not see the lines. Write two lines: 'Question:' and 'Answer:'.\n\n"
        f"Example:\n{EXAMPLES[kind]}\n\nNow these lines:\n" + "\n".join(lines)
    )
    return Query(prompt=prompt, answer=Free, version="question proposal 1")


def answer_query(question: str, lines: Sequence[str]) -> Query[Free]:
    """Return the query for the answer to a question from lines of a log, or without any."""
    said = "Lines of my earlier messages, the oldest first:\n" + "\n".join(lines) + "\n\n" if lines else ""
    latest = "The latest line counts. " if len(lines) > 1 else ""
    latest += "Join several things with 'and'. " if " and " in question else ""
    unknown = "If the lines do not say it" if lines else "If you do not know me well enough"
    prompt = f"{said}Answer my question in at most six words. {latest}{unknown}, answer: I don't know.\n\nQuestion: {question}\nAnswer:"
    return Query(prompt=prompt, answer=Free, version="question answer 1")


def read_draft(text: str) -> Draft | str:
    """Return the question and the answer in a model's text, or what is wrong with them. A label may have a value on the next line."""
    found: dict[str, str] = {}
    label = ""
    for raw in text[:10_000].splitlines():
        match = _LABELLED.match(raw)
        if match and match[1].casefold() in found and found[match[1].casefold()]:
            break  # a second proposal
        label = match[1].casefold().replace("other", "answer") if match else label
        value = "".join(filter(str.isprintable, match[2] if match else raw)).strip(" *_`\"'")
        if label and not found.get(label):
            found[label] = value
    for part, most in LONGEST.items():
        if not plain(found.get(part, "")):
            return f"no {part}"
        if len(found[part]) > most:
            return f"{part} too long"
    return Draft(found["question"], found["answer"].strip(" .*_`\"'"))
