"""Ask the channel about every attempt and every notice whose turn has come, several at once.

The database is this thread's alone: it claims a row, hands the question to a thread of the pool,
and concludes whichever is answered first. So many questions are under way at most, and no
transaction is open while one is.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from lockstep.db.transaction import Reader
from lockstep.orders.close import SWEEP
from lockstep.payments import ask, revisit
from lockstep.payments.conversation import Answer, Question, converse
from lockstep.upkeep import store
from lockstep.upkeep.pages import Due, each_due
from lockstep.upkeep.store import DueAttempt, DueNotice, Mark

if TYPE_CHECKING:
    from lockstep.alipay.gateway import Gateway

# Enough to close some thousand orders a minute where the channel answers in 50 ms, and no more than
# it takes from one app without calling it a flood.
PARALLEL_MAX: Final = 8
# What the sweep keeps in reserve when it asks whether there is time for more must cover this.
CONVERSATION_SECONDS: Final = 8


class Line[R: Due, Q, A](Protocol):
    """One kind of row that the channel is asked about."""

    def page(self, reader: Reader, after: Mark) -> list[R]:
        """Those that are due, longest first."""
        ...

    def claim(self, row: R) -> Q | None:
        """What is to be asked; None if nothing is."""
        ...

    def talk(self, question: Q) -> A:
        """Ask. No database: several run at once."""
        ...

    def conclude(self, question: Q, answer: A) -> None:
        """Do what follows."""
        ...


@dataclass
class Asked:
    asked: int = 0
    orders_closed: int = 0
    notices_decided: int = 0


def ask_due(
    connect: Callable[[], "Gateway"],
    has_time: Callable[[], bool],
    fail: Callable[[str, Exception], None],
) -> Asked:
    """Page by page, the one that is due longest first; a fault is told to ``fail`` and stops
    nothing."""
    asked = Asked()
    asked.asked += _Round(_Attempts(connect, asked), fail).run(has_time)
    asked.asked += _Round(_Notices(connect, asked), fail).run(has_time)
    return asked


@dataclass
class _Attempts:
    connect: Callable[[], "Gateway"]
    asked: Asked

    def page(self, reader: Reader, after: Mark) -> list[DueAttempt]:
        return store.read_due_attempts(reader, after)

    def claim(self, row: DueAttempt) -> Question | None:
        self.connect()  # before anything is written: settings that do not work burn no lease
        claimed = ask.claim(row.attempt_id, row.order_id, SWEEP)
        if isinstance(claimed, Question):
            return claimed
        self.asked.orders_closed += claimed.has_closed
        return None

    def talk(self, question: Question) -> Answer:
        return converse(self.connect(), question, within_seconds=CONVERSATION_SECONDS)

    def conclude(self, question: Question, answer: Answer) -> None:
        self.asked.orders_closed += ask.conclude(question, answer, SWEEP).has_closed


@dataclass
class _Notices:
    connect: Callable[[], "Gateway"]
    asked: Asked

    def page(self, reader: Reader, after: Mark) -> list[DueNotice]:
        return store.read_due_notices(reader, after)

    def claim(self, row: DueNotice) -> revisit.Question | None:
        return revisit.claim_notice(row.notice_id)

    def talk(self, question: revisit.Question) -> revisit.Answer:
        return revisit.ask(self.connect, question)

    def conclude(self, question: revisit.Question, answer: revisit.Answer) -> None:
        decided = revisit.conclude(question, answer)
        self.asked.notices_decided += decided in revisit.FINAL_RESULTS


class _Round[R: Due, Q, A]:
    def __init__(self, line: Line[R, Q, A], fail: Callable[[str, Exception], None]) -> None:
        self._line = line
        self._fail = fail
        self._asked = 0
        self._talks: dict[Future[A], tuple[str, Q]] = {}

    def run(self, has_time: Callable[[], bool]) -> int:
        """How many answers were concluded."""
        with ThreadPoolExecutor(PARALLEL_MAX, "ask") as pool:
            for due in each_due(self._line.page, has_time):
                self._begin(pool, due)
                if len(self._talks) >= PARALLEL_MAX:
                    self._conclude_some()
            while self._talks:
                self._conclude_some()
        return self._asked

    def _begin(self, pool: ThreadPoolExecutor, due: R) -> None:
        try:
            question = self._line.claim(due)
        except Exception as fault:
            self._fail(due.name, fault)
            return
        if question is not None:
            self._talks[pool.submit(partial(self._line.talk, question))] = due.name, question

    def _conclude_some(self) -> None:
        over, _ = wait(self._talks, return_when=FIRST_COMPLETED)
        for talk in over:
            name, question = self._talks.pop(talk)
            try:
                self._line.conclude(question, talk.result())
            except Exception as fault:
                self._fail(name, fault)
            else:
                self._asked += 1
