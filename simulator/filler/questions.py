"""Questions about the real world, with their answers: relations of WordNet, geography, dates, sums and units.

Each kind of question draws words for its forms in data/questions.json.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from functools import cache, partial
from itertools import chain
from typing import Final

from longspan.simulator.filler.draws import Draws, join_words, read_word_list
from longspan.simulator.filler.wordnet import load_wordnet

__all__ = ["KINDS", "Slots", "member_of", "roman", "words_of"]

Slots = dict[str, str]
"""The words for the slots of a form. "answer" is the question's answer."""

CHOICES: Final = 6


def member_of(draw: Draws, group: str) -> tuple[str, str]:
    """Draw a member of a group, and the member's kind."""
    return draw.of(f"members of {group}", partial(_members, group))


@cache
def _members(group: str) -> list[tuple[str, str]]:
    return [(name, kind) for kind, names in load_wordnet().kinds[group].items() for name in names]


def _foreign(draw: Draws, group: str, number: int) -> list[str]:
    """Draw `number` members of other groups."""
    others = [name for name in load_wordnet().kinds if name != group]
    return [member_of(draw, draw.random.choice(others))[0] for _ in range(number)]


def _any_member(draw: Draws) -> tuple[str, str, str]:
    """Draw a member of any group, with its kind and its group."""
    return draw.of("everything", _everything)


@cache
def _everything() -> list[tuple[str, str, str]]:
    return [(name, kind, group) for group in load_wordnet().kinds for name, kind in _members(group)]


def _choices(draw: Draws, answer: str, others: list[str]) -> Slots:
    words = draw.shuffle([answer, *others])
    return {"choices": ", ".join(words), "choices_or": join_words(words, "or"), "choices_and": join_words(words), "answer": answer}


def which(draw: Draws) -> Slots:
    answer, kind, group = _any_member(draw)
    return {"kind": kind, **_choices(draw, answer, _foreign(draw, group, draw.random.randint(2, CHOICES)))}


def odd(draw: Draws) -> Slots:
    group, kind, names = draw.of("large kinds", _large_kinds)
    (stray,) = _foreign(draw, group, 1)
    return {"kind": kind, **_choices(draw, stray, draw.random.sample(names, 3))}


@cache
def _large_kinds() -> list[tuple[str, str, list[str]]]:
    return [(group, kind, names) for group, kinds in load_wordnet().kinds.items() for kind, names in kinds.items() if len(names) >= 6]


def kind(draw: Draws) -> Slots:
    name, kind, _ = _any_member(draw)
    return {"word": name, "answer": f"a {kind}"}


def clue(draw: Draws) -> Slots:
    name, kind, _ = _any_member(draw)
    letters = sum(map(str.isalpha, name))
    return {"kind": kind, "first": name[0].upper(), "last": name[-1].upper(), "letters": str(letters), "answer": name}


def part(draw: Draws) -> Slots:
    part, whole = draw.of("parts", lambda: load_wordnet().parts)
    return {"word": part, "answer": f"a {whole}"}


def has_part(draw: Draws) -> Slots:
    part, whole = draw.of("wholes", lambda: load_wordnet().parts)
    return {"word": whole, **_choices(draw, part, _draw_unrelated(draw, whole, part))}


def _draw_unrelated(draw: Draws, *words: str) -> list[str]:
    """Draw two kinds of people and an adjective, without these words. None of them can be a part or a material of anything."""
    return [word for word in _foreign_to_things(draw) if word not in words]


def _foreign_to_things(draw: Draws) -> list[str]:
    return [member_of(draw, "people")[0] for _ in range(2)] + [draw.of("adjectives", _adjectives)]


@cache
def _adjectives() -> list[str]:
    return sorted(word for words in load_wordnet().similar.values() for word in words)


def member(draw: Draws) -> Slots:
    member, whole = draw.of("members", lambda: load_wordnet().members)
    return {"word": member, "answer": f"a {whole}"}


def substance(draw: Draws) -> Slots:
    substance, whole = draw.of("substances", lambda: load_wordnet().substances)
    return {"word": whole, "answer": substance}


def opposite(draw: Draws) -> Slots:
    pair = draw.shuffle(draw.of("opposites", lambda: load_wordnet().opposites))
    return {"word": pair[0], "answer": pair[1]}


def which_opposite(draw: Draws) -> Slots:
    word, answer = draw.shuffle(draw.of("more opposites", lambda: load_wordnet().opposites))
    others = [draw.of("adjectives", _adjectives) for _ in range(draw.random.randint(1, 2))]
    return {"word": word, **_choices(draw, answer, others)}


def way(draw: Draws) -> Slots:
    verb, answer = draw.of("ways", _ways)
    others = [draw.of("adjectives", _adjectives) for _ in range(2)]
    return {"word": verb, **_choices(draw, answer, others)}


@cache
def _ways() -> list[tuple[str, str]]:
    return [(verb, way) for verb, ways in load_wordnet().ways.items() for way in ways]


def verb(draw: Draws) -> Slots:
    verb, way = draw.of("verbs", _ways)
    return {"word": way, "answer": f"to {verb}"}


def similar(draw: Draws) -> Slots:
    word, answer = draw.of("similar", _similar)
    return {"word": word, "first": answer[0].upper(), "letters": str(sum(map(str.isalpha, answer))), "answer": answer}


@cache
def _similar() -> list[tuple[str, str]]:
    return [(word, other) for word, others in load_wordnet().similar.items() for other in others]


def synonym(draw: Draws) -> Slots:
    word, answer = draw.shuffle(draw.of("synonyms", lambda: load_wordnet().synonyms))
    return {"word": word, "first": answer[0].upper(), "answer": answer}


def pertaining(draw: Draws) -> Slots:
    word, answer = draw.of("pertaining", lambda: load_wordnet().pertaining)
    return {"word": word, "answer": answer}


def field(draw: Draws) -> Slots:
    field, term = draw.of("terms", _terms)
    return {"word": term, "answer": field}


@cache
def _terms() -> list[tuple[str, str]]:
    return [(field, term) for field, terms in load_wordnet().fields.items() for term in terms]


def person(draw: Draws) -> Slots:
    name, role = draw.of("people", lambda: load_wordnet().people)
    return {"person": name, "answer": f"a {role}"}


def which_person(draw: Draws) -> Slots:
    name, role = draw.of("more people", lambda: load_wordnet().people)
    others = [other for other in draw.some("other people", lambda: load_wordnet().people, 3) if other[1] != role and other[0] != name]
    return {"role": role, **_choices(draw, name, [other for other, _ in others])}


def surname(draw: Draws) -> Slots:
    name, role = draw.of("surnames", lambda: load_wordnet().people)
    first, _, last = name.rpartition(" ")
    return {"first": first, "role": role, "initial": last[0], "answer": last}


def place(draw: Draws) -> Slots:
    name, what, where = draw.of("places", _places_somewhere)
    return {"place": name, "what": what, "answer": where}


@cache
def _places_somewhere() -> list[list[str]]:
    return [place for place in load_wordnet().places if place[2]]


def which_place(draw: Draws) -> Slots:
    name, what, _ = draw.of("more places", lambda: load_wordnet().places)
    others = [
        other
        for other, kind, _ in draw.some("other places", lambda: load_wordnet().places, 4)
        if _is_settlement(kind) != _is_settlement(what)
    ]
    if not others:
        return which_place(draw)
    return {"what": what, **_choices(draw, name, others)}


def _is_settlement(what: str) -> bool:
    return what in ("city", "town", "national capital", "state capital", "provincial capital", "state", "area", "neighborhood")


def what_place(draw: Draws) -> Slots:
    name, what, where = draw.of("kinds of places", _places_somewhere)
    return {"place": name, "where": where, "answer": f"a {what}"}


def capital(draw: Draws) -> Slots:
    country, city = draw.of("capitals", lambda: read_word_list("world")["capitals"])
    return {"country": country, "answer": city}


def capital_of(draw: Draws) -> Slots:
    country, city = draw.of("countries", lambda: read_word_list("world")["capitals"])
    return {"city": city, "answer": country}


def state(draw: Draws) -> Slots:
    state, city = draw.of("states", lambda: read_word_list("world")["states"])
    return {"state": state, "answer": city}


def river(draw: Draws) -> Slots:
    city, river = draw.of("rivers", lambda: read_word_list("world")["rivers"])
    return {"city": city, "answer": f"the {river}"}


def border(draw: Draws) -> Slots:
    country, neighbours = draw.of("borders", lambda: read_word_list("world")["borders"])
    return {"country": country, "answer": draw.random.choice(neighbours)}


def currency(draw: Draws) -> Slots:
    country, currency = draw.of("currencies", lambda: read_word_list("world")["currencies"])
    return {"country": country, "answer": f"the {currency}"}


def element(draw: Draws) -> Slots:
    name, symbol = draw.of("elements", lambda: read_word_list("world")["elements"])
    return {"element": name.lower(), "answer": symbol}


def symbol(draw: Draws) -> Slots:
    name, symbol = draw.of("symbols", lambda: read_word_list("world")["elements"])
    number = [each for each, _ in read_word_list("world")["elements"]].index(name) + 1
    return {"symbol": symbol, "number": str(number), "answer": name}


def year(draw: Draws) -> Slots:
    event, year = draw.of("years", lambda: read_word_list("world")["years"])
    return {"event": event, "answer": year}


def earlier(draw: Draws) -> Slots:
    one, two = draw.some("events", lambda: read_word_list("world")["years"], 2)
    return {"one": one[0], "two": two[0], "answer": min(one, two, key=lambda event: int(event[1]))[0]}


def weekday(draw: Draws) -> Slots:
    day = _day(draw)
    return {"day": _format_date(day), "answer": f"{day:%A}"}


def days_later(draw: Draws) -> Slots:
    day, number = _day(draw), draw.random.randint(9, 400)
    return {"day": _format_date(day), "number": str(number), "answer": _format_date(day + timedelta(number))}


def days_between(draw: Draws) -> Slots:
    day, number = _day(draw), draw.random.randint(9, 900)
    return {"day": _format_date(day), "other": _format_date(day + timedelta(number)), "answer": f"{number} days"}


def _day(draw: Draws) -> date:
    return date(1801, 1, 1) + timedelta(draw.random.randrange(80_000))


def _format_date(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"


def sum_of(draw: Draws) -> Slots:
    one, two = draw.random.randint(12, 4999), draw.random.randint(12, 4999)
    return {"one": str(one), "two": str(two), "answer": str(one + two)}


def difference(draw: Draws) -> Slots:
    two, answer = draw.random.randint(12, 4999), draw.random.randint(12, 4999)
    return {"one": str(two + answer), "two": str(two), "answer": str(answer)}


def product(draw: Draws) -> Slots:
    one, two = draw.random.randint(3, 99), draw.random.randint(3, 99)
    return {"one": str(one), "two": str(two), "answer": str(one * two)}


def share(draw: Draws) -> Slots:
    each, people = draw.random.randint(3, 120), draw.random.randint(3, 24)
    thing, _ = member_of(draw, "things")
    return {"number": str(each * people), "people": str(people), "thing": thing, "answer": str(each)}


def percent(draw: Draws) -> Slots:
    share, whole = draw.random.randint(1, 19) * 5, draw.random.randint(2, 90) * 20
    return {"share": str(share), "whole": str(whole), "answer": str(share * whole // 100)}


def unit(draw: Draws) -> Slots:
    large, small, factor = draw.of("units", lambda: read_word_list("world")["units"])
    number = draw.random.randint(2, 60)
    return {"number": str(number), "large": large, "small": small, "answer": f"{number * factor} {small}"}


def clock(draw: Draws) -> Slots:
    begin, minutes = draw.random.randrange(1440), draw.random.randint(11, 600)
    return {"time": _clock(begin), "minutes": str(minutes), "answer": _clock(begin + minutes)}


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24}:{minutes % 60:02}"


def roman_number(draw: Draws) -> Slots:
    number = draw.random.randint(14, 2999)
    return {"number": str(number), "answer": roman(number)}


def roman(number: int) -> str:
    """Return a number in Roman numerals."""
    text = ""
    for value, sign in zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "M CM D CD C XC L XL X IX V IV I".split(), strict=True):
        text += sign * (number // value)
        number %= value
    return text


def sequence(draw: Draws) -> Slots:
    begin, step, factor = draw.random.randint(1, 90), draw.random.randint(2, 40), draw.random.choice((1, 1, 1, 2))
    numbers = [begin]
    for _ in range(4):
        numbers.append(numbers[-1] * factor + step)
    return {"numbers": ", ".join(map(str, numbers[:4])), "answer": str(numbers[4])}


def letters(draw: Draws) -> Slots:
    word = words_of(draw, 1)[0]
    return {"letters": " ".join(draw.shuffle(word.upper())), "first": word[0].upper(), "answer": word}


def alphabet(draw: Draws) -> Slots:
    words = words_of(draw, draw.random.randint(2, 7))
    return {"choices": ", ".join(words), "choices_or": join_words(words, "or"), "answer": min(words)}


def longest(draw: Draws) -> Slots:
    words = words_of(draw, draw.random.randint(2, 7))
    lengths = sorted(map(len, words))
    if lengths[-1] == lengths[-2]:
        return longest(draw)
    return {"choices": ", ".join(words), "choices_or": join_words(words, "or"), "answer": max(words, key=len)}


def words_of(draw: Draws, number: int) -> list[str]:
    """Draw different words that consist of letters only."""
    return draw.some("words", _words, number)


@cache
def _words() -> list[str]:
    facts = load_wordnet()
    groups = [*(names for kinds in facts.kinds.values() for names in kinds.values()), *facts.similar.values(), *facts.ways.values()]
    words = chain.from_iterable([*groups, *facts.synonyms, *facts.pertaining, *facts.opposites])
    return sorted(filter(str.isalpha, dict.fromkeys(words)))  # not a set: many words are already in order, and Python sorts runs fast


KINDS: Final[dict[str, Callable[[Draws], Slots]]] = {
    each.__name__: each
    for each in (
        which, odd, kind, clue, part, has_part, member, substance, opposite, which_opposite, way, verb, similar, synonym, pertaining,
        field, person, which_person, surname, place, which_place, what_place, capital, capital_of, state, river, border, currency,
        element, symbol, year, earlier, weekday, days_later, days_between, sum_of, difference, product, share, percent, unit, clock,
        roman_number, sequence, letters, alphabet, longest,
    )
}  # fmt: skip
"""The kinds of question about the real world, by name."""
