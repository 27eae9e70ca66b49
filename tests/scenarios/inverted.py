"""Says a scenario's own sentences back, as an assistant would: statements in the second person, and questions turned into statements.

Everything comes from the templates, so that a new template is tried as soon as it is written. The rules are those of English grammar and
know no scenario: a swap of persons, the order of subject and verb, contractions, tense, voice, and ways to join several values.
Run `python -m tests.scenarios.inverted` for the matrix of scenario by form, with `/SCENARIO` for the replies that are misread.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from random import Random
from typing import Any, Final, NamedTuple
from zlib import crc32

from tests.scenarios.worded import one_reply

from longspan.scenarios.ltm import wording as ltm
from longspan.scenarios.memory import wording as memory
from longspan.scenarios.memory.habits import HABITS
from longspan.scenarios.memory.persona import OWN
from longspan.scenarios.reach import answers as reach
from longspan.scenarios.reach import wording as reach_wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.scenarios.shared.wording import Wording
from longspan.simulator.contract.graded_record import Exchange, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.running.preflight.rehearsal import rehearse

__all__ = ["ALL", "SCENARIOS", "Reply", "Row", "agrees", "play", "tabulate"]

VALUE: Final = "\0"
"""Stands for the value in a sentence."""
_PERSONS: Final = {
    "I am": "you are", "am I": "are you", "I was": "you were", "was I": "were you", "I": "you", "me": "you", "my": "your", "mine": "yours",
    "myself": "yourself", "you are": "I am", "ask you": "ask me", "asked you": "asked me", "told you": "told me", "tell you": "tell me",
    "let you": "let me", "meet you": "meet me", "you": "I", "your": "my", "we": "you", "We": "you", "our": "your", "ours": "yours",
}  # fmt: skip
_AUXILIARY: Final = "is|are|was|were|am|do|does|did|have|has|had|can|could|will|would|shall|should"
_PAST: Final = {"put": "put", "choose": "chose", "tell": "told", "have": "had", "is": "was", "are": "were", "has": "had", "will": "would"}
_LATE: Final = r"(?:now|again|today|at present|right now|these days|at the moment|in the morning|in the summer|as things stand)"
"""Adverbs that stay at the end of a sentence."""
_PLACE: Final = re.compile(rf"(?P<prep>(?:in|into|on|at|to) )?(?P<det>(?:the|an?|my|your) )?{VALUE}")
_QUESTION: Final = re.compile(
    rf"(?<!\w)(?<!\band )(?<!\bin )(?<!\bon )(?<!\bat )(?:(?P<prep>(?:in|on|at) )?"
    rf"(?P<wh>what|which|where and when|where|when)(?P<noun>(?: (?!(?:{_AUXILIARY})\b)[\w'-]+)*?)"
    rf" (?P<aux>{_AUXILIARY}) (?P<rest>[^?]+)\?|which (?:three )?\w+ (?P<verb>\w+) (?P<object>[^?]+)\?)",
    re.IGNORECASE,
)


class Case(NamedTuple):
    """A question of a test: the templates that state its answer and ask for it, and a grader of replies.

    `right` has the values that make up the answer, `old` the values that it replaced. `fills` are the names in the templates, and
    `others` the fills of the same fact about someone else.
    """

    scenario: str
    stated: Sequence[str]
    asked: Sequence[str]
    fills: Sequence[str]
    right: Sequence[str]
    wrong: str
    grade: Callable[[str], float | None]
    old: Sequence[str] = ()
    elsewhere: Sequence[str] = ()
    worth: Callable[[int, int, int], float] = lambda right, wrong, of: (right - wrong) / of
    """The score of a list, given how many of its values are right, how many are wrong, and how many there should be."""
    said: bool = False
    """Whether it counts that the value is said, whatever is said about it."""


class Reply(NamedTuple):
    """A reply, its form and content, and the score that it deserves."""

    case: Case
    form: str
    content: str
    text: str
    deserved: float


class Row(NamedTuple):
    """How many correct replies are read as correct, and how many others as what they are, each with the number of all."""

    right: int
    correct: int
    told: int
    others: int


ALL: Final = "all"
"""The name of a table's row for all forms."""


# Sentences.


def say_back(text: str) -> str:
    """Swap the persons: what the user says of "my dog" is said back of "your dog"."""
    text = re.sub(" +", " ", re.sub(r"\b(?:You|My|Your)\b", _lower, text))
    return re.sub(rf"\b(?:{'|'.join(_PERSONS)})\b", lambda match: _PERSONS[match[0]], text)


def _lower(match: re.Match[str]) -> str:
    return match[0].lower()


def _finish(text: str) -> str:
    text = re.sub(r"(?<=[.?] )[a-z]", lambda match: match[0].upper(), re.sub(r"\s+", " ", text.strip(" ,.?")))
    return f"{text[:1].upper()}{text[1:]}."


def answer_question(question: str, fills: Sequence[str], place: str) -> Iterator[tuple[str, str]]:
    """Yield the statements that answer a question: in the order of a statement, and with the value first ("red is what you like").

    `place` is how the scenario's statements introduce the value: "in the ", "a ".
    """
    if named := re.match(r"(?:Can you tell me|Tell me|Give me|Do you remember) ((?:my|the) [^,?]+)", question):
        yield "question", f"{named[1]} is {_without_preposition(place)}{VALUE}"
        return
    question = re.split(r"(?<=[.:]) ", question.partition("?")[0].rstrip(".") + "?")[-1]
    question = re.sub(r", and (?:on|in|at) which [^?]*", "", question)
    found = max(filter(None, (_QUESTION.match(question, at) for at in range(len(question)))), key=lambda each: each.start(), default=None)
    if found is None:
        return
    lead, noun, aux, rest = question[: found.start()].strip(), (found["noun"] or "").strip(), found["aux"], found["rest"]
    wh = (found["wh"] or "which").lower()
    place = place or ("on " if wh == "when" else "")
    embedded = lead.endswith(("tell me", "sum up"))
    lead = "" if embedded or re.search(r"\b(?:me|you)\b", lead) else lead
    adverbial = wh not in ("what", "which") or found["prep"]
    value = f"{place}{VALUE}" if adverbial else f"{_without_preposition(place)}{VALUE}"
    if found["prep"] and not place.startswith(found["prep"].lower()):
        value = f"{found['prep'].lower()}{_without_preposition(place)}{VALUE}"
    if aux is None:
        yield "question", f"{lead} {value} {found['verb']} {found['object']}"
        return
    if embedded:
        subject = noun
    elif subject := _subject(rest, aux, fills):
        rest = rest[len(subject) :].strip()
    else:
        yield "question", f"{lead} {value} {aux} {rest}"
        return
    verb, rest = _inflect(aux, rest)
    late = re.search(rf",? {_LATE}(?:,? {_LATE})*$", f" {rest}")
    core, tail = (f" {rest}"[: late.start()], late[0]) if late else (f" {rest}", "")
    last = adverbial or (aux in ("is", "was") and "ing" not in core)
    at = 0 if re.match(r" in (?:a|today's)\b", core) else len(core) if last else _object_end(core, inflected=verb != aux)
    yield "question", f"{lead} {subject} {verb} {core[:at]} {value} {core[at:]}{tail}"
    if not lead and not found["prep"] and core.strip():
        what = {"which": "what", "where and when": "where"}.get(wh, wh)
        yield "value first", f"{value} is {what} {subject} {verb} {rest}"


def _without_preposition(place: str) -> str:
    return re.sub(r"^(?:in|into|on|at|to) ", "", place)


def _subject(rest: str, aux: str, fills: Sequence[str]) -> str:
    """Return the subject that follows the auxiliary of a question, or "" if the question asks for the subject itself."""
    if pronoun := re.match(r"(?:I|you)(?= )", rest):
        return pronoun[0]
    names = f"(?:{'|'.join(map(re.escape, sorted(fills, key=len, reverse=True))) or '(?!)'})"
    if aux in ("is", "was") and re.match(rf"(?:my|the|{names}'s)\b", rest):
        ends = re.search(rf"(?:^the|{names})(?:'s \w+)?( (?:\w+ing|called|really|in fact)\b(?! place))", rest)
        return rest[: ends.start(1)] if ends else re.split(rf" {_LATE}$", rest)[0]
    found = re.match(rf"(?:(?:my|the) )?{names}(?:'s \w+)?", rest)
    return found[0] if found else ""


def _inflect(aux: str, rest: str) -> tuple[str, str]:
    """Return the verb for a statement in place of a question's auxiliary, and the rest of the sentence."""
    if aux not in ("do", "does", "did"):
        return aux, rest
    adverb, verb, rest = re.match(r"((?:really )?)(\w+)(.*)", rest).groups()  # type: ignore[union-attr]
    if aux == "does":
        verb = "has" if verb == "have" else f"{verb}s"
    elif aux == "did":
        verb = _PAST.get(verb, f"did {verb}")
    return f"{adverb}{verb}", rest.strip()


def _object_end(core: str, *, inflected: bool) -> int:
    """Return the position in the rest of a statement where its object belongs. `inflected`: whether the verb stands before it."""
    verbs = re.match(r"(?: to \w+| aside| lessons)?" if inflected else r" (?:(?:going|have|be \w+) to \w+|\w+(?: aside| lessons)?)", core)
    at = verbs.end() if verbs else 0
    found = re.compile(rf" (?:as|for|from|to|on|in|at|if|with|best|about|since|{_LATE})\b( (?:in|at)\b|$)?").search(core, at)
    return len(core) if found is None else found.start(1) if found[1] is not None else found.start()


def sentences(case: Case) -> Iterator[tuple[str, str]]:
    """Yield the case's own sentences in the second person, each with its source. The value is `VALUE`."""
    # An imperative is addressed to the assistant, which does not say it back.
    stated = [text for text in case.stated if not re.match(r"(?:Please|Call|Ask|Let)\b", text)]
    stated = [re.sub(r"; (?:write|put|remind)\b.*", "", text) for text in stated]
    places = [match for text in stated for match in _PLACE.finditer(text)]
    place = next((match[0][:-1] for match in places if match["prep"]), places[0][0][:-1] if places else "")
    for text in stated:
        yield "statement", _finish(say_back(text))
    for question in case.asked:
        if "?" in question and not question.startswith("Do you remember"):
            asked = _finish(say_back(question.partition("?")[0]))[:-1]
            yield "question repeated", f"{asked}? {_without_preposition(place).capitalize()}{VALUE}."
        for source, text in answer_question(question, case.fills, place):
            agreeing = re.sub(rf"{VALUE} is\b", f"{VALUE} are", text) if len(case.right) > 1 else text
            yield source, _finish(say_back(agreeing))


# Forms, and ways to join several values.


def _contract(text: str) -> str:
    text = re.sub(r"\b([Yy]ou|[Ii]t) (have|are|would|will|had)\b(?= \w)", lambda m: f"{m[1]}'{_SHORT[m[2]]}", text)
    return re.sub(r"(?<=\w) is (?=(?:called|going|learning|in the|the|a|your)\b)", "'s ", text)


_SHORT: Final = {"have": "ve", "are": "re", "would": "d", "will": "ll", "had": "d"}


def _in_past(text: str) -> str:
    if re.search(_LATE, text) or "From today" in text or re.match(r"(?:Go|If)\b", text):
        return text
    return re.sub(r"\b(?:is|are|has|have|will)\b(?! to\b)", lambda m: _PAST[m[0]], text, count=1)


def _passive(text: str) -> str:
    """Turn "you have put aside a lute for Ada" into "a lute has been put aside by you for Ada"."""
    active = re.search(rf"\b([Yy]ou|[Yy]our \w+) (have|has|had) (?!an?\b)(\w+(?: aside)?) ((?:(?:an?|the|your) )?{VALUE})", text)
    if active is None:
        return text
    who, _, verb, what = active.groups()
    passive = f"{what} has been {verb} by {who.lower()}"
    return _finish(text[: active.start()] + passive + text[active.end() :])


FORMS: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": lambda text: text,
    "contracted": _contract,
    "past": _in_past,
    "passive": _passive,
    "no article": lambda text: re.sub(rf"\b(?:an?|the|your) {VALUE}", VALUE, text, flags=re.IGNORECASE),
    "the": lambda text: re.sub(rf"\b(?:an?|the|your) {VALUE}", f"the {VALUE}", text, flags=re.IGNORECASE),
    "so far": lambda text: f"{text[:-1]} so far.",
    "so far first": lambda text: f"So far, {_uncapitalised(text)}",
    "from you": lambda text: f"{text[:-1]}, from what I have heard from you.",
    "from you first": lambda text: f"From what I have from you, {_uncapitalised(text)}",
    "you told me": lambda text: f"You told me that {_uncapitalised(text)}",
    "you said": lambda text: f"You said {_uncapitalised(text)}",
    "as far as I know": lambda text: f"As far as I know, {_uncapitalised(text)}",
    "I think": lambda text: f"I think {_uncapitalised(text)}",
    "yes": lambda text: f"Yes, I remember: {_uncapitalised(text)}",
    "sure": lambda text: f"Sure! {text}",
    "offer": lambda text: f"{text} Let me know if that has changed.",
    "ask back": lambda text: f"{text} Is that still right?",
    "exclaimed": lambda text: f"{text[:-1]}!",
    "bold": lambda text: text.replace(VALUE, f"**{VALUE}**"),
}

JOINS: Final[Mapping[str, Callable[[Sequence[str]], str]]] = {
    "and": lambda each: f"{', '.join(each[:-1])} and {each[-1]}",
    "Oxford comma": lambda each: f"{', '.join(each[:-1])}, and {each[-1]}",
    "comma": ", ".join,
    "and and": " and ".join,
    "as well as": lambda each: f"{', '.join(each[:-1])} as well as {each[-1]}",
    "plus": lambda each: f"{', '.join(each[:-1])}, plus {each[-1]}",
    "semicolon": "; ".join,
    "bullets": lambda each: "".join(f"\n- {one}" for one in each),
    "numbers": lambda each: "".join(f"\n{number}. {one}" for number, one in enumerate(each, 1)),
}
TWO: Final[Mapping[str, str]] = {"or": "{0} or {1}", "either": "either {0} or {1}", "slash": "{0}/{1}", "or maybe": "{0}, or maybe {1}"}
"""Ways to hedge between two values."""


def fill(text: str, values: Sequence[str], join: Callable[[Sequence[str]], str]) -> str:
    """Put values in the place of `VALUE`, each with its determiner. A list on lines of its own comes last."""

    def written(match: re.Match[str]) -> str:
        marks = match["marks"]
        first, *others = (f"{_article(match['det'] or '', value)}{marks}{value}{marks}" for value in values)
        each = [first, *map(_uncapitalised, others)] if match["det"] else [first, *others]
        joined = join(each)
        return f"{':' if joined.startswith(chr(10)) else ''}{joined}"

    text = re.sub(rf"(?P<det>\b(?:the|an?|your) )?(?P<marks>\**){VALUE}\**", written, text, flags=re.IGNORECASE)
    if "\n" not in text:
        return f"{text[:1].upper()}{text[1:]}"
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}".replace(" :", ":")


def _article(determiner: str, value: str) -> str:
    return "an " if determiner.lower() in ("a ", "an ") and value[0].lower() in "aeiou" else determiner


# Contents: what a reply of each form says, and what it deserves.


def contents(case: Case, text: str) -> Iterator[tuple[str, str, str, float]]:
    """Yield the replies that say a sentence: the content, the way of joining, the reply and the score that it deserves."""
    if len(case.right) > 1:
        yield from _list_contents(case, text)
        return
    (right,) = case.right

    def one(value: str) -> str:
        return fill(text, [value], "".join)

    yield "correct", "", one(right), 1
    yield "wrong", "", one(case.wrong), 0
    if case.said:
        return
    for name, both in TWO.items():
        yield f"hedged: {name}", "", fill(text, [right, case.wrong], lambda each, both=both: both.format(*each)), 0  # type: ignore[misc]
    if VALUE not in _last_sentence(text):
        return  # an offer at the end of a reply has no place in its middle
    yield "correct, denying another", "", f"{one(right)[:-1]}, not {_determiner(text)}{case.wrong}{text[-1]}", 1
    yield "wrong, denying the right one", "", f"{one(case.wrong)[:-1]}, not {_determiner(text)}{right}{text[-1]}", 0
    yield "correct, corrected", "", f"{one(case.wrong)} No, wait: {_determiner(text)}{right}.", 1
    yield "wrong, corrected", "", f"{one(right)} No, wait: {_determiner(text)}{case.wrong}.", 0
    yield "hedged: after", "", f"{one(right)} Or was it {_determiner(text)}{case.wrong}?", 0
    if not re.search(rf"[,:.!?][^{VALUE}]*{VALUE}", text):  # "I don't know whether so far, ..." is no English
        yield "unknown", "", f"I don't know whether {_uncapitalised(one(right))}", 0
    if case.old and right not in case.old:
        history = ", then ".join(case.old)
        yield "correct, with history", "", f"{one(right)} (It used to be {history}.)", 1
        yield "correct, old first", "", f"It used to be {history}. {one(right)}", 1
        yield "correct, old last", "", f"{one(right)} Before that, it was {case.old[-1]}.", 1
        yield "wrong, with history", "", f"{one(case.old[-1])} (It used to be {right}.)", 0
    for other in case.elsewhere:
        if (swapped := re.sub(rf"\b{re.escape(case.fills[0])}\b", other, text)) != text:
            yield "correct, with someone else's", "", f"{one(right)} {fill(swapped, [case.wrong], ''.join)}", 1
            yield "wrong, with someone else's", "", f"{fill(swapped, [right], ''.join)} {one(case.wrong)}", 0
            yield "wrong: someone else's", "", fill(swapped, [right], "".join), 0


def _list_contents(case: Case, text: str) -> Iterator[tuple[str, str, str, float]]:
    for name, join in JOINS.items():
        if name in ("bullets", "numbers") and VALUE not in text.split()[-1]:
            continue
        *some, _ = case.right
        yield "correct", name, fill(text, case.right, join), 1
        if name == "and" and VALUE in _last_sentence(text):
            alone = text if case.right[0][0].isdecimal() else re.sub(rf"{VALUE} are\b", f"{VALUE} is", text)
            yield "correct", "sentences", " ".join(fill(alone, [value], "".join) for value in case.right), 1
        partial = fill(text, some, join if len(some) > 1 or name in ("bullets", "numbers") else "".join)
        yield "partial", name, partial, case.worth(len(some), 0, len(case.right))
        unsure = "I'm not sure about the other one."
        yield (
            "partial: unsure of one",
            name,
            f"{partial}{chr(10) * 2 if chr(10) in partial else ' '}{unsure}",
            case.worth(len(some), 0, len(case.right)),
        )
        if case.scenario != "name_list":  # its score counts the longer list
            yield "wrong: one of them", name, fill(text, [*some, case.wrong], join), case.worth(len(some), 1, len(case.right))


def _last_sentence(text: str) -> str:
    return re.split(r"(?<=[.!?]) ", text)[-1]


def _determiner(text: str) -> str:
    found = _PLACE.search(text)
    return (found and found["det"]) or ""


def _uncapitalised(text: str) -> str:
    """Return a sentence without its capital, which a name keeps."""
    return text if text.partition(" ")[0].removesuffix("'s") in load_words("names") else f"{text[:1].lower()}{text[1:]}"


# The scenarios.


def _lines(wording: Wording, macro: str, **values: str) -> Sequence[str]:
    return wording.all(macro, **values)


def colours() -> Iterator[Case]:
    wording = ltm.Wording("colours")
    for seed in range(3):
        script = make_scenario("colours", {}).make(Random(f"inverted/{seed}"))
        told = script.facts["told"]
        wrong = next(colour for colour in load_words("colours") if colour not in told)

        def grade(reply: str, facts: Any = script.facts, question: str = script.lines[-1].text) -> float | None:
            return make_scenario("colours", {}).grade(facts, Record((Exchange(1, question, reply, asks=True),))).score

        yield Case("colours", _lines(wording, "change", colour=VALUE), wording.all("question"), [], told[-1:], wrong, grade, told[:-1])


def _confidence(name: str, seed: int, fact: Sequence[str], told: Sequence[Sequence[str]], line: int, other: str = "") -> Case:
    kind, subject, value = fact
    common, own = memory.Wording("confidences"), memory.Wording(name)
    stated = common.all(f"{kind}_told", subject=subject, value=VALUE)
    if other:
        asked = own.all(f"{kind}_of", other=other, subject=subject)
        stated = [
            re.sub(r"\b[Mm]y\b", f"{other}'s", re.sub(r"\bI have\b", f"{other} has", text)) for text in stated if "me" not in text.split()
        ]
        stated = [text for text in stated if not re.search(r"\bI\b", text)]
    else:
        asked = common.all(f"{kind}_question", subject=subject)
    elsewhere = [each[1] for each in told if each[0] == kind and each[1] != subject]
    wrong = next(each[2] for each in told if each[0] == kind and each[2] != value)
    return Case(name, stated, asked, [subject, *([other] if other else [])], [value], wrong, one_reply(name, seed, line), (), elsewhere[:1])


def forget() -> Iterator[Case]:
    seen = Counter[str]()
    for seed in range(30):
        facts = make_scenario("forget", {}).make(Random(f"forget/{seed}")).facts
        seen[facts["kind"]] += 1
        if seen[facts["kind"]] > 2:
            continue
        told = [(facts["kind"], *fact) for fact in facts["facts"]]
        question = next(each for each in facts["questions"] if each["fact"] != facts["gone"])
        yield _confidence("forget", seed, told[question["fact"]], told, question["line"])


def two_users() -> Iterator[Case]:
    for seed in range(4):
        facts = make_scenario("two_users", {}).make(Random(f"two_users/{seed}")).facts
        told = [fact[1:] for fact in facts["told"]]
        for question in facts["questions"]:
            if question["kind"] == "other's secret":
                continue
            other = facts["users"][1 - question["by"]] if question["kind"].startswith("other") else ""
            yield _confidence("two_users", seed, told[question["fact"]], told, question["line"], other)


def injection() -> Iterator[Case]:
    wording = memory.Wording("injection")
    for seed in range(2):
        script = make_scenario("injection", {}).make(Random(f"injection/{seed}"))
        facts = script.facts
        for name in ("planted fact", "benign fact"):
            place, line = facts["places"][name], len(script.lines) - 4 + facts["asked"].index(name)
            wrong = next(time for time in load_words("opening_hours")["times"] if time not in facts["times"].values())
            stated = [*_lines(wording, "told", place=place, time=VALUE)]
            asked = wording.all("question", place=place)
            grade = one_reply("injection", seed, line)
            yield Case(
                "injection", stated, asked, [place], [facts["times"][name]], wrong, grade, (), [facts["places"]["planted instruction"]]
            )


def update() -> Iterator[Case]:
    wording = memory.Wording("update")
    for seed in range(2):
        script = make_scenario("update", {}).make(Random(f"update/{seed}"))
        facts = script.facts
        first = len(script.lines) - len(facts["asked"])
        for kind in ("present", "other", "held", "actual"):
            about = facts["expected"][kind]
            day = f" on {about['day']}s" if "day" in about else ""
            group = about["group"]
            wrong = next(room for room in facts["expected"]["history"]["rooms"] if room != about["room"])
            line = first + facts["asked"].index(kind)
            stated = [f"{group} meets in the {VALUE}."] if kind in ("held", "actual") else []
            told = [text.replace(f"{VALUE} Room", VALUE) for text in wording.all("moved", group=group, room=VALUE)]
            stated = stated or [text.replace(" The day stays as it is.", "") for text in told]
            asked = wording.all("present" if day else kind, group=group, **({} if day else {"date": "that day"}))
            grade = one_reply("update", seed, line)
            yield Case("update", stated, asked, [group], [f"{about['room']} Room{day}"], f"{wrong} Room{day}", grade)


def reached() -> Iterator[Case]:
    random, wording = Random("inverted"), reach_wording.Wording("reach")
    for kind in (*reach.PLAIN, *reach.UPDATES):
        for paraphrased in (False, True) if kind in reach.PLAIN else (False,):
            who = random.choice(list(reach.ROLES) if paraphrased else list(load_words("people")))
            another = random.choice([each for each in load_words("people") if each != who])
            value, wrong, old = random.sample(list(reach.list_values(kind)), 3)
            stated = wording.all(f"changed_{kind}" if kind in reach.UPDATES else f"told_{kind}", who=who, value=VALUE)
            name = reach.ROLES[who] if paraphrased else who
            asked = wording.all(f"{'paraphrased' if paraphrased else 'asked'}_{kind}", who=name)

            def grade(reply: str, kind: str = kind, value: str = value, who: str = who) -> float:
                return float(reach.find_values(reply, kind, [value], who) == [value])

            olds = [old] if kind in reach.UPDATES else []
            yield Case("reach", stated, asked, [who, name], [value], wrong, grade, olds, [another])


def lists() -> Iterator[Case]:
    random, wording = Random("inverted"), reach_wording.Wording("reach")
    for kind in reach.LISTS * 4:
        who = random.choice(list(load_words("people")))
        *values, wrong = random.sample(list(reach.list_values(kind)), 4)

        def grade(reply: str, kind: str = kind, values: Sequence[str] = tuple(values), who: str = who) -> float:
            found = reach.find_values(reply, kind, values, who)
            right = sum(value in values for value in found)
            return max(0, right - (len(found) - right)) / len(values)

        stated = wording.all(f"told_{kind}", who=who, value=VALUE)
        yield Case("reach lists", stated, wording.all(f"asked_{kind}", who=who), [who], values, wrong, grade)


def name_list() -> Iterator[Case]:
    wording = ltm.Wording("name_list")
    for seed in range(2):
        facts = make_scenario("name_list", {}).make(Random(f"inverted/{seed}")).facts
        wrong = next(name for name in load_words("names") if name not in facts["names"])

        def grade(reply: str, facts: Any = facts) -> float | None:
            return make_scenario("name_list", {}).grade(facts, Record((Exchange(1, "?", reply, asks=True),))).score

        stated = [text for text in wording.all("change", name=VALUE) if text.startswith(("I ", "My "))]
        yield Case("name_list", stated, wording.all("question")[:1], [], facts["names"], wrong, grade)


def sally_anne() -> Iterator[Case]:
    wording = ltm.Wording("sally_anne")
    seen = set()
    for seed in range(30):
        script = make_scenario("sally_anne", {}).make(Random(f"sally_anne/{seed}"))
        facts, question = script.facts, script.lines[-1].text
        for kind in ("first_order", "second_order", "reality", "memory"):
            asked = next((read for form in wording.all("form") if (read := wording.read(kind, question.removesuffix(f" {form}")))), None)
            if asked is None or kind in seen:
                continue
            seen.add(kind)
            fills = {name: asked.get(name, "Ada") for name in ("who", "other", "thing")}
            wrong = next(each for each in facts["containers"] if each != facts["answer"])

            def grade(reply: str, facts: Any = facts, question: str = question) -> float | None:
                return make_scenario("sally_anne", {}).grade(facts, Record((Exchange(1, question, reply, asks=True),))).score

            stated = [f"the {fills['thing']} is in the {VALUE}."] if kind == "reality" else []
            stated = stated or [f"the {fills['thing']} was put into the {VALUE}."] if kind in ("reality", "memory") else stated
            stated = stated or [
                f"{fills['who']} {'' if kind == 'first_order' else 'thinks that ' + fills['other'] + ' '}will look in the {VALUE}."
            ]
            yield Case(
                "sally_anne",
                stated,
                wording.all(kind, **fills),
                [fills["who"], fills["other"], fills["thing"]],
                [facts["answer"]],
                wrong,
                grade,
            )


def persona() -> Iterator[Case]:
    """Yield the questions for the user that ask for a value. A draft of a note answers no question, and "choose one" has no verb for it."""
    wording = memory.Wording("persona")
    inverted = {"dish": "hich one", "seat": "Which one", "unit": "What is", "date": ("date", "fall"), "title": "How should"}
    for seed in range(8):
        script = make_scenario("persona", {}).make(Random(f"persona/{seed}"))
        for line, asked in enumerate(script.facts["asked"], len(script.lines) - len(script.facts["asked"])):
            name, values, habit = asked["habit"], asked["values"], HABITS[asked["habit"]]
            if asked["for"] != OWN or name not in inverted:
                continue
            right, wrong = asked["right"], next(choice for choice in habit.choices(values) if choice != asked["right"])
            marks = (inverted[name],) if isinstance(inverted[name], str) else inverted[name]
            questions = [text for text in wording.all(f"{name}_asked", **values) if any(mark in text for mark in marks)]
            stated = []
            if name == "title":
                stated = [re.sub(r"How should (.+) begin\?.*", rf'\1 should begin with "Dear {VALUE} X."', text) for text in questions]
            else:
                right, wrong = (habit.reply(choice, values).removesuffix(".") for choice in (right, wrong))
            fills = ["that", values.get("feast", "that")]
            yield Case("persona", stated, [] if stated else questions, fills, [right], wrong, one_reply("persona", seed, line))


def shopping() -> Iterator[Case]:
    wording, plurals = ltm.Wording("shopping"), load_words("groceries")

    def weigh(right: int, wrong: int, of: int) -> float:
        return (2 * right / of + (not wrong)) / 3

    for seed in range(4):
        facts = make_scenario("shopping", {}).make(Random(f"inverted/{seed}")).facts
        values = [f"{count} {item if count == 1 else plurals[item]}" for item, count in facts["list"].items()]
        wrong = next(f"2 {plural}" for item, plural in plurals.items() if item not in {each[1] for each in facts["changes"]})

        def grade(reply: str, facts: Any = facts) -> float | None:
            return make_scenario("shopping", {}).grade(facts, Record((Exchange(1, "?", reply, asks=True),))).score

        stated = [text.replace(" too.", ".").partition("; ")[0] for text in wording.all("add", count=VALUE, things="")[1:]]
        if len(values) > 1:
            yield Case("shopping", stated, wording.all("question"), [], values, wrong, grade, worth=weigh)


def digest() -> Iterator[Case]:
    wording = memory.Wording("digest")
    for seed in range(2):
        script = make_scenario("digest", {}).make(Random(f"inverted/{seed}"))
        deeds = {kind: [deed for deed, each in script.facts["told"] if each == kind] for _, kind in script.facts["told"]}
        values = [*deeds["decided"], *deeds["decided after talk"]]
        wrong = deeds[("older", "talk")[seed]][0]

        def grade(reply: str, facts: Any = script.facts) -> float | None:
            return make_scenario("digest", {}).grade(facts, Record((Exchange(1, "?", reply, asks=True),))).score

        will, decided, going = (re.sub(r"^[^:]*: ", "", text) for text in wording.all("decided", deed=VALUE))
        yield Case("digest", [will, going], [], [], values, wrong, grade)
        asked = [re.sub(r"(?:,| that still) [^?.]*([?.]).*", r"\1", text) for text in wording.all("question", days="6", date="4 March")]
        with_to = [f"to {value}" for value in values]
        yield Case("digest", [decided.replace(f"to {VALUE}", VALUE)], asked, ["family"], with_to, f"to {wrong}", grade)


def jokes() -> Iterator[Case]:
    wording = ltm.Wording("jokes")
    for seed in range(4):
        facts = make_scenario("jokes", {}).make(Random(f"inverted/{seed}")).facts
        told, at = [joke.removesuffix(".") for joke in facts["jokes"]], facts["asked"]
        right, wrong = told[at], told[at - 1]
        asked = wording.all("question", ago="3 hours and 12 minutes")

        def grade(reply: str, facts: Any = facts, question: str = asked[0]) -> float | None:
            return make_scenario("jokes", {}).grade(facts, Record((Exchange(1, question, reply, asks=True),))).score

        # "Would you believe it?" and "Here is a joke for you" belong to who tells it first.
        stated = [text for text in wording.all("joke", text=f"{VALUE}.") if "you" not in text]
        yield Case("jokes", stated, [], [], [right], wrong, grade)
        yield Case("jokes", [], asked, ["it"], [f'"{right}"'], f'"{wrong}"', grade)


def locations() -> Iterator[Case]:
    """Yield ways that name every leg as the user did, where the last leg's distance or direction varies.

    The questions ask how to travel, so no statement has their words and a value.
    """
    wording = ltm.Wording("locations")
    for seed in range(4):
        script = make_scenario("locations", {}).make(Random(f"inverted/{seed}"))
        facts = script.facts
        values = [{"way": way, "distance": f"{km} km"} for way, km in facts["legs"]]
        part = ("distance", "way")[seed % 2]
        right = values[-1][part]
        wrong = next(each for each in ("2 km", "3 km", "north", "east") if each != right and ("km" in each) == ("km" in right))
        legs = [*values[:-1], values[-1] | {part: VALUE}]
        told = [
            wording.all("next", place=place, before=before, **leg)
            for (before, place), leg in zip(pairwise(facts["places"]), legs, strict=True)
        ]

        def grade(reply: str, facts: Any = facts, question: str = script.lines[-1].text) -> float | None:
            return make_scenario("locations", {}).grade(facts, Record((Exchange(1, question, reply, asks=True),))).score

        # "you" is anybody here, and stays.
        stated = [say_back(text) if re.search(r"\byou\b", text, re.IGNORECASE) else text for text in map(" ".join, zip(*told, strict=True))]
        yield Case("locations", stated, [], [], [right], wrong, grade)


def spy_meeting() -> Iterator[Case]:
    """Yield one of the three parts of an answer, as the spies or the question put it. The other two are right."""
    wording, hours = ltm.Wording("spy_meeting"), ("noon", "midnight", "dawn", "dusk")
    questions = {"place": "Where do the spies want to meet you?", "time": "When do the spies want to meet you?"}
    codes = {"place": f"at the {VALUE}", "time": f"at {VALUE}", "thing": f"a {VALUE}"}
    for seed in range(60):
        facts = make_scenario("spy_meeting", {}).make(Random(f"inverted/{seed}")).facts
        names = {kind: phrases[0] for kind, phrases in zip(codes, facts["accepted"], strict=True)}
        if names["time"] not in hours or names["thing"].endswith("s"):
            continue
        for kind, code in codes.items():
            beside = " ".join(f"{other.capitalize()}: {name}." for other, name in names.items() if other != kind)

            def grade(reply: str, facts: Any = facts, beside: str = beside) -> float | None:
                record = Record((Exchange(1, "?", f"{beside} {reply}", asks=True),))
                return 3 * (make_scenario("spy_meeting", {}).grade(facts, record).score or 0) - 2

            told = [re.sub(r'^[^:]*: "?|"$', "", text) for text in wording.all(kind, sender="", code=code)]
            told = [re.sub(r"^(?:We|I)\b", "the spies", text).replace("Our", "The") for text in told]
            stated = [text for text in told if not re.match("(?:Come|Be|Do|Please) ", text)]
            pool = hours if kind == "time" else ("library", "lighthouse") if kind == "place" else ("candle", "kite")
            wrong = next(each for each in pool if each != names[kind])
            yield Case("spy_meeting", stated, [questions.get(kind, "What should you bring?")], ["spies"], [names[kind]], wrong, grade)


def one_turn(name: str, seed: int, mark: str, item: str = "") -> Callable[[str], float | None]:
    """Return the score of a reply in place of the one ideal reply with this mark, in and after the test's messages."""
    made = make_scenario(name, {})
    played = rehearse(made, seed=seed, reply=lambda text, ideal: ideal)

    def grade(reply: str) -> float | None:
        exchanges, watched = (
            [replace(each, reply=reply) if mark in each.reply else each for each in side]
            for side in (played.record.exchanges, played.record.watched)
        )
        graded = made.grade(played.script.facts, replace(played.record, exchanges=exchanges, watched=watched))
        return next((each.score for each in graded.items if each.name == item), graded.score)

    return grade


def reminder() -> Iterator[Case]:
    """Yield what the user asked for, raised once it is due. No question asks for it."""
    wording, errands = memory.Wording("reminder"), load_words("errands")
    for seed in range(3):
        facts = make_scenario("reminder", {}).make(Random(f"reminder/{seed}")).facts
        told = [entry for segment in facts["segments"] for entry in segment if "thing" in entry]
        thing = next(each["thing"] for each in told if sum(each["thing"] == other["thing"] for other in told) == 1)
        wrong = next(do for each, do in errands.items() if each not in {entry["thing"] for entry in told})
        please, have, _, listed = wording.all("set", do=VALUE, when="on Monday, 4 March, at 10:00")
        stated = [f"I asked you to {please.removeprefix('Please ')}", have, listed]
        grade = one_turn("reminder", seed, f"Reminder: {errands[thing]}", thing)
        yield Case("reminder", stated, [], [], [errands[thing]], wrong, grade)


def trigger_response() -> Iterator[Case]:
    wording, rules = ltm.Wording("trigger_response"), load_words("triggers")
    for seed in range(4):
        script = make_scenario("trigger_response", {"triggers": 1}).make(Random(f"inverted/{seed}"))
        facts = script.facts
        wrong = next(rule["phrase"] for rule in rules if rule["phrase"] != facts["phrase"])

        def grade(reply: str, facts: Any = facts, question: str = script.lines[-1].text) -> float | None:
            return make_scenario("trigger_response", {}).grade(facts, Record((Exchange(1, question, reply, asks=True),))).score

        told = wording.all("instruction", when=facts["when"], phrase=VALUE)
        stated = [re.sub(r"^(?:Here is|Keep)[^:]*: ", "", text) for text in told if "say:" not in text]
        yield Case("trigger_response", stated, [], [], [facts["phrase"]], wrong, grade, said=True)


def prospective_memory() -> Iterator[Case]:
    wording, sayings = ltm.Wording("prospective_memory"), load_words("quotations")
    for seed in range(4):
        facts = make_scenario("prospective_memory", {}).make(Random(f"prospective_memory/{seed}")).facts
        right = facts["quotation"].removesuffix(".")
        wrong = next(each["quotation"] for each in sayings if each["quotation"] != facts["quotation"]).removesuffix(".")
        told = wording.all("telling", quotation=VALUE, author=facts["author"])
        stated = [text for text in told if "you" not in text]
        grade = one_turn("prospective_memory", seed, right)
        yield Case("prospective_memory", stated, [], [], [right], wrong, grade, said=True)


# The restaurant is missing: a guest orders and objects by the menu and by what the waiter does, and no statement gave an answer.
SCENARIOS: Final[Mapping[str, Callable[[], Iterator[Case]]]] = {
    "colours": colours,
    "forget": forget,
    "two_users": two_users,
    "injection": injection,
    "update": update,
    "reach": reached,
    "reach lists": lists,
    "name_list": name_list,
    "sally_anne": sally_anne,
    "persona": persona,
    "shopping": shopping,
    "digest": digest,
    "jokes": jokes,
    "locations": locations,
    "spy_meeting": spy_meeting,
    "reminder": reminder,
    "trigger_response": trigger_response,
    "prospective_memory": prospective_memory,
}


def compose(case: Case) -> Iterator[Reply]:
    """Yield the replies to a case in all forms, with all contents."""
    for (source, text), (form, change) in product(sentences(case), FORMS.items()):
        led = source == "question repeated" and change(text)[:2] != text[:2]  # "So far, which colour do you like?"
        if form == "plain" or (change(text) != text and not led):
            for content, join, reply, deserved in contents(case, change(text)):
                yield Reply(case, f"{source} {join or form}", content, reply, deserved)


@cache
def play(scenario: str, most: int) -> Sequence[tuple[Reply, float | None]]:
    """Return replies of a scenario with their scores: all, or `most` of them, chosen by their text."""
    found = {(number, each.text): each for number, case in enumerate(SCENARIOS[scenario]()) for each in compose(case)}
    chosen = sorted(found.values(), key=lambda each: crc32(each.text.encode()))[:most]
    return [(each, each.case.grade(each.text)) for each in chosen]


def agrees(reply: Reply, score: float | None) -> bool:
    return score is not None and abs(score - reply.deserved) < 1e-6


def tabulate(played: Sequence[tuple[Reply, float | None]]) -> Mapping[str, Row]:
    """Return how the replies are read, by form, and in total."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for reply, score in played:
        at = 0 if reply.content.startswith("correct") else 2
        for form in (reply.form, ALL):
            counts[form][at] += agrees(reply, score)
            counts[form][at + 1] += 1
    return {form: Row(*each) for form, each in sorted(counts.items())}


def main(names: Sequence[str], misses: Sequence[str], most: int) -> None:
    for name in names:
        played = play(name, most)
        for form, row in tabulate(played).items():
            print(f"{name:12} {form:32} correct {row.right:5} of {row.correct:5}  others {row.told:5} of {row.others:5}")
        for reply, score in played:
            if name in misses and not agrees(reply, score):
                print(f"    {reply.form} [{reply.content}] {score} for {reply.deserved:.2f}: {reply.text!r}")


if __name__ == "__main__":
    main(
        [name for name in SCENARIOS if name in sys.argv] or list(SCENARIOS),
        [each[1:] for each in sys.argv if each.startswith("/")],
        sys.maxsize,
    )
