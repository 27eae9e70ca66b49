"""Phrases for reading a restaurant guest's free text: regular expressions over text in `matching.plain` form.

Plain text is lower case without apostrophes ("I'll" is "ill"); a comma is any break inside a sentence. Every repetition is bounded, so
that a search takes time linear in the text.
"""

from __future__ import annotations

import re
from typing import Final


def _any(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(phrases)})")


_SOME = r"(?:\w+ ){0,3}?"
_NOT = "(?:dont|do not|didnt|did not|havent|have not|wont|will not|not|never)"
_ORDERED = "(?:ordered|asked(?: for)?|requested|chose|picked|wanted|expected)"
_WANT = (
    "(?:have|take|get|try|go|order|start|begin|choose|pick|like|love|stick|switch|change|swap|do|enjoy|prefer|opt|settle|drink|"
    "eat|fancy|grab|keep|substitute|replace|need)"
)

# Single words.
MANNERS: Final = frozenset(
    "baked braised chilled classic creamy crispy dry french fresh fried grilled halal hot house iced italian marinated new pickled poached "
    "roast roasted seared smoked steamed sticky stuffed style sweet traditional vegan vegetarian warm".split()
)
"""Ways of cooking and cuisines, which distinguish dishes but do not name one."""

SIDES: Final = frozenset(
    "almond apple bean bowl carrot cheese chilli cocktail coconut cream duck fruit fry goat ginger honey lemon lime melon mint mushroom "
    "onion orange pepper plate platter potato rice sauce sea short spinach spring stir tomato tonic vanilla vegetable".split()
)
"""Words that also occur in requests for a side, a garnish or a container. Alone they do not name a dish of several words."""

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
"""Words around a bare name that still make an order."""

VERBS: Final = frozenset("is are was were sounds looks seems has had does did reminds tempts makes".split())
"""Verbs that make a sentence a statement about a dish instead of a bare name."""

# Before a name: how it is meant. The last cue counts.
_CUES: Final = {
    "rejected": (
        rf"{_NOT} (?:think |want |like |care for |feel like |fancy ){{1,3}}(?:i(?:ll|d)? )?(?:\w+ ){{0,2}}?(?:have|want|like)?\b",
        r"(?:id|i would|wed|would|was|were|am|is) have (?:loved|liked|enjoyed|preferred|wanted)\b",
        r"(?:was|were|am|is) (?:really |so |also ){0,2}(?:looking forward to|hoping for)\b|(?:had|have) (?:\w+ )?(?:my|our) heart set\b",
        r"(?:i|we) (?:had )?(?:\w+ ){0,2}?(?:wanted|hoped for|craved)\b|(?:take|send|bring) (?:it |this |that )?(?:back|away)\b",
        r"no longer\b|instead of\b|rather than\b|other than\b|except\b|apart from\b|besides\b|without\b|minus\b|over the\b|out of\b",
        r"allergic to\b|hate\b|dislike\b|cancel\b|skip\b|forget\b|avoid\b|hold the\b",
        r"not\b|no\b|nor\b|dont\b|doesnt\b|wont\b|cannot\b|never\b|neither\b|isnt\b|wasnt\b|arent\b",
        rf"(?:too bad|shame|sorry|pity|sad|unfortunate|disappoint(?:ed|ing)|understand) {_SOME}(?:about|that|to hear|for)\b",
    ),
    "exchange": (r"(?:swap|replace|substitute|exchange)(?: out)?\b", rf"change (?:my |the )?{_SOME}from\b"),
    "discussed": (
        r"tell (?:me|us)\b|(?:to )?know\b|question\b|wonder\w*|describe\b|explain\b|compare\w*|curious\b|interested in\b|intrigued by\b",
        r"torn\b|between\b|undecided\b|hesita\w+|considering\b|leaning\b|thinking (?:about|of)\b|recommend\w*|suggest\w*|advise\b|which\b",
        r"prepared\b|allergens?\b|ingredients?\b|made (?:with|of|from)\b|contain\w*|heard\b|(?:is|are|does|do) (?:the|there|your)\b",
        r"(?:do|can) you (?:still )?(?:have|make|do)\b|how (?:is|are|big)\b|what (?:is|are|comes|goes|s)\b|whats\b",
    ),
    "ordered": (
        rf"(?:ill|id|well|wed|im going to|(?:i|we) (?:will|would|shall|(?:am|are) going to)) {_SOME}{_WANT}\b",
        rf"(?:can|could|may|might|would|will) (?:i|we|you) {_SOME}(?:please|have|get|order|try|bring|start|switch|change|do)\b",
        r"(?:give|bring|get|fetch|pour) (?:me|us)\b|make (?:it|that|mine)\b|(?:how|what) about\b|why not\b|let(?:s| us| me)(?: do)?\b",
        r"(?:i|we) (?:want|choose|pick|order|take|select|fancy|request|wish for)\b|my (?:order|choice|pick) (?:is|will|would)\b",
        r"(?:for|as) (?:my|the|a|an|our) (?:\w+ )?(?:main|starter|appeti[sz]er|dessert|entree|pudding|drink|meal|food|course|afters)\b",
        r"to (?:start|begin|drink|finish|follow)(?: with)?\b|followed by\b|ready to order\b|(?:decided|settled?) on\b|opt for\b",
        r"go (?:with|for)\b|switch (?:it )?to\b|in (?:that|which) case\b|(?:then|just|please)(?: please)? (?:the|a|an)\b",
    ),
    "claimed": (
        r"(?:i|we) (?:was|were|had|have been|ve been|did|am|m|think|believe) (?:been )?(?:(?:just|actually|originally|already|also) )?"
        r"(?:have|having|had|drinking|drank|enjoying|enjoyed|ordered|order|asked for|chose|it was|that was)\b",
        rf"(?:i|we) (?:\w+ )?(?:had|{_ORDERED}|drank|got|started with|went with|said)\b|(?:was|were|been) (?:having|drinking|enjoying)\b",
        r"(?:switched|changed|swapped) (?:\w+ ){0,3}?(?:to|for)\b|my (?:order|choice|drink|dish) (?:was|is)\b|it was\b",
        r"(?:should|supposed to|meant to) (?:be|have been|get|have|receive)\b|waiting for\b|expecting\b|where(?:s| is| are)\b",
    ),
    "reset": (r"but\b|however\b|although\b|though\b|yet\b",),
}
CUE: Final = _any(*(f"(?P<{name}>{'|'.join(cues)})" for name, cues in _CUES.items()))

# After a name, and between them.
AFTER_ORDER: Final = re.compile(
    r"(?:,\s)?(?:then |too |also )?(?:please|instead|for me|it is|thanks|thank you|will do|would be|to start|as (?:a|my|an)|for my"
    r"|(?:is|was) (?:my (?:choice|order)|what i))\b"
)
AFTER_PRAISE: Final = re.compile(
    r"(?:(?:dish|one|also|really|entree|option|on the menu|is) ){0,3}(?:sound|look|seem|caught|catch|appeal|tempt|call|smell)"
)
AFTER_OFF: Final = re.compile(
    r"(?:(?:dish|being|is|s|was|isnt|are|which|not) ){0,3}(?:unavailable|available|off\b|not possible|gone|sold out|out\b|run out)"
)
IT: Final = re.compile(r" ?(?:have |take |with |for |get |try |do )?(?:it|that|this|them|those|both)\b(?! (?:is|was|comes|i)\b)")
CHANGE: Final = _any("actually|on second thoughts?|scratch that|no wait|wait no|make (?:it|that)|changed? my mind|sorry no|rather")
ALSO: Final = re.compile(r"\b(?:also|too|as well|and|still|additionally|plus|add)\b")
HESITATES: Final = _any(
    r"undecided\b|hesitat|(?:a|another|more) (?:moment|minute|second)\b|few (?:more )?(?:moments|minutes)\b|more time\b|let me think\b",
    r"think about it\b|(?:not|havent|cant|cannot) (?:\w+ ){0,2}?(?:decided?|made up|sure yet|choose)\b",
)

# Complaints.
NEVER_ORDERED: Final = _any(
    rf"{_NOT} (?:(?:recall|remember|think|believe) )?(?:\w+ ){{0,4}}?(?:order|ordered|ordering|ask|asked|asking|request\\w*|mine|chose)\b",
    rf"(?:not|isnt|wasnt|arent) the (?:\w+ ){{1,8}}?i (?:\w+ )?{_ORDERED}\b|{_ORDERED} something (?:else|different)\b",
    r"(?:not|isnt|wasnt|arent|rather than) (?:quite |really |exactly )?"
    r"(?:what|mine|for me\b|my (?:order|dish|plate|meal|food)|the (?:one|dish) i|(?:the )?right\b|(?:the )?correct\b)",
    r"(?:doesnt|does not) (?:\w+ ){0,2}?(?:match|look like what|seem (?:right|correct|to be what))",
)
MISTAKE: Final = _any(
    r"(?:mistake|mistaken|mix up|mixup|mixed up|mixing up|confusion|misunderstanding|error|incorrect|swapped|some(?:body|one) elses?)\b",
    r"wrong(?= (?:dish|plate|order|food|meal|main|one|item|thing|table|person)s?\b| ,|$)",
)
DENIED: Final = re.compile(r"\b(?:no|not|nothing|without|isnt|any|never|dont|wasnt|nothings) (?:\w+ ){0,2}$")
CONTENT: Final = _any(r"(?:thank|thanks|delicious|perfect|lovely|great|wonderful|exactly|enjoy|amazing|fantastic|excellent|good)\b")
AGAIN: Final = _any(r"(?:but|again|still|another)\b")
CONTRAST: Final = _any(
    r"(?:but|however|actually|sorry|excuse|instead|though|apolog\w+|hold on|pardon|hmm|not|afraid|correct|check|believe|seems)\b",
    r"(?<!cant )(?<!cannot )wait\b",
)

# Who is speaking.
_CANNOT = "(?:cant|cannot|wont|dont|do not|unable to|not able to)"
REFUSAL: Final = _any(
    r"(?:as|im|i am|since im|being) (?:\w+ ){0,4}?(?:ai|artificial|chatbot|virtual|computer|assistant)\b|language model\b",
    rf"i (?:am )?{_CANNOT} (?:(?:actually|physically|really|literally) )?(?:eat|drink|consume|dine)"
    r"(?: or (?:eat|drink)| and drink| food| drinks?\b| beverages?| anything|$)",
    rf"{_CANNOT} (?:roleplay|role play|assist|help you|comply|participate|take part|pretend|order (?:food|drinks?|anything))",
)
WAITERS_WORDS: Final = _any(
    r"coming right up\b|(?:ill be|be) right back with\b|here (?:is|are) your\b|may i take your order\b|are you ready to order\b",
    r"can i get you\b|(?:excellent|good|great|wonderful) choice (?:sir|madam|maam)\b|what would you like to (?:eat|drink|order)\b",
    r"what can i (?:get|bring) you\b|ill bring (?:you|your|it|that) (?:\w+ ){0,3}?(?:right|shortly|straight)\b|welcome to our\b",
    r"(?:how can i|i can) (?:help|assist)\b|(?:do|would) you (?:rather |like |prefer )(?:have|something|a|an|the)\b|our guests\b",
    r"may i (?:suggest|recommend)\b|i (?:(?:would|can|d) )?(?:recommend|suggest) (?:the|a|an|our|trying)\b|enjoy your (?:meal|drink)\b",
)
