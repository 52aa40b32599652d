"""What a genuine notice says: its name, amounts, times, ids and text, and whether it is for us.

Goal: every way to be right yields the typed notice, every way to be wrong its own named refusal.
Method: one payment of 9.90, changed in one thing and then signed as Alipay signs.
"""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from lockstep.alipay.model import NoticeKind, Refusal, TradeNotice
from tests.support.notices import APP_ID, SELLER_ID, NoticeSigner
from tests.support.reading import KEY, SIGNER, full_width, read, read_trade, refusal

REFUNDED_AT = "2026-10-25 09:00:00.123"
TRADE_STATUSES = ("TRADE_SUCCESS", "TRADE_CLOSED", "TRADE_FINISHED")


def test_a_payment_is_read_with_every_field_it_has():
    assert read(SIGNER.body()) == TradeNotice(
        kind=NoticeKind.PAYMENT,
        notify_id="N1",
        notify_type="trade_status_sync",
        app_id=APP_ID,
        seller_id=SELLER_ID,
        trade_status="TRADE_SUCCESS",
        out_trade_no="O1",
        trade_no="T1",
        total_amount=Decimal("9.90"),
        refund_fee=None,
        out_biz_no=None,
        gmt_payment=datetime(2026, 10, 24, 2, 0, 5, tzinfo=UTC),
        gmt_refund=None,
        gmt_close=None,
        subject="Order O1",
    )


# --- its name ------------------------------------------------------------------------------------


def test_every_delivery_of_a_notice_is_equal():
    first, second = (read(SIGNER.body(notify_time=at)) for at in ("10:00", "10:04"))
    assert first == second


@pytest.mark.parametrize("notify_id", [None, "", full_width("1"), "n" * 129, "N 1", "N\x001"])
def test_without_a_usable_notify_id_all_but_the_delivery_names_it(notify_id):
    def named(**changes: str | None) -> str:
        return read(SIGNER.body(notify_id=notify_id, **changes)).notify_id

    name = named(notify_time="10:00")
    assert name.startswith("sha256:")
    assert len(name) == 71
    assert named(notify_time="10:04") == named(notify_time=None) == name
    assert named(refund_fee="3.00", notify_time="10:00") != name


# --- its times and amounts -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gmt_payment", "gmt_refund", "gmt_close"])
@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-10-24 07:59:59", datetime(2026, 10, 23, 23, 59, 59, tzinfo=UTC)),
        ("2026-10-24 10:00:05.3", datetime(2026, 10, 24, 2, 0, 5, 300000, tzinfo=UTC)),
        ("2026-10-24 10:00:05.123456789", datetime(2026, 10, 24, 2, 0, 5, 123456, tzinfo=UTC)),
        ("2026-02-30 10:00:05", None),
        ("0001-01-01 00:00:00", None),
        ("2026-10-24 10:00:05+01:00", None),
        ("2026-10-24T10:00:05", None),
        (f"{full_width('2026')}-10-24 10:00:05", None),
        ("20261024", None),
        ("", None),
        (None, None),
    ],
)
def test_times_are_beijing_times_and_never_a_reason_to_refuse(name, text, time):
    read_time = getattr(read_trade(SIGNER.body(**{name: text})), name)
    assert read_time == time
    assert read_time is None or read_time.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "amount"),
    [("19", "19.00"), ("9.9", "9.90"), ("0.01", "0.01"), ("100000000.00", "100000000.00")],
)
def test_amounts_are_quantised_to_fen(text, amount):
    notice = read_trade(SIGNER.body(total_amount=text, refund_fee=text))
    assert (str(notice.total_amount), str(notice.refund_fee)) == (amount, amount)


NOT_AMOUNTS = (
    *("NaN", "Infinity", "1e1", "1_0.00", "-0", "-1", "+1", "1.", ".5", "1.000", "10.000"),
    *(" 9.90", "9.90\n", full_width("9.90"), "9,90", "0x9", "1234567890", "9.9\x00"),
)


@pytest.mark.parametrize("text", [*NOT_AMOUNTS, "0", "0.00", "", None])
@pytest.mark.parametrize("status", TRADE_STATUSES)
def test_a_total_amount_that_is_none_is_refused(status, text):
    body = SIGNER.body(trade_status=status, total_amount=text)
    assert refusal(body) is Refusal.AMOUNT_INVALID


@pytest.mark.parametrize("text", NOT_AMOUNTS)
@pytest.mark.parametrize("gmt_refund", [None, REFUNDED_AT])
def test_a_refund_fee_that_is_no_amount_is_refused(gmt_refund, text):
    body = SIGNER.body(refund_fee=text, gmt_refund=gmt_refund)
    assert refusal(body) is Refusal.AMOUNT_INVALID


def test_what_the_buyer_paid_and_the_shop_got_is_not_the_amount():
    notice = read_trade(SIGNER.body(receipt_amount="9.00", buyer_pay_amount="8.00"))
    assert notice.total_amount == Decimal("9.90")


def test_digits_in_names_and_subjects_are_not_the_amount():
    body = SIGNER.body(subject="支付 0.01 元", body="total_amount=0.01", buyer_logon_id="99.99")
    assert read_trade(body).total_amount == Decimal("9.90")


def test_a_wrong_amount_is_a_genuine_notice_for_the_order_to_judge():
    assert read_trade(SIGNER.body(total_amount="0.01")).total_amount == Decimal("0.01")


# --- its ids -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", TRADE_STATUSES)
@pytest.mark.parametrize(
    ("name", "missing", "malformed"),
    [
        ("out_trade_no", Refusal.OUT_TRADE_NO_MISSING, Refusal.OUT_TRADE_NO_MALFORMED),
        ("trade_no", Refusal.TRADE_NO_MISSING, Refusal.TRADE_NO_MALFORMED),
    ],
)
def test_a_trade_without_its_ids_is_refused(status, name, missing, malformed):
    for value in (None, ""):
        assert refusal(SIGNER.body(**{name: value, "trade_status": status})) is missing
    for value in (" ", full_width("2026"), "T\x001", "T\n", "T1\x7f", "É", "1" * 65, "1" * 129):
        assert refusal(SIGNER.body(**{name: value, "trade_status": status})) is malformed


def test_trade_no_is_held_to_a_narrower_alphabet():
    assert refusal(SIGNER.body(trade_no="T.1")) is Refusal.TRADE_NO_MALFORMED
    assert read(SIGNER.body(out_trade_no="shop.1/2")).out_trade_no == "shop.1/2"


@pytest.mark.parametrize("value", ["1", "20190815155618536-564-57", "2026_2", "9" * 64])
def test_ids_are_read_more_tolerantly_than_they_are_made(value):
    notice = read_trade(SIGNER.body(out_trade_no=value, trade_no=value, out_biz_no=value))
    assert (notice.out_trade_no, notice.trade_no, notice.out_biz_no) == (value,) * 3


@pytest.mark.parametrize("value", ["退款", "R 1", "r" * 65, ""])
def test_an_out_biz_no_that_is_no_id_is_left_out(value):
    assert read_trade(SIGNER.body(refund_fee="3.00", out_biz_no=value)).out_biz_no is None


# --- its text ------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["gbk", "gb18030", "utf-8"])
def test_the_signature_covers_bytes_and_the_signed_charset_reads_them(codec):
    for label in (codec, codec.upper()):
        params = SIGNER.base(charset=label, subject="测试订单")
        assert read_trade(SIGNER.encode(params, codec)).subject == "测试订单"


def test_gb2312_is_read_with_its_superset():
    name = "朱镕基"  # its second character is not in GB 2312
    assert (
        read_trade(SIGNER.encode(SIGNER.base(charset="gb2312", subject=name), "gbk")).subject
        == name
    )


@pytest.mark.parametrize("charset", [None, ""])
def test_without_a_charset_it_is_utf8(charset):
    assert read_trade(SIGNER.body(charset=charset, subject="测试")).subject == "测试"


@pytest.mark.parametrize("charset", ["utf-7", "idna", "unicode_escape", "big5", "x" * 99, "ÿ"])
def test_a_charset_outside_the_list_is_refused(charset):
    assert refusal(SIGNER.body(charset=charset)) is Refusal.CHARSET_REFUSED


def test_what_cannot_be_decoded_is_replaced_in_text_for_people():
    params = SIGNER.base(charset="utf-8", subject="测试")
    assert "\ufffd" in read_trade(SIGNER.encode(params, "gbk")).subject


# --- for us? -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["TRADE_SUCCESS", "WAIT_BUYER_PAY"])
@pytest.mark.parametrize("app_id", ["2021000100000002", f"{APP_ID} ", "", None])
def test_a_genuine_notice_for_another_app_is_refused(status, app_id):
    body = SIGNER.body(app_id=app_id, trade_status=status)
    assert refusal(body) is Refusal.APP_ID_MISMATCH


def test_an_app_id_that_was_never_configured_matches_nothing():
    assert refusal(SIGNER.body(app_id=None), app_id="") is Refusal.APP_ID_MISMATCH


@pytest.mark.parametrize("status", ["TRADE_SUCCESS", "WAIT_BUYER_PAY"])
def test_a_genuine_notice_for_another_payee_is_refused(status):
    body = SIGNER.body(seller_id="2088000000000009", trade_status=status)
    assert refusal(body) is Refusal.SELLER_ID_MISMATCH
    assert refusal(body, seller_ids=frozenset()) is Refusal.SELLER_ID_MISMATCH


@pytest.mark.parametrize("seller_id", [None, ""])
def test_a_missing_payee_passes_only_where_there_is_one(seller_id):
    body = SIGNER.body(seller_id=seller_id)
    assert read(body).seller_id is None
    assert refusal(body, seller_ids=frozenset({SELLER_ID, "2"})) is Refusal.SELLER_ID_MISMATCH
    assert refusal(body, seller_ids=frozenset()) is Refusal.SELLER_ID_MISMATCH


def test_any_configured_payee_will_do():
    assert read(SIGNER.body(), seller_ids=frozenset({"2", SELLER_ID})).seller_id == SELLER_ID


def test_while_a_key_is_changed_both_count():
    new = NoticeSigner()
    for signer in (SIGNER, new):
        assert read(signer.body(), keys=[new.key.public_key(), KEY]).notify_id == "N1"
