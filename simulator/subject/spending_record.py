"""The record of a run's spending: `spending.jsonl` in its folder, with lines before and after each paid call.

The line before a call names the caller, the model, and the event that the call serves. The lines after it give usage and cost. They are
synced to disk before the agent or the judge gets the answer, so killing the process loses none of them. A call without a line after it may
have been paid for, although its answer was lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from math import fsum
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Annotated, Any, Final, Literal, NamedTuple, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longspan.simulator.base.errors import JournalError, first_problem
from longspan.simulator.base.files.json_lines import JsonLines
from longspan.simulator.base.files.owners import Owner
from longspan.simulator.contract.messages import Usage
from longspan.simulator.subject.spending_limit import NOTHING, Amount, sum_amounts

__all__ = ["SPENDING", "Expense", "Payer", "Purpose", "SpendingFollower", "SpendingRecord", "SpendingTotals", "Work", "read_totals"]

SPENDING: Final = "spending.jsonl"
"""The file name of the record."""

EVERY: Final = 5.0
"""Seconds between readings of a growing record. Reading 20,000 calls takes almost a second."""

Work = Literal["reply", "observe", "replay", "night", "settle", "check", "judge", "background"]
"""The reason for a call: a reply; a turn that the agent reads (`observe`) or reads again (`replay`); a night; waiting for a memory to
finish adding (`settle`); a check before the run; a verdict (`judge`); or the agent's own work between turns (`background`)."""

Payer = Literal["agent", "judge"]
"""The party that a call is made for."""

Tokens = Annotated[int, Field(ge=0, le=10**13)]
Dollars = Annotated[float, Field(ge=0, le=10**9, allow_inf_nan=False)]


@final
class Purpose(NamedTuple):
    """The event that a call serves.

    `task` numbers the attempts at the event. Only the last attempt was of use; earlier ones were paid for in vain. `again`: the event is in
    the journal already, and the agent reads it again. `query` is a judge's.
    """

    work: Work
    conversation: str | None = None
    turn: int | None = None
    query: str | None = None
    task: int = 0
    again: bool = False


@final
class Expense(NamedTuple):
    """The usage of a call, and its cost in dollars or None if unknown. `part` is the agent's name for the model, if it has one."""

    usage: Usage
    cost_usd: float | None
    part: str | None = None

    @property
    def amount(self) -> Amount:
        """The tokens, and the dollars as far as they are known."""
        return Amount(self.cost_usd or 0.0, self.usage.input_tokens + self.usage.output_tokens)


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    call: Annotated[int, Field(ge=1)]


class _Before(_Line):
    """The line before a call. `model` is the model that longspan calls, or None if the agent makes its own calls and reports their usage.

    `at_most_usd` and `at_most_tokens` are the worst case if `bounded`, and otherwise the most expensive call of this kind so far.
    """

    by: Payer
    model: str | None = None
    work: Work
    conversation: str | None = None
    turn: int | None = None
    query: str | None = None
    task: Annotated[int, Field(ge=0)]
    again: bool = False
    at_most_usd: Dollars = 0.0
    at_most_tokens: Tokens = 0
    bounded: bool = True


class _After(_Line):
    """A line after a call: the usage of a `part`. A line without usage means that the call is known to have used nothing."""

    part: str | None = None
    input_tokens: Tokens = 0
    cached_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cost_usd: Dollars | None = 0.0


@final
class SpendingTotals(BaseModel):
    """The total cost of a run so far, over all its sessions.

    `cost_usd` is None if the price of a call is unknown; `known_usd` is the sum of the known prices. `again_usd` is the part of it that was
    paid more than once: for attempts whose answer was lost or useless, and for turns that the agent had to read again. `unanswered` counts
    the calls that ended without a known cost, and `possibly_usd` is the most that they may have added, or None if unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: int = 0
    cost_usd: float | None = 0.0
    known_usd: float = 0.0
    again_usd: float = 0.0
    unanswered: int = 0
    possibly_usd: float | None = 0.0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0

    @property
    def is_nothing(self) -> bool:
        """Whether no expense is known, and none is possible."""
        return not (self.known_usd or self.possibly_usd or self.input_tokens or self.output_tokens or self.cost_usd is None)


@final
@dataclass(slots=True)
class _Call:
    before: _Before
    after: list[_After]

    @property
    def known_usd(self) -> float:
        return fsum(line.cost_usd or 0.0 for line in self.after)

    @property
    def amount(self) -> Amount:
        """The cost of the call, or its worst case if that is unknown."""
        if not self.after:
            return Amount(self.before.at_most_usd, self.before.at_most_tokens)
        return Amount(self.known_usd, sum(line.input_tokens + line.output_tokens for line in self.after))


@final
class SpendingRecord:
    """The spending record of the run in a folder. The file is created with the first paid call. Thread-safe.

    Every method raises JournalError if the file is damaged, belongs to another run, or cannot be written.
    """

    def __init__(self, folder: Path, owner: Owner) -> None:
        self.path = folder / SPENDING
        self._lines = JsonLines(self.path, owner)
        self._lock = Lock()
        self._is_read = False
        self._last = self._tasks = 0

    @contextmanager
    def keep_open(self) -> Iterator[SpendingRecord]:
        """Keep the file open between calls. The caller must hold the run's lock."""
        with self._lines.keep_open():
            yield self

    def new_task(self) -> int:
        """Return the next number for an attempt at an event."""
        with self._lock:
            self._read()
            self._tasks += 1
            return self._tasks

    def begin(self, by: Payer, model: str | None, purpose: Purpose, at_most: Amount, *, bounded: bool = True) -> int:
        """Record that a model is about to be called. Return the call's number. Unless `bounded`, `at_most` is an estimate.

        The line is written but not synced: it survives if the process is killed, but not if the machine crashes.
        """
        with self._lock:
            self._read()
            self._last += 1
            line = _Before(
                call=self._last,
                by=by,
                model=model,
                **purpose._asdict(),
                at_most_usd=round(at_most.dollars, 9),
                at_most_tokens=int(at_most.tokens),
                bounded=bounded,
            )
            self._lines.append(line.model_dump(exclude_defaults=True), sync=False)
            return self._last

    def end(self, call: int, expenses: Iterable[Expense]) -> None:
        """Record the expenses of a call, and sync the file. No expenses means that the call cost nothing."""
        lines = [
            _After(call=call, part=expense.part, **asdict(expense.usage), cost_usd=_cents(expense.cost_usd)) for expense in expenses
        ] or [_After(call=call)]
        with self._lock:
            self._lines.append(*(line.model_dump(exclude_defaults=True) for line in lines))

    def calls(self) -> list[_Call]:
        """Return all calls in the file, in order."""
        calls: dict[int, _Call] = {}
        for number, fields in enumerate(self._lines.read(), 1):
            try:
                if "work" in fields:
                    before = _Before.model_validate(fields)
                    if calls.setdefault(before.call, _Call(before, [])).before is not before:
                        raise ValueError(f"call {before.call} begins twice")
                else:
                    after = _After.model_validate(fields)
                    calls[after.call].after.append(after)
            except (ValidationError, ValueError, KeyError) as error:
                why = first_problem(error) if isinstance(error, ValidationError) else f"{error}"
                raise JournalError(f"{self.path}, line {number}: not a line of spending: {why}; restore the file from a copy") from None
        return list(calls.values())

    def sum_spent(self) -> tuple[Amount, Amount]:
        """Return the amount spent at most, and the highest amount that one attempt at an event of a conversation took."""
        calls = self.calls()
        tasks: dict[int, Amount] = {}
        for call in calls:
            if call.before.work not in ("check", "background"):
                tasks[call.before.task] = tasks.get(call.before.task, NOTHING).plus(call.amount)
        dearest = NOTHING
        for amount in tasks.values():
            dearest = dearest.most(amount)
        return sum_amounts(call.amount for call in calls), dearest

    def totals(self) -> SpendingTotals:
        """Return the sums over all calls."""
        calls = self.calls()
        newest: dict[Any, int] = {}
        for call in calls:
            newest[_event(call.before)] = max(call.before.task, newest.get(_event(call.before), 0))
        answered = [line for call in calls for line in call.after]
        costs = [line.cost_usd for line in answered]
        vain = [call for call in calls if call.before.again or call.before.task < newest[_event(call.before)]]
        lost = [call for call in calls if not call.after]
        known = fsum(cost for cost in costs if cost is not None)
        return SpendingTotals(
            calls=len(calls),
            cost_usd=None if None in costs else round(known, 9),
            known_usd=round(known, 9),
            again_usd=round(fsum(call.known_usd for call in vain), 9),
            unanswered=len(lost),
            possibly_usd=round(fsum(call.before.at_most_usd for call in lost), 9) if all(call.before.bounded for call in lost) else None,
            input_tokens=sum(line.input_tokens for line in answered),
            cached_tokens=sum(line.cached_tokens for line in answered),
            output_tokens=sum(line.output_tokens for line in answered),
        )

    def is_negligible(self) -> bool:
        """Return whether no money was or could have been spent, except on a reply that failed immediately."""
        failed_check = any(call.before.work == "check" and not call.after for call in self.calls())
        return self.totals().is_nothing and not failed_check

    def _read(self) -> None:
        """Continue the numbering of an existing file."""
        if not self._is_read:
            calls = self.calls()
            self._is_read = True
            self._last = max((call.before.call for call in calls), default=0)
            self._tasks = max((call.before.task for call in calls), default=0)


def _event(before: _Before) -> tuple[Any, ...]:
    return before.by, before.work, before.conversation, before.turn, before.query, before.task if before.work == "background" else None


def _cents(cost: float | None) -> float | None:
    """Round away floating-point noise, which is far below a hundredth of a cent."""
    return None if cost is None else round(cost, 12)


def read_totals(folder: Path, owner: Owner) -> SpendingTotals | None:
    """Return the total cost of the run in a folder so far, or None if nothing was paid for. Raises JournalError if the file is damaged."""
    totals = SpendingRecord(folder, owner).totals()
    return None if totals.is_nothing else totals


@final
class SpendingFollower:
    """Reads the totals of a run in progress, at most once every `EVERY` seconds."""

    def __init__(self, folder: Path, owner: Owner) -> None:
        self._folder, self._owner = folder, owner
        self._totals: SpendingTotals | None = None
        self._read_at = -EVERY

    def totals(self) -> SpendingTotals | None:
        """Return the totals as of the last reading, or None if nothing was paid for or the file is damaged."""
        if monotonic() - self._read_at >= EVERY:
            with suppress(JournalError):
                self._totals = read_totals(self._folder, self._owner)
            self._read_at = monotonic()
        return self._totals
