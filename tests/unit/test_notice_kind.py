"""What kind of notice it is: a payment, a refund, a close, an end, or one only to be stored.

Goal: no refund is ever taken for a payment, and no paid trade's close for an unpaid one's.
Method: one payment of 9.90, changed in what decides the kind and then signed as Alipay signs.
"""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from lockstep.alipay.model import NoticeKind, TradeNotice
from tests.support.reading import SIGNER, full_width, read, read_trade

REFUNDED_AT = "2026-10-25 09:00:00.123"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, NoticeKind.PAYMENT),
        ({"refund_fee": "0.00"}, NoticeKind.PAYMENT),
        ({"refund_fee": "", "gmt_refund": ""}, NoticeKind.PAYMENT),
        ({"gmt_close": "2026-10-24 10:00:06"}, NoticeKind.PAYMENT),
        ({"notify_type": None}, NoticeKind.PAYMENT),
        ({"refund_fee": "3.00", "gmt_refund": REFUNDED_AT, "out_biz_no": "R1"}, NoticeKind.REFUND),
        ({"refund_fee": "3.00"}, NoticeKind.REFUND),
        ({"gmt_refund": REFUNDED_AT}, NoticeKind.REFUND),
        ({"gmt_refund": "yesterday", "refund_fee": "0.00"}, NoticeKind.REFUND),
        ({"trade_status": "TRADE_CLOSED", "refund_fee": "9.90"}, NoticeKind.REFUND),
        ({"trade_status": "TRADE_CLOSED", "gmt_refund": REFUNDED_AT}, NoticeKind.REFUND),
        ({"trade_status": "TRADE_CLOSED", "gmt_payment": None}, NoticeKind.UNPAID_CLOSE),
        ({"trade_status": "TRADE_CLOSED", "refund_fee": "0"}, NoticeKind.UNPAID_CLOSE),
        ({"trade_status": "TRADE_FINISHED"}, NoticeKind.FINISHED),
        ({"trade_status": "TRADE_FINISHED", "refund_fee": "0.00"}, NoticeKind.FINISHED),
        ({"trade_status": "TRADE_FINISHED", "refund_fee": "3.00"}, NoticeKind.REFUND),
        ({"trade_status": "WAIT_BUYER_PAY"}, NoticeKind.OTHER),
        ({"trade_status": "WAIT_BUYER_PAY", "gmt_refund": REFUNDED_AT}, NoticeKind.OTHER),
        ({"trade_status": "TRADE_PENDING"}, NoticeKind.OTHER),
        ({"trade_status": "trade_success"}, NoticeKind.OTHER),
        ({"trade_status": None}, NoticeKind.OTHER),
        ({"notify_type": "open_app_auth_notify"}, NoticeKind.OTHER),
    ],
)
def test_the_kind_follows_from_status_and_evidence_of_a_refund(changes, kind):
    notice = read(SIGNER.body(**changes))
    assert notice.kind is kind
    assert isinstance(notice, TradeNotice) is (kind is not NoticeKind.OTHER)
    if isinstance(notice, TradeNotice):
        assert notice.report.kind is kind
        assert notice.report.is_finished is (changes.get("trade_status") == "TRADE_FINISHED")


def test_a_partial_refund_tells_sum_time_and_request():
    notice = read_trade(SIGNER.body(refund_fee="3", gmt_refund=REFUNDED_AT, out_biz_no="R1"))
    assert str(notice.refund_fee) == "3.00"
    assert notice.gmt_refund == datetime(2026, 10, 25, 1, 0, 0, 123000, tzinfo=UTC)
    assert notice.out_biz_no == "R1"
    assert notice.total_amount == Decimal("9.90")


def test_the_parameters_of_a_browsers_return_are_no_payment():
    """They are signed with the same key and shown to the buyer, who may post them to us."""
    shown = ("app_id", "auth_app_id", "charset", "out_trade_no", "seller_id", "total_amount")
    params = {name: SIGNER.base()[name] for name in (*shown, "trade_no", "version")}
    params |= {"method": "alipay.trade.page.pay.return", "timestamp": "2026-10-24 10:00:06"}
    assert read(SIGNER.encode(params)).kind is NoticeKind.OTHER


def test_other_notices_keep_the_ids_that_are_ids():
    kept = read(SIGNER.body(trade_status="WAIT_BUYER_PAY"))
    assert (kept.out_trade_no, kept.trade_no) == ("O1", "T1")
    assert (kept.notify_type, kept.trade_status) == ("trade_status_sync", "WAIT_BUYER_PAY")


@pytest.mark.parametrize("bad", [None, "", "é 1", "x" * 65, full_width("T1")])
def test_other_notices_need_neither_ids_nor_an_amount_nor_a_charset(bad):
    words = dict.fromkeys(("out_trade_no", "trade_no", "trade_status"), bad)
    notice = read(SIGNER.body(**words, total_amount="NaN", refund_fee="x", charset="utf-7"))
    assert notice.kind is NoticeKind.OTHER
    assert (notice.out_trade_no, notice.trade_no, notice.trade_status) == (None, None, None)
    unknown = read(SIGNER.body(notify_type=bad, trade_status="WAIT_BUYER_PAY"))
    assert unknown.notify_type is None
