"""Goal: an expired order is revived once, with one hold, whoever is in the way.

Method: the other side does all its work in the middle of the first one's transaction, or waits at
a lock that the engine shows (Meanwhile); or both start at a barrier, many times. No clock is
involved.
"""

from functools import partial

import pytest

from lockstep.inventory import release as release_module
from lockstep.inventory import store as inventory
from lockstep.inventory.model import Released
from lockstep.inventory.release import release
from lockstep.orders import reinstate as revive_module
from lockstep.orders import store as orders
from lockstep.orders.model import Placed
from lockstep.orders.place import place
from lockstep.payments.model import NothingLate, Reinstated, Result, SentBack
from lockstep.payments.reinstate import reinstate
from tests.support.builders import assert_at_rest, deliver_outbox, place_command
from tests.support.database import Database
from tests.support.late import an_expired_order, reinstating
from tests.support.notices import order_row, payment_state
from tests.support.reading import SIGNER as ALIPAY
from tests.support.threads import Meanwhile, at_once

SECOND = {"notify_id": "N2", "trade_no": "T2"}
ROUNDS = 15


@pytest.fixture(autouse=True)
def policy(monkeypatch):
    reinstating(monkeypatch)


def old_hold(database: Database) -> str:
    return str(database.value("SELECT reservation_id FROM ims_reservation WHERE n = 1"))


def test_two_that_reinstate_at_once_do_it_once(database, monkeypatch):
    order_id = an_expired_order(database)
    ALIPAY.accept()
    other = Meanwhile(database, lambda: reinstate(order_id))
    monkeypatch.setattr(orders, "lock_order", other.after(orders.lock_order))
    assert isinstance(reinstate(order_id), Reinstated)
    assert other.outcome() == NothingLate()
    assert other.had_to_wait
    assert order_row(database)[0] == "PAID"
    assert_at_rest(database)
    assert database.stock(1001) == (9, 0)


def test_the_old_holds_release_comes_in_the_middle_of_a_reinstatement(database, monkeypatch):
    order_id = an_expired_order(database, stock=1)
    ALIPAY.accept()
    hold = old_hold(database)
    other = Meanwhile(database, lambda: release(hold, order_id))
    monkeypatch.setattr(orders, "lock_order", other.after(orders.lock_order))
    assert isinstance(reinstate(order_id), Reinstated)
    assert other.outcome() == Released(repeated=False)
    assert_at_rest(database)
    assert database.stock(1001) == (0, 0)


def test_the_old_holds_release_comes_once_it_was_given_back(database, monkeypatch):
    order_id = an_expired_order(database, stock=1)
    ALIPAY.accept()
    hold = old_hold(database)
    other = Meanwhile(database, lambda: release(hold, order_id))
    monkeypatch.setattr(revive_module, "give_back", other.after(release_module.give_back))
    assert isinstance(reinstate(order_id), Reinstated)
    assert other.outcome() == Released(repeated=True)
    assert other.had_to_wait
    assert_at_rest(database)
    assert database.stock(1001) == (0, 0)


def test_a_reinstatement_comes_in_the_middle_of_the_release(database, monkeypatch):
    order_id = an_expired_order(database, stock=1)
    ALIPAY.accept()
    other = Meanwhile(database, lambda: reinstate(order_id))
    monkeypatch.setattr(inventory, "lock_reservation", other.after(inventory.lock_reservation))
    assert release(old_hold(database), order_id) == Released(repeated=False)
    assert isinstance(other.outcome(), Reinstated)
    assert_at_rest(database)
    assert database.stock(1001) == (0, 0)


def test_a_second_late_payment_comes_in_the_middle(database, monkeypatch):
    order_id = an_expired_order(database)
    ALIPAY.accept()
    other = Meanwhile(database, lambda: ALIPAY.accept(**SECOND))
    monkeypatch.setattr(orders, "lock_order", other.after(orders.lock_order))
    assert isinstance(reinstate(order_id), Reinstated)
    assert other.outcome() is Result.REFUND_PENDING
    assert payment_state(database, "T2") == ("REFUND_PENDING", "SECOND_PAYMENT")
    assert_at_rest(database)


def test_a_reinstatement_comes_in_the_middle_of_a_second_late_payment(database, monkeypatch):
    order_id = an_expired_order(database)
    ALIPAY.accept()
    other = Meanwhile(database, lambda: reinstate(order_id))
    monkeypatch.setattr(orders, "lock_order_of_trade", other.after(orders.lock_order_of_trade))
    assert ALIPAY.accept(**SECOND) is Result.REINSTATE_PENDING
    assert isinstance(other.outcome(), Reinstated)
    assert payment_state(database) == ("APPLIED", None)
    assert payment_state(database, "T2") == ("REFUND_PENDING", "SECOND_PAYMENT")
    assert_at_rest(database)


def test_two_late_notices_at_once_are_two_payments_of_which_one_pays(database):
    for _ in range(ROUNDS):
        database.empty()
        an_expired_order(database)
        outcomes = at_once(ALIPAY.accept, lambda: ALIPAY.accept(**SECOND))
        assert outcomes == [Result.REINSTATE_PENDING] * 2
        deliver_outbox(database)
        states = sorted(payment_state(database, number) for number in ("T1", "T2"))
        assert states == [("APPLIED", None), ("REFUND_PENDING", "SECOND_PAYMENT")]
        assert_at_rest(database)


def test_one_late_notice_delivered_twice_at_once_p1(database):
    """P1, late: one payment, one revival."""
    for _ in range(ROUNDS):
        database.empty()
        an_expired_order(database)
        outcomes = at_once(ALIPAY.accept, ALIPAY.accept)
        assert sorted(outcomes) == [Result.REINSTATE_PENDING, Result.REPLAYED]
        assert_at_rest(database)
        assert database.stock(1001) == (9, 0)


def test_late_money_and_another_buyer_never_both_get_the_last_unit_a5(database):
    """A5, at once."""
    won = 0
    for _ in range(ROUNDS):
        database.empty()
        order_id = an_expired_order(database, stock=1)
        deliver_outbox(database)
        ALIPAY.accept()
        revived, placed = at_once(partial(reinstate, order_id), partial(place, place_command()))
        assert isinstance(revived, Reinstated) is not isinstance(placed, Placed)
        if isinstance(revived, SentBack):
            assert payment_state(database) == ("REFUND_PENDING", "LATE_PAYMENT")
        won += isinstance(revived, Reinstated)
        assert_at_rest(database)
    assert 0 <= won <= ROUNDS
