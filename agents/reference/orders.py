"""Orders: standing instructions ("whenever I say X, say Y"), ones for later ("append X to your 5th reply"), and ones to forget."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import final

from longspan.agents.reference.language import STOP, WORD, amount, asks, content, ordinal, quoted, sentences, stem, wants_json

__all__ = ["Order", "fires", "forgets", "order", "quotation", "said", "withdraws"]

LONGEST = 2000
"""A longer message is not read as an order, in characters."""

_CONDITION = re.compile(
    r"\b(?:whenever|wherever|(?:every|each|the next|any) time(?: that)?|any ?time(?: that)?|as soon as|in case|once|when|if|should i"
    r"|(?:in (?:response|reply|answer) to|on|upon|after) (?:hearing|reading|seeing|my|the)|in (?:response|reply|answer) to)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:always|signals?|codes?|cues?|triggers?|met with|followed by|(?:answer|repl(?:y|ied)|respon[ds]\w*|return|react\w*)(?:ed)?"
    r"|agree|from (?:now|here|this|me)|rule|say|you)\b",
    re.IGNORECASE,
)
_ACT = re.compile(
    r"(?:\b(?:your (?:reply|response|answer|reaction) (?:should|must|has to|is to|will|ought to|is going to|shall)(?: always)? be"
    r"|i (?:want|expect) (?:you to )?(?:hear|see)"
    r"|(?:say|reply|respond|answer|write|shout|exclaim|react|return|greet me|tell me|come back|use the (?:phrase|words?|sentence)))\b)"
    r"(?:\s+(?:only|just|exactly|back|to (?:me|it|that|this)|me))*"
    r"(?:\s+(?:with|by saying|saying|using|that|the (?:phrase|words?|sentence)|this))*\s*[:,]?\s*",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"\b(?:i|we|they|he|she|user|someone|somebody|anyone)(?:['’]d|['’]ll)?(?:\s+(?:ever|happen to|will|should|would|might|do))*\s*$",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"^\s*(?:i|we|you (?:hear|see|read)(?: me| that)*|my (?:message|words) (?:is|are))?\s*(?:ever |happen to )?"
    r"(?:say|says|tell you|mention|write|ask(?: you)?|state|type|remark|send you|talk about|bring up|use|complain|let you know)?"
    r"(?: that| about| the (?:phrase|words?|sentence))*\s*[:,]?\s*",
    re.IGNORECASE,
)
_SPEAKING = re.compile(
    r"\s*(?:that )?(?:you (?:hear|see|read)|(?:i|we)(?:['’]m|['’]ve|['’]d)?(?:\s+(?:ever|happen to|start to|do|next|again|am|should))*\s+"
    r"(?:say|tell|mention|writ|ask|stat|type|complain|announc|declar|speak|talk|remark|bring up|utter|send|report|claim"
    r"|admit|bring)\w*(?! so\b))\b",
    re.IGNORECASE,
)
_PREFACE = re.compile(
    r"^(?:(?:please|from (?:now|here|this point) on(?:wards)?|then|always|i(?:['’]d like| want| need) you to|you (?:should"
    r"|must|will|are to|have to|shall)|you(?= \w)"
    r"|make sure (?:to|you|that you)|just|simply|immediately|be sure to|remember to)\b[\s,]*)+",
    re.IGNORECASE,
)
_NO_VERB = frozenset(
    "i you he she it we they the a an my your his her its our their this that there these those not no so is are was in".split()
)
_NOUNS_FOLLOW = re.compile(r"(?:there|nobody|people|somebody|someone|everybody|everyone|\w+s)\b", re.IGNORECASE)
_ASKED = re.compile(r"(?:what|where|when|who|how|why|which|whether|if|all|every|in|as)\b", re.IGNORECASE)
"""Begins what is asked for, or its form, not what is to be said."""
_REPLY = r"(?:reply|response|answer|message|turn|repl(?:ies)|responses|answers|messages|turns)"
_COUNTED = re.compile(
    rf"\b([0-9]{{1,4}}|[a-z-]+)\s+(?:(?:more|other|further|additional|of your|of my) )?{_REPLY}\b"
    r"|\b(?:replied|responded|answered|spoken)(?: to me)?\s+([0-9]{1,4}|[a-z-]+)\s+(?:more )?times\b",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    rf"\b(?:{_REPLY}|number|no\.)\s*(?:number\s*|no\.\s*|#\s?)?([0-9]{{1,4}}|(?:two|three|four|five|six|seven|eight|nine|ten)\b)",
    re.IGNORECASE,
)
_ANSWERING = re.compile(
    rf"\b{_REPLY}\b|\b(?:replied|responded|answered)\b|\b(?:repl(?:y|ies)|answer|respond|write|say|speak|talk)\b[^.;:]{{0,20}}\bme\b", re.I
)
_LETTING_BY = re.compile(r"\b(?:after|once|let|skip|wait|pass|go by|gone by|when you(?:['’]ve| have))\b", re.IGNORECASE)
"""So many replies come before the one that is meant."""
_NAME = r"[^\W\d_a-z][\w.'’-]*(?<![.])"
_WITH_AUTHOR = re.compile(
    rf"[\"“”][^\"“”]{{3,}}[\"“”](?:\s*(?:[-–—~]+|\bby)\s*{_NAME}(?:\s+(?:(?:de|da|di|la|le|van|von|der|of|the|al|ibn)\s+)*{_NAME}){{0,4}})?"
)
_COUNTS_THIS = re.compile(
    r"(?<!-)\b(?:first|1st)\b|\b(?:number|no\.|reply|response|answer|message|as) (?:one|1)\b"
    r"|\b(?:count|includ|start|begin)\w*(?: (?:with|from|at|on))?(?: (?:your|the))?"
    r"(?: (?:\w+ )?(?:reply|response|answer|message|one)(?: to)?)?"
    r" (?:this|that|now)\b"
    r"|\bthis\b[^.;:]{0,30}\bincluded\b|\babout to\b[^.;:]{0,20}\bincluded\b|\bfrom this\b[^.;:]{0,20} on\b",
    re.IGNORECASE,
)
"""Says that the reply to this very message is the first."""
_FORGET = re.compile(
    r"(?<!n't )(?<!n’t )(?<!not )(?<!never )(?<!i )\b(?:forget|disregard|dismiss|ignore|never ?mind|pretend|scrap|discard"
    r"|erase|wipe|drop everything|set aside"
    r"|put aside|leave aside|let go of|unlearn|clean slate|start (?:over|afresh|anew|again)|strike (?:all|every\w*|what)"
    r"|(?:clear|empty|reset|throw away|bin) (?:all|everything|what|the|my|your)|stop (?:saying|replying|responding|answering))\b"
    r"|(?:n['’]t|\bnot) (?:valid|relevant|count|apply|matter)\b|\bout of (?:date|your (?:mind|memory|head))\b"
    r"|\bleave .{3,80} behind\b|\bnever happened\b"
    r"|\bno longer (?:relevant|valid|appl\w+|hold\w*|need\w* to|counts?|matters?|true)\b"
    r"|\b(?:is|are) (?:now |hereby )?(?:over|finished|void|cancelled|obsolete|outdated|off the table)\b",
    re.IGNORECASE,
)
_META = frozenset(
    stem(word)
    for word in """forget disregard ignore scrap discard erase wipe clean slate drop set aside leave let stop start afresh anew relevant
    valid apply hold need count matter true previous past prior earlier hitherto statement conversation topic subject regard concern
    relate stuff detail state ask entire whole old round test exercise game point mind memory never clear empty reset throw bin
    know happen unlearn fresh scratch strike information fact thing finish cancel obsolete void""".split()
)
"""Words about forgetting as such."""
_RULES = frozenset(map(stem, "instruction rule phrase trigger response reply sentence code cue".split()))


@final
@dataclass(frozen=True, slots=True)
class Order:
    """What a message orders for later.

    `cue` and `say`: whenever the cue is said, say that. `nth` and `say`: append that to the nth reply after this one's
    message, 0 being the reply to it; where `say` is empty, what was told before. `forget`: disregard what was said about
    these words; `rest` is what the message tells besides. An order may do both.
    """

    cue: frozenset[str] = frozenset()
    say: str = ""
    nth: int | None = None
    forget: frozenset[str] = frozenset()
    rest: str = ""

    @property
    def stands(self) -> bool:
        """Whether something is to be done later."""
        return bool(self.cue) or self.nth is not None


@lru_cache(maxsize=4)
def order(text: str) -> Order | None:
    """The order that a message gives, None where it gives none."""
    if len(text) > LONGEST:
        return None
    forget = forgets(text)
    rest = forget.rest if forget else text
    given = _appointment(rest) or _standing(rest)
    return replace(given, forget=forget.forget, rest=rest) if forget and given else given or forget


def forgets(text: str) -> Order | None:
    """The order to disregard something that a message gives: what about, and the rest of what it tells."""
    parts = sentences(text)
    found = next((at for at, part in enumerate(parts) if _FORGET.search(part) and not part.endswith("?")), None)
    if found is None:
        return None
    clauses = re.split(r"(?<=[,;:]) | [-–—]+ |—| (?=but )", parts[found])
    clause = next((one for one in clauses if _FORGET.search(one)), parts[found])
    about = next(filter(None, (frozenset(content(one)) - _META for one in (clause, parts[found], text))), frozenset())
    rest = " ".join([*parts[:found], *(one for one in clauses if one is not clause), *parts[found + 1 :]]).strip()
    return Order(forget=about, rest=rest) if about else None


def withdraws(about: frozenset[str], text: str) -> bool:
    """Whether an order of a text is among what is to be disregarded: it has half of the words by which that is named."""
    named = about - _RULES
    return 2 * len(named & set(content(text))) >= len(named)


def said(text: str) -> list[frozenset[str]]:
    """The words of each sentence of a message, and of all of a short one: where cues are looked for."""
    if len(text) > LONGEST:
        return []
    parts = [*sentences(text), text] if len(text) < 300 else sentences(text)
    return [_all_stems(part) for part in parts]


def fires(cue: frozenset[str], heard: list[frozenset[str]]) -> bool:
    """Whether a cue was said: one of the sentences heard has nearly all of its words."""
    enough = 0.8 * _weight(cue)
    return any(_weight(both) >= enough for words in heard if (both := cue & words))


def _standing(text: str) -> Order | None:
    """ "Whenever I say X, say Y" and "say Y whenever I say X": by what is quoted, else by the verbs of saying."""
    condition = _CONDITION.search(_masked(text))
    if wants_json(text) or (text.rstrip().endswith("?") and not condition):
        return None
    cue, say = _by_quotes(text) or _by_colons(text) or (_by_verbs(text, condition) or _by_comma(text, condition) if condition else ("", ""))
    return Order(cue=_all_stems(cue), say=say) if cue and say and (say in quoted(text) or not _ASKED.match(say)) else None


def _by_quotes(text: str) -> tuple[str, str] | None:
    """Two quotations: the first is the cue, unless the condition stands between them or the first comes after a verb of saying."""
    quotes = [one for one in quoted(text) if not re.search(r"\b(?:instead of|not|no longer|than)\W*$", text.partition(one)[0][-20:], re.I)]
    if len(quotes) < 2 or not _RULE.search(_masked(text)):
        return None
    first, second = quotes[:2]
    lead, _, rest = text.partition(first)
    between = rest.partition(second)[0]
    if _CONDITION.search(lead) is None and (
        _CONDITION.search(between) or re.search(r"(?<!\bi )\b(?:say|reply|respond|answer|shout|write|with|use)\W*$", lead, re.IGNORECASE)
    ):
        return second, first
    return first, second


def _by_colons(text: str) -> tuple[str, str] | None:
    """ "When you read: X. Answer: Y" """
    match = re.search(r":\s*([^:]{3,300}?)[.!?;,\n]+\s+([^:]{2,80}):\s*(.{2,300})$", text, re.DOTALL)
    if not match or not _RULE.search(match[2]) or not (_CONDITION.search(text[: match.start()]) or _RULE.search(text[: match.start()])):
        return None
    return match[1].strip(" \"'“”"), match[3].strip(" \"'“”")


def _by_comma(text: str, condition: re.Match[str]) -> tuple[str, str]:
    """ "When I X, do Y" and "do Y whenever I X", Y being what anyone is told to do: not a statement that begins with a noun."""
    always = condition[0].casefold() not in ("when", "if", "once", "in case") and re.match(
        r"\s*i\b", text[condition.end() :], re.IGNORECASE
    )
    if not (always or _SPEAKING.match(text[condition.end() :])) or text.endswith("?"):
        return "", ""
    clause, comma, rest = text[condition.end() :].partition(", ")
    if not comma:
        clause, rest = text[condition.end() :], text[: condition.start()]
    rest = re.sub(_PREFACE, "", rest).strip()
    verb, _, say = (sentences(rest) or ("",))[0].partition(" ")
    if not say or not verb.isalpha() or verb.casefold() in _NO_VERB or _NOUNS_FOLLOW.match(rest):
        return "", ""
    return _cue(clause), _phrase(say)


def _by_verbs(text: str, condition: re.Match[str]) -> tuple[str, str] | None:
    masked = _masked(text)
    acts = [act for act in _ACT.finditer(masked) if not _SUBJECT.search(masked[: act.start()])]
    after = [act for act in acts if act.start() > condition.end()]
    before = [act for act in acts if act.end() <= condition.start()]
    between = slice(condition.end(), after[0].start() if after else None)
    if after and _one_breath(condition[0], masked[between]) and (cue := _cue(text[between])):
        return cue, _phrase(text[after[0].end() :])
    if before and (cue := _cue(text[condition.end() :])):
        return cue, _phrase(text[before[-1].end() : condition.start()])
    return None


def _one_breath(condition: str, between: str) -> bool:
    """Whether a condition and what to do then belong together: no question between, and no full stop after a plain "if"."""
    return "?" not in between and (condition.casefold() not in ("when", "if", "once", "in case") or not re.search(r"[.!]\s", between))


def _masked(text: str) -> str:
    """`text` with what it quotes blotted out, so that no verb is found in there."""
    for quote in quoted(text):
        text = text.replace(quote, "_" * len(quote), 1)
    return text


_LEADS = frozenset("then please you should must will are to have need i want would like make sure always immediately simply just".split())
"""What may stand between a condition and what to do then."""


def _cue(text: str) -> str:
    """What has to be said for an order to hold: what is quoted, else all but "I say that"."""
    quotes = quoted(text)
    cue = quotes[0] if quotes else _SAID.sub("", re.split(r"[.!?]\s", text)[0], count=1)
    words = cue.split()
    while words and words[-1].strip(",;:").casefold() in _LEADS:
        words.pop()
    cue = " ".join(words)
    return cue if WORD.search(cue) else ""


def _phrase(text: str) -> str:
    """What is to be said: what is quoted, else the rest of the sentence."""
    quotes = quoted(text)
    if quotes:
        return quotes[0]
    parts = sentences(text.strip())
    return parts[0].strip(" ,;:\"'") if parts and WORD.search(parts[0]) else ""


def _appointment(text: str) -> Order | None:
    """ "Append X to your 5th reply"; "X" with its author where it has one. "Append it": what was told before."""
    masked = _masked(text)
    nth = _nth(masked)
    if nth is None or not re.search(r"\byou(?:r|['’]ve|['’]ll)?\b|\bfrom now\b|\bahead\b|#|\bnumber\b", masked, re.IGNORECASE):
        return None
    say = quotation(text) or _after_colon(text)
    if not say and (re.search(r"\b(?:what|which|who|did)\b", masked, re.IGNORECASE) and asks(text)):
        return None
    return Order(say=say, nth=nth)


def _after_colon(text: str) -> str:
    """What follows a colon, unless the instruction itself goes on there."""
    before, _, after = text.partition(":")
    return after.strip() if len(after.split()) > 1 and _nth(before) is not None and _nth(after) is None else ""


def quotation(text: str) -> str:
    """The quotation that a message has, with its author and its marks where that is how it is written; "" for none."""
    match = _WITH_AUTHOR.search(text[:LONGEST])
    return match[0] if match else max(quoted(text[:LONGEST]), key=len, default="")


def _nth(text: str) -> int | None:
    """Which reply after the one to this message a text about replies means, that one being 0: "5th reply", "reply number 5",
    "5 replies from now", the 5th "after 4 replies"; one less where it counts the reply to this message as the first.
    """
    if not _ANSWERING.search(text):
        return None
    first = bool(_COUNTS_THIS.search(text))
    ordinals = [nth for word in re.findall(r"[\w-]+", text) if (nth := ordinal(word)) is not None]
    numbers = [int(count) for match in _NUMBERED.finditer(text) if (count := amount(match[1])) is not None]
    for counted in (ordinals, numbers):
        later = [number for number in counted if number > 1] if first else counted
        if later or (counted and not numbers):
            return _after((later or counted)[0], first)
    for match in _COUNTED.finditer(text):
        count = None if (match[1] or "").casefold() in ("a", "an") else amount(match[1] or match[2])
        if count is not None:
            return _after(int(count) + bool(_LETTING_BY.search(text)), first)
    return None


def _after(number: int, first: bool) -> int | None:
    """How many replies after the one to this message comes the reply of a number, which counts that one where it is the `first`."""
    return number - first if number > 0 else None


def _all_stems(text: str) -> frozenset[str]:
    """The stems of all words of `text`, small ones included."""
    return frozenset(stem(word) for word in WORD.findall(text))


@lru_cache(maxsize=1000)
def _weight(stems: frozenset[str]) -> float:
    """How much words tell a cue by: small ones little."""
    return sum(0.3 if one in STOP else 1.0 for one in stems)
