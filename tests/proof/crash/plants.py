"""Faults that a crash, a lost answer or a refusal shows.

A part has hundreds of strikes, and their numbers change with the product: so each of these also
says what the part strikes then, and which of those shows it, the part finds out.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final

import pytest

from functions import create_order
from infra import migrate
from lockstep.db.connection import Connection
from lockstep.db.errors import ConnectionLost, Contended
from lockstep.db.transaction import Tx
from lockstep.errors import TryAgain
from lockstep.messaging import outbox, relay
from lockstep.orders import request_store
from tests.proof.crash.trips import Mode, Trip, Way
from tests.proof.plants import Kind, Plant, Planted, instead, returning
from tests.proof.section import Form


@contextmanager
def _struck(fault: Planted, way: Way, mode: Mode) -> Iterator[None]:
    """``fault``; and of all strikes only these."""

    def modes(trip: Trip) -> tuple[Mode, ...]:
        return (mode,) if trip.way is way else ()

    with fault(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trip, "modes", property(modes))
        patch.setattr(Trip, "distinct_modes", property(modes))
        yield


def _sent_before_commit() -> Any:
    return instead(Tx, "after_commit", lambda _: lambda __, action: action())


def _marked_before_sent() -> Any:
    def make(send: Any) -> Any:
        def marked(message_id: str, *more: str) -> None:
            outbox.mark_sent([message_id])
            send(message_id, *more)

        return marked

    return instead(outbox, "_send", make)


def _relay_marks_before_sending() -> Any:
    def make(send: Any) -> Any:
        def marked(claimed: Any, *more: Any) -> Any:
            outbox.mark_sent([one.message_id for one in claimed])
            return send(claimed, *more)

        return marked

    return instead(relay, "_send", make)


def _a_lost_commit_is_a_failure() -> Any:
    def make(execute: Any) -> Any:
        def fails(session: Connection, sql: str, *more: Any) -> int:
            try:
                return int(execute(session, sql, *more))
            except ConnectionLost as fault:
                if sql == "COMMIT":
                    raise TryAgain("the commit failed") from fault
                raise

        return fails

    return instead(Connection, "execute", make)


@contextmanager
def _a_lost_commit_is_done_again() -> Iterator[None]:
    """The second try of a call does not find what the first one did."""
    keys = [""]

    def calling(place: Any) -> Any:
        def called(command: Any) -> Any:
            del keys[1:]
            return place(command)

        return called

    def claiming(claim: Any) -> Any:
        def claimed(packet: Any, member_id: int, key: str, *more: Any) -> Any:
            keys.append(f"{key}-{len(keys)}")
            return claim(packet, member_id, keys[-1], *more)

        return claimed

    def completing(complete: Any) -> Any:
        return lambda packet, member_id, _, *more: complete(packet, member_id, keys[-1], *more)

    with ExitStack() as planted:
        planted.enter_context(instead(create_order, "place", calling))
        planted.enter_context(instead(request_store, "claim_request", claiming))
        planted.enter_context(instead(request_store, "complete_request", completing))
        yield


def _gone_on_after_a_lock_wait() -> Any:
    """Nothing is rolled back, and the next BEGIN commits the half."""

    def make(roll_back: Any) -> Any:
        def unless_contended(tx: Tx) -> None:
            if not isinstance(sys.exception(), Contended):
                roll_back(tx)

        return unless_contended

    return instead(Tx, "roll_back", make)


def _a_broken_migration_is_begun_again() -> Any:
    return instead(migrate, "_refuse_drift", returning(None))


def _plant(
    name: str, fault: Planted, part: str, way: Way, mode: Mode, kind: Kind | None = None
) -> Plant:
    return Plant(name, partial(_struck, fault, way, mode), part, kind=kind, form=Form.BOUNDED)


PLANTS: Final = (
    _plant(
        "a message goes out though its row may never be written",
        _sent_before_commit,
        "cancel_without_a_page",
        Way.SEND,
        Mode.DIES_AFTER,
        Kind.SENT_BEFORE_COMMIT,
    ),
    _plant(
        "a message is marked, then sent",
        _marked_before_sent,
        "cancel_without_a_page",
        Way.SEND,
        Mode.NOT_DONE,
        Kind.MARKED_BEFORE_SEND,
    ),
    _plant(
        "the relay marks what it takes, then sends",
        _relay_marks_before_sending,
        "relay",
        Way.SEND,
        Mode.NOT_DONE,
        Kind.MARKED_BEFORE_SEND,
    ),
    _plant(
        "a lost answer to COMMIT is a failure",
        _a_lost_commit_is_a_failure,
        "start_a_page",
        Way.COMMIT,
        Mode.ANSWER_LOST,
        Kind.LOST_ANSWER_IS_FAILURE,
    ),
    _plant(
        "what was committed and not heard of is done again",
        _a_lost_commit_is_done_again,
        "place",
        Way.COMMIT,
        Mode.ANSWER_LOST,
    ),
    _plant(
        "after a lock wait that was too long the transaction goes on",
        _gone_on_after_a_lock_wait,
        "place",
        Way.STATEMENT,
        Mode.LOCK_WAIT,
        Kind.WENT_ON_AFTER_1205,
    ),
    Plant(
        "a migration that was begun and not finished counts as applied",
        _a_broken_migration_is_begun_again,
        "migrations",
        form=Form.BOUNDED,
    ),
)
