"""Tells whether a reply declines to give what is asked for: it is not known, was forgotten, or is not to be told."""

from __future__ import annotations

import re
from typing import Final

from longspan.simulator.grading.abstentions import abstains
from longspan.simulator.grading.matching import plain

__all__ = ["declines"]

_DECLINES: Final = re.compile(
    r"\b(?:forgot|forgotten"
    r"|(?:asked|told|wanted|wished|instructed|request(?:ed)?|wish|instructions?) (?:\w+ ){0,2}?(?:to|that i|i) (?:\w+ )?"
    r"(?:forget|disregard|drop|delete|remove|erase)"
    r"|as (?:you )?(?:have )?(?:asked|requested|wished|instructed|agreed|promised)"
    r"|(?:at|per|by|following|honou?ring|respecting) your (?:request|wish|wishes|instruction|instructions)"
    r"|no longer|any ?more|any longer|nothing|no such|null|none|na|n a|unavailable"
    r"|(?:was|been|have|has|is|i|ive|got|it|that) (?:removed|deleted|erased|cleared|wiped|dropped|discarded|purged|scrubbed)"
    r"|(?:is|its|s|are|all) gone|wont|will not|cant|cannot|couldnt|could not|unable|not able|not allowed"
    r"|let (?:it|that|this) go|(?:i|ive|i have|and) (?:removed|deleted|erased) (?:it|that|this)"
    r"|asked me not to|rather not|wouldnt know|would not know"
    r"|private|confidential|off limits|sorry|apologi[sz]e|apologies|afraid|decline)\b"
)
"""What declines in plain words, besides what `abstains` reads."""


def declines(reply: str) -> bool:
    """Return whether a reply says somewhere that it does not give what is asked for. Takes time linear in the text."""
    return abstains(reply) or _DECLINES.search(plain(reply)) is not None
