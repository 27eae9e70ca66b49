"""Recognise personal data that has a form: addresses, numbers, keys and links. Names are recognised by their context (see `names`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import log2
from typing import Final, NamedTuple, final
from urllib.parse import unquote

__all__ = ["Found", "find_forms"]

MIN_KEY: Final = 20
"""The least characters of a key that only looks random."""
ENTROPY: Final = 3.5
"""The least bits per character of such a key. English words have less."""
DIGITS: Final = range(7, 16)
"""The number of digits of a phone number."""


@final
class Found(NamedTuple):
    """A piece of personal data: its place in the text, and its kind."""

    start: int
    end: int
    kind: str


# Each pattern is linear in the text: no repetition follows another that can match the same characters.

_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]+(?:-(?!----)[^-]*)*-----END [A-Z ]{0,30}PRIVATE KEY-----")
_LINK: Final = re.compile(
    r"\b(?:https?|wss?|ftp|postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqp)://[^\s<>\"'`]{1,2000}(?<![.,;:!?)\]])", re.IGNORECASE
)
_SECRET_PART: Final = re.compile(
    r"//[^/@]{1,200}@|[?&#;][\w.-]{0,40}(?:token|key|secret|sig|signature|password|passwd|pwd|auth|code|session|sid|invite"
    r"|otp)[\w.-]{0,20}=[^&]",
    re.IGNORECASE,
)
_EMAIL: Final = re.compile(r"(?<![\w.+-])[\w.+'-]{1,64}@(?:[\w-]{1,63}\.){1,6}[^\W\d_]{2,24}(?![\w-])")
_KNOWN_KEY: Final = re.compile(
    r"(?<![\w-])(?:sk-[\w-]{16,}|[srp]k_(?:live|test)_\w{10,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
    r"|xapp-[\w-]{10,}|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}|hf_\w{20,}|npm_\w{20,}|pypi-[\w-]{20,}|SG\.[\w.-]{20,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|AGE-SECRET-KEY-\w{20,}|whsec_\w{16,}|dop_v1_\w{20,}|lin_api_\w{16,}|key-[0-9a-f]{24,})"
)
_NAMED_SECRET: Final = re.compile(
    r"(?:\b|_)(?:pass(?:word|wd|phrase|code)?|pwd|secret(?:[_ -]?(?:access[_ -]?)?key)?|api[_ -]?key|access[_ -]?(?:key|token)"
    r"|auth[_ -]?token|token|bearer"
    r"|pin(?: code)?|contraseña|mot de passe|passwort|kennwort|senha)\b[\"']?\s?(?:(?:is|es|est|ist|was):? |[:=]\s?|(?<=bearer)\s)[\"'`]?"
    r"(?P<value>[^\s\"'`,;<>]{4,500})(?<![.!?)])",
    re.IGNORECASE,
)
_RANDOM: Final = re.compile(r"(?<![\w/+=.@-])[\w+/=-]{20,500}(?![\w/+=@-])", re.ASCII)
_IBAN: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_CARD: Final = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
_SSN: Final = re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])")
_ACCOUNT: Final = re.compile(
    r"\b(?:account|acct|routing|sort code|passport|tax id|taxpayer|ssn|social security|national insurance|insurance|policy"
    r"|customer|member(?:ship)?|patient|licen[cs]e"
    r"|driver'?s licen[cs]e|kontonummer|konto|cuenta|compte|conta|dni|nif|cpf|curp|aadhaar|pan|bsn|pesel)\b"
    r"[^.!?\n\d]{0,40}?(?<![\w-])(?P<value>(?=[A-Z/.-]{0,20}\d)[A-Z0-9](?:[A-Z0-9]|[/.-](?=[A-Z0-9])|[ ](?=\d)){4,30})(?![\w-])",
    re.IGNORECASE,
)
_IP4: Final = re.compile(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.]*\w)")
_IP6: Final = re.compile(
    r"(?<![\w:.])(?=[0-9a-f:]{0,38}[0-9a-f]{3,4}:|[0-9a-f:]{0,38}::)(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?![\w:])", re.IGNORECASE
)
_MAC: Final = re.compile(r"(?<![\w:-])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:-])", re.IGNORECASE)
_OWN_MACHINE: Final = frozenset(("127.0.0.1", "0.0.0.0", "::", "::1"))  # noqa: S104  # recognised, not bound to
_PHONE: Final = re.compile(r"(?<![\w.,/$€£-])(?<!\d:)(?:\+|\()?\d(?:[ ().-]{0,2}\d){6,15}(?![\w/:-]|[.,]\d)")
_CALLED: Final = re.compile(
    r"(?:phone|call|text|ring|tel|mobile|cell|fax|whatsapp|signal|reach|number|nummer|número|teléfono|móvil|numéro|手机|电话|телефон)\W",
    re.IGNORECASE,
)

_NAME: Final = r"(?-i:[^\W\d_a-zà-öø-ÿąćęłńóśźż])[\w'’-]{0,30}"
"""A capitalised word of an address."""
_CITY: Final = rf"{_NAME}(?: {_NAME}){{0,2}}"
_UNIT: Final = r"(?:,? (?:apt|apartment|unit|suite|ste|flat|floor|room|#)\.? ?#?\w{1,6}\b)?"
_TOWN: Final = (
    rf"(?:,? {_CITY},? (?-i:[A-Z]{{2}}),? \d{{5}}(?:-\d{{4}})?\b|(?:,? {_CITY})?,? (?-i:[A-Z]{{1,2}}\d[\dA-Z]?) ?\d(?-i:[A-Z]{{2}})\b"
    rf"|,? \d{{4,5}}(?: (?-i:[A-Z]{{2}})\b)? {_CITY}|,? \d{{2,3}}[ -]\d{{2,3}} {_CITY}|,? \d{{5}}\b)?"
)
"""A town with its postal code: American, British, and those that begin with the code."""
_BY_ROAD: Final = (
    r"(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|way|place|pl|square|sq|terrace|close|crescent|highway|hwy"
    r"|parkway|pkwy|mews|grove|circle|trail)\b\.?"
)
_ROAD: Final = (
    r"(?:rue|avenue|boulevard|place|chemin|impasse|quai|calle|avenida|av\.|paseo|plaza|carrera|via|viale|piazza|corso|rua|praça|travessa"
    rf"|ul\.|ulica|al\.|ул\.|улица|проспект|jalan|jl\.)(?: (?:de|du|des|la|le|les|del|della|dei|da|do|dos|das|los"
    rf"|las)\b){{0,3}}(?: {_NAME}){{1,4}}"
)
_ROAD_IN_A_WORD: Final = (
    r"(?-i:[A-ZÄÖÜÅØ])[\w-]{1,40}(?:straße|strasse|str\.|weg|platz|gasse|allee|damm|ufer|straat|laan|gracht|plein|gatan|vägen|gata|vej|gade"
    r"|veien|katu)"
)
_HOUSE: Final = r"\d{1,5}(?: ?[a-z]\b)?(?:[/-]\d{1,4})?"
_ADDRESSES: Final = [
    re.compile(rf"(?<![\w-])(?:{form}){_UNIT}{_TOWN}", re.IGNORECASE)
    for form in (
        rf"{_HOUSE} (?:[nsew]\.? |north |south |east |west )?(?:{_NAME} |\d{{1,3}}(?:st|nd|rd|th) ){{1,4}}?{_BY_ROAD}",
        rf"\d{{1,4}}(?: ?bis| ?ter)?,? {_ROAD}",
        rf"{_ROAD},? (?:n[°º.] ?)?{_HOUSE}",
        rf"{_ROAD_IN_A_WORD} {_HOUSE}",
        r"p\.? ?o\.? box \d{1,8}",
        rf"\d{{1,3}}-\d{{1,3}}-\d{{1,3}} {_CITY}",
    )
]


def find_forms(text: str) -> Iterator[Found]:
    """Yield the personal data that have a form. Where two overlap, the first one yielded is right."""
    yield from _found("key", _PRIVATE_KEY, text)
    for match in _LINK.finditer(text):
        if _is_secret(match[0]):
            yield Found(*match.span(), "link")
    yield from _found("e-mail", _EMAIL, text)
    yield from _found("key", _KNOWN_KEY, text)
    for match in _NAMED_SECRET.finditer(text):
        if _is_password(match["value"], match[0]):
            yield Found(*match.span("value"), "key")
    yield from _found("account", _IBAN, text, lambda found: _is_iban(found.replace(" ", "")))
    yield from _found("card", _CARD, text, lambda found: _passes_luhn(_digits(found)))
    yield from _found("account", _SSN, text)
    for match in _ACCOUNT.finditer(text):
        yield Found(*match.span("value"), "account")
    yield from _found("key", _RANDOM, text, _is_random)
    for pattern in (_IP4, _IP6, _MAC):
        yield from _found("IP", pattern, text, lambda found: found not in _OWN_MACHINE)
    for form in _ADDRESSES:
        yield from _found("address", form, text)
    for match in _PHONE.finditer(text):
        before = text[max(0, match.start() - 40) : match.start()]
        if len(_digits(match[0])) in DIGITS and (_is_phone(match[0]) or _CALLED.search(before)):
            yield Found(*match.span(), "phone")


def _found(kind: str, pattern: re.Pattern[str], text: str, holds: Callable[[str], bool] = bool) -> Iterator[Found]:
    return (Found(*match.span(), kind) for match in pattern.finditer(text) if holds(match[0]))


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _is_secret(link: str) -> bool:
    """Return whether a link contains a password or a key, so that whoever has the link may use it."""
    return bool(_SECRET_PART.search(link)) or any(map(_is_random, re.split(r"[/?&=#.:]", unquote(link))))


def _is_password(value: str, match: str) -> bool:
    """Return whether the word after "password is" is one: it has a digit or a sign, or follows a sign for "equals"."""
    return bool(re.search(r"[^\W_]*[\d_!@#$%^&*+=?-]", value)) or bool(re.search(r"[:=]\s?[\"'`]?$", match.removesuffix(value)))


def _is_random(text: str) -> bool:
    """Return whether a word looks like a key: long, with letters and digits, and without a pattern."""
    text = text.rstrip("=")
    if len(text) < MIN_KEY or not re.search(r"\d", text) or not re.search(r"[A-Za-z]", text):
        return False
    if "/" in text and not re.search(r"[A-Z]", text):
        return False  # a path
    total = len(text)
    entropy = -sum(count / total * log2(count / total) for count in Counter(text).values())
    return entropy >= (3.0 if re.fullmatch(r"[0-9a-fA-F-]+", text) else ENTROPY)


def _passes_luhn(digits: str) -> bool:
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def _is_iban(text: str) -> bool:
    return 15 <= len(text) <= 34 and int("".join(str(int(each, 36)) for each in text[4:] + text[:4])) % 97 == 1


def _is_phone(text: str) -> bool:
    """Return whether digits are written like a phone number, and not like a date or an amount."""
    if text.startswith(("+", "(")):
        return True
    return (text[0] == "0" and len(_digits(text)) >= 9) or bool(re.fullmatch(r"\d{3}[ .-]\d{3}[ .-]\d{4}", text))
