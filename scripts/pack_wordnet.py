"""Pack relations of Princeton WordNet 3.0 for simulator/data/wordnet.xz.

usage: python scripts/pack_wordnet.py FOLDER FILE.xz

FOLDER holds WordNet's data.*, index.* and cntlist.rev, such as /usr/share/wordnet of Debian's package wordnet-base. The packed
file is xz over JSON: relations such as kinds, parts, members and opposites, as words only. Definitions and example
sentences are never packed: they only help to leave out words that nobody wants to read (see `Suitable`).

Prints the SHA-256 of each file read, for NOTICE. `longspan.simulator.filler.wordnet` reads the packed file.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PARTS = ("adj", "adv", "noun", "verb")
KINDS = {"a": "adj", "s": "adj", "n": "noun", "r": "adv", "v": "verb"}

GROUPS = {
    **dict.fromkeys((5, 8, 13, 17, 19, 20, 27), "nature"),
    6: "things",
    **dict.fromkeys((4, 7, 9, 10, 11, 22, 23, 24, 25, 28), "ideas"),
    18: "people",
}
"""Groups of lexicographer files, so different that nothing in one is a kind of something in another."""

PROFESSIONS = "worker professional performer scientist artist creator expert athlete traveler scholar educator engineer leader".split()
"""The kinds of people of whom kinds are packed. Other words for people judge them, as a rule."""

ROLES = """
creator scientist performer scholar explorer navigator athlete engineer educator inventor philosopher economist astronaut aviator
nurse reformer naturalist surgeon physician historian critic publisher industrialist businessman financier
""".split()
"""What well-known people must have been to be packed."""

PLACES = "city town river lake island mountain_peak sea country state bay strait peninsula desert waterfall volcano mountain_range".split()

UNWANTED_KINDS = """
weapon drug ill_health disease pathology disorder sexual_activity sexual_practice killing crime violence violent_death
death body_waste excrement reproductive_organ genitalia erogenous_zone torture ammunition poison toxin taxonomic_group
race ethnic_group religion political_orientation cult deity spiritual_being bad_person wrongdoer sexual_arousal
aggression attack war battle military_action punishment restraint contraceptive undergarment parasite vermin corpse
nudity insult abuse misconduct wrongdoing evil hate fear anger instrument_of_execution religious_ceremony
explosive_device weaponry instrument_of_punishment military_vehicle fascism prostitution cadaver pathogen virus
carcinogen explosive bomb toilet trap nationalist
""".split()

UNWANTED_USES = "ethnic_slur disparagement obscenity vulgarism slang street_name profanity".split()

MARKS_A_WORD = re.compile(
    r"""\b(offens|dispar|derogat|obscen|vulgar|slang|taboo|sexual|genital|prostitut|intercourse|slur\b|excre|f[ae]*ces|urin|penis|vagina|vulva
    |buttock|nude|naked|nudity|erotic|lesbian|homosex|gay\b|transves|rape|incest|semen|sperm|menstr|anus|anal\b|testi[sc]|pubic|crotch
    |copulat|masturbat|orgasm|pornogr|lecher|brothel|fornicat|negro|nazi|gypsy|contempt|stupid|idiot|promiscu|bastard|flatu|defecat
    |expletive|castrat|eunuch|crippl|retard|lunatic|ugly|racis|racial|lynch|genocid|eugenic|dysgenic)""",
    re.IGNORECASE | re.VERBOSE,
)
"""What must not occur in the definition of any sense of a word."""

MARKS_A_SENSE = re.compile(
    r"""\b(drunk|intoxicat|alcohol|narcotic|drugs?\b|weapon|kill|murder|tortur|execution|executed|suicid|slave|terroris|corpse|dead\b|death
    |breast|abort|venereal|bomb|poison|toxic|stab|massacre|insult|abus|rectum|uter[iu]|ovar[yi]|womb|gonad|lust|gangster|crimin|gallows
    |guillotin|behead|disease|tumou?r|cancer|infect|syphil|leprosy|parasit|vomit|mucus|saliva|spit\b|pus\b|blood\b|wound|injur|cruel
    |violen|warfare|bullet|explosi|firearm|pistol|rifle|guns?\b|combat|enem[yi]|hatred|satan|devil|demon|hell\b|damn|jew|muslim|islam
    |christ|hindu|catholic|protestant|gods?\b|goddess|holy|worship|sect\b|church|heres[iy]|aborigin|savage|illegitim|mistress|harem
    |circumcis|contracept|condom|adulter[yo]|pregnan|childbirth|hemorrh|laxative|enema|diarrh|constipat|marijuana|cocaine|heroin\b|opium
    |cannabis|amphetamine|hallucin|tobacco|cigar|smoking|obes|insan|mentally|senil|deform|mutilat|cannibal|mafia|smuggl|thie[fv]|steal
    |rob\b|burial|bury|graves?\b|coffin|tomb|funer|cremat|blasphem|swear|coward|dishonest|despis|despic|disgust)""",
    re.IGNORECASE | re.VERBOSE,
)
"""What must not occur in the definition of a sense that is packed."""

UNWANTED_WORDS = re.compile(
    r"sex|fuck|shit|cunt|whore|slut|bitch|nigg|negro|fag|dyke|homo|queer|wank|arse|\bass\b|tit\b|tits|boob|bum\b|piss|crap"
    r"|turd|dung|cock|dick|prick|pussy|porn|penis|vagin|anal|anus|rape|nazi|kill|gun\b|war\b|bomb|blood|dead|death|devil"
    r"|hell\b|damn|slave|coon|jap\b|jew|gyp|virgin|breast|nude|naked|thong|panties|bra\b|brassiere|tampon|condom|poison|drug"
    r"|opium|hemp|corps|crack|hooker|tart\b|swinger|stud\b|knocker|pecker|screw|shag|balls?\b|bang|blow|hump|lay\b|mount\b"
    r"|rod\b|tool\b|organ\b|bone\b|bush\b|beaver|fairy|pansy|fruit\b|dwarf|golliwog|abort|f[oe]?etus|foetal|schizo|psychot"
    r"|psychopath|neurotic|manic|insan|raving|\bmad\b|maiden|antiblack|fat person|fatism|fattism|tribal|tribe\b|papoose"
    r"|peasant|hillbill|hobo|belch|buttock|bosom|whipping post|strangle|terror|communis|coloni|imperiali|nativis|segregat"
    r"|disembowel|corpulen|girl\b|\bcoloured\b|barbar|fascis|criminat|cancer|weapon|missile|warship|peke|servant|slav|squaw"
    r"|deaf|mute\b|ghetto|blind|dumb|lame\b|suck|penetrat|shrink|savage|pagan|heathen|eskimo|oriental|mulatto|half-breed"
    r"|cripple|spastic|retard|moron|idiot|lunatic|cretin|midget|bastard"
)
"""What must not occur in a word, whatever WordNet says of it: the list that errs on the careful side."""


class Synset(NamedTuple):
    """`pointers`: symbol, target and the numbers of the words that it goes from and to, 0 for all. `satellite`: whether it is an
    adjective that is close in meaning to another."""

    file: int
    satellite: bool
    words: list[str]
    pointers: list[tuple[str, tuple[str, str], int, int]]
    definition: str


Key = tuple[str, str]
"""A part of speech and an offset."""


class WordNet:
    """WordNet's files. `named`: the synsets of each word; `first`: its most frequent one; `counts`: how often it occurs in tagged texts."""

    def __init__(self, files: dict[str, str]) -> None:
        self.synsets = {key: synset for pos in PARTS for key, synset in _synsets(pos, files[f"data.{pos}"])}
        self.first = {pos: _first_senses(files[f"index.{pos}"], pos) for pos in PARTS}
        self.counts: Counter[str] = Counter()
        for line in files["cntlist.rev"].splitlines():
            key, _, count = line.split()
            self.counts[key.split("%")[0]] += int(count)
        self.named = defaultdict(list)
        for key, synset in self.synsets.items():
            for word in synset.words:
                self.named[word.lower()].append(key)

    def targets(self, key: Key, *symbols: str) -> list[Key]:
        return [target for symbol, target, _, _ in self.synsets[key].pointers if symbol in symbols]

    def above(self, key: Key) -> set[Key]:
        """A synset and all above it."""
        found, todo = set(), [key]
        while todo:
            one = todo.pop()
            if one not in found:
                found.add(one)
                todo += self.targets(one, "@", "@i")
        return found

    def keys(self, words: Iterable[str]) -> set[Key]:
        """All senses, as nouns, of the given words."""
        return {key for word in words for key in self.named[word] if key[0] == "noun"}

    def senses(self, word: str, pos: str) -> list[Key]:
        return [key for key in self.named[word.lower()] if key[0] == pos]


def _first_senses(text: str, pos: str) -> dict[str, Key]:
    """The most frequent sense of each word."""
    entries = (line.split() for line in text.splitlines() if not line.startswith(" "))
    return {fields[0]: (pos, fields[-int(fields[2])]) for fields in entries}


def _synsets(pos: str, text: str) -> Iterator[tuple[Key, Synset]]:
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        head, _, definition = line.partition("|")
        fields = head.split()
        number = int(fields[3], 16)
        words = [re.sub(r"\((a|p|ip)\)$", "", word) for word in fields[4 : 4 + 2 * number : 2]]
        first = 5 + 2 * number
        pointers = []
        for at in range(first, first + 4 * int(fields[first - 1]), 4):
            symbol, offset, kind, ends = fields[at : at + 4]
            pointers.append((symbol, (KINDS[kind], offset), int(ends[:2], 16), int(ends[2:], 16)))
        yield (pos, fields[0]), Synset(int(fields[1]), fields[2] == "s", words, pointers, definition.partition(';"')[0].partition('; "')[0])


class Suitable:
    """Which words may be packed.

    A word is left out if WordNet marks any sense of it as a slur, obscene, disparaging or slang, if the definition of any sense
    says so, or if it looks like a word of a short list of our own. A sense is left out if it has any mark of usage, if it is
    below an unwanted kind (weapons, drugs, diseases, crimes ...), or if its definition speaks of such things.
    """

    def __init__(self, wordnet: WordNet) -> None:
        self._wordnet = wordnet
        unwanted = wordnet.keys(UNWANTED_KINDS)
        uses = {key for use in UNWANTED_USES for key in wordnet.named[use]}
        self._marked: set[str] = set()
        self._synsets: set[Key] = set()
        for key, synset in wordnet.synsets.items():
            used = [target for symbol, target, _, _ in synset.pointers if symbol == ";u"]
            if not uses.isdisjoint(used) or MARKS_A_WORD.search(synset.definition):
                self._marked.update(word.lower() for word in synset.words)
            elif not used and not MARKS_A_SENSE.search(synset.definition) and unwanted.isdisjoint(wordnet.above(key)):
                self._synsets.add(key)

    def synset(self, key: Key) -> bool:
        return key in self._synsets

    def word(self, word: str) -> bool:
        return word.lower() not in self._marked and not UNWANTED_WORDS.search(word.lower().replace("_", " "))


class Packer:
    def __init__(self, wordnet: WordNet) -> None:
        self.net = wordnet
        self.fit = Suitable(wordnet)
        self._professions = wordnet.keys(PROFESSIONS)

    def packed(self) -> dict[str, object]:
        return {
            "kinds": self.kinds(),
            "parts": self.wholes("#p"),
            "members": self.wholes("#m"),
            "substances": self.wholes("#s"),
            "opposites": self.opposites(),
            "ways": self.ways(),
            "similar": self.similar(),
            "synonyms": self.synonyms(),
            "pertaining": self.pertaining(),
            "fields": self.fields(),
            "people": self.people(),
            "places": self.places(),
        }

    # Which words stand for a synset.

    def common(self, word: str) -> bool:
        """Whether a word is short or frequent enough, and suitable."""
        if not re.fullmatch(r"[a-z]{3,14}([ -][a-z]{3,12}){0,2}", word.replace("_", " ")) or not self.fit.word(word):
            return False
        parts = re.split("[_-]", word)
        return len(parts) == 1 or self.net.counts[word] > 0 or all(self.net.counts[part] and self.fit.word(part) for part in parts)

    def name(self, key: Key, *, only: bool) -> str | None:
        """The most frequent suitable word whose main sense the synset is; if `only`, one without other senses."""
        if not self.fit.synset(key):
            return None
        words = [
            word
            for word in self.net.synsets[key].words
            if self.common(word) and (len(self.net.senses(word, key[0])) == 1 if only else key == self.net.first[key[0]].get(word.lower()))
        ]
        return max(words, key=lambda word: self.net.counts[word], default="").replace("_", " ") or None

    # Nouns.

    def kinds(self) -> dict[str, dict[str, list[str]]]:
        """By group: kinds, and their instances."""
        found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for key, synset in self.net.synsets.items():
            group = GROUPS.get(synset.file)
            if key[0] != "noun" or group is None or not self._person_is_fit(group, key):
                continue
            name = self.name(key, only=True)
            if name is None:
                continue
            for kind in self._kinds_above(key, group):
                if kind not in name and name not in kind:
                    found[group][kind].add(name)
        return {
            group: {kind: sorted(names) for kind, names in sorted(kinds.items()) if len(names) >= 2}
            for group, kinds in sorted(found.items())
        }

    def _person_is_fit(self, group: str, key: Key) -> bool:
        return group != "people" or not self._professions.isdisjoint(self.net.above(key))

    def _kinds_above(self, key: Key, group: str) -> list[str]:
        """The nearest kind above with a frequent word."""
        for _ in range(4):
            above = self.net.targets(key, "@")
            if not above:
                return []
            key = above[0]
            if GROUPS.get(self.net.synsets[key].file) != group or len(self.net.above(key)) < 6:
                return []
            if name := self.name(key, only=False):
                return [name]
        return []

    def wholes(self, symbol: str) -> list[list[str]]:
        """Pairs of a part (or member, or substance) and its whole; no places."""
        found = set()
        for key, synset in self.net.synsets.items():
            if key[0] != "noun" or synset.file not in GROUPS or (synset.file in (18, 28) and symbol == "#p"):
                continue
            for target in self.net.targets(key, symbol):
                names = self.name(key, only=False), self.name(target, only=False)
                if all(names) and names[0][:3] != names[1][:3] and self.net.synsets[target].file in (*GROUPS, 14):  # type: ignore[index]
                    found.add(names)
        return sorted(map(list, found))  # type: ignore[arg-type]

    def fields(self) -> dict[str, list[str]]:
        """Fields of knowledge or activity, and their terms."""
        found: dict[str, set[str]] = defaultdict(set)
        for key in self.net.synsets:
            for target in self.net.targets(key, ";c"):
                term, field = self.name(key, only=True), self.name(target, only=False)
                if term and field and self.net.synsets[target].file in (4, 9):
                    found[field].add(term)
        return {field: sorted(terms) for field, terms in sorted(found.items()) if len(terms) >= 2}

    # Names.

    def people(self) -> list[list[str]]:
        """Well-known people: full name and what they were."""
        roles = self.net.keys(ROLES)
        found = {}
        for key, synset in self.net.synsets.items():
            whats = [what for what in self.net.targets(key, "@i") if not roles.isdisjoint(self.net.above(what))]
            if synset.file != 18 or not whats or not self.fit.synset(key) or re.search("abolition|feminis|activist", synset.definition):
                continue
            names = [word.replace("_", " ") for word in synset.words if self.fit.word(word)]
            full = max(names, key=len, default="")
            role = self.name(whats[0], only=False)
            if role and full and re.fullmatch(r"([A-Z][a-z]+ ){1,3}[A-Z][a-z]+", full):
                found[full] = role
        return [[name, role] for name, role in sorted(found.items())]

    def places(self) -> list[list[str]]:
        """Places: name, what it is, and what it is part of."""
        kinds = self.net.keys(PLACES)
        found = {}
        for key, synset in self.net.synsets.items():
            whats = [what for what in self.net.targets(key, "@i") if not kinds.isdisjoint(self.net.above(what))]
            wholes = self.net.targets(key, "#p")
            name = synset.words[0].replace("_", " ")
            if (
                synset.file not in (15, 17)
                or key[0] != "noun"
                or not whats
                or not re.fullmatch(r"[A-Z][a-z]+( [A-Z][a-z]+)?", name)
                or not self.fit.word(name)
                or len(self.net.named[synset.words[0].lower()]) > 1
            ):
                continue
            what = self.name(whats[0], only=False)
            whole = next((self.net.synsets[whole].words[0].replace("_", " ") for whole in wholes), "")
            if what and self.fit.synset(key) and re.fullmatch(r"([A-Z][a-z]+( [A-Z][a-z]+)*)?", whole):
                found[name] = [what, whole]
        return [[name, *rest] for name, rest in sorted(found.items())]

    # Words.

    def opposites(self) -> list[list[str]]:
        found = set()
        for key, synset in self.net.synsets.items():
            for symbol, target, begin, end in synset.pointers:
                if symbol == "!" and self.fit.synset(key) and self.fit.synset(target):
                    pair = synset.words[begin - 1], self.net.synsets[target].words[end - 1]
                    if all(map(self.common, pair)) and not any(word[:4] in pair[0] and word[-3:] in pair[0] for word in pair[1:]):
                        found.add(tuple(sorted(word.replace("_", " ") for word in pair)))
        return sorted(map(list, found))

    def ways(self) -> dict[str, list[str]]:
        """Verbs, and verbs that are ways to do it."""
        found: dict[str, set[str]] = defaultdict(set)
        for key in self.net.synsets:
            for target in self.net.targets(key, "@") if key[0] == "verb" else ():
                names = self.name(key, only=True), self.name(target, only=False)
                if all(names) and " " not in f"{names[0]}{names[1]}":
                    found[names[1]].add(names[0])  # type: ignore[index, arg-type]
        return {verb: sorted(ways) for verb, ways in sorted(found.items())}

    def similar(self) -> dict[str, list[str]]:
        """Adjectives, and others close in meaning."""
        found: dict[str, set[str]] = defaultdict(set)
        for key, synset in self.net.synsets.items():
            for target in self.net.targets(key, "&") if synset.satellite else ():
                names = self.name(key, only=True), self.name(target, only=False)
                if all(names):
                    found[names[1]].add(names[0])  # type: ignore[index, arg-type]
        return {word: sorted(words) for word, words in sorted(found.items())}

    def pertaining(self) -> list[list[str]]:
        """Pairs of an adjective and the noun that it pertains to, or of an adverb and its adjective."""
        found = set()
        for key, synset in self.net.synsets.items():
            for symbol, target, begin, end in synset.pointers:
                if symbol == "\\" and self.fit.synset(key) and self.fit.synset(target):
                    pair = synset.words[begin - 1], self.net.synsets[target].words[end - 1]
                    if all(map(self.common, pair)) and not any("_" in word for word in pair):
                        found.add(pair)
        return sorted(map(list, found))

    def synonyms(self) -> list[list[str]]:
        """Pairs of words for the same, neither with another sense."""
        found = []
        for key, synset in self.net.synsets.items():
            if self.fit.synset(key) and not (key[0] == "noun" and synset.file not in (*GROUPS, 14, 21)) and synset.file != 18:
                words = [word for word in synset.words if len(self.net.named[word.lower()]) == 1 and self.common(word)]
                if len(words) > 1 and len({word[:4] for word in words[:2]}) == 2:
                    found.append([word.replace("_", " ") for word in words[:2]])
        return sorted(found)


def pack(files: dict[str, str]) -> bytes:
    text = json.dumps(Packer(WordNet(files)).packed(), ensure_ascii=False, separators=(",", ":"))
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: python {sys.argv[0]} FOLDER FILE.xz")
    names = ["cntlist.rev", *(f"{kind}.{pos}" for kind in ("data", "index") for pos in PARTS)]
    raw = {name: (Path(sys.argv[1]) / name).read_bytes() for name in names}
    packed = pack({name: content.decode("ascii") for name, content in raw.items()})
    Path(sys.argv[2]).write_bytes(packed)
    for name, content in sorted(raw.items()):
        print(f"{hashlib.sha256(content).hexdigest()}  {name}")
    print(f"{sum(map(len, raw.values()))} -> {len(packed)} bytes")


if __name__ == "__main__":
    main()
