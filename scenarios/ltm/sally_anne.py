"""Sally-Anne (GoodAI, section 3.2; Nematzadeh et al., 2018): a story of false beliefs, told line by line as a TV programme."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from random import Random
from typing import Any, ClassVar, Literal, NamedTuple, final

from pydantic import Field

from longspan.scenarios.ltm import paper_rules as paper
from longspan.scenarios.ltm.wording import Wording
from longspan.scenarios.shared.lists import words
from longspan.simulator.errors import ScenarioError
from longspan.simulator.grading.matching import found_words, json_values, plain
from longspan.simulator.record import Grade, Record
from longspan.simulator.scenario import Scenario, Skill
from longspan.simulator.script import Line, Script

__all__ = ["Event", "Kind", "Question", "SallyAnne", "World"]

Kind = Literal["first_order", "second_order", "reality", "memory"]
"""Where A believes the object to be; where A thinks that B believes it to be; where it is; where it was at first."""

CONTAINERS = 3
ATTEMPTS = 10_000
"""How many stories are thrown away, at most, until one answers as wanted. It takes about two."""


@final
class Event(NamedTuple):
    """A line of the story: someone enters or leaves the room `where`, puts the object into the container `where` or
    moves it there, or likes the thing `where`, which bears on nothing."""

    what: Literal["enter", "leave", "put", "move", "like"]
    who: str
    where: str


@final
class Question(NamedTuple):
    """`people`: A for a belief of first order, A and B for one of second order, else nobody."""

    kind: Kind
    people: tuple[str, ...] = ()


@final
class World:
    """Who is where, where the object is, what everyone believes, and what everyone thinks that others believe.

    Whoever is in the `room` sees what happens to the object and sees who else is there to see it; nothing is seen from
    elsewhere. Stories leave open what one learns by coming into the room: with `peeking`, where the object is, and
    those who are there know; without, nothing.
    """

    def __init__(self, room: str, *, peeking: bool) -> None:
        self._room = room
        self._peeking = peeking
        self._inside: list[str] = []
        self.places: list[str] = []
        """The containers that the object has been in, in order; it is in the last."""
        self.beliefs: dict[str, str] = {}
        """Where each believes the object to be."""
        self.thoughts: dict[tuple[str, str], str] = {}
        """(A, B): where A thinks that B believes it to be."""

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
        """All inside see where the object is, and see each other see it."""
        self.beliefs |= dict.fromkeys(self._inside, self.places[-1])
        self.thoughts |= dict.fromkeys(permutations(self._inside, 2), self.places[-1])

    def answer(self, question: Question) -> str | None:
        """The container that answers the question; None where someone has seen nothing that makes them believe anything."""
        match question:
            case Question("first_order", (who,)):
                return self.beliefs.get(who)
            case Question("second_order", (who, other)):
                return self.thoughts.get((who, other))
            case Question("reality"):
                return self.places[-1]
            case Question("memory"):
                return self.places[0]
            case _:
                raise ScenarioError(f"there is no question like {question}")


@final
class _Cast(NamedTuple):
    """What stories are told with. The object stays in the first of the `rooms`."""

    people: Sequence[str]
    rooms: Sequence[str]
    likes: Sequence[str]
    containers: Sequence[str]


@final
class SallyAnne(Scenario):
    """People come and go while an object is moved between three containers, `moves` times; then one question is asked.

    Its kind is drawn from `questions`. Beliefs are balanced: the answer is equally often the first, the second and the
    third container that the object was in, and two in three are false. No answer depends on what one learns by coming
    into a room (see World): where it would, the question is not asked. In a false belief of second order, A or B
    believes otherwise, so that it takes second order to answer.
    """

    name: ClassVar[str] = "sally_anne"
    skills: ClassVar[tuple[Skill, ...]] = ("theory of mind",)
    topics: ClassVar[frozenset[str]] = frozenset({"tv"})

    questions: tuple[Kind, ...] = Field(default=("first_order", "second_order", "reality", "memory"), min_length=1)
    people: int = Field(default=3, ge=2, le=8)
    moves: int = Field(default=3, ge=3, le=12)
    rules: paper.Rules = "longspan"

    def make(self, random: Random) -> Script:
        wording = Wording(self.name)
        pool = words(self.name)
        sizes = {"people": self.people, "rooms": 4, "likes": 4, "containers": CONTAINERS}
        cast = _Cast(**{each: random.sample(pool[each], size) for each, size in sizes.items()})
        thing = random.choice(pool["objects"])
        story, question, answer = self._told(random, cast)

        furniture = _listed([f"the {container}" for container in random.sample(cast.containers, CONTAINERS)])
        who, other = (*question.people, "", "")[:2]
        asked = wording.say(random, question.kind, who=who, other=other, thing=thing)
        lines = [
            Line(wording.say(random, "intro"), needle=False),
            Line(wording.say(random, "furnish", containers=furniture, room=cast.rooms[0])),
            *(Line(wording.say(random, event.what, who=event.who, thing=thing, where=event.where)) for event in story),
            Line(
                f"{asked} {wording.say(random, 'form')}",
                ideal=f'{{"answer": "{answer}"}}',
                asks=True,
                needs=_needs(question.kind, story, cast.rooms[0]),
            ),
        ]
        places = [event.where for event in story if event.what in ("put", "move")]
        return Script(
            facts={
                "kind": question.kind,
                "people": list(question.people),
                "answer": answer,
                "containers": list(cast.containers),
                "first": places[0],
                "really": places[-1],
            },
            lines=lines,
            farewell=wording.say(random, "farewell"),
        )

    def _told(self, random: Random, cast: _Cast) -> tuple[list[Event], Question, str]:
        """A story of fitting length, a question about it and its answer."""
        kind = random.choice(self.questions)
        answer = cast.containers[0] if kind == "memory" else random.choice(cast.containers)
        true = kind == "reality" or random.randrange(CONTAINERS) == 0
        shortest, longest = 4 + self.moves, 7 + self.moves + self.people  # without the line that names the containers
        for _ in range(ATTEMPTS):
            places = _places(random, cast.containers, self.moves)
            if kind != "memory" and (places[-1] == answer) != true:
                continue
            story = _story(random, cast, places)
            if shortest <= len(story) <= longest and (questions := _questions(kind, answer, true, story, cast)):
                return story, random.choice(questions), answer
        raise ScenarioError(f"no story for a question of kind {kind} with {self.people} people and {self.moves} moves")

    def chance(self, facts: Mapping[str, Any]) -> float:
        return 1 / len(facts["containers"])

    def grade(self, facts: Mapping[str, Any], record: Record) -> Grade:
        """1 if the reply names the right one of the story's `containers` and no other, else 0.

        Where the reply holds JSON with an "answer", that alone counts, whatever stands around it; two such answers
        that differ are none. Without, the whole reply must name exactly one container.
        """
        if self.rules == "paper":
            return paper.sally_anne(facts, record)
        given = _given(record.answer.reply)
        named = _named(given or [record.answer.reply], facts["containers"])
        where = "JSON" if given else "reply, which has no JSON answer,"
        really = facts.get("really", facts["answer"])
        return Grade(
            score=float(named == [facts["answer"]]),
            reason=f"expected {facts['answer']}"
            + (f" (it really is in the {really})" if really != facts["answer"] else "")
            + f", the {where} names {_listed(named) or 'none of the containers'}",
            turns=(record.answer.turn,),
        )


def _places(random: Random, containers: Sequence[str], moves: int) -> list[str]:
    """Where the object is put and then moved, `moves` times: into all containers, the first time in their order."""
    places = [containers[0]]
    while len(places) <= moves:
        unused = len(set(places))
        reachable = [container for container in containers[: unused + 1] if container != places[-1]]
        if moves - len(places) < len(containers) - unused:
            reachable = [containers[unused]]
        places.append(random.choice(reachable))
    return places


def _story(random: Random, cast: _Cast, places: Sequence[str]) -> list[Event]:
    """What happens on TV. Of any length: people may wander about for long before the object gets where it goes."""
    room, *elsewhere = cast.rooms
    inside = random.sample(cast.people, random.randint(2, len(cast.people)))
    outside = [who for who in cast.people if who not in inside]
    away: dict[str, str] = {}
    likes = list(cast.likes)
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
            story.append(Event("like", random.choice(cast.people), likes.pop()))
    return story


def _questions(kind: Kind, answer: str, true: bool, story: Iterable[Event], cast: _Cast) -> list[Question]:
    """The questions of a kind that have this answer, however one takes what people learn by coming into a room."""
    worlds = [World(cast.rooms[0], peeking=peeking) for peeking in (False, True)]
    for event in story:
        for world in worlds:
            world.happen(event)
    people = permutations(cast.people, {"first_order": 1, "second_order": 2}.get(kind, 0))
    questions = [Question(kind, each) for each in people]
    fitting = [question for question in questions if all(world.answer(question) == answer for world in worlds)]
    if kind == "second_order" and not true:
        beliefs = worlds[0].beliefs
        return [question for question in fitting if any(beliefs[who] != answer for who in question.people)]
    return fitting


def _needs(kind: Kind, story: Sequence[Event], room: str) -> tuple[int, ...]:
    """The needles one has to know to answer: for a belief, all that happens in the room. Needle 0 names the containers."""
    told = [number for number, event in enumerate(story, 1) if event.what in ("put", "move") or event.where == room]
    put = next(number for number, event in enumerate(story, 1) if event.what == "put")
    last = max(number for number, event in enumerate(story, 1) if event.what in ("put", "move"))
    return {"memory": (put,), "reality": (last,)}.get(kind, tuple(told))


def _given(reply: str) -> list[str]:
    """What the reply's JSON gives as "answer", as text. The form that the question shows, echoed, is no answer."""
    objects = [value for value in json_values(reply) if isinstance(value, dict)]
    answers = [value for each in objects for key, value in each.items() if plain(str(key)) == "answer"]
    return [text for value in answers if plain(text := _text(value)) != "word"]


def _text(value: Any) -> str:
    """The words in a JSON value; none where it is anything but text or a list of texts."""
    texts = value if isinstance(value, list) else [value]
    return " ".join(text for text in texts if isinstance(text, str))


def _named(texts: Iterable[str], containers: Sequence[str]) -> list[str]:
    """The containers that stand in any of the texts as words, other than denied: "not in the crate"."""
    denied = _DENIAL + "(?:" + "|".join(re.escape(plain(container)) for container in containers) + r")\b"
    told = " | ".join(re.sub(denied, "|", plain(text)) for text in texts)
    return found_words(told, containers)


_DENIAL = (
    r"\b(?:not|never|nor|no longer|instead of|rather than|(?:is|was|are|do|does|did|wo|would|ca)nt)"
    r"(?: (?:be|look|looked|there|in|inside|into|to|at|the|a|an|that|his|her|their))* "
)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
