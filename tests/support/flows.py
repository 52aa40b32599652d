"""The operations that change something, each one transaction, with the state it starts from."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.inventory.confirm import confirm
from lockstep.inventory.release import release
from lockstep.orders.close import expire
from lockstep.orders.hold import hold
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from lockstep.payments.ask_refund import AskRefund, ask_refund
from lockstep.payments.attach import attach
from lockstep.payments.give_back import GiveBack, give_back
from lockstep.payments.reinstate import reinstate
from tests.support.builders import a_sku, an_order, place_command
from tests.support.channel import cancel, start
from tests.support.database import Database, forget_settings
from tests.support.late import reinstating

MEMBER = 42
LINES = {1001: 2, 1002: 1}


class Flow(NamedTuple):
    name: str
    prepare: Callable[[Database], None]
    run: Callable[[Database], object]

    def __str__(self) -> str:
        return self.name


def _skus(database: Database) -> None:
    a_sku(database, 1001)
    a_sku(database, 1002)


def _ordered(database: Database) -> None:
    _skus(database)
    an_order(LINES, member_id=MEMBER, key="k1")


def _cancelled(database: Database) -> None:
    _ordered(database)
    _cancel(database)


def _paid(database: Database) -> None:
    _ordered(database)
    _pay(database)


def _in_line(database: Database) -> None:
    _skus(database)
    database.execute("UPDATE ims_sku_stock SET hot = TRUE WHERE sku_id = 1001")
    an_order(LINES, member_id=MEMBER, key="k1")


def _in_line_in_vain(database: Database) -> None:
    _in_line(database)
    _an_entry_takes(database, 1001, 10)


def _an_entry_takes(database: Database, sku_id: int, quantity: int) -> None:
    database.execute(
        "INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason) "
        "VALUES (%s, 'CORRECTION', %s, 'gone', 'test', 'gone')",
        (sku_id, -quantity),
    )
    database.execute(
        "UPDATE ims_sku_stock SET stock = stock - %s WHERE sku_id = %s", (quantity, sku_id)
    )


def _overdue(database: Database) -> None:
    _ordered(database)
    database.execute("UPDATE oms_order SET expires_at = NOW(3) - INTERVAL 1 SECOND")


def _sold(database: Database) -> None:
    _paid(database)
    _confirm(database)


def _revivable(database: Database) -> None:
    """Money in time for an order that expired, where it may revive it; its old hold is still
    there."""
    _overdue(database)
    _expire(database)
    database.execute("UPDATE oms_order SET expires_at = '2030-01-01'")
    with pytest.MonkeyPatch.context() as patch:
        reinstating(patch)
        _pay(database)
    forget_settings()


def _revivable_in_vain(database: Database) -> None:
    _revivable(database)
    release(*_named_hold(database))
    _an_entry_takes(database, 1001, 10)


def _unmatched(database: Database) -> None:
    _ordered(database)
    accept(replace(a_notice(database), out_trade_no="nobody"))


def _reinstate(database: Database) -> object:
    return reinstate(database.value("SELECT id FROM oms_order"))


def _attach(database: Database) -> object:
    order_no = database.value("SELECT order_no FROM oms_order")
    return attach("T1", order_no, "operator:alice", "it is his")


def _place(_: Database) -> object:
    return place(place_command(LINES, member_id=MEMBER, key="k1"))


def _cancel(database: Database) -> object:
    return cancel(MEMBER, database.value("SELECT order_no FROM oms_order"))


def _pay(database: Database) -> object:
    return accept(a_notice(database))


def _refund(database: Database) -> object:
    return accept(a_notice(database, NoticeKind.REFUND))


def _ask_refund(database: Database) -> object:
    order_no = database.value("SELECT order_no FROM oms_order")
    return ask_refund(AskRefund(order_no, "k1", "alice", "broken", restock={1001: 1}))


def _give_back(_: Database) -> object:
    return give_back(GiveBack("T1", "alice", "nobody claims it"))


def _confirm(database: Database) -> object:
    return confirm(*_named_hold(database))


def _release(database: Database) -> object:
    return release(*_named_hold(database))


def _hold(database: Database) -> object:
    return hold(_named_hold(database)[1])


def _expire(database: Database) -> object:
    return expire(database.value("SELECT id FROM oms_order"))


def _named_hold(database: Database) -> tuple[str, int]:
    row = database.one("SELECT reservation_id, id FROM oms_order")
    return row["reservation_id"], row["id"]


def a_notice(database: Database, kind: NoticeKind = NoticeKind.PAYMENT) -> TradeNotice:
    """What Alipay says of the only order: the same notice for the same kind."""
    refunded = kind is NoticeKind.REFUND
    order = database.one("SELECT order_no, pay_amount FROM oms_order")
    at = datetime(2026, 11, 30, 4, 0, tzinfo=UTC)
    return TradeNotice(
        kind=kind,
        notify_id=f"N-{kind}",
        notify_type="trade_status_sync",
        app_id="2021000100000001",
        seller_id="2088000000000001",
        trade_status="TRADE_CLOSED" if refunded else "TRADE_SUCCESS",
        out_trade_no=order["order_no"],
        trade_no="T1",
        total_amount=order["pay_amount"],
        refund_fee=order["pay_amount"] if refunded else None,
        out_biz_no=None,
        gmt_payment=at,
        gmt_refund=at if refunded else None,
        gmt_close=None,
        subject="an order",
    )


def _start(database: Database) -> object:
    return start(database.value("SELECT order_no FROM oms_order"), member_id=MEMBER)


FLOWS = (
    Flow("place", _skus, _place),
    Flow("hold", _in_line, _hold),
    Flow("sell_out", _in_line_in_vain, _hold),
    Flow("expire", _overdue, _expire),
    Flow("cancel", _ordered, _cancel),
    Flow("pay", _ordered, _pay),
    Flow("pay_late", _cancelled, _pay),
    Flow("refund", _paid, _refund),
    Flow("start", _ordered, _start),
    Flow("ask_refund", _sold, _ask_refund),
    Flow("give_back", _unmatched, _give_back),
    Flow("reinstate", _revivable, _reinstate),
    Flow("reinstate_in_vain", _revivable_in_vain, _reinstate),
    Flow("attach", _unmatched, _attach),
    Flow("confirm", _paid, _confirm),
    Flow("release", _cancelled, _release),
)
