"""Grade answers to questions about histories by rules where these decide; a judge decides the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, final

from longspan.scenarios.histories.answer_options import LABEL, Options
from longspan.scenarios.histories.history import Question
from longspan.scenarios.histories.languages import contains_negation, detect_language
from longspan.scenarios.histories.listed_answers import ITEM, KEY, replace_list
from longspan.scenarios.histories.quantities import (
    NUMBERS,
    canonical_clocks,
    canonical_dates,
    canonical_numbers,
    clock_key,
    date_key,
    number_key,
    spell_symbols,
    without_tellings,
    without_unit,
    word_amount,
)
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import readable_part
from longspan.simulator.reading.abstentions import declines_question, find_names, find_offers, is_abstention, is_unsure
from longspan.simulator.reading.matching import contains_phrase, join_some
from longspan.simulator.reading.replies.layout import flatten_layout
from longspan.simulator.reading.replies.lexicon import LEXICON, Stance
from longspan.simulator.reading.replies.reading import YOU, Reading, user_names
from longspan.simulator.reading.replies.splitting import SENTENCE_END
from longspan.simulator.reading.replies.subjects import Whole
from longspan.simulator.reading.replies.values import Values

__all__ = ["RuleVerdict", "grade_reply", "is_abstention", "only_abstains", "says_nothing"]

SHORT: Final = 40
"""In replies of at most this many words, naming the answer is enough, unless the answer's rivals are known."""
LONG: Final = 400
"""Where rules must decide, a reply with more words counts as a copy of the conversation, not as an answer."""
MOST: Final = 20
"""Maximum number of different numbers or dates in a reply that can still settle on one of them."""

ACKNOWLEDGES: Final = frozenset({"ok", "okay", "all right", "alright", "got it", "i see", "noted", "understood", "thanks", "thank you"})
"""Replies that answer nothing."""
EQUAL: Final = "equals the gold answer"
STATEMENT: Final = 4
"""Minimum number of words in a statement."""

_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_ARTICLE: Final = re.compile(r"\A\s*(?:a|an|the)\s+(?=\w)", re.IGNORECASE)
_RESULTS: Final = frozenset("answer conclusion difference result sum total altogether".split())
"""Labels of lines that give a result computed from other lines."""
_RELATION: Final = re.compile(r"\bmy (\w+)(?: \w+)?")
_THEIRS: Final = re.compile(r"\b[Yy]our ([a-z]+)(?=,? [A-Z])")
"""A person whom a reply also names: "your trainer Herbert"."""
_TOTAL: Final = re.compile(
    r"\b(?:(?:a|the) (?:grand )?total of|in total|altogether|all in all|comes? to|brings? (?:you|it|that|us) to|(?:adds?|sums?) up to"
    r"|(?:which|that) makes|(?:sum|total)(?=[*_ ]{0,4}[|:]))\b",
    re.IGNORECASE,
)
"""Phrases that introduce the sum of other numbers."""
_COMES_TO: Final = re.compile(
    r"\b(?:comes? to|brings? (?:you|it|that|us) to|(?:adds?|sums?) up to|(?:which|that) (?:makes|is|leaves|gives)"
    r"|correct myself: it[\u2032']s)"
    r"\s{1,3}(?:\w+ ){0,2}[*_]{0,3}(number(?:minus)?\d\w*)",
    re.IGNORECASE,
)
"""Phrases that introduce the final number of a calculation."""
_PLACE: Final = re.compile(r"\bin ([A-Z]\w+)")
_PLACES: Final = re.compile(
    r"(?:\b(?:[Ii]n|[Ff]or|[Nn]ear) |^|[\n.;*(\u00b7-]\s?)([A-Z]\w+)(?=[*_]{0,2}\s?[:.,;)\u2192|-]|[*_]{0,2} (?:it|the|I|is|was)\b)"
)
"""Names in the position of a place: "in Oakhurst, ...", "Oakhurst: ..."."""
_FIRST_PERSON: Final = re.compile(r"\b(?:i|me|my|mine|we|us|our)\b")
_STATEMENTS: Final = re.compile(rf"{SENTENCE_END.pattern}|[:,]\s|\b(?:but|although|though|however|while|and)\b", re.IGNORECASE)
_YEAR: Final = re.compile(r"number(?:19|20)\d\d")
_PARTS: Final = re.compile(r"[:\u2192=|\u2013\u2014]|->|\s-\s")
"""Separators between a line's label and its value."""
_ITEM: Final = re.compile(r"\s*(?:[-*\u2022+|]|\d{1,2}[.)])\s")
"""Beginning of a list item or table row."""
DEEPEST: Final = 3
"""Maximum number of heading lines that are prepended to a line."""
_OF: Final = re.compile(r"\b(?:for|of) an? (\w+ \w+)\W*\Z")
"""The thing at the end of a question: "How much flour for a seed cake?"."""
_THINGS: Final = re.compile(r"\b(?:for|of|with|on|about) (?:an?|the|your) ([a-z]+ [a-z]+)\b", re.IGNORECASE)
TELLING: Final = 3
"""Minimum length of a word that may express time."""
_AUXILIARIES: Final = frozenset("was were had been said told not".split())
CONTENT: Final = 4
"""Minimum length of a content word."""
_LIST: Final = re.compile(r",(?!\d)|\b(?:and|&)\b", re.IGNORECASE)
_MESSAGE: Final = re.compile(r"\b(?:message|messages|mentioned|wrote|session|chat|posted)\b")
"""Words that date a statement rather than the event that it reports."""
_FIGURE: Final = re.compile(r"\d")
_HEDGES: Final = re.compile(r"\b(?:or|either|maybe|perhaps|possibly|might|could be|guess|not sure)\b", re.IGNORECASE)
_OR: Final = re.compile(r"\bor\b", re.IGNORECASE)


@final
class RuleVerdict(NamedTuple):
    """A score in [0, 1] with the reason for it."""

    score: float
    why: str


def grade_reply(question: Question, reply: str, rivals: Iterable[str] | None = None) -> RuleVerdict | None:
    """Grade a reply, or return None if rules do not decide.

    `rivals`: everything that a wrong reply could name instead of the gold answer, if known. The gold answer is then assumed to have only
    one wording, and rules always decide on English replies: one that does not give it is wrong. In other languages, rules only recognise
    right answers, choices, and replies that say nothing. Runs in time linear in the reply and never raises.
    """
    reply = readable_part(reply)
    verdict = _grade_english(question, reply, rivals)
    if verdict is None or verdict.why == EQUAL or detect_language(reply) is None or says_nothing(question, reply):
        return verdict
    if question.options and Options(question.options).find_chosen(reply):
        return verdict
    return verdict if verdict.score == 1 and not (question.answerable and contains_negation(reply)) else None


def _grade_english(question: Question, reply: str, rivals: Iterable[str] | None) -> RuleVerdict | None:
    said = plain(reply)
    # Without known rivals, rules decide only clear cases and leave the rest to a judge: a reply may name anything else.
    closed = rivals is not None
    others = [rival for rival in rivals or () if plain(rival)]
    if question.trap and question.trap not in others:
        others.append(question.trap)
    if not said:
        return RuleVerdict(0, "the reply has no words")
    if question.answer is not None and _is_same(flatten_layout(question.answer), flatten_layout(reply)):
        return RuleVerdict(1, EQUAL)
    if said == plain(question.text):
        return RuleVerdict(0, "repeats the question")
    if said in ACKNOWLEDGES:
        return RuleVerdict(0, "answers nothing")
    if closed and len(said.split()) > LONG:
        return RuleVerdict(0, f"has more than {LONG} words")
    if question.options and question.answer is not None:
        if not question.answerable and only_abstains(reply) and declines_question(reply, question.text, others) and not LABEL.match(reply):
            return RuleVerdict(1, "says that it was not told")
        return _choice(question.options, question.answer, reply)
    if not question.answerable:
        return _abstention(question, reply, others, closed)
    if question.answer is None or not plain(question.answer) or (question.rubric and not closed):
        return None
    verdict = _grade_settled(question, question.answer, reply, others, closed)
    if not closed and is_abstention(reply):
        if is_abstention(question.answer):
            return None  # the gold answer itself is that it is not known
        return RuleVerdict(0, "says that it does not know") if only_abstains(reply) else None
    return verdict or (RuleVerdict(0, "does not settle on the gold answer") if closed else None)


def only_abstains(reply: str) -> bool:
    """Return whether a reply says that the answer is not known, and nothing else."""
    reply = readable_part(reply)
    return is_abstention(reply) and all(len(part.split()) < STATEMENT or is_abstention(part) for part in _STATEMENTS.split(reply))


def says_nothing(question: Question, reply: str) -> bool:
    """Return whether a reply is empty, repeats the question, merely acknowledges it, or only says that the answer is not known."""
    return plain(readable_part(reply)) in {"", plain(question.text), *ACKNOWLEDGES} or only_abstains(reply)


def _is_same(answer: str, reply: str) -> bool:
    """Return whether two texts have the same words, apart from articles, and the same signs and currencies."""
    return _bare(answer) == _bare(reply) != "" and _bare(spell_symbols(answer)) == _bare(spell_symbols(reply))


def _bare(text: str) -> str:
    return " ".join(_ARTICLES.sub(" ", plain(text)).split())


def _abstention(question: Question, reply: str, others: Sequence[str], closed: bool) -> RuleVerdict | None:
    if (after := Reading(reply).find_correction()) and is_abstention(after):
        reply = after
    named = find_offers(reply, question.text, others)
    if not is_abstention(reply):
        if closed or named:
            return RuleVerdict(0, "answers what the history does not tell" if named else "does not say that it was not told")
        return None
    if named:
        return RuleVerdict(0, f"says that it does not know, and answers all the same: {join_some([' '.join(named)])}")
    if closed and number_key(question.trap) and any(_FIGURE.search(part) and is_unsure(part) for part in _STATEMENTS.split(reply)):
        return RuleVerdict(0, "says that it does not know, and guesses a number")
    if not closed and (is_unsure(reply) or len(plain(reply).split()) > SHORT or _tells_more(question, reply)):
        return None
    return RuleVerdict(1, "says that it was not told")


def _tells_more(question: Question, reply: str) -> bool:
    """Return whether a reply states more than not knowing the answer. Statements about unrelated people do not count."""
    asked = find_names(question.text)
    for part in _STATEMENTS.split(reply):
        if len(part.split()) >= STATEMENT and not is_abstention(part):
            of = find_names(part)
            if not of or of & asked:
                return True
    return False


def _choice(options: Sequence[str], answer: str, reply: str) -> RuleVerdict:
    known = Options(options)
    chosen = known.find_chosen(reply)
    if len(chosen) > 1:
        return RuleVerdict(0, "chooses several options")
    if chosen:
        return RuleVerdict(float(chosen[0] == answer), f"chooses {join_some(chosen)}")
    if is_abstention(reply) or len(plain(reply).split()) <= 3:
        return RuleVerdict(0, "chooses none of the options")
    return RuleVerdict(0, "rules its options out" if known.names_option(reply) else "names none of the options")


def _grade_settled(question: Question, answer: str, reply: str, others: Sequence[str], closed: bool) -> RuleVerdict | None:
    """Grade the answer that a reply gives. None if it is neither the gold answer nor a known wrong one."""
    if plain(answer) in ("yes", "no"):
        first = plain(reply).split()[0]
        return RuleVerdict(float(first == plain(answer)), f"says {first}") if first in ("yes", "no") else None
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
    gold = answer
    if not closed and (keyed := replace_list(question.text, answer, reply)) != reply:
        answer, reply = KEY, keyed
    said = Reading(reply)
    if any(contains_phrase(clause.text, f"no {answer}") for clause in said.clauses):
        return None
    settled = said.of(Values([answer, *others], forms=closed), *whose).values
    if settled == [answer]:
        return None if not closed and _hedges(reply, answer) else RuleVerdict(1, f"answers {join_some([gold])}")
    if answer in settled:
        return RuleVerdict(0, f"does not settle on one answer: {join_some(gold if each == KEY else each for each in settled)}")
    if settled and closed:
        return RuleVerdict(0, f"answers {join_some(settled)}")
    return RuleVerdict(0, f"answers {join_some(settled)}") if settled == [question.trap] else None


def _of_question(reply: str, question: Question, values: Sequence[str]) -> str:
    """Return a reply without list lines about other things, if another line's label matches the question."""
    asked = _content(question.text) - _content(question.answer or "")
    lines = _flatten_nesting(reply)
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


def _flatten_nesting(reply: str) -> list[str]:
    """Return the lines of a reply, each prefixed by the headings that it is indented under: "ada: coins: 12"."""
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
    """Return the words that say what a line is about: those before its value, or all words of a list item."""
    return _content(line if _ITEM.match(line) else " ".join(_PARTS.split(line.strip(" |"))[:-1]))


def _content(text: str) -> frozenset[str]:
    return frozenset(word for word in plain(text).split() if len(word) >= CONTENT and not word.isdecimal())


def _plainly(reply: str, question: Question) -> str:
    """Return a reply without words of the question that look like expressions of time but are not: "pickled beetroot", "old coins"."""
    told = (
        {word for word in plain(question.text).split() if len(word) >= TELLING and LEXICON.stance(word) != Stance.ASSERTED}
        - _AUXILIARIES
        - _RESULTS
    )
    return re.sub(rf"\b(?:{'|'.join(sorted(told))})\b", " ", reply, flags=re.IGNORECASE) if told else reply


def _whose(question: Question, answer: str, reply: str, values: Sequence[str]) -> Sequence[Whole]:
    """Return the names of the question's subjects, and all other names of that kind in the reply.

    They are people, by name and by relation to the user, or places, or things. If a question mentions none, the result is empty.
    """
    asked = f" {plain(question.text)} "
    relations = [person for match in _RELATION.finditer(asked) for person in (match[1], match[0].removeprefix("my "))]
    named = [name for name in load_words("names") if f" {plain(name)} " in asked]
    if not named and not relations and (place := _PLACE.search(question.text)):
        elsewhere = {match[1] for match in _PLACES.finditer(reply) if match[1].casefold() not in LEXICON.words} - find_names(
            f"{question.text} {' '.join(values)}"
        )
        return [((place[1],), tuple(sorted(elsewhere)))]
    if not named and not relations and (thing := _OF.search(question.text)):
        own = thing[1].casefold()
        other = {each for match in _THINGS.finditer(reply) if (each := match[1].casefold()).rstrip("s") != own}
        return [((own, f"{own}s"), tuple(sorted(other)))]
    if not named and not relations and not _FIRST_PERSON.search(asked):
        return []
    you, everybody = user_names(load_words("people"))
    told = [f"your {match[1].casefold()}" for match in _THEIRS.finditer(reply)]
    others = [other for other in dict.fromkeys([*everybody, *told]) if other.removeprefix("your ") not in relations]
    strangers = [name for name in load_words("names") if name not in named and name != answer]
    return [((*you, *(f"your {person}" for person in relations), *named), (*others, *strangers))]


def _hedges(reply: str, answer: str) -> bool:
    """Return whether every sentence that names an answer offers or lists several, or is unsure."""
    said = [sentence for sentence in SENTENCE_END.split(reply) if contains_phrase(sentence, answer)]
    return all(_HEDGES.search(sentence) or _lists(sentence, answer) for sentence in said)


def _lists(sentence: str, answer: str) -> bool:
    """Return whether a sentence lists an answer among three or more short things. An answer that is a list does not count."""
    short = [part for part in _LIST.split(sentence) if 0 < len(part.split()) <= ITEM]
    return len(short) > 2 and not _LIST.search(answer) and any(contains_phrase(part, answer) for part in short)


def _quantity(key: str, text: str, found: Sequence[str], what: str, closed: bool, whose: Sequence[Whole]) -> RuleVerdict | None:
    """Grade numbers or dates. `text` is the reply with all of them replaced by the key words in `found`."""
    if not closed:  # "two years ago" may be the same year, and years are no counts
        found = [each for each in found if bool(_YEAR.fullmatch(each)) == bool(_YEAR.fullmatch(key))]
    elif key not in found:
        found = list(dict.fromkeys(NUMBERS.findall(text))) or found  # "8 jars, 7, and 9, so 24 altogether"
    if not found:
        return None
    if len(found) > MOST:
        return RuleVerdict(0, f"names {len(found)} {what}")
    if closed and what == "numbers" and (last := list(_COMES_TO.finditer(text))) and not NUMBERS.search(text, last[-1].end()):
        return RuleVerdict(float(last[-1][1] == key), f"answers {_format_key(last[-1][1])}")
    said = Reading(_TOTAL.sub(" now ", text) if closed and what == "numbers" else text)
    values = Values(found, forms=False)
    heeds = (lambda at: not _of_message(said, at)) if closed and what == "dates" else None
    settled = said.of(values, *whose, heeds=heeds).values
    settled = settled or said.of(values, *whose).values
    if not settled and whose and YOU[0] not in whose[0][0]:
        settled = said.settles(values).values  # a name in the reply may be unrelated to the number
    if settled == [key]:
        return RuleVerdict(1, f"answers {_format_key(key)}")
    several = settled if key in settled else found if len(settled) > 1 and key in found else []
    if several and _is_sum(key, [each for each in several if each != key]):
        return RuleVerdict(1, f"answers {_format_key(key)}, the sum of the others")
    if not closed and key in found and not _OR.search(text):
        return None  # the other numbers may be about something else
    if key in settled:
        return RuleVerdict(0, f"does not settle on one of several {what}: {join_some(map(_format_key, settled))}")
    return RuleVerdict(0, f"answers {join_some(map(_format_key, settled))}") if settled else None


def _of_message(said: Reading, at: int) -> bool:
    """Return whether a clause dates a statement rather than an event: "your message of 3 May", "message date: 3 May"."""
    headed = at > 0 and ":" in said.clauses[at].gap and _MESSAGE.search(said.clauses[at - 1].text)
    return bool(headed or _MESSAGE.search(said.clauses[at].text))


def _is_sum(key: str, others: Sequence[str]) -> bool:
    if not key.startswith("number"):
        return False
    total, *terms = map(word_amount, (key, *others))
    return len(terms) > 1 and sum(terms) == total


def _format_key(key: str) -> str:
    if key.startswith("clock"):
        return f"{key[5:7]}:{key[7:]}"
    return re.sub("^(?:number|amount)", "", key).replace("minus", "-").replace("point", ".").removeprefix("day").replace("x", " ").strip()


_QUANTITIES: Final[Sequence[tuple[Callable[[str], str], Callable[[str, str, str], tuple[str, list[str]]], str]]] = (
    (date_key, canonical_dates, "dates"),
    (clock_key, canonical_clocks, "times"),
    (number_key, canonical_numbers, "numbers"),
)
