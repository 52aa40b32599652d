"""What the channel's answer about a trade says, in the words of its notices."""

from dataclasses import replace
from typing import Final, assert_never

from lockstep.alipay.answers import Trade, TradeStatus
from lockstep.alipay.model import NoticeKind, TradeReport

TOLD_BY: Final = "query"


def reports_of(trade: Trade) -> tuple[TradeReport, ...]:
    """The notices that ``trade`` amounts to, in the order in which they would have come; none
    where nobody can say yet what became of it.

    A closed trade that was paid once has been refunded in full: a part leaves it open.
    """
    paid = _report(trade, NoticeKind.PAYMENT)
    match trade.status:
        case TradeStatus.WAIT_BUYER_PAY:
            return ()
        case TradeStatus.TRADE_SUCCESS:
            return (paid,) if trade.is_settled else ()
        case TradeStatus.TRADE_FINISHED:
            return (paid, replace(_report(trade, NoticeKind.FINISHED), is_finished=True))
        case TradeStatus.TRADE_CLOSED if trade.paid_at is None:
            return (_report(trade, NoticeKind.UNPAID_CLOSE),)
        case TradeStatus.TRADE_CLOSED:
            refund = _report(trade, NoticeKind.REFUND)
            return (paid, replace(refund, refund_fee=trade.total_amount))
        case _:
            assert_never(trade.status)


def _report(trade: Trade, kind: NoticeKind) -> TradeReport:
    return TradeReport(
        kind=kind,
        out_trade_no=trade.out_trade_no,
        trade_no=trade.trade_no,
        total_amount=trade.total_amount,
        refund_fee=None,
        out_biz_no=None,
        gmt_payment=trade.paid_at,
        gmt_close=None,
        is_finished=False,
        told_by=TOLD_BY,
    )
