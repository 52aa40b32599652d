"""Decide what was said of a trade: by a stored notice, or by the channel when it was asked.

    order -> attempt -> payment -> the order's transition -> outbox, in the caller's transaction

A notice that speaks of a payment which is not known yet waits; it is decided from its own content
as soon as the payment is, however that came to be known.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Final

from lockstep.alipay.answers import Trade
from lockstep.alipay.model import NoticeKind, TradeNotice, TradeReport
from lockstep.alipay.told import reports_of
from lockstep.db.transaction import Tx
from lockstep.orders import store as orders
from lockstep.payments import store
from lockstep.payments.model import PROVIDER, NoticeState, Result, Settled
from lockstep.payments.settle import settle

_NOTICE_STATE: Final = {
    Result.QUERY_DUE: NoticeState.QUERY_DUE,
    Result.UNMATCHED: NoticeState.UNMATCHED,
    Result.CONFLICT: NoticeState.CONFLICT,
}


def decide(
    tx: Tx,
    notice: TradeNotice,
    notice_id: int,
    stored: NoticeState,
    named_amount: Decimal | None = None,
) -> Result:
    """Do what ``notice``, whose inbox row the caller has locked, says; keep what it came to.
    ``named_amount`` is what the channel said of the refund that it names."""
    settled = _settle(tx, replace(notice.report, named_amount=named_amount))
    finish(tx, notice_id, settled, stored)
    return settled.result


def hear(tx: Tx, trade: Trade) -> Settled | None:
    """Do what the channel says of ``trade``: the same as if its notices had come in their order.

    What the last of them came to; None where it says nothing yet. Repeat: nothing changes.
    """
    settled = None
    for report in reports_of(trade):
        settled = _settle(tx, report)
    return settled


def finish(tx: Tx, notice_id: int, settled: Settled, stored: NoticeState) -> None:
    state = _NOTICE_STATE.get(settled.result, NoticeState.DONE)
    if state is not stored or settled.reason is not None:
        store.finish_notice(tx, notice_id, state, settled.reason)


def _settle(tx: Tx, report: TradeReport) -> Settled:
    order = orders.lock_order_of_trade(tx, report.out_trade_no, PROVIDER, report.trade_no)
    payment, has_due_notices = store.lock_payment(tx, PROVIDER, report.trade_no)
    settled = settle(tx, report, order, payment)
    if has_due_notices and report.kind is NoticeKind.PAYMENT:
        _decide_waiting(tx, report.trade_no)
    return settled


def _decide_waiting(tx: Tx, trade_no: str) -> None:
    """Decide what came before this payment. None of it is a payment, so it goes one level deep."""
    for due_id, due in store.read_due_notices(tx, PROVIDER, trade_no):
        decide(tx, due, due_id, NoticeState.QUERY_DUE)
