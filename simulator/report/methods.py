"""A paragraph for the methods section of a paper, made from the runs' folders. The same folders give the same text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, get_args

from longspan.simulator.analysis.changes import changed_options, changed_tests
from longspan.simulator.analysis.comparable import differences
from longspan.simulator.analysis.distances import Distances
from longspan.simulator.analysis.units import Units, keys
from longspan.simulator.filler.draws import listed
from longspan.simulator.judging.calibration import calibration_notes
from longspan.simulator.measures.group_tables import one_line
from longspan.simulator.report.contrasts import Family, corrected_by, sentence
from longspan.simulator.results.graded_runs import Graded
from longspan.simulator.results.result import Status
from longspan.simulator.suite.citing import keys_of

__all__ = ["committed", "methods", "portable"]

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s&]*")
_PATH: Final = re.compile(r"(?:(?<=[\s=:/,])|^)~?/(?:[^\s/?&=,]+/)*([^\s/?&=,]*)")

_ORACLE: Final = re.compile(r"oracle(?![\w-])")

_MARKUP: Final = re.compile(r"[\\`*\[\]|~@]|<(?=[A-Za-z/!?])|&(?=#?\w{1,32};)")
"""Matches the beginning of markup, a tag or a character reference, unless a backslash stands before it."""

NAMED: Final = 3
"""The number of tests that are named as not played; the others are counted."""

WITHOUT: Final[dict[Status, str]] = {
    "unscored": "could not be graded",
    "scenario_error": "ended by an error of their own",
    "agent_error": "ended when the agent failed",
    "unfinished": "were interrupted",
}
"""The reasons why tests have no score."""


def portable(text: str) -> str:
    """Return a spec or an option without addresses, and with file names instead of paths, so that nothing in it depends on the machine."""
    return one_line(_PATH.sub(r"\1", _ADDRESS.sub("ADDRESS", text)))


def committed(runs: Iterable[Graded]) -> str:
    """Return the SHA-256 of the runs' commitments, one per line, in order."""
    return sha256("".join(sorted(f"{run.manifest.commitment}\n" for run in runs)).encode()).hexdigest()


def methods(family: Family, runs: Sequence[Graded], references: Sequence[str]) -> str:
    """Return Markdown: the paragraph, and the results of the contrasts. References are cited by their keys, as in Pandoc."""
    whole = [
        _who(runs),
        _what(runs, references),
        _settings(runs),
        _graded(runs),
        _stated(family, runs),
        _tested(family),
        _left_out(family, runs),
    ]
    results = "\n".join(f"{number}. {_code_free(sentence(each, family.contrasts))}" for number, each in enumerate(family.tested, 1))
    return f"# Methods\n\n{' '.join(filter(None, whole))}\n\n# Results\n\n{results}\n"


def _who(runs: Sequence[Graded]) -> str:
    commits = {run.agent: run.manifest.agent_commit for run in runs if run.manifest.agent_commit}
    agents = [f"{_code(agent)}{f' (commit {commits[agent]})' if agent in commits else ''}" for agent in sorted({run.agent for run in runs})]
    versions = sorted({f"{run.manifest.versions.get('longspan', 'unknown')}" for run in runs})
    number = "one agent" if len(agents) == 1 else f"{len(agents):,} agents"
    sentences = [f"The memory of {number}, {listed(agents)}, was tested with longspan {listed(versions)} [@longspan]."]
    if ideal := sorted({run.agent for run in runs if _ORACLE.match(run.manifest.agent)}):
        scores = "its score is an upper bound" if len(ideal) == 1 else "their scores are upper bounds"
        sentences.append(f"{listed(list(map(_code, ideal)))} {'is' if len(ideal) == 1 else 'are'} given the expected answers: {scores}.")
    return " ".join(sentences)


def _what(runs: Sequence[Graded], references: Sequence[str]) -> str:
    names = sorted({run.manifest.suite.name for run in runs})
    cited = "; ".join(f"@{key}" for reference in references for key in keys_of(reference))
    columns = sorted({run.column for run in runs})
    spans = [f"{column.span:,}" for column in columns if column.span and not column.isolated]
    places = [f"at {'a span' if len(spans) == 1 else 'spans'} of {listed(spans)} tokens"] if spans else []
    places += ["with each test in a conversation of its own"] if any(column.isolated for column in columns) else []
    scenarios = sorted({test.scenario for run in runs for test in run.result.tests if test.counts})
    tests = sum(test.counts for run in runs for test in run.result.tests)
    talks = len({(run.folder.path, root) for run in runs for root in run.roots.values()})
    seeds = _ranges({run.manifest.seed for run in runs})
    suites = f"{'the suite' if len(names) == 1 else 'the suites'} {listed(list(map(_code, names)))}{f' [{cited}]' if cited else ''}"
    amounts = listed([_count(len(runs), "run"), _count(talks, "conversation"), _count(tests, "test")])
    return (
        f"The agents played {suites} {listed(places or ['without a span'])}, from {seeds}: {amounts}, of "
        f"{_count(len(scenarios), 'scenario')} ({', '.join(map(_code, scenarios))}). "
        f"Every agent is dealt the same messages from the same seed.{_recorded(runs)}"
    )


def _recorded(runs: Sequence[Graded]) -> str:
    """Describe the units that are independent if histories are recorded, and therefore the same for every seed."""
    known = [key for run in runs for key in keys(run.manifest).values()]
    if all(key.recorded is None for key in known):
        return ""
    units = Units(run.manifest for run in runs)
    number = len({units.of(key) for key in known})
    independent = _count(number, "independent one")
    return f" Histories are recorded: {independent}, each of which counts once, by the mean of its repetitions."


def _settings(runs: Sequence[Graded]) -> str:
    tokenizers = sorted({run.manifest.tokenizer for run in runs})
    kept = [run.result.certified for run in runs if run.result.certified is not None]
    evidence = []
    for column in sorted({run.column for run in runs}):
        found = Distances.of([test for run in runs if run.column == column for test in run.result.tests if test.counts], column.span)
        if found.tokens is not None:
            middle, low, high = found.tokens
            at = "" if len({run.column for run in runs}) == 1 else f" at {column}"
            evidence.append(f"{middle:,.0f} tokens{at} (median; {low:,.0f} to {high:,.0f})")
    sentences = [f"Tokens are those of {listed(list(map(_code, tokenizers)))}."]
    if any(changed_tests(run.manifest) for run in runs):
        few, many = (of(run.manifest.suite.tests for run in runs) for of in (min, max))
        number = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        sentences.append("One test of each scenario was played." if many == 1 else f"{number} tests of each scenario were played.")
    options = sorted({portable(option) for run in runs for option in changed_options(run.manifest, tests=False)})
    if options:
        number = "One option was not the default" if len(options) == 1 else f"{len(options):,} options were not the defaults"
        sentences.append(f"{number}: {listed(options)}.")
    sentences += [f"A question was asked {listed(evidence)} after the furthest statement that it needs."] if evidence else []
    if kept:
        share = sum(test.certified is True for run in runs for test in run.result.tests) / sum(
            test.certified is not None for run in runs for test in run.result.tests
        )
        sentences.append(f"{'All tests' if share == 1 else f'{share:.0%} of the tests'} kept their span.")
    return " ".join(sentences)


def _graded(runs: Sequence[Graded]) -> str:
    judges = sorted({run.manifest.judge for run in runs if run.manifest.judge})
    corrections = sum(test.correction is not None for run in runs for test in run.result.tests)
    notes = list(dict.fromkeys(portable(note) for run in runs for note in calibration_notes(run.folder)))
    rules = "Replies were graded by rules"
    sentences = [f"{rules}, and where these cannot decide by {listed(list(map(_code, judges)))}." if judges else f"{rules}."]
    sentences += [f"{note[0].upper()}{note[1:]}." for note in notes]
    sentences += [f"{_count(corrections, 'score')} {'was' if corrections == 1 else 'were'} corrected by a person."] if corrections else []
    return " ".join(sentences)


def _stated(family: Family, runs: Sequence[Graded]) -> str:
    sentences = family.history
    made = sorted({f"{run.manifest.created:%Y-%m-%d}" for run in runs if run.manifest.created is not None})
    if made:
        sentences.append(f"The runs were made on {made[0]}." if len(made) == 1 else f"The runs were made from {made[0]} to {made[-1]}.")
    if all(run.manifest.imported is None for run in runs):
        sentences.append(f"Each run's tests were committed to before it was played (SHA-256 of the commitments: {committed(runs)}).")
    return " ".join(sentences)


def _tested(family: Family) -> str:
    contrasts = family.contrasts
    sides = {contrast.sides for contrast in contrasts.contrasts}
    sided = {frozenset({1}): "one-sided ", frozenset({2}): "two-sided "}.get(frozenset(sides), "")
    return (
        f"Agents were compared by {sided}paired permutation tests of whole conversations: those of the same seed, or of the same recorded "
        "history, are a pair, in which the two agents' results are swapped; a score is the mean over the scenarios, as a share of full "
        "marks. The tests are exact for up to 14 conversations that differ, and take 20,000 random swaps beyond. Intervals are the "
        f"differences that the same test does not reject. The level is {100 * contrasts.alpha:.4g}%; {corrected_by(contrasts)}."
    )


def _left_out(family: Family, runs: Sequence[Graded]) -> str:
    sentences = family.left_out
    counts = {status: sum(test.status == status for run in runs for test in run.result.tests if test.counts) for status in get_args(Status)}
    without = [f"{counts[status]:,} {why}" for status, why in WITHOUT.items() if counts.get(status)]
    sentences += [f"Of the tests, {listed(without)}; they count as 0."] if without else []
    unfit = {line.partition(":")[0]: portable(line) for run in runs for line in sorted(run.manifest.left_out, reverse=True)}
    if unfit:
        more = [f"{len(unfit) - NAMED:,} more"] if len(unfit) > NAMED else []
        sentences.append(f"Not played: {'; '.join([*(unfit[name] for name in sorted(unfit)[:NAMED]), *more])}.")
    sentences += [f"The runs differ otherwise: {'; '.join(map(portable, found))}."] if (found := differences(runs)) else []
    return " ".join(sentences) or "Nothing was left out."


# ---- words


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _code(text: str) -> str:
    """Return an untrusted name as code in Markdown, whatever characters it has."""
    text = portable(text)
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _code_free(text: str) -> str:
    """Return untrusted text for Markdown, in such a form that it cannot become HTML or markup. Anything that cannot be mistaken for either
    stays as it is."""
    return _MARKUP.sub(r"\\\g<0>", portable(text))


def _ranges(seeds: Iterable[int]) -> str:
    """Describe seeds in words, such as "seeds 0 to 4 and 7"."""
    ordered = sorted(seeds)
    parts: list[list[int]] = []
    for seed in ordered:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], seed]
        else:
            parts.append([seed])
    texts = [f"{part[0]}" if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts]
    return f"seed{'s' * (len(ordered) > 1)} {listed(texts)}"
