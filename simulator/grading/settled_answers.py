"""Distinguishes answers from hedges: finds which of several candidates a reply settles on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, final

from longspan.simulator.grading.matching import plain

__all__ = ["settled_words"]

CURRENT, CHANGED, ASSERTED, REPORTED, DATED, DENIED = range(6)
"""How a reply presents the things it names, from the surest: as current ("now"), as the result of a change, as a fact, as reported or in
the past tense, as explicitly past, or as denied."""

_UNSURE = re.compile(r"\b(?:may|might|could|perhaps|maybe|possibly)\b")

_MARKERS = (  # the first that occurs in a clause applies
    (
        DENIED,
        "not|no longer|never|neither|nor|(?:is|was|are|were|do|does|did|has|have|had|ca|could|wo|would|should)nt|cannot|unsure|unclear"
        "|instead of|rather than|anything but|other than|except|used to|any ?more|formerly",
    ),
    (
        CURRENT,
        "now|current|currently|present|presently|today|nowadays|these days|at the moment|recent|recently|most recently|latest|newest|last"
        "|final|finally|still|ended up|ends up|wound up|landed|^(?:so|therefore|thus|hence)",
    ),
    (
        DATED,
        "previous|previously|former|earlier|before|initial|initially|original|originally|at first|first|once|ago|old|past|prior|until"
        "|history|outdated|obsolete|briefly|for a while|in between|start|started|starting|began|beginning",
    ),
    (
        REPORTED,
        r"was|were|had|been|said|told|gave|given|went|became|chose|chosen|spoke|spoken|\w\w+ed|then|later|next|after",
    ),
)
_STANCES = [(how, re.compile(rf"(?:\b|(?=\^))(?:{words})\b")) for how, words in _MARKERS]

_GONE = re.compile(
    r"\b(?:from|over|than|after(?: \w+ing)?|instead of|place of|unlike|(?:replac|overrid|succeed|supersed|dropp|swapp|trad|abandon)"
    r"(?:e|es|ed|ing)|overrode"
    r"|gave up|given up|taken over from|moved (?:on|away) from) (?:the |your |that |my )?(?:old |previous |former |earlier )?$"
)
"""Matches right before the name of something that was left, and says nothing about anything else ("it replaced blue")."""
_LEFT = re.compile(
    r" (?:gave way to|(?:was|is|has been|got) (?:\w+ly )?(?:replaced|superseded|overridden|dropped|changed)|is (?:history|gone|out))\b"
)
"""Matches after the name of something that was left."""
_REACHED = re.compile(
    r"\b(?:(?:chang|switch|updat|mov|turn|shift|convert|revis|amend|set)(?:e|es|ed|ing)?|went|goes|back|gave way"
    r"|(?:replaced|superseded|overridden)(?= by)|(?:swapp|dropp|trad|exchang|abandon)(?:ed|ing)(?= .*for $))"
    r"\b.{0,60}\b(?:to|onto|on|for|by) (?:the )?$"
)
"""Matches right before the name of something that was changed to."""

_CLAUSES = re.compile(
    r"(?P<joint>[,/&|]|->|→|\b(?:and|or|plus|also)\b)"  # between items of an enumeration
    r"|(?P<head>[:\n*•])"  # around titles, list items, bold print
    r"|[.!?;()\[\]…—–←]|<-|\s-+\s"
    r"|\b(?:but|yet|however|although|though|while|whereas|because|since|if|unless|which)\b|\buntil\b(?=\s+(?:you|i|we|it)\b)"
    r"|(?=\b(?:not|rather than|anything but|other than)\b)",
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:is|are|s|it|this|that|remains|stays|i|you|your|" + "|".join(words for _, words in _MARKERS) + r")\b")
"""Words of a clause that makes a statement of its own instead of continuing an enumeration."""
_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s\b")
_FILLING = frozenset("a an the even maybe perhaps possibly".split())
_JSON = re.compile(r"(:\s*)[\[{]")


@final
class _Clause(NamedTuple):
    """A clause in plain words, its link to the one before ("joint", "head" or ""), and the marks between them."""

    text: str
    link: str
    gap: str


@final
class _Mention(NamedTuple):
    """A candidate (`key`), how a clause names it, and the number of that clause's run: clauses in a run belong together."""

    key: str
    how: int
    run: int


def settled_words(text: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates that `text` settles on, in their order: one if it answers, several if it hedges.

    Candidates must occur as whole words; of overlapping ones the longest counts ("sky blue" does not name blue). Those that a
    clause denies or calls past are never settled on ("not blue", "it used to be blue"). Of the others, those called current
    count; if none is, the last that something was changed to ("you changed it to red"); then those asserted, those reported
    ("you said red"), and those dated to the past ("earlier you said red"). So a reply that describes a change, lists a history or
    shows a table, and says which value is current, settles on one candidate. Takes time linear in the text and never raises.
    """
    text = _laid_out(_POSSESSIVE.sub(" s", text))  # "red's my choice" names red
    words = {plain(word): word for word in candidates}
    named = re.compile(r"\b(?:" + "|".join(map(re.escape, sorted(filter(None, words), key=len, reverse=True))) + r")\b")
    if not any(words) or not named.search(plain(text)):
        return []
    mentions = _mentions(text, named)
    best = min((mention.how for mention in mentions), default=DENIED)
    final = [mention for mention in mentions if mention.how == best]
    if best == CHANGED:
        final = [mention for mention in final if mention.run == final[-1].run]
    keys = {mention.key for mention in final}
    return [word for key, word in words.items() if best < DENIED and key in keys]


def _laid_out(text: str) -> str:
    """Return `text` with the cells of tables headed by the names of their columns or rows, and JSON's lists without brackets."""
    header: list[str] = []
    lines: list[str] = []
    for line in _JSON.sub(r"\1", text).splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.count("|") > 1 else []
        if not cells:
            lines.append(line)
        elif not header or len(cells) != len(header):
            lines.append(": ".join(cells))
        elif any(_how(plain(title)) != ASSERTED for title in header):
            lines += [f"{title}: {cell}" for title, cell in zip(header, cells, strict=True)]
        else:
            lines.append(": ".join(cells))
        header = header or cells if cells else []
    return "\n".join(lines)


def _mentions(text: str, named: re.Pattern[str]) -> list[_Mention]:
    """Return the candidates in the order they are named.

    A clause that continues an enumeration takes over from the one before ("not red, green or blue"; "earlier: red, green") or, if it
    begins one, from the one that ends it ("red and blue were earlier"); a remark behind a name applies to it ("red (current)").
    """
    mentions: list[_Mention] = []
    previous, enumerates, begun, run = _Clause("", "", ""), False, False, 0
    how = ASSERTED
    last = 0
    bare_since = 0  # where in `mentions` the bare names of an enumeration begin
    for clause, following in pairwise([*_clauses(text), _Clause("", "", "")]):
        match = named.search(clause.text)
        if not match:
            remark = _remark(clause) if enumerates and following.gap[:1] != ":" else None
            if remark is not None:
                mentions[last:] = [mention._replace(how=remark) for mention in mentions[last:]]
            elif "(" not in clause.gap or len(clause.text) > 5:  # "(3rd and latest)"
                previous, enumerates = clause, False
            continue
        bare = _FILLING.issuperset(clause.text[: match.start()].split()) and not _OWN.search(clause.text)
        titled = clause.link == "head" and (bare and begun if enumerates else True)
        adverb = not enumerates and clause.gap.startswith(",") and _how(previous.text) in (CURRENT, DATED)
        if not (bare and (titled or adverb or (clause.link == "joint" and enumerates))):
            begins = (
                clause.text.startswith(match.group()) and clause.link == "joint" and clause.gap.strip(" ,").casefold() in ("and", "or", "&")
            )
            own = _how(_without_gone(clause.text, named))
            if adverb and own in (ASSERTED, REPORTED):
                own = _how(previous.text)
            if begins and enumerates and begun and own >= REPORTED:
                mentions[bare_since:] = [mention._replace(how=own) for mention in mentions[bare_since:]]
            how, run, bare_since, begun = own, run + 1, len(mentions), bare
        elif not enumerates:
            how, run, bare_since, begun = _how(previous.text), run + 1, len(mentions), True
        enumerates, last = True, len(mentions)
        mentions += _named_in(clause.text, named, how, run)
        previous, how = clause, mentions[-1].how
    return mentions


def _named_in(clause: str, named: re.Pattern[str], how: int, run: int) -> list[_Mention]:
    """Return the candidates that a clause names. If something was changed to several of them, one after another, the last counts."""
    found = [_Mention(match.group(), _local(clause, match, how), run) for match in named.finditer(clause)]
    return [mention._replace(how=REPORTED) if mention.how == CHANGED else mention for mention in found[:-1]] + found[-1:]


def _local(clause: str, match: re.Match[str], how: int) -> int:
    """Return how a clause presents a name: as the clause does, unless the words around it say that it was left or reached."""
    before = clause[max(0, match.start() - 100) : match.start()]
    if (gone := _GONE.search(before)) or _LEFT.match(clause, match.end()):
        return DATED if gone and gone[0].startswith("from") else DENIED
    unsure = _UNSURE.search(clause[:200])
    if how in (ASSERTED, REPORTED) and not unsure and _REACHED.search(before):
        return CHANGED
    return ASSERTED if unsure and how == CURRENT else how


def _without_gone(clause: str, named: re.Pattern[str]) -> str:
    """Return a clause without its words about names that were left: "instead of blue it is red" denies nothing else."""
    kept: list[str] = []
    at = 0
    for match in named.finditer(clause):
        piece = clause[at : match.end()]
        gone = _GONE.search(piece[: len(piece) - len(match.group())][-100:])
        kept.append(piece[: -len(match.group()) - len(gone[0])] if gone else piece)
        at = match.end()
    return "".join(kept) + clause[at:]


_CURRENTLY = re.compile(rf"^(?:(?:and|that|which|this|it|s|is|the|are|where|you|most|\d+\w*) )*(?:{_MARKERS[1][1]})\b")
_POINTS = re.compile(r"^(?:that|this|where)\b")
_BESIDE = re.compile(r"[(\[—–←]|<-| - ")
_OUTDATED = re.compile(
    r"^(?:no (?:longer|more)|not any ?more|old|older|former|formerly|past|previous|previously|earlier|replaced|outdated|obsolete)$"
)
_TAKEN_BACK = re.compile(r"^(?:no|nope|not)\b")


def _remark(clause: _Clause) -> int | None:
    """Return how a clause without names presents the name before it; None if it says nothing about it."""
    if "\n" in clause.gap:
        return None
    if "?" in clause.gap and _TAKEN_BACK.match(clause.text):
        return DENIED
    if (
        _CURRENTLY.match(clause.text)
        and len(clause.text.split()) <= 8
        and ("which" in clause.gap or _POINTS.match(clause.text) or _BESIDE.search(clause.gap))
    ):
        return CURRENT
    return DATED if "(" in clause.gap and _OUTDATED.match(clause.text) else None


def _clauses(text: str) -> Iterator[_Clause]:
    """Yield the clauses of `text`."""
    at, link, gap = 0, "", ""
    for cut in _CLAUSES.finditer(text):
        clause = plain(text[at : cut.start()])
        if clause:
            yield _Clause(clause, link, gap)
        kind = cut.lastgroup or ""
        if clause:
            link, gap = kind, cut[0]
        else:
            link = kind if link == kind or gap in (")", "]") else "joint" if link and kind else ""
            gap = (gap + cut[0])[-20:]
        at = cut.end()
    if clause := plain(text[at:]):
        yield _Clause(clause, link, gap)


def _how(clause: str) -> int:
    return next((how for how, words in _STANCES if words.search(clause)), ASSERTED)
