"""Short ways to a state that a test starts from, through the product's own operations."""

import itertools
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from infra.local import invariants
from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.db.transaction import RollBack, Tx, in_transaction
from lockstep.inventory.confirm import confirm
from lockstep.inventory.model import Confirmed, Held, Refused, Released, Short
from lockstep.inventory.release import release
from lockstep.inventory.reserve import reserve
from lockstep.messaging.contracts import ConfirmStock, ReleaseStock, ReserveStock
from lockstep.orders.hold import hold
from lockstep.orders.model import HoldOutcome, NotWaiting, Order, Placed, PlaceOrder
from lockstep.orders.place import place
from lockstep.payments.reinstate import reinstate
from tests.support.database import Database

_serial = itertools.count(1)


def a_sku(
    database: Database,
    sku_id: int = 1001,
    *,
    stock: int = 10,
    price: str = "9.90",
    hot: bool = False,
    on_sale: bool = True,
) -> int:
    """A SKU with its INITIAL entry; its id."""
    database.execute(
        "INSERT INTO ims_sku_stock (sku_id, title, price, stock, hot, on_sale) "
        "VALUES (%s, %s, %s, %s, %s, %s)",
        (sku_id, f"SKU {sku_id}", Decimal(price), stock, hot, on_sale),
    )
    database.execute(
        "INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason) "
        "VALUES (%s, 'INITIAL', %s, %s, 'test', 'built')",
        (sku_id, stock, f"initial:{sku_id}"),
    )
    return sku_id


def place_command(
    lines: dict[int, int] | None = None,
    *,
    member_id: int = 42,
    key: str | None = None,
    note: str | None = None,
    expected_amount: str | None = None,
) -> PlaceOrder:
    return PlaceOrder(
        member_id=member_id,
        idempotency_key=key or f"key-{next(_serial)}",
        lines=dict(sorted((lines or {1001: 1}).items())),
        note=note,
        expected_amount=None if expected_amount is None else Decimal(expected_amount),
    )


def an_order(
    lines: dict[int, int] | None = None, *, member_id: int = 42, key: str | None = None
) -> Order:
    """A placed order, PENDING_PAYMENT with its stock held, or RESERVING if a SKU is hot. Its SKUs
    must be there."""
    outcome = place(place_command(lines, member_id=member_id, key=key))
    assert isinstance(outcome, Placed), outcome
    return outcome.order


def deliver_outbox(database: Database) -> int:
    """Carry out every unsent command on stock once, oldest first, as the queues would; how many
    there were. A refund needs a channel: its tests try it themselves."""
    unsent = database.rows(
        "SELECT message_id, queue, payload FROM outbox "
        "WHERE sent_at IS NULL AND queue <> 'refund' ORDER BY id"
    )
    for row in unsent:
        outcome = _carry_out(row["queue"], row["payload"])
        assert not isinstance(outcome, Refused), (row, outcome)
        database.execute(
            "UPDATE outbox SET sent_at = NOW(3) WHERE message_id = %s", (row["message_id"],)
        )
    return len(unsent)


def _carry_out(queue: str, payload: str) -> Confirmed | Released | Refused | HoldOutcome:
    if queue == "reserve":
        to_reserve = ReserveStock.model_validate_json(payload)
        held = hold(to_reserve.order_id)
        if isinstance(held, NotWaiting):
            reinstate(to_reserve.order_id)
        return held
    if queue == "confirm":
        to_confirm = ConfirmStock.model_validate_json(payload)
        return confirm(to_confirm.reservation_id, to_confirm.order_id)
    to_release = ReleaseStock.model_validate_json(payload)
    return release(to_release.reservation_id, to_release.order_id)


def assert_at_rest(database: Database) -> None:
    """Deliver what is staged, and what comes of that; then every invariant holds."""
    while deliver_outbox(database):
        pass
    assert invariants.broken(database.rows) == {}


def a_trade_notice(order: Order | None = None, **changes: object) -> TradeNotice:
    """A verified payment notice of ``order``, of its amount, with ids of its own; changed."""
    serial = next(_serial)
    said: dict[str, Any] = {
        "kind": NoticeKind.PAYMENT,
        "notify_id": f"notify-{serial}",
        "notify_type": "trade_status_sync",
        "app_id": "2021000100000001",
        "seller_id": "2088000000000001",
        "trade_status": "TRADE_SUCCESS",
        "out_trade_no": order.order_no if order else f"nobody-{serial}",
        "trade_no": f"trade-{serial}",
        "total_amount": order.pay_amount if order else Decimal("9.90"),
        "refund_fee": None,
        "out_biz_no": None,
        "gmt_payment": datetime(2026, 11, 30, 2, 0, 5, tzinfo=UTC),
        "gmt_refund": None,
        "gmt_close": None,
        "subject": "",
    }
    return TradeNotice(**(said | changes))


def an_attempt(
    database: Database, order: Order, *, out_trade_no: str | None = None, state: str = "OPEN"
) -> str:
    """A payment page of ``order``, to be asked about in a minute; its out_trade_no."""
    number = out_trade_no or order.order_no
    database.execute(
        "INSERT INTO oms_payment_attempt "
        "(order_id, out_trade_no, product, amount, state, expires_at, next_ask_at) "
        "VALUES (%s, %s, 'page', %s, %s, %s, "
        "IF(state IN ('OPEN', 'CLOSING'), NOW(3) + INTERVAL 1 MINUTE, NULL))",
        (order.id, number, order.pay_amount, state, order.expires_at),
    )
    return number


def try_hold(reservation_id: str, order_id: int, lines: dict[int, int]) -> Held | Short | Refused:
    """Reserve in a transaction of its own, as for an order that waits for its stock."""
    hold_until = datetime(2026, 12, 31, tzinfo=UTC)

    def work(tx: Tx) -> Held | Short | Refused:
        outcome = reserve(tx, reservation_id, order_id, lines, hold_until)
        if isinstance(outcome, Short):
            raise RollBack(outcome)
        return outcome

    return in_transaction(work)
