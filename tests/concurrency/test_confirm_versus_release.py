"""Goal: a hold ends once, as a sale or given back, whichever commands meet on it.

Method: for many holds of one SKU, two commands meet at a barrier. The counters must be the sums of
what the holds ended as. The holds belong to no order, since no order would ever ask for both.
"""

from typing import Final

from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import (
    Confirmed,
    Held,
    Refusal,
    Refused,
    Released,
    ReservationState,
    Short,
)
from lockstep.inventory.release import release
from tests.support.builders import a_sku, assert_at_rest, try_hold
from tests.support.database import Database
from tests.support.threads import Deadlocks, at_once, crowd, in_rounds

ROUNDS: Final = 150
LINES: Final = {1001: 2, 1002: 1}
STOCK: Final = 1000

CANNOT_RELEASE: Final = Refused(Refusal.RESERVATION_CANNOT_RELEASE)
NOT_RESERVED: Final = Refused(Refusal.RESERVATION_NOT_RESERVED)
ALREADY_RELEASED: Final = Refused(Refusal.RESERVATION_ALREADY_RELEASED)
HELD: Final = Held(repeated=False, state=ReservationState.RESERVED)

type StockOutcome = Held | Short | Confirmed | Released | Refused


def name(round_: int) -> str:
    return f"order{round_}-1"


def hold(round_: int) -> StockOutcome:
    return try_hold(name(round_), round_, LINES)


def sell(round_: int) -> StockOutcome:
    return confirm(name(round_), round_)


def give_back(round_: int) -> StockOutcome:
    return release(name(round_), round_)


def some_holds(database: Database) -> range:
    some_skus(database)
    assert crowd(2, range(ROUNDS), hold) == [HELD] * ROUNDS
    return range(ROUNDS)


def some_skus(database: Database) -> None:
    for sku_id in LINES:
        a_sku(database, sku_id, stock=STOCK)


def assert_sold(database: Database, sold: int) -> None:
    """So many of the holds were sold, none is held any more."""
    assert database.stock(1001) == (STOCK - 2 * sold, 0)
    assert database.stock(1002) == (STOCK - sold, 0)
    assert_at_rest(database)


def test_of_confirm_and_release_at_once_exactly_one_wins(database):
    sold = 0
    for outcomes in in_rounds(some_holds(database), sell, give_back):
        if outcomes == [Confirmed(repeated=False), CANNOT_RELEASE]:
            sold += 1
        else:
            assert outcomes == [NOT_RESERVED, Released(repeated=False)]
    assert database.count("ims_reservation", state="CONFIRMED") == sold
    assert database.count("ims_reservation", state="RELEASED") == ROUNDS - sold
    assert_sold(database, sold)


def test_of_two_confirms_at_once_one_sells_and_the_other_is_told_so(database):
    first, second = Confirmed(repeated=False), Confirmed(repeated=True)
    for outcomes in in_rounds(some_holds(database), sell, sell):
        assert outcomes in ([first, second], [second, first])
    assert_sold(database, ROUNDS)


def test_of_two_releases_at_once_one_gives_back_and_the_other_is_told_so(database):
    first, second = Released(repeated=False), Released(repeated=True)
    for outcomes in in_rounds(some_holds(database), give_back, give_back):
        assert outcomes in ([first, second], [second, first])
    assert_sold(database, 0)


def test_a_hold_and_its_release_at_once_never_leave_it_held(database):
    some_skus(database)
    for outcomes in in_rounds(range(ROUNDS), hold, give_back):
        assert outcomes in (
            [HELD, Released(repeated=False)],
            [ALREADY_RELEASED, Released(repeated=False)],
        )
    assert database.count("ims_reservation", state="RELEASED") == ROUNDS
    assert_sold(database, 0)


def test_of_many_reserves_of_one_hold_one_holds_and_none_deadlocks(database, monkeypatch):
    some_skus(database)
    deadlocks = Deadlocks(monkeypatch)
    outcomes = at_once(*[lambda: hold(1)] * 8)
    repeated = Held(repeated=True, state=ReservationState.RESERVED)
    assert outcomes.count(HELD) == 1
    assert outcomes.count(repeated) == 7
    assert deadlocks.seen == 0
    assert database.stock(1001) == (STOCK, 2)
    assert_at_rest(database)


def test_release_three_times_among_confirms_sells_once_or_not_at_all(database):
    rounds = some_holds(database)
    sold = 0
    for outcomes in in_rounds(rounds, give_back, sell, give_back, sell, give_back):
        winners = [outcome for outcome in outcomes if not getattr(outcome, "repeated", True)]
        assert len(winners) == 1, outcomes
        sold += isinstance(winners[0], Confirmed)
    assert_sold(database, sold)
