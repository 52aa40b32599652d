"""Alipay's asynchronous notice: from the bytes that arrived to a verified, typed value.

    bytes ─ form ─ signature ─ addressee ─ kind ─ the fields which that kind needs ─ Notice

Pure: no clock, no network, no database. Every value in a `Notice` was signed by one of the given
keys; whatever else arrives raises `NoticeRefused` and nothing but that. Whether the order exists,
whether the amount is the order's and whether the trade is known are questions for the database.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from lockstep import beijing
from lockstep.alipay.envelope import SIGN_TYPE
from lockstep.alipay.form import lasting_id, read_form, signed_content, unambiguous_fields
from lockstep.alipay.keys import PublicKey, is_signed
from lockstep.alipay.model import Notice, NoticeKind, NoticeRefused, Refusal, TradeNotice
from lockstep.money import FEN

# An allow-list, because Python knows codecs such as utf-7 and idna too. What is labelled gb2312 or
# gbk is read with the superset of both, since senders rarely keep to the smaller sets.
_CODECS: Final = {"": "utf-8", "utf-8": "utf-8"} | dict.fromkeys(
    ("gb2312", "gbk", "gb18030"), "gb18030"
)

# Ids are read more tolerantly than they are made: genuine notices carry out_trade_nos with dashes.
_OUR_ID: Final = re.compile(r"[!-~]{1,64}")
_TRADE_NO: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOTIFY_ID: Final = re.compile(r"[!-~]{1,128}")
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
# Decimal() itself also takes NaN, 1e1, 1_0, blanks around and full-width digits.
_AMOUNT: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,2})?")

# The parameters that are read: those that decide something, and what is only shown to people.
_DECIDING: Final = (
    "app_id",
    "charset",
    "gmt_close",
    "gmt_payment",
    "gmt_refund",
    "notify_id",
    "notify_time",
    "notify_type",
    "out_biz_no",
    "out_trade_no",
    "refund_fee",
    "seller_id",
    "total_amount",
    "trade_no",
    "trade_status",
)
_DISPLAYED: Final = ("subject",)

_KIND_WITHOUT_REFUND: Final = {
    "TRADE_SUCCESS": NoticeKind.PAYMENT,
    "TRADE_CLOSED": NoticeKind.UNPAID_CLOSE,
    "TRADE_FINISHED": NoticeKind.FINISHED,
}


def verify_and_parse(
    body: bytes, keys: Sequence[PublicKey], app_id: str, seller_ids: frozenset[str]
) -> Notice:
    """Turn the body of a notice into a Notice: a TradeNotice, or one of kind OTHER.

    `keys` are the keys that Alipay may have signed with: one, or two while a key is changed. The
    notice must be for `app_id` and one of the payees `seller_ids`; it may leave the payee out only
    where there is a single one. Raises NoticeRefused.
    """
    params = read_form(body)
    _check_signature(params, keys)
    fields = unambiguous_fields(params, _DECIDING, _DISPLAYED)
    _check_addressee(fields, app_id, seller_ids)
    notify_id = _matched(_NOTIFY_ID, fields["notify_id"]) or lasting_id(params)
    return _read_notice(fields, notify_id)


def _check_signature(params: Mapping[str, str], keys: Sequence[PublicKey]) -> None:
    # Notices leave sign_type itself unsigned, so it may not choose the hash: that would let anyone
    # fall back to SHA-1. Left out, it means the one that we require.
    if params.get("sign_type", SIGN_TYPE) != SIGN_TYPE:
        raise NoticeRefused(Refusal.SIGN_TYPE_REFUSED, f"sign_type is not {SIGN_TYPE}")
    if not is_signed(signed_content(params), params.get("sign", ""), keys):
        raise NoticeRefused(Refusal.SIGNATURE_INVALID, "signed by none of the keys")


def _check_addressee(fields: Mapping[str, str], app_id: str, seller_ids: frozenset[str]) -> None:
    """One key signs for every app and payee of a merchant: the signature proves only the origin."""
    if not fields["app_id"] or fields["app_id"] != app_id:
        raise NoticeRefused(Refusal.APP_ID_MISMATCH, "not our app_id")
    if fields["seller_id"] not in seller_ids and (fields["seller_id"] or len(seller_ids) != 1):
        raise NoticeRefused(Refusal.SELLER_ID_MISMATCH, "not one of our payees")


def _read_notice(fields: Mapping[str, str], notify_id: str) -> Notice:
    kind = _classify(fields)
    if kind is not NoticeKind.OTHER:
        return _read_trade_notice(fields, notify_id, kind)
    return Notice(
        kind=kind,
        notify_id=notify_id,
        notify_type=_matched(_WORD, fields["notify_type"]),
        app_id=fields["app_id"],
        seller_id=fields["seller_id"] or None,
        trade_status=_matched(_WORD, fields["trade_status"]),
        out_trade_no=_matched(_OUR_ID, fields["out_trade_no"]),
        trade_no=_matched(_TRADE_NO, fields["trade_no"]),
    )


def _classify(fields: Mapping[str, str]) -> NoticeKind:
    """Tell the kind by the status and by evidence that money went back.

    Evidence is a time of a refund, even an unreadable one, or a sum above 0. That refund_fee is
    present shows nothing: Alipay sends `refund_fee=0.00` without any refund.
    """
    if fields["notify_type"] not in ("", "trade_status_sync"):
        return NoticeKind.OTHER  # other messages may share the address
    if (kind := _KIND_WITHOUT_REFUND.get(fields["trade_status"])) is None:
        return NoticeKind.OTHER
    refunded = fields["gmt_refund"] or _refund_fee(fields["refund_fee"])
    return NoticeKind.REFUND if refunded else kind


def _read_trade_notice(fields: Mapping[str, str], notify_id: str, kind: NoticeKind) -> TradeNotice:
    return TradeNotice(
        kind=kind,
        notify_id=notify_id,
        notify_type=fields["notify_type"] or None,
        app_id=fields["app_id"],
        seller_id=fields["seller_id"] or None,
        trade_status=fields["trade_status"],
        subject=_decoded(fields["subject"], fields["charset"]),
        out_trade_no=_required_id(
            _OUR_ID,
            fields["out_trade_no"],
            Refusal.OUT_TRADE_NO_MISSING,
            Refusal.OUT_TRADE_NO_MALFORMED,
        ),
        trade_no=_required_id(
            _TRADE_NO, fields["trade_no"], Refusal.TRADE_NO_MISSING, Refusal.TRADE_NO_MALFORMED
        ),
        total_amount=_total_amount(fields["total_amount"]),
        refund_fee=_refund_fee(fields["refund_fee"]),
        out_biz_no=_matched(_OUR_ID, fields["out_biz_no"]),
        gmt_payment=_utc(fields["gmt_payment"]),
        gmt_refund=_utc(fields["gmt_refund"]),
        gmt_close=_utc(fields["gmt_close"]),
    )


def _matched(pattern: re.Pattern[str], value: str) -> str | None:
    return value if pattern.fullmatch(value) else None


def _required_id(pattern: re.Pattern[str], value: str, missing: Refusal, malformed: Refusal) -> str:
    if not value:
        raise NoticeRefused(missing, "absent or blank")
    if not pattern.fullmatch(value):
        raise NoticeRefused(malformed, f"not {pattern.pattern}")
    return value


def _total_amount(value: str) -> Decimal:
    amount = _yuan(value, "total_amount")
    if amount == 0:
        raise NoticeRefused(Refusal.AMOUNT_INVALID, "total_amount is zero")
    return amount


def _refund_fee(value: str) -> Decimal | None:
    return _yuan(value, "refund_fee") if value else None


def _yuan(value: str, name: str) -> Decimal:
    if not _AMOUNT.fullmatch(value):
        raise NoticeRefused(Refusal.AMOUNT_INVALID, f"{name} is not an amount in yuan")
    return Decimal(value).quantize(FEN)


def _decoded(value: str, charset: str) -> str:
    codec = _CODECS.get(charset.lower())
    if codec is None:
        raise NoticeRefused(Refusal.CHARSET_REFUSED, "charset is none of those that Alipay uses")
    return value.encode("latin-1").decode(codec, errors="replace")


def _utc(text: str) -> datetime | None:
    """A time is evidence and never decides whether money is taken: None rather than a refusal."""
    try:
        return beijing.read(text)
    except ValueError:  # the 31st of June
        return None
