"""How an operator's command is answered, and what operators see of money."""

from typing import assert_never

from aws_lambda_powertools.event_handler import Response

from lockstep.api.app import answer
from lockstep.api.problems import problem
from lockstep.api.views import View, show_order, show_time
from lockstep.money import show_yuan
from lockstep.orders.model import OrderNotFound
from lockstep.orders.query import reload
from lockstep.payments.ask_refund import (
    Asked,
    AskOutcome,
    NotRefundable,
    RefundKeyReused,
    RefundTooLarge,
    RestockRefused,
)
from lockstep.payments.give_back import GiveBackOutcome, GivenBack
from lockstep.payments.model import (
    Attached,
    AttachOutcome,
    OrderTakesNone,
    PaymentNotFound,
    PaymentNotWaiting,
)
from lockstep.payments.refund_model import Refund, WaitingMoney


def to_refund(outcome: AskOutcome) -> Response[str]:
    """The answer to POST /ops/orders/{order_no}/refunds."""
    match outcome:
        case Asked():
            document = {
                "refund": show_refund(outcome.refund, outcome.trade_no),
                "order": show_order(reload(outcome.order_id)),
            }
            return answer(200 if outcome.repeated else 201, document)
        case RefundKeyReused():
            return problem("IDEMPOTENCY_KEY_REUSED")
        case RefundTooLarge(refundable):
            return problem("REFUND_TOO_LARGE", refundable=show_yuan(refundable))
        case NotRefundable(status):
            return problem("ORDER_NOT_REFUNDABLE", order_status=status)
        case RestockRefused(lines):
            return problem(
                "RESTOCK_REFUSED",
                lines=[
                    {
                        "sku_id": line.sku_id,
                        "wanted": line.wanted,
                        "returnable": line.returnable,
                    }
                    for line in lines
                ],
            )
        case OrderNotFound():
            return problem("ORDER_NOT_FOUND")
        case _:
            assert_never(outcome)


def to_give_back(outcome: GiveBackOutcome) -> Response[str]:
    """The answer to POST /ops/payments/{trade_no}/refund."""
    match outcome:
        case GivenBack(payment, refund):
            payment_view = {
                "trade_no": payment.trade_no,
                "amount": show_yuan(payment.amount),
                "refunded_amount": show_yuan(payment.refunded_amount),
                "state": payment.state,
            }
            refund_view = show_refund(refund, payment.trade_no)
            return answer(200, {"payment": payment_view, "refund": refund_view})
        case RefundTooLarge(left):
            return problem("REFUND_TOO_LARGE", refundable=show_yuan(left))
        case RefundKeyReused():
            return problem("IDEMPOTENCY_KEY_REUSED")
        case PaymentNotWaiting(state):
            return problem("PAYMENT_NOT_WAITING", payment_state=state)
        case PaymentNotFound():
            return problem("PAYMENT_NOT_FOUND")
        case _:
            assert_never(outcome)


def to_attach(trade_no: str, outcome: AttachOutcome) -> Response[str]:
    """The answer to POST /ops/payments/{trade_no}/attach."""
    match outcome:
        case Attached(state, repeated):
            document = {"trade_no": trade_no, "state": state, "repeated": repeated}
            return answer(200, document)
        case PaymentNotFound():
            return problem("PAYMENT_NOT_FOUND")
        case PaymentNotWaiting(state):
            return problem("PAYMENT_NOT_WAITING", payment_state=state)
        case OrderTakesNone(status, reason):
            return problem("ORDER_TAKES_NONE", order_status=status, payment_reason=reason)
        case OrderNotFound():
            return problem("ORDER_NOT_FOUND")
        case _:
            assert_never(outcome)


def show_refund(refund: Refund, trade_no: str) -> View:
    return {
        "out_request_no": refund.out_request_no,
        "trade_no": trade_no,
        "amount": show_yuan(refund.amount),
        "state": refund.state,
        "code": refund.code,
        "requested_by": refund.requested_by,
        "reason": refund.reason,
    }


def show_waiting(payment: WaitingMoney) -> View:
    failed = None
    if payment.out_request_no is not None and payment.refund_amount is not None:
        failed = {
            "out_request_no": payment.out_request_no,
            "amount": show_yuan(payment.refund_amount),
            "code": payment.refund_code,
        }
    return {
        "provider": payment.provider,
        "trade_no": payment.trade_no,
        "out_trade_no": payment.out_trade_no,
        "order_no": payment.order_no,
        "amount": show_yuan(payment.amount),
        "refunded_amount": show_yuan(payment.refunded_amount),
        "state": payment.state,
        "reason": payment.reason,
        "paid_at": show_time(payment.paid_at),
        "failed_refund": failed,
    }
