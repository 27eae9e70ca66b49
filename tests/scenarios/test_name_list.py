"""Name list: hits divided by the larger of expected and answered."""

from __future__ import annotations

import pytest

from longspan.scenarios.ltm.name_list import NameList
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Exchange, Grade, Record
from longspan.simulator.reading.matching import found_words
from longspan.simulator.running.preflight.rehearsal import rehearse

NAMES = ["Ada", "Bo", "Cleo", "Dov", "Eve"]


def graded(reply: str, names: list[str] = NAMES) -> Grade:
    return NameList().grade({"names": names}, Record([Exchange(9, "Which?", reply, asks=True)]))


@pytest.mark.parametrize(
    ("reply", "score", "reason"),
    [
        ('["Ada", "Bo", "Cleo", "Dov", "Eve"]', 1, "found 5 of 5 in a list of 5"),
        ('["Eve", "Dov", "Cleo", "Bo", "Ada"]', 1, "found 5 of 5"),
        ('["ada", "BO", "Cl\u00e9o", " Dov ", "Eve."]', 1, "found 5 of 5"),
        ("['Ada', 'Bo', 'Cleo', 'Dov', 'Eve',]", 1, "found 5 of 5"),
        ("[Ada, Bo, Cleo, Dov, Eve]", 1, "found 5 of 5"),
        ('```json\n[\n  "Ada",\n  "Bo",\n  "Cleo",\n  "Dov",\n  "Eve"\n]\n```\n\nAnything else, Eve?', 1, "found 5 of 5"),
        ('Sure! Names: ["Ada", "Bo", "Cleo", "Dov", "Eve"] [1]\n\n[1] As you told me.', 1, "found 5 of 5"),
        ('["Ada", "Bo", "Cleo", "Dov", "Eve (current)"]', 1, "found 5 of 5"),
        ('["Ada", "Bo", "Cleo", "Dov", "Eve"]\n\n"No stone [sic] forgets." - Theodora Vane', 1, "found 5 of 5"),
        ('{"names": ["Ada", "Bo", "Cleo", "Dov", "Eve"]}', 1, "found 5 of 5"),
        ('{"previous_names": ["Ada", "Bo", "Cleo", "Dov"], "current_name": "Eve", "note": "so far"}', 1, "found 5 of 5"),
        ('{"1": "Ada", "2": "Bo", "3": "Cleo", "4": "Dov", "5": "Eve"}', 1, "found 5 of 5"),
        ('[{"name": "Ada"}, {"name": "Bo"}, {"name": "Cleo"}, {"name": "Dov"}, {"name": "Eve", "since": "now"}]', 1, "found 5 of 5"),
        ('{"name": "Ada"}\n{"name": "Bo"}\n{"name": "Cleo"}\n{"name": "Dov"}\n{"name": "Eve"}', 1, "found 5 of 5"),
        ('First I thought ["Zed"], but it is ["Ada", "Bo", "Cleo", "Dov", "Eve"].', 1, "found 5 of 5"),
        ('["Ada", "Bo", "Cleo", "Dov"]', 0.8, "4 of 5 in a list of 4; missing Eve"),
        ('["Eve"]', 0.2, "missing Ada, Bo, Cleo, Dov"),
        ('["Ada", "Bo", "Cleo", "Dov", "Zed"]', 0.8, "missing Eve; wrong Zed"),
        ('["Ada", "Bo", "Cleo", "Dov", "Eve", "Zed"]', 5 / 6, "wrong Zed"),
        ('["Ada", "Bo", "Cleo", "Dov", "Eve", "Ada"]', 5 / 6, "found 5 of 5 in a list of 6; 1 repeated"),
        ('["Ada", "Ada", "Ada", "Ada", "Ada"]', 0.2, "4 repeated"),
        ('["Ada", "Bo", "Cleo", "Dov", "Eve", "F", "G", "H", "I", "J"]', 0.5, "wrong F, G, H, I, J"),
        ('["Ada", "Bo", "Cleo", "Do', 0.6, "missing Dov, Eve"),
        ('["Ada Bo Cleo Dov Eve"]', 0, "wrong Ada Bo Cleo Dov Eve"),
        ("Ada, Bo, Cleo, Dov and Eve", 1, "found 5 of 5"),
        ("- Ada\n- Bo\n- Cleo\n- Dov\n- Zed", 0.8, "wrong Zed"),
        ("| # | Name |\n|---|---|\n| 1 | Ada |\n| 2 | Bo |", 0.4, "missing Cleo, Dov, Eve"),
        ("[]", 0, "lists no names"),
        ('["", null, 5]', 0, "lists no names"),
        ("You have not told me any names. [sighs]", 0, "lists no names"),
        ("", 0, "lists no names"),
    ],
)
def test_scores(reply: str, score: float, reason: str) -> None:
    grade = graded(reply)
    assert grade.score == pytest.approx(score)
    assert grade.reason.startswith("expected Ada, Bo, Cleo, Dov, Eve, ")
    assert reason in grade.reason
    assert grade.turns == (9,)


def test_names_from_a_published_test() -> None:
    assert graded('["Sinead"]', ["Sin\u00e9ad"]).score == 1
    assert graded('["O\'Brien"]', ["O\u2019Brien"]).score == 1


def test_names_are_all_different() -> None:
    for seed in range(50):
        script = rehearse(NameList(), seed=seed, reply=lambda text, ideal: ideal).script
        names = script.facts["names"]
        assert len({plain(name) for name in names}) == 5
        assert [found_words(line.text, load_words("names")) for line in script.lines[:-1]] == [[name] for name in names]


def test_all_names_are_needed() -> None:
    script = rehearse(NameList(), seed=0, reply=lambda text, ideal: ideal).script
    assert [line.asks for line in script.lines] == [False] * 5 + [True]
    assert script.lines[-1].needs is None


def test_the_question_says_what_form_it_wants() -> None:
    assert all("JSON list" in text for text in Wording("name_list").all("question"))


def test_chance_is_drawing_from_the_list() -> None:
    assert NameList().chance({"names": NAMES}) == 5 / len(load_words("names"))


def test_no_name_is_a_word_that_other_tests_use() -> None:
    names = {plain(name) for name in load_words("names")}
    assert len(names) == len(load_words("names")) > 100
    others = [
        *load_words("colour_words")["colours"],
        *load_words("groceries"),
        *"will mark bill jack grace hope may june art frank rich".split(),
    ]
    assert not names & {plain(word) for word in others}
