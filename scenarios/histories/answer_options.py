"""Read which option a reply chooses: by letter, by words, or by arguments for one option and against the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from longspan.simulator.base.words import ORDINALS, plain
from longspan.simulator.reading.matching import contains_phrase
from longspan.simulator.reading.replies.layout import drop_struck, own_turn
from longspan.simulator.reading.replies.reading import settled_words

__all__ = ["LABEL", "Options"]

LABEL: Final = re.compile(r"\s*\(([a-z])\)\s*")
"""The letter before an option."""
FINAL: Final = "<final_answer>"
"""The tag that PersonaMem's harness asks for before the chosen option."""
_ARTICLE: Final = re.compile(r"\A\s*(?:a|an|the)\s+(?=\w)", re.IGNORECASE)
_KEY: Final = r"choice[a-j]+x"
_ON: Final = r", (?:so|i|you|it|there)\b"
"""Start of the clause that continues a sentence after a reason."""
_REASONS: Final = (
    re.compile(
        rf",?\s(?:because|since|although|though|while|whereas|even if|as)\b(?:(?!{_ON})[^.;!?\n]){{0,200}}?{_KEY}(?:(?!{_ON})[^.;!?\n])*",
        re.IGNORECASE,
    ),
    re.compile(rf",?\swhich\s+{_KEY}[^.;!?\n]*", re.IGNORECASE),
    re.compile(
        rf"(?:\bboth\s+)?(?:{_KEY}\W{{1,3}}(?:and\W{{1,3}}|or\W{{1,3}})?){{0,7}}{_KEY}\W{{0,5}}(?:\b(?:also|both|only|too)\s+)*"
        r"\b(?:has|have|features?|includes?|contains?|involves?|offers?|mentions?|comes?|(?:is|are) out)\b[^.;!?\n]*",
        re.IGNORECASE,
    ),
)
"""Statements about an option that do not choose it: "since (f) has eels", "(a) also has gliding"."""
_RANKED: Final = re.compile(rf"({_KEY})\s*(?:>{{1,3}}|beats|over|before|ahead of)\s*(?:{_KEY})(?:\s*>{{1,3}}\s*{_KEY})*")
_FIRST: Final = re.compile(rf"(?:\A[^\n]*?|\n\s*)\b1[.)]\s*[*_]{{0,3}}\s*({_KEY})[^\n]*\n\s*2[.)]\s*[*_]{{0,3}}\s*{_KEY}")
_CHECKED: Final = re.compile(r"[\u2705\u2713\u2714\u2611]")
_PARTS: Final = re.compile(r"[.;!?\n]")
_CLAUSES: Final = re.compile(r"[.;,!?\n\u2013\u2014]")
_DECIDES: Final = re.compile(
    r"\b(?:answer|decision|choice|winner|verdict|conclusion|recommendation|my pick|best (?:option|choice|fit))\b", re.IGNORECASE
)
"""Words of a line that announces the choice."""
_LED: Final = re.compile(r"(?:answer|choice)\b", re.IGNORECASE)
_AGAINST: Final = re.compile(r" (?:not|no|never|nor|without|except|avoid\w*|dislike\w*|hate\w*|chases?|alone|out|skip\w*|instead|other) ")
"""Words that argue against an option."""
_OPEN: Final = re.compile(r"\b(?:both|decide between|choose between|up to you)\b", re.IGNORECASE)
"""Phrases that leave the choice to the user."""
LISTED: Final = 3
"""Minimum number of lines beginning with a letter that count as a list of options."""
STEM: Final = 5
"""Length of the prefix that identifies a word in all its forms: "carpeted", "the carpet"."""
_YES: Final = re.compile(r"\byes\b", re.IGNORECASE)
_NO: Final = re.compile(r"\bno\b", re.IGNORECASE)
_DISLIKED: Final = re.compile(rf"\b(?:hate|dislike|avoid|skip)\s+(?:the\s+)?{_KEY}", re.IGNORECASE)
_NTH: Final = re.compile(
    r"\W*(?:(?:it is|i would (?:choose|pick|take)) )?(?:the |number |no )?"
    r"(?P<nth>first|second|third|fourth|fifth|sixth|seventh|eighth|last|\d)(?: (?:one|option|choice|of them|on the list))*\W*",
    re.IGNORECASE,
)


class Options:
    """The options of a question."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = options
        labels = [match[1] if (match := LABEL.match(option)) else "" for option in options]
        self._bodies = [LABEL.sub("", option, count=1) if label else option for option, label in zip(options, labels, strict=True)]
        self._labels = labels if all(labels) else []
        self._keys = [f"choice{_letters(number)}x" for number in range(len(options))]

    def find_chosen(self, reply: str) -> list[str]:
        """Return the options that a reply chooses: one if it decides, several if it does not."""
        if (nth := _NTH.fullmatch(plain(reply))) is not None:
            return self._nth(nth["nth"])
        text = self._key_options(reply)
        found: list[str] = []
        for read in (_drop_deliberation(text), text):
            found = settled_words(read, self._keys)
            if len(found) == 1:
                break
        return [self._options[self._keys.index(key)] for key in found] or self._find_told(reply)

    def _find_told(self, reply: str) -> list[str]:
        """Return the one option whose distinctive words all occur in an affirmative sentence, or in all affirmative sentences together.

        Word order and inflection do not matter.
        """
        sentences = [words for part in _CLAUSES.split(reply) if not _AGAINST.search(words := f" {plain(part)} ")]
        for said in (sentences, [" ".join(sentences)]):
            found = [
                option
                for option, words in zip(self._options, self._own(), strict=True)
                if len(words) > 1 and any(all(f" {word[:STEM]}" in each for word in words) for each in said)
            ]
            if found:
                return found if len(found) == 1 else []
        return []

    def _own(self) -> list[list[str]]:
        """Return each option's words, leaving out words that all options share."""
        told = [plain(body).split() for body in self._bodies]
        shared = set.intersection(*map(set, told)) if told else set()
        return [[word for word in words if word not in shared and word not in ("a", "an", "the", "and", "with")] for words in told]

    def names_option(self, reply: str) -> bool:
        """Return whether a reply mentions any option, even to rule it out."""
        text = self._key_options(reply)
        return any(contains_phrase(text, key) for key in self._keys)

    def _nth(self, word: str) -> list[str]:
        number = len(self._options) if word == "last" else int(word) if word.isdecimal() else ORDINALS[word]
        return [self._options[number - 1]] if 1 <= number <= len(self._options) else []

    def _key_options(self, reply: str) -> str:
        """Return a reply with each option's letter or words replaced by a key word."""
        text = drop_struck(own_turn(reply.rpartition(FINAL)[2] or reply))
        for key, body in sorted(zip(self._keys, self._bodies, strict=True), key=lambda each: -len(each[1])):
            if plain(body):
                text = re.sub(re.escape(_ARTICLE.sub("", body).strip(" .")), f" {key} ", text, flags=re.IGNORECASE)
        for key, pair in zip(self._keys, self._pairs(), strict=True):
            text = pair.sub(f" {key} ", text) if pair else text
        return self._replace_letters(text) if self._labels else text

    def _pairs(self) -> Iterator[re.Pattern[str] | None]:
        """Yield a pattern for options of two distinctive words, in either order: "capers & cabbage"."""
        for words in self._own():
            own = list(map(re.escape, words))
            one, two = (own[0], own[1]) if len(own) == 2 else ("", "")
            between = r"[^\w|\n]{0,4}(?:\s(?:and|an|n|with|plus|or)\s|-(?:and|n)-|[&+,/]|\s)\s?(?:(?:a|an|the)\s)?[^\w|\n]{0,4}"
            yield re.compile(rf"\b(?:{one}{between}{two}|{two}{between}{one})\b", re.IGNORECASE) if one else None

    def _replace_letters(self, text: str) -> str:
        """Replace letters that stand for options by their key words.

        Recognised are "(c)", "Option c", a lone "C", "c) ..." or "**C.**" at the beginning, a capital at the end, and letters in a box
        or in JSON.
        """
        letters = "".join(re.escape(label) for label in self._labels)
        keys = {label: f" {key} " for label, key in zip(self._labels, self._keys, strict=True)}
        named = "|".join(["letter", *self._kinds()])

        def chosen(match: re.Match[str]) -> str:
            before = match[0].partition(":")[0] if match[0].startswith('"') else led[0] if (led := _LED.match(match[0])) else ""
            return f"{before.replace('_', ' ')}{':' * bool(before)}{keys[next(filter(None, match.groups())).casefold()]}"

        patterns = (
            rf"\"\w{{1,20}}\" {{0,3}}: {{0,3}}\"([{letters}])\"|\\boxed{{(?:\\text{{)?([{letters}])}}",
            rf"\b(?-i:([{letters.upper()}]))\W{{0,5}}\Z|(?:[,:>\u2192]|\b(?:is|be)) ([{letters}])\W{{0,5}}\Z",
            rf"\(([{letters}])\)|(?<=\s)([{letters}])\)",
            rf"\b(?:op\w{{2,5}}n|answer|choice)(?: is)?:? {{0,3}}[\W_]{{0,3}}([{letters}])\b",
            rf"\b(?:{named})(?: is)?:? {{0,3}}\W{{0,3}}([{letters}])\b(?! [a-z])",
            rf"\A\W{{0,5}}([{letters}])(?:\W{{0,5}}\Z|[).:]|,(?= [a-z]{{2}})|[*_]{{0,3}}\s[-\u2013\u2014]\s|\s*\n)",
        )
        text = re.sub(rf"\b([{letters.upper()}]),? (and|or|&) ([{letters.upper()}])\b(?! [a-z])", r"(\1) \2 (\3)", text)
        lines = re.compile(rf"^(\W{{0,5}}(?:[(\[][ xX]?[)\]])?[ ]?)([{letters}])(?=$|\s?[\W_])", re.IGNORECASE | re.MULTILINE)
        if len(lines.findall(text)) >= LISTED:
            text = lines.sub(lambda line: line[1] + keys[line[2].casefold()], text)
        return re.sub("|".join(patterns), chosen, text, flags=re.IGNORECASE)

    def _kinds(self) -> Iterator[str]:
        """Yield the word that all options begin with: "novel"."""
        first = {plain(_ARTICLE.sub("", body)).partition(" ")[0] for body in self._bodies}
        if len(first) == 1 and (word := first.pop()):
            yield re.escape(word)


def _drop_deliberation(text: str) -> str:
    """Return a reply without the arguments for and against options, if the rest makes a choice."""
    checked = [line for line in text.splitlines() if _CHECKED.search(line) and re.search(_KEY, line)]
    if len(checked) == 1:
        return checked[0]
    if (first := _FIRST.search(text)) and not _OPEN.search(text):
        return first[1]
    parts = [part for part in _PARTS.split(text) if re.search(_KEY, part)]
    if (decided := _under_decision(text)) and len(parts) > 1:
        text = decided
    yes = [part for part in parts if _YES.search(part)]
    if len(yes) == 1 and len(parts) > 1 and any(_NO.search(part) for part in parts):
        return yes[0]
    text = _DISLIKED.sub(" ", _RANKED.sub(r"\1", text))
    for reason in _REASONS:
        text = reason.sub(" ", text)
    return text


def _under_decision(text: str) -> str:
    """Return the last sentence that announces the choice, or the text below a heading that does."""
    pieces = _PARTS.split(text)
    for at in range(len(pieces) - 1, -1, -1):
        if _DECIDES.search(pieces[at]):
            told = pieces[at] if re.search(_KEY, pieces[at]) else "\n".join(pieces[at + 1 :])
            return told if re.search(_KEY, told) else ""
    return ""


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))
