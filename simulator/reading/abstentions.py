"""Detects replies that decline: the reply says that the answer is unknown, was never mentioned, or is withheld.

The reader splits a reply into clauses. A clause declines if a negation comes with a verb of knowing whose subject is not the user ("I
couldn't find it"), a verb of telling ("you never said", "it was not mentioned") or a noun for a record ("no trace of it", "nothing in my
notes"). A few words and idioms decline without a negation ("unknown", "I'm drawing a blank").

The rules are regular expressions over plain words (see `plain`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final, NamedTuple, final

from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import readable_part
from longspan.simulator.reading.matching import contains_phrase, split_json
from longspan.simulator.reading.replies.layout import expand_contractions
from longspan.simulator.reading.replies.lexicon import LEXICON
from longspan.simulator.reading.replies.reading import settled_words
from longspan.simulator.reading.replies.splitting import SENTENCE_END

__all__ = ["declines_question", "find_names", "find_offers", "is_abstention", "is_refusal", "is_unsure"]

_BE: Final = "is|was|are|were|am|be|been|being|s"
_HAVE: Final = "have|has|had|having|ve"
_AUXILIARY: Final = rf"(?:{_BE}|{_HAVE}|do|does|did|can|could|will|would|ll|may|might)"
_ADVERB: Final = (
    r"(?:(?!only )\w+ly|ever|yet|even|also|still|quite|so far|in fact|at all|just|once|really|all|too|very|100|percent|always|often"
    r"|otherwise|either"
    r"|exactly|any longer|anywhere|indeed|currently|right now|at present|now|seem to|appear to|manage to|managed to"
    r"|or|been|be|being|got|have|has|had|myself|a hundred)"
)
_NOT: Final = rf"(?:not|never|nor|neither)(?: {_ADVERB}){{0,4}}"
_ABLE: Final = r"(?: (?:able|possible|in a position|going|expected) to)?"

_KNOW: Final = (
    r"(?:know|knew|known|knowing|aware|recall|recalled|recalling|remember|remembered|recollect|recollected|find|finding|locate"
    r"|located|locating|see|seen|seeing|spot|spotted|trace|traced|retrieve|retrieved|pinpoint|tell|telling|say|saying|answer|answered"
    r"|determine|determined|establish|established|ascertain|identify|identified|confirm|confirmed|verify|verified|work out|make out|figure"
    r"|deduce|infer|sure|certain|positive|clear|confident|familiar|privy|heard|hear|learn|learned|learnt|informed|clue|told|given|shown"
    r"|found(?! (?:out|in|on))|have(?! to\b)|hold|retain|retained|possess|picked? up|catch|caught|come across|came across|guess|speculate"
    r"|be certain|be sure|make (?:it|that|one|a \w+) up|access|name it|name (?:him|her|them)|bring to mind|place)"
)
"""Verbs and adjectives for knowing something."""
_NO_KNOWING: Final = r"(?! (?:fault|a better|anything better|any better|any fault|any problem|why|it hard|it difficult|wrong)\b)"
"""Excludes phrases that say nothing about knowledge, such as "I couldn't find fault with it" and "I don't see why"."""

_TELL: Final = (
    r"(?:tell|told|telling|say|said|saying|mention(?:ed|ing|s)?|specif(?:y|ied|ying|ies)|stat(?:e|ed|ing|es)|shar(?:e|ed|ing)"
    r"|giv(?:e|en|ing|es)(?! up)|gave(?! up)|provid(?:e|ed|ing|es)|nam(?:e|ed|ing)|describ(?:e|ed|ing|es)|discuss(?:ed|ing)?"
    r"|identif(?:y|ied|ies|ying)"
    r"|indicat(?:e|ed|es)|reveal(?:ed|s)?|disclos(?:e|ed|es)|list(?:ed|s)?|includ(?:e|ed|es)|contain(?:ed|s)?|clarif(?:y|ied|ies)"
    r"|explain(?:ed|s)?|go(?:ne)? into|went into|get to|got to|gotten to|get into|got into|get round to|got round to|get around to"
    r"|got around to|put an? (?:\w+ )?(?:figure|number|name|date|price|time|label)"
    r"|touch(?:ed)? (?:on|upon)|(?:bring|brought)(?: (?:it|that|this))? up|c[oa]me(?: back)? up|cover(?:ed|s)?|record(?:ed)?|noted?"
    r"|written|wrote|write|logged|stored?|saved|address(?:ed|es)?|talked|talk|spoken|spoke|speak|report(?:ed)?|communicated?|suppl(?:y|ied)"
    r"|elaborated?|let (?:me|us|on)|detailed?|referr?(?:ed)?|documented|registered|spell(?:ed)? (?:it )?out|spelt (?:it )?out"
    r"|known|available|answerable|present|appear(?:ed|s)?|show(?:n|s)? up|show(?:n|s)?|turn(?:ed|s)? up|captured|conveyed"
    r"|entered|announced|passed (?:it |that )?on|volunteered|introduced|narrow(?:ed)? (?:it|that) down|lists?|outlined|set out"
    r"|confided|fill(?:ed)? me in|attach(?:ed)?|upload(?:ed)?|sent|send|add(?:ed)?|quoted?|declared|clear|disclosed)"
)
"""Verbs for telling something, and for having been told."""

_RECORD: Final = (
    r"(?:records?|recollections?|memor(?:y|ies)|information|info|details?|data|mentions?|mentioning|notes?|ideas?|clues?|answers?"
    r"|knowledge|notion|inkling|indications?|trace|references?|entry|entries|evidence|signs?|hints?|hits|match(?:es)?"
    r"|statements?|remarks?|context|confirmation|memo|specifics|particulars|discussion"
    r"|way (?:of|to) (?:knowing|telling|know|tell|say|be)|means of knowing)"
)
"""Nouns for a record of something the user said."""
_PLACE: Final = (
    r"(?:anything|everything|whatever|what|conversations?|chats?|messages?|history|notes?|memor(?:y|ies)|records?|exchanges?|transcripts?"
    r"|logs?|files?|context|discussions?|sessions?|talks?|threads?|dialogue|data|knowledge|earlier|before|here)"
)
"""Where an agent may keep what the user said."""
_NEARBY: Final = r"(?:\w+ ){0,4}?"

_SELF: Final = (
    r"(?:\b(?:i|we|me)(?: m| am)? |(?:^|\| )(?!(?:please |just |so )?do not (?:tell|say|answer|confirm|place|guess|learn"
    r"|have)\b)(?:(?:sorry|afraid|apologies|hmm|hm|um|well|oh|honestly|frankly|unfortunately|sadly|alas|no"
    r"|that|this|it|still|really|truly|actually|am|m) ){0,3})"
)
"""The speaker, who does not know. English may omit the subject ("Not sure", "Sorry, can't find it")."""
_UNWILLING: Final = (
    r"(?:will|would|ll|d) (?:\w+ly )?not (?:\w+ly )?(?:tell|say|name|answer|guess|confirm|identify|have|speculate|hold|place)\b"
)
_FAILING: Final = r"(?:unable|failed|failing|struggling|powerless|not (?:able|possible|in a position))"
_NOT_REFUSED: Final = (
    r"(?<!\bcan )(?<!\bcould )(?<!\bwill )(?<!\bwould )(?<!\bll )(?<!\bshould )(?<!\bmay )(?<!\brather )(?<!\bto )(?<!^do )"
)
"""Lookbehinds that exclude refusals. An agent that cannot or will not share a fact may well know it."""
_OF_OTHERS: Final = (
    r"(?<!\byou have )(?<!\byou had )(?<!\byou ve )(?<!\bhe had )(?<!\bshe had )(?<!\bthey had )(?<!\bhe has )(?<!\bshe has )"
)

_NO_THING: Final = (
    r"(?:problem|doubt|need|reason|fault|trouble|worries|way|matter|wonder|question|charge|time|longer|more|less|fewer|other|one|later|sooner"
    r"|thanks|use|room|excuse|substitute|match|cause|hope|point|fun|good|better|worse)\b"
)
"""Nouns after "no" that say nothing about knowledge: "no need for"."""
_IDIOMS: Final = (
    r"(?:is|s|was|are|remains|remain|it|still|currently) unknown|^unknown|unknown(?=$| \|| to me\b)|unsure|uncertain(?: of| about|$)"
    r"|unclear|unspecified|unstated|unmentioned|unrecorded|undisclosed|undetermined|insufficient"
    r"|unanswerable|unfamiliar with|unaware of|undocumented|clueless"
    r"|(?:i|we|memory|notes|records|history|conversation|messages|chats|which|that|and) (?:\w+ly )?(?:lack|lacks|lacked|omits?|omitted)\b"
    r"|(?:is|s|are|was|am) (?:missing|absent|lacking)(?: from| in| that| any|$)"
    r"|(?:came|come|coming|comes|turned|turn) up (?:empty|blank|short|with nothing|dry)"
    r"|(?:draw|drew|drawing|drawn) an? (?:complete |total )?blank|(?:is|s|remains|stays) an? (?:\w+ )?(?:blank|mystery)(?! \w*(?:novel"
    r"|book))"
    r"|beats me|search me|your guess is as good as mine|anyone s guess|anybody s guess|escapes me|eludes me|slipped my mind|at a loss"
    r"|(?:is|s|are) unavailable"
    r"|in the dark(?! about)|(?:i am|i m|me|us) in the dark|news to me|new one (?:to|on) me"
    r"|(?:the )?first (?:time )?(?:that )?i ?(?:have |ve )?(?:heard"
    r"|hear\b)"
    r"|no clue|not a clue|(?:foggiest|faintest)|none the wiser|no earthly idea|rings? no bells?|who knows|goodness knows|god knows"
    r"|kept (?:\w+ ){0,3}?(?:secret|quiet|back|to yourself|from me)|left (?:\w+ ){0,3}?(?:out|unsaid|blank|unspecified|at that)"
    r"|skipped (?:that|this|over|the)|(?:memory|mind|notes?|records?|history|messages|conversations?|chats?) (?:is|are|s|re) (?:blank"
    r"|empty|silent)"
    r"|(?:beyond|outside)(?: of)? (?:what i|my (?:knowledge|memory|records|notes)|anything (?:i|you|we))|lost track"
    r"|not (?:\w+ )?ring(?:ing)? (?:a|any) bells?|(?:found|got|returned|gave|were|with|are|was|there s) (?:no|zero) results?"
    r"|without (?:any |more |further |enough )(?:information|info|details?|context|data|records?)|without (?:ever )?(?:\w+ing)? ?"
    r"(?:telling|saying|mentioning|specifying|stating|naming|giving)|stopped short of (?:telling|saying|mentioning|naming|giving)"
    r"|need you to (?:tell|remind)|(?:would|ll|will|d) have to (?:tell|remind) me|(?:would|d|could|can|ll) (?:only |just )?(?:have to "
    r"|be )?(?:guess|guessing|a guess"
    r"|guesswork|speculating)(?! (?:it|he|she|they|that)\b)|i (?:have |ve )?(?:forgot|forgotten)|only remember that you|i wish i knew"
    r"|wish i could (?:tell|say|remember)|(?:told me|mentioned)\b.{0,20}\babout .{0,60} only$"
    r"|(?:ne|nen|n en) sais (?:pas|rien)|ne m ?(?:as|avez) pas dit|no lo se$|no me (?:lo )?(?:has|ha) dicho"
    r"|weiss (?:ich )?(?:es |das )?nicht"
    r"|(?:have to|must|ll) pass on (?:this|that)|there s none$"
    r"|keine ahnung|nicht (?:gesagt|erwahnt|erzahlt)|non lo so$|non me l hai|nao sei$"
    r"|geen idee|weet (?:ik )?(?:het |dat )?niet|niet verteld"
)
"""Words that decline without a negation."""
_ONLY: Final = (
    rf"(?:only|just|all) (?:ever )?(?:{_HAVE} )?(?:ever )?(?:told|mentioned|said|spoken|spoke|shared|gave|given|described|called"
    rf"|referred|know"
    r"|have)\b|(?:all|only thing|most|closest|nearest) (?:that )?(?:i|you|we) (?:have |can |ever |ve )?(?:know|have|told|said|mentioned"
    r"|find"
    r"|see|got|recall|remember|shared)"
)
"""Words that limit what is known to something else: "you only told me ...", "all I know"."""

_AMONG: Final = rf"{_NOT} (?:\w+ )?(?:in|on|among|within|part of|from|something|anything|one|a \w+|an \w+)"
_APART: Final = rf"(?:{_AMONG}|none|neither|nowhere|not that|not as far as|(?:{_HAVE}|m|am|are|re|s|is) yet to|not once) {_NEARBY}"
"""A negation before a verb of knowing or telling: "not in the part that", "nowhere in what"."""

_ALTERNATIVES: Final = (
    # "I do not know", "couldn't find it", "not sure", "that is not known", "it isn't in what I can see"
    rf"(?:(?P<simply>{_SELF}(?!{_UNWILLING})(?:{_ADVERB} ){{0,2}}(?:{_AUXILIARY} )?(?:{_ADVERB} )?{_NOT}{_ABLE} )"
    rf"|{_SELF}(?:{_ADVERB} ){{0,2}}(?:(?:{_BE}|{_HAVE}|be|been) ){{0,2}}(?:{_ADVERB} )?{_FAILING} to "
    rf"|\b{_APART}){_KNOW}\b(?(simply){_NO_KNOWING})",
    rf"\b(?:{_BE}|{_HAVE}|can|could|may|would) {_NOT} (?:known|clear|certain|found|located|determined|established|identified"
    rf"|confirmed"
    r"|verified|answered|traced|retrieved|inferred|deduced|answerable|in evidence|possible to)\b",
    rf"\b(?:{_BE}|{_AUXILIARY}) (?:{_ADVERB} )?(?:impossible|hard|difficult|unable) to (?:know|say|tell|determine|answer"
    rf"|be certain|be sure)\b",
    # "you never said", "it was not mentioned", "I don't think you told me", "it is not something you've told me"
    rf"(?:{_NOT_REFUSED}\b{_NOT} (?:it |that |this |me |us )?"
    rf"|\bnot (?:\w+ly )?(?:think|believe|reckon|recall|remember) (?:\w+ ){{1,5}}?|\b{_APART}){_TELL}\b",
    # "not in my notes", "there is no horse in anything you've shared", "nothing about it in this chat"
    rf"(?:\b{_AMONG} {_NEARBY}"
    rf"|\b(?:there|theres) (?:{_BE}|{_HAVE}) (?:been )?(?:no|nothing|not) {_NEARBY}(?:in|from|among|on|within|across|about) {_NEARBY}"
    rf"|(?<!\blike )\bnothing (?:\w+ ){{0,2}}?(?:in|from|among|of) {_NEARBY}){_PLACE}\b",
    # "no record", "not enough information", "without any details"
    rf"{_OF_OTHERS}\b(?:no|zero|not|nor|not enough|too little) (?:\w+ ){{0,2}}?(?:any |a |an |the |enough )?(?:\w+ )?{_RECORD}\b",
    # "no dog for Ada", "no town listed"
    rf"^(?:(?:there is|there s|i see|i have|so) )?no (?!{_NO_THING})\w+ (?:\w+ )?(?:for|about|on file|on record|listed|recorded)\b",
    r"\bnone (?:by|for|from|about|listed)\b",
    r"\bnothing (?:noted|recorded|stored|saved|mentioned|found|listed|there)\b|^missing (?:in|from)\b",
    r"^(?:0|zero) (?:results|hits|matches|entries)\b|\bnot (?:among|one of|on) "
    r"(?:them|those|these|that list|the (?:list|owners|names|people|ones))\b",
    # "no name was given", "you've given me no names"
    rf"\b(?:no|none|nothing|nobody|no one|neither) {_NEARBY}(?:{_BE}|{_HAVE})?(?: been)? ?(?:ever |\w+ly )?(?:told|mentioned"
    rf"|given|said"
    r"|recorded|noted|stored|stated|specified|provided|shared|listed|named|discussed|found|known|available|comes up|came up|come up"
    r"|brought up|raised"
    r"|logged)\b",
    r"\b(?:given|gave|told|sent|shown|left|gives|give) (?:me |us )?(?:with )?no \w+",
    # "I have nothing on it", "I see no such name"
    rf"\b(?:i|we|me) (?:{_HAVE}|do|can|could)?(?: \w+ly)? ?(?:{_HAVE}|got|see|find|found|know|knew|hold|heard|recall|remember)"
    r" (?:of )?(?:no|nothing|none|zero|little)\b(?! (?:doubt|problem|objection|hesitation|trouble|issue|worries|reason|choice)\b)",
    r"(?<!\blike )\bnothing (?:\w+ ){0,2}?(?:about|on|regarding|concerning|to go on)\b",
    rf"\b(?:{_IDIOMS})\b",
    rf"\b(?:{_ONLY})",
    r"^(?:n a|na|null|none given|no answer|no idea|dunno|tbd|undefined|pass)$",
)


@cache
def _clause() -> re.Pattern[str]:
    """Return the pattern of a declining clause, compiled on first use: compiling takes longer than most commands take to start."""
    return re.compile("|".join(_ALTERNATIVES))


LONGEST: Final = 200
"""The number of characters kept from earlier clauses, to look up the verb that a clause omits."""

_ASIDE: Final = re.compile(r"\([^()]*\)")
_QUOTED: Final = re.compile(r'"[^"\n]{1,200}"|\u201c[^\u201d\n]{1,200}\u201d')
_INSERTED: Final = re.compile(
    r",\s{0,3}(?:however|though|in fact|alas|sadly|unfortunately|sorry|yet|to be honest|i'm afraid)\s{0,3},", re.I
)
_BREAKS: Final = re.compile(
    r"[.!?;:\n()\[\]\u2014\u2013\u2026]|\s-+\s"
    r"|\b(?:but|although|though|however|because|while|whereas|so|and|except|other than|apart from|aside from|besides)\b"
    r"|,(?=\s+(?:maybe|perhaps|probably|possibly|i(?:['\u2019]d)? (?:think|guess|believe|say)|"
    r"(?:it|he|she|they|that|(?:the|your|my) \w{1,30})(?:['\u2019]s|['\u2019]re| is| was| are| were| might| may| could)\b))",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"\b(?:did|do) you (?:\w+ ){0,3}mean\b", re.IGNORECASE)
"""Asks whether the user meant another person or thing."""
_EMPTY: Final = re.compile(r"(?:\||:|->|\u2192)[ \t]*(?:[-\u2013\u2014]|\?{1,3})[ \t]*(?=[|(\n]|\Z)")
"""An empty field, such as `name: -` or a blank cell with a question mark."""
_LEADING: Final = re.compile(r"[:()|\u2192\u2013\u2014]|->|\s-\s")
"""Marks between a name and its value: "Caroline's: 202", "| Philippa (trainer) | 202 |"."""
_TELLING: Final = re.compile(rf"\b(?:{_TELL}|know)\b")
"""Verbs that a second clause may omit: "You told me his name, but not his age"."""
_NOT_HIS: Final = re.compile(r"\bnot (?:your |my |the )?(\w{3,20}?)s\b")
"""A possessive that is ruled out: "that's not your cousin's"."""
_PRONOUN: Final = re.compile(r"\W*(?:she|he|they|hers|his|theirs|it belongs|it is \w+'s|which|who)\b", re.IGNORECASE)
"""The start of a sentence or clause that refers back to the person named before it."""
_CARRIES_ON: Final = re.compile(r"\s*[a-z]+(?:s|ed) (?:it|them|her|him|this|that|the)\b")
"""The start of a clause that shares its subject with the clause before it: "and calls it"."""
_ALIKE: Final = re.compile(r"\b(?:will|would|must|too|as well|likewise|also)\b", re.IGNORECASE)
"""Words that extend a fact about one person to another."""
_LIKEWISE: Final = re.compile(r"\b(?:for|of) (?:him|her|them),? (?:too|as well)\b", re.IGNORECASE)
_SUBJECTLESS: Final = re.compile(rf"{_AUXILIARY} not\b|not\b|never\b|came\b|got\b")
_SPEAKERS: Final = re.compile(r"\b(?:i|me|my|we|us|our|you|your)\b")
_MANNER: Final = re.compile(rf"(?<!\bis )(?<!\bs )(?<!\bare )(?<!\bre )(?<!\bwas )(?<!\bwere )(?<!\bbeen )\b{_NOT} \w+ing\b")
"""A negated participle about other people, which says nothing about what was told: "for being too busy and not giving them time"."""
_FIRST_PERSON: Final = re.compile(r"\b(?:i|we)\b")
_SPOKEN: Final = re.compile(r"\b(?:idk|dunno)\b")
_NAME: Final = re.compile(r"\b[A-Z][a-z]\w+")
_COMMON: Final = frozenset("the you your this that they there however but and for its she his her from with what when where who".split())
"""Words that begin a sentence with a capital letter and are not names."""
_GUESSES: Final = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|might|may|could be|guess|likely|presumably|i (?:think|believe|assume)|estimate)\b"
)
# "May" is a month here, not a sign of doubt.
_IN_MAY: Final = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)? (?:of )?may\b|\bmay (?:the )?\d{1,2}|\bin may\b")


@final
class _Clause(NamedTuple):
    """A clause of the original text, from `start` to `end`. `declining` marks a clause that declines; `mark` is the separator before it."""

    start: int
    end: int
    declining: bool
    mark: str


def is_abstention(reply: str) -> bool:
    """Return whether a reply says that the answer is unknown or was never told. Asides in brackets do not count.

    Takes time linear in the length of the reply.
    """
    text = _read(reply)
    without = _ASIDE.sub(" ", text)
    return any(clause.declining for clause in _clauses(without if plain(without) else text))


def declines_question(reply: str, question: str = "", values: Sequence[str] = ()) -> bool:
    """Return whether a reply says that the answer is unknown or was never told, and offers no answer as well.

    `values` are the possible answers. A reply that names one of them answers the question, with two exceptions: the name is inside a
    declining clause ("I don't know whether it was red"), or the sentence assigns the value to someone else.

    Takes time linear in the length of the reply. Never raises.
    """
    text = _without_values(_read(reply), values)
    return any(clause.declining for clause in _clauses(text)) and not find_offers(reply, question, values)


def find_offers(reply: str, question: str, values: Sequence[str]) -> list[str]:
    """Return the sentences of a reply that offer one of `values` outside of a declining clause."""
    text = _read(reply)
    rest = _rest(text, list(_clauses(_without_values(text, values))))
    found: list[str] = []
    before = ""
    for sentence in SENTENCE_END.split(rest):
        if _offers(sentence, before, question, values):
            found.append(sentence)
        before = sentence
    return found


def is_refusal(reply: str) -> bool:
    """Return whether a reply refuses to share the answer or says that it was forgotten. Takes time linear in the length of the reply."""
    return LEXICON.has("withheld", _plainly(readable_part(reply)))


def _offers(sentence: str, before: str, question: str, values: Sequence[str]) -> bool:
    """Return whether a sentence offers one of `values` as the answer, instead of assigning it to someone else.

    `before` is the previous sentence, which a pronoun in this one may refer to.
    """
    said = [value for value in values if contains_phrase(sentence, value)]
    if not said or not settled_words(sentence, said):
        return False
    known = {*plain(" ".join((question, *said))).split()}
    if any(word in known for word in _NOT_HIS.findall(plain(sentence))):
        return False
    parts = _BREAKS.split(_LEADING.sub(" ", sentence))
    named = [at for at, clause in enumerate(parts) if any(contains_phrase(clause, value) for value in said)]
    clauses = [_of_whom(parts, at, said) for at in named] or [sentence]

    def strangers(text: str) -> set[str]:
        return {name for name in find_names(text) if (word := plain(name)) not in known and word not in LEXICON.words}

    foreign = all(map(strangers, clauses)) or (_PRONOUN.match(sentence) is not None and bool(strangers(before)))
    supposes = _ALIKE.search(sentence) and (_LIKEWISE.search(sentence) or find_names(sentence) - strangers(sentence))
    return not foreign or bool((is_unsure(sentence) or supposes) and not _ASKS.search(sentence))


def _of_whom(parts: Sequence[str], at: int, said: Sequence[str]) -> str:
    """Return the clause at `at`, which names a value, joined to the neighbouring clause that names its owner.

    Examples: "and it belongs to Ada", "Ada has a puppy and".
    """
    clause = parts[at] if find_names(parts[at]) else " ".join(parts[at : at + 2])
    if at + 1 < len(parts) and _PRONOUN.match(parts[at + 1]):
        return " ".join(parts[at : at + 2])
    if at > 0 and _CARRIES_ON.match(clause) and find_names(clause) <= find_names(" ".join(said)):
        return f"{parts[at - 1]} {clause}"
    return clause


def is_unsure(text: str) -> bool:
    """Return whether `text` has a word that expresses doubt, such as "maybe" or "I think"."""
    return _GUESSES.search(_IN_MAY.sub(" ", plain(text))) is not None


def find_names(text: str) -> set[str]:
    """Return the capitalised words of `text`, without common words that begin sentences."""
    return {name for name in _NAME.findall(text) if name.casefold() not in _COMMON}


def _read(reply: str) -> str:
    """Return the text to read from a reply. A reply that is pure JSON becomes its values, one per line."""
    reply = _EMPTY.sub(": not known ", readable_part(reply))
    pieces = split_json(reply) if "{" in reply else []
    prose = " ".join(piece for piece, value in pieces if not isinstance(value, dict))
    if not pieces or plain(prose) not in ("", "json"):
        return reply
    return "\n".join(_leaves([value for _, value in pieces if isinstance(value, dict)]))


def _leaves(value: Any) -> Iterator[str]:
    """Yield the scalar values inside a JSON value as strings. Recursion is safe: the parser limits the nesting depth."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield "null" if value is None else str(value)


def _without_values(text: str, values: Sequence[str]) -> str:
    """Return `text` with spaces in place of values that would themselves count as declining, such as a film called "Unknown"."""
    for value in values:
        if value and any(map(_is_declining, (_plainly(value), _plainly(f"it is {value}")))):
            text = text.replace(value, " " * len(value))
    return text


def _clauses(text: str) -> Iterator[_Clause]:
    """Yield the clauses of `text` that have words. Quotations are ignored unless the text has nothing else."""
    for pattern in (_QUOTED, _INSERTED):
        hidden = pattern.sub(lambda match: " " * len(match[0]), text)
        text = hidden if plain(hidden) else text
    start, mark, subject, before = 0, "", "i", ""
    for match in chain(_BREAKS.finditer(text), (None,)):
        end = match.start() if match else len(text)
        if words := _plainly(text[start:end]):
            joined = mark.casefold().endswith("and") and _SUBJECTLESS.match(words)
            gapped = mark.casefold().endswith("but") and words.startswith("not ") and _TELLING.search(before)
            yield _Clause(start, end, bool(gapped) or _is_declining(f"{subject} {words}" if joined else words), mark)
            subject = subject if joined else "i" if _FIRST_PERSON.search(words) else "they"
            mark, before = "", f"{before[-LONGEST:]} {words}" if mark.casefold().endswith("and") else words
        if match:
            start, mark = match.end(), (mark + match[0])[-20:]


def _is_declining(words: str) -> bool:
    return _clause().search(words if _SPEAKERS.search(words) else _MANNER.sub(" ", words)) is not None


def _rest(text: str, clauses: Sequence[_Clause]) -> str:
    """Return `text` without declining clauses, their asides in brackets, and a "no" right before them."""
    kept: list[str] = []
    at, before = 0, False
    for clause, following in zip(clauses, (*clauses[1:], None), strict=True):
        aside = before and "(" in clause.mark
        refusing = following is not None and following.declining and plain(text[clause.start : clause.end]) in ("no", "nope")
        if clause.declining or aside or refusing:
            kept.append(text[at : clause.start])
            at = clause.end
        before = clause.declining or aside
    return " ".join([*kept, text[at:]])


def _plainly(text: str) -> str:
    """Return `text` in plain words, with "not" for "n't" and " | " for commas."""
    text = " | ".join(filter(None, map(plain, expand_contractions(text).split(","))))
    return _SPOKEN.sub("i do not know", text)
