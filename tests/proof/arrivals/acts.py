"""What people do in an order's life, up to where it is told by messages and notices alone."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Final

from tests.proof.arrivals.snapshots import insert
from tests.proof.world import World
from tests.support import api, http_events, passing_time
from tests.support.database import Row

ALL: Final = Decimal("9.90")
PART: Final = Decimal("3.00")
MORE: Final = Decimal("2.00")


# --- the order -----------------------------------------------------------------------------------


def place(world: World) -> str:
    return str(world.place("k1").document["order"]["order_no"])


def place_hot(world: World) -> str:
    world.database.execute("UPDATE ims_sku_stock SET hot = TRUE WHERE sku_id = 1001")
    return place(world)


def order_no(world: World) -> str:
    return str(world.database.value("SELECT order_no FROM oms_order ORDER BY id DESC LIMIT 1"))


def cancel(world: World) -> None:
    assert world.cancel(order_no(world)).status in {200, 202}


def open_a_page(world: World, product: str = "page") -> str:
    return str(world.start(order_no(world), product).document["out_trade_no"])


def pay(world: World) -> str:
    """An order with a page, and its money."""
    place(world)
    return world.pay(open_a_page(world)).trade_no


def give_back(world: World, trade_no: str, *amounts: Decimal) -> None:
    """An operator of the merchant's console."""
    books = world.books
    for n, amount in enumerate(amounts, 1):
        world.clock.ahead += timedelta(seconds=5)
        books.refund(books.find(trade_no=trade_no), amount, f"console-{n}")


# --- its money -----------------------------------------------------------------------------------


def paid_and_finished(world: World) -> None:
    world.books.finish(pay(world))


def given_back_in_part(world: World) -> None:
    give_back(world, pay(world), PART)


def given_back_in_parts(world: World) -> None:
    give_back(world, pay(world), PART, MORE)


def given_back_until_it_was_over(world: World) -> None:
    trade_no = pay(world)
    give_back(world, trade_no, PART)
    world.books.finish(trade_no)


def given_back_in_whole(world: World) -> None:
    give_back(world, pay(world), PART, ALL - PART)


def hot_and_paid(world: World) -> None:
    """Nobody has a page of an order that waits for its turn; who knows its number can pay."""
    world.pay(place_hot(world), ALL)


def paid_late(world: World) -> None:
    order_no = place(world)
    cancel(world)
    world.pay(order_no, ALL)


def paid_late_and_given_back(world: World) -> None:
    order_no = place(world)
    cancel(world)
    give_back(world, world.pay(order_no, ALL).trade_no, PART)


def given_back_at_once(world: World) -> None:
    give_back(world, pay(world), ALL)


def paid_late_and_given_back_in_whole(world: World) -> None:
    order_no = place(world)
    cancel(world)
    give_back(world, world.pay(order_no, ALL).trade_no, ALL)


def refunded_by_an_operator(world: World) -> None:
    _ask_refund(world, {"reason": "broken"})


def refunded_in_part_by_an_operator(world: World) -> None:
    _ask_refund(world, {"reason": "scratched", "amount": str(PART)})


def _ask_refund(world: World, body: object) -> None:
    pay(world)
    world.tell()
    answer = api.ask(http_events.refund_order(order_no(world), body))
    assert answer.status in {200, 201, 202}, answer.text


def paid_twice(world: World) -> None:
    place(world)
    pages = [open_a_page(world), open_a_page(world, "qr")]
    for page in pages:
        world.pay(page, ALL)


def paid_in_time_but_expired(world: World) -> None:
    order_no = place(world)
    passing_time.until_over(int(world.database.value("SELECT MAX(id) FROM oms_order")))
    assert world.sweep()["orders_closed"] == 1
    with world.clock.back(passing_time.OVER_SINCE + timedelta(minutes=1)):
        world.pay(order_no, ALL)


def paid_a_wrong_sum(world: World) -> None:
    place(world)
    world.pay(open_a_page(world), Decimal("5.00"))


def closed_by_the_channel(world: World) -> None:
    place(world)
    books, number = world.books, open_a_page(world)
    books.open(number)
    books.close(out_trade_no=number)


def ask(world: World) -> None:
    """A sweep that asks Alipay about all that it would ask about in time."""
    for table in ("oms_notice", "oms_payment_attempt"):
        world.database.execute(
            f"UPDATE {table} SET next_ask_at = NOW(3) WHERE next_ask_at IS NOT NULL"  # noqa: S608
        )
    assert world.sweep()["failed"] == []


# --- what comes back from elsewhere --------------------------------------------------------------

OF_A_HOLD: Final = ("ims_reservation", "ims_reservation_item")
OF_AN_ORDER: Final = (
    *OF_A_HOLD,
    *("oms_order", "oms_order_item", "oms_order_request", "oms_order_event", "oms_payment_attempt"),
)
_KEYS: Final = {"oms_order": "id", "ims_reservation_item": "reservation_id"}


class Aside:
    """The rows of the youngest order, as long as they are not there yet: no operation of ours
    leaves a database so, but one that is restored piece by piece may be found so."""

    def __init__(self, tables: Sequence[str]) -> None:
        self._tables = tables
        self._rows: dict[str, list[Row]] = {}

    def put(self, world: World) -> None:
        database = world.database
        order = database.one("SELECT id, reservation_id FROM oms_order ORDER BY id DESC LIMIT 1")
        for table in self._tables:
            key = _KEYS.get(table, "order_id")
            value = order["reservation_id" if key == "reservation_id" else "id"]
            where = f"FROM {table} WHERE {key} = %s"
            self._rows[table] = database.rows(f"SELECT * {where}", (value,))
            database.execute(f"DELETE {where}", (value,))
        _lock_one_more(world, -1)

    def bring_back(self, world: World) -> None:
        [hold] = self._rows["ims_reservation"]
        if not world.database.count("ims_reservation", reservation_id=hold["reservation_id"]):
            for table, rows in self._rows.items():
                insert(world.database, table, rows)
            _lock_one_more(world, +1)


def _lock_one_more(world: World, by: int) -> None:
    world.database.execute(
        "UPDATE ims_sku_stock SET lock_stock = lock_stock + %s WHERE sku_id = 1001", (by,)
    )


HOLD: Final = Aside(OF_A_HOLD)
ORDER: Final = Aside(OF_AN_ORDER)


def paid_before_its_hold(world: World) -> None:
    pay(world)
    world.tell()
    HOLD.put(world)


def told_before_its_order(world: World) -> None:
    give_back(world, pay(world), PART)
    ORDER.put(world)
