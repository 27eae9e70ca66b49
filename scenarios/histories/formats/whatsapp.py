"""WhatsApp's exported chats, as Android and iOS write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from longspan.scenarios.histories.formats.messages import Context, LogFormat, Said
from longspan.scenarios.histories.formats.times import is_day_first, parse_time

__all__ = ["WHATSAPP"]

_LINE: Final = re.compile(
    r"^\u200e?\[?(?P<date>\d{1,4}[./-]\d{1,2}[./-]\d{2,4})(?:,| à| um| a las)? "
    r"(?P<time>\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[ap]\.?\s?m\b\.?)?)(?:\]\s?|\s[-\u2013]\s)(?P<rest>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_MEDIA: Final = re.compile(
    r"\u200e?<(?:Media omitted|Medien ausgeschlossen)>|\u200e(?:image|photo|GIF|video|audio|sticker|document) omitted", re.I
)
_ATTACHED: Final = re.compile(r"\u200e?<attached: (.+?)>|\u200e?(\S+\.\w{2,4}) \(file attached\)")
DELETED: Final = ("This message was deleted", "You deleted this message", "Diese Nachricht wurde gelöscht")
NOTICES: Final = ("end-to-end encrypted", "Ende-zu-Ende-verschlüsselt")


def _read(text: str, context: Context) -> Iterator[Said]:
    lines = list(_LINE.finditer(text))
    dates = [line["date"] for line in lines]
    day_first, proven = is_day_first(dates)
    if not all("." in date or len(date.partition(date[-3])[0]) == 4 for date in dates):
        order = "day" if day_first else "month"
        context.notes.add(f"dates were read with the {order} first{'' if proven else ', which the file does not prove'}")
    for number, line in enumerate(lines):
        end = lines[number + 1].start() if number + 1 < len(lines) else len(text)
        name, colon, words = line["rest"].partition(": ")
        words = f"{words}{text[line.end() : end]}".replace("\u200e<This message was edited>", "").strip()
        if not colon or any(notice in words for notice in NOTICES):
            yield Said("", "notices", "skipped")
        elif words.strip("\u200e. ") in DELETED:
            yield Said("", "deleted messages", "skipped")
        else:
            shown = _ATTACHED.sub(lambda found: f"[shares a file: {found[1] or found[2]}]", _MEDIA.sub("[shares a picture or file]", words))
            at = parse_time(f"{line['date']} {line['time']}", day_first=day_first)
            yield Said("", shown.replace("\u200e", ""), name=name.strip("\u200e~\u202f\xa0 "), at=at, place=f"message {number + 1}")


WHATSAPP: Final = LogFormat(
    "whatsapp",
    "WhatsApp's exported chats (.txt)",
    "3/1/24, 6:05 PM - Ada: My cat is Olive.",
    lambda text: isinstance(text, str) and _LINE.match(text.lstrip("\ufeff\r\n ")) is not None,
    _read,
    ordered=True,
    text=True,
)
