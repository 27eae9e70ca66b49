"""A paragraph for the methods section of a paper, written from the runs' folders. The same folders give the same text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, get_args

from longspan.simulator.filler.draws import join_words
from longspan.simulator.pages.report.contrast_words import Family, describe_contrast, describe_correction
from longspan.simulator.results.analysis.changes import has_changed_tests, list_changed_options
from longspan.simulator.results.analysis.comparable import describe_differences
from longspan.simulator.results.analysis.distances import Distances
from longspan.simulator.results.analysis.units import Units, test_keys
from longspan.simulator.results.graded_runs import GradedRun
from longspan.simulator.results.judging.calibration import calibration_notes
from longspan.simulator.results.measures.group_tables import one_line
from longspan.simulator.results.result import Status
from longspan.simulator.suite.citing import keys_of

__all__ = ["anonymise_spec", "hash_commitments", "write_methods"]

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s&]*")
_PATH: Final = re.compile(r"(?:(?<=[\s=:/,])|^)~?/(?:[^\s/?&=,]+/)*([^\s/?&=,]*)")

_ORACLE: Final = re.compile(r"oracle(?![\w-])")

_MARKUP: Final = re.compile(r"[\\`*\[\]|~@]|<(?=[A-Za-z/!?])|&(?=#?\w{1,32};)")
"""Matches the beginning of markup, a tag or a character reference, unless a backslash precedes it."""

NAMED: Final = 3
"""The maximum number of unplayed tests that are named; the others are counted."""

WITHOUT: Final[dict[Status, str]] = {
    "unscored": "could not be graded",
    "scenario_error": "ended with an error in the scenario",
    "agent_error": "ended when the agent failed",
    "unfinished": "were interrupted",
}
"""The reasons why tests have no score."""


def anonymise_spec(text: str) -> str:
    """Return a spec or an option without addresses, and with file names instead of paths, so that it does not depend on the machine."""
    return one_line(_PATH.sub(r"\1", _ADDRESS.sub("ADDRESS", text)))


def hash_commitments(runs: Iterable[GradedRun]) -> str:
    """Return the SHA-256 of the runs' commitments, one per line, in order."""
    return sha256("".join(sorted(f"{run.manifest.commitment}\n" for run in runs)).encode()).hexdigest()


def write_methods(family: Family, runs: Sequence[GradedRun], references: Sequence[str]) -> str:
    """Return Markdown: the paragraph, and the results of the contrasts. References are cited by their keys, as in Pandoc."""
    whole = [
        _who(runs),
        _what(runs, references),
        _settings(runs),
        _describe_grading(runs),
        _describe_statements(family, runs),
        _describe_tests(family),
        _describe_omissions(family, runs),
    ]
    results = "\n".join(
        f"{number}. {_code_free(describe_contrast(each, family.contrasts))}" for number, each in enumerate(family.tested, 1)
    )
    return f"# Methods\n\n{' '.join(filter(None, whole))}\n\n# Results\n\n{results}\n"


def _who(runs: Sequence[GradedRun]) -> str:
    commits = {run.agent: run.manifest.agent_commit for run in runs if run.manifest.agent_commit}
    agents = [f"{_code(agent)}{f' (commit {commits[agent]})' if agent in commits else ''}" for agent in sorted({run.agent for run in runs})]
    versions = sorted({f"{run.manifest.versions.get('longspan', 'unknown')}" for run in runs})
    number = "one agent" if len(agents) == 1 else f"{len(agents):,} agents"
    sentences = [f"The memory of {number}, {join_words(agents)}, was tested with longspan {join_words(versions)} [@longspan]."]
    if ideal := sorted({run.agent for run in runs if _ORACLE.match(run.manifest.agent)}):
        scores = "its score is an upper bound" if len(ideal) == 1 else "their scores are upper bounds"
        sentences.append(
            f"{join_words(list(map(_code, ideal)))} {'is' if len(ideal) == 1 else 'are'} given the expected answers: {scores}."
        )
    return " ".join(sentences)


def _what(runs: Sequence[GradedRun], references: Sequence[str]) -> str:
    names = sorted({run.manifest.suite.name for run in runs})
    cited = "; ".join(f"@{key}" for reference in references for key in keys_of(reference))
    columns = sorted({run.column for run in runs})
    spans = [f"{column.span:,}" for column in columns if column.span and not column.isolated]
    places = [f"at {'a span' if len(spans) == 1 else 'spans'} of {join_words(spans)} tokens"] if spans else []
    places += ["with each test in a separate conversation"] if any(column.isolated for column in columns) else []
    scenarios = sorted({test.scenario for run in runs for test in run.result.tests if test.counts})
    tests = sum(test.counts for run in runs for test in run.result.tests)
    talks = len({(run.folder.path, root) for run in runs for root in run.roots.values()})
    seeds = _ranges({run.manifest.seed for run in runs})
    suites = f"{'the suite' if len(names) == 1 else 'the suites'} {join_words(list(map(_code, names)))}{f' [{cited}]' if cited else ''}"
    amounts = join_words([_count(len(runs), "run"), _count(talks, "conversation"), _count(tests, "test")])
    return (
        f"The agents played {suites} {join_words(places or ['without a span'])}, from {seeds}: {amounts}, of "
        f"{_count(len(scenarios), 'scenario')} ({', '.join(map(_code, scenarios))}). "
        f"Every agent receives the same messages from the same seed.{_describe_units(runs)}"
    )


def _describe_units(runs: Sequence[GradedRun]) -> str:
    """Describe the independent units if histories are recorded, and therefore the same for every seed."""
    known = [key for run in runs for key in test_keys(run.manifest).values()]
    if all(key.recorded is None for key in known):
        return ""
    units = Units(run.manifest for run in runs)
    number = len({units.of(key) for key in known})
    independent = _count(number, "independent one")
    return f" Histories are recorded: {independent}. Each counts once, by the mean of its repetitions."


def _settings(runs: Sequence[GradedRun]) -> str:
    tokenizers = sorted({run.manifest.tokenizer for run in runs})
    kept = [run.result.certified for run in runs if run.result.certified is not None]
    evidence = []
    for column in sorted({run.column for run in runs}):
        found = Distances.of([test for run in runs if run.column == column for test in run.result.tests if test.counts], column.span)
        if found.tokens is not None:
            middle, low, high = found.tokens
            at = "" if len({run.column for run in runs}) == 1 else f" at {column}"
            evidence.append(f"{middle:,.0f} tokens{at} (median; {low:,.0f} to {high:,.0f})")
    sentences = [f"Tokens are those of {join_words(list(map(_code, tokenizers)))}."]
    if any(has_changed_tests(run.manifest) for run in runs):
        few, many = (of(run.manifest.suite.tests for run in runs) for of in (min, max))
        number = f"{few:,}" if few == many else f"{few:,} to {many:,}"
        sentences.append("One test of each scenario was played." if many == 1 else f"{number} tests of each scenario were played.")
    options = sorted({anonymise_spec(option) for run in runs for option in list_changed_options(run.manifest, tests=False)})
    if options:
        number = "One option was not the default" if len(options) == 1 else f"{len(options):,} options were not the defaults"
        sentences.append(f"{number}: {join_words(options)}.")
    sentences += [f"A question was asked {join_words(evidence)} after the furthest statement that it needs."] if evidence else []
    if kept:
        share = sum(test.certified is True for run in runs for test in run.result.tests) / sum(
            test.certified is not None for run in runs for test in run.result.tests
        )
        sentences.append(f"{'All tests' if share == 1 else f'{share:.0%} of the tests'} kept their span.")
    return " ".join(sentences)


def _describe_grading(runs: Sequence[GradedRun]) -> str:
    judges = sorted({run.manifest.judge for run in runs if run.manifest.judge})
    corrections = sum(test.correction is not None for run in runs for test in run.result.tests)
    notes = list(dict.fromkeys(anonymise_spec(note) for run in runs for note in calibration_notes(run.folder)))
    rules = "Replies were graded by rules"
    sentences = [f"{rules}, and where these cannot decide by {join_words(list(map(_code, judges)))}." if judges else f"{rules}."]
    sentences += [f"{note[0].upper()}{note[1:]}." for note in notes]
    sentences += [f"{_count(corrections, 'score')} {'was' if corrections == 1 else 'were'} corrected by a person."] if corrections else []
    return " ".join(sentences)


def _describe_statements(family: Family, runs: Sequence[GradedRun]) -> str:
    sentences = family.history
    made = sorted({f"{run.manifest.created:%Y-%m-%d}" for run in runs if run.manifest.created is not None})
    if made:
        sentences.append(f"The runs were made on {made[0]}." if len(made) == 1 else f"The runs were made from {made[0]} to {made[-1]}.")
    if all(run.manifest.imported is None for run in runs):
        sentences.append(f"Each run's tests were committed to before it was played (SHA-256 of the commitments: {hash_commitments(runs)}).")
    return " ".join(sentences)


def _describe_tests(family: Family) -> str:
    contrasts = family.contrasts
    sides = {contrast.sides for contrast in contrasts.contrasts}
    sided = {frozenset({1}): "one-sided ", frozenset({2}): "two-sided "}.get(frozenset(sides), "")
    return (
        f"Agents were compared by {sided}paired permutation tests of whole conversations. Conversations of the same seed, or of the same "
        "recorded history, form a pair, and the test swaps the two agents' results. A score is the mean over scenarios, as a share of full "
        "marks. The tests are exact for up to 14 conversations that differ, and take 20,000 random swaps beyond. Intervals are the "
        f"differences that the same test does not reject. The level is {100 * contrasts.alpha:.4g}%; {describe_correction(contrasts)}."
    )


def _describe_omissions(family: Family, runs: Sequence[GradedRun]) -> str:
    sentences = family.left_out
    counts = {status: sum(test.status == status for run in runs for test in run.result.tests if test.counts) for status in get_args(Status)}
    without = [f"{counts[status]:,} {why}" for status, why in WITHOUT.items() if counts.get(status)]
    sentences += [f"Of the tests, {join_words(without)}; they count as 0."] if without else []
    unfit = {line.partition(":")[0]: anonymise_spec(line) for run in runs for line in sorted(run.manifest.left_out, reverse=True)}
    if unfit:
        more = [f"{len(unfit) - NAMED:,} more"] if len(unfit) > NAMED else []
        sentences.append(f"Not played: {'; '.join([*(unfit[name] for name in sorted(unfit)[:NAMED]), *more])}.")
    sentences += [f"The runs differ otherwise: {'; '.join(map(anonymise_spec, found))}."] if (found := describe_differences(runs)) else []
    return " ".join(sentences) or "Nothing was left out."


# ---- words


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _code(text: str) -> str:
    """Return an untrusted name as code in Markdown. It may contain any characters."""
    text = anonymise_spec(text)
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _code_free(text: str) -> str:
    """Escape untrusted text for Markdown, so that it cannot become HTML or markup. Unambiguous text stays unchanged."""
    return _MARKUP.sub(r"\\\g<0>", anonymise_spec(text))


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
    return f"seed{'s' * (len(ordered) > 1)} {join_words(texts)}"
