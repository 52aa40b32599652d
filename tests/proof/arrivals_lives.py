"""The lives of an order whose messages and notices arrive in every order.

`begin` does what people did in it, and stops with everything undelivered that may be. `acts` are
done by people meanwhile, so they arrive like the rest. What else arrives is not listed here: it is
what a run of the life sends.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from tests.proof.arrivals_kinds import Act
from tests.proof.standing import insert
from tests.proof.world import World
from tests.support import api, http_events, passing_time

ALL: Final = Decimal("9.90")
PART: Final = Decimal("3.00")
MORE: Final = Decimal("2.00")

# (order's status, close_reason, the payments' states in the order of their trades).
type End = tuple[str, str | None, tuple[str, ...]]


@dataclass(frozen=True)
class Life:
    """``ends`` says how it ends, by which of its arrivals came first; by itself under "".

    ``only_sent``: nothing arrives before it was sent. Elsewhere it may, as after a restore or when
    somebody sends an old command again: what caused it comes as well, only later.
    ``apart`` are columns that tell who was first, and so differ from order to order; what is
    ``lost`` never arrives.
    """

    name: str
    begin: Callable[[World], object]
    ends: Mapping[str, End]
    acts: tuple[Act, ...] = ()
    only_sent: bool = False
    policy: str = "REFUND"
    apart: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.name


# --- what people do ------------------------------------------------------------------------------


def _place(world: World) -> str:
    return str(world.place("k1").document["order"]["order_no"])


def _place_hot(world: World) -> str:
    world.database.execute("UPDATE ims_sku_stock SET hot = TRUE WHERE sku_id = 1001")
    return _place(world)


def _order_no(world: World) -> str:
    return str(world.database.value("SELECT order_no FROM oms_order ORDER BY id DESC LIMIT 1"))


def _cancel(world: World) -> None:
    assert world.cancel(_order_no(world)).status in {200, 202}


def _open_a_page(world: World, product: str = "page") -> str:
    return str(world.start(_order_no(world), product).document["out_trade_no"])


def _pay(world: World) -> str:
    """An order with a page, and its money."""
    _place(world)
    return world.pay(_open_a_page(world)).trade_no


def _give_back(world: World, trade_no: str, *amounts: Decimal) -> None:
    """An operator of the merchant's console."""
    books = world.alipay.service.books
    for n, amount in enumerate(amounts, 1):
        world.clock.ahead += timedelta(seconds=5)
        books.refund(books.find(trade_no=trade_no), amount, f"C{n}")


# --- begin ---------------------------------------------------------------------------------------


def _paid_and_finished(world: World) -> None:
    world.alipay.service.books.finish(_pay(world))


def _given_back_in_part(world: World) -> None:
    _give_back(world, _pay(world), PART)


def _given_back_in_parts(world: World) -> None:
    _give_back(world, _pay(world), PART, MORE)


def _given_back_in_whole(world: World) -> None:
    _give_back(world, _pay(world), PART, ALL - PART)


def _hot_and_paid(world: World) -> None:
    """Nobody has a page of an order that waits for its turn; who knows its number can pay."""
    world.pay(_place_hot(world), ALL)


def _paid_late(world: World) -> None:
    order_no = _place(world)
    _cancel(world)
    world.pay(order_no, ALL)


def _paid_late_and_given_back(world: World) -> None:
    order_no = _place(world)
    _cancel(world)
    _give_back(world, world.pay(order_no, ALL).trade_no, PART)


def _refunded_by_an_operator(world: World) -> None:
    _pay(world)
    world.tell()
    answer = api.ask(http_events.refund_order(_order_no(world)))
    assert answer.status in {200, 201, 202}, answer.text


def _paid_twice(world: World) -> None:
    _place(world)
    pages = [_open_a_page(world), _open_a_page(world, "qr")]
    for page in pages:
        world.pay(page, ALL)


def _paid_in_time_but_expired(world: World) -> None:
    order_no = _place(world)
    passing_time.until_over(int(world.database.value("SELECT MAX(id) FROM oms_order")))
    assert world.sweep()["orders_closed"] == 1
    with world.clock.back(passing_time.OVER_SINCE + timedelta(minutes=1)):
        world.pay(order_no, ALL)


def _paid_a_wrong_sum(world: World) -> None:
    _place(world)
    world.pay(_open_a_page(world), Decimal("5.00"))


def _closed_by_the_channel(world: World) -> None:
    _place(world)
    books, number = world.alipay.service.books, _open_a_page(world)
    books.open(number)
    books.close(out_trade_no=number)


# --- what comes back from elsewhere --------------------------------------------------------------

_OF_THE_HOLD: Final = ("ims_reservation", "ims_reservation_item")
_OF_THE_ORDER: Final = (
    *_OF_THE_HOLD,
    *("oms_order", "oms_order_item", "oms_order_request", "oms_order_event", "oms_payment_attempt"),
)


def _put_aside(world: World, tables: tuple[str, ...]) -> None:
    """The order is not there yet, or its hold: as in a database that is being restored."""
    database = world.database
    order = database.one("SELECT id, reservation_id FROM oms_order ORDER BY id DESC LIMIT 1")
    aside: dict[str, list[Any]] = {}
    for table in tables:
        column = {"oms_order": "id", "ims_reservation_item": "reservation_id"}.get(table, "order_id")
        of_it = f"{column} = %s"
        key = order["reservation_id" if column == "reservation_id" else "id"]
        aside[table] = database.rows(f"SELECT * FROM {table} WHERE {of_it}", (key,))  # noqa: S608
        database.execute(f"DELETE FROM {table} WHERE {of_it}", (key,))  # noqa: S608
    _lock_stock(world, -1)
    _ASIDE[database.name] = aside


# By schema: the act that brings them back knows nothing but its world.
_ASIDE: dict[str, dict[str, list[Any]]] = {}


def _bring_back(world: World) -> None:
    aside = _ASIDE[world.database.name]
    if not world.database.count("ims_reservation", **_key_of(aside)):
        for table, rows in aside.items():
            insert(world.database, table, rows)
        _lock_stock(world, +1)


def _key_of(aside: Mapping[str, list[Any]]) -> dict[str, object]:
    return {"reservation_id": aside["ims_reservation"][0]["reservation_id"]}


def _lock_stock(world: World, by: int) -> None:
    world.database.execute(
        "UPDATE ims_sku_stock SET lock_stock = lock_stock + %s WHERE sku_id = 1001", (by,)
    )


def _paid_before_its_hold(world: World) -> None:
    _pay(world)
    world.tell()
    _put_aside(world, _OF_THE_HOLD)


def _told_before_its_order(world: World) -> None:
    _give_back(world, _pay(world), PART)
    _put_aside(world, _OF_THE_ORDER)


def _ask(world: World) -> None:
    """A sweep that asks Alipay about all that it would ask about in time."""
    for table in ("oms_notice", "oms_payment_attempt"):
        world.database.execute(
            f"UPDATE {table} SET next_ask_at = NOW(3) WHERE next_ask_at IS NOT NULL"  # noqa: S608
        )
    assert world.sweep()["failed"] == []


_CANCEL: Final = Act("cancel", _cancel)
_ASK: Final = Act("ask", _ask)
_WHO_TOLD: Final = frozenset({"evidence", "reason"})

LIVES: Final = (
    Life("paid", _paid_and_finished, {"": ("PAID", None, ("APPLIED",))}),
    Life("cancelled", _place, {"": ("CLOSED", "CANCELLED", ())}, acts=(_CANCEL,)),
    Life("closed-by-the-channel", _closed_by_the_channel, {"": ("CLOSED", "GATEWAY_CLOSED", ())}),
    Life(
        "cancelled-in-line",
        _place_hot,
        dict.fromkeys(("reserve-1", "cancel", "release-1"), ("CLOSED", "CANCELLED", ())),
        acts=(_CANCEL,),
    ),
    Life(
        "hot",
        _hot_and_paid,
        {
            "reserve-1": ("PAID", None, ("APPLIED",)),
            "paid-1": ("CLOSED", "EXPIRED", ("REFUNDED",)),
        },
        only_sent=True,
    ),
    Life("paid-late", _paid_late, {"": ("CLOSED", "CANCELLED", ("REFUNDED",))}),
    Life("wrong-sum", _paid_a_wrong_sum, {"": ("CLOSED", "EXPIRED", ("REFUNDED",))}),
    Life(
        "reinstated",
        _paid_in_time_but_expired,
        {"": ("PAID", None, ("APPLIED",))},
        policy="REINSTATE",
    ),
    Life(
        "given-back-in-parts",
        _given_back_in_parts,
        dict.fromkeys(("refunded-1-3.00", "refunded-1-5.00"), ("PAID", None, ("APPLIED",))),
    ),
    Life(
        "given-back-in-whole",
        _given_back_in_whole,
        dict.fromkeys(("refunded-1-3.00", "refunded-1-9.90"), ("REFUNDED", None, ("APPLIED",))),
    ),
    Life("refunded-by-an-operator", _refunded_by_an_operator, {"": ("REFUNDED", None, ("APPLIED",))}),
    Life(
        "paid-twice",
        _paid_twice,
        {
            "paid-1": ("PAID", None, ("APPLIED", "REFUNDED")),
            "paid-2": ("PAID", None, ("REFUNDED", "APPLIED")),
        },
        only_sent=True,
    ),
    Life(
        "its-hold-comes-late",
        _paid_before_its_hold,
        {"": ("PAID", None, ("APPLIED",))},
        acts=(Act("hold", _bring_back),),
    ),
    Life(
        "its-order-comes-late",
        _told_before_its_order,
        {"": ("PAID", None, ("APPLIED",))},
        acts=(Act("order", _bring_back),),
        # What the ledger wrote before the order was known names none, and is never rewritten.
        apart=frozenset({"order_id"}),
    ),
    Life(
        "paid-late-and-given-back",
        _paid_late_and_given_back,
        {
            "refunded-1-3.00": ("CLOSED", "CANCELLED", ("REFUNDED",)),
            # Refused before anybody knew of the console's: a person sees to it.
            "refund-1": ("CLOSED", "CANCELLED", ("REFUND_FAILED",)),
        },
        only_sent=True,
    ),
    Life("asked", _given_back_in_part, {"": ("PAID", None, ("APPLIED",))}, acts=(_ASK,), apart=_WHO_TOLD),
    Life("asked-late", _paid_late, {"": ("CLOSED", "CANCELLED", ("REFUNDED",))}, acts=(_ASK,), apart=_WHO_TOLD),
    Life("asked-when-over", _paid_and_finished, {"": ("PAID", None, ("APPLIED",))}, acts=(_ASK,), apart=_WHO_TOLD),
    Life(
        "its-payment-is-never-told",
        _given_back_in_part,
        {"": ("PAID", None, ("APPLIED",))},
        acts=(_ASK,),
        apart=_WHO_TOLD,
        lost=frozenset({"paid-1"}),
    ),
)
BY_NAME: Final = {life.name: life for life in LIVES}
