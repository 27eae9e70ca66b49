"""notebook: keeps what it was told, looks it up by words and answers by general rules. No LLM; the default agent.

It is the honest baseline of a memory without understanding: what it scores, a notebook and a finger that runs down
its pages can score. Its rules know English a little (`longspan.agents.reference.language`), and nothing of any test. `?window=8k` lets it
keep only the newest 8000 tokens of the conversation, at four characters a token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, final

from longspan.agents.base import AgentError, AgentOptions, BaseAgent, Message, Reply, Tokens
from longspan.agents.reference.answers import LIGHT, affirmed, names, of_kind, place, sender, told_anew
from longspan.agents.reference.choices import answer as choose
from longspan.agents.reference.language import (
    FIRST_PERSON,
    FORM,
    KINDS,
    WORD,
    asks,
    content,
    duration,
    enclosed,
    instructs_form,
    near,
    options,
    requests,
    sentences,
    stem,
    wanted_keys,
    wants_json,
    wants_list,
)
from longspan.agents.reference.ledger import total
from longspan.agents.reference.notes import TALK, Concept, Found, Note, Notes, Unit, estimate
from longspan.agents.reference.orders import fires, order, quotation, said
from longspan.agents.reference.ways import Leg, ends, leg, way

__all__ = ["Notebook"]

TOLD = "OK."
"""What it says to whatever wants no answer."""

UNKNOWN = "I don't know."
MOST_LISTED = 50
MOST_THEN = 3
"""Of what was told at the same time it repeats no more, where nothing says which is meant."""
NEAR = 0.75
"""Units that fit a question at least so well as the best times this are about the same thing."""
ALIKE = 0.35
"""Units that fit so well may be."""
BRIEF = 4
"""A statement of so few telling words goes on about what was spoken of."""

_BRACKETED = re.compile(r"[\[{][^\[\]{}]{0,2000}[\]}]")
_COUNTS = frozenset(map(stem, "quantity amount count number units total qty".split()))
_NAMING = frozenset([stem("name"), *near(stem("name"))])
_KIND_WORDS = frozenset(map(stem, KINDS))
_PLACES = re.compile(
    r"\b(?:where|(?:which|what) (?:place|location|container|room|spot)|(?:in|inside|under|on|at) (?:what|which)|looking for|find|holds?)\b",
    re.IGNORECASE,
)
_AT_FIRST = re.compile(
    r"\b(?:at first|first of all|(?:in|at) the (?:very )?(?:beginning|start|outset)|originally|initially|to begin with)\b", re.I
)
_PASSED_ON = re.compile(
    r"\b(?:messages?|letters?|telegrams?|texts|hints?|transmissions?|contact\w*|whisper\w*|people|persons?|strangers?|senders?|agents?"
    r"|rendezvous|spies|spy|meetings?|gather\w*)\b|\b(?:they|everyone|everybody) (?:\w+ )?(?:tell|told|say|said|write|sent|want\w*)\b",
    re.IGNORECASE,
)
_REFERS = re.compile(r"\b(?:it|them|those|each of|that one|that)\b", re.IGNORECASE)
"""Means what another sentence names."""
_LISTING = re.compile(r"\b(?:list|array|every|each|all|so far)\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(?:what|where|when|who|how|why)\b")


@final
@dataclass(frozen=True)
class Request:
    """A message that may want an answer."""

    text: str
    sent_at: datetime
    key: str = ""
    """The key of a JSON object that the answer is for, where several are wanted."""

    @cached_property
    def question(self) -> str:
        """The sentences that ask, without those that only say in what form to answer."""
        parts = sentences(_BRACKETED.sub(" ", _BRACKETED.sub(" ", self.text[:20_000])))
        asking = [one for one in parts if asks(one) and not instructs_form(one)] or [one for one in parts if asks(one)]
        refers = not asking or any(map(_REFERS.search, asking))
        question = " ".join(parts[:3] if refers else asking)
        return question if set(content(question)) - _FORMAL else " ".join(parts[:3])

    @cached_property
    def head(self) -> str:
        """The stem of the noun that the question turns on: names of my *dogs*, which *tree*, my favourite *colour*."""
        stems = set(content(self.question)) - _FORMAL
        kinds = [other for one in content(self.question) for other in (one, *near(one)) if other in _KIND_WORDS]
        if kinds:
            return kinds[0]
        of = re.search(r"\bnames? of (?:(?:all|the|my|our|your) )*(\w+)", self.question, re.IGNORECASE)
        which = re.search(r"\b(?:what|which|whose|all|every|each)(?: (?:of|the|my|your|those|these))*\s+([^\W\d_]+)", self.question, re.I)
        named = [stem(match[1]) for match in (of, which) if match]
        named += [one for one in content(self.question) if one in _NAMING]
        return next((one for one in named if one in stems), "") or max(stems, default="")

    @cached_property
    def concepts(self) -> list[Concept]:
        """What the question is about; the noun it turns on counts more."""
        stems = [one for one in dict.fromkeys(content(self.question)) if one not in _FORMAL]
        keyed = [Concept.of(one, head=True) for one in content(self.key.replace("_", " ")) if one not in _FORMAL]
        return [*keyed, *(Concept.of(one, head=one == self.head) for one in stems)]

    @cached_property
    def known(self) -> frozenset[str]:
        """The stems that the question has itself, with what is near to them."""
        return frozenset(one for concept in self.concepts for one in concept.weights)

    @property
    def mine(self) -> bool:
        """Whether it asks about whoever asks."""
        return bool(FIRST_PERSON.search(self.question))

    @property
    def keys(self) -> list[str]:
        return wanted_keys(self.text)

    @property
    def as_json(self) -> bool:
        return wants_json(self.text)

    @property
    def ordered(self) -> bool:
        """Whether it gives an order for later."""
        return order(self.text) is not None

    @property
    def as_list(self) -> bool:
        return wants_list(self.text)


_FORMAL = frozenset(stem(word) for word in FORM) | frozenset(
    map(
        stem,
        """second minute hour half quarter exactly roughly around two three four five six seven eight nine ten twenty thirty forty
        fifty""".split(),
    )
)
"""Words about the form of an answer and about time, by which nothing is looked up."""


@final
class Notebook(BaseAgent):
    """A memory without a language model: keeps what it was told, finds it by words, answers by general rules.

    The rules are tried in order; the first that has something to say answers.
    """

    @property
    def models(self) -> Mapping[str, str]:
        """None: it costs nothing."""
        return {}

    class Options(AgentOptions):
        window: Tokens | None = None
        """How many tokens of the conversation it keeps, the newest; all where not given."""

    def __init__(self, target: str = "", options: AgentOptions | None = None) -> None:
        super().__init__(target, options)
        self._window: int | None = getattr(options, "window", None)
        self._notes = Notes(self._window)

    async def reply(self, message: Message) -> Reply:
        known = self._notes.turn(message.turn_id)
        if known is not None:
            return Reply(known.reply)
        text = self._notes.clip(message.text)
        self._notes.make_room(estimate(text))
        answer = self._with_appointments(text, self._answer(Request(text, message.sent_at)))
        self._notes.add(message.turn_id, text, message.sent_at, answer)
        return Reply(answer)

    async def observe(self, message: Message, reply: str) -> None:
        self._notes.add(message.turn_id, message.text, message.sent_at, self._notes.clip(reply))

    async def reset(self) -> None:
        self._notes = Notes(self._window)

    async def save(self, folder: Path) -> None:
        turns = [[note.turn_id, note.text, note.sent_at.isoformat(), note.reply] for note in self._notes]
        (folder / "notebook.json").write_text(json.dumps({"version": 1, "next": self._notes.next, "turns": turns}), encoding="utf-8")

    async def load(self, folder: Path) -> None:
        self._notes = _read(folder / "notebook.json", self._window)

    def _answer(self, request: Request) -> str:
        for rule in (
            self._on_cue,
            self._from_the_message,
            self._at_table,
            self._way,
            self._note_it,
            self._at_that_time,
            self._option,
            self._newest_of_kind,
            self._amounts,
            self._passed_on,
            self._listed,
            self._where,
            self._all_about,
            self._part,
        ):
            answer = rule(request)
            if answer is not None:
                return answer
        return TOLD

    def _on_cue(self, request: Request) -> str | None:
        """A standing instruction: when it is said, say that. The newest for a cue counts; an order itself is no cue."""
        ordered = order(request.text)
        if ordered is not None:
            return None if not ordered.stands and requests(ordered.rest) else TOLD
        heard = said(request.text)
        standing = (note.order for note in self._notes.orders if note.order and note.order.cue)
        return next((one.say for one in standing if fires(one.cue, heard)), None)

    def _from_the_message(self, request: Request) -> str | None:
        """Extraction: the answers stand in the message itself."""
        found = enclosed(request.text)
        return json.dumps(found, ensure_ascii=False) if found else None

    def _at_table(self, request: Request) -> str | None:
        """Choose from what is offered, when asked to, and keep to it."""
        if request.ordered:
            return None
        return choose(request.text, self._notes.offers, self._notes.choices, self._notes.offered_by)

    def _note_it(self, request: Request) -> str | None:
        """Whatever asks nothing is noted."""
        return None if requests(request.text) else TOLD

    def _at_that_time(self, request: Request) -> str | None:
        """How long ago: repeat what was told nearest to that time, as closely as it was said; in doubt what is about the same thing."""
        ago = duration(request.text)
        if ago is None:
            return None
        told = [note for note in self._notes if note.order is None and len(note.text) <= TALK]
        late = {note.number: abs(request.sent_at - note.sent_at - ago[0]) for note in told}
        if not late:
            return UNKNOWN
        rounding = max(min(late.values()), ago[1] / 2 + timedelta(seconds=30))
        then = sorted((note for note in told if late[note.number] <= rounding), key=lambda note: late[note.number])
        about = {found.unit.note: found.score for found in reversed(self._notes.look_up(request.concepts))}
        fitting = [note for note in then if note.number in about]
        if fitting:
            return max(fitting, key=lambda note: about[note.number]).text
        plain = [note for note in then if not _has_purpose(note)] or then
        return "\n".join(note.text for note in plain[:MOST_THEN])

    def _option(self, request: Request) -> str | None:
        """A choice among options: the one whose words were met most lately and most often."""
        offered = options(request.text)
        lately = self._notes.lately() if offered else {}
        return max(offered, key=lambda option: _overlap(option[1], lately))[0] if offered else None

    def _amounts(self, request: Request) -> str | None:
        """A list of things with amounts: what all that was added, taken away and set comes to."""
        keys = request.keys
        count_key = next((key for key in keys if stem(key.split("_")[-1]) in _COUNTS), None)
        counted = re.search(r"\b(?:how many|quantit\w+|amounts?)\b", request.text, re.IGNORECASE)
        bought = re.search(
            r"\b(?:shopping|groceries|buy|purchase|(?:my|our|the) (?:list|basket|cart|trolley|inventory))\b", request.question, re.I
        )
        if not count_key and not (counted and request.as_list) and not bought:
            return None
        since = self._notes.line(content(request.question + " list shopping"))
        told = (note for note in self._notes if note.number >= since and note.changes and not any(map(asks, sentences(note.text))))
        left = total(change for note in told for change in note.changes)
        if not left and not count_key:
            return None
        amounts = {thing: int(count) if count == int(count) else count for thing, count in left.items()}
        if not wants_json(request.text):
            return "\n".join(f"{count} {thing}" for thing, count in amounts.items())
        key = next((key for key in keys if key != count_key), "item")
        return json.dumps([{key: thing, count_key or "quantity": count} for thing, count in amounts.items()], ensure_ascii=False)

    def _way(self, request: Request) -> str | None:
        """A way from one place to another: the newest statements that lead there."""
        legs: list[Leg] = []
        places: set[str] = set()
        for found in self._notes.units():
            told = leg(found.unit.text, places)
            if told is not None:
                legs.append(told)
                places |= {told.origin, told.place}
        asked = ends(request.text, legs)
        return "\n".join(way(legs, *asked)[:MOST_LISTED]) or None if asked else None

    def _passed_on(self, request: Request) -> str | None:
        """Messages of several people that were passed on: all that are asked for by their names, else all of them."""
        if not _PASSED_ON.search(request.text) and len(names(request.text, frozenset())) < 2:
            return None
        letters = [found.unit for found in self._notes.units(self._notes.line(content(request.question))) if found.unit.sender]
        asked = {name.casefold() for name in WORD.findall(request.text)}
        named = [unit for unit in letters if asked & {name.casefold() for name in WORD.findall(unit.sender)}]
        about = letters if _PASSED_ON.search(request.text) and not request.as_json else []
        units = named if len({unit.sender for unit in named}) > 1 else about
        return "\n".join(unit.text for unit in units[-MOST_LISTED:]) if len({unit.sender for unit in units}) > 1 else None

    def _listed(self, request: Request) -> str | None:
        """A list: the answering parts of all that is about the same thing, oldest first."""
        if (
            not request.as_list
            or (request.keys and not re.search(r"\blists?\b|\[", request.text))
            or not (request.as_json or _LISTING.search(request.text))
        ):
            return None
        units = [found for found in self._notes.look_up(request.concepts) if not found.unit.sender]
        head = Concept.of(request.head).weights if request.head else {}
        naming = request.head in _NAMING
        units = [found for found in units if found.unit.stems & set(head)] or [
            found for found in units if found.score >= ALIKE * units[0].score
        ]
        if naming and request.mine:
            since = self._notes.line(request.known)
            units = [found for found in self._notes.units(since) if _names_oneself(found.unit)]
        parts: list[str] = []
        for found in sorted(units, key=lambda found: found.id)[-MOST_LISTED:]:
            parts += names(found.unit.text, request.known)
        if not parts and not naming:
            parts = [told_anew(found.unit.text, request.known, frozenset()) for found in sorted(units, key=lambda found: found.id)]
        parts = [part for part in dict.fromkeys(parts) if not (naming and part.isupper())]
        return json.dumps(parts, ensure_ascii=False)

    def _where(self, request: Request) -> str | None:
        """Where something is: the place in the newest statement about it that has one; in the oldest, if asked for the beginning."""
        if not _PLACES.search(request.question):
            return None
        common = [Concept.of(one) for one in content(request.question) if one not in _FORMAL and one not in _names_in(request.question)]
        persons = [Concept.of(one) for one in content(request.question) if one in _names_in(request.question)]
        first = bool(_AT_FIRST.search(request.question))
        for concepts in (common, persons):
            things = frozenset(one for concept in concepts for one in concept.weights)
            found = [one for one in self._notes.look_up(concepts) if place(one.unit.text, things, request.known)]
            best = sorted((one for one in found if one.score >= NEAR * found[0].score), key=lambda one: one.id)
            if best:
                return self._in_form(request, place(best[0 if first else -1].unit.text, things, request.known, first=first))
        return None

    def _newest_of_kind(self, request: Request) -> str | None:
        """What is one of a kind, as a colour is: the newest that was told of whoever asks, or of what the question is about."""
        head = request.head
        if head not in _KIND_WORDS or (request.as_json and request.as_list):
            return None
        about = request.known - {head}
        answer = ""
        for found in sorted(self._notes.look_up([Concept({head: 1.0}, head=True)]), key=lambda found: found.id):
            unit = found.unit
            brief = len(unit.stems) <= BRIEF or FIRST_PERSON.search(unit.text)
            related = unit.stems & request.known or brief if request.mine else unit.stems & about
            told = of_kind(unit.text, head) if related and not unit.sender else []
            if told:
                answer = next((one for one in reversed(told) if stem(one) != stem(answer)), answer)
        return self._in_form(request, answer) if answer else None

    def _all_about(self, request: Request) -> str | None:
        """Several questions at once: everything that is about them, in whole."""
        if len(set(_SEVERAL.findall(request.question.casefold()))) < 2:
            return None
        units = sorted(self._alike(request, ALIKE)[:6], key=lambda found: found.id)
        return "\n".join(found.unit.text for found in units) or None

    def _part(self, request: Request) -> str | None:
        """A question: what the newest of what fits it best tells anew."""
        if not self._alike(request, NEAR):
            return UNKNOWN if request.concepts else TOLD
        if len(request.keys) > 1:
            return json.dumps({key: self._newest(Request(request.text, request.sent_at, key)) for key in request.keys}, ensure_ascii=False)
        return self._in_form(request, self._newest(request))

    def _newest(self, request: Request) -> str:
        """The answering part of the newest of what fits a question best; a name where one is asked for."""
        alike = sorted(self._alike(request, NEAR), key=lambda found: found.id)
        text = alike[-1].unit.text
        before = frozenset(one for found in alike[:-1] for one in found.unit.stems)
        if request.head in _NAMING or re.search(r"\b(?:who|whom|names?|called)\b", request.question, re.IGNORECASE):
            named = names(affirmed(text), request.known)
            if named:
                return named[-1]
        return told_anew(text, request.known, before)

    def _in_form(self, request: Request, answer: str) -> str:
        """An answer in the form that is asked for: a JSON object, or a sentence."""
        if request.keys or request.as_json:
            return json.dumps({(request.keys or ["answer"])[0]: answer}, ensure_ascii=False)
        return answer[:1].upper() + answer[1:] + ("" if answer[-1:] in ".!?" else ".")

    def _alike(self, request: Request, share: float) -> list[Found]:
        """What fits the question at least `share` as well as the best, best first."""
        found = self._notes.look_up(request.concepts)
        return [one for one in found if one.score >= share * found[0].score]

    def _with_appointments(self, text: str, answer: str) -> str:
        """Append what was to be appended to this very reply, by an earlier message or this one."""
        number = self._notes.next
        due = [
            (note.text, note.number, note.order.say) for note in self._notes.orders if note.order and note.order.nth == number - note.number
        ]
        ordered = order(text)
        if ordered is not None and ordered.nth == 0:
            due.insert(0, (text, number, ordered.say))
        texts = [say or self._quotation(told, before) for told, before, say in reversed(due)]
        return "\n".join([answer, *filter(None, texts)])

    def _quotation(self, told: str, before: int) -> str:
        """What an instruction means by "the quote": the one told before in a message that shares most words with it."""
        about = set(content(told))
        best, most = "", -1
        for note in reversed(self._notes):
            if note.number >= before or note.order is not None or len(note.text) > TALK or not (found := quotation(note.text)):
                continue
            shared = len(about & set(content(note.text)))
            if shared > most:
                best, most = found, shared
        return best


def _has_purpose(note: Note) -> bool:
    """Whether a turn is told for some other purpose than to be told: a change of a list, a message passed on."""
    if "?" in note.text:
        return False
    return any(change.kind != "drop" for change in note.changes) or bool(note.offers) or bool(sender(note.text))


def _names_in(text: str) -> frozenset[str]:
    """The stems of the words of a text that are names."""
    return frozenset(stem(word) for name in names(text, frozenset()) for word in name.split())


_ONESELF = re.compile(
    r"\b(?:i(?:['’]m| am|['’]ve| have| go| went| was| shall| will| would|['’]d|['’]ll)?|me|my|myself|you)\b", re.IGNORECASE
)
_NAMING_WORD = _NAMING | set(
    map(stem, "speak talk greet answer respond introduce dub christen rechristened baptise nick identify identity surname rename".split())
)


_PRESENTS = re.compile(r"\b(?i:i am|i['’]m|this is|meet|the name(?:['’]s| is)) [^\W\d_a-z]\w+|[^\W\d_a-z]\w+ (?:here|speaking)\b")
"""Says who one is, as on the telephone."""


def _names_oneself(unit: Unit) -> bool:
    """Whether a statement gives a name to one of the two who talk: it presents one, or it says I or you and names in
    words of naming, or says little besides a name.
    """
    if unit.sender or (not (presents := bool(_PRESENTS.search(unit.text))) and not _ONESELF.search(unit.text)):
        return False
    if presents or unit.stems & _NAMING_WORD:
        return True
    named = [name for name in names(unit.text, frozenset()) if not re.search(rf"\b(?:the|an?) {re.escape(name)}\b", unit.text)]
    return len(named) == 1 and len(unit.stems - LIGHT - _names_in(unit.text)) <= 1


def _overlap(text: str, lately: Mapping[str, float]) -> float:
    """How much of a text's words were met lately, by the word."""
    stems = set(content(text[:20_000]))
    return sum(lately.get(one, 0.0) for one in sorted(stems)) / max(1, len(stems))


def _read(path: Path, window: int | None) -> Notes:
    """The notes that were saved in a file. Raises AgentError where it is missing or damaged."""
    notes = Notes(window)
    try:
        saved: Any = json.loads(path.read_text(encoding="utf-8"))
        turns, following = saved["turns"], saved["next"]
        if saved["version"] != 1 or type(following) is not int or following < len(turns):
            raise ValueError("its version or its count of turns is not right")
        notes.next = following - len(turns)
        for turn_id, text, sent_at, reply in turns:
            if not (isinstance(turn_id, str) and isinstance(text, str) and isinstance(reply, str)):
                raise TypeError("a turn is not text")
            at = datetime.fromisoformat(sent_at)
            if at.tzinfo is not None:
                raise ValueError("virtual time has no zone")
            notes.add(turn_id, text, at, reply)
        if notes.next != following:
            raise ValueError("a turn is there twice")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise AgentError(f"notebook cannot read its snapshot {path.name}: {type(error).__name__}: {error}") from error
    return notes
