"""What was acknowledged, to anybody, and must be in the books ever after: who asked may forget.

    promises.heard(function, event, answer)     of each answer of each function
    promises.broken(database)                   what was promised and is not so

An answer that leaves it open (202, 503, `failure`, a message to be delivered again) promises
nothing.
"""

import base64
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from urllib.parse import parse_qsl

from tests.support.database import Database, Row
from tests.support.http_events import Event

_DONE: Final = frozenset({200, 201})
_OPEN: Final = frozenset({202, 503})
_PAID: Final = frozenset({"TRADE_SUCCESS", "TRADE_FINISHED"})
_SETTLED: Final = {"confirm_stock": "CONFIRMED", "release_stock": "RELEASED"}

_ORDERS: Final = """
SELECT o.order_no, o.pay_amount, o.status, o.close_reason, q.member_id, q.idempotency_key,
    (SELECT JSON_OBJECTAGG(i.sku_id, i.quantity) FROM oms_order_item AS i WHERE i.order_id = o.id)
        AS wanted
FROM oms_order AS o
JOIN oms_order_request AS q ON q.order_id = o.id
"""
_PAGES: Final = """
SELECT a.out_trade_no, o.order_no, a.amount
FROM oms_payment_attempt AS a
JOIN oms_order AS o ON o.id = a.order_id
"""
_PAYMENTS: Final = "SELECT trade_no, amount, refunded_amount FROM oms_order_payment"
_REFUNDS: Final = "SELECT out_request_no, amount FROM oms_refund"
_HOLDS: Final = "SELECT reservation_id, state FROM ims_reservation"
_REFUSALS: Final = "SELECT message_id FROM message_refusal"


@dataclass
class Promises:
    """``made`` counts answers that promise something, ``open`` those that leave it open."""

    made: int = 0
    open: int = 0
    _orders: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    _closed: dict[str, tuple[str, str]] = field(default_factory=dict)
    _pages: dict[str, tuple[str, Decimal]] = field(default_factory=dict)
    _paid: dict[str, Decimal] = field(default_factory=dict)
    _returned: dict[str, Decimal] = field(default_factory=dict)
    _refunds: dict[str, Decimal] = field(default_factory=dict)
    _settled: dict[str, tuple[str, str]] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def heard(self, function: str, event: Event, answer: Any) -> None:
        with self._changed:
            self.made += self._keep(function, event, answer)
            self.open += _leaves_open(answer)
            self._changed.notify_all()

    def wait_until(self, is_so: Callable[[], bool], seconds: float) -> None:
        """For the answers to come to that."""
        with self._changed:
            assert self._changed.wait_for(is_so, seconds), "nothing is answered any more"

    def broken(self, database: Database) -> list[str]:
        """One line for each; none where all is kept."""
        with self._changed:  # what is promised while we look need not be in what we saw
            promised: list[tuple[str, dict[str, Any]]] = [
                ("orders", dict(self._orders)),
                ("cancels", dict(self._closed)),
                ("pages", dict(self._pages)),
                ("payments", dict(self._paid)),
                ("refunds", dict(self._refunds)),
            ]
            returned, settled = dict(self._returned), dict(self._settled)
        kept = _kept(database)
        broken = [
            f"{name}: {key} was {said}, and is {kept[name].get(key)}"
            for name, one in promised
            for key, said in one.items()
            if kept[name].get(key) != said
        ]
        broken += [
            f"returned: {trade_no}: {amount}, and {kept['returned'].get(trade_no)} is booked"
            for trade_no, amount in returned.items()
            if kept["returned"].get(trade_no, Decimal(0)) < amount
        ]
        return broken + [
            f"messages: {message_id} was handled, and {hold} is {kept['holds'].get(hold)}"
            for message_id, (hold, state) in settled.items()
            if kept["holds"].get(hold) != state and message_id not in kept["refusals"]
        ]

    def _keep(self, function: str, event: Event, answer: Any) -> bool:
        """Whether ``answer`` promises something."""
        if function in _SETTLED:
            return self._keep_messages(_SETTLED[function], event["Records"], answer)
        if function == "alipay_notify":
            return answer["body"] == "success" and self._keep_notice(event)
        if answer.get("statusCode") not in _DONE:
            return False
        document = json.loads(answer["body"])
        match function:
            case "create_order":
                self._keep_order(event, document["order"])
            case "cancel_order":
                order = document["order"]
                self._closed[order["order_no"]] = order["status"], order["close_reason"]
            case "start_payment":
                order_no = event["rawPath"].split("/")[2]
                self._pages[document["out_trade_no"]] = order_no, Decimal(document["amount"])
            case "operate_payments":
                refund = document["refund"]
                self._refunds[refund["out_request_no"]] = Decimal(refund["amount"])
        return True

    def _keep_order(self, event: Event, order: Mapping[str, Any]) -> None:
        member = int(event["requestContext"]["authorizer"]["jwt"]["claims"]["sub"])
        lines = {
            str(line["sku_id"]): line["quantity"] for line in json.loads(event["body"])["lines"]
        }
        key, amount = event["headers"]["idempotency-key"], Decimal(order["pay_amount"])
        self._orders[order["order_no"]] = member, key, amount, lines

    def _keep_notice(self, event: Event) -> bool:
        notice = dict(parse_qsl(base64.b64decode(event["body"]).decode()))
        trade_no = notice["trade_no"]
        if notice["trade_status"] in _PAID:
            self._paid[trade_no] = Decimal(notice["total_amount"])
        if back := notice.get("refund_fee"):
            known = self._returned.get(trade_no, Decimal(0))
            self._returned[trade_no] = max(known, Decimal(back))
        return True

    def _keep_messages(self, state: str, records: Iterable[Event], answer: Any) -> bool:
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        handled = [record for record in records if record["messageId"] not in failed]
        for record in handled:
            message_id = record["attributes"]["MessageDeduplicationId"]
            self._settled[message_id] = json.loads(record["body"])["reservation_id"], state
        return bool(handled)


def _leaves_open(answer: Any) -> bool:
    return (
        answer.get("statusCode") in _OPEN
        or answer.get("body") == "failure"
        or bool(answer.get("batchItemFailures"))
    )


def _kept(database: Database) -> dict[str, dict[str, Any]]:
    """What the books say of it all, in the promises' own words."""
    orders = database.rows(_ORDERS)
    payments = database.rows(_PAYMENTS)
    return {
        "orders": {row["order_no"]: _order(row) for row in orders},
        "cancels": {row["order_no"]: (row["status"], row["close_reason"]) for row in orders},
        "pages": {
            row["out_trade_no"]: (row["order_no"], row["amount"]) for row in database.rows(_PAGES)
        },
        "payments": {row["trade_no"]: row["amount"] for row in payments},
        "returned": {row["trade_no"]: row["refunded_amount"] for row in payments},
        "refunds": {row["out_request_no"]: row["amount"] for row in database.rows(_REFUNDS)},
        "holds": {row["reservation_id"]: row["state"] for row in database.rows(_HOLDS)},
        "refusals": {row["message_id"]: True for row in database.rows(_REFUSALS)},
    }


def _order(row: Row) -> tuple[Any, ...]:
    lines = json.loads(row["wanted"])
    return row["member_id"], row["idempotency_key"], row["pay_amount"], lines
