"""Measure what each phrase of the lexicon contributes: remove it, and grade again the labelled replies that it can match.

nice python -m scripts.rules [--replies FILE ...] [--published FOLDER] [--entries] [--curve] > rules.tsv

Prints one row for each phrase: its group, its entry, the phrase, the replies that it can match, and the grades that change without it (in
total, to wrong, to right, and in how many labelled sets). The labelled replies are those of the tests. FILE has further ones, as gzipped
JSON lines; FOLDER has the published transcripts of the GoodAI benchmark, whose label is the recorded score. With --entries, whole entries
are removed as well, and with --curve the phrases that change the fewest grades are removed together, for a growing share of them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from tests.scenarios import test_replies, worded
from tests.scenarios.histories.test_made_up import REPLIES
from tests.simulator.test_abstentions import LABELLED

from longspan.scenarios.goodai import facts, files
from longspan.scenarios.histories import made_up
from longspan.scenarios.histories.rules import grade_reply
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Award, Exchange, Record
from longspan.simulator.contract.plugins import make_scenario
from longspan.simulator.reading.abstentions import declines_question
from longspan.simulator.reading.replies import layout, mentions, reading
from longspan.simulator.reading.replies.lexicon import LEXICON, Stance
from longspan.simulator.running.preflight.rehearsal import rehearse

ENOUGH: Final = 30
"""The number of changed grades after which a phrase has earned its place. The rest of its replies are not graded again."""
MOST: Final = 3_000
"""The most replies to grade for one phrase. Common words such as "was" match tens of thousands; a random sample is graded."""
STEPS: Final = 10
SHARE: Final = 5
"""One in this many replies is graded for the points of the curve."""
PATTERNS: Final = (
    mentions._leaving_pattern,
    mentions._left_behind_pattern,
    mentions._newest,
    mentions._arrival_pattern,
    layout._affirmation_pattern,
)
"""Cached patterns that contain phrases of the lexicon."""
_STANCES: Final = {stance.name.lower() for stance in Stance}


class Labelled(NamedTuple):
    """A reply in a labelled set: its text, how to grade it, and the right grade."""

    set: str
    text: str
    grade: Callable[[], float | None]
    is_right: Callable[[float | None], bool]


class Rule(NamedTuple):
    """A phrase of the lexicon, and where it is."""

    group: str
    entry: str
    phrase: str


# ---- labelled replies


def _is(label: float) -> Callable[[float | None], bool]:
    return lambda score: score is not None and abs(score - label) < 1e-3


def read_forms() -> Iterator[Labelled]:
    """Yield the forms of reply, crossed with the questions of each scenario."""
    for half in ("develop", "held"):
        for scenario, ask in worded.SCENARIOS.items():
            for number, asked in enumerate(ask()):
                for each in worded.worded(half, asked):
                    if number == 0 or each.form.kinds != ["any"] or int(each.form.id.rpartition("-")[2]) < worded.ADDED:
                        yield Labelled(
                            f"{half}/{scenario}",
                            each.reply,
                            lambda each=each: each.asked.grade(each.reply),  # type: ignore[misc]
                            lambda score, right=each.right: score is not None and (score == 1) == right,  # type: ignore[misc]
                        )


def read_tests() -> Iterator[Labelled]:
    """Yield the labelled replies in the folders of the tests."""
    for name in test_replies.NAMES:
        for reply in test_replies.replies(name):
            grade = lambda name=name, reply=reply: test_replies.graded(name, reply).score  # noqa: E731
            yield Labelled(f"natural/{name}", " ".join(reply.texts), grade, _is(reply.score))
    histories = {seed: made_up.write_history(seed, 6_000, 2) for seed in range(60, 66)}
    for row in REPLIES.read_text("utf-8").splitlines():
        if not row.startswith("#"):
            where, right, text = row.replace("\\n", "\n").split("\t")
            seed, _, number = where.partition("/")
            asked = next(each for each in histories[int(seed)].questions if each.id == number)
            rivals = made_up.wrong_values(histories[int(seed)], asked)

            def decide(asked: Any = asked, text: str = text, rivals: Any = rivals) -> float | None:
                verdict = grade_reply(asked, text, rivals)
                return None if verdict is None else verdict.score

            yield Labelled("natural/made_up", text, decide, _is(float(right)))
    for line in LABELLED.read_text("utf-8").splitlines():
        row = json.loads(line)

        def declines(row: Any = row) -> float:
            return float(declines_question(row["reply"], row["question"], row["options"]))

        yield Labelled("natural/declines", row["reply"], declines, _is(row["label"] == "declines"))


def read_file(path: Path) -> Iterator[Labelled]:
    """Yield the labelled replies of a file. A row has facts and exchanges, or the seed of a test and the replies to its lines."""
    for row in map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines()):
        said = row["replies"] if "replies" in row else [each["reply"] for part in ("exchanges", "watched") for each in row.get(part, ())]
        name = f"{path.name.partition('.')[0]}/{row['scenario']}"
        yield Labelled(name, "\n".join(said), lambda row=row: _grade_row(row), _is(row["expected"]))  # type: ignore[misc]


def _grade_row(row: Mapping[str, Any]) -> float | None:
    scenario = make_scenario(row["scenario"], {})
    if "facts" not in row:
        replies = iter(row["replies"])
        return rehearse(scenario, seed=row["seed"], reply=lambda text, ideal: next(replies, "OK.")).grade.score
    exchanges, watched = (tuple(map(_exchange, row.get(part, ()))) for part in ("exchanges", "watched"))
    grade = scenario.grade(row["facts"], Record(exchanges, watched, tuple(Award(**each) for each in row.get("awards", ()))))
    return next((item.score for item in grade.items if "turn" in row and item.turn == row["turn"]), grade.score)


def _exchange(row: dict[str, Any]) -> Exchange:
    return Exchange(**{**row, "sent_at": datetime.fromisoformat(row["sent_at"])} if row.get("sent_at") else row)


def read_published(folder: Path) -> Iterator[Labelled]:
    """Yield the published transcripts of the GoodAI benchmark, apart from the restaurant, which a model graded."""
    records = [record for record in files.read_records([folder / "results", folder / "runs"]) if record.dataset != "Restaurant"]
    pool = [record.expected_responses for record in records if record.dataset == "Spy Meeting"]
    for record in records:
        played, name = facts.make_record(record).readable(), facts.SCENARIOS[record.dataset]
        known = facts.make_facts(record.dataset, [each.text for each in played.exchanges], record.expected_responses, pool=pool)

        def grade(name: str = name, known: Any = known, played: Record = played) -> float | None:
            return make_scenario(name, {}).grade(known, played).score

        text = "\n".join(each.reply for each in (*played.exchanges, *played.watched))
        yield Labelled(f"published/{name}", text, grade, _is(record.share))


# ---- removing phrases


def list_rules() -> list[Rule]:
    """Return all phrases of the lexicon."""
    return [Rule(group, entry, phrase) for group, entries in LEXICON.groups.items() for entry in entries for phrase in entry.split(", ")]


class Ablation:
    """Grades labelled replies with a part of the lexicon."""

    def __init__(self, labelled: Sequence[Labelled]) -> None:
        self.labelled = labelled
        self.rules = list_rules()
        self._groups = LEXICON.groups
        self._texts = [_spell_out(each.text) for each in labelled]
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for at, text in enumerate(self._texts):
            for word in set(text.split()):
                self._by_word[word].add(at)
        self._uses = Counter(word for rule in self.rules for word in set(_words(rule.phrase)))
        self._sources = {rule: re.compile(rf"\b(?:{LEXICON._compile_phrase(rule.phrase.removeprefix('^'))})") for rule in self.rules}
        self.before = [each.grade() for each in labelled]

    def find_matches(self, rule: Rule) -> set[int]:
        """Return the replies that a phrase can match, or that have a word that only this phrase makes a common one."""
        literal = [word for word in _words(rule.phrase) if word.isalnum()]
        found = set(range(len(self._texts)))
        for word in literal:
            found = found & self._by_word[word]
        alone = [self._by_word[word] for word in literal if self._uses[word] == 1]
        return {at for at in found if self._sources[rule].search(self._texts[at])}.union(*alone)

    def remove(self, rules: Iterable[Rule]) -> None:
        """Leave phrases out of the lexicon, until the next call."""
        gone = set(rules)
        groups = {
            group: {
                ", ".join(kept): examples
                for entry, examples in entries.items()
                if (kept := [phrase for phrase in entry.split(", ") if Rule(group, entry, phrase) not in gone])
            }
            for group, entries in self._groups.items()
        }
        for group in [name for name, entries in groups.items() if not entries]:
            groups[group] = {"\u2205": ""}  # a pattern of no phrases would match anything
        changed = {name for name in groups if groups[name] != LEXICON.groups[name]}
        names = {f"<{name}>" for name in changed}
        while more := {n for n, e in groups.items() if n not in changed and any(name in entry for name in names for entry in e)}:
            changed |= more
            names |= {f"<{name}>" for name in more}
        for name in changed:
            LEXICON._patterns.pop(name, None)
        state = vars(LEXICON)
        state["groups"] = groups
        state.pop("words", None)
        if changed & _STANCES:
            state.pop("_stances", None)
        for pattern in PATTERNS if changed & SOURCES else ():
            pattern.cache_clear()
        reading.parse_reply.cache_clear()

    def regrade(self, at: Iterable[int], most: int | None = None) -> dict[int, float | None]:
        """Return the grades that differ from those of the whole lexicon, by the reply's number. Stop after `most`."""
        found: dict[int, float | None] = {}
        for number in at:
            if (score := self.labelled[number].grade()) != self.before[number]:
                found[number] = score
                if most and len(found) >= most:
                    break
        return found

    def count(self, rules: Sequence[Rule]) -> tuple[int, dict[int, float | None]]:
        """Return how many replies phrases can match, and the grades that change without them."""
        matches = sorted(set().union(*map(self.find_matches, rules)))
        if not matches:
            return 0, {}
        self.remove(rules)
        drawn = Random(0).sample(matches, min(len(matches), MOST))
        return len(matches), self.regrade(drawn, ENOUGH)

    def describe(self, changed: Mapping[int, float | None]) -> tuple[int, int, int, int]:
        """Return the number of changed grades, of those to wrong and to right, and of the labelled sets that they are in."""
        was, now = (
            {at: self.labelled[at].is_right(score) for at, score in scores.items()}
            for scores in ({at: self.before[at] for at in changed}, changed)
        )
        return (
            len(changed),
            sum(was[at] and not now[at] for at in changed),
            sum(now[at] and not was[at] for at in changed),
            len({self.labelled[at].set for at in changed}),
        )

    def agreement(self, changed: Mapping[int, float | None], at: Iterable[int]) -> dict[str, float]:
        """Return the share of right grades in each set, of the replies at `at`."""
        counts: dict[str, list[bool]] = defaultdict(list)
        for number in at:
            each = self.labelled[number]
            right = each.is_right(changed.get(number, self.before[number]))
            counts[each.set].append(right)
            counts["all"].append(right)
        return {name: sum(each) / len(each) for name, each in counts.items()}


SOURCES: Final = {"left before", "left after", "nothing since", "changed", "exchanged", "settled on", "affirmed"}
"""The groups in PATTERNS."""


def _words(phrase: str) -> list[str]:
    return [word for word in phrase.strip("^").split() if not word.endswith("?") and word[0] not in "<."]


def _spell_out(text: str) -> str:
    """Return the text in plain words, in each way that a reader may spell it."""
    return " \n ".join(dict.fromkeys((plain(text), plain(layout.expand_contractions(text)), plain(layout.flatten_layout(text))))) + " "


def print_curve(ablation: Ablation, rules: Sequence[Rule]) -> None:
    """Print the agreement of each set with fewer and fewer phrases. `rules` come in the order of removal."""
    drawn = [at for at in range(len(ablation.labelled)) if at % SHARE == 0]
    changed: dict[int, float | None] = {}
    for step in range(STEPS + 1):
        upto = len(rules) * step // STEPS
        since = rules[len(rules) * max(step - 1, 0) // STEPS : upto]
        touched = set().union(*map(ablation.find_matches, since)).intersection(drawn)
        ablation.remove(rules[:upto])
        changed = {at: score for at, score in changed.items() if at not in touched} | ablation.regrade(sorted(touched))
        shares = ablation.agreement(changed, drawn)
        print(len(rules) - upto, *(f"{name} {share:.4f}" for name, share in sorted(shares.items())), sep="\t", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replies", type=Path, nargs="*", default=[])
    parser.add_argument("--published", type=Path)
    parser.add_argument("--entries", action="store_true")
    parser.add_argument("--curve", action="store_true")
    given = parser.parse_args()
    labelled = [*read_forms(), *read_tests(), *(each for path in given.replies for each in read_file(path))]
    labelled += read_published(given.published) if given.published else []
    ablation = Ablation(labelled)
    print(
        "replies", len(labelled), *(f"{name} {share:.4f}" for name, share in ablation.agreement({}, range(len(labelled))).items()), sep="\t"
    )
    earned: dict[Rule, int] = {}
    for rule in ablation.rules:
        matches, changed = ablation.count([rule])
        earned[rule] = len(changed)
        print(*rule, matches, *ablation.describe(changed), sep="\t", flush=True)
    for group, entry in dict.fromkeys((rule.group, rule.entry) for rule in ablation.rules) if given.entries else ():
        matches, changed = ablation.count([rule for rule in ablation.rules if (rule.group, rule.entry) == (group, entry)])
        print(group, entry, "(entry)", matches, *ablation.describe(changed), sep="\t", flush=True)
    if given.curve:
        print_curve(ablation, sorted(ablation.rules, key=lambda rule: earned[rule]))


if __name__ == "__main__":
    main()
