"""Grades answers to questions about histories by rules, where rules decide; the rest is left to a judge."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, final

from longspan.scenarios.histories.history import Question
from longspan.scenarios.histories.options import LABEL, Options
from longspan.scenarios.histories.quantities import (
    NUMBERS,
    amount,
    canonical_dates,
    canonical_numbers,
    date_key,
    number_key,
    without_tellings,
    without_unit,
)
from longspan.scenarios.shared.lists import words
from longspan.simulator.contract.graded_record import readable
from longspan.simulator.grading.abstentions import abstains, declines, guesses, names, offered
from longspan.simulator.grading.matching import contains_phrase, plain, some
from longspan.simulator.grading.reading.layout import laid_out
from longspan.simulator.grading.reading.lexicon import LEXICON, Stance
from longspan.simulator.grading.reading.reading import YOU, Reading, yours
from longspan.simulator.grading.reading.subjects import Whole
from longspan.simulator.grading.reading.values import Values

__all__ = ["Verdict", "abstains", "grade", "only_abstains", "says_nothing"]

SHORT: Final = 40
"""In a reply of at most this many words, a phrase alone proves that the question was answered, unless the rivals of the answer are
known."""
LONG: Final = 400
"""Where rules must decide, a reply with more words than this is not an answer, but a copy of the conversation."""
MOST: Final = 20
"""The most different numbers or dates that a reply may name and still settle on one of them."""

ACKNOWLEDGES: Final = frozenset({"ok", "okay", "all right", "alright", "got it", "i see", "noted", "understood", "thanks", "thank you"})
"""Replies that answer nothing."""
ITEM: Final = 4
"""The most words of an item of a list."""
STATEMENT: Final = 4
"""The words of the shortest statement."""

_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_ARTICLE: Final = re.compile(r"\A\s*(?:a|an|the)\s+(?=\w)", re.IGNORECASE)
_RESULTS: Final = frozenset("answer conclusion difference result sum total altogether".split())
"""Labels of lines that tell what the others come to."""
_RELATION: Final = re.compile(r"\bmy (\w+)(?: \w+)?")
_THEIRS: Final = re.compile(r"\b[Yy]our ([a-z]+)(?=,? [A-Z])")
"""Somebody whom a reply also calls by name: "your trainer Herbert"."""
_TOTAL: Final = re.compile(
    r"\b(?:(?:a|the) (?:grand )?total of|in total|altogether|all in all|comes? to|brings? (?:you|it|that|us) to|(?:adds?|sums?) up to"
    r"|(?:which|that) makes|(?:sum|total)(?=[*_ ]{0,4}[|:]))\b",
    re.IGNORECASE,
)
"""What leads to the sum of other numbers."""
_COMES_TO: Final = re.compile(
    r"\b(?:comes? to|brings? (?:you|it|that|us) to|(?:adds?|sums?) up to|(?:which|that) (?:makes|is|leaves|gives)"
    r"|correct myself: it[\u2032']s)"
    r"\s{1,3}(?:\w+ ){0,2}[*_]{0,3}(number(?:minus)?\d\w*)",
    re.IGNORECASE,
)
"""What leads to a last number that all before it come to."""
_PLACE: Final = re.compile(r"\bin ([A-Z]\w+)")
_PLACES: Final = re.compile(
    r"(?:\b(?:[Ii]n|[Ff]or|[Nn]ear) |^|[\n.;*(\u00b7-]\s?)([A-Z]\w+)(?=[*_]{0,2}\s?[:.,;)\u2192|-]|[*_]{0,2} (?:it|the|I|is|was)\b)"
)
"""Names in the position of a place: "in Oakhurst, ...", "Oakhurst: ..."."""
_FIRST_PERSON: Final = re.compile(r"\b(?:i|me|my|mine|we|us|our)\b")
_SENTENCE: Final = re.compile(r"[.!?;\n]+(?:\s|$)")
_STATEMENTS: Final = re.compile(r"[.!?;:,\n]+(?:\s|$)|\b(?:but|although|though|however|while|and)\b", re.IGNORECASE)
_YEAR: Final = re.compile(r"number(?:19|20)\d\d")
_PARTS: Final = re.compile(r"[:\u2192=|\u2013\u2014]|->|\s-\s")
"""What stands between the label of a line and its value."""
_ITEM: Final = re.compile(r"\s*(?:[-*\u2022+|]|\d{1,2}[.)])\s")
"""The beginning of an item of a list, or of a row."""
DEEPEST: Final = 3
"""Lines that head another."""
_OF: Final = re.compile(r"\b(?:for|of) an? (\w+ \w+)\W*\Z")
"""The thing that a question ends with: "How much flour for a seed cake?"."""
_THINGS: Final = re.compile(r"\b(?:for|of|with|on|about) (?:an?|the|your) ([a-z]+ [a-z]+)\b", re.IGNORECASE)
TELLING: Final = 3
"""Letters of the shortest word that may tell of when."""
_AUXILIARIES: Final = frozenset("was were had been said told not".split())
CONTENT: Final = 4
"""Letters of the shortest word that tells what something is about."""
_LIST: Final = re.compile(r",(?!\d)|\b(?:and|&)\b", re.IGNORECASE)
_MESSAGE: Final = re.compile(r"\b(?:message|messages|mentioned|wrote|session|chat|posted)\b")
"""What tells when something was said, and not when it was."""
_FIGURE: Final = re.compile(r"\d")
_HEDGES: Final = re.compile(r"\b(?:or|either|maybe|perhaps|possibly|might|could be|guess|not sure)\b", re.IGNORECASE)
_OR: Final = re.compile(r"\bor\b", re.IGNORECASE)


@final
class Verdict(NamedTuple):
    """A score in [0, 1], and why."""

    score: float
    why: str


def grade(question: Question, reply: str, rivals: Iterable[str] | None = None) -> Verdict | None:
    """Grade a reply; None if rules do not decide.

    `rivals`: all that a wrong reply could name instead of the gold answer, if that is known. The gold answer is then taken to have
    no other wording, and rules always decide: a reply that does not settle on it is wrong. Takes time linear in the reply and
    never raises.
    """
    reply = readable(reply)
    said = plain(reply)
    closed = rivals is not None
    others = [rival for rival in rivals or () if plain(rival)]
    if question.trap and question.trap not in others:
        others.append(question.trap)
    if not said:
        return Verdict(0, "the reply has no words")
    if question.answer is not None and _bare(laid_out(question.answer)) == _bare(laid_out(reply)) != "":
        return Verdict(1, "equals the gold answer")
    if said == plain(question.text):
        return Verdict(0, "repeats the question")
    if said in ACKNOWLEDGES:
        return Verdict(0, "answers nothing")
    if closed and len(said.split()) > LONG:
        return Verdict(0, f"has more than {LONG} words")
    if question.options and question.answer is not None:
        if not question.answerable and only_abstains(reply) and declines(reply, question.text, others) and not LABEL.match(reply):
            return Verdict(1, "says that it was not told")
        return _choice(question.options, question.answer, reply)
    if not question.answerable:
        return _abstention(question, reply, others, closed)
    if question.answer is None or not plain(question.answer) or (question.rubric and not closed):
        return None
    verdict = _settled(question, question.answer, reply, others, closed)
    if not closed and abstains(reply):
        if abstains(question.answer):
            return None  # the gold answer says that it cannot be told
        return Verdict(0, "says that it does not know") if only_abstains(reply) else None
    return verdict or (Verdict(0, "does not settle on the gold answer") if closed else None)


def only_abstains(reply: str) -> bool:
    """Return whether a reply says that the answer is not known, and states nothing else."""
    reply = readable(reply)
    return abstains(reply) and all(len(part.split()) < STATEMENT or abstains(part) for part in _STATEMENTS.split(reply))


def says_nothing(question: Question, reply: str) -> bool:
    """Return whether a reply has no words, repeats the question, answers nothing, or only says that the answer is not known."""
    return plain(readable(reply)) in {"", plain(question.text), *ACKNOWLEDGES} or only_abstains(reply)


def _bare(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", plain(text)).split())


def _abstention(question: Question, reply: str, others: Sequence[str], closed: bool) -> Verdict | None:
    if (after := Reading(reply).corrected()) and abstains(after):
        reply = after
    named = offered(reply, question.text, others)
    if not abstains(reply):
        if closed or named:
            return Verdict(0, "answers what the history does not tell" if named else "does not say that it was not told")
        return None
    if named:
        return Verdict(0, f"says that it does not know, and answers all the same: {some([' '.join(named)])}")
    if closed and number_key(question.trap) and any(_FIGURE.search(part) and guesses(part) for part in _STATEMENTS.split(reply)):
        return Verdict(0, "says that it does not know, and guesses a number")
    if not closed and (guesses(reply) or len(plain(reply).split()) > SHORT or _tells_more(question, reply)):
        return None
    return Verdict(1, "says that it was not told")


def _tells_more(question: Question, reply: str) -> bool:
    """Return whether a reply states something beside that the answer is not known, unless it is of others than the question is about."""
    asked = names(question.text)
    for part in _STATEMENTS.split(reply):
        if len(part.split()) >= STATEMENT and not abstains(part):
            of = names(part)
            if not of or of & asked:
                return True
    return False


def _choice(options: Sequence[str], answer: str, reply: str) -> Verdict:
    known = Options(options)
    chosen = known.chosen(reply)
    if len(chosen) > 1:
        return Verdict(0, "chooses several options")
    if chosen:
        return Verdict(float(chosen[0] == answer), f"chooses {some(chosen)}")
    if abstains(reply) or len(plain(reply).split()) <= 3:
        return Verdict(0, "chooses none of the options")
    return Verdict(0, "rules its options out" if known.named(reply) else "names none of the options")


def _settled(question: Question, answer: str, reply: str, others: Sequence[str], closed: bool) -> Verdict | None:
    """Grade the answer that a reply settles on. None if this is neither the gold answer nor any other known one."""
    if plain(answer) in ("yes", "no"):
        first = plain(reply).split()[0]
        return Verdict(float(first == plain(answer)), f"says {first}") if first in ("yes", "no") else None
    whose = _whose(question, answer, reply, [answer, *others]) if closed else []
    if closed:
        reply = _plainly(without_tellings(_of_question(reply, question, [answer, *others])), question)
    for key_of, canonical, what in _QUANTITIES:
        key = key_of(answer)
        if key:
            return _quantity(key, *canonical(reply, answer, question.text), what, closed, whose)
    answer = _ARTICLE.sub("", answer)
    if contains_phrase(question.text, answer) or (not closed and len(plain(reply).split()) > SHORT):
        return None
    said = Reading(reply)
    if any(contains_phrase(clause.text, f"no {answer}") for clause in said.clauses):
        return None
    settled = said.of(Values([answer, *others], forms=closed), *whose).values
    if settled == [answer]:
        return None if not closed and _hedges(reply, answer) else Verdict(1, f"answers {some([answer])}")
    if answer in settled:
        return Verdict(0, f"does not settle on one answer: {some(settled)}")
    if settled and closed:
        return Verdict(0, f"answers {some(settled)}")
    return Verdict(0, f"answers {some(settled)}") if settled == [question.trap] else None


def _of_question(reply: str, question: Question, values: Sequence[str]) -> str:
    """Return a reply without the lines of a list whose labels are of something else, if another line's label is of what is asked."""
    asked = _content(question.text) - _content(question.answer or "")
    lines = _nested(reply)
    named = [any(contains_phrase(line, without_unit(value)) for value in values) for line in lines]
    labels = [_label(line) for line in lines]
    items = [label for label, has in zip(labels, named, strict=True) if has and label]
    asked -= frozenset.intersection(*items) if len(items) > 1 else frozenset()
    valued = [bool(has and label) for has, label in zip(named, labels, strict=True)]
    about = [bool(label & asked) for label in labels]
    if not any(has and own for has, own in zip(valued, about, strict=True)):
        return reply
    kept = [
        line
        for line, label, has, own in zip(lines, labels, valued, about, strict=True)
        if own or not has or label & _RESULTS or LEXICON.has("concluded", plain(line))
    ]
    return "\n".join(kept)


def _nested(reply: str) -> list[str]:
    """Return the lines of a reply, each headed by the lines that it is indented under: "ada: coins: 12"."""
    lines: list[str] = []
    heads: list[tuple[int, str]] = []
    for line in reply.splitlines():
        indent = len(line) - len(line.lstrip())
        heads = [each for each in heads if each[0] < indent][-DEEPEST:]
        lines.append(" ".join([*(head for _, head in heads), line.strip()]) if heads and line.strip() else line)
        if line.rstrip().endswith(":"):
            heads.append((indent, line.strip()))
    return lines


def _label(line: str) -> frozenset[str]:
    """Return the words of a line that say what it is of: those before its value or, in an item of a list, all."""
    return _content(line if _ITEM.match(line) else " ".join(_PARTS.split(line.strip(" |"))[:-1]))


def _content(text: str) -> frozenset[str]:
    return frozenset(word for word in plain(text).split() if len(word) >= CONTENT and not word.isdecimal())


def _plainly(reply: str, question: Question) -> str:
    """Return a reply without the question's words that would tell of when, and say nothing of it there: "pickled beetroot", "old coins"."""
    told = (
        {word for word in plain(question.text).split() if len(word) >= TELLING and LEXICON.stance(word) != Stance.ASSERTED}
        - _AUXILIARIES
        - _RESULTS
    )
    return re.sub(rf"\b(?:{'|'.join(sorted(told))})\b", " ", reply, flags=re.IGNORECASE) if told else reply


def _whose(question: Question, answer: str, reply: str, values: Sequence[str]) -> Sequence[Whole]:
    """Return whom a question is about, and all others: people by their names and as the user's, or places. Of whom a question without
    either is, its answer has to say."""
    asked = f" {plain(question.text)} "
    relations = [person for match in _RELATION.finditer(asked) for person in (match[1], match[0].removeprefix("my "))]
    named = [name for name in words("names") if f" {plain(name)} " in asked]
    if not named and not relations and (place := _PLACE.search(question.text)):
        elsewhere = {match[1] for match in _PLACES.finditer(reply) if match[1].casefold() not in LEXICON.words} - names(
            f"{question.text} {' '.join(values)}"
        )
        return [((place[1],), tuple(sorted(elsewhere)))]
    if not named and not relations and (thing := _OF.search(question.text)):
        own = thing[1].casefold()
        other = {each for match in _THINGS.finditer(reply) if (each := match[1].casefold()).rstrip("s") != own}
        return [((own, f"{own}s"), tuple(sorted(other)))]
    if not named and not relations and not _FIRST_PERSON.search(asked):
        return []
    you, everybody = yours(words("people"))
    told = [f"your {match[1].casefold()}" for match in _THEIRS.finditer(reply)]
    others = [other for other in dict.fromkeys([*everybody, *told]) if other.removeprefix("your ") not in relations]
    strangers = [name for name in words("names") if name not in named and name != answer]
    return [((*you, *(f"your {person}" for person in relations), *named), (*others, *strangers))]


def _hedges(reply: str, answer: str) -> bool:
    """Return whether a reply names an answer in no other sentence than one that offers or lists several, or is not sure."""
    said = [sentence for sentence in _SENTENCE.split(reply) if contains_phrase(sentence, answer)]
    return all(_HEDGES.search(sentence) or _lists(sentence, answer) for sentence in said)


def _lists(sentence: str, answer: str) -> bool:
    """Return whether an answer is among three short things or more that a sentence lists, and is no list itself."""
    short = [part for part in _LIST.split(sentence) if 0 < len(part.split()) <= ITEM]
    return len(short) > 2 and not _LIST.search(answer) and any(contains_phrase(part, answer) for part in short)


def _quantity(key: str, text: str, found: Sequence[str], what: str, closed: bool, whose: Sequence[Whole]) -> Verdict | None:
    """Grade numbers or dates: `text` has all of them as the words in `found`."""
    if not closed:  # "two years ago" may be the same year, and years are no counts
        found = [each for each in found if bool(_YEAR.fullmatch(each)) == bool(_YEAR.fullmatch(key))]
    elif key not in found:
        found = list(dict.fromkeys(NUMBERS.findall(text))) or found  # "8 jars, 7, and 9, so 24 altogether"
    if not found:
        return None
    if len(found) > MOST:
        return Verdict(0, f"names {len(found)} {what}")
    if closed and what == "numbers" and (last := list(_COMES_TO.finditer(text))) and not NUMBERS.search(text, last[-1].end()):
        return Verdict(float(last[-1][1] == key), f"answers {_shown(last[-1][1])}")
    said = Reading(_TOTAL.sub(" now ", text) if closed and what == "numbers" else text)
    values = Values(found, forms=False)
    heeds = (lambda at: not _of_message(said, at)) if closed and what == "dates" else None
    settled = said.of(values, *whose, heeds=heeds).values
    settled = settled or said.of(values, *whose).values
    if not settled and whose and YOU[0] not in whose[0][0]:
        settled = said.settles(values).values  # what else is named need be no other thing
    if settled == [key]:
        return Verdict(1, f"answers {_shown(key)}")
    several = settled if key in settled else found if len(settled) > 1 and key in found else []
    if several and _is_sum(key, [each for each in several if each != key]):
        return Verdict(1, f"answers {_shown(key)}, the sum of the others")
    if not closed and key in found and not _OR.search(text):
        return None  # the others may be of something else
    if key in settled:
        return Verdict(0, f"does not settle on one of several {what}: {some(map(_shown, settled))}")
    return Verdict(0, f"answers {some(map(_shown, settled))}") if settled else None


def _of_message(said: Reading, at: int) -> bool:
    """Return whether a clause tells when something was said: "your message of 3 May", "message date: 3 May"."""
    headed = at > 0 and ":" in said.clauses[at].gap and _MESSAGE.search(said.clauses[at - 1].text)
    return bool(headed or _MESSAGE.search(said.clauses[at].text))


def _is_sum(key: str, others: Sequence[str]) -> bool:
    if not key.startswith("number"):
        return False
    total, *terms = map(amount, (key, *others))
    return len(terms) > 1 and sum(terms) == total


def _shown(key: str) -> str:
    return key.removeprefix("number").replace("point", ".").removeprefix("day").replace("x", " ").strip()


_QUANTITIES: Final[Sequence[tuple[Callable[[str], str], Callable[[str, str, str], tuple[str, list[str]]], str]]] = (
    (date_key, canonical_dates, "dates"),
    (number_key, canonical_numbers, "numbers"),
)
