"""How well filler distracts: the built-in source, and beside it a TriviaQA file (`--filler FILE`), at the same number of tokens.

The lines of tests come from conversations of suite ltm. An entry of filler is a line of a message: a question with its answer, a
task, a remark. Words are compared in lower case.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

from longspan.simulator.base.tokens import Tokenizer
from longspan.simulator.filler.filler import Distraction, Filler, Source
from longspan.simulator.filler.talk import Talk
from longspan.simulator.filler.trivia import Trivia

__all__ = ["OPTIONS", "SPAN", "Figures", "figures", "measure", "said_in_tests"]

SPAN: Final = 208_000
"""Tokens of filler: about as much as a conversation of 120k with few tests has."""
REPEATS: Final = 500_000
"""Tokens of filler that are searched for repeated messages."""
SEEDS: Final = range(3)
"""The seeds of the conversations that lines of tests are taken from."""
TESTS_SPAN: Final = 32_000
FOLDS: Final = 5

OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--filler": {"type": Path, "metavar": "FILE", "help": "a TriviaQA file to compare with"},
}


def measure(span: int, *, filler: Path | None) -> dict[str, float]:
    """Return the figures of the built-in source and, given a file, of TriviaQA."""
    sources: dict[str, Callable[[], Source]] = {"ours": lambda: Talk(0)}
    if filler is not None:
        sources["TriviaQA"] = lambda: Trivia(filler, seed=0)
    lines = said_in_tests()
    found = {name: figures(make, span, lines) for name, make in sources.items()}
    return {f"{name}: {what}": value for what in found["ours"] for name in found for value in [found[name][what]]} | _compared(found)


def _compared(found: dict[str, Figures]) -> dict[str, float]:
    if len(found) < 2:
        return {}
    ours, theirs = found["ours"], found["TriviaQA"]
    ranks = [what for what in ours if what.startswith(OUTRANKING)]
    return {
        "different words, ours / TriviaQA": ours["different words"] / theirs["different words"],
        "scenarios with as many outranking lines": sum(ours[what] >= theirs[what] for what in ranks),
    }


Figures = dict[str, float]

OUTRANKING: Final = "lines that outrank a needle: "


class Said(NamedTuple):
    """What tests say: all `lines`, the `needles` among them, and by scenario questions with the needles that they need."""

    lines: list[str]
    needles: list[str]
    questions: dict[str, list[tuple[str, list[str]]]]


def figures(make: Callable[[], Source], tokens: int, tests: Said) -> Figures:
    """Return a description of a source: its variety, and how closely its lines resemble lines of tests."""
    made = list(_made(make(), tokens))
    whole = "\n".join(part for each in made for part in (each.text, each.reply))
    entries = [entry for each in made for entry in _entries(each)]
    answers = [answer for each in made for answer in _answers(each)]
    vocabulary = set(_words(whole))
    unseen = [mean(word not in vocabulary for word in set(_words(needle))) for needle in tests.needles]
    began = process_time()
    many = list(_made(make(), REPEATS))
    making, began = process_time() - began, process_time()
    for each in many:
        Tokenizer().encode(each.text + each.reply)
    counting = process_time() - began
    texts = [each.text for each in many]
    return {
        "different words": float(len(vocabulary)),
        "distinct answers": len(set(answers)) / len(answers),
        "zlib ratio": len(zlib.compress(whole.encode(), 9)) / len(whole.encode()),
        "words of a needle never seen": mean(unseen),
        "repeated messages": 1 - len(set(texts)) / len(texts),
        "making it, in passes of the tokenizer": making / counting,
        "told from tests' lines, area": _told_apart(entries, sorted(set(tests.lines))),
    } | _outranking(entries, tests)


def _made(source: Source, tokens: int) -> Iterator[Distraction]:
    filler = Filler(source, Tokenizer())
    while tokens > 0:
        made = filler.make(2000)
        yield made
        tokens -= made.text_tokens + made.reply_tokens


def _entries(made: Distraction) -> list[str]:
    return [re.sub(r"^Q: (.*) A: (.*)$", r"\1 \2", line) for line in made.text.splitlines()]


def _answers(made: Distraction) -> list[str]:
    """The answers in a reply: of its JSON list, or its lines except the closing one."""
    return json.loads(made.reply) if made.reply.startswith("[") else made.reply.splitlines()[:-1]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def said_in_tests() -> Said:
    """Play conversations and return what their tests said."""
    import trio

    from longspan.simulator.journal import events
    from longspan.simulator.journal.journal import read_journal
    from longspan.simulator.journal.run_folder import RunFolder
    from longspan.simulator.running.planning import plan_run
    from longspan.simulator.running.runner import play_plans
    from longspan.simulator.suite.settings import RunSettings
    from longspan.simulator.suite.suite import load_suite

    lines, needles, questions = [], [], defaultdict(list)
    with TemporaryDirectory() as folder:
        for seed in SEEDS:
            planned = plan_run(RunSettings(suite=load_suite("ltm"), span=TESTS_SPAN, seed=seed, agent="oracle"), Path(folder))
            (outcome,) = trio.run(lambda planned=planned: play_plans([planned]))
            messages = [each for each in read_journal(RunFolder(outcome.folder).journal("main")) if isinstance(each, events.Message)]
            by_turn = {message.turn: message.text for message in messages}
            for message in messages:
                if message.test is None:
                    continue
                lines.append(message.text)
                if message.needle:
                    needles.append(message.text)
                if message.needs:
                    scenario = message.test.rpartition("-")[0]
                    questions[scenario].append((message.text, [by_turn[turn] for turn in message.needs]))
    return Said(lines, needles, dict(questions))


class _Weights:
    """TF-IDF over words: logarithmic, of unit length."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._columns: dict[str, int] = {}
        for text in texts:
            for word in _words(text):
                self._columns.setdefault(word, len(self._columns))
        self._idf = np.zeros(len(self._columns))
        for text in texts:
            self._idf[[self._columns[word] for word in set(_words(text))]] += 1
        self._idf = np.log((1 + len(texts)) / (1 + self._idf)) + 1

    def of(self, texts: Sequence[str]) -> csr_matrix:
        rows, columns = [], []
        for row, text in enumerate(texts):
            known = [self._columns[word] for word in _words(text) if word in self._columns]
            rows += [row] * len(known)
            columns += known
        counts = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(texts), len(self._columns)))
        counts.sum_duplicates()
        counts.data = 1 + np.log(counts.data)
        weighted = counts.multiply(self._idf).tocsr()
        lengths = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
        lengths[lengths == 0] = 1
        return csr_matrix(weighted.multiply(1 / lengths[:, None]))


def _outranking(entries: Sequence[str], tests: Said) -> Figures:
    """The median number of entries that are more like a question than the needle which it needs, by scenario."""
    weights = _Weights([*entries, *tests.lines])
    filler = weights.of(entries)
    found = {}
    for scenario, questions in sorted(tests.questions.items()):
        ranks = []
        for question, needles in questions:
            asked = weights.of([question]).T
            scores = (filler @ asked).toarray().ravel()
            ranks += [int((scores > score).sum()) for score in (weights.of(needles) @ asked).toarray().ravel()]
        found[f"{OUTRANKING}{scenario}"] = float(median(ranks))
    return found


def _told_apart(entries: Sequence[str], lines: Sequence[str]) -> float:
    """The area under the curve of a logistic regression on TF-IDF that tells lines of tests from filler, over five folds."""
    texts = np.array([*entries, *lines], dtype=object)
    truth = np.array([0.0] * len(entries) + [1.0] * len(lines))
    folds = np.random.default_rng(0).permutation(len(texts)) % FOLDS
    scores = np.zeros(len(texts))
    for fold in range(FOLDS):
        known = folds != fold
        weights = _Weights(texts[known].tolist())
        line = _regression(weights.of(texts[known].tolist()), truth[known])
        scores[~known] = weights.of(texts[~known].tolist()) @ line[:-1] + line[-1]
    return float(mean(_area(scores[folds == fold], truth[folds == fold]) for fold in range(FOLDS)))


def _regression(features: csr_matrix, truth: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The weights of a logistic regression (the last is the constant), with a penalty of half their square."""

    def loss(line: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
        scores = features @ line[:-1] + line[-1]
        error = expit(scores) - truth
        value = np.logaddexp(0, scores).sum() - truth @ scores + line[:-1] @ line[:-1] / 2
        return value, np.append(features.T @ error + line[:-1], error.sum())

    return minimize(loss, np.zeros(features.shape[1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x


def _area(scores: np.ndarray[Any, Any], truth: np.ndarray[Any, Any]) -> float:
    """The share of pairs (a line of a test, a line of filler) where the test's line has the higher score."""
    filler = np.sort(scores[truth == 0])
    lines = scores[truth == 1]
    below = np.searchsorted(filler, lines, "left") + np.searchsorted(filler, lines, "right")
    return float(below.mean() / 2 / len(filler))
