"""Signs that an agent is stuck, and has not merely forgotten.

It repeats itself or the user, uses other tests' formats, or declines all statements. A reply with a sign counts only if the agent fails,
since correct answers may repeat anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple, Self, final

from longspan.simulator.base.document import Document, Sentence
from longspan.simulator.contract.graded_record import readable_part
from longspan.simulator.filler.draws import join_words
from longspan.simulator.journal.events import Event, Message, Open
from longspan.simulator.journal.transcript import Change, PlayedTurn
from longspan.simulator.reading.abstentions import is_abstention
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.measures.group_tables import one_line
from longspan.simulator.results.measures.meaning import DONE
from longspan.simulator.results.measures.measure import GradedTests, Measure
from longspan.simulator.results.result import Result, StuckResult, TestResult
from longspan.simulator.suite.manifest import Manifest

__all__ = ["Stuck", "group_alike", "refuses_help"]

READ: Final = 2000
"""The maximum characters of a reply that are examined."""

WORDS: Final = 4
"""Answers with at least this many words are alike if only their numbers differ. In a shorter answer, the number may be the whole content.
"""

CUT: Final = 40
"""An answer with at least this many letters is alike to any longer answer that begins with it, since replies are cut at different lengths.
"""

GROUP, GROUP_SHARE = 3, 0.05
"""The least size of a group of alike answers: a number, and a share of all answers.

A few answers may be alike by chance, because they are right, or because a question was repeated.
"""

MANY: Final = 5
"""The fewest answers or replies that are worth a sentence."""

ALIKE, STRANGE = 1 / 3, 0.1
"""The least share of alike answers that a sentence reports, and the least share of replies with another sign."""

ECHO, ECHO_WORDS = 200, 8
"""A reply echoes a message if it contains the message's first 200 letters. Messages of fewer than 8 words do not count."""

BRIEF: Final = 2
"""The maximum words of an answer that may be a mere acknowledgement, if the message has no question mark."""

SHOWN: Final = 60
"""The maximum characters of a quoted answer."""

_LABEL: Final = re.compile(r"[\"\u201c]([A-Z][a-z]{1,20}):")
_KEY: Final = re.compile(r"\"([A-Za-z_]{1,30})\"")
_LINE: Final = re.compile(r"^[^\w\n]{0,4}([A-Z][a-z]{1,20})[*_]{0,2}:", re.MULTILINE)
_FIELD: Final = re.compile(r"\"([A-Za-z_]{1,30})\"\s{0,3}:")
_JSON: Final = re.compile(r"(?:^|[\s`:])(?:\[\s{0,9}[\"{\[]|\{\s{0,9}\")")
_REFUSAL: Final = re.compile(
    r"\b(?:I|we)(?:['\u2019]?m| am|['\u2019]?re| are)?(?: \w{1,12}){0,2}? "
    r"(?:can(?:not|['\u2019]?t| not)|unable to|won['\u2019]?t|will not|not able to) (?:\w{1,12}ly )?"
    r"(?:assist|help|comply|fulfil|engage|support that|do that)",
    re.IGNORECASE,
)

JSON: Final = "JSON"


@final
class ReplyPlace(NamedTuple):
    """The test and the turn of a reply."""

    test: str
    turn: int


@final
class PlacedAnswer(NamedTuple):
    """An answer, whether its question has a question mark, and its place (None for an expected answer)."""

    text: str
    asked: bool = True
    place: ReplyPlace | None = None


@final
class Stuck(Measure):
    """The numbers of replies with each sign.

    Answers are alike, replies repeat the message or have a format that only another test asked for, or they decline or refuse.
    """

    name = "stuck"

    def __init__(self) -> None:
        self.answers: list[PlacedAnswer] = []
        self.expected: list[PlacedAnswer] = []
        self.replies = self.told = 0
        self.echoed: list[ReplyPlace] = []
        self.declined: list[PlacedAnswer] = []
        self.borrowed: list[tuple[ReplyPlace, set[str]]] = []
        self._asked: dict[str, set[str]] = {}

    def fold(self, event: Event, change: Change) -> None:
        """Read the answers that a test expects, or the next reply."""
        if isinstance(event, Open):
            self.expected += [
                PlacedAnswer(str(line["ideal"])) for line in event.lines if line.get("asks") and line.get("ideal") is not None
            ]
        if isinstance(change, PlayedTurn):
            self._turn(change)

    def _turn(self, turn: PlayedTurn) -> None:
        message, reply = turn.message, turn.reply
        if reply is None:
            self._note(message)
        elif message.test is not None and reply.asked and (reply.trace or {}).get("answers") is not False:
            # Small talk has no right answer, and a memory without an answerer gives none.
            text, place = reply.text[:READ], ReplyPlace(message.test, message.turn)
            self.replies += 1
            self.echoed += [place] if _echoes(text, message.text) else []
            if message.kind == "question" and not reply.refused:
                self.answers.append(PlacedAnswer(text, "?" in message.text, place))
            elif message.kind == "line" and "?" not in message.text:
                self.told += 1
                self.declined += [PlacedAnswer(text, False, place)] if is_abstention(text) or refuses_help(text) else []
            if strange := {each for each in _formats(text) if (asked := self._asked.get(each)) and message.test not in asked}:
                self.borrowed.append((place, strange))

    def _note(self, message: Message) -> None:
        """Note the formats that a question asks for. Filler may contain the same question."""
        if message.kind in ("question", "filler"):
            for each in _find_wanted_formats(message.text):
                self._asked.setdefault(each, set()).add(message.test or "")

    @classmethod
    def of_run(cls, run: GradedTests, read: Mapping[str, Self]) -> Mapping[str, Any]:
        own = [read[id] for id in run.manifest.conversations if id in read]
        answers = [answer for each in own for answer in each.answers]
        groups = group_alike(answers)
        expected = sum(map(len, group_alike([answer for each in own for answer in each.expected])))
        declined = [answer for each in own for answer in each.declined]
        borrowed = [each for one in own for each in one.borrowed]
        formats = Counter(each for _, strange in borrowed for each in strange)
        most = max(groups, key=len, default=[])
        signs: dict[str, list[ReplyPlace | None]] = {
            "alike": [answer.place for group in groups for answer in group],
            "echoed": [place for each in own for place in each.echoed],
            "borrowed": [place for place, _ in borrowed],
            "declined": [answer.place for answer in declined],
            "refusing": [answer.place for answer in answers if refuses_help(answer.text)],
        }
        wrong = _find_wrong(run.tests)
        return {
            "stuck": StuckResult(
                answers=len(answers),
                alike=len(signs["alike"]),
                expected_alike=expected,
                most_alike=len(most),
                example=_excerpt(most[0].text) if most else "",
                replies=sum(each.replies for each in own),
                echoed=len(signs["echoed"]),
                borrowed=len(borrowed),
                formats=[name for name, _ in formats.most_common(3)],
                told=sum(each.told for each in own),
                declined=len(declined),
                declining=_excerpt(declined[0].text) if declined else "",
                refusing=len(signs["refusing"]),
                wrong={name: number for name, places in signs.items() if (number := sum(map(wrong, places)))},
            )
        }

    @classmethod
    def describe_run(cls, manifest: Manifest, result: Result) -> Document:
        told = _describe_oddities(manifest, result)
        return Document(notices=[Sentence(told, "Stuck", "warning")] if told else [])

    @classmethod
    def describe_runs(cls, runs: Sequence[GradedRun]) -> Document:
        told = [(run, _describe_oddities(run.manifest, run.result)) for run in runs]
        return Document(opening=[Sentence(f"{run.name}: {sentence}", tone="warning") for run, sentence in told if sentence])


# ---- replies


def group_alike(answers: Sequence[PlacedAnswer]) -> list[list[PlacedAnswer]]:
    """Return the groups of answers that are alike.

    Answers are alike if their letters are the same, regardless of case, numbers and punctuation, or the same up to where one was cut.
    Answers that something is unknown are left out, since an agent without memory gives them to every question. So are brief answers to
    messages without a question mark, which may be mere statements.
    """
    groups: list[list[PlacedAnswer]] = []
    leader = ""
    for letters, answer in sorted((_letters(answer.text), answer) for answer in answers):
        if groups and (letters == leader or (len(leader) >= CUT and letters.startswith(leader))):
            groups[-1].append(answer)
        else:
            groups.append([answer])
            leader = letters
    least = max(GROUP, GROUP_SHARE * len(answers))
    asked = [group if len(group) == len(answers) else [each for each in group if each.asked or not _brief(each)] for group in groups]
    return [group for group in asked if len(group) >= least and not is_abstention(group[0].text)]


def _find_wrong(tests: Sequence[TestResult]) -> Callable[[ReplyPlace | None], bool]:
    """Return a function that decides whether the agent fails at a place.

    It fails if the items graded in that turn, or else the test, have less than half marks. It never fails in a test without a score.
    """
    scores = {test.id: test.score for test in tests}
    turns: dict[ReplyPlace, list[float]] = {}
    for test in tests:
        for item in test.items:
            if item.turn is not None and item.score is not None:
                turns.setdefault(ReplyPlace(test.id, item.turn), []).append(item.score)

    def is_wrong(place: ReplyPlace | None) -> bool:
        if place is None:
            return False
        score = fmean(turns[place]) if place in turns else scores.get(place.test)
        return score is not None and score < DONE

    return is_wrong


def _brief(answer: PlacedAnswer) -> bool:
    return len(answer.text.split()) <= BRIEF


def _letters(answer: str) -> str:
    """Return the letters of an answer, with its digits if it has few words."""
    words = re.findall(r"[^\W\d_]+", answer.casefold())
    return "".join(words if len(words) >= WORDS else re.findall(r"[^\W_]+", answer.casefold()))


def refuses_help(answer: str) -> bool:
    """Return whether an answer refuses to help instead of saying that something is unknown. The pattern fits no particular model."""
    return _REFUSAL.search(answer[:READ]) is not None and not is_abstention(answer)


def _echoes(reply: str, message: str) -> bool:
    """Return whether a reply repeats the message that it replies to."""
    return len(message.split()) >= ECHO_WORDS and _letters(message)[:ECHO] in _letters(reply)


def _find_wanted_formats(text: str) -> set[str]:
    """Return the formats that a message asks for: labels such as "Order:", JSON, and its keys."""
    wanted = {f"{label}:" for label in _LABEL.findall(text)}
    return wanted | {JSON, *_KEY.findall(text)} if JSON in text else wanted


def _formats(text: str) -> Iterator[str]:
    """Yield the formats that a reply has."""
    for label in _LINE.findall(text):
        yield f"{label}:"
    if _JSON.search(text):
        yield JSON
        yield from _FIELD.findall(text)


# ---- in words


def _describe_oddities(manifest: Manifest, result: Result) -> str:
    """Describe the signs in a run's replies; an empty string if there are too few."""
    found = result.stuck
    if found is None:
        return ""
    said = []
    if _is_stuck(found, "alike", found.alike, ALIKE * found.answers, found.expected_alike):
        if found.most_alike == found.answers:
            said.append(f"All {found.answers:,} answers to questions are the same or nearly so: “{found.example}”")
        else:
            often = f"{found.most_alike:,} times “{found.example}”"
            said.append(f"{found.alike:,} of {found.answers:,} answers to questions are nearly the same as others, {often}")
    if _is_stuck(found, "echoed", found.echoed, STRANGE * found.replies):
        said.append(f"{found.echoed:,} of {found.replies:,} replies repeat the message")
    if _is_stuck(found, "borrowed", found.borrowed, STRANGE * found.replies):
        formats = join_words([one_line(each) for each in found.formats])
        said.append(f"{found.borrowed:,} of {found.replies:,} replies have a format that only another test asked for ({formats})")
    if _is_stuck(found, "declined", found.declined, STRANGE * found.told):
        how = f"are answered as if they asked for something unknown, such as by “{found.declining}”"
        said.append(f"{found.declined:,} of {found.told:,} messages that only state something {how}")
    if _is_stuck(found, "refusing", found.refusing, STRANGE * found.answers):
        said.append(f"{found.refusing:,} of {found.answers:,} answers refuse to help, though the agent does not report a refusal")
    if not said:
        return ""
    woven = not manifest.isolated and not all(test.alone or test.trunk is not None for _, test in manifest.graded)
    advice = " --isolated plays each test in a separate conversation, where it may do better." if woven else ""
    return f"{'. '.join(said)}. Most of these are where it fails: the agent is stuck, which differs from forgetting.{advice}"


def _is_stuck(found: StuckResult, sign: str, number: int, least: float, expected: int = 0) -> bool:
    """Return whether a sign is frequent in failed replies, and most replies with the sign failed.

    The `expected` number of right answers with the sign is subtracted.
    """
    wrong = found.wrong.get(sign, 0)
    return wrong - expected >= max(MANY, least) and wrong > number / 2


def _excerpt(answer: str) -> str:
    """Return the beginning of an answer on one line."""
    text = " ".join(readable_part(answer).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN].rstrip()}…"
