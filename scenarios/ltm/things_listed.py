"""Read a list of things and quantities from a reply: JSON with any keys, bullets, tables, records or prose."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.lenient_json import find_json
from longspan.simulator.base.words import SMALL, number, plain
from longspan.simulator.reading.dates import MONTHS
from longspan.simulator.reading.labelled_lists import ListLabel, classify_label, find_labelled_lists
from longspan.simulator.reading.matching import is_slip
from longspan.simulator.reading.replies.layout import drop_asides
from longspan.simulator.reading.replies.lexicon import LEXICON, Stance
from longspan.simulator.reading.replies.list_items import split_items
from longspan.simulator.reading.replies.mentions import Mention, drop_replaced, is_correction
from longspan.simulator.reading.replies.reading import Reading
from longspan.simulator.reading.replies.splitting import Clause
from longspan.simulator.reading.replies.values import Values

__all__ = ["Entry", "fold_plural", "thing_in", "things_listed"]

_ITEM = frozenset({"item", "name", "product", "article", "thing", "item name", "product name"})
_QUANTITY = frozenset({"quantity", "qty", "amount", "count", "number", "num", "units", "how many"})
_MEASURES = frozenset(
    "a an the of some more each x bag bar bottle box bunch can carton head item jar loaf pack package packet pair pc pcs piece roll stick"
    " tin tube unit qty quantity".split()
)
"""Words, in the singular, that do not change the item."""


@final
class Entry(NamedTuple):
    """An item in an answer. `quantity` is None if the answer gives none that is readable."""

    item: str
    quantity: float | None


def things_listed(reply: str, things: Sequence[str]) -> dict[str, Entry]:
    """Return the entries of the list that a reply gives, by thing as returned by `thing_in`. `things`: the known ones.

    Repeated things are summed, and those with a sum of zero or less are dropped. Runs in linear time and never raises.
    """
    things = tuple(dict.fromkeys(things))
    reply = _TWICE.sub(r"\2", _reorder_words(drop_asides(reply), things))
    answered = _find_answer(reply, things)
    return _sum_entries(
        _amend_entries(answered, reply, things) if answered else list(_find_written(_keep_last_number(reply), things)), things
    )


def _amend_entries(entries: list[Entry], reply: str, things: Sequence[str]) -> list[Entry]:
    """Return the entries of a JSON list with corrections that follow it: "Correction: it is 3 screws"."""
    said = Reading(_keep_last_number(reply[max((span.end for span in find_json(reply)), default=len(reply)) :]))
    if not any(map(is_correction, said.clauses)):
        return entries
    known = _keys(things)
    amended = {_match_thing(thing_in(entry.item), known): entry for entry in _in_prose(said.text, things) if entry.quantity is not None}
    return [entry for entry in entries if _match_thing(thing_in(entry.item), known) not in amended] + list(amended.values())


def _find_answer(reply: str, things: Sequence[str]) -> list[Entry]:
    """Return the entries of the last JSON list that the reply calls current or complete, or else of the last list.

    Lists of past or removed items are the last resort. Without any list, all objects count together.
    """
    known = _keys(things)
    found = [(item, entries) for item in find_labelled_lists(reply) if (entries := list(_entries(item.value, known)))]
    lists = [(item.called, entries) for item, entries in found if isinstance(item.value, list) or _holds_entries(item.value)]
    if not lists:
        return [entry for _, entries in found for entry in entries]
    best = min(_RANKS[what] for what, _ in lists)
    return next(entries for what, entries in reversed(lists) if _RANKS[what] == best)


_RANKS = {ListLabel.COMPLETE: 0, ListLabel.CURRENT: 0, ListLabel.NOTHING: 1, ListLabel.PAST: 2, ListLabel.OTHER: 3}


def _holds_entries(value: Mapping[str, Any]) -> bool:
    return any(isinstance(item, (list, dict)) for item in value.values())


def _entries(value: Any, known: Collection[str]) -> Iterator[Entry]:
    """Yield the entries in a JSON value: objects with an item, mappings of items to quantities, pairs, strings.

    An object's keys may be in any language: the string that names a `known` thing is its item, and its last number the quantity.
    """
    if isinstance(value, str):
        yield from _read_phrase(value)
    elif isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and _quantity(value[1]) is not None:
        yield Entry(value[0], _quantity(value[1]))
    elif isinstance(value, list):
        for item in value:
            yield from _entries(item, known)
    elif isinstance(value, dict):
        said = {key: text for key, text in value.items() if isinstance(text, str)}
        items = [text for key, text in said.items() if plain(key) in _ITEM] or [text for text in said.values() if thing_in(text) in known]
        if not items:
            yield from _read_object(value, known)
            return
        counts = _counts(value)
        yield from (Entry(entry.item, counts[-1] if counts else entry.quantity) for entry in _read_phrase(items[0]))


def _counts(value: Mapping[str, Any]) -> list[float]:
    """Return the quantities in an object: the numbers under keys for quantities, or else all numbers."""
    found = [(plain(key) in _QUANTITY, count) for key, item in value.items() if (count := _quantity(item)) is not None]
    return [count for called_so, count in found if called_so] or [count for _, count in found]


def _read_object(value: Mapping[str, Any], known: Collection[str]) -> Iterator[Entry]:
    """Yield the entries of an object that is not an entry itself: nested ones, or else its keys with their quantities."""
    inner = [(key, item) for key, item in value.items() if isinstance(item, (list, dict))]
    if len(inner) > 1:
        ranks = {key: _RANKS[classify_label(key)] for key, _ in inner}
        best = min(ranks.values())
        inner = [(key, item) for key, item in inner if ranks[key] == best]
    for key, item in inner:
        names = [plain(name) for name in item] if isinstance(item, dict) else []
        described = (thing_in(key) in known or not _QUANTITY.isdisjoint(names)) and _ITEM.isdisjoint(names)
        if described and isinstance(item, dict) and (counts := _counts(item)):
            yield Entry(key, counts[0])
        else:
            yield from _entries(item, known)
    if not inner:
        yield from (Entry(key, _quantity(count)) for key, count in value.items() if _quantity(count) is not None)


def _read_phrase(text: str) -> Iterator[Entry]:
    """Yield the entry in a string, if any: "3 carrots", "carrots (3)", "a broom", "broom"."""
    if re.search(r"\d", bare := re.sub(r"\([^()]*\)", " ", text)):
        text = bare  # "2 cabbages (3 less 1)"
    counts = re.findall(r"\d{1,6}(?:\.\d{1,3})?", text)
    name = re.sub(r"\d{1,6}(?:\.\d{1,3})?", " ", text)
    if not counts:
        said = [word for at, word in enumerate(re.findall(r"[^\W\d_]+", name)) if number(word) is not None and (len(word) > 2 or not at)]
        counts = said if len(said) == 1 else []
        name = re.sub(rf"\b{said[0]}\b(?: of (?:them|these))?", " ", name) if counts else name
    if thing_in(name):
        yield Entry(name.strip(" -:()*\u00d7\n\t"), number(counts[0]) if len(counts) == 1 else None)


def _quantity(value: Any) -> float | None:
    """Return the quantity in a JSON value: a number, or a string with one number in it; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str) or len(value) > 60:
        return None
    value = re.sub(r"\([^()]*\)", " ", value)  # "3 (5 - 2)"
    whole = number(value)
    numbers = re.findall(r"\d{1,6}(?:\.\d{1,3})?", value) or [word for word in value.split() if number(word) is not None]
    return whole if whole is not None else number(numbers[0]) if len(numbers) == 1 else None


def _reorder_words(reply: str, things: Sequence[str]) -> str:
    """Return a reply with reordered two-word names restored: "tent pegs" for "pegs for the tent"."""
    return _pair_pattern(tuple(things)).sub(lambda match: f"{match[2]} {match[1]}", reply)


@lru_cache(maxsize=50)
def _pair_pattern(things: Sequence[str]) -> re.Pattern[str]:
    pairs = [thing.split() for thing in things if thing.count(" ") == 1]
    named = "|".join(rf"{re.escape(noun)}(?:e?s)?(?= (?:\w+ (?:\w+ )?|\(){re.escape(whose)}s?\b)" for whose, noun in pairs)
    whose = "|".join(re.escape(whose) for whose, _ in pairs)
    return re.compile(rf"\b({named}) (?:(?:for|of) (?:the |an? |your |my )?|\()({whose})s?\b\)?", re.IGNORECASE)


def _keep_last_number(reply: str) -> str:
    """Return a reply with only the last number of corrections and calculations: "4, no, 3", "6, then 4", "6 - 2 = 4"."""
    for pattern in (_CONCLUDED, _SERIES, _FOLLOWED):
        reply = pattern.sub("", drop_replaced(reply, _A_NUMBER))
    return _RECKONED.sub(lambda match: f"{match[1] or ''} ", reply)


_COUNT: Final = rf"(?:\d{{1,3}}|{'|'.join(SMALL)})"
_A_NUMBER: Final = rf"\b{_COUNT}\b"
_TWICE: Final = re.compile(rf"\b({'|'.join(SMALL)}) ?\((\d{{1,3}})\)", re.IGNORECASE)
"""A number in words and again in figures: "four (4)"."""
_SERIES: Final = re.compile(
    rf"{_A_NUMBER}(?:, ?(?:then )?{_A_NUMBER}){{1,20}},? (?:and )?(?:finally|lastly|then|now|in the end|at last) (?={_A_NUMBER}(?! [a-z]))",
    re.IGNORECASE,
)
"""A quantity's history: "4, 6, 8 and finally 3"."""
_CONCLUDED: Final = re.compile(rf"(?<=:)[^:;\n]{{1,80}}?(?:->|=>|=|\u2192|\u27a1)\s{{0,3}}(?={_A_NUMBER}[^\S\n]{{0,3}}(?:[;,.\n]|$))")
"""A calculation before the result on a line."""
_FOLLOWED: Final = re.compile(
    rf"{_A_NUMBER}[\s,;(]{{0,3}}(?:->|=>|\u2192|\u27a1|(?:and )?(?:then|now|later|finally|in the end))\s{{0,3}}(?={_A_NUMBER}(?! [a-z]))",
    re.IGNORECASE,
)
"""A number that is later replaced by another."""
_RECKONED: Final = re.compile(
    rf"{_A_NUMBER}(\s[a-z]{{3,20}}(?:\s[a-z]{{3,20}})?(?=\s(?:minus|less|plus)\b))?(?:[\s,(]{{0,3}}(?:[-+\u2212\u2013]|minus|less|plus|and)\s{{0,2}}{_A_NUMBER}){{1,9}}"
    rf"[\s,)]{{0,3}}(?:=|so|makes|leaves|equals|is|are)\s{{0,2}}(?:that )?(?={_A_NUMBER})",
    re.IGNORECASE,
)
"""The terms of a calculation."""


def _find_written(reply: str, things: Sequence[str]) -> Iterator[Entry]:
    """Yield the entries of a list or table that is not JSON, or else of prose.

    In prose, things that are not denied count, with the number before them ("three lettuces", "2x cabbage") or after them ("whisks
    (4)").
    """
    rows = split_items(reply)
    entries: list[Entry] = []
    known, now = _keys(things), _present(reply)
    for cells in rows:
        counts = [count for cell in (*cells[1:], cells[0]) if (count := _quantity(cell)) is not None] if len(cells) > 1 else []
        if now < len(cells) and (count := _quantity(cells[now])) is not None:
            counts = [count]
        named = [_part(cell, known) for cell in cells if _quantity(cell) is None or len(cells) == 1]
        if len(cells) == 1 and (several := _several(cells[0], known)):
            entries += several
            continue
        entries += (Entry(entry.item, counts[0] if counts else entry.quantity) for cell in named[:1] for entry in _read_phrase(cell))
    counted = 2 * sum(entry.quantity is not None for entry in entries) > len(entries)
    for entry in entries:
        said = set(plain(entry.item).split())
        speaks = (_NOTHING | _ITEM | _QUANTITY) & said or (entry.quantity is None and entry.item[-1:] in "!?.:;")
        if not counted or not speaks or _match_thing(thing_in(entry.item), known) in known:
            yield entry  # not a heading, nor a sentence around the list
    if not rows:
        yield from _in_prose(reply, things)


def _present(reply: str) -> int:
    """Return the index of a table's column with current quantities, or an index beyond all columns."""
    header = _HEADER.search(reply)
    titles = [plain(title) for title in header[1].strip().strip("|").split("|")] if header else []
    return next((at for at, title in enumerate(titles) if LEXICON.stance(title) == Stance.CURRENT or _LEFT.search(title)), len(reply))


def _part(cell: str, known: Collection[str]) -> str:
    """Return the part of a cell that counts a known thing, without parts that describe it: "Greengrocer - 3 lettuces"."""
    parts = _PARTED.split(cell)
    named = [part for part in parts if any(thing_in(entry.item) in known for entry in _read_phrase(part))]
    if len(parts) < 2 or len(named) != 1:
        return cell
    counts = re.findall(r"\d{1,6}(?:\.\d{1,3})?", cell)
    return named[0] if re.search(r"\d", named[0]) else f"{named[0]} {counts[0]}" if len(counts) == 1 else cell


def _several(cell: str, known: Collection[str]) -> list[Entry]:
    """Return the entries of a cell that counts several things: "Kitchen shop - 4 whisks, 1 bowl"; empty if it does not."""
    said = _PARTED.split(re.sub(r"\([^()]*\)", " ", cell))[-1]
    found = [list(_read_phrase(part)) for part in _COUNTED.split(said)]
    alike = all(len(each) == 1 and each[0].quantity is not None and len(each[0].item.split()) <= WORDS for each in found)
    entries = [entry for each in found for entry in each]
    keys = [_match_thing(thing_in(entry.item), known) for entry in entries]
    return entries if len(entries) > 1 and alike and any(key in known for key in keys) and _NOTHING.isdisjoint(keys) else []


WORDS: Final = 3
"""Maximum number of words in the name of a thing."""
_COUNTED: Final = re.compile(r",\s{0,3}(?:and )?(?=\d{1,3}\s?x?\s[a-z])|\s(?:and|&|\+)\s(?=\d{1,3}\s?x?\s[a-z])", re.IGNORECASE)
_HEADER: Final = re.compile(r"^(?=[^\n|]*\|)([^\n]*)\n[ \t]*\|?[ \t]*:?-{2,}", re.MULTILINE)
_LEFT: Final = re.compile(r"\b(?:left|remaining|remains|total)\b")
_PARTED: Final = re.compile(r"\s+[-\u2013\u2014]\s+|:\s+")


def _in_prose(reply: str, things: Sequence[str]) -> Iterator[Entry]:
    """Yield the entries of a reply in prose.

    If a thing is mentioned several times, mentions with a number count. If the reply has a conclusion, only the text after its beginning
    counts.
    """
    values = Values(things, _ALSO)
    said = Reading(_correct_things(reply, things))
    found: list[tuple[Mention, float | None]] = []
    each: float | None = None
    shared = {clause.sentence: number(every[1]) for clause in said.clauses if (every := _OF_EACH.search(clause.text))}
    for mention in said.mentions(values):
        clause, count = said.clauses[mention.clause], _number(said.clauses, mention)
        each = count if _EACH.search(clause.text[: mention.start]) else each if clause.link == "joint" and count is None else None
        count = each if count is None else count
        count = shared.get(clause.sentence) if count is None else count
        gone = _GONE.match(clause.text, mention.end)
        if clause.gap.strip() == ":" and LEXICON.pattern("gone").fullmatch(said.clauses[mention.clause - 1].text):
            continue  # "Removed: 3 carrots"
        gone = gone if _count_left(said.clauses, mention) is None else None
        if mention.how < Stance.DENIED and not (gone and (count is None or not gone["since"])):
            found.append((mention, count))
    counted = {mention.value for mention, count in found if count is not None}
    found = [(mention, count) for mention, count in found if count is not None or mention.value not in counted]
    surest = {mention.value: mention.how for mention, _ in sorted(found, key=lambda each: -each[0].how)}
    found = [(mention, count) for mention, count in found if mention.how < Stance.DATED or surest[mention.value] >= Stance.DATED]
    found = found[_since(said.clauses, [mention for mention, _ in found], values) :]
    yield from (Entry(mention.value, count) for mention, count in found)
    places = {mention.clause for mention, _ in found}
    for at, clause in enumerate(said.clauses):
        listed = (at - 1 in places and (clause.link == "joint" or clause.gap == "\n")) or (":" in clause.gap and at - 2 in places)
        if at not in places and listed and (other := _OTHER.fullmatch(clause.text)) and not _NOTHING.intersection(other[2].split()):
            places.add(at)
            yield Entry(other[2], number(other[1]))


def _correct_things(reply: str, things: Sequence[str]) -> str:
    """Return a short reply with single wrong letters in things corrected."""
    words = list(_WORD.finditer(reply))
    # In a long reply, a correct word is too easily mistaken for a misspelled thing.
    if len(words) > BRIEF:
        return reply
    known: dict[str, list[str]] = {}
    for thing in things:
        known.setdefault(thing[0], []).append(thing)
    mended, at = "", 0
    for many, begin in ((many, begin) for begin in range(len(words)) for many in (2, 1)):
        group = words[begin : begin + many]
        start, end = group[0].start(), group[-1].end()
        said = reply[start:end]
        if start < at or len(group) < many or (many > 1 and _WORD.sub("", said).strip()):
            continue
        key = thing_in(said)
        meant = [thing for thing in known.get(key[:1], ()) if key != thing_in(thing) and is_slip(key, thing_in(thing))]
        if len(meant) == 1 and key not in _keys(things) and plain(said) not in LEXICON.words:
            mended, at = f"{mended}{reply[at:start]}{meant[0]}", end
    return mended + reply[at:]


BRIEF: Final = 60
"""Maximum number of words in a reply whose spelling is corrected."""


def _since(clauses: Sequence[Clause], found: Sequence[Mention], values: Values) -> int:
    """Return the index of the first mention in a conclusion that names all things again, or 0."""
    every, named = {mention.value for mention in found}, set[str]()
    for at in range(len(found) - 1, 0, -1):
        named.add(found[at].value)
        heads = range(found[at - 1].clause + 1, found[at].clause + 1)
        if named == every and any(_concludes(clauses[head], values) for head in heads[-NEAR:]):
            return at
    return 0


def _concludes(clause: Clause, values: Values) -> bool:
    """Return whether the words of a clause before its first thing announce the current list."""
    found = values.find(clause.text)
    head = clause.text[: found[0].start] if found else clause.text
    return LEXICON.stance(head) == Stance.CURRENT or LEXICON.has("concluded", head)


def _number(clauses: Sequence[Clause], mention: Mention) -> float | None:
    """Return the number that a clause gives for a thing, before it or else after it."""
    here = clauses[mention.clause]
    text = here.text
    if (left := _count_left(clauses, mention)) is not None:
        return left
    if became := _BECAME.match(text, mention.end):
        return number(became[1])
    before = _trailing_number(text[max(0, mention.start - 40) : mention.start])
    if before is not None:
        return before
    following = clauses[mention.clause + 1 : mention.clause + 2] if _IS.fullmatch(text, mention.end) else ()
    behind = (
        _COUNT_BEHIND.match(text, mention.end)
        or _STANDS_AT.match(text, mention.end)
        or next((_BEHIND.fullmatch(each.text) for each in following), None)
    )
    return number(behind[1]) if behind else None


def _count_left(clauses: Sequence[Clause], mention: Mention) -> float | None:
    """Return how much of a thing is left according to the sentence that names it."""
    sentence = clauses[mention.clause].sentence
    rest = [each.text for each in clauses[mention.clause + 1 : mention.clause + NEAR] if each.sentence == sentence]
    left = next((match for each in rest if (match := _LEFT_OVER.fullmatch(each))), None)
    return number(left[1] or left[2]) if left else None


def _trailing_number(before: str) -> float | None:
    """Return the number at the end of the words before a thing: "2x", "three", "half a dozen", "four bags of"."""
    if _RANGE.search(before):
        return None
    words = [word for word in before.split() if word in ("a", "an", "pair") or fold_plural(word) not in _MEASURES]
    for many in (3, 2, 1):
        said = number(_TIMES.sub("", " ".join(words[-many:])))
        if said is not None:
            return said
    return None


_RANGE: Final = re.compile(r"(?<!from )\b\d{1,3} (?:to|or) \d{1,3} $")
_TIMES: Final = re.compile(r"(?<=\d) ?x$")
_COUNT_BEHIND: Final = re.compile(rf" x? ?(\d{{1,3}}|(?:{'|'.join(SMALL)})(?=(?: pieces?| pcs)?$))\b")
_STANDS_AT: Final = re.compile(
    rf"(?: (?:is|are|at|down|up|to|now|still|stands?|remain\w*|became|becomes?|went|go|goes|came|comes?|has|have|there"
    r"|each))+(?: (?:the|an?) (?:quantity|amount|number|count)(?: of)?)?"
    rf" ({_COUNT})(?: each| of each| apiece)?(?=$| when | after | since | because )"
)
_BECAME: Final = re.compile(rf" (?:became|become|(?:went|grew|rose|fell|shrank)(?: up| down)? to) ({_COUNT})\b")
"""A changed number: "the 3 leeks became 4"."""
_BEHIND: Final = re.compile(
    rf"(?:(?:the |its |their )?(?:quantity|amount|number|count) (?:is |of |needed is )?)?"
    rf"(?:x |just |only |also |now |still |added |quantity |qty )*({_COUNT})x?"
    rf"(?: of (?:them|those|these)| (?:{'|'.join(sorted(_MEASURES))})s?| in all| left| as well| too| please)*"
)
_IS: Final = re.compile(
    r"(?: (?:is|are|was|were|there|still|remains?|left|needed|wanted|untouched|unchanged|the same|as before|as they were))*"
)
_LEFT_OVER: Final = re.compile(
    r"(?:so |that leaves |which leaves |leaving |now |there (?:are|is) |you (?:have|need|ve got) )*"
    rf"(?:({_COUNT})(?: of them)?(?: are| is)? (?:left|remain\w*)"
    rf"|(?:leaves |(?:so|now) (?:now )?(?:it|that|there) (?:is|are|s|makes|leaves) (?:now |still )?)"
    rf"({_COUNT})(?: of them| in all| altogether)?)"
)
"""A statement of the remaining quantity: "so three are left"."""
NEAR: Final = 4
"""Number of clauses to search for a thing's remaining quantity, counted from the clause that names it."""
_OF_EACH: Final = re.compile(rf"\b({_COUNT}) (?:of )?(?:each|apiece)\b$")
_EACH: Final = re.compile(r"\beach\b")
_GONE: Final = re.compile(r" (?P<since>(?:\w+ ){0,3})(?:gone|removed|off|deleted|dropped|struck)\b")
_WORD: Final = re.compile(r"[^\W\d_]+")
_OTHER: Final = re.compile(
    r"(?:(?:do not forget|remember|also|then|maybe|perhaps) )*"
    rf"(\d{{1,3}}|{'|'.join(SMALL[1:])}|an?|some) ((?:[^\W\d]{{2,20}} ){{0,3}}?[^\W\d]{{3,20}})"
    r"(?: (?:to|for|with|on|in|from|that|which|as) .*)?"
)
"""An unknown thing in an enumeration: "and 4 cups", "a mixing bowl to go with the whisks"."""
_NOTHING: Final = frozenset(
    "fewer less thing things item items piece pieces total all lot bit few more each list day nice note other others else entry entries"
    " change changes article articles product products good great happy further trip time".split()
).union(MONTHS)
"""Words in an enumeration that are not things."""
_ALSO: Final = {
    "elastic band": "rubber band",
    "plant pot": "flower pot",
    "hosepipe": "garden hose",
    "clothes hanger": "coat hanger",
    "smoke alarm": "smoke detector",
    "oven mitt": "oven glove",
    "baking sheet": "baking tray",
    "extension lead": "extension cord",
    "extension cable": "extension cord",
    "serviette": "napkin",
}
"""Synonyms of things on the list, such as British or American names."""


@lru_cache(maxsize=50)
def _keys(things: Sequence[str]) -> Collection[str]:
    return dict.fromkeys(map(thing_in, things))


@cache
def _others() -> Mapping[str, str]:
    """Return the things for which synonyms stand, both in the form that `thing_in` returns."""
    return {thing_in(other): thing_in(thing) for other, thing in _ALSO.items()}


def _match_thing(key: str, known: Collection[str]) -> str:
    """Return the known thing that a synonym or a misspelling stands for. `known`: things in the form that `thing_in` returns."""
    return key if key in known else _others().get(key) or next((thing for thing in known if is_slip(key, thing)), key)


def _sum_entries(entries: list[Entry], things: Sequence[str]) -> dict[str, Entry]:
    """Return the entries by item. Repeated items are summed, and those with a sum of zero or less are dropped. `things`: the known ones."""
    sums: dict[str, Entry] = {}
    known = _keys(things)
    for entry in entries:
        key = _match_thing(thing_in(entry.item), known)
        before = sums.get(key, Entry(entry.item, 0))
        both = before.quantity is not None and entry.quantity is not None
        sums[key] = Entry(before.item, (before.quantity or 0) + (entry.quantity or 0) if both else None)
    return {key: entry for key, entry in sums.items() if entry.quantity is None or entry.quantity > 0}


def thing_in(text: str) -> str:
    """Return `text` in the singular and without packaging, so that variants of a name are equal: "rubberbands" and "rubber band"."""
    singulars = [fold_plural(word) for word in plain(text).split()]
    return "".join([word for word in singulars if word not in _MEASURES] or singulars)


def fold_plural(word: str) -> str:
    """Return a common form of a noun and its plural. It is not always a word ("knif")."""
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, stem in (("ie", "y"), ("oe", "o"), ("she", "sh"), ("che", "ch"), ("xe", "x"), ("sse", "ss"), ("ve", "f"), ("fe", "f")):
        if word.endswith(ending):
            return word.removesuffix(ending) + stem
    return word
