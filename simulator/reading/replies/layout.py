"""Removes a reply's layout: drops struck-out text, replaces marks with words, and labels table cells with their column headings."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from longspan.simulator.base.words import plain
from longspan.simulator.reading.replies.lexicon import LEXICON, Stance
from longspan.simulator.reading.replies.splitting import undot_abbreviations

__all__ = ["drop_asides", "drop_markup", "drop_struck", "expand_contractions", "flatten_layout", "own_turn"]

_STRUCK: Final = re.compile(
    r"~~[^~\n]{1,400}~~|(?<!\S)~[^~\s][^~\n]{0,80}~(?!\S)|<(s|del|strike)>[^<\n]{1,400}</\1>|<!--[^>]{0,400}-->|(?:\w\u0336)+",
    re.IGNORECASE,
)
_THOUGHT: Final = "</think>"
"""The end of a reasoning model's thoughts. Text before it is not part of the reply."""
_RESULT: Final = re.compile(r"\n\s{0,9}(?:=>|[\u21d2\u27f9\u2234])\s{0,3}(?=[^\n]*\S)(?![^\n]*\n)")
"""The mark of a last line that states the conclusion."""
_BOX: Final = re.compile(r"^([ \t>*+-]{0,6})(?:\[ ?\]|\( ?\)|\u2610|\u25cb|\u25ef)\ufe0f?(?=[ ]*[^\s(\[])", re.MULTILINE)
"""An empty checkbox at the start of a line. It means "no" if another box is ticked."""
_TICKED: Final = re.compile(
    r"^([ \t>*+-]{0,6})(?:\[[xX\u2713\u2714]\]|\([xX*\u2022]\)|\u2611|\u2612|\u25cf|\u25c9)\ufe0f?(?=[ ]*\S)", re.MULTILINE
)
_IDEOGRAPHS: Final = re.compile(
    r"(?<=[a-z0-9])(?=[\u3000-\u9fff\uac00-\ud7af])|(?<=[\u3000-\u9fff\uac00-\ud7af])(?=[a-z0-9])", re.IGNORECASE
)
"""The position between a Latin letter or digit and an East Asian character without a space."""
_PAIR: Final = re.compile(r"(?<=\w)[ ]\.[ ](?=\")")
"""The dot between a name and its value in a Lisp pair."""
_MENDED: Final = re.compile(r"(?<=\n)\*(?=\w[^*\n]{0,200}$)", re.MULTILINE)
"""The asterisk that marks a correction of an earlier line: "blue", then "*red"."""
_LABEL: Final = re.compile(r"^\[([^\[\]\n]{1,60})\](?=[ ]{1,3}[^\s\[(])", re.MULTILINE)
_EMPHASIS: Final = re.compile(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)|`{1,3}|</?(?:b|i|em|strong|u|mark|code)>", re.IGNORECASE)
_ELEMENT: Final = re.compile(r"<(\w{1,30})((?:\s+[\w:-]{1,30}=\"[^\"<>\n]{0,80}\"){0,5})>([^<>\n]{0,300})</\1>")
"""An XML element with attributes and text."""
_DIFFERS: Final = re.compile(r"^-[ ]?[^\n-][^\n]*\n(?=\+[ ]?[^\n+])", re.MULTILINE)
"""A removed line of a diff that the next line replaces."""
_LEADERS: Final = re.compile(r"(?:[ ]\.){3,}[ ]?|(?<=\w)[.\u2026]{6,}")
"""Dot leaders between a name and its value."""
_SPEAKER: Final = re.compile(r"^[QA]:[ ]", re.MULTILINE)
_USER: Final = re.compile(r"^[ \t#*<|\[]{0,8}(?:user|human)[*>|\]]{0,3}[ \t]?:", re.IGNORECASE | re.MULTILINE)
"""The start of a line spoken by the user."""
_OFFER: Final = re.compile(
    r"\b(?:let me know|just say|tell me) (?:if|whether|should)\b[^.!?\n]{0,200}[.!?]?"
    r"|\b(?:would you like|do you want|shall i|should i|want me)\b[^.!?\n]{0,200}\?",
    re.IGNORECASE,
)
_OBJECT: Final = re.compile(r"\{[^{}]{1,600}\}")
_FIELD: Final = re.compile(
    r"[,;]?\s{0,9}[\"']?\b(?:(?P<name>[a-z][a-z_ ]{2,19})[\"']?[ ]?[:=][ ]?[\"']?(?P<so>true|false|yes|no)"
    r"|(?:status|state)[\"']?[ ]?[:=][ ]?[\"']?(?P<status>[a-z][a-z -]{2,19})"
    r"|(?:until|till|valid_(?:until|to)|ended?(?:_at|_on)?|(?:removed|deleted|superseded|replaced)_(?:at|on|by))[\"']?[ ]?[:=][ ]?[\"']?"
    r"(?P<end>[\w][\w:./-]{0,29}))\b[\"']?",
    re.IGNORECASE,
)
"""A field that says whether a value is current: "active: false", "status: superseded", "valid_until: 2024-05-03"."""
_FENCE: Final = re.compile(r"^[ ]{0,3}```\w*[ ]*$", re.MULTILINE)
_CROSSES: Final = "[\u274c\u2717\u2718\u2716\u2715\u26d4\U0001f5d1\U0001f6ab\U0001f44e\U0001f645]\ufe0f?"
_CHECKS: Final = "[\u2705\u2713\u2714\u2611\U0001f44d]\ufe0f?"
_MARKED: Final = re.compile(rf"^[^\w\n]{{0,9}}(?:{_CROSSES}|{_CHECKS})[^\n]*", re.MULTILINE)
"""A line where each mark stands before the item that it marks."""
_CROSSED: Final = re.compile(rf"\s?{_CROSSES}\s?")
_CHECKED: Final = re.compile(rf"\s?{_CHECKS}\s?")
_DENIES: Final = re.compile(r"\b(?:no|not|never|none|nothing|without|wrong)\b", re.IGNORECASE)
_JSON: Final = re.compile(r"(:\s*)[\[{]")
_APOSTROPHES: Final = str.maketrans("\u2019\u2018\u02bc\u00b4\u00a0\u202f\u2011", "''''  -")
_CONTRACTED: Final = re.compile(
    r"\b(?:(\w{2,6}?)n't|(can)not|(do|does|did|is|was|are|were|has|have|had|ca|could|wo|would|should)nt)\b", re.IGNORECASE
)
_ASKED_BACK: Final = re.compile(
    r"((?:^|[.!?;,:\n(]\s{0,3})(?:but |or )?)((?:is|was|are|were|do|does|did|has|have|had|would|could|should))n't "
    r"(?=(?:it|that|this|you|they|he|she|we|i|your|the)\b)",
    re.IGNORECASE,
)
"""The start of a negative question that expects "yes" and denies nothing: "Isn't it red?"."""
_SHORT: Final = {"ca": "can", "wo": "will", "sha": "shall"}
_JOINED: Final = re.compile(r"(?<=\w)'(?=(?:s|m|ve|re|d|ll)\b)", re.IGNORECASE)
PRIME: Final = "\u2032"
"""Replaces the apostrophe of "it's" and "Ada's". Unlike an apostrophe, it separates words in plain text."""


def flatten_layout(text: str) -> str:
    """Return the words of a reply, line by line, without markup. Takes time linear in the length of the text. Never raises."""
    text = _flags_to_remarks(drop_markup(text))
    text = _CROSSED.sub(" (no longer) ", _MARKED.sub(lambda line: _CHECKED.sub("; ", _CROSSED.sub("; not ", line[0])), text))
    text = _CONTRACTED.sub(_spelt_out, _ASKED_BACK.sub(r"\1\2 ", text))
    text = _affirmation_pattern().sub(" ", text) if _DENIES.search(text) else text
    return _head_cells(_JSON.sub(r"\1", _JOINED.sub(PRIME, undot_abbreviations(text))))  # "red's my choice" names red


def _flags_to_remarks(text: str) -> str:
    """Return `text` with remarks such as "(current)" and "(no longer)" in place of fields that say whether a value is current."""
    if "=" not in text and ":" not in text:
        return text
    text = _OBJECT.sub(_object, text)
    return _FIELD.sub(lambda match: match[0] if (remark := _remark(match)) is None else remark, text)


def _object(match: re.Match[str]) -> str:
    """Return a JSON object with the remarks from its status fields after each of its other fields."""
    kept, remarks = _split_remark(match[0][:-1])
    return f"{kept.replace(',', f'{remarks},')}{remarks}}}"


def _split_remark(fields: str) -> tuple[str, str]:
    """Return `fields` without its status fields, and their remarks."""
    remarks: list[str] = []

    def keep(match: re.Match[str]) -> str:
        remark = _remark(match)
        remarks.append(remark or "")
        return match[0] if remark is None else ""

    return _FIELD.sub(keep, fields), "".join(remarks)


def _remark(field: re.Match[str]) -> str | None:
    """Return the remark that a status field stands for, or None if it is not one."""
    if (end := field["end"]) is not None:
        return " (current)" if plain(end) in ("null", "none", "now", "present", "ongoing", "open", "") else " (no longer)"
    if (status := field["status"]) is not None:
        holds, gone = LEXICON.pattern("holding").fullmatch(plain(status)), LEXICON.pattern("gone").fullmatch(plain(status))
        return " (current)" if holds else " (no longer)" if gone else None
    so = field["so"].casefold() in ("true", "yes")
    named = plain(field["name"].replace("_", " "))
    if LEXICON.has("holding", named) or LEXICON.stance(named) == Stance.CURRENT:
        return " (current)" if so else " (no longer)"
    if LEXICON.has("gone", named) or LEXICON.stance(named) >= Stance.DATED:
        return " (no longer)" if so else " "
    return None


def _element(match: re.Match[str]) -> str:
    """Return an XML element as "name: text", with the remarks from its attributes."""
    name, attributes, said = match.groups()
    kept, remarks = _split_remark(attributes)
    return f"{name}{kept}: {said}{remarks}\n"


@cache
def _affirmation_pattern() -> re.Pattern[str]:
    """Return the pattern of negative phrases that deny nothing: "no doubt", "not only"."""
    return re.compile(LEXICON.source("affirmed"), re.IGNORECASE)


def drop_asides(text: str) -> str:
    """Return the part of a reply that answers: without offers, and without a dialogue that the model continues as the user."""
    return _OFFER.sub(" ", own_turn(text))


def own_turn(text: str) -> str:
    """Return a reply up to the point where the model speaks as the user. Small models often do not stop after their own turn."""
    begun = 0
    for line in _USER.finditer(text):
        before = text[begun : line.start()].rstrip()
        if any(map(str.isalnum, before)) and not before.endswith(":"):  # a user line after a colon is a quotation
            return text[: line.start()]
        begun = line.end()
    return text


def drop_struck(text: str) -> str:
    """Return a reply without struck-out text."""
    return _STRUCK.sub(" ", text) if any(mark in text for mark in ("~", "</", "<!--", "\u0336")) else text


def drop_markup(text: str) -> str:
    """Return a reply without struck-out text, model thoughts, emphasis and code marks."""
    text = text.translate(_APOSTROPHES)
    text = after if (after := text.rpartition(_THOUGHT)[2]).strip() else text
    text = text[result.end() :] if (result := _RESULT.search(text.rstrip())) else text
    text = drop_struck(text)
    text = _TICKED.sub(r"\1", _BOX.sub(r"\1not ", text)) if _TICKED.search(text) else text
    text = _PAIR.sub(": ", _IDEOGRAPHS.sub(" ", text))
    text = _ELEMENT.sub(_element, text) if "</" in text else text
    text = _DIFFERS.sub("", _SPEAKER.sub("", _LEADERS.sub(": ", text)))
    text = _LABEL.sub(r"\1:", _MENDED.sub("I mean ", text))
    return _EMPHASIS.sub("", _FENCE.sub("", text))


def expand_contractions(text: str) -> str:
    """Return `text` with "not" for "n't", and with `PRIME` for apostrophes inside words."""
    return _JOINED.sub(PRIME, _CONTRACTED.sub(_spelt_out, text.replace("`", "'").translate(_APOSTROPHES)))


def _spelt_out(match: re.Match[str]) -> str:
    stem = next(filter(None, match.groups()))
    return f"{_SHORT.get(stem.casefold(), stem)} not"


def _head_cells(text: str) -> str:
    """Return `text` with table cells labelled by their column or row headings."""
    if "|" not in text:
        return text
    header: list[str] = []
    lines: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.count("|") > 1 else []
        if not cells:
            lines.append(line)
        elif not header or len(cells) != len(header):
            lines.append(": ".join(cells))
        elif any(LEXICON.stance(plain(title)) != Stance.ASSERTED for title in header):
            lines += [f"{title}: {cell}" for title, cell in zip(header, cells, strict=True)]
        else:
            lines.append(": ".join(cells))
        header = header or cells if cells else []
    return "\n".join(lines)
