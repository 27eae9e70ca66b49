"""Ideal replies to the questions of GoodAI's tests, from the facts that the graders use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["ideal_reply"]


def ideal_reply(scenario: str, facts: Mapping[str, Any]) -> str:
    """Return the ideal reply to a question of `scenario`, given its test's facts. Raises KeyError for a scenario without one."""
    match scenario:
        case "chapterbreak":
            return str(facts["answer"])
        case "colours":
            return f"{facts['colour']}."
        case "jokes":
            return str(facts["jokes"][facts["asked"]])
        case "locations":
            first, *others = facts["places"]
            legs = [f"{far:g} {facts['unit']} {way} to {place}" for (way, far), place in zip(facts["legs"], others, strict=True)]
            return f"From {first}, go {', then '.join(legs)}."
        case "name_list":
            return json.dumps(facts["names"])
        case "sally_anne":
            return json.dumps({"answer": facts["answer"]})
        case "shopping":
            return json.dumps([{"item": item, "quantity": count} for item, count in facts["list"].items()])
        case "spy_meeting":
            return f"{', '.join(meanings[0] for meanings in facts['accepted'])}."
        case "trigger_response":
            return f"{facts['phrase']}."
    raise KeyError(scenario)
