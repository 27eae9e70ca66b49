"""How far back an agent remembers: every claim about planted agents is true, inside the family that is fitted and outside, and the gate
decides only what is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from math import inf
from pathlib import Path
from random import Random

import pytest
from matplotlib.figure import Figure
from tests.scenarios.reach.planted import FORGETTING, OUTSIDE, Kept, Planted, question

import longspan
from longspan import Message
from longspan.simulator.base.errors import InputError
from longspan.simulator.cli import run_command
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.figures import DRAWN
from longspan.simulator.results.analysis.reach_fit import ScoredQuestion, fit_reach
from longspan.simulator.results.analysis.reach_gate import PlacedAnswer, decide_gate
from longspan.simulator.results.analysis.recall_curves import MARGIN
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.measures.reach import estimate_luck, place_rungs
from longspan.simulator.results.measures.trends import measure_trends
from longspan.simulator.results.reach_result import ReachResult
from longspan.simulator.results.result import read_result


def play(kept: Kept, span: int, out: Path, *, seeds: int | str = 0, able: bool = True) -> tuple[ReachResult, list[ScoredQuestion]]:
    """Return an agent's result, and the questions with their scores."""
    results = longspan.run("reach", agent=lambda: Planted(kept, able=able), span=span, seeds=seeds, out=out, progress=False)
    return read_reach(results)


def read_reach(results: longspan.Results) -> tuple[ReachResult, list[ScoredQuestion]]:
    """Return the result of an agent's runs, and the questions with their scores."""
    (found,) = results.reach
    tests = [test for folder in results.folders for test in read_result(RunFolder(folder)).tests]
    return found, [each.as_question(each.rung.score or 0) for each in place_rungs(tests)]


@pytest.fixture(scope="module")
def four_seeds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], longspan.Results]:
    """Return the runs of an agent of `OUTSIDE` with four seeds. They are played once for all tests, which only read them."""

    @cache
    def play_once(name: str) -> longspan.Results:
        agent = OUTSIDE[name]
        out = tmp_path_factory.mktemp("outside")
        return longspan.run("reach", agent=lambda: Planted(agent), span=8_000, seeds="0-3", out=out, progress=False)

    return play_once


def share(questions: Sequence[ScoredQuestion]) -> float:
    return sum(each.score for each in questions) / len(questions)


def check_claims(found: ReachResult, questions: Sequence[ScoredQuestion]) -> None:
    """Fail if a claim contradicts what the agent did."""
    said = found.sentence
    unit, limit = found.unit, (found.reach and found.reach.get(found.unit)) or (found.drop and found.drop.get(found.unit))
    within = [each for each in questions if limit is None or (getattr(each, unit) or 0) <= (limit.value or 0)]
    beyond = [each for each in questions if each not in within]
    assert (found.within.asked, found.within.right) == (len(within), sum(each.score for each in within))
    if found.reach is not None:
        assert share(within) >= 0.5 > share(beyond), said
    if found.drop is not None:
        assert share(within) - share(beyond) > MARGIN, said
    if found.alike:
        near, middle, far = (each.count.right / each.count.asked for each in found.thirds)
        assert max(near, middle, far) - min(near, middle, far) <= 0.4, said
    if found.kind == "none":
        assert min(each.count.right / each.count.asked for each in found.thirds) >= 0.75, said
    if found.kind == "by type of fact":
        shares = [each.count.right / each.count.asked for each in found.by_type.values()]
        assert max(shares) - min(shares) >= 0.3, said
    if not found.fits:
        assert (found.drop, found.reach, found.kind) == (None, None, "unclear")
        assert "no limit is given" in said


# ---- inside the family


@pytest.mark.parametrize("span", [2_000, 8_000, 32_000])
def test_planted_agents_are_told_apart(span: int, tmp_path: Path) -> None:
    seeds = "0-3" if span == 2_000 else 0
    found = {}
    for name, make in FORGETTING.items():
        found[name], questions = play(make(span), span, tmp_path / name, seeds=seeds)
        check_claims(found[name], questions)
    assert [name for name, each in found.items() if each.kind not in (name, "unclear")] == []
    assert [name for name in ("message window", "none", "nothing") if found[name].kind != name] == []
    window = found["token window"]
    assert window.reach is not None
    assert window.reach.tokens is not None
    assert (window.reach.tokens.low or 0) <= span // 5 <= (window.reach.tokens.high or inf)
    if span > 2_000:  # which leaves room for filler, by which tokens are told from messages
        assert window.kind == "token window"
        assert found["random misses"].drop is None
    assert found["decay"].drop is not None


def test_a_window_of_messages_is_reported_in_messages(tmp_path: Path) -> None:
    found, questions = play(FORGETTING["message window"](0), 8_000, tmp_path)
    beyond = [each for each in questions if each.messages > 20]
    assert found.reach is not None
    assert found.reach.messages is not None
    assert (found.reach.messages.low or 0) <= 20 <= (found.reach.messages.high or inf) <= 26
    assert (found.unit, found.beyond.asked, found.beyond.right) == ("messages", len(beyond), 0)
    assert f"0 of {len(beyond)} beyond. Looks like a message window." in found.sentence


def test_limits_in_virtual_time_are_reported_in_virtual_time(four_seeds: Callable[[str], longspan.Results]) -> None:
    day, _ = read_reach(four_seeds("a day"))
    assert day.kind == "time window"
    assert day.reach is not None
    assert day.reach.seconds is not None
    assert (day.reach.seconds.low or 0) <= 86_400 <= (day.reach.seconds.high or 0)
    assert "hours of virtual time" in day.sentence
    night, _ = read_reach(four_seeds("until midnight"))
    assert (night.kind, night.unit) == ("time window", "nights")
    assert night.sentence.startswith("Recalls plain facts stated since the last midnight")


def test_a_limit_is_the_same_at_every_span(tmp_path: Path) -> None:
    ends = []
    for span in (8_000, 32_000, 128_000):
        found, _ = play(lambda said: said.tokens <= 600, span, tmp_path / str(span), seeds="0-1")
        assert found.reach is not None
        assert found.reach.tokens is not None
        ends.append((found.reach.tokens.low or 0, found.reach.tokens.high or inf))
    assert max(low for low, _ in ends) <= 600 <= min(high for _, high in ends)


# ---- outside the family


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_claim_is_false_outside_the_family(name: str, four_seeds: Callable[[str], longspan.Results]) -> None:
    """Neither of four seeds together nor of the first alone."""
    results = four_seeds(name)
    check_claims(*read_reach(results))
    (first,) = (folder for folder in results.folders if folder.name.endswith("seed0"))
    check_claims(*read_reach(longspan.load(first)))


@pytest.mark.parametrize("name", ["a dip in the middle", "written late", "written at night", "the first thirty facts"])
def test_recall_that_does_not_fall_with_distance_has_no_kind_of_limit(name: str, four_seeds: Callable[[str], longspan.Results]) -> None:
    found, _ = read_reach(four_seeds(name))
    assert (found.fits, found.kind, found.drop, found.reach) == (False, "unclear", None, None)
    assert [each.share for each in (found.thirds[0], found.thirds[-1])] == [found.near, found.far]


def test_a_floor_above_half_has_a_drop_and_no_reach(four_seeds: Callable[[str], longspan.Results]) -> None:
    found, _ = read_reach(four_seeds("a window with a floor of 60%"))
    assert found.reach is None
    assert found.drop is not None
    assert found.drop.tokens is not None
    assert (found.drop.tokens.low or 0) <= 600 <= (found.drop.tokens.high or inf)
    assert "beyond" not in found.sentence


def test_types_of_facts_are_told_apart(tmp_path: Path) -> None:
    found, _ = play(OUTSIDE["no numbers"], 8_000, tmp_path / "all")
    assert (found.kind, found.drop) == ("by type of fact", None)
    assert "dog 9 of 9, drink 9 of 9, town 9 of 9, birthday 0 of 9 and locker 0 of 9" in found.sentence
    windowed, _ = play(OUTSIDE["no numbers, and a window"], 8_000, tmp_path / "window", seeds="0-1")
    assert windowed.kind == "token window"
    assert windowed.types_p is not None
    assert windowed.types_p < 0.001


class Answering:
    """An agent that answers with values that it has heard, whatever it is asked for."""

    def __init__(self, choose: Callable[[Random, list[str]], str]) -> None:
        self._choose, self._heard = choose, dict[str, list[str]]()

    def reply(self, message: Message) -> str:
        from tests.scenarios.reach.planted import statements

        for kind, _, value in statements(message.text):
            self._heard.setdefault(kind, []).append(value)
        asked = question(message.text)
        heard = self._heard.get(asked[0], []) if asked else []
        return self._choose(Random(message.text), heard) if heard else "Noted."

    def observe(self, message: Message, reply: str) -> None:
        self.reply(message)

    def reset(self) -> None:
        self._heard.clear()


def test_a_gate_counts_tokens_as_the_sentence_does(tmp_path: Path) -> None:
    agent = lambda: Planted(lambda said: said.tokens <= 600)  # noqa: E731
    results = longspan.run("reach@8k", agent=agent, seeds="0-3", out=tmp_path, progress=False)
    assert [results.decide_reach(limit).verdict for limit in (500, 900, 2_000)] == ["passed", "failed", "failed"]


def test_an_agent_that_lists_every_value_hedges(tmp_path: Path) -> None:
    agent = lambda: Answering(lambda random, heard: ", ".join(heard))  # noqa: E731
    (found,) = longspan.run("reach@8k", agent=agent, out=tmp_path, progress=False).reach
    assert (found.named, found.hedges) == ("hedges", True)
    assert found.sentence.startswith("Hedges: ")


def test_guesses_among_values_already_heard_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = lambda: Answering(lambda random, heard: random.choice(heard))  # noqa: E731
    results = longspan.run("reach@8k", agent=agent, seeds="0-3", out=tmp_path, progress=False)
    (found,) = results.reach
    assert abs(found.recalled / found.asked - found.heard) < 0.08
    assert found.chance < 0.02
    assert found.outcomes["confused"] > found.asked / 2
    assert found.guesses
    assert found.sentence.endswith("no more than by guessing among the values stated: nothing is known about its reach.")
    assert run_command(["score", str(results.folders[0])]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "name a value stated for another person" in said
    assert "among values already stated" in said


def test_what_cannot_do_the_task_says_nothing_about_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = play(FORGETTING["none"](0), 2_000, tmp_path, able=False)
    assert (found.can, found.able, found.at_once) == (False, 0, 5)
    assert run_command(["score", str(next(tmp_path.iterdir()))]) == 0
    said = "Cannot answer even when the fact is in the same message (0 of 5 right): nothing is known about its memory."
    assert said in " ".join(capsys.readouterr().out.split())


def test_what_is_never_right_is_not_called_only_so_many(tmp_path: Path) -> None:
    (found,) = longspan.run("reach@8k", agent="notebook?window=1k", out=tmp_path, progress=False).reach
    assert (found.can, found.able) == (True, 0)
    assert found.sentence.endswith("Looks like a token window. Even in the same message, none of 12 is right.")


# ---- several runs


def test_a_limit_that_grows_with_the_span_is_no_fixed_distance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for span in (2_000, 32_000):
        agent = lambda span=span: Planted(FORGETTING["token window"](span))  # noqa: E731
        longspan.run("reach", agent=agent, span=span, seeds="0-1", label="grows", out=tmp_path, progress=False)
    assert run_command(["compare", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "reaches further at 32k than at 2k: its limit is not a fixed distance." in said


def test_a_memory_that_is_only_searched_has_a_result_for_each_stage(tmp_path: Path) -> None:
    (folder,) = longspan.run("reach@2k", agent="memory/bm25?answerer=none&k=3", out=tmp_path, progress=False).folders
    stages = {each.stage: each for each in read_result(RunFolder(folder)).reach}
    assert set(stages) == {"found", "stored"}
    assert (stages["stored"].recalled, stages["stored"].kind, stages["stored"].at_once) == (16, "none", 0)
    assert stages["found"].recalled <= 16


def test_runs_of_several_seeds_end_with_one_sentence_over_all_their_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", "reach", "--span", "2k", "--seed", "0-2", "--agent", "notebook", "--agent", "stateless", "--out", str(tmp_path)]
    assert run_command(asked) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "ecalls" in line]
    assert [line.partition(": ")[0] for line in said] == ["notebook at 2k, 3 runs", "stateless at 2k, 3 runs"]
    results = longspan.load(tmp_path)
    assert [each.sentence for each in results.reach] == [line.partition(": ")[2] for line in said]
    single = [longspan.load(path).reach[0] for path in results.folders]
    assert sum(each.asked for each in results.reach) == sum(each.asked for each in single)


def test_a_comparison_has_a_row_for_each_agent_span_and_stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for agent, label in ((lambda: Planted(lambda said: said.tokens <= 600), "window"), (lambda: Planted(lambda said: True), "all")):
        longspan.run("reach@8k", agent=agent, label=label, out=tmp_path, progress=False)
    longspan.run("reach@8k", agent="memory/bm25?answerer=none&k=3", out=tmp_path, progress=False)
    capsys.readouterr()
    assert run_command(["compare", str(tmp_path), "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    rows = [row for row in group["rows"] if row["table"] == "reach"]
    assert sorted((row["stage"], row["span"]) for row in rows) == [("answered", 8_000)] * 2 + [("found", 8_000), ("stored", 8_000)]
    window, whole = (next(row for row in rows if label in row["agent"]) for label in ("window", "all"))
    assert window["drop_tokens"]["low"] <= 600 <= window["drop_tokens"]["high"]
    assert set(window["reach_tokens"]) == set(window["near"]) == {"value", "low", "high"}
    assert (whole["drop_tokens"], whole["reach_tokens"], whole["kind"], whole["fits"]) == (None, None, "none", True)
    assert whole["by_type"]["dog"] | {"asked": 9, "right": 9.0} == whole["by_type"]["dog"]
    versions, panels = measure_trends(load_comparison([tmp_path]).side)
    assert set(versions) == {"window", "all"}
    (reach,) = panels["reach in tokens"].values()
    assert reach["window"][1] <= 600 <= reach["window"][2] < reach["all"][0] == reach["all"][2], "no limit up to the furthest"
    assert run_command(["compare", str(tmp_path), "--format", "csv"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert {"near", "near_low", "drop_tokens_high", "reach_tokens"} <= set(head.split(","))
    assert sum(line.startswith("reach,") for line in lines) == 4


def test_a_run_is_shown_below_the_sentence_that_it_ended_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "reach", "--span", "2k", "--agent", "stateless", "--out", str(tmp_path)]) == 0
    (first,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Recalls ")]
    assert run_command(["show", str(next(tmp_path.iterdir()))]) == 0
    assert capsys.readouterr().out.splitlines()[0] == first


def test_the_share_recalled_by_distance_is_drawn(tmp_path: Path) -> None:
    for agent in ("memory/recent?answerer=none&k=3", "memory/bm25?answerer=none&k=3"):
        longspan.run("reach@2k", agent=agent, out=tmp_path / "runs", progress=False)
    figure = Figure()
    DRAWN["reach"](load_comparison([tmp_path / "runs"]), figure)
    assert sorted(axes.get_title(loc="left") for axes in figure.axes) == ["bm25 at 2k", "recent at 2k"]
    assert [text.get_text() for text in figure.texts] == ["Short names: all are memory/…?answerer=none&k=3."]
    for name in ("a.svg", "b.svg"):
        assert run_command(["plot", str(tmp_path / "runs"), "--figure", "reach", "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    longspan.run("ltm@2k", agent="silent", scenarios=["colours"], out=tmp_path / "other", progress=False)
    assert run_command(["plot", str(tmp_path / "other"), "--figure", "reach", "--out", str(tmp_path / "c.svg")]) == 2


# ---- the gate


def test_the_gate_of_a_run_has_three_outcomes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reach = ["run", "reach", "--out", str(tmp_path / "runs"), "--span", "2k", "--agent"]
    assert run_command([*reach, "oracle", "--seed", "0-3", "--fail-under-reach", "500"]) == 0
    assert "longspan: oracle: passed: recalls at least 50% of plain facts at every distance up to 500 tokens" in capsys.readouterr().err
    assert run_command([*reach, "oracle", "--fail-under-reach", "800"]) == 3  # few questions lie that far back
    said = capsys.readouterr().err
    assert "longspan: oracle: undecided: 1 seed cannot show whether it recalls at least 50% of plain facts at every distance" in said
    assert "of the 4 questions needed lie near that distance or beyond" in said
    assert "seeds would decide" in said
    assert run_command([*reach, "oracle", "--agent", "stateless", "--seed", "0", "--fail-under-reach", "1.7k"]) == 1
    said = capsys.readouterr().err
    assert "longspan: oracle: undecided" in said
    assert "no question lies that far back: use a longer span." in said
    assert "longspan: stateless: failed: does not recall at least 50% of plain facts at every distance up to 1,700 tokens" in said
    assert run_command([*reach, "oracle", "--at-least", "0.9"]) == 2
    assert "--at-least requires --fail-under-reach" in capsys.readouterr().err
    assert run_command([*reach, "oracle", "--fail-under-reach", "8k"]) == 2
    expected = "a reach of 8,000 tokens needs a span of at least 9,000, got 2,000: use --span 26000, or at least 9000"
    assert expected in capsys.readouterr().err
    assert run_command(["run", "ltm", "--span", "9k", "--out", str(tmp_path / "runs"), "--fail-under-reach", "8k"]) == 2
    assert "use the suite reach" in capsys.readouterr().err
    assert run_command([*reach, "oracle", "--isolated", "--fail-under-reach", "1k"]) == 2
    assert "leave out --isolated" in capsys.readouterr().err


def test_check_asserts_a_reach(tmp_path: Path) -> None:
    results = longspan.check(lambda: Planted(FORGETTING["none"](0)), reaches=1_000, out=tmp_path / "keeps")
    assert results.decide_reach(1_000).verdict == "passed"
    with pytest.raises(AssertionError, match=r"failed: does not recall at least 50% .*\nRecalls plain facts up to"):
        longspan.check(lambda: Planted(FORGETTING["message window"](0)), reaches="1k", out=tmp_path / "forgets")
    flat = lambda: Planted(lambda said: Random(said.text).random() < 0.75)  # noqa: E731
    longspan.check(flat, reaches=1_000, seeds="0-3", out=tmp_path / "flat")
    with pytest.raises(AssertionError, match="does not recall at least 95%"):
        longspan.check(flat, reaches=1_000, at_least=0.95, seeds="0-3", out=tmp_path / "strict")
    for share in (0, 1, -1, 1.5, float("nan"), "x"):
        with pytest.raises(InputError, match="at_least must be a share"):
            longspan.check(flat, reaches=1_000, at_least=share, out=tmp_path / "never")


def test_check_plans_its_runs_once(tmp_path: Path) -> None:
    made = []

    def agent() -> Planted:
        made.append(Planted(FORGETTING["none"](0)))
        return made[-1]

    longspan.run("reach@8k", agent=agent, out=tmp_path / "run", progress=False)
    least = len(made)
    longspan.check(agent, suite="reach@8k", reaches=1_500, out=tmp_path / "check")
    assert len(made) == 2 * least
    with pytest.raises(InputError, match="a reach of 8,000 tokens needs a span of at least 9,000, got 2,000"):
        longspan.check(agent, suite="reach@2k", reaches=8_000, out=tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def draw_answers(random: Random, recall: Callable[[float], float]) -> list[PlacedAnswer]:
    """Draw the answers of one conversation of 8,000 tokens: 45 questions, evenly on a logarithmic scale."""
    distances = [32 * (7_200 / 32) ** random.random() for _ in range(45)]
    return [PlacedAnswer(distance, float(random.random() < recall(distance))) for distance in distances]


LIMIT = 2_000
GATED: dict[str, tuple[bool, Callable[[float], float]]] = {
    "a window of .75": (False, lambda distance: distance <= 0.75 * LIMIT),
    "a window of .9": (False, lambda distance: distance <= 0.9 * LIMIT),
    "a window of 1.1": (True, lambda distance: distance <= 1.1 * LIMIT),
    "a window of 1.25": (True, lambda distance: distance <= 1.25 * LIMIT),
    "decay": (False, lambda distance: 1 / (1 + (distance / (0.8 * LIMIT)) ** 2)),
    "75% at random": (True, lambda distance: 0.75),
    "a floor of 30%": (False, lambda distance: 1.0 if distance <= 600 else 0.3),
}


@pytest.mark.parametrize("name", GATED)
def test_the_gate_is_seldom_wrong(name: str) -> None:
    """`python -m benchmarks reach --part gate` draws more, over layouts as they are played."""
    good, recall = GATED[name]
    random, groups = Random(name), 40
    wrong, decided = dict.fromkeys((1, 2, 4, 8), 0), dict.fromkeys((1, 2, 4, 8), 0)
    sequences = 0
    for _ in range(groups):
        drawn = [draw_answers(random, recall) for _ in range(8)]
        verdicts = [decide_gate(drawn[:seeds], LIMIT, forecast=False).verdict for seeds in range(1, 9)]
        for seeds in wrong:
            wrong[seeds] += verdicts[seeds - 1] == ("failed" if good else "passed")
            decided[seeds] += verdicts[seeds - 1] != "undecided"
        first = next((each for each in verdicts if each != "undecided"), "undecided")
        sequences += first == ("failed" if good else "passed")
    assert max(wrong.values()) <= 2, "at most 5%"
    assert sequences <= 2, "seeds that are added until the gate decides do not make it wrong more often"
    assert decided[8] >= (groups // 4 if name == "decay" else 0.9 * groups)


def test_a_gate_says_how_many_seeds_would_decide() -> None:
    random = Random(1)
    recall = GATED["a window of 1.1"][1]
    found = next(each for _ in range(20) if (each := decide_gate([draw_answers(random, recall)], LIMIT)).verdict == "undecided")
    assert found.needed is not None
    assert 2 <= found.needed <= 16
    assert f"roughly {found.needed} seeds would decide" in found.sentence
    decided = sum(
        decide_gate([draw_answers(random, recall) for _ in range(found.needed)], LIMIT, forecast=False).verdict != "undecided"
        for _ in range(20)
    )
    assert decided >= 12


# ---- the fit


def make_step(number: int, reach: float, seed: int = 0) -> list[ScoredQuestion]:
    """Questions whose facts are recalled up to a distance in tokens, but for one in thirty."""
    random = Random(seed)
    asked = []
    for place in range(number):
        tokens = 10 * 1.15 ** (45 * random.random())
        right = float(tokens <= reach and random.random() > 0.03)
        asked.append(ScoredQuestion(tokens, 2 * random.randrange(1, 200), 30 * tokens, tokens // 500, place, 2 * place, "dog", right))
    return asked


@pytest.mark.parametrize("number", [1, 3, 45, 7_000])
def test_few_and_very_many_questions_are_fitted(number: int) -> None:
    found = fit_reach(make_step(number, 900))
    assert found is not None
    assert sum(found.kinds.values()) == pytest.approx(1)
    for extent in (found.near, found.far, *found.drop.values(), *found.reach.values()):
        assert extent.low <= extent.value <= extent.high
    if number > 40:
        assert found.reach["tokens"].low <= 900 <= found.reach["tokens"].high
    else:
        assert found.kind == "unclear"


def test_a_fit_does_not_depend_on_the_order_of_questions() -> None:
    asked = make_step(80, 500)
    forward, backward = fit_reach(asked), fit_reach(asked[::-1])
    assert forward is not None
    assert backward is not None
    assert (forward.drop, forward.reach, forward.kind) == (backward.drop, backward.reach, backward.kind)
    assert forward.kinds == pytest.approx(backward.kinds)


def test_times_that_are_not_known_are_left_out() -> None:
    found = fit_reach([each._replace(seconds=None, nights=None) for each in make_step(80, 500)])
    assert found is not None
    assert set(found.drop) == {"tokens", "messages"} & set(found.drop)
    assert found.kinds["time window"] == 0


def test_questions_that_are_all_equally_far_have_a_share_and_no_drop() -> None:
    found = fit_reach([ScoredQuestion(100, 4, 60, 0, place, place + 2, "dog", float(place % 2)) for place in range(40)])
    assert found is not None
    assert (found.drop, found.reach) == ({}, {})
    assert found.share.low < 0.5 < found.share.high


def test_nothing_is_fitted_to_nothing() -> None:
    assert fit_reach([]) is None
    assert decide_gate([], 1_000).verdict == "undecided"


@pytest.mark.parametrize(("limit", "floor"), [(200, 0.0), (600, 0.3), (1_500, 0.4), (600, 0.6)])
def test_intervals_contain_the_drop(limit: int, floor: float) -> None:
    """`python -m benchmarks reach --part coverage` has all cells, over layouts as they are played."""
    random, contained, shown, draws = Random(f"{limit}/{floor}"), 0, 0, 40
    for _ in range(draws):
        asked = []
        for place in range(180):
            tokens = 10 * (7_200 / 10) ** random.random()
            right = float(random.random() < (1.0 if tokens <= limit else floor))
            asked.append(ScoredQuestion(tokens, 2 * random.randrange(1, 200), None, None, place, 2 * place, "dog", right))
        found = fit_reach(asked)
        assert found is not None
        shown += "tokens" in found.drop
        contained += "tokens" in found.drop and found.drop["tokens"].low <= limit <= found.drop["tokens"].high
        assert floor < 0.5 or not found.reach, "more than half is recalled at every distance"
    assert shown >= 0.95 * draws
    assert contained >= 0.9 * draws


def test_lucky_guesses_are_assumed_only_of_agents_that_also_miss_with_guesses() -> None:
    assert estimate_luck(0, 48, 0.45) == 0
    assert estimate_luck(12, 48, 0.45) == pytest.approx(0.2045, abs=1e-4)
    assert estimate_luck(40, 48, 0.45) == 0.45
