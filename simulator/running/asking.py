"""Repeats a turn of a run with an agent, from the state before that turn. The run's folder does not change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, final

from longspan.simulator.base.errors import InputError, StoppedError
from longspan.simulator.contract.agent import Agent, can_observe, close_agent, has_snapshots, start_agent
from longspan.simulator.contract.graded_record import Grade
from longspan.simulator.contract.messages import Reply
from longspan.simulator.contract.plugins import installed_scenarios, load_plugin
from longspan.simulator.contract.question_files import FAILURES, Failure, FailureFinder
from longspan.simulator.journal import events
from longspan.simulator.journal.forks import fork_of
from longspan.simulator.journal.run_folder import RunFolder
from longspan.simulator.journal.transcript import Change, PlayedTurn, Transcripts
from longspan.simulator.journal.turns_shown import PastTurn, message_of, nights_before, turns_of
from longspan.simulator.play.live_agent import LiveAgent
from longspan.simulator.results.gradebook.gradebook import Gradebook
from longspan.simulator.running.planning import agent_for
from longspan.simulator.subject.agent_log import AgentLog
from longspan.simulator.subject.ledger import Costs
from longspan.simulator.subject.prompt_log import Prompt, PromptLog
from longspan.simulator.subject.snapshots import Snapshots
from longspan.simulator.suite.agent_spec import AgentSpec, make_agent, pin_defaults
from longspan.simulator.suite.trust import require_trust

__all__ = ["Again", "Past", "TurnAsker", "find_failure", "grades_of", "past_of"]


@final
class Past(NamedTuple):
    """A turn of a conversation and the turns before it.

    `expected` is the ideal reply to a question of a scripted test, and `test` the opening event of the turn's test, if it has one.
    """

    conversation: str
    before: list[PlayedTurn]
    turn: PlayedTurn
    expected: str | None
    test: events.Open | None


@final
class Again(NamedTuple):
    """A turn's new reply, its cost in dollars by part (None if unknown), and the prompts sent to models for it."""

    reply: Reply
    costs: Costs | None
    prompts: list[Prompt]


def past_of(run: RunFolder, number: int, conversation: str | None = None) -> Past:
    """Read a turn and the turns before it. `conversation` may be omitted if the run has only one.

    Raises InputError if the turn does not exist, and JournalError for a damaged journal.
    """
    known = list(run.manifest.conversations)
    if conversation is None and len(known) > 1:
        one = next((id for id in known if any(turn.number == number and turn.message.test for turn in turns_of(run, id))), known[0])
        raise InputError(f"{run.path} has {len(known)} conversations: name one with --conversation, such as {one}")
    id = known[0] if conversation is None else conversation
    if id not in run.manifest.played:
        raise InputError(f"{run.path} has no conversation {id!r:.60}; it has {', '.join(run.manifest.played)}")
    if (experiment := run.manifest.experiments.get(id)) is not None and experiment.kind == "lesion":
        raise InputError(f"{run.path}: {id} is a lesion, whose agent knew only its last turns: ask {experiment.conversation} or a twin")
    transcripts, turns = Transcripts(), dict[int, PlayedTurn]()
    for each in turns_of(run, id, transcripts):
        turns[each.number] = each
        if each.number == number and each.reply is not None:
            break
    if number not in turns:
        raise InputError(f"{run.path}: conversation {id} has {len(turns)} turns, counted from 0; it has no turn {number}")
    *before, turn = [turns[each] for each in range(number + 1)]
    played = transcripts[id].tests.get(turn.message.test or "") if id in transcripts else None
    own = [each.message for each in turns.values() if each.message.test == turn.message.test]
    ideals = played.definition.ideal_replies(own) if played is not None else {}
    return Past(id, before, turn, ideals.get(number), None if played is None else played.definition)


def find_failure(run: RunFolder, past: Past) -> Failure:
    """Return a turn of a recorded history as a failure that can become a question.

    Raises InputError if the turn is not recorded, if its scenario makes no questions of turns, and for a log that the user has not allowed
    (see `trust`).
    """
    test, reply = past.test, past.turn.reply
    if test is None or reply is None or reply.asked:
        raise InputError(f"{run.path}: turn {past.turn.number} is not from a recorded history: only turns of a user's log become questions")
    require_trust(run.manifest, "scenarios", "sources")
    find: FailureFinder = load_plugin(FAILURES, "scenario whose turns become questions", test.scenario)
    scenario = installed_scenarios(run.manifest.suite.scenarios).get(test.scenario)
    if scenario is None:
        raise InputError(f"{run.path}: its scenario {test.scenario!r:.60} cannot be read; its log may be gone")
    return find(scenario, test.facts or {}, past.turn.number, past.turn.message.text)


def grades_of(run: RunFolder, past: Past, reply: str) -> tuple[Grade, Grade] | None:
    """Grade the test of a turn by rules: as it was played, and with `reply` in place of the turn's reply.

    Returns None if the turn belongs to no graded test. A dynamic test might have reacted to `reply` with other messages; they are not
    played.
    """
    id = past.turn.message.test
    if past.turn.reply is None or id is None:
        return None

    def graded(text: str | None) -> Grade | None:
        book = Gradebook(run.manifest)

        def add(conversation: str, event: events.Event) -> Change:
            again = text is not None and conversation == past.conversation and event == past.turn.reply
            return book.add(conversation, event.model_copy(update={"text": text}) if again else event)

        trunk = run.manifest.trunks.get(past.conversation)
        for conversation in (past.conversation,) if trunk is None else (trunk, past.conversation):
            for _ in run.fold(conversation, partial(add, conversation)):
                pass
        test = book.transcripts[past.conversation].tests.get(id)
        return book.grade(past.conversation, test) if test is not None and test.status == "played" and not test.tells else None

    recorded, again = graded(None), graded(reply)
    return (recorded, again) if recorded is not None and again is not None else None


@final
class TurnAsker:
    """Repeats a turn of a run with `agent`, or with the run's agent if it is None.

    The agent's standard error goes to `log`. Raises InputError for an unknown kind of agent, and for an agent in the manifest that the user
    has not allowed (see `trust`).
    """

    def __init__(self, run: RunFolder, past: Past, agent: str | None = None) -> None:
        manifest = run.manifest
        if agent is None and manifest.imported is not None:
            raise InputError(f"{run.path} was imported: name an agent with --agent")
        if agent is None:
            require_trust(manifest, "agent")
        self.spec = agent_for(manifest, AgentSpec.parse(manifest.agent) if agent is None else pin_defaults(AgentSpec.parse(agent)))
        if self.spec.kind == "oracle":
            raise InputError("oracle gets its replies from a test that is being played; name another agent")
        own = str(self.spec) == manifest.agent and manifest.imported is None
        self._past = past
        self._own = own
        saved, until = manifest.trunks.get(past.conversation, past.conversation), None
        if (twin := manifest.experiments.get(past.conversation)) is not None:
            saved, until = twin.conversation, fork_of(twin, run.journal(twin.conversation)).point.turn
        self._snapshots = Snapshots(run.snapshots(saved), run.owner(saved), copied=True, until=until) if own else None
        self.log = AgentLog()

    async def ask(self, agree: Callable[[str, bool], bool]) -> Again:
        """Bring the agent to the turn, and ask it.

        Before that, call `agree` with a line about the effort, and whether turns are sent to the agent again. If it returns False, do
        nothing and raise StoppedError. Raises AgentError if the agent fails.
        """
        prompts = PromptLog(None)
        with self.log.keep_at(None), prompts.keep_prompts():
            agent = make_agent(self.spec)
            try:
                await start_agent(agent)
                if not agree(*self._describe_needs(agent)):
                    raise StoppedError("nothing was asked")
                live = LiveAgent(agent, snapshots=self._snapshots)
                for past in (PastTurn.of(turn) for turn in self._past.before):
                    live.replay_nights(past.nights)
                    live.replay(past.message, past.reply, asked=self._own and past.asked)
                live.replay_nights(nights_before(self._past.turn))
                await live.catch_up()
                # Only the prompts of the repeated turn are returned, not the prompts of catching up.
                prompts.prompts.clear()
                reply, costs = await live.reply(message_of(self._past.turn), "")
            finally:
                await close_agent(agent)
        return Again(reply, costs, prompts.prompts)

    def _describe_needs(self, agent: Agent) -> tuple[str, bool]:
        number = self._past.turn.message.turn
        saved = self._snapshots.newest(number) if self._snapshots is not None and has_snapshots(agent) else 0
        count = number - saved
        turns = "turn" if count == 1 else f"{count} turns"
        since = f"the {turns} {'since its snapshot' if saved else 'before'}"
        if can_observe(agent) or saved == number:
            return f"{self.spec} observes {since}", False
        return f"{self.spec} has no observe: {since} are sent to it again", True
