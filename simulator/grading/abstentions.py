"""Tells whether a reply says that it does not know, or was not told."""

from __future__ import annotations

import re
from typing import Final

from longspan.simulator.grading.matching import plain
from longspan.simulator.record import readable

__all__ = ["ABSTAINS", "abstains"]

ABSTAINS: Final = re.compile(
    r"\b(?:(?:do|did|does|have|has|had|was|were|is|are|can)(?: not|nt) (?:\w+ ){0,2}?(?:know|knew|tell|told|say|said|recall|remember"
    r"|mention|mentioned|specify|specified|state|stated|find|found|see|provide|provided|given|have|share|shared|discussed|available"
    r"|determine|sure|certain|recorded|stored|aware|answer|mentioning|information)"
    r"|cannot (?:\w+ )?(?:know|tell|say|recall|remember|find|answer|determine|known|told|said|determined|answered)"
    r"|never (?:told|said|mentioned|shared|spoke|specified)|no (?:\w+ )?(?:idea|information|record|records|mention|memory|note|notes|answer"
    r"|details|data)|not (?:sure|mentioned|known|told|stated|specified|provided|given|available|recorded|enough|answerable|possible)"
    r"|unknown|unsure|insufficient|unanswerable|not been (?:\w+ )?(?:told|mentioned|specified|said|stated|given|shared))\b"
)
_ASIDE: Final = re.compile(r"\([^()]*\)")


def abstains(reply: str) -> bool:
    """Return whether a reply says somewhere that the answer is not known, other than in an aside in brackets."""
    reply = readable(reply)
    return bool(ABSTAINS.search(plain(_ASIDE.sub(" ", reply)) or plain(reply)))
