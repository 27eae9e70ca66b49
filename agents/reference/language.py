"""The little English that `notebook` knows: words and their stems, sentences, what asks and what tells, numbers.

Every function is linear in its text, or looks at no more than the first few thousand characters of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache

from longspan.simulator.grading.matching import number

__all__ = [
    "FIRST_PERSON",
    "KINDS",
    "STOP",
    "WORD",
    "amount",
    "asks",
    "content",
    "duration",
    "enclosed",
    "instructs_form",
    "kind",
    "near",
    "options",
    "ordinal",
    "quoted",
    "requests",
    "sentences",
    "stem",
    "wanted_keys",
    "wants_json",
    "wants_list",
]

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our)\b", re.IGNORECASE)
SHORT = 2000
"""Only the beginning of a longer sentence or message is looked at for its form, in characters."""

STOP = frozenset(
    """a about above actually after again ago all also although always am an and another any anymore anyway are as at away back be
    because been before being below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't done
    down during each either else ever every everything few finally first for from further get gets getting go going gone got had has
    have having he hello her here here's hers hey hi him his how however i i'd i'll i'm i've if in instead into is isn't it it's its
    itself just let let's longer lot made make makes many may maybe me might mine more moreover most much must my myself never new next
    no nor not nothing now of off oh ok okay on once one ones only onto or other others our ours out over own per perhaps please quite
    rather really right same shall she should since so some something soon still such sure than thank thanks that that's the their
    theirs them themselves then there there's these they thing things this those though through thus till to today together too under
    until up upon us used very want wanted was wasn't way we we're well were what what's when where whether which while who who's whom
    whose why will with without won't would wouldn't yes yet you you'd you'll you're you've your yours yourself far given giving give
    gave said say saying says tell telling told mention mentioned remember remind recall know currently lately recently nowadays days
    moment present several later afterwards last earlier use using""".split()
)
"""Words too common to be looked up by."""

FORM = frozenset(
    """answer answers brief briefly exactly example express fill form format json key list listed lists array provide put reply respond
    response short sentence single word words recite show write wonder forgotten forgot read describe explain""".split()
)
"""Words about the form of an answer, not about what is asked."""

_NEAR = """begin start commence beginning|big large huge|book novel|boss manager|build construct|buy purchase shop shopping grocery|
car vehicle automobile|child kid|city town village|cold chilly|
colour shade hue tint|company firm|cook prepare|cost price worth|doctor physician|
drink beverage thirst thirsty sip|eat dine food dish meal main mains course entree hungry|
starter appetizer appetiser begin|dessert sweet pudding|
end finish stop|enemy foe|error mistake|fast quick rapid|father dad|favourite prefer preferred love like best adore fond|
film movie|friend pal buddy|gift present|happy glad cheerful|holiday vacation|home house live living|hotel inn|ill sick unwell|
job work profession occupation living trade|journey trip travel visit|joke funny laugh gag pun amuse humour hilarious giggle quip|
kill murder|letter note message telegram text|meet meeting gather rendezvous|money cash|mother mum mom|
name call refer known know title address nickname alias identity|old aged|phone telephone|photo picture image|
place location spot|quote quotation saying proverb words line|rich wealthy|riddle puzzle|road street|sad unhappy|see look watch|
small little tiny|smart clever|speak talk|story tale|teacher tutor|time hour|walk stroll|wife spouse husband|woman lady|
wrong false incorrect"""

KINDS = {
    "colour": """red blue green yellow orange purple violet pink brown black white grey gray teal maroon amber lilac beige crimson indigo
    ochre scarlet cyan magenta navy turquoise gold silver lavender mauve burgundy coral ivory khaki aqua
    tan azure cobalt emerald ruby sapphire fuchsia vermilion chartreuse sepia taupe bronze copper jade
    umber puce amethyst aquamarine auburn carmine cerise cerulean charcoal chestnut claret cornflower ebony garnet mahogany orchid
    periwinkle pewter russet slate terracotta tangerine topaz ultramarine viridian wisteria rose lime peach plum olive salmon mint""",
    "direction": "north south east west northward southward eastward westward northeast northwest southeast southwest",
    "weekday": "monday tuesday wednesday thursday friday saturday sunday",
    "month": "january february march april june july august september october november december",
}
"""Words of one kind, by the word for the kind: a question after the kind is about them."""

_POLITE = re.compile(
    r"^(?:(?:please|so|now|ok(?:ay)?|and|hey|hi|hello|well|then|finally|also|just|alright|right|kindly|all right|next|in json|as json"
    r"|(?:can|could|would|will) you(?: please| kindly)?|i(?: want|['’]d like| would like| need) you to)\b[\s,:!.]*)+",
    re.IGNORECASE,
)
_TELL = re.compile(
    r"^(?:tell|list|name|remind(?! me to\b)"
    r"|recall|repeat|retell|state|describe|explain|answer|summari[sz]e|report|show|enumerate|extract|identify"
    r"|recite|give|provide|help|plan|navigate|draw up|produce|output|return|work out|figure out|present|outline|reveal"
    r"|(?:get|take|walk|bring) me|make (?:me )?an?(?! note)|write (?:me |us )?(?:an?|all|my|the|every)|let me (?:know|hear|see|have)"
    r"|retrieve|decode|decipher|interpret|guide|lead"
    r"|direct|spell|print|compile|count|choose|pick|select|which|read (?:me|back|out|the)|say (?!['\"“‘])(?:it|that|this|again|what|which"
    r"|who|where|when|how|the|in)|write (?:out|down (?:all|what|which|every)|it (?:out|again))|put (?:together|all|them|every)|share"
    r"|(?:go|think|look|cast your mind) back|(?:bring|dig) (?:back|up|out)|do you (?:remember|recall|know)|fill)\b",
    re.IGNORECASE,
)
"""Orders to say something."""
_TELL_WITHIN = re.compile(
    r"[,;:–—-]\s+(?:and |then |now |please |so )*(?:(?:tell|give|remind|show) me\b|re(?:peat|tell|cite|call)\b|let me (?:hear|see|know)\b"
    r"|(?:say|tell) (?:it|that|this|them|the \w+) (?:again|once more))",
    re.IGNORECASE,
)
_OBLIQUE = re.compile(
    r"\b(?:wonder(?:ing)?|curious|slipped (?:my|from)|lost track|(?:i(?:['’]ve)?|have) (?:quite |clean )?forg[oe]t(?:ten)?"
    r"|(?:can['’]?t|cannot|don['’]?t|do not|unable to) (?:quite )?(?:remember|recall)"
    r"|(?:want|like|love|need|wish|keen|glad|happy|time) to (?:know|hear|see|read|be (?:told|reminded))|i(?:['’]m"
    r"| am) (?:looking for|after))\b"
    r"|\bplease\W*$|\bmy\b[^.]*(?:\.{3}|…)\W*$",
    re.IGNORECASE,
)
"""Says that something is wanted to be known."""
_FAVOUR = re.compile(
    r"^(?:[\w ]{0,20}[, ])?(?:can|could|would|will) you\b(?! (?:like|prefer|rather|have|be|say|want|know|think|call)\b)"
    r"|(?:will|would|could|can) you\W*$|^how about\b",
    re.IGNORECASE,
)
"""Asks to do something, and for no answer."""
_RHETORICAL = re.compile(
    r"^(?:did you know|do you know what[,!?]|(?:do )?you know what\?|guess what|have you (?:ever )?heard|want (?:to hear|a)|shall i|ready\b"
    r"|underst(?:oo|an)d|(?:is that |all |are we )?(?:ok|okay|clear|right)\b|got it|isn['’]t|aren['’]t|don['’]t you think|how about that)"
    r"|\b(?:ok|okay|understood|got it|right|deal|agreed|all right)\?$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?][\"'”’)\]])\s+")
_ANSWER = re.compile(r"[\w'’-]+(?: [\w'’-]+)?[.!]")
_TO_YOU = re.compile(r"\b(?:i|me|my|mine|myself|you|your)\b", re.IGNORECASE)
_FORM_START = re.compile(
    r"^(?:answer|respond|reply|give|provide|use|write|return|express|format|only|just|for example|e\.?g\b|example|no |do not|don't|be "
    r"|your (?:answer|reply|response)|the answer|keep|output|nothing|put|as (?:a )?json|in json|like this|one word|say in|fill"
    r"|(?:make|phrase) (?:it|your))",
    re.IGNORECASE,
)
_FORM_WORD = re.compile(
    r"\b(?:answers?|response|reply|json|format|words?|list|text|brief|short|sentence|example|e\.?g|else|explanation|explain|number"
    r"|object|array)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“”]([^\"“”]{1,2000})[\"“”]|(?<!\w)['‘]((?:[^'‘’]|(?<=\w)['’](?=\w)){1,2000})['’](?!\w)|«([^»]{1,2000})»")
_LIST = re.compile(
    r"\b(?:list|array)\b|\[\s*[\"'{]|(?:(?<!of )(?<!after )(?<!above )(?<!at )|(?<=of )(?=all (?:my|the|these|those"
    r"|our)\b))\b(?:all|each|every|everything|every one)\b(?: of)?(?: the| my| your| these| those)? \w+|\bso far\b",
    re.IGNORECASE,
)
_MARK = re.compile(r"(?:^|(?<=[\s,;(]))(Q|A|Question|Answer)\s?[0-9]{0,3}\s?:\s", re.IGNORECASE)
_OPTION = re.compile(
    r"(?:^|\n)[ \t*#_>-]{0,6}(?:(?:option|chapter|choice|ending|beginning|part|number|candidate|passage)[ \t#]{1,3})?[(\[]?"
    r"([0-9]{1,2}|[A-Za-z])[).:\]][*_]{0,3}\s+",
    re.IGNORECASE,
)
_CHOOSE = re.compile(
    r"\b(?:which|choose|pick|select|next|continu\w+|follows?|go(?:es)? on|goes with|comes? (?:after|next))\b", re.IGNORECASE
)
_AGO = re.compile(r"\b(?:ago|earlier|before (?:now|this)|the past|back|prior|since|gone by|passed|gone)\b", re.IGNORECASE)
_PERIODS = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "h": 3600, "day": 86_400, "week": 604_800}
_PARTS = {"half": 0.5, "quarter": 0.25}
_PERIOD = re.compile(
    r"(?:\b(?P<part>half|quarter)(?: of)? an? "
    r"|(?P<count>[0-9.]+|\b[a-z]+(?:-[a-z]+)?)(?: and an? (?P<inner>half|quarter))?(?:\s+|-|(?<=[0-9])))"
    rf"(?P<unit>{'|'.join(_PERIODS)})s?(?![a-z])(?: and an? (?P<outer>half|quarter)\b)?",
    re.IGNORECASE,
)
_IRREGULAR = {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """What a word's forms have in common: apple and apples, call and called, colour and color."""
    word = word.casefold().replace("’", "'").removesuffix("'s").removesuffix("'")
    if len(word) > 4:
        word = word.replace("our", "or")
    for suffix, instead in (("ies", "y"), ("ves", "f"), ("ing", ""), ("ed", ""), ("oes", "o"), ("s", "")):
        rest = word.removesuffix(suffix)
        if rest != word and len(rest) >= 3 and not rest.endswith("s") and re.search("[aeiouy]", rest):
            word = rest + instead
            if suffix in ("ing", "ed") and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    word = word.removesuffix("e") if len(word) > 3 else word
    return f"{word[:-1]}f" if word.endswith("v") else word


def content(text: str) -> list[str]:
    """The stems of the words of `text` that say what it is about, in order, repetitions kept."""
    return [stem(word) for word in WORD.findall(text) if word.casefold().replace("’", "'") not in STOP]


def _neighbours() -> dict[str, frozenset[str]]:
    near: dict[str, set[str]] = {}
    for group in re.split(r"[|\n]+", _NEAR):
        stems = {stem(word) for word in group.split()}
        for one in stems:
            near.setdefault(one, set()).update(stems - {one})
    return {one: frozenset(others) for one, others in near.items()}


_NEIGHBOURS = _neighbours()
_KIND = {stem(word): stem(kind) for kind, words in KINDS.items() for word in words.split()}


def near(one: str) -> frozenset[str]:
    """Stems of words of nearly the same meaning, from a pocket thesaurus."""
    return _NEIGHBOURS.get(one, frozenset())


def kind(one: str) -> str:
    """The stem of the word for what a stem is one of: colour for red; "" where the pocket thesaurus has none."""
    return _KIND.get(one, "")


@lru_cache(maxsize=16)
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of `text`; a line break ends one too. One who asks and answers at once ("The best of dogs? Rex.") asks nothing."""
    found: list[str] = []
    for line in text.split("\n"):
        for part in filter(None, map(str.strip, _SENTENCE_END.split(line))):
            if found and found[-1].endswith("?") and _ANSWER.fullmatch(part) and content(part) and not instructs_form(part):
                found[-1] += " " + part
            else:
                found.append(part)
    return tuple(found)


def asks(sentence: str) -> bool:
    """Whether a sentence wants an answer: a question, or an order to say something."""
    sentence = sentence[:SHORT].strip()
    bare = _POLITE.sub("", sentence)
    if _RHETORICAL.search(bare) or _RHETORICAL.search(sentence):
        return False
    if _TELL.match(bare) or _TELL_WITHIN.search(sentence):
        return True
    return sentence.rstrip("\"'”’) ").endswith("?") and not _FAVOUR.search(sentence)


def instructs_form(sentence: str) -> bool:
    """Whether a sentence only says in what form to answer."""
    sentence = sentence[:SHORT].strip()
    bare = _POLITE.sub("", sentence)
    if sentence.endswith("?"):
        return False
    if re.search(r"\bjson\b", sentence, re.IGNORECASE) and not _TELL.match(bare) and not FIRST_PERSON.search(bare):
        return True
    return bool((_FORM_START.match(bare) and _FORM_WORD.search(bare)) or (bare[:1] in ("[", "{") and bare.rstrip(". ")[-1:] in ("]", "}")))


def wants_json(text: str) -> bool:
    return bool(re.search(r"\bjson\b|\[\s*[\"'{]|\{\s*[\"']", text[:5000], re.IGNORECASE))


def wants_list(text: str) -> bool:
    """Whether a request wants a list for an answer: it says list or array, shows one, or asks for all of some things."""
    return bool(_LIST.search(text[:5000]))


def wanted_keys(text: str) -> list[str]:
    """The keys of the JSON objects that a request wants, as in its example."""
    found = re.findall(r"[\"'“”]([A-Za-z_][\w ]{0,30})[\"'“”]\s*:", text[:5000]) or re.findall(r"\bkey [\"'“‘](\w+)", text[:5000])
    return list(dict.fromkeys(found))


def quoted(text: str) -> list[str]:
    """What stands in quotation marks in `text`, outermost, in order."""
    return [inside for groups in _QUOTED.findall(text[:5000]) if (inside := next(filter(None, groups)).strip())]


@lru_cache(maxsize=4)
def enclosed(text: str) -> tuple[str, ...]:
    """The answers that stand in a message itself, after "A:" in pairs of questions and answers; none where it has no pairs."""
    pieces = _MARK.split(text[:200_000])
    marks = [mark[0].upper() for mark in pieces[1::2]]
    if "Q" not in marks:
        return ()
    answers = (piece.strip().split("\n", 1)[0] for mark, piece in zip(marks, pieces[2::2], strict=True) if mark == "A")
    return tuple(answer.strip(" ,;") for answer in answers if answer.strip(" ,;"))


@lru_cache(maxsize=4)
def requests(text: str) -> bool:
    """Whether a message wants an answer. In doubt it does: an answer to what asked nothing costs less than none to a question.

    It does where what ends it asks, where anything in it asks one of the two who talk, where it says that something is wanted,
    names a format or a time ago, offers options or holds pairs of questions and answers.
    """
    if enclosed(text) or options(text):
        return True
    every = sentences(text)
    parts = [part for part in every if not instructs_form(part)]
    if not parts:
        return any(map(content, every))
    if asks(parts[-1]):
        return True
    if len(text) > SHORT:
        return False
    asked = any(asks(part) and (_TO_YOU.search(part) or not part.rstrip("\"'”’) ").endswith("?")) for part in parts)
    return asked or bool(_OBLIQUE.search(text)) or wants_json(text) or duration(text) is not None


@lru_cache(maxsize=4)
def options(text: str) -> tuple[tuple[str, str], ...]:
    """The numbered or lettered options that a message offers for a choice: label and text. Labels go up from 1 or A."""
    marks = list(_OPTION.finditer(text))
    labels = [mark[1].upper() for mark in marks]
    first = next((at for at, label in enumerate(labels) if label in ("1", "A")), None)
    if first is None or first + 1 >= len(labels) or labels[first + 1] not in ("2", "B"):
        return ()
    marks = marks[first:]
    if not _CHOOSE.search(text[: marks[0].start()][-600:] + " " + text[marks[-1].end() :][-600:]):
        return ()
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return tuple((mark[1], text[mark.end() : end]) for mark, end in zip(marks, ends, strict=True))


def ordinal(word: str) -> int | None:
    """The number that an ordinal says: 3rd, third, twenty-first; None for any other word."""
    word = word.casefold()
    if match := re.fullmatch(r"(\d{1,4})(?:st|nd|rd|th)", word):
        return int(match[1])
    head, hyphen, last = word.rpartition("-")
    if last.endswith("ieth"):
        value = amount(last.removesuffix("ieth") + "y")
    else:
        value = _IRREGULAR.get(last) or (amount(last.removesuffix("th")) if last.endswith("th") else None)
    tens = amount(head) if hyphen else 0
    return int(value + tens) if value is not None and tens is not None else None


def amount(word: str) -> float | None:
    """The number that a word says: 3, three, a, couple; None for any other."""
    return number(word[:20])


def duration(text: str) -> tuple[timedelta, timedelta] | None:
    """How long ago `text` says something was, and the smallest unit it says that in: "2 hours and 10 minutes ago".

    None where it says no such time; "back" and the like may stand before the time as well as after.
    """
    text = re.sub(r"\b(\w+) and an? (half|quarter) (hours?)\b", r"\1 \3 and a \2", text[:SHORT])
    if not _AGO.search(text):
        return None
    found = list(_lengths(text))
    ago = [mark.start() for mark in _AGO.finditer(text)]
    if not found or (not any(0 <= at - found[-1][0] < 30 for at in ago) and not any(found[0][0] - at < 60 for at in ago)):
        return None
    return timedelta(seconds=min(sum(length for _, length, _ in found), 1e9)), timedelta(seconds=min(unit for *_, unit in found))


def _lengths(text: str) -> Iterator[tuple[int, float, float]]:
    """The lengths of time in a text: where each ends, its seconds, and the seconds of the unit it is told in."""
    for match in _PERIOD.finditer(text):
        count = _PARTS[match["part"].casefold()] if match["part"] else amount(match["count"])
        if count is not None:
            more = _PARTS[(match["inner"] or match["outer"]).casefold()] if match["inner"] or match["outer"] else 0.0
            unit = _PERIODS[match["unit"].casefold()]
            yield match.end(), (count + more) * unit, unit if count + more == int(count + more) else unit / 4
