"""Conformance checks of memories. The scores of a memory that fails them would mean little.

`longspan check` runs all checks; a new run only those with `at_door`. The checks add a few facts, dated a month apart, to fresh memories
and search for each fact by its exact words.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple, final

import trio

from longspan.agents.base import AgentError
from longspan.agents.memory.memory import Memory, MemoryItem, Used
from longspan.agents.memory.turns import Turn
from longspan.simulator.base.clock import DEFAULT_START
from longspan.simulator.base.files.folders import remove_folder, walk_folder
from longspan.simulator.contract.findings import Check, Finding
from longspan.simulator.subject import lag
from longspan.simulator.subject.ledger import UnpricedCall
from longspan.simulator.subject.purse import Purse, current_purse
from longspan.simulator.subject.spending_limit import NOTHING, UNLIMITED

__all__ = ["Conformance"]


class _Fact(NamedTuple):
    """A fact, and a word that no other fact contains."""

    text: str
    word: str


FACTS: Final = (
    _Fact("The lamp in the boathouse is painted vermilion.", "vermilion"),
    _Fact("Ottilie keeps her spare key below the sundial.", "sundial"),
    _Fact("The last ferry to the island leaves at nine.", "ferry"),
    _Fact("My dentist is called Doctor Pemberton.", "pemberton"),
    _Fact("The cat Marmalade is afraid of thunder.", "marmalade"),
    _Fact("The word that opens the greenhouse is tamarisk.", "tamarisk"),
)
"""The facts added first."""

OTHER: Final = _Fact("The tailor in the arcade mends a kimono.", "kimono")
"""The fact that a second user adds."""

SINCE: Final = _Fact("The baker on the corner sells pretzels.", "pretzels")
"""The fact added after a snapshot folder was deleted."""

TAKEN_BACK: Final = _Fact("The gardener has planted an artichoke.", "artichoke")
"""The fact added after a snapshot, which loading the snapshot must remove."""

UNSAID: Final = "Has anybody seen a zeppelin over the quarry?"
UNSAID_WORD: Final = "zeppelin"
"""A question about something that no fact mentions."""

DIFFICULT: Final = {
    "a turn of 2,000 words": _Fact("A harpsichord stands in the hall. " + "All is quiet on the pier. " * 330, "harpsichord"),
    "braces, quotes and a backslash": _Fact('The note reads {"colour": "periwinkle\\"}, %s and <b>.', "periwinkle"),
    "a turn of several lines": _Fact("Shopping:\n\n- chestnuts\n- a colander", "colander"),
    "characters outside English": _Fact("Zoë’s café 🦀 in Łódź sells marzipan.", "marzipan"),
}
"""Turns that are hard to store, by their difficulty."""

UNSTORED: Final = _Fact("The usher keeps a ledger of umbrellas.", "umbrellas")
"""The fact added while the memory's model fails."""

PAID: Final = _Fact("The librarian has lost a monocle.", "monocle")
"""The fact added to measure the cost of adding."""

FEW: Final = 2
"""The `k` of searches that check whether a memory respects `k`."""

MANY: Final = 20
"""The `k` of searches that check whether a fact is found."""

SHARE: Final = 0.8
"""The minimum share of a verbatim memory's words that occur in its sources."""

STAMP: Final = re.compile(r"^\s*\[[^\]\n]*\d[^\]\n]*\]\s*")
"""A date at the start of a memory's text."""

WORD: Final = re.compile(r"[^\W\d_]{3,}")

ROLES: Final = {"user", "assistant", "human", "system", "noted"}
"""Words that a verbatim memory may add: speakers' roles, and the reply to the facts."""


@final
class Conformance:
    """The checks of memories created by `make`. At most two memories are open at a time. `at_door`: a new run performs the first three."""

    def __init__(self, make: Callable[[], Memory], *, at_door: bool) -> None:
        self._make = make
        self._open: list[Memory] = []
        self._turns: dict[int, list[Turn]] = {}
        self._calls = 0
        self._folder = TemporaryDirectory(prefix="longspan-")
        self._one: Memory | None = None
        self._other: Memory | None = None
        self.checks: Sequence[Check] = (
            Check("what was told", self._what_was_told, at_door),
            Check("k", self._k, at_door),
            Check("two users", self._two_users, at_door),
            Check("sources", self._sources),
            Check("dates", self._dates),
            Check("searching", self._check_search),
            Check("copy", self._copy),
            Check("rewind", self._rewind),
            Check("cost", self._cost),
            Check("errors in add", self._errors),
            Check("forget", self._forget),
            Check("two runs", self._two_runs),
        )

    async def close(self) -> None:
        try:
            for memory in list(self._open):
                await self._close(memory)
        finally:
            self._folder.cleanup()

    # Memories with facts.

    async def _new(self) -> Memory:
        memory = self._make()
        self._open.append(memory)
        self._turns[id(memory)] = []
        await memory.start()
        return memory

    async def _close(self, memory: Memory) -> None:
        self._open.remove(memory)
        await memory.close()

    async def _first(self) -> Memory:
        """Return the memory that contains the first facts, settled."""
        if self._one is None:
            one = await self._new()
            await self._tell(one, *FACTS)
            self._one = one
        return self._one

    async def _second(self) -> Memory:
        """Return a second user's memory."""
        self._other = self._other or await self._new()
        return self._other

    async def _tell(self, memory: Memory, *facts: _Fact) -> int:
        """Add facts as turns and settle. Return the tokens that the memory reports."""
        turns = self._turns[id(memory)]
        for fact in facts:
            number = len(turns) + 1
            reply = "Noted." if number % 2 else ""
            turns.append(Turn(f"check/{number}", fact.text, DEFAULT_START + timedelta(days=30 * number), reply))
        added = turns[-len(facts) :]
        async with self._pay(memory) as took:
            await memory.add(added, added[-1].sent_at)
            await memory.settle()
        used = took[0]
        return sum(each.input_tokens + each.output_tokens for each in used.usage.values())

    async def _search(self, memory: Memory, query: str, k: int = MANY) -> Sequence[MemoryItem]:
        turns = self._turns[id(memory)]
        at = (turns[-1].sent_at if turns else DEFAULT_START) + timedelta(hours=1)
        async with self._pay(memory):
            return await memory.search(query, k, at)

    @asynccontextmanager
    async def _pay(self, memory: Memory) -> AsyncIterator[list[Used]]:
        """Pay for a memory call and append its usage to the yielded list. Raises StoppedError if the call could exceed a limit."""
        purse, took = current_purse() or Purse(), list[Used]()
        worst = NOTHING if purse.ledger.limit == UNLIMITED or memory.models == {} else UnpricedCall(f"{purse.payer} check", 0)
        self._calls += 1
        async with purse.open_account(memory.models, worst, "check", turn=self._calls) as account:
            failed = True
            try:
                yield took
                failed = False
            finally:
                took.append(memory.used())
                costs = account.settle(took[0].usage, took[0].cost_usd, failed=failed)
            purse.ledger.require_told(worst, costs, "checking the memory")

    async def _finds(self, memory: Memory, fact: _Fact) -> bool:
        return _has(await self._search(memory, fact.text), fact.word)

    async def _find_all(self, memory: Memory) -> list[tuple[str, tuple[str, ...]]]:
        """Return the text and turns of all memories found for the first facts."""
        return [(item.text, tuple(item.turns)) for fact in FACTS for item in await self._search(memory, fact.text)]

    # The checks.

    async def _what_was_told(self) -> Finding:
        name = "what was told"
        memory = await self._first()
        if not memory.keeps:
            return Finding(name, "good", "it stores nothing, as declared: a floor for comparing others")
        began = trio.current_time()
        missing = [fact for fact in FACTS if not await self._finds(memory, fact)]
        while missing and trio.current_time() - began < lag.MOST_SECONDS:
            await trio.sleep(lag.STEP)
            missing = [fact for fact in missing if not await self._finds(memory, fact)]
        if not missing:
            return Finding(name, "good", f"all {len(FACTS)} facts are found when searched for verbatim")
        if len(missing) == len(FACTS):
            remedy = (
                "did `add` fail without an error, does `search` use another store, or are turns written later while `settle` does not wait?"
            )
            return Finding(name, "bad", f"none of {len(FACTS)} facts is found when searched for verbatim: {remedy}")
        what = f"{len(missing)} of {len(FACTS)} facts are not found when searched for verbatim, such as {missing[0].text!r}"
        return Finding(name, "note", what)

    async def _k(self) -> Finding:
        memory = await self._first()
        if memory.whole:
            return Finding("k", "good", "it always returns all of its memories, as declared")
        found = await self._search(memory, "What do you know of " + ", ".join(f"the {fact.word}" for fact in FACTS) + "?", FEW)
        if len(found) <= FEW:
            return Finding("k", "good", "a search returns at most `k` memories")
        what = f"a search for {FEW} memories returned {len(found)}: it must return the best {FEW}, or comparisons are unfair"
        return Finding("k", "bad", what)

    async def _sources(self) -> Finding | None:
        name = "sources"
        memory = await self._first()
        turns = {turn.turn_id: turn for turn in self._turns[id(memory)]}
        items = [item for fact in FACTS for item in await self._search(memory, fact.text)]
        if not items:
            return None
        said = _words(" ".join(turn.text for turn in turns.values())) | ROLES
        derived = sum(item.derived for item in items)
        for item in items:
            if strange := next((turn for turn in item.turns if turn not in turns), None):
                return Finding(name, "bad", f"a memory names {strange!r:.40} as its source, but there is no such turn")
            if item.derived:
                continue
            own = _words(STAMP.sub("", item.text))
            if len(own & said) < SHARE * len(own):
                what = (
                    f"{item.text[:60]!r} is found, but was never said: set `derived` for memories made from other text, and return "
                    "nothing else"
                )
                return Finding(name, "bad", what)
            sources = _words(" ".join(turns[turn].text for turn in item.turns)) | ROLES
            if item.turns and len(own & sources) < SHARE * len(own):
                return Finding(name, "bad", f"{item.text[:60]!r} names {item.turns[0]} as its source, which has other words")
        if derived == len(items):
            return Finding(name, "good", "all memories found are marked as derived")
        return Finding(name, "good", "memories found are verbatim text" + (" or marked as derived" if derived else ""))

    async def _dates(self) -> Finding | None:
        name = "dates"
        memory = await self._first()
        turns = {turn.turn_id: turn for turn in self._turns[id(memory)]}
        undated = 0
        seen = False
        for fact in FACTS:
            for item in await self._search(memory, fact.text):
                seen = True
                dates = [turns[turn].sent_at for turn in item.turns if turn in turns]
                if item.at is None:
                    undated += 1
                elif dates and not any(abs(item.at - date) < timedelta(days=1) for date in dates):
                    what = f"a memory from {dates[-1]:%-d %B %Y} is found with the date {item.at:%-d %B %Y}: use the dates in `at`"
                    return Finding(name, "bad", what)
                elif not dates and not _within(item.at, list(turns.values())):
                    what = f"a memory has the date {item.at:%-d %B %Y}, but nothing was said that day: use the dates in `at`"
                    return Finding(name, "bad", what)
        if not seen:
            return None
        if undated:
            return Finding(name, "note", f"{undated} memories found have no date: the answerer cannot know when they were said")
        return Finding(name, "good", "memories found have the right dates")

    async def _check_search(self) -> Finding:
        name = "searching"
        memory = await self._first()
        await self._search(memory, UNSAID)
        if not _has(await self._search(memory, UNSAID), UNSAID_WORD):
            return Finding(name, "good", "questions are not stored as facts")
        if memory.read_only_search or not memory.has_snapshots:
            why = "although it declares `read_only_search`" if memory.read_only_search else "and it cannot be loaded again"
            return Finding(name, "bad", f"questions are stored and found by later searches, {why}")
        return Finding(name, "note", "questions are stored and found by later searches: the memory is loaded again after each question")

    async def _two_users(self) -> Finding:
        name = "two users"
        one, other = await self._first(), await self._second()
        if known := [fact for fact in FACTS if await self._finds(other, fact)]:
            return Finding(name, "bad", f"one user's memory finds facts of another: {known[0].text!r}")
        await self._tell(other, OTHER)
        if await self._finds(one, OTHER):
            return Finding(name, "bad", f"one user's memory finds facts of another: {OTHER.text!r}")
        return Finding(name, "good", "two concurrent users do not find each other's facts")

    async def _copy(self) -> Finding | None:
        name = "copy"
        one, other = await self._first(), await self._second()
        if not one.has_snapshots:
            return Finding(name, "note", "it has no `save` and `load`: after an interruption, all turns are added again")
        saved, loaded = self._save("saved"), Path(self._folder.name) / "loaded"
        await one.save(saved)
        shutil.copytree(saved, loaded)
        await other.load(loaded)
        self._turns[id(other)] = list(self._turns[id(one)])
        if await self._find_all(one) != await self._find_all(other):
            return Finding(name, "bad", "a copy loaded from a snapshot finds other memories")
        kept = _digests(loaded)
        await self._tell(other, OTHER)
        if kept != _digests(loaded):
            return Finding(name, "bad", "a copy keeps writing to the folder that it was loaded from: `load` must copy the files")
        remove_folder(loaded)
        if not await self._goes_on(other, OTHER):
            return Finding(
                name, "bad", "a copy needs the folder that it was loaded from, which has been deleted: `load` must copy the files"
            )
        remove_folder(saved)
        if not await self._goes_on(one, FACTS[0]):
            return Finding(
                name, "bad", "after `save`, it needs the folder that it saved to, which has been moved: `save` must copy the files"
            )
        return Finding(name, "good", "a copy loaded from a snapshot finds the same memories")

    async def _rewind(self) -> Finding | None:
        name = "rewind"
        memory = await self._first()
        if not memory.has_snapshots:
            return None
        saved, turns = self._save("rewound"), list(self._turns[id(memory)])
        await memory.save(saved)
        before = await self._find_all(memory)
        await self._tell(memory, TAKEN_BACK)
        await memory.load(saved)
        self._turns[id(memory)] = turns
        after = await self._find_all(memory)
        if await self._finds(memory, TAKEN_BACK):
            return Finding(name, "bad", "after `load`, it still finds facts added after `save`: `load` must drop them")
        if before != after:
            return Finding(name, "bad", "after `load`, it finds other memories than at `save`")
        return Finding(name, "good", "after `load`, it finds the same memories as at `save`, and no later ones")

    async def _cost(self) -> Finding | None:
        memory = await self._first()
        if memory.lender is None:
            return None
        before = memory.lender.tokens
        told = await self._tell(memory, PAID)
        took = memory.lender.tokens - before
        if told != took:
            return Finding("cost", "bad", f"it reports {told:,} tokens of the lent model and embedder for adding a turn, but used {took:,}")
        return Finding("cost", "good", f"it reports its use of the lent model and embedder; tokens for a turn: {took:,}")

    async def _errors(self) -> Finding:
        name = "errors in add"
        memory = await self._first()
        for what, fact in DIFFICULT.items():
            try:
                await self._tell(memory, fact)
            except AgentError as error:
                return Finding(name, "bad", f"`add` of {what} fails, which would end a conversation: {error}")
            if memory.keeps and not memory.whole and not await self._finds(memory, fact):
                return Finding(name, "bad", f"`add` of {what} stored nothing and raised no error: do not swallow errors")
        if memory.lender is not None:
            asked = memory.lender.asked
            with memory.lender.broken():
                try:
                    await self._tell(memory, UNSTORED)
                except AgentError:
                    return Finding(name, "good", "difficult turns are stored, and a model or an embedder that fails is an error")
            if memory.lender.asked > asked:
                return Finding(name, "bad", "`add` raised no error although its model or embedder failed")
        return Finding(name, "good", "difficult turns are stored")

    async def _forget(self) -> Finding:
        name = "forget"
        memory = await self._first()
        if not memory.forgets:
            return Finding(name, "note", "it has no `forget`: a request to forget is stored like any other message")
        fact, *others = FACTS
        if not await self._finds(memory, fact):
            return Finding(name, "note", "the fact to forget was not found before, so nothing can be concluded")
        known = [other for other in others if await self._finds(memory, other)]
        async with self._pay(memory):
            await memory.forget(fact.text, self._turns[id(memory)][-1].sent_at)
        if await self._finds(memory, fact):
            return Finding(name, "bad", f"the fact to forget is still found, itself or in a derived memory: {fact.text!r}")
        lost = [other for other in known if not await self._finds(memory, other)]
        if lost:
            return Finding(name, "note", f"asked to forget one fact, it forgot others too, such as {lost[0].text!r}")
        return Finding(name, "good", "it forgets the requested fact and nothing else")

    async def _two_runs(self) -> Finding:
        name = "two runs"
        memory = await self._first()
        await memory.reset()
        self._turns[id(memory)] = []
        for fact in FACTS:
            if await self._finds(memory, fact):
                return Finding(name, "bad", f"after `reset`, it still finds facts: {fact.text!r}")
        await self._tell(memory, *FACTS)
        await self._close(memory)
        other = await self._new()
        self._one = None
        for fact in FACTS:
            if await self._finds(other, fact):
                return Finding(name, "bad", f"a new conversation finds facts of an earlier one: {fact.text!r}")
        return Finding(name, "good", "a new conversation finds no facts of earlier ones")

    # Folders.

    async def _goes_on(self, memory: Memory, known: _Fact) -> bool:
        """Return whether a memory still works: it finds the `known` fact, and a fact added now."""
        try:
            if not memory.keeps:
                return True
            if not await self._finds(memory, known):
                return False
            await self._tell(memory, SINCE)
            return await self._finds(memory, SINCE)
        except AgentError:
            return False

    def _save(self, name: str) -> Path:
        folder = Path(self._folder.name) / name
        folder.mkdir()
        return folder


def _digests(folder: Path) -> dict[str, str]:
    """Return a digest of each file below a folder, by path."""
    files = [path for path in walk_folder(folder) if not path.is_dir()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _has(items: Sequence[MemoryItem], word: str) -> bool:
    return any(word in item.text.lower() for item in items)


def _words(text: str) -> set[str]:
    return set(WORD.findall(text.lower()))


def _within(date: datetime, turns: Sequence[Turn]) -> bool:
    return turns[0].sent_at - timedelta(days=1) <= date <= turns[-1].sent_at + timedelta(days=1)
