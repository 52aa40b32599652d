"""Ask the channel about every attempt whose turn has come, several at once.

The database is this thread's alone: it claims an attempt, hands the conversation to a thread of the
pool, and concludes whichever is over first. So many conversations are under way at most, and no
transaction is open while one lasts.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from lockstep.db.transaction import read
from lockstep.orders.close import SWEEP
from lockstep.payments.ask import claim, conclude
from lockstep.payments.conversation import Answer, Question, converse
from lockstep.upkeep import store
from lockstep.upkeep.store import DueAttempt, Mark

if TYPE_CHECKING:
    from lockstep.alipay.gateway import Gateway

# Enough to close some thousand orders a minute where the channel answers in 50 ms, and no more than
# it takes from one app without calling it a flood.
PARALLEL_MAX: Final = 8
# What the sweep keeps in reserve when it asks whether there is time for more must cover this.
CONVERSATION_SECONDS: Final = 8


@dataclass
class Asked:
    asked: int = 0
    orders_closed: int = 0


def ask_due(
    connect: Callable[[], "Gateway"],
    has_time: Callable[[], bool],
    fail: Callable[[str, Exception], None],
) -> Asked:
    """Page by page, the one that is due longest first; a fault is told to ``fail`` and stops
    nothing."""
    return _Round(connect, fail).run(has_time)


class _Round:
    def __init__(
        self, connect: Callable[[], "Gateway"], fail: Callable[[str, Exception], None]
    ) -> None:
        self._connect = connect
        self._fail = fail
        self._done = Asked()
        self._talks: dict[Future[Answer], Question] = {}

    def run(self, has_time: Callable[[], bool]) -> Asked:
        with ThreadPoolExecutor(PARALLEL_MAX, "ask") as pool:
            for due in _due(has_time):
                try:
                    self._begin(pool, due)
                except Exception as fault:
                    self._fail(due.out_trade_no, fault)
                if len(self._talks) >= PARALLEL_MAX:
                    self._conclude_some()
            while self._talks:
                self._conclude_some()
        return self._done

    def _begin(self, pool: ThreadPoolExecutor, due: DueAttempt) -> None:
        channel = self._connect()
        claimed = claim(due.attempt_id, due.order_id, SWEEP)
        if not isinstance(claimed, Question):
            self._done.orders_closed += claimed.has_closed
            return
        talk = partial(converse, channel, claimed, within_seconds=CONVERSATION_SECONDS)
        self._talks[pool.submit(talk)] = claimed

    def _conclude_some(self) -> None:
        over, _ = wait(self._talks, return_when=FIRST_COMPLETED)
        for talk in over:
            question = self._talks.pop(talk)
            try:
                concluded = conclude(question, talk.result(), SWEEP)
            except Exception as fault:
                self._fail(question.out_trade_no, fault)
            else:
                self._done.asked += 1
                self._done.orders_closed += concluded.has_closed


def _due(has_time: Callable[[], bool]) -> Iterator[DueAttempt]:
    mark = Mark()
    while has_time():
        rows = read(partial(store.read_due_attempts, after=mark))
        for row in rows:
            if not has_time():
                return
            yield row
        if len(rows) < store.PAGE_SIZE:
            return
        mark = rows[-1].mark
