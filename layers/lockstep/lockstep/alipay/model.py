"""What a notice of Alipay's can say, and why one can be refused.

Apart from `notice`, so that whoever acts on a notice needs no cryptography to be installed.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


class Refusal(StrEnum):
    """Why a notice is refused: cheap questions first, the signature, then what it signed."""

    BODY_UNREADABLE = "BODY_UNREADABLE"
    PARAMETER_DUPLICATED = "PARAMETER_DUPLICATED"
    SIGN_TYPE_REFUSED = "SIGN_TYPE_REFUSED"
    SIGNATURE_INVALID = "SIGNATURE_INVALID"
    PARAMETER_AMBIGUOUS = "PARAMETER_AMBIGUOUS"
    APP_ID_MISMATCH = "APP_ID_MISMATCH"
    SELLER_ID_MISMATCH = "SELLER_ID_MISMATCH"
    CHARSET_REFUSED = "CHARSET_REFUSED"
    OUT_TRADE_NO_MISSING = "OUT_TRADE_NO_MISSING"
    OUT_TRADE_NO_MALFORMED = "OUT_TRADE_NO_MALFORMED"
    TRADE_NO_MISSING = "TRADE_NO_MISSING"
    TRADE_NO_MALFORMED = "TRADE_NO_MALFORMED"
    AMOUNT_INVALID = "AMOUNT_INVALID"


class NoticeRefused(Exception):
    """The body is not a notice for us.

    `code` says why. `detail` is a sentence for the log and quotes no value of the notice.
    """

    def __init__(self, code: Refusal, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class NoticeKind(StrEnum):
    """What a notice says, by its status and by whether it shows that money went back.

    The status alone does not tell: a partial refund is sent as TRADE_SUCCESS, and TRADE_CLOSED is
    either an unpaid trade that timed out or a fully refunded one.
    """

    PAYMENT = "PAYMENT"  # TRADE_SUCCESS, nothing refunded
    REFUND = "REFUND"  # TRADE_SUCCESS, TRADE_CLOSED or TRADE_FINISHED, something refunded
    UNPAID_CLOSE = "UNPAID_CLOSE"  # TRADE_CLOSED, nothing refunded
    FINISHED = "FINISHED"  # TRADE_FINISHED, nothing refunded
    OTHER = "OTHER"  # WAIT_BUYER_PAY, a status we do not know, or not about a trade


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeReport:
    """What the channel says of a trade, in a notice or when it was asked.

    Amounts are yuan, quantised to fen; times are aware, in UTC. `refund_fee` is the total refunded
    so far, `named_amount` what the refund `out_biz_no` is alone; None: not said. `told_by` names
    the source for the trail: a notify_id, or `query`.
    """

    kind: NoticeKind
    out_trade_no: str
    trade_no: str
    total_amount: Decimal
    refund_fee: Decimal | None
    out_biz_no: str | None
    gmt_payment: datetime | None
    gmt_close: datetime | None
    is_finished: bool
    told_by: str
    named_amount: Decimal | None = None

    @property
    def evidence(self) -> dict[str, str]:
        """What the trail keeps of it."""
        return {"trade_no": self.trade_no, "told_by": self.told_by}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A verified notice. As it stands, of kind OTHER: to be stored and acknowledged, no more.

    All text is ASCII and fits the length in brackets. `notify_id` (128) is the same over all
    deliveries of one notice. None: absent, or of no use as an id or a word.
    """

    kind: NoticeKind
    notify_id: str
    notify_type: str | None  # (64)
    app_id: str
    seller_id: str | None
    trade_status: str | None  # (64)
    out_trade_no: str | None  # (64)
    trade_no: str | None  # (64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeNotice(Notice):
    """A notice that moves a trade, of any kind but OTHER: it has its ids and its amount.

    Amounts are yuan, quantised to fen. `total_amount` is what the trade was created with, above 0,
    also in a refund notice. `refund_fee` is the total refunded so far, and 0.00 or None does not
    mean that nothing was. Times are aware, in UTC; None if absent or unreadable.
    """

    trade_status: str
    out_trade_no: str
    trade_no: str
    total_amount: Decimal
    refund_fee: Decimal | None
    out_biz_no: str | None  # (64) the out_request_no of the refund that caused this notice
    gmt_payment: datetime | None
    gmt_refund: datetime | None
    gmt_close: datetime | None
    subject: str  # for people only: undecodable bytes are replaced

    @property
    def report(self) -> TradeReport:
        """What it says of its trade."""
        return TradeReport(
            kind=self.kind,
            out_trade_no=self.out_trade_no,
            trade_no=self.trade_no,
            total_amount=self.total_amount,
            refund_fee=self.refund_fee,
            out_biz_no=self.out_biz_no,
            gmt_payment=self.gmt_payment,
            gmt_close=self.gmt_close,
            # True of some REFUND notices too: the refund window is over.
            is_finished=self.trade_status == "TRADE_FINISHED",
            told_by=self.notify_id,
        )
