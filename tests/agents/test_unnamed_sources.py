"""What is reported of a memory that does not name the turns its memories come from: nothing is lost because words differ."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
from tests.report.pages import report

import longspan
from longspan.agents.memory.sources import InferredTurns, Sources
from longspan.agents.memory.turns import Turn
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.pages.report.comparison_tables import comparison_tables
from longspan.simulator.results.measures.comparing import load_comparison
from longspan.simulator.results.result import Result, read_result

SCENARIOS = ["colours", "shopping", "name_list"]


def played(folder: Path, memory: str, span: str = "2k") -> Result:
    spec = f"memory/python:tests.agents.unnamed_sources:{memory}{'&' if '?' in memory else '?'}answerer=none&unchecked=true"
    longspan.run("ltm", agent=spec, span=span, tests=1, scenarios=SCENARIOS, out=folder)
    return read_result(RunFolder(next(path for path in folder.iterdir() if path.is_dir())))


def stored(result: Result) -> Counter[tuple[bool | None, bool]]:
    return Counter((pair.stored, pair.stored_inferred) for test in result.tests for pair in test.evidence)


@pytest.mark.parametrize("batch", ["session", "turn", "4"])
@pytest.mark.parametrize("memory", ["Paraphrasing", "ParaphrasingTexts", "Denying", "Buffering"])
def test_a_memory_that_stores_every_fact_in_its_own_words_is_never_said_to_have_lost_one(tmp_path: Path, memory: str, batch: str) -> None:
    result = played(tmp_path, f"{memory}?batch={batch}")
    assert sum(stored(result).values()) > 10
    assert not any(pair.stored is False or pair.retrieved is False for test in result.tests for pair in test.evidence)
    assert {inferred for known, inferred in stored(result) if known} <= {True}
    assert "evidence_stored" not in result.metrics or result.metrics["evidence_stored"] == 1
    assert not any(name.startswith("evidence_recall") and value < 1 for name, value in result.metrics.items())
    if result.memory is not None:
        assert "not been stored" not in result.memory.sentence
        assert all((stage.share_at_most or stage.share) == 1 for stage in result.memory.stages if stage.k in (None, 20))
        assert result.memory.needles.keys() <= {"unknown", "found_undecided"}
    if memory == "ParaphrasingTexts" and batch == "turn":  # each memory was made of the one turn that was added
        assert result.memory is not None
        number = sum(stored(result).values())
        assert result.memory.sentence == (
            f"Questions relied on {number} needles. {number} unreported; all were stored (inferred). "
            "Inferred: from wording or time, as memories name no turns."
        )


def test_a_memory_that_copies_turns_and_names_none_has_stored_them_by_inference(tmp_path: Path) -> None:
    result = played(tmp_path, "Copying")
    assert stored(result).keys() == {(True, True)}
    memory = result.memory
    assert memory is not None
    assert memory.inferred == memory.needles
    lost, found = memory.needles["not_retrieved"], memory.needles["found_undecided"]
    assert memory.sentence == (
        f"Questions relied on {lost + found} needles; {lost} were stored, not retrieved (inferred). {found} were retrieved (inferred); "
        "their answers have no score. Inferred: from wording or time, as memories name no turns."
    )
    page = report(next(path for path in tmp_path.iterdir() if path.is_dir()))
    assert memory.sentence in page.root.words
    assert "stored (inferred)" in page.root.words
    assert "not retrieved (inferred)" in page.root.words
    shown = {table.title.partition(" [")[0]: table for table in comparison_tables(load_comparison([tmp_path]))}
    assert f"{lost} (inferred)" in shown["Where the memory was lost: needles that questions needed"].rows[0]
    assert "Inferred from wording" in shown["Memories by stage"].note


def test_a_copy_of_another_turn_does_not_show_that_a_turn_was_not_stored(tmp_path: Path) -> None:
    kept, dropped = played(tmp_path / "kept", "Copying"), played(tmp_path / "dropped", "Copying?drops=2")
    assert stored(dropped).keys() == {(True, True), (None, False)}
    assert "evidence_stored" not in dropped.metrics
    assert dropped.memory is not None
    stage = next(each for each in dropped.memory.stages if each.stage == "stored")
    assert 0 < stage.share < 1 == stage.share_at_most
    assert "evidence_stored" in kept.metrics


def test_texts_that_copy_all_that_was_found_show_what_was_not_found(tmp_path: Path) -> None:
    result, named = played(tmp_path / "silent", "Silent"), played(tmp_path / "named", "Named")
    assert stored(result).keys() == {(None, False)}
    pairs = [pair for test in result.tests for pair in test.evidence]
    assert {pair.retrieved for pair in pairs} == {True, False}
    assert all(pair.retrieved_inferred for pair in pairs)
    assert {name: value for name, value in result.metrics.items() if "recall" in name} == {
        name: value for name, value in named.metrics.items() if "recall" in name
    }


def test_what_a_memory_names_is_known(tmp_path: Path) -> None:
    whole, part = played(tmp_path / "whole", "Named"), played(tmp_path / "part", "Named?drops=2")
    assert stored(whole).keys() == {(True, False)}
    assert stored(part).keys() == {(True, False), (False, False)}
    for result in (whole, part):
        assert result.memory is not None
        assert not result.memory.inferred
        assert "nferred" not in result.memory.sentence
        assert not any(pair.retrieved_inferred or pair.retrieved is None for test in result.tests for pair in test.evidence)
    assert part.memory is not None
    assert f"{part.memory.needles['not_stored']} had not been stored" in part.memory.sentence
    assert part.metrics["evidence_stored"] < 1


def test_few_or_common_words_identify_no_turn() -> None:
    sources = Sources()
    turns = ["Yes, it is.", "My favourite colour is blue now.", "I like tan best of all colours these days."]
    turns += [f"It is {number} o'clock, yes, and it is time for walk number {number}." for number in range(40)]
    for number, text in enumerate(turns):
        sources.keep(Turn(f"t{number}", text, datetime(2024, 5, 7, 18), ""))
    assert sources.of("Yes, it is.") == InferredTurns(("t0",), "whole")
    assert sources.of("The user said yes: it is a lighthouse that they want to see.") == InferredTurns((), "")
    assert sources.of("My favourite colour is tan now.").turns == (), "the rare word is of another turn"
    assert sources.of("favourite colour: blue, now") == InferredTurns(("t1",), "whole")
    long = "The user went to Oslo in the rain and met Ada. My favourite colour is blue now. They had soup with a spoon."
    assert sources.of(long) == InferredTurns(("t1",), "part")
