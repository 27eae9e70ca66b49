"""Contrasts of a sweep: stating, testing and reporting them, how often they are wrong, and the output for a paper."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made_runs import made_run

from longspan.simulator.cli import main
from longspan.simulator.pages.report.contrast_words import Family, contrast_table, describe_contrast
from longspan.simulator.pages.report.methods import anonymise_spec, write_methods
from longspan.simulator.results.analysis.contrasts import Contrast, Contrasts, correct_ps, evaluate_contrasts, read_contrasts
from longspan.simulator.results.analysis.statements import read_statements
from longspan.simulator.results.analysis.statistics import Difference, difference_limits, fall_p, paired_permutation_p
from longspan.simulator.results.graded_runs import load_runs


def run(*arguments: str | Path, code: int = 0) -> None:
    with pytest.raises(SystemExit) as exiting:
        main(list(map(str, arguments)))
    assert exiting.value.code == code


def write(path: Path, **content: Any) -> Path:
    path.write_text(json.dumps({"scenarios": ["colours"], "tests": 1} | content), "utf-8")
    return path


# ---- statistics


def apart(seeds: int, effect: float, random: np.random.Generator) -> list[Difference]:
    """Two agents in four scenarios of two tests, right or wrong. Conversations go better or worse for either as wholes."""
    shape = (seeds, 4, 2)
    rates = 0.5 + random.normal(0, 0.15, size=(2, seeds, 1, 1))
    one, other = (random.random(shape) < rates[0] + effect, random.random(shape) < rates[1])
    return [Difference(str(place[1]), place[0], float(value)) for place, value in np.ndenumerate(one.astype(float) - other)]


@pytest.mark.parametrize("correction", ["holm", "bonferroni"])
def test_false_claims_among_all_contrasts_are_as_rare_as_the_level(correction: str) -> None:
    of = Contrasts.model_validate({"contrasts": [{"agents": ["a", "b"]}] * 4, "correction": correction})
    random = np.random.default_rng(3)
    tried = [correct_ps([paired_permutation_p(apart(10, 0.0, random)) for _ in range(4)], of) for _ in range(300)]
    assert fmean(min(ps) < of.alpha for ps in tried) < 0.08
    uncorrected = of.model_copy(update={"correction": "none"})
    wrong = [correct_ps([paired_permutation_p(apart(10, 0.0, random)) for _ in range(4)], uncorrected) for _ in range(200)]
    assert fmean(min(ps) < of.alpha for ps in wrong) > 0.11


def test_intervals_cover_the_true_difference_and_agree_with_the_tests() -> None:
    random = np.random.default_rng(5)
    made = [apart(10, 0.2, random) for _ in range(150)]
    found = [ends for each in made if (ends := difference_limits(each, 0.025)) is not None]
    assert fmean(low <= 0.2 <= high for low, high in found) > 0.9
    for each, (low, high) in zip(made[:20], found[:20], strict=True):
        assert low <= fmean(difference.value for difference in each) <= high
        assert fall_p(each, low - 0.01) < 0.025 <= fall_p(each, low + 0.01)
        if abs(low) > 0.01 < abs(high):
            assert (paired_permutation_p(each) < 0.05) == (low > 0 or high < 0)


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=1, max_size=9))
def test_an_interval_holds_the_difference_or_there_is_none(values: list[float]) -> None:
    found = difference_limits([Difference("a", number, value) for number, value in enumerate(values)], 0.05)
    if len(set(values)) == 1:
        assert found is None
    else:
        assert found is not None
        assert -1 <= found[0] <= fmean(values) <= found[1] <= 1
        if len(values) < 5:
            assert found == (-1, 1), "too few to reject anything"


# ---- the file's questions


def stated(*contrasts: dict[str, Any], **rest: Any) -> Contrasts:
    found = read_contrasts({"contrasts": list(contrasts), **rest}, "sweep s.yaml")
    assert found is not None
    return found


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """Make runs of an agent whose score in seed n is the n-th of `scores`."""

    def of(agent: str, scores: list[float | None], **options: Any) -> Path:
        for seed, score in enumerate(scores):
            made_run(tmp_path, agent, lambda scenario, number, score=score: score, seed=seed, tests=1, **options)  # type: ignore[misc]
        return tmp_path

    return of


def sentences(folder: Path, contrasts: Contrasts) -> list[str]:
    runs, _ = load_runs([folder])
    settled = contrasts.settle_names([run.manifest for run in runs], "here")
    return [describe_contrast(each, settled) for each in evaluate_contrasts(settled, runs)]


def test_what_contrasts_come_to_is_told_in_words(made: Callable[..., Path]) -> None:
    made("good", [0.8, 0.7, 0.9, 0.8, 0.6, 0.7])
    made("bad", [0.3, 0.4, 0.2, 0.3, 0.1, 0.4])
    made("as good", [0.8, 0.7, 0.9, 0.8, 0.6, 0.7])
    folder = made("short", [0.1, 0.1, 0.1])
    found = sentences(
        folder,
        stated(
            {"agents": ["good", "bad"]},
            {"agents": ["bad", "good"]},
            {"agents": ["good", "as good"]},
            {"agents": ["good", "short"]},
            {"agents": ["good", "bad"], "sides": 1, "margin": 0.2, "scenarios": "colours"},
            {"agents": ["good", "bad"], "sides": 1, "margin": 0.9},
            {"agents": ["good", "as good"], "sides": 1, "margin": -0.05, "spans": "2k"},
            {"agents": ["bad", "good"], "sides": 1, "margin": -0.05},
            correction="none",
        ),
    )
    begins = [
        "good scores higher than bad: 75.0% against 28.3% of full marks, difference +46.7% [95% interval +3",
        "bad scores lower than good: 28.3% against 75.0% of full marks, difference \u221246.7% [95% interval \u2212",
        "No significant difference between good and as good: 75.0% against 75.0% of full marks, difference 0.0%, the same in every",
        "Undecided: good and short have only 3 conversations in common, too few to separate them; 6 would do.",
        "good scores higher than bad by more than 20.0% of full marks (colours): 75.0%",
        "good is not shown to score higher than bad by more than 90.0% of full marks: 75.0%",
        "good is shown to score less than 5.0% of full marks below as good (at 2k): 75.0%",
        "bad is not shown to score less than 5.0% of full marks below good: 28.3%",
    ]
    assert [text[: len(begin)] for text, begin in zip(found, begins, strict=True)] == begins
    assert "p = 0.031, 66 tests in 6 paired conversations." in found[0]
    other_way = " All of the interval is below 0: if anything, good scores higher, which a contrast stated for new runs could show."
    assert [text.endswith(other_way) for text in found] == [False] * 7 + [True]


def test_agents_are_found_by_spec_by_label_or_by_both(made: Callable[..., Path]) -> None:
    made("good", [0.5] * 6, label="old")
    made("good", [0.5] * 6, label="new prompt")
    folder = made("other?window=8k", [0.5] * 6)
    for names in (["old", "new prompt"], ["good [old]", "other?window=8k"], ["new prompt", "other"]):
        assert len(sentences(folder, stated({"agents": names}))) == 1
    runs, _ = load_runs([folder])
    with pytest.raises(Exception, match="'good' may be any of good"):
        stated({"agents": ["good", "old"]}).settle_names([run.manifest for run in runs], "here")


def test_all_spans_are_tested_together_unless_one_is_named(made: Callable[..., Path]) -> None:
    for span in (2_000, 4_000):
        made("good", [0.8, 0.7, 0.9], span=span)
        folder = made("bad", [0.3, 0.4, 0.2], span=span)
    whole, part = sentences(folder, stated({"agents": ["good", "bad"]}, {"agents": ["good", "bad"], "spans": ["4k"]}, correction="none"))
    assert "66 tests in 6 paired conversations" in whole
    assert part == "Undecided: good and bad have only 3 conversations in common (at 4k), too few to separate them; 6 would do."


def test_a_test_without_a_score_counts_as_0_and_is_told(made: Callable[..., Path]) -> None:
    made("good", [None, 0.8, 0.7, 0.8, 0.9, 0.8])
    (found,) = sentences(made("bad", [0.1, 0.2, 0.1, 0.2, 0.2, 0.1]), stated({"agents": ["good", "bad"]}))
    assert "66 tests, 11 of them without a score, which counts as 0, in 6" in found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"contrasts": []}, "contrasts: must not be empty"),
        ({"contrasts": [{"agents": ["silent", "oracel"]}]}, "contrasts.0: no run has agent 'oracel'; did you mean oracle?"),
        ({"contrasts": [{"agents": ["silent", "silent"]}]}, "contrasts.0: silent is compared with itself; name two agents"),
        ({"contrasts": [{"agents": ["silent"]}]}, "contrasts.0.agents: must have at least 2 items"),
        ({"contrasts": [{"agents": ["silent", "oracle"], "spans": "4k"}]}, "contrasts.0: no run has span '4000'"),
        ({"contrasts": [{"agents": ["silent", "oracle"], "scenarios": "jokes"}]}, "contrasts.0: no run has scenario 'jokes'"),
        (
            {"contrasts": [{"agents": ["silent", "oracle"], "side": 1}]},
            "contrasts.0.side: unknown key; did you mean sides?",
        ),
        ({"contrasts": [{"agents": ["silent", "oracle"], "colour": 1}]}, "contrasts.0.colour: unknown key; a contrast's keys are agents, "),
        ({"suite": "memory"}, "suite: unknown key; did you mean suites?"),
        ({"contrasts": [{"agents": ["silent", "oracle"], "margin": 0.1}]}, "contrasts.0: a margin is for one side: add sides: 1"),
        ({"contrasts": [{"agents": ["silent", "oracle"], "sides": 1}], "correction": "fdr"}, "correction: must be 'holm', 'bonferroni' or"),
        ({"alpha": 0.01}, "alpha: no contrasts; list the pairs of agents"),
        (
            {"contrasts": [{"agents": ["silent", "oracle"]}]},
            "contrasts.0: 5 conversations of silent and oracle cannot show a difference, however large; 6 would do, that is 1 more seed",
        ),
        (
            {"contrasts": [{"agents": ["silent", "oracle"], "sides": 1}, {"agents": ["oracle", "silent"], "sides": 1}]},
            "contrasts.0: 5 conversations of silent and oracle cannot show a difference of one of 2 contrasts, however large; 6 would do",
        ),
        (
            {"contrasts": [{"agents": ["silent", "oracle"], "sides": 1}] * 2, "correction": "none"},
            "contrasts: silent and oracle are compared twice in the same way",
        ),
        ({"runs": [{"contrasts": []}]}, "runs.0: contrasts: unknown key"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line_before_anything_is_written(
    content: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("s.yaml"), agents=["silent", "oracle"], seeds="0-4", **content)
    run("sweep", "s.yaml", code=2)
    error = capsys.readouterr().err
    assert error.startswith(f"longspan: sweep s.yaml: {message}")
    assert len(error.splitlines()) == 1
    assert not Path("runs").exists()


# ---- output


def test_a_sweep_ends_in_a_page_figures_and_what_a_paper_needs_and_tells_what_was_changed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    one = {"agents": ["oracle", "silent"], "sides": 1}
    write(Path("s.yaml"), agents=["oracle", "silent"], seeds="0-4", contrasts=[one])
    run("sweep", "s.yaml")
    out = Path("runs/s")
    (first,) = read_statements(out)
    said = capsys.readouterr().out
    assert f"1 contrast stated, SHA-256 {first.sha256}" in said
    assert "oracle scores higher than silent: 100.0% against 0.0% of full marks" in said
    assert (first.begun, first.finished, first.runs) == (0, 0, 10)
    results = out / "results"
    names = {path.relative_to(results).as_posix() for path in results.rglob("*") if path.is_file()}
    assert {"comparison.html", "contrasts.json", "methods.md", "references.bib", "figures/bars.svg", "figures/bars.pdf"} <= names
    text = (results / "methods.md").read_text("utf-8")
    assert "before any run had begun" in text
    assert "Nothing was left out." in text
    assert "`oracle` is given the expected answers: its score is an upper bound." in text
    assert "upper bounds" not in text
    page = (results / "comparison.html").read_text("utf-8")
    assert "oracle scores higher than silent" in page
    assert "which decide" in page
    assert not re.search(r"more (seed|conversation)", page)
    assert str(tmp_path) not in text
    references = (results / "references.bib").read_text("utf-8")
    cited = re.findall(r"@([A-Za-z0-9]+)", "".join(re.findall(r"\[@[^]]*\]", text)))
    assert all(f"{{{key}," in references for key in cited)
    assert "longspan" in cited
    assert len(cited) == 2
    (results / "methods.md").write_text("mine", "utf-8")

    run("sweep", "s.yaml")  # again: nothing is new
    assert "stated, SHA-256" not in capsys.readouterr().out
    assert (results / "methods.md").read_text("utf-8") == "mine"
    assert len(read_statements(out)) == 1

    write(Path("s.yaml"), agents=["oracle", "silent"], seeds="0-4", contrasts=[one], alpha=0.1)
    run("compare", out, "--contrasts", "s.yaml")
    assert "The contrasts tested here differ from the contrasts stated last." in capsys.readouterr().out
    capsys.readouterr()
    run("compare", out, "--contrasts", "nothere.yaml", code=2)
    assert capsys.readouterr().err.startswith("longspan: --contrasts nothere.yaml: cannot be read")
    run("sweep", "s.yaml")
    text = (results / "methods.md").read_text("utf-8")
    assert "They were changed on" in text
    assert "after 10 of 10 runs had finished" in text
    assert "after 10 of 10 runs had finished" in (results / "comparison.html").read_text("utf-8")
    content = json.loads((results / "contrasts.json").read_text("utf-8"))
    assert [each["finished"] for each in content["stated"]] == [0, 10]
    assert (content["contrasts"][0]["verdict"], content["alpha"]) == ("higher", 0.1)

    write(Path("s.yaml"), agents=["oracle", "silent"], seeds="0-4")
    run("sweep", "s.yaml", code=2)
    assert "and the file has none: put them back, or play into another folder" in capsys.readouterr().err

    journal = out / "contrasts.jsonl"
    journal.write_text(journal.read_text("utf-8").replace('"finished":10', '"finished":0'), "utf-8")
    write(Path("s.yaml"), agents=["oracle", "silent"], seeds="0-4", contrasts=[one], alpha=0.1)
    run("sweep", "s.yaml", code=1)
    assert "contrasts.jsonl: damaged at line 2" in capsys.readouterr().err

    journal.unlink()
    results.rename("elsewhere")
    results.symlink_to(Path("elsewhere").resolve())
    before = sorted(Path("elsewhere").iterdir())
    run("sweep", "s.yaml", code=1)
    assert "results: is a symbolic link" in capsys.readouterr().err
    assert sorted(Path("elsewhere").iterdir()) == before


def test_methods_hold_nothing_of_the_machine_and_no_markup_of_strangers(made: Callable[..., Path]) -> None:
    made("gguf//home/me/models/llama.gguf?gpu_layers=-1", [0.5] * 6, agent_commit="0" * 40)
    folder = made("bad`<script>", [0.1, 0.2] * 3)
    runs, _ = load_runs([folder])
    of = stated({"agents": ["bad`<script>", "gguf//home/me/models/llama.gguf?gpu_layers=-1"]})
    family = Family(of, evaluate_contrasts(of, runs), missing=["run-7"])
    text = write_methods(family, runs, [])
    assert "/home" not in text
    assert "`gguf/llama.gguf?gpu_layers=-1` (commit 0" in text
    assert "``bad`<script>``" in text
    assert "1 run is left out, not finished or damaged: run-7." in text
    assert "The contrasts were not stated before the runs were played." in text
    assert r"\<script>" in text.partition("# Results")[2]
    assert not re.search(r"(?<!\\)<script>|&\w+;", text.partition("# Results")[2]), "neither markup nor HTML's escapes"
    assert text == write_methods(family, runs, [])
    assert contrast_table(family).rows[0][-1] == "lower"


def test_methods_tell_in_sentences_how_many_tests_were_played_and_which_options_were_set(made: Callable[..., Path]) -> None:
    made("good", [0.5] * 6, pace_s=45.0)
    folder = made("oracle-like", [0.1] * 6, pace_s=45.0)
    runs, _ = load_runs([folder])
    of = stated({"agents": ["good", "oracle-like"]})
    text = write_methods(Family(of, evaluate_contrasts(of, runs)), runs, [])
    assert "One test of each scenario was played. 2 options were not the defaults: pace_s 45.0 and placement uniform." in text
    assert "expected answers" not in text


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("openai/gpt-4o?context=16k", "openai/gpt-4o?context=16k"),
        ("openai/org/model?base_url=http://10.0.0.7:8000/v1&context=8k", "openai/org/model?base_url=ADDRESS&context=8k"),
        ("python:bot:Bot?interpreter=/home/me/venv/bin/python", "python:bot:Bot?interpreter=python"),
        ("exec:/usr/bin/python3 ~/agents/mine.py --fast", "exec:python3 mine.py --fast"),
        ("http://localhost:9/x", "ADDRESS"),
        ("locomo.data /data/locomo10.json", "locomo.data locomo10.json"),
        ("a" * 100_000 + "/" * 100_000, None),
    ],
)
def test_a_spec_is_told_without_paths_and_addresses(spec: str, told: str | None) -> None:
    assert anonymise_spec(spec) == told or told is None


def test_references_are_those_of_what_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("list", "citations", "locomo")
    said = capsys.readouterr().out
    assert re.findall(r"@[a-z]+\{(\w+),", said) == ["maharana2024evaluating", "longspan"]
    own = tmp_path / "mine.yaml"
    own.write_text("name: mine\nreference: '@misc{mine2026, title = {Mine}}'\nscenarios: {colours: {}}\n", "utf-8")
    run("list", "citations", own)
    assert re.findall(r"@[a-z]+\{(\w+),", capsys.readouterr().out) == ["mine2026", "castillobolado2024beyond", "longspan"]
    run("list", "citations")
    entries = re.findall(r"@[a-z]+\{(\w+),(.*?)\n\}", capsys.readouterr().out, re.DOTALL)
    assert len({key for key, _ in entries}) == len(entries) >= 9
    assert [key for key, fields in entries if not {"title", "author", "year"} <= set(re.findall(r"^  (\w+) +=", fields, re.M))] == []
    assert all(fields.count("{") == fields.count("}") for _, fields in entries)


def test_contrasts_are_equal_however_their_file_is_written() -> None:
    long = stated({"agents": ["a", "b"], "spans": ["2k"], "sides": 2, "margin": 0}, correction="holm", alpha=0.05)
    assert long.sha256 == stated({"agents": ["a", "b"], "spans": 2000}).sha256
    assert long.sha256 != stated({"agents": ["b", "a"], "spans": 2000}).sha256
    assert Contrast(agents=["a", "b"]).sides == 2
