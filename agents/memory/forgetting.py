"""Detection of requests to forget in a user's own words, by general rules of English."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, final

__all__ = ["ForgetRequest", "request_in"]

MAX_CHARS: Final = 4_000
"""Longer messages are reading material and are not searched."""

_QUOTED: Final = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|(?<!\w)['‘][^'’\n]{20,}['’](?!\w)|^[ \t]*>[^\n]*|```[\s\S]*?```", re.MULTILINE)
"""Quotations: other people's words, or words that are only mentioned."""

_SENTENCE: Final = re.compile(r"[^.!?\n]+[.!?\n]*\s*")
_CLAUSE: Final = re.compile(r"[,;()–—]|\b(?:and|but|so|then)\b", re.IGNORECASE)
_JOINT: Final = re.compile(r"^[\s,;()–—]*(?:(?:and|but|so|then)\b[\s,]*)*", re.IGNORECASE)

_LEAD: Final = re.compile(
    r"(?:please|kindly|now|ok|okay|well|just|also|actually|oh|therefore|simply|for now|from now on|instead|better|completely|entirely"
    r"|(?:can|could|would) you|i(?:'d| would)? (?:like|want|need|ask|have to ask|must ask) you to|may i ask you to"
    r"|you (?:may|can|should|must|could)"
    r"|it is time to|it's time to|do)\b\s*",
    re.IGNORECASE,
)
"""Words that may precede the verb of a request. Text after a comma or "and" is a separate clause."""

_FORGET: Final = re.compile(r"(?:forget|disregard|unlearn)\b(?! to\b)", re.IGNORECASE)
_DELETE: Final = re.compile(
    r"(?:delete|erase|remove|wipe|purge|clear|discard|drop|ignore|scrub|scratch|strike|throw away|get rid of|never mind"
    r"|(?:don't|don’t|do not|no longer|stop) (?:keep|keeping|store|storing|retain|retaining|save|saving|remember|remembering))\b",
    re.IGNORECASE,
)
"""Verbs that request forgetting if their object is something said or remembered. With other objects, they may mean something else."""

_PRETEND: Final = re.compile(r"(?:pretend|act as if|act as though|imagine)\b", re.IGNORECASE)

_SAID: Final = re.compile(
    r"\b(?:i|we)(?:'ve|’ve|'d|’d)? (?:\w+ ){0,2}?(?:told|said|say|mentioned|gave|given|shared|wrote|sent|explained|described)\b"
    r"|\b(?:my|our) (?:last|latest|previous|earlier|first) (?:message|words?|statement|remark|sentence)s?\b"
    r"|\byou (?:have )?(?:know|learned|learnt|noted|stored|remember|kept)\b"
    r"|\byour (?:\w+[- ]){0,2}?(?:memory|memories|notes?|records?|notebook|mind)\b",
    re.IGNORECASE,
)
"""Phrases for something that the user said or the agent remembers."""

_UNSAID: Final = re.compile(r"\b(?:i|we)(?:'d|’d| had| have)? never (?:told|said|mentioned|gave|shared|wrote|sent)\b", re.IGNORECASE)

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

_ALL: Final = frozenset("all any anything everything whatever".split())

_EMPTY: Final = frozenset(
    """a about again ago am and are at away be been before bit did do earlier ever for from good had has have here i i've in is it its just
    last latest me memory message messages mentioned mind my never notes now of off on once one our part please previous record records
    remark right said say sentence shared statement than that the them these they thing things this those to told was we we've were what
    where which who whom why word words wrote you your""".split()
)
"""Words that do not identify what to forget."""


@final
class ForgetRequest(NamedTuple):
    """A request to forget.

    `text`: the message up to the request; None if it refers to the previous message. `rest`: the rest of the message.
    """

    text: str | None
    rest: str


class _SubjectRequest(NamedTuple):
    """The subject of a request in a sentence, and where the request starts."""

    what: str
    start: int


def request_in(message: str) -> ForgetRequest | None:
    """Return a message's request to forget; None without one. Quotations and long texts are ignored."""
    if len(message) > MAX_CHARS:
        return None
    own = _QUOTED.sub(lambda quoted: "".join(character if character == "\n" else " " for character in quoted[0]), message)
    sentences, rest, asked = [], [], []
    for match in _SENTENCE.finditer(own):
        sentences.append(message[match.start() : match.end()])
        found = _parse_request(match[0])
        rest.append(sentences[-1] if found is None else sentences[-1][: found.start])
        asked.append(found)
    places = [number for number, found in enumerate(asked) if found is not None]
    if not places:
        return None
    text = "".join(sentences[: places[-1] + 1]).strip()
    if any(found is not None and _names(found.what) for found in asked):
        return ForgetRequest(text, "".join(rest).strip())
    alone = not (places[0] or rest[0].strip())  # a lone "forget that" refers to the previous message
    return ForgetRequest(None if alone else text, "".join(rest[places[0] + 1 :]).strip())


def _parse_request(sentence: str) -> _SubjectRequest | None:
    """Return the subject that a sentence asks to forget; None if it does not ask."""
    starts = [0, *(match.start() for match in _CLAUSE.finditer(sentence))]
    for start in starts:
        clause = _JOINT.sub("", sentence[start:])
        asks = _lead_off(clause)
        if match := _FORGET.match(asks):
            words = _WORD.findall(asks[match.end() :].lower())
            if len(asks) < len(clause) or words not in ([], ["it"], ["about", "it"]):  # "forget it" is an idiom
                return _SubjectRequest(asks[match.end() :], start)
        if (match := _DELETE.match(asks)) and _SAID.search(asks):
            return _SubjectRequest(asks[match.end() :], start)
        if _PRETEND.match(asks) and (unsaid := _UNSAID.search(asks)):
            return _SubjectRequest(asks[unsaid.end() :], start)
    return None


def _lead_off(clause: str) -> str:
    """Return a clause without the words that may precede a request's verb."""
    while match := _LEAD.match(clause):
        clause = clause[match.end() :]
    return clause


def _names(what: str) -> bool:
    """Return whether a request's object identifies what to forget."""
    words = {word.replace("’", "'") for word in _WORD.findall(what.lower().partition(":")[0])}
    return bool(words & _ALL or words - _EMPTY)
