"""The doorbells of reserve.fifo and what they wake: workers that decide all orders of a turn.

As in lockstep.orders: one batch at a time per hot SKU, the first BATCH_MAX that wait, in order of
arrival; whoever holds a turn goes on until none waits or time is short; whoever does not get it
within a second gives up, and what still waits of its messages comes again soon. Every minute the
sweep closes orders that waited for too long and rings for those whose doorbell was lost.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from infra.load.clock import Clock
from infra.load.plan import Deciding
from infra.load.stations import Database

SWEEP_SECONDS: Final = 60


@dataclass(slots=True, eq=False)
class Order:
    """``arrived`` when its request came in, ``placed`` when its transaction was committed."""

    sku: int
    arrived: float
    placed: float
    waits: bool = True
    receives: int = 0


@dataclass(slots=True, eq=False)
class Worker:
    """An invocation: its messages, the turns that it has still to look at, and when it begins no
    more transactions. ``patience`` counts how often it waited, so that an old alarm is known."""

    messages: Sequence[Order]
    ends: float
    turns: list[int] = field(default_factory=list)
    patience: int = 0


@dataclass(slots=True)
class Turn:
    left: int
    waiting: deque[Order] = field(default_factory=deque)
    queue: deque[Worker] = field(default_factory=deque)
    taken: bool = False


class Deciders:
    """``decided`` is told of each order, and whether it got its unit; ``expired`` of each that the
    sweep closed."""

    def __init__(
        self,
        clock: Clock,
        database: Database,
        plan: Deciding,
        units: Sequence[int],
        decided: Callable[[Order, bool], None],
        expired: Callable[[Order], None],
    ) -> None:
        self._clock = clock
        self._database = database
        self._plan = plan
        self._decided = decided
        self._expired = expired
        self._turns = [Turn(left) for left in units]
        self._doorbells: deque[Order] = deque()
        self._free = plan.workers
        self._sweep_planned = False
        self.invocations = 0
        self.busy_max = 0
        self.worker_seconds = 0.0
        self.batches = 0
        self.dead_letters = 0
        self.sold_out_at: dict[int, float] = {}

    def line_up(self, order: Order) -> None:
        """It is committed: whoever decides next at its turn sees it."""
        self._turns[order.sku].waiting.append(order)
        if not self._sweep_planned:
            self._sweep_planned = True
            whole = self._clock.now // SWEEP_SECONDS + 1
            self._clock.at(whole * SWEEP_SECONDS, self._sweep)

    def ring(self, order: Order) -> None:
        """Its message can be received."""
        self._doorbells.append(order)
        self._dispatch()

    @property
    def waiting(self) -> int:
        return sum(len(turn.waiting) for turn in self._turns)

    # --- a worker's way --------------------------------------------------------------------------

    def _dispatch(self) -> None:
        while self._free and self._doorbells:
            self._free -= 1
            self.busy_max = max(self.busy_max, self._plan.workers - self._free)
            self.invocations += 1
            how_many = min(self._plan.event_size, len(self._doorbells))
            messages = [self._doorbells.popleft() for _ in range(how_many)]
            for message in messages:
                message.receives += 1
            now = self._clock.now
            self.worker_seconds -= now
            worker = Worker(messages, now + self._plan.begins_within_seconds)
            looked = self._database.finish(now, self._plan.look_work) + self._plan.look_seconds
            self._clock.at(looked, self._look, worker)

    def _look(self, worker: Worker) -> None:
        by = worker.messages if self._plan.any_doorbell else [m for m in worker.messages if m.waits]
        worker.turns = sorted({message.sku for message in by}, reverse=True)
        self._go_on(worker)

    def _go_on(self, worker: Worker) -> None:
        """To its next turn, or to its end."""
        while worker.turns:
            sku = worker.turns.pop()
            turn = self._turns[sku]
            if turn.taken:
                turn.queue.append(worker)
                until = self._clock.now + self._plan.patience_seconds
                self._clock.at(until, self._give_up, worker, turn, worker.patience)
                return
            if self._begin(worker, sku):
                return
        self._finish(worker)

    def _give_up(self, worker: Worker, turn: Turn, patience: int) -> None:
        if worker.patience == patience:
            worker.patience += 1
            turn.queue.remove(worker)
            self._go_on(worker)

    def _begin(self, worker: Worker, sku: int) -> bool:
        """A batch, if any order waits and there is time for it."""
        turn, plan, now = self._turns[sku], self._plan, self._clock.now
        if not turn.waiting or now > worker.ends:
            return False
        turn.taken = True
        how_many = min(plan.batch_max, len(turn.waiting))
        orders = [turn.waiting.popleft() for _ in range(how_many)]
        alone = plan.batch_seconds(how_many)
        done = max(now + alone, self._database.finish(now, alone * plan.share_of_database))
        self._clock.at(done, self._commit, worker, sku, orders)
        return True

    def _commit(self, worker: Worker, sku: int, orders: Sequence[Order]) -> None:
        turn = self._turns[sku]
        self.batches += 1
        for order in orders:
            held = turn.left > 0
            turn.left -= held
            order.waits = False
            self._decided(order, held)
        if turn.left == 0:
            self.sold_out_at.setdefault(sku, self._clock.now)
        turn.taken = False
        if not self._begin(worker, sku):
            self._hand_over(sku)
            self._go_on(worker)

    def _hand_over(self, sku: int) -> None:
        turn = self._turns[sku]
        while turn.queue and not turn.taken:
            worker = turn.queue.popleft()
            worker.patience += 1
            if not self._begin(worker, sku):
                self._go_on(worker)

    def _finish(self, worker: Worker) -> None:
        now = self._clock.now
        for message in worker.messages:
            if not message.waits:
                continue
            if message.receives >= self._plan.receives_max:
                self.dead_letters += 1
            else:
                self._clock.at(now + self._plan.again_seconds, self.ring, message)
        self.worker_seconds += now
        self._free += 1
        self._dispatch()

    def _sweep(self) -> None:
        now = self._clock.now
        for turn in self._turns:
            while turn.waiting and now - turn.waiting[0].placed > self._plan.limit_seconds:
                order = turn.waiting.popleft()
                order.waits = False
                self._expired(order)
            if turn.waiting and now - turn.waiting[0].placed > SWEEP_SECONDS:
                self.ring(turn.waiting[0])
        self._sweep_planned = self.waiting > 0
        if self._sweep_planned:
            self._clock.at(now + SWEEP_SECONDS, self._sweep)
