"""Alipay's books and ours, side by side."""

from collections import Counter
from decimal import Decimal
from typing import NamedTuple

from infra.local.alipay_gateway.books import Books
from infra.local.alipay_gateway.shapes import Status, Trade
from tests.support.database import Database


class Money(NamedTuple):
    """A trade as both know it."""

    out_trade_no: str
    amount: Decimal
    refunded: Decimal


class Back(NamedTuple):
    """A refund that we asked for."""

    trade_no: str
    out_request_no: str
    amount: Decimal


def assert_agree(database: Database, books: Books) -> None:
    """Every trade and every refund of ours is in both, and each refund was done once."""
    paid, back = theirs(books), executed(books)
    assert ours(database) == paid, f"trades at Alipay's: {paid}"
    assert in_the_ledger(database) == paid, f"trades at Alipay's: {paid}"
    assert done(database) == back, f"refunds at Alipay's: {back}"
    numbers = Counter(refund.out_request_no for refund in back.elements())
    assert set(numbers.values()) <= {1}, numbers


def paid_trades(books: Books) -> dict[str, Trade]:
    return {trade.trade_no: trade for trade in books.trades() if trade.paid_at is not None}


def theirs(books: Books) -> dict[str, Money]:
    return {
        trade_no: Money(trade.out_trade_no, trade.amount, trade.refunded)
        for trade_no, trade in paid_trades(books).items()
    }


def ours(database: Database) -> dict[str, Money]:
    rows = database.rows(
        "SELECT trade_no, out_trade_no, amount, refunded_amount FROM oms_order_payment"
    )
    return {
        row["trade_no"]: Money(row["out_trade_no"], row["amount"], row["refunded_amount"])
        for row in rows
    }


def in_the_ledger(database: Database) -> dict[str, Money]:
    """The same, from the entries alone."""
    rows = database.rows(
        "SELECT p.trade_no, p.out_trade_no, "
        "SUM(IF(m.kind = 'PAYMENT', m.amount, 0)) AS came, "
        "SUM(IF(m.kind = 'REFUND', -m.amount, 0)) AS went "
        "FROM oms_money_entry AS m JOIN oms_order_payment AS p ON p.id = m.payment_id "
        "GROUP BY p.trade_no, p.out_trade_no"
    )
    return {row["trade_no"]: Money(row["out_trade_no"], row["came"], row["went"]) for row in rows}


def executed(books: Books) -> Counter[Back]:
    """Every refund that the channel did under a number of ours."""
    return Counter(
        Back(trade.trade_no, refund.out_request_no, refund.amount)
        for trade in books.trades()
        for refund in trade.refunds
        if not refund.out_request_no.startswith("console")
    )


def done(database: Database) -> Counter[Back]:
    """Every refund that we asked for and know to be done."""
    rows = database.rows(
        "SELECT p.trade_no, r.out_request_no, r.amount FROM oms_refund AS r "
        "JOIN oms_order_payment AS p ON p.id = r.payment_id "
        "WHERE r.state = 'DONE' AND r.requested_by <> 'alipay'"
    )
    return Counter(Back(*row.values()) for row in rows)


def failed(database: Database) -> list[Back]:
    """Every refund that the channel would not do: it waits for a person."""
    rows = database.rows(
        "SELECT p.trade_no, r.out_request_no, r.amount FROM oms_refund AS r "
        "JOIN oms_order_payment AS p ON p.id = r.payment_id WHERE r.state = 'FAILED'"
    )
    return [Back(*row.values()) for row in rows]


def cannot_be_done(refund: Back, trade: Trade) -> bool:
    """Whether the channel has a reason: its last day is over, or so much is not left."""
    return trade.status is Status.TRADE_FINISHED or refund.amount > trade.amount - trade.refunded
