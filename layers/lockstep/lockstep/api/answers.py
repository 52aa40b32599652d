"""How a command's outcome is answered."""

from typing import assert_never

from aws_lambda_powertools.event_handler import Response

from lockstep.api.app import answer
from lockstep.api.problems import problem
from lockstep.api.views import show_order, show_started
from lockstep.money import show_yuan
from lockstep.orders.model import (
    AmountRefused,
    CancelOutcome,
    CancelRequested,
    Closed,
    InFlight,
    KeyReused,
    NotCancellable,
    Order,
    OrderNotFound,
    OrderStatus,
    OutOfStock,
    Placed,
    PlaceOutcome,
    Replayed,
    SkuUnknown,
)
from lockstep.orders.query import reload
from lockstep.payments.model import NotPayable, Started, StartOutcome, StockNotHeld, TimeOver

# A front end that polls: soon for a lock that clears in moments, later for the gateway's word.
_LOCK_CLEARS_SECONDS = 1
_GATEWAY_ANSWERS_SECONDS = 5


def to_place(outcome: PlaceOutcome) -> Response[str]:
    """The answer to POST /orders."""
    match outcome:
        case Placed(order):
            return _placed(201, order, created=True)
        case Replayed(order):
            return _placed(200, order, created=False)
        case InFlight():
            document = {"request_state": "PROCESSING"}
            return answer(202, document, retry_after_seconds=_LOCK_CLEARS_SECONDS)
        case KeyReused():
            return problem("IDEMPOTENCY_KEY_REUSED")
        case SkuUnknown(sku_ids):
            return problem("SKU_UNKNOWN", sku_ids=list(sku_ids))
        case AmountRefused(code, pay_amount):
            return problem(code, pay_amount=show_yuan(pay_amount))
        case OutOfStock():
            return _out_of_stock(outcome)
        case _:
            assert_never(outcome)


def to_cancel(outcome: CancelOutcome) -> Response[str]:
    """The answer to POST /orders/{order_no}/cancel."""
    match outcome:
        case Closed(order_id):
            return answer(200, {"order": show_order(reload(order_id))})
        case CancelRequested(order_id):
            document = {"order": show_order(reload(order_id))}
            return answer(202, document, retry_after_seconds=_GATEWAY_ANSWERS_SECONDS)
        case NotCancellable(status):
            return problem("ORDER_NOT_CANCELLABLE", order_status=status)
        case OrderNotFound():
            return problem("ORDER_NOT_FOUND")
        case _:
            assert_never(outcome)


def to_start(outcome: StartOutcome) -> Response[str]:
    """The answer to POST /orders/{order_no}/payments."""
    match outcome:
        case Started(_, _, repeated):
            return answer(200 if repeated else 201, show_started(outcome))
        case NotPayable(status):
            return problem("ORDER_NOT_PAYABLE", order_status=status)
        case StockNotHeld():
            return problem("STOCK_NOT_HELD")
        case TimeOver():
            return problem("ORDER_EXPIRED")
        case OrderNotFound():
            return problem("ORDER_NOT_FOUND")
        case _:
            assert_never(outcome)


def _placed(status: int, order: Order, *, created: bool) -> Response[str]:
    document = {"request_state": "SUCCESS", "created": created, "order": show_order(order)}
    in_line = order.status is OrderStatus.RESERVING
    return answer(status, document, retry_after_seconds=_LOCK_CLEARS_SECONDS if in_line else None)


def _out_of_stock(outcome: OutOfStock) -> Response[str]:
    lines = [
        {"sku_id": line.sku_id, "wanted": line.wanted, "available": line.available}
        for line in outcome.lines
    ]
    own_orders = {"own_orders": list(outcome.own_orders)} if outcome.own_orders else {}
    return problem("OUT_OF_STOCK", lines=lines, **own_orders)
