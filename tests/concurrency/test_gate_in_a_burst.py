"""Goal: in a burst at a hot SKU the gate refuses nobody for whom something is left, and what it
lets in never oversells.

Method: many buyers place at once while a worker decides for those who wait. Nobody gives anything
back, so that stock which is gone stays gone: a refusal is right if it ended after the decision that
took the last piece had begun.
"""

import threading
import time
from collections import Counter

from lockstep.orders.hold import hold_all
from lockstep.orders.model import OutOfStock, Placed, PlaceOutcome
from lockstep.orders.place import place
from tests.support.builders import a_sku, assert_at_rest, place_command
from tests.support.database import Database
from tests.support.threads import at_once

HOT = 2001
BUYERS = 48


class Worker:
    """Decides again and again until it is told to end. ``began`` is when the last decision that
    took stock did."""

    def __init__(self, database: Database) -> None:
        self.began = 0.0
        self._database = database
        self._ends = threading.Event()

    def run(self) -> None:
        left = True
        while left:
            left = not self._ends.is_set()  # once more when all have come
            began = time.monotonic()
            before = self._held()
            hold_all(HOT, lambda: True)
            if self._held() != before:
                self.began = began

    def end(self) -> None:
        self._ends.set()

    def _held(self) -> int:
        with self._database.another_session() as session, session.cursor() as cursor:
            cursor.execute("SELECT lock_stock FROM ims_sku_stock WHERE sku_id = %s", (HOT,))
            [row] = cursor.fetchall()
        return int(row["lock_stock"])


def burst(database: Database, pieces: int) -> tuple[list[tuple[PlaceOutcome, float]], Worker]:
    """Of each buyer the outcome and when it was known."""
    a_sku(database, HOT, stock=pieces, hot=True)
    worker = Worker(database)
    told: list[tuple[PlaceOutcome, float]] = []

    def buy(member_id: int) -> None:
        outcome = place(place_command({HOT: 1}, member_id=member_id))
        told.append((outcome, time.monotonic()))
        if len(told) == BUYERS:
            worker.end()

    at_once(worker.run, *[lambda m=member_id: buy(m) for member_id in range(1, BUYERS + 1)])
    return told, worker


def test_as_many_buyers_as_pieces_are_all_let_in(database):
    told, _ = burst(database, BUYERS)
    assert Counter(type(outcome) for outcome, _ in told) == {Placed: BUYERS}
    assert database.stock(HOT) == (BUYERS, BUYERS)
    assert database.count("oms_order", status="PENDING_PAYMENT") == BUYERS
    assert_at_rest(database)


def test_nobody_is_refused_before_the_last_piece_is_gone_and_nothing_is_oversold(database):
    told, worker = burst(database, 5)
    kinds = Counter(type(outcome) for outcome, _ in told)
    assert kinds.keys() <= {Placed, OutOfStock}
    assert database.stock(HOT) == (5, 5)
    assert database.count("oms_order", status="PENDING_PAYMENT") == 5
    assert database.count("oms_order", close_reason="OUT_OF_STOCK") == kinds[Placed] - 5
    assert all(at > worker.began for outcome, at in told if isinstance(outcome, OutOfStock))
    assert_at_rest(database)
