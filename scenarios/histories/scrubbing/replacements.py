"""Make up data that replace personal data: of the same kind, and in the same layout."""

from __future__ import annotations

import string
from collections.abc import Callable, Container, Mapping
from hashlib import sha256
from itertools import chain, count
from random import Random
from typing import Final

__all__ = ["make_name", "make_replacement"]

_NAMES: Final = """
    Alda Arlo Beno Brisa Cato Celio Dario Delia Elin Emre Enzo Fenna Galo Greta Hale Hanno Ilse Imre Jonna Juno Kaito Kira Lando
    Leva Lio Malin Marek Mirte Nael Nilo Nora Odile Orla Otis Palo Pia Quim Rafe Renske Rhea Runa Samir Selin Silvan Tarek Tilda
    Tove Ugo Umi Vera Vito Wanja Yara Yule Zeno Zora
""".split()
_SURNAMES: Final = """
    Abend Arden Balder Bexley Calder Corvin Dalby Darrow Ekman Elster Farrow Fenwick Galvin Garrick Halden Harrow Iversen Jarvis
    Kessler Kestrel Larkin Linden Marlow Merrick Norwell Orford Pascoe Penrose Quill Ravel Renner Sorrel Stroud Tarrant Thorne
    Ulmer Varga Vesely Wexford Yarrow Zander
""".split()
_STREETS: Final = "Alder Birch Cedar Elder Fern Gorse Hawthorn Juniper Larch Maple Myrtle Rowan Spruce Sycamore Tamarisk Walnut".split()
_SYLLABLES: Final = "ba bel da dor el fa fin ga gor ha ka kel la lo lin ma mir na nor or pa ra ri ro sa sel ta tor va vin za".split()


def make_name(number: int, taken: Container[str], *, family: bool) -> str:
    """Return a made-up name that is not taken. `number` counts the names so far."""
    pool = _SURNAMES if family else _NAMES
    draw = Random(f"{family}/{number}")
    known = (pool[(number + shift) % len(pool)] for shift in range(len(pool)))
    # Longer and longer ones, because all names of three syllables may be taken.
    new = ("".join(draw.choice(_SYLLABLES) for _ in range(3 + attempt // 20)).capitalize() for attempt in count())
    return next(name for name in chain(known, new) if name.casefold() not in taken)


def make_replacement(kind: str, original: str, number: int) -> str:
    """Return what replaces the `number`th piece of data of a kind."""
    return _MAKERS[kind](original, number)


def _shape(original: str, number: int, keep: int = 0) -> str:
    """Return other letters and digits in the same layout. The first `keep` characters stay."""
    draw = Random(f"{number}/{len(original)}")

    def other(character: str) -> str:
        if character.isdigit():
            return draw.choice(string.digits)
        if not character.isalpha():
            return character
        return draw.choice(string.ascii_uppercase if character.isupper() else string.ascii_lowercase)

    return original[:keep] + "".join(map(other, original[keep:]))


def _phone(original: str, number: int) -> str:
    """Return a phone number with the same prefix for the country."""
    keep = 0
    if original.startswith("+"):
        keep = next((at for at, character in enumerate(original[1:5], 1) if not character.isdigit()), 3)
    elif original.startswith("0"):
        keep = 2
    return _shape(original, number, keep)


def _card(original: str, number: int) -> str:
    """Return a card number that passes the check of its digits."""
    for attempt in range(100):
        made = _shape(original, 100 * number + attempt, 1)
        digits = [int(character) for character in made if character.isdigit()]
        if (sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]) + sum(digits[-1::-2])) % 10 == 0:
            break
    return made


def _account(original: str, number: int) -> str:
    """Return an account number. That of a bank keeps its country and passes the check."""
    plain = original.replace(" ", "")
    if not (len(plain) >= 15 and plain[:2].isalpha() and plain[:2].isupper() and plain[2:4].isdigit()):
        return _shape(original, number)
    rest = _shape(plain[4:], number)
    check = 98 - int("".join(str(int(each, 36)) for each in f"{rest}{plain[:2]}00")) % 97
    made = iter(f"{plain[:2]}{check:02}{rest}")
    return "".join(" " if character == " " else next(made) for character in original)


def _ip(original: str, number: int) -> str:
    """Return an address of the ranges for documentation."""
    if ":" in original:
        return (
            f"2001:db8::{number:x}"
            if original.count(":") != 5 or "::" in original
            else f"02:00:00:00:{number // 256 % 256:02x}:{number % 256:02x}"
        )
    block = ("192.0.2", "198.51.100", "203.0.113")[(number - 1) // 254 % 3]
    return f"{block}.{(number - 1) % 254 + 1}"


def _key(original: str, number: int) -> str:
    """Return a key that begins like the original as far as its kind is known by the beginning."""
    if original.startswith("-----BEGIN"):
        return f"-----BEGIN PRIVATE KEY-----\nremoved-{number}\n-----END PRIVATE KEY-----"
    known = ("sk-proj-", "sk-ant-", "sk-", "ghp_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "hf_", "AIza", "eyJ")
    keep = next((len(start) for start in known if original.startswith(start)), 0)
    return _shape(original[:60], number, keep)


def _address(original: str, number: int) -> str:
    draw = Random(f"address/{number}")
    return f"{number} {_STREETS[number % len(_STREETS)]} Lane, Millford {draw.randrange(10_000, 99_999)}"


_MAKERS: Final[Mapping[str, Callable[[str, int], str]]] = {
    "address": _address,
    "phone": _phone,
    "card": _card,
    "account": _account,
    "IP": _ip,
    "key": _key,
    "e-mail": lambda original, number: f"person{number}@example.com",
    "link": lambda original, number: f"https://example.com/{sha256(str(number).encode()).hexdigest()[:8]}-{number}",
}
