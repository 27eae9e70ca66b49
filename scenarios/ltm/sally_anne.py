"""Sally-Anne (GoodAI, section 3.2; Nematzadeh et al., 2018): a story of false beliefs, told line by line as a TV show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple, final, get_args

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.beliefs import find_beliefs
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.word_lists import load_words
from longspan.simulator.base.errors import ScenarioError
from longspan.simulator.base.words import plain
from longspan.simulator.contract.graded_record import Grade, Record
from longspan.simulator.contract.scenario import Scenario, Skill
from longspan.simulator.contract.script import Line, Script
from longspan.simulator.reading.labelled_lists import ListLabel, find_labelled_lists
from longspan.simulator.reading.matching import is_slip
from longspan.simulator.reading.replies.reading import Reading
from longspan.simulator.reading.replies.values import Values

__all__ = ["BeliefQuestion", "Event", "Kind", "SallyAnne", "World"]

Kind = Literal["first_order", "second_order", "reality", "memory"]
"""Kinds of questions: where A believes the object is, where A thinks that B believes it is, where it is, and where it was first."""

CONTAINERS = 3
MAX_ATTEMPTS = 10_000
"""Maximum number of stories to draw until one has the intended answer. About two are enough."""


@final
class Event(NamedTuple):
    """A line of the story: who does what, and where.

    `where` is the room that is entered or left, or the container that the object is put into or moved to. For "like" it is a thing that
    someone likes, which is irrelevant to the story.
    """

    what: Literal["enter", "leave", "put", "move", "like"]
    who: str
    where: str


@final
class BeliefQuestion(NamedTuple):
    """A question about the story. `people`: A for a first-order belief, A and B for a second-order one, otherwise empty."""

    kind: Kind
    people: tuple[str, ...] = ()


@final
class World:
    """Everyone's location, the object's location, everyone's beliefs, and their beliefs about each other's beliefs.

    Everyone in the `room` sees the object being moved and who else sees it. Nothing is visible from elsewhere. Stories do not say what
    people learn when they enter the room. With `peeking`, they see where the object is, and the others notice that they do. Without it,
    they learn nothing.
    """

    def __init__(self, room: str, *, peeking: bool) -> None:
        self._room = room
        self._peeking = peeking
        self._inside: list[str] = []
        self.places: list[str] = []
        """The containers that the object has been in, in order. It is now in the last."""
        self.beliefs: dict[str, str] = {}
        """Where each person believes the object to be."""
        self.thoughts: dict[tuple[str, str], str] = {}
        """For (A, B): where A thinks that B believes the object to be."""

    def happen(self, event: Event) -> None:
        if event.what in ("put", "move"):
            self.places.append(event.where)
            self._witness()
        elif event.where == self._room and event.what == "enter":
            self._inside.append(event.who)
            if self._peeking and self.places:
                self._witness()
        elif event.where == self._room and event.what == "leave":
            self._inside.remove(event.who)

    def _witness(self) -> None:
        """Let everyone inside see where the object is, and see the others see it."""
        self.beliefs |= dict.fromkeys(self._inside, self.places[-1])
        self.thoughts |= dict.fromkeys(permutations(self._inside, 2), self.places[-1])

    def answer(self, question: BeliefQuestion) -> str | None:
        """Return the container that answers the question; None if a person has seen nothing to base a belief on."""
        match question:
            case BeliefQuestion("first_order", (who,)):
                return self.beliefs.get(who)
            case BeliefQuestion("second_order", (who, other)):
                return self.thoughts.get((who, other))
            case BeliefQuestion("reality"):
                return self.places[-1]
            case BeliefQuestion("memory"):
                return self.places[0]
            case _:
                raise ScenarioError(f"unknown question: {question}")


@final
class _Setting(NamedTuple):
    """The people, places and things of a story. The object stays in the first of the `rooms`."""

    people: Sequence[str]
    rooms: Sequence[str]
    likes: Sequence[str]
    containers: Sequence[str]


@final
class SallyAnne(Scenario):
    """Tell a story of an object that is moved `moves` times while people come and go; then ask one question about it.

    The object moves between three containers. The kind of question is drawn from `questions`: by default beliefs, as in the paper's
    runs. The answer about a belief is any container equally often, no matter where the object was first, longest or last. A rule that
    ignores who is present, such as "the last place", is right once in three times, and two beliefs in three are false. A question is not
    asked if its answer depends on what people learn by entering a room (see World). For a false second-order belief, A or B believes
    otherwise, so that a first-order answer would be wrong.
    """

    name: ClassVar[str] = "sally_anne"
    skills: ClassVar[tuple[Skill, ...]] = ("theory of mind",)
    topics: ClassVar[frozenset[str]] = frozenset({"tv"})

    questions: tuple[Kind, ...] = Field(default=("first_order", "second_order"), min_length=1)
    people: int = Field(default=3, ge=2, le=8)
    moves: int = Field(default=3, ge=3, le=12)
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        pool = load_words(self.name)
        sizes = {"people": self.people, "rooms": 4, "likes": 4, "containers": CONTAINERS}
        setting = _Setting(**{kind: random.sample(pool[kind], size) for kind, size in sizes.items()})
        thing = random.choice(pool["objects"])
        story, question, answer = self._draw(random, setting)

        furniture = _join_names([f"the {container}" for container in random.sample(setting.containers, CONTAINERS)])
        who, other = (*question.people, "", "")[:2]
        asked = wording.say(random, question.kind, who=who, other=other, thing=thing)
        lines = [
            Line(wording.say(random, "intro"), needle=False),
            Line(wording.say(random, "furnish", containers=furniture, room=setting.rooms[0])),
            *(Line(wording.say(random, event.what, who=event.who, thing=thing, where=event.where)) for event in story),
            Line(
                f"{asked} {wording.say(random, 'form')}",
                ideal=f'{{"answer": "{answer}"}}',
                asks=True,
                needs=_needs(question.kind, story, setting.rooms[0]),
            ),
        ]
        places = [event.where for event in story if event.what in ("put", "move")]
        return Script(
            facts={
                "kind": question.kind,
                "people": list(question.people),
                "answer": answer,
                "containers": list(setting.containers),
                "first": places[0],
                "really": places[-1],
            },
            lines=lines,
            farewell=wording.say(random, "farewell"),
        )

    def _draw(self, random: Random, setting: _Setting) -> tuple[list[Event], BeliefQuestion, str]:
        """Draw a story of suitable length, and return it with a question and its answer."""
        kind = random.choice(self.questions)
        places = _places(random, setting.containers, self.moves)
        # The answer is drawn before the story, so that all answers are equally likely.
        answer = {"memory": places[0], "reality": places[-1]}.get(kind) or random.choice(setting.containers)
        shortest, longest = 4 + self.moves, 7 + self.moves + self.people  # not counting the line that names the containers
        for _ in range(MAX_ATTEMPTS):
            story = _story(random, setting, places)
            questions = _questions(kind, answer, answer == places[-1], story, setting)
            if shortest <= len(story) <= longest and questions:
                return story, random.choice(questions), answer
        raise ScenarioError(f"no story for a question of kind {kind} with {self.people} people and {self.moves} moves")

    def chance(self, facts: Mapping[str, Any]) -> float:
        return 1 / len(load_words(self.name)["containers"])  # the question does not say which three are in the story

    def guess(self, message: str) -> str | None:
        wording = Wording(self.name)
        asked = next((message.removesuffix(f" {form}") for form in wording.all("form") if message.endswith(f" {form}")), "")
        if all(wording.read(kind, asked) is None for kind in get_args(Kind)):
            return None
        return json.dumps({"answer": Random(message).choice(load_words(self.name)["containers"])})

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """Score 1 if the reply gives the right one of the story's `containers` and no other container, else 0.

        If the reply has JSON with an "answer", only that counts, and two different answers count as none. Otherwise the whole reply must
        name exactly one container.
        """
        if self.rules == "paper":
            return paper.sally_anne(facts, record)
        given = _given_answers(record.answer.reply)
        containers = dict.fromkeys([*facts["containers"], *load_words(self.name)["containers"]])
        named = (
            _find_containers(given, list(containers)) or _find_misspelled(given, facts["containers"])
            if given
            else _find_told(record.answer.reply, facts, list(containers))
        )
        where = "JSON" if given else "reply, which has no JSON answer,"
        really = facts.get("really", facts["answer"])
        return Grade(
            score=float(named == [facts["answer"]]),
            reason=f"expected {facts['answer']}"
            + (f" (it is really in the {really})" if really != facts["answer"] else "")
            + f", the {where} names {_join_names(named) or 'none of the containers'}",
            turns=(record.answer.turn,),
        )


def _places(random: Random, containers: Sequence[str], moves: int) -> list[str]:
    """Return where the object is put and then moved, `moves` times. It visits all containers, for the first time in their order.

    It ends in each of them equally often.
    """
    last = random.choice(containers)
    while (places := _draw_moves(random, containers, moves))[-1] != last:
        pass
    return places


def _draw_moves(random: Random, containers: Sequence[str], moves: int) -> list[str]:
    places = [containers[0]]
    while len(places) <= moves:
        unused = len(set(places))
        reachable = [container for container in containers[: unused + 1] if container != places[-1]]
        if moves - len(places) < len(containers) - unused:
            reachable = [containers[unused]]
        places.append(random.choice(reachable))
    return places


def _story(random: Random, setting: _Setting, places: Sequence[str]) -> list[Event]:
    """Return the events of a story of any length. People may wander around for a long time before the object is moved."""
    room, *elsewhere = setting.rooms
    inside = random.sample(setting.people, random.randint(2, len(setting.people)))
    outside = [who for who in setting.people if who not in inside]
    away: dict[str, str] = {}
    likes = list(setting.likes)
    story = [Event("enter", who, room) for who in inside]
    story.append(Event("put", random.choice(inside), places[0]))
    to_come = list(places[1:])
    while to_come or random.random() < 0.4:
        what = random.choices(("move", "leave", "enter", "wander", "return", "like"), (7, 6, 3, 3, 2, 2))[0]
        if what == "move" and to_come:
            story.append(Event("move", random.choice(inside), to_come.pop(0)))
        elif what == "leave" and len(inside) > 1:
            outside.append(inside.pop(random.randrange(len(inside))))
            story.append(Event("leave", outside[-1], room))
        elif what == "enter" and outside:
            inside.append(outside.pop(random.randrange(len(outside))))
            story.append(Event("enter", inside[-1], room))
        elif what == "wander" and outside:
            who = outside.pop(random.randrange(len(outside)))
            away[who] = random.choice(elsewhere)
            story.append(Event("enter", who, away[who]))
        elif what == "return" and away:
            who, where = away.popitem()
            outside.append(who)
            story.append(Event("leave", who, where))
        elif what == "like" and likes:
            story.append(Event("like", random.choice(setting.people), likes.pop()))
    return story


def _questions(kind: Kind, answer: str, true: bool, story: Iterable[Event], setting: _Setting) -> list[BeliefQuestion]:
    """Return the questions of a kind that have this answer with and without peeking."""
    worlds = [World(setting.rooms[0], peeking=peeking) for peeking in (False, True)]
    for event in story:
        for world in worlds:
            world.happen(event)
    people = permutations(setting.people, {"first_order": 1, "second_order": 2}.get(kind, 0))
    questions = [BeliefQuestion(kind, group) for group in people]
    fitting = [question for question in questions if all(world.answer(question) == answer for world in worlds)]
    if kind == "second_order" and not true:
        beliefs = worlds[0].beliefs
        return [question for question in fitting if any(beliefs[who] != answer for who in question.people)]
    return fitting


def _needs(kind: Kind, story: Sequence[Event], room: str) -> tuple[int, ...]:
    """Return the needles needed for an answer. For a belief, that is everything that happens in the room. Needle 0 names the containers."""
    relevant = [number for number, event in enumerate(story, 1) if event.what in ("put", "move") or event.where == room]
    put = next(number for number, event in enumerate(story, 1) if event.what == "put")
    last = max(number for number, event in enumerate(story, 1) if event.what in ("put", "move"))
    return {"memory": (put,), "reality": (last,)}.get(kind, tuple(relevant))


def _given_answers(reply: str) -> list[str]:
    """Return the "answer" in the reply's JSON as text. Of several, a final or corrected one is preferred.

    An echo of the example in the question is not an answer.
    """
    objects = [item for item in find_labelled_lists(reply) if isinstance(item.value, dict)]
    answers = [(item.called, value) for item in objects for key, value in item.value.items() if plain(str(key)) == "answer"]
    given = [(what, text) for what, value in answers if plain(text := _text(value)) != "word"]
    return [text for what, text in given if what is ListLabel.COMPLETE][-1:] or [text for _, text in given]


def _text(value: Any) -> str:
    """Return the words in a JSON value; empty if it is neither a string nor a list of strings."""
    texts = value if isinstance(value, list) else [value]
    return " ".join(text for text in texts if isinstance(text, str))


def _find_containers(texts: Iterable[str], containers: Sequence[str]) -> list[str]:
    """Return the containers that any of the texts gives as its answer."""
    values = Values(containers, forms=False)
    found = {value for text in texts for value in Reading(text).settles(values).values}
    return [container for container in containers if container in found]


def _find_misspelled(texts: Sequence[str], containers: Sequence[str]) -> list[str]:
    """Return the story's containers that match single words except for one letter, but not plurals: "jarr"."""
    said = {plain(text).removeprefix("the ") for text in texts}
    return [container for container in containers if any(is_slip(word, container, 3) and word != f"{container}s" for word in said)]


def _find_told(reply: str, facts: Mapping[str, Any], containers: Sequence[str]) -> list[str]:
    """Return the containers that a reply in prose gives as its answer."""
    if asked := facts.get("people"):
        return find_beliefs(reply, containers, asked, [who for who in load_words(SallyAnne.name)["people"] if who not in asked]).values
    return _find_containers([reply], containers)


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
