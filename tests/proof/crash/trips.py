"""Every way out of the process, counted, and broken where a case says so.

A trip is one connection to the database, one statement, one send to SQS, or one call of the
gateway: what may be done although nobody hears of it. They are struck where the driver and the
clients stand, so that the product's own translation of errors is part of what is tried.

    with Trips([Strike(4, Mode.DIES_AFTER)], world.wire).watched() as trips:
        ...                           the fifth trip is done, and the process is gone
    trips.taken                       what went out, in order
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, NoReturn

import pymysql
import pytest
from pymysql.constants import COMMAND, SERVER_STATUS

from infra import deployment
from lockstep.alipay import gateway
from lockstep.alipay.transport import NoAnswer
from lockstep.db import connection
from tests.support.dying import Died
from tests.support.packets import take_apart
from tests.support.wire import Wire


class Way(StrEnum):
    """Where a trip goes."""

    CONNECT = "connect"
    READ = "read"  # or BEGIN, outside of any transaction
    STATEMENT = "statement"
    COMMIT = "commit"
    SEND = "send"
    CALL = "call"


class Mode(StrEnum):
    """What becomes of a trip and of the process that makes it."""

    DIES_BEFORE = "dies_before"
    DIES_AFTER = "dies_after"
    # The process lives on.
    NOT_DONE = "not_done"
    ANSWER_LOST = "answer_lost"
    DEADLOCK = "deadlock"
    LOCK_WAIT = "lock_wait"


DATABASE: Final = frozenset({Way.READ, Way.STATEMENT, Way.COMMIT})
DEATHS: Final = frozenset({Mode.DIES_BEFORE, Mode.DIES_AFTER})
# The engine's own words, in place of the statement. A victim of a deadlock has lost its whole
# transaction; who waited too long for a lock has lost the statement only.
_REFUSALS: Final = {
    Mode.DEADLOCK: ("40001", 1213, "Deadlock found when trying to get lock"),
    Mode.LOCK_WAIT: ("HY000", 1205, "Lock wait timeout exceeded"),
}
_SQS: Final = ("send_message", "send_message_batch")


class Trip(NamedTuple):
    way: Way
    what: str

    @property
    def modes(self) -> tuple[Mode, ...]:
        """All that can become of it. What reads outside of a transaction waits for no lock."""
        may_wait = self.way in {Way.STATEMENT, Way.COMMIT}
        return tuple(mode for mode in Mode if may_wait or mode not in _REFUSALS)

    @property
    def distinct_modes(self) -> tuple[Mode, ...]:
        """Those of them that can make a difference.

        A death before a trip is one after the trip before. With a session goes what it had not
        committed, so that it is all one whether the statement was done.
        """
        uncommitted = self.way in {Way.CONNECT, Way.READ, Way.STATEMENT}
        same = {Mode.DIES_BEFORE} | ({Mode.ANSWER_LOST} if uncommitted else set())
        return tuple(mode for mode in self.modes if mode not in same)


class Strike(NamedTuple):
    """``trip`` counts from the strike before, or from the beginning; the first is 0."""

    trip: int
    mode: Mode

    def __str__(self) -> str:
        return f"{self.trip}.{self.mode}"

    @classmethod
    def read(cls, text: str) -> "Strike":
        trip, mode = text.split(".")
        return cls(int(trip), Mode(mode))


@dataclass
class Trips:
    """``struck`` are the trips that a strike fell on."""

    strikes: Sequence[Strike] = ()
    wire: Wire | None = None
    taken: list[Trip] = field(default_factory=list)
    struck: list[Trip] = field(default_factory=list)
    _since: int = 0
    _is_dead: bool = False
    _sessions: list["pymysql.Connection[Any]"] = field(default_factory=list)

    @contextmanager
    def watched(self) -> Iterator["Trips"]:
        """From a cold start until the end of the block."""
        connection.discard()
        with pytest.MonkeyPatch.context() as patch:
            take_apart(patch)
            patch.setattr(connection, "open_session", self._opening(connection.open_session))
            patch.setattr(deployment, "open_session", connection.open_session)
            patch.setattr(gateway, "exchange", self._exchanging(vars(gateway)["exchange"]))
            for name in _SQS if self.wire else ():
                patch.setattr(self.wire, name, self._sending(name))
            yield self
            connection.discard()

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def refused() -> Exception:
            return pymysql.OperationalError(2003, "Can't connect to MySQL server")

        def opened(*arguments: Any) -> Any:
            session = self._take(Trip(Way.CONNECT, ""), lambda: real(*arguments), refused)
            self._sessions.append(session)
            query, commit = session.query, session.commit
            session.query = lambda sql, *more: self._run(session, query, sql, *more)
            session.commit = lambda: self._run(session, lambda _: commit(), "COMMIT")
            return session

        return opened

    def _run(self, session: Any, real: Callable[..., Any], sql: Any, *more: Any) -> Any:
        def lost() -> Exception:
            session._force_close()
            return pymysql.OperationalError(2013, "Lost connection to MySQL server during query")

        def refused(mode: Mode) -> None:
            state, errno, text = _REFUSALS[mode]
            if mode is Mode.DEADLOCK:
                session._execute_command(COMMAND.COM_QUERY, "ROLLBACK")
                session._read_query_result()
            signal = f"SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {errno}, MESSAGE_TEXT = '{text}'"
            pymysql.connections.Connection.query(session, signal)

        words = sql if isinstance(sql, str) else bytes(sql).decode(errors="replace")
        trip = Trip(_way_of(session, words.strip()), " ".join(words.split())[:80])
        return self._take(trip, lambda: real(sql, *more), lost, refused)

    def _sending(self, name: str) -> Callable[..., Any]:
        real = getattr(self.wire, name)

        def lost() -> Exception:
            return ConnectionError("the queue does not answer")

        return lambda **sent: self._take(Trip(Way.SEND, name), lambda: real(**sent), lost)

    def _exchanging(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def lost() -> Exception:
            return NoAnswer("the connection was dropped")

        def exchanged(*arguments: Any, **named: Any) -> Any:
            return self._take(Trip(Way.CALL, ""), lambda: real(*arguments, **named), lost)

        return exchanged

    def _take[R](
        self,
        trip: Trip,
        go: Callable[[], R],
        lost: Callable[[], Exception],
        refuse: Callable[[Mode], None] | None = None,
    ) -> R:
        if self._is_dead:
            raise Died(self._bury)  # whatever a dead process would still do
        self.taken.append(trip)
        mode = self._becomes_of(trip)
        if mode is None:
            return go()
        if mode in _REFUSALS:
            assert refuse is not None, f"{trip} cannot come to {mode}"
            refuse(mode)
        if mode in {Mode.DIES_AFTER, Mode.ANSWER_LOST}:
            go()
        if mode in DEATHS:
            self._die()
        raise lost()

    def _becomes_of(self, trip: Trip) -> Mode | None:
        nth = len(self.taken) - 1 - self._since
        if len(self.struck) == len(self.strikes) or self.strikes[len(self.struck)].trip != nth:
            return None
        mode = self.strikes[len(self.struck)].mode
        self.struck.append(trip)
        self._since = len(self.taken)
        return mode

    def _die(self) -> NoReturn:
        """The sockets just end, as when the process does; the engine rolls back for it."""
        self._is_dead = True
        for session in self._sessions:
            with suppress(OSError):
                session._force_close()  # type: ignore[attr-defined]
        raise Died(self._bury)

    def _bury(self) -> None:
        connection.discard()
        self._sessions.clear()
        self._is_dead = False


def _way_of(session: Any, sql: str) -> Way:
    if sql == "COMMIT":
        return Way.COMMIT
    in_transaction = session.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS
    is_harmless = sql.startswith(("BEGIN", "SELECT"))
    return Way.READ if is_harmless and not in_transaction else Way.STATEMENT
