"""Faults that section "crash" must see, each planted as long as its block runs."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

import pytest

from infra import migrate
from lockstep.db import transaction
from lockstep.db.connection import Connection
from lockstep.db.errors import ConnectionLost, Contended
from lockstep.db.transaction import Tx, in_transaction
from lockstep.errors import TryAgain
from lockstep.messaging import outbox, relay
from lockstep.orders import request_store
from tests.proof.crash.trips import Mode, Way


@contextmanager
def _in_place_of(owner: Any, name: str, planted: Callable[..., Any]) -> Iterator[None]:
    """``planted`` is called with what it replaces, and then with what that is called with."""
    with pytest.MonkeyPatch.context() as patch:
        real = getattr(owner, name)
        patch.setattr(owner, name, lambda *words, **named: planted(real, *words, **named))
        yield


def send_before_commit() -> AbstractContextManager[None]:
    """A message goes out though its row may never be written."""
    return _in_place_of(Tx, "after_commit", lambda _, __, action: action())


def mark_before_sending() -> AbstractContextManager[None]:
    """A row is marked as sent, and whoever dies then has not sent it."""

    def planted(real: Callable[..., None], message_id: str, *more: str) -> None:
        in_transaction(partial(outbox._mark_sent, message_id=message_id))
        real(message_id, *more)

    return _in_place_of(outbox, "_send", planted)


def relay_marks_before_sending() -> AbstractContextManager[None]:
    """The same, for what the relay takes."""

    def planted(real: Callable[..., Any], claimed: Any, *more: Any) -> Any:
        in_transaction(partial(relay._mark, message_ids=[one.message_id for one in claimed]))
        return real(claimed, *more)

    return _in_place_of(relay, "_send", planted)


def a_lost_commit_is_a_failure() -> AbstractContextManager[None]:
    """2013 after COMMIT is answered as if nothing had been done."""

    def planted(real: Callable[..., int], session: Connection, sql: str, *more: Any) -> int:
        try:
            return real(session, sql, *more)
        except ConnectionLost as fault:
            if sql == "COMMIT":
                raise TryAgain("the commit failed") from fault
            raise

    return _in_place_of(Connection, "execute", planted)


@contextmanager
def a_lost_commit_is_done_again() -> Iterator[None]:
    """The second try does not find what the first one did."""
    keys = [""]

    def claimed(real: Callable[..., bool], tx: Tx, member_id: int, key: str, *more: Any) -> bool:
        [row] = tx.all("SELECT COUNT(*) AS requests FROM oms_order_request")
        keys.append(f"{key}-{row['requests']}")
        return real(tx, member_id, keys[-1], *more)

    def completed(real: Callable[..., bool], tx: Tx, member_id: int, _: str, *more: Any) -> bool:
        return real(tx, member_id, keys[-1], *more)

    with (
        _in_place_of(request_store, "claim_request", claimed),
        _in_place_of(request_store, "complete_request", completed),
    ):
        yield


def go_on_after_a_lock_wait() -> AbstractContextManager[None]:
    """After 1205 nothing is rolled back, and the next BEGIN commits the half."""

    def planted(real: Callable[..., None], session: Connection) -> None:
        if not isinstance(sys.exception(), Contended):
            real(session)

    return _in_place_of(transaction, "_roll_back", planted)


def begin_a_broken_migration_again() -> AbstractContextManager[None]:
    """A file that was begun and not finished is taken for one that was applied."""
    return _in_place_of(migrate, "_refuse_drift", lambda *_: None)


class Sight(NamedTuple):
    """The part of the section that sees a fault, and what it strikes for that."""

    part: str
    way: Way
    mode: Mode


SEEN_BY: Final[Mapping[Callable[[], AbstractContextManager[None]], Sight]] = {
    send_before_commit: Sight("cancel_without_a_page", Way.SEND, Mode.DIES_AFTER),
    mark_before_sending: Sight("cancel_without_a_page", Way.SEND, Mode.NOT_DONE),
    relay_marks_before_sending: Sight("relay", Way.SEND, Mode.NOT_DONE),
    a_lost_commit_is_a_failure: Sight("start_a_page", Way.COMMIT, Mode.ANSWER_LOST),
    a_lost_commit_is_done_again: Sight("place", Way.COMMIT, Mode.ANSWER_LOST),
    go_on_after_a_lock_wait: Sight("place", Way.STATEMENT, Mode.LOCK_WAIT),
    begin_a_broken_migration_again: Sight("migrations", Way.STATEMENT, Mode.DIES_AFTER),
}
