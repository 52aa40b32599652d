"""The SQL of oms_money_entry: every yuan that came or went back, once, and never changed.

Written in the transaction that records the payment or finds the refund done. `source` names what
happened, so that a second entry for it meets the unique key.
"""

from decimal import Decimal
from typing import Final

from lockstep.db.transaction import Tx

INSERT_ENTRY: Final = """
INSERT INTO oms_money_entry (order_id, payment_id, kind, amount, source)
VALUES (%s, %s, %s, %s, %s)
"""


def book_payment(
    tx: Tx, order_id: int | None, payment_id: int, provider: str, trade_no: str, amount: Decimal
) -> None:
    """``amount`` yuan came. ``order_id`` is None while the money fits no order; what it came to
    later is the payment's to say."""
    source = f"payment:{provider}:{trade_no}"
    tx.insert(INSERT_ENTRY, (order_id, payment_id, "PAYMENT", amount, source))


def book_refund(
    tx: Tx,
    order_id: int | None,
    payment_id: int,
    provider: str,
    trade_no: str,
    out_request_no: str,
    amount: Decimal,
) -> None:
    """``amount`` yuan, above 0, went back."""
    source = f"refund:{provider}:{trade_no}:{out_request_no}"
    tx.insert(INSERT_ENTRY, (order_id, payment_id, "REFUND", -amount, source))
