"""Which part of a remembered text answers a question; where that is not certain, all of it but what it denies."""

from __future__ import annotations

import re

from longspan.agents.reference.language import FIRST_PERSON, STOP, WORD, content, kind, sentences, stem

__all__ = ["LIGHT", "affirmed", "names", "of_kind", "place", "sender", "told_anew"]

_DENIED = re.compile(
    r"\b(?:instead of|rather than|(?:more|better|other|less)? ?than|over|not|no longer|never|used to (?:be|like|love|prefer)?|from|gone off"
    r"|tired of|isn['’]t|don['’]t (?:like|want)|beats?|replac(?:es?|ed)|(?:takes?|taken|took) the place of|away from|moved on from"
    r"|(?:take|took) (?:it )?back about)\b[^.,;:!?]*?(?=\bto\b|\bbut\b|\band\b|\bis\b|[.,;:!?]|$)",
    re.IGNORECASE,
)
_BEATEN = re.compile(
    r"\b(?:no|nothing|nobody|none)\b[^.;!?]{0,100}\b(?:than|beats?|close to|rivals?|tops?|match(?:es)?|as)\b", re.IGNORECASE
)
"""Nothing is better than what follows."""
_PLACE = re.compile(
    r"(?<!thanks )\b(?:inside|into|onto|within|in|at|on|to|near|under|underneath|behind|beside|beneath|below)\s+(?:(?:the|a|an|his|her"
    r"|their|its|my|our)\s+)?"
    r"([\w-]+(?:\s(?!(?:and|by|from|with|where|while|when|as|but|of|for|in|on|at|to)\b)[\w-]+){0,2})",
    re.IGNORECASE,
)
_SHADES = frozenset(
    "dark light bright pale deep hot sky forest royal midnight sea steel baby neon electric dusty burnt mustard bottle".split()
)
_NO_PLACE = frozenset("it them there place charge front search time fact order look first beginning the".split())
_SENDER = re.compile(
    r"(?:^|[.!*(\[]\s?|\b(?i:an?|the|one|agent|stranger|named|another|psst,)\s)(?P<one>[^\W\d_a-z]\w+(?:\s[^\W\d_a-z]\w*\.?)?)(?:['’]s)?"
    r"\s(?:[\w ]{0,30}\b)?(?i:say|tell|told|writ|wrote|send|sent|whisper|leave|left|pass|message|letter|note|text|call|add"
    r"|report|slip|hand|mention"
    r"|here|speaking)\w*\b[^:\"“]{0,60}[:\"“]"
    r"|\b(?i:message|note|letter|telegram|word|text|call|e?-?mail|hint|memo|postcard|whisper|transmission|dispatch|communication)\w*"
    r"[^.:\"“]{0,30}\b(?:from|by|of)\s(?:[a-z]+\s){0,3}(?P<two>[^\W\d_a-z]\w+(?:\s[^\W\d_a-z]\w*\.?)?)"
    r"|^(?:from\s)?(?P<three>[^\W\d_a-z]\w+(?:\s[^\W\d_a-z]\w*\.?)?):\s"
    r"|^[\[(](?P<four>[^\W\d_a-z]\w+)[\])]\s"
)
_NO_SENDER = re.compile(r"\b(?:quot\w+|saying|proverb|once (?:said|wrote)|famous\w*|my name|call me)\b", re.IGNORECASE)
LIGHT = frozenset(
    stem(word)
    for word in """change switch decide think mind become realise realize turn feel find guess believe happen day time update correct
    favourite favorite sincerely start begin keep take pick choose settle call name know answer prefer like love best
    become free hear old speak introduce friend morning today""".split()
)
"""Words about telling and changing, which say little by themselves."""
_AFTER_NAME = re.compile(r"\s*(?:$|[.!,]|(?:is|was|['’]s|it is|would|will|has|suits|shall|fits|sounds|here|from|as)\b)")


def sender(text: str) -> str:
    """Who sent the message that a text passes on: a name with a verb or a noun of sending, and a colon or a quotation."""
    text = text[:500]
    if _NO_SENDER.search(text):
        return ""
    match = _SENDER.search(text)
    return next(filter(None, match.groups()), "") if match else ""


def affirmed(text: str) -> str:
    """A text without what it denies; all of it where nothing would be left."""
    text = text[:2000]
    beaten = _BEATEN.search(text)
    if beaten:
        return text[beaten.end() :].strip()
    return re.sub(r"\s+([.,;!?])", r"\1", _DENIED.sub("", text)).strip(" ,;") if WORD.search(_DENIED.sub("", text)) else text


def of_kind(text: str, wanted: str) -> list[str]:
    """The words of a kind that stand by themselves in a text ("it is red", not "a red roof"); those that it affirms where there are any."""
    for part in (affirmed(text), text):
        found = [match for match in WORD.finditer(part) if _is(match[0], wanted)]
        alone = [match for match in found if not _goes_on(part[match.end() :])]
        if alone or (found and FIRST_PERSON.search(text)):
            return [_whole(part, match) for match in alone or found]
    return []


def _is(word: str, wanted: str) -> bool:
    """Whether a word is one of a kind: red is a colour, and oranges are none."""
    return kind(stem(word)) == wanted and not word.casefold().endswith("s")


def _whole(text: str, match: re.Match[str]) -> str:
    """A word with the one before that belongs to it: *dark* red, *forest* green."""
    before = re.search(r"([^\W\d_]+)[ -]$", text[: match.start()])
    if before is None or before[1].casefold() in STOP:
        return match[0]
    qualifies = kind(stem(before[1])) or before[1].casefold() in _SHADES or (before[1][0].isupper() and match[0][0].isupper())
    return f"{before[0]}{match[0]}" if qualifies else match[0]


def _goes_on(rest: str) -> bool:
    """Whether the next word belongs to the one before: it follows at once and is no small one."""
    match = re.match(r" ([^\W_]+)", rest)
    return match is not None and bool(content(match[1])) and not match[1].endswith(("ed", "s"))


def told_anew(text: str, known: frozenset[str], before: frozenset[str]) -> str:
    """What a text tells to one who asks with the stems `known` and was told `before`: the one run of words that are new.

    Where there is more than one such run, all that the text affirms.
    """
    kept = affirmed(text)
    for familiar in (known | before | LIGHT, known | LIGHT):
        runs = _fresh(kept, familiar)
        if len(runs) == 1:
            return runs[0]
        if runs:
            break
    return kept


def _fresh(text: str, familiar: frozenset[str]) -> list[str]:
    """The runs of words that are not familiar nor small; a small word within a run belongs to it."""
    runs: list[tuple[int, int]] = []
    joined = False
    for word in WORD.finditer(text):
        small = word[0].casefold().replace("’", "'") in STOP
        if stem(word[0]) in familiar and not small:
            joined = False
        elif not small:
            if joined and not re.search(r"[,;:!?]|\.\s", text[runs[-1][1] : word.start()]):
                runs[-1] = (runs[-1][0], word.end())
            else:
                runs.append((word.start(), word.end()))
            joined = True
    return [text[start:end] for start, end in runs]


def names(text: str, known: frozenset[str]) -> list[str]:
    """The names in a text: runs of capitalised words that are not `known`; at the start of a sentence only what is used as one."""
    found = []
    for run in re.finditer(r"[^\W\d_a-z][\w-]*(?:\s+[^\W\d_a-z][\w-]*)*", text[:2000]):
        first = not text[: run.start()].strip() or bool(re.search(r"[.!?:\"“(]\s*$", text[: run.start()]))
        words = [word for word in run[0].split() if stem(word) not in known and word.casefold() not in STOP and len(word) > 1]
        if not words or (run.start() and text[run.start() - 1] in "'’") or (len(words) == 1 and kind(stem(words[0]))):
            continue
        rest = text[run.start() + len(words[0]) :]
        if first and run[0].split()[0] == words[0] and len(words) == 1 and re.match(r"\W*\w", rest) and not _AFTER_NAME.match(rest):
            continue
        found.append(" ".join(words))
    return found


def place(text: str, things: frozenset[str], known: frozenset[str], *, first: bool = False) -> str:
    """Where a text says that one of `things` is: the noun after the last word of place in the last sentence about it that has one.

    Not a noun that is `known`; `first`: in the first such sentence instead.
    """
    places = []
    for part in sentences(text[:2000]):
        if not things & set(content(part)):
            continue
        nouns = [match[1] for match in _PLACE.finditer(affirmed(part))]
        nouns = [noun for noun in nouns if noun.split()[0].casefold() not in _NO_PLACE and not set(content(noun)) & known]
        places += nouns[-1:]
    return places[0 if first else -1] if places else ""
