"""The phrases by which a restaurant guest's words are read: regular expressions over text in `matching.plain` form.

Plain text is lower case without apostrophes ("I'll" is "ill"); a comma is any break inside a sentence. Every repetition
is bounded, so that a search takes time linear in the text.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "AFTER_OFF", "AFTER_ORDER", "AFTER_PRAISE", "ALSO", "BEFORE_NOUNS", "CHANGE", "CONTENT", "CONTRAST", "CUE", "DENIED", "IT",
    "MANNERS", "MISTAKE", "NEVER_ORDERED", "POLITE", "REFUSAL", "SIDES", "VERBS", "WAITERS_WORDS",
]  # fmt: skip


def _any(*phrases: str) -> str:
    return "|".join(phrases)


def _search(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_any(*phrases)})")


_SOME = r"(?:\w+ ){0,3}?"
"""Up to three words of any kind."""

# Single words. ------------------------------------------------------------------------------------------------------

MANNERS: Final = frozenset(
    "baked braised chilled classic creamy crispy dry french fresh fried grilled halal hot house iced italian marinated new pickled poached "
    "roast roasted seared smoked steamed sticky stuffed style sweet traditional vegan vegetarian warm".split()
)
"""Ways of cooking and cuisines: they distinguish dishes, but do not name one."""

SIDES: Final = frozenset(
    "almond apple bean bowl carrot cheese chilli cocktail coconut cream duck fruit fry goat ginger honey lemon lime melon mint mushroom "
    "onion orange pepper plate platter potato rice sauce sea short spinach spring stir tomato tonic vanilla vegetable".split()
)
"""Words that also occur in requests for a side, a garnish or a container: alone they do not name a dish of several words."""

BEFORE_NOUNS: Final = frozenset(
    "a an the your my our his this that these those some any another more same other first both one two only just no not and or with of "
    "for like as have having had get getting order ordered ordering take taking want wanted try love drink drinking enjoy enjoying enjoyed "
    "asked be is was about to on in at nice lovely delicious good great wonderful hot cold warm fresh tasty little small large big right "
    "wrong cup glass bowl plate , missing where choose chose bring without instead recommend delightful".split()
)
"""Words that may precede the last word of an item's name: "the soup" may be the menu's leek soup, "tomato soup" is not."""

POLITE: Final = frozenset(
    "a an the and with some glass cup bottle pint bowl plate portion of one two please just my usual for main starter dessert "
    "course then i me appetizer entree to first also too yes well oh ok okay hmm ah thank you thanks sir waiter very much in that "
    "case instead maybe perhaps good evening hello hi great sure alright fine right".split()
)
"""Words around a bare name that is still an order."""

VERBS: Final = frozenset("is are was were sounds looks seems has had does did reminds tempts makes".split())
"""Verbs that make a sentence a statement about a dish instead of a bare name."""

# Before a name: how it is meant. The last cue counts. ---------------------------------------------------------------

_WANT = (
    "(?:have|take|get|try|go|order|start|begin|choose|pick|like|love|stick|switch|change|swap|do|enjoy|prefer|opt|settle|appreciate|drink|"
    "eat|fancy|grab|keep|substitute|replace|need)"
)
_WILL = "(?:ll|d| will| would| shall)"
_COURSE = "(?:main|starter|appeti[sz]er|dessert|entree|pudding|drink|meal|food|course|afters)"

_REQUEST = (
    rf"(?:i|we|and|us){_WILL}? (?:think |believe |guess |suppose )?(?:i|we){_WILL} {_SOME}{_WANT}\b",
    rf"(?:i|we)(?:{_WILL}| am going to| m going to) {_SOME}{_WANT}\b",
    rf"(?:ill|id|well|wed) {_SOME}{_WANT}\b",
    rf"im going to {_SOME}{_WANT}\b",
    rf"(?:can|could|may|might|would) (?:i|we|you) {_SOME}"
    r"(?:have|get|order|try|bring|start|switch|change|make|do|please|give|serve|request)\b",
    r"(?:would|is) it be possible\b",
    r"(?:would|will) you (?:please )?(?:bring|give|get)\b",
    r"would you mind bringing\b",
    r"(?:please )?(?:give|bring|get|serve|fetch|pour) (?:me|us)\b",
    r"make (?:it|that|mine)\b",
    r"(?:how|what) about\b",
    r"why not\b",
    r"(?:lets|let us|let me)(?: (?:do|have|try|go|get|make))?\b",
    r"(?:i|we) (?:want|choose|pick|order|take|select|fancy|request|wish for)\b",
    r"my (?:order|choice|pick) (?:is|will|would)\b",
    r"ready to order\b",
    rf"(?:for|as) (?:my|the|a|an|our) (?:\w+ )?{_COURSE}\b",
    r"to (?:start|begin|drink|finish|follow)(?: with)?\b",
    r"followed by\b",
    r"(?:decided|settled?) on\b",
    r"opt for\b",
    r"go (?:with|for)\b",
    r"switch (?:it )?to\b",
    r"in (?:that|which) case\b",
    r"(?:then|just|please)(?: please)? (?:the|a|an)\b",
)
_EXCHANGE = (r"(?:swap|replace|substitute|exchange)(?: out)?\b", rf"change (?:my |the )?{_SOME}from\b")
_REJECT = (
    r"(?:dont|do not|didnt|did not|wont|will not|not|never) (?:think |want |like |care for |feel like |fancy ){1,3}"
    r"(?:i(?:ll|d)? )?(?:\w+ ){0,2}?(?:have|want|like)?\b",
    r"(?:id|i would|wed|would|was|were|am|is) have (?:loved|liked|enjoyed|preferred|wanted)\b",
    r"(?:was|were|am|is) (?:really |so |also ){0,2}(?:looking forward to|hoping for)\b",
    r"(?:had|have) (?:\w+ )?(?:my|our) heart set\b",
    r"(?:i|we) (?:had )?(?:\w+ ){0,2}?(?:wanted|hoped for|craved)\b",
    r"no longer\b|instead of\b|rather than\b|other than\b|except\b|apart from\b|besides\b|without\b|minus\b|over the\b|out of\b|hold the\b",
    r"allergic to\b|hate\b|dislike\b|cancel\b|skip\b|forget\b|avoid\b",
    r"not\b|no\b|nor\b|dont\b|doesnt\b|wont\b|cannot\b|never\b|neither\b|isnt\b|wasnt\b|arent\b",
    rf"(?:too bad|shame|sorry|pity|sad|unfortunate|disappoint(?:ed|ing)|understand) {_SOME}(?:about|that|to hear|for)\b",
)
_DISCUSS = (
    r"tell (?:me|us)\b|(?:to )?know\b|question\b|wonder\w*|describe\b|explain\b|compare\w*",
    r"torn\b|between\b|undecided\b|hesita\w+|considering\b|leaning\b|thinking (?:about|of)\b",
    r"curious\b|interested in\b|intrigued by\b",
    r"recommend\w*|suggest\w*|advise\b|which\b",
    r"prepared\b|allergens?\b|ingredients?\b|made (?:with|of|from)\b|contain\w*",
    r"do you (?:still )?have\b|can you (?:still )?(?:make|do)\b|how (?:is|are|big)\b|what (?:is|are|comes|goes|s)\b|whats\b",
    r"(?:is|are|does|do) (?:the|there|your)\b",
)
_CLAIM = (
    r"(?:i|we) (?:was|were|had|have been|ve been|did|am|m|think|believe) (?:been )?"
    r"(?:(?:just|actually|originally|initially|already|also) )?"
    r"(?:have|having|had|drinking|drank|enjoying|enjoyed|ordered|order|asked for|chose|it was|that was)\b",
    r"(?:i|we) (?:\w+ )?(?:had|ordered|asked for|requested|chose|drank|wanted|expected|got|started with|went with|picked)\b",
    r"(?:was|were|been) (?:having|drinking|enjoying)\b",
    r"(?:switched|changed|swapped) (?:\w+ ){0,3}?(?:to|for)\b",
    r"my (?:order|choice|drink|dish) (?:was|is)\b",
    r"it was\b",
    r"(?:should|supposed to|meant to) (?:be|have been|get|have|receive)\b",
    r"waiting for\b|expecting\b|wheres\b|where (?:is|are)\b|what about my\b",
)
_RESET = (r"but\b|however\b|although\b|though\b|yet\b",)

CUE: Final = re.compile(
    rf"\b(?:(?P<rejected>{_any(*_REJECT)})|(?P<exchange>{_any(*_EXCHANGE)})|(?P<discussed>{_any(*_DISCUSS)})|"
    rf"(?P<ordered>{_any(*_REQUEST)})|(?P<claimed>{_any(*_CLAIM)})|(?P<reset>{_any(*_RESET)}))"
)

# After a name. ------------------------------------------------------------------------------------------------------

AFTER_ORDER: Final = re.compile(
    r"(?:,\s)?(?:then |too |also )?(?:please|instead|for me|it is|thanks|thank you|will do|would be|to start|as (?:a|my|an)|for my)\b"
)
AFTER_PRAISE: Final = re.compile(
    r"(?:(?:dish|one|also|really|entree|option|on the menu|is) ){0,3}(?:sound|look|seem|caught|catch|appeal|tempt|call|smell)"
)
AFTER_OFF: Final = re.compile(
    r"(?:(?:dish|being|is|s|was|isnt|are|which|not) ){0,3}(?:unavailable|available|off\b|not possible|gone|sold out|out\b|run out)"
)
IT: Final = re.compile(r" ?(?:have |take |with |for |get |try |do )?(?:it|that|this|them|those|both)\b(?! (?:is|was|comes|i)\b)")

CHANGE: Final = _search(
    "actually", "on second thoughts?", "scratch that", "no wait", "wait no", "make (?:it|that)", r"changed? my mind", "sorry no", "rather"
)  # fmt: skip
ALSO: Final = re.compile(r"\b(?:also|too|as well|and|still|additionally|plus|add)\b")

# Complaints. --------------------------------------------------------------------------------------------------------

NEVER_ORDERED: Final = _search(
    r"(?:didnt|did not|havent|have not|never|(?:dont|do not) (?:recall|remember|think|believe)) (?:\w+ ){0,4}?"
    r"(?:order|ordered|ordering|ask|asked|asking|request|requested|requesting|mine|chose|choose)\b",
    r"(?:not|isnt|wasnt) the (?:\w+ ){1,8}?i (?:\w+ )?(?:ordered|asked|chose|requested|wanted|expected)\b",
    r"(?:not|isnt|wasnt|is not|was not|arent|rather than) (?:quite |really |exactly )?"
    r"(?:what|mine|my (?:order|dish|plate|meal|food)|the (?:one|dish) i|(?:the )?right\b|(?:the )?correct\b)",
    r"(?:doesnt|does not) (?:\w+ ){0,2}?(?:match|look like what|seem (?:right|correct|to be what))",
)
MISTAKE: Final = re.compile(
    r"\b(?:mistake|mistaken|mix up|mixup|mixed up|mixing up|wrong|confusion|misunderstanding|error|incorrect|swapped|"
    r"somebody elses|someone elses)\b"
)
DENIED: Final = re.compile(r"\b(?:no|not|nothing|without|isnt|any|never|dont|wasnt|nothings) (?:\w+ ){0,2}$")
CONTENT: Final = re.compile(r"\b(?:thank|thanks|delicious|perfect|lovely|great|wonderful|exactly|enjoy|amazing|fantastic|excellent|good)\b")
CONTRAST: Final = re.compile(
    r"\b(?:but|however|actually|sorry|excuse|instead|wait|though|apolog\w+|hold on|pardon|hmm|not|afraid|correct|check|believe|seems)\b"
)

# Who is speaking. ---------------------------------------------------------------------------------------------------

REFUSAL: Final = _search(
    r"as an? (?:ai|artificial|large language|language model|assistant|virtual)\b",
    r"language model\b",
    r"ai (?:assistant|model|language)\b",
    r"(?:im|i am) (?:just |only )?(?:an? )?(?:ai\b|artificial|chatbot|virtual|computer|assistant|helpful assistant|helpful ai)",
    r"i (?:dont|do not|cannot|cant|am unable to|am not able to) (?:(?:actually|physically|really|literally) )?(?:eat|drink|consume|dine)"
    r"(?: or (?:eat|drink)| and drink| food| drinks?\b| beverages?| anything|$)",
    r"(?:cant|cannot|unable to|not able to|wont) (?:roleplay|role play|assist|help you|comply|participate|take part|pretend)",
    r"(?:cant|cannot|unable to|not able to|wont) order (?:food|drinks?|anything)",
)
WAITERS_WORDS: Final = _search(
    r"coming right up\b",
    r"(?:ill be|be) right back with\b",
    r"here (?:is|are) your\b",
    r"may i take your order\b",
    r"are you ready to order\b",
    r"can i get you\b",
    r"(?:excellent|good|great|wonderful) choice (?:sir|madam|maam)\b",
    r"what would you like to (?:eat|drink|order)\b",
    r"what can i (?:get|bring) you\b",
    r"ill bring (?:you|your|it|that) (?:\w+ ){0,3}?(?:right|shortly|straight)\b",
    r"welcome to our\b",
    r"how can i (?:help|assist)\b",
)
