"""An order in Alipay's words: what the three ways to begin a payment have in common."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

from lockstep import beijing
from lockstep.money import show_yuan

type Product = Literal["page", "wap"]

# Method and product code: what a shop signs up for is one product, and a page of another is none.
PAGES: Final[Mapping[Product, tuple[str, str]]] = {
    "page": ("alipay.trade.page.pay", "FAST_INSTANT_TRADE_PAY"),
    "wap": ("alipay.trade.wap.pay", "QUICK_WAP_WAY"),
}
QR_PRODUCT: Final = "FACE_TO_FACE_PAYMENT"

SUBJECT_LENGTH_MAX: Final = 256
_NOT_IN_A_SUBJECT: Final = str.maketrans(dict.fromkeys("/=&", " "))


def order_content(
    out_trade_no: str, amount: Decimal, subject: str, expires_at: datetime, product_code: str
) -> dict[str, str]:
    """What is to be paid, by when, and under which of the shop's products."""
    return {
        "out_trade_no": out_trade_no,
        "total_amount": show_yuan(amount),
        "subject": _subject(subject) or out_trade_no,
        # Absolute: from when a relative one is counted differs by product.
        "time_expire": beijing.written(expires_at),
        "product_code": product_code,
    }


def _subject(text: str) -> str:
    """What Alipay takes as a subject: no `/ = &`, nothing that cannot be seen, 256 characters."""
    words = text.translate(_NOT_IN_A_SUBJECT).split()
    return "".join(c for c in " ".join(words) if c.isprintable())[:SUBJECT_LENGTH_MAX].strip()
