"""The product's own operations, as the experiments use them."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, NoReturn

from infra.measuring.ground import Ground
from lockstep.alipay.model import NoticeKind, TradeNotice
from lockstep.orders.model import Closed, Order, OutOfStock, Placed, PlaceOrder
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from lockstep.payments.cancel import cancel
from lockstep.payments.model import Result

PRICE: Final = Decimal("9.90")
ADD_SKU: Final = """
INSERT INTO ims_sku_stock (sku_id, title, price, stock, hot)
VALUES (%s, 'of an experiment', %s, %s, %s)
"""


def add_skus(ground: Ground, first: int, how_many: int, stock: int, *, hot: bool = False) -> None:
    ground.fill(ADD_SKU, [(first + n, PRICE, stock, hot) for n in range(how_many)])


def buy(sku_id: int, member_id: int, key: str) -> Order | None:
    """An order for one piece; None where none is left."""
    outcome = place(PlaceOrder(member_id, key, {sku_id: 1}, None, None))
    if isinstance(outcome, OutOfStock):
        return None
    if not isinstance(outcome, Placed):
        raise TypeError(f"an order that is neither placed nor refused: {outcome}")
    return outcome.order


def pay(order: Order) -> bool:
    """The channel's notice comes; True where the order is paid by it."""
    return accept(_notice(order)) is Result.APPLIED


def close(order: Order) -> bool:
    """Its member cancels it; True where that closed it."""
    return isinstance(cancel(order.member_id, order.order_no, _nobody), Closed)


def _nobody() -> NoReturn:
    raise RuntimeError("an order without a payment page needs no channel")


def _notice(order: Order) -> TradeNotice:
    return TradeNotice(
        kind=NoticeKind.PAYMENT,
        notify_id=f"notify-{order.order_no}",
        notify_type="trade_status_sync",
        app_id="2021000100000001",
        seller_id="2088000000000001",
        trade_status="TRADE_SUCCESS",
        out_trade_no=order.order_no,
        trade_no=f"trade-{order.order_no}",
        total_amount=order.pay_amount,
        refund_fee=None,
        out_biz_no=None,
        gmt_payment=datetime(2026, 11, 30, tzinfo=UTC),
        gmt_refund=None,
        gmt_close=None,
        subject="",
    )
