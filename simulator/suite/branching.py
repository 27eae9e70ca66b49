"""The conversations that a run's tests are played in: shared ones, separate ones, branches of a history, and experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from longspan.simulator.base.errors import InputError
from longspan.simulator.contract.scenario import Test
from longspan.simulator.suite.experiment import Experiment
from longspan.simulator.suite.settings import RunSettings

__all__ = ["conversations_of", "experiments_of"]


def conversations_of(tests: Sequence[Test], settings: RunSettings) -> dict[str, list[Test]]:
    """Return the conversations of a run, each with its tests in order. A conversation with a history comes before its branches.

    A test with its own conversation gives its id to it; all others share `main`. `settings.branch` decides how questions about a history
    are asked. Raises InputError for a test that branches off from anything but a history.
    """
    known = {test.id: test for test in tests}
    branches: dict[str, list[Test]] = {}
    for test in tests:
        if test.trunk is not None:
            _check(test, known.get(test.trunk))
            branches.setdefault(test.trunk, []).append(test)
    together = [test for test in tests if not (settings.isolated or test.script.alone)]
    conversations = {"main": together} if together else {}
    for test in tests:
        if test.trunk is not None or not (settings.isolated or test.script.alone):
            continue
        if settings.branch == "retell" and test.id in branches:
            conversations |= {branch.id: [test, branch] for branch in branches[test.id]}
        elif settings.branch == "off":
            asked = branches.get(test.id, [])
            conversations[test.id] = [test, *Random(f"{settings.seed}/{test.id}/asked").sample(asked, len(asked))]
        else:
            conversations[test.id] = [test]
            conversations |= {branch.id: [branch] for branch in branches.get(test.id, [])}
    return conversations


def _check(test: Test, trunk: Test | None) -> None:
    if trunk is None or trunk.trunk is not None or not trunk.script.tells_alone:
        raise InputError(
            f"scenario {test.scenario.name}: test {test.id} branches from {test.script.trunk!r:.60}, which must be another of its tests: "
            "one that is alone and tells turns, and nothing else"
        )


def experiments_of(conversations: Mapping[str, Sequence[Test]], settings: RunSettings) -> dict[str, Experiment]:
    """Return the experiments of a run by the ids of their conversations.

    The seed draws the tests for twins and lesions. Without twins, all suitable tests get a lesion. All tests that share a conversation get
    a control. Raises InputError if there are too few suitable tests, or for a lesion that removes nothing.
    """
    planned = [*_controls(conversations, settings), *_twins_and_lesions(conversations, settings)]
    return {f"{each.kind}-{each.test}": each for each in planned}


def _controls(conversations: Mapping[str, Sequence[Test]], settings: RunSettings) -> list[Experiment]:
    if not settings.control:
        return []
    woven = [] if settings.isolated else conversations.get("main", ())
    # A test with a ladder of distances is its own control: its nearest questions have no distance.
    far = [test for test in woven if test.script.counts and not test.scenario.ladder]
    if not far:
        raise InputError(
            "--experiment control: every test of the run already has a conversation to itself, or asks without distance, too; leave it out"
        )
    return [Experiment(kind="control", conversation="main", test=test.id) for test in far]


def _twins_and_lesions(conversations: Mapping[str, Sequence[Test]], settings: RunSettings) -> list[Experiment]:
    twins, lesion, span = settings.twins, settings.lesion, settings.span
    if not twins and lesion is None:
        return []
    if lesion is not None and lesion >= span:
        raise InputError(f"--experiment lesion={lesion}: must be less than the span, which is {span:,} tokens: else nothing is taken away")
    fitting = [(id, test) for id, tests in conversations.items() for test in tests if _can_do_without(test)]
    option = "--experiment twins" if twins else "--experiment lesion"
    if not fitting:
        raise InputError(
            f"{option}: no test of the run is suitable: it must have scripted lines, and a question after a needle that is neither a "
            "question nor part of a recorded history"
        )
    if twins > len(fitting):
        raise InputError(f"--experiment twins={twins}: only {len(fitting):,} tests can have one; ask for as many, or play more (--tests)")
    drawn = Random(f"{settings.seed}/twins").sample(fitting, twins or len(fitting))
    chosen = sorted(drawn, key=lambda pair: pair[1].order)
    planned = [Experiment(kind="twin", conversation=id, test=test.id) for id, test in chosen if twins]
    if lesion is not None:
        planned += [Experiment(kind="lesion", conversation=id, test=test.id, tokens=lesion) for id, test in chosen]
    return planned


def _can_do_without(test: Test) -> bool:
    """Return whether a test's needles can be replaced: it has one before a question, and none in a past turn."""
    lines = test.script.lines
    needles = [number for number, line in enumerate(lines) if line.needle and not line.asks]
    if not needles or test.trunk is not None or not test.script.counts:
        return False
    return all(lines[number].reply is None for number in needles) and any(line.asks for line in lines[needles[0] + 1 :])
