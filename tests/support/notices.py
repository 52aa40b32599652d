"""Notices as Alipay sends them: one base payment, changed by what a test is about."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from functions import alipay_notify
from infra.local import alipay_sign
from lockstep.alipay.notice import verify_and_parse
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from tests.support.builders import an_order
from tests.support.database import Database, Row, forget_settings
from tests.support.lambda_context import Context

type Changes = dict[str, str | None]

APP_ID = "2021000100000001"
SELLER_ID = "2088000000000001"
PAID_AT = datetime(2026, 10, 24, 2, 0, 5, tzinfo=UTC)


@dataclass(frozen=True)
class NoticeSigner:
    """A sender of notices with a key of its own, one app and one payee."""

    key: RSAPrivateKey = field(default_factory=alipay_sign.new_key)
    app_id: str = APP_ID
    seller_id: str = SELLER_ID

    def base(self, **changes: str | None) -> dict[str, str]:
        """Word a payment of 9.90 for order O1; `changes` replace, add, or drop (None)."""
        notice = alipay_sign.payment_notice(
            self.app_id,
            self.seller_id,
            "O1",
            "T1",
            Decimal("9.90"),
            notify_id="N1",
            paid_at=PAID_AT,
        )
        return {name: value for name, value in (notice | changes).items() if value is not None}

    def encode(
        self,
        params: Mapping[str, str],
        charset: str = "utf-8",
        *,
        mangle: tuple[bytes, bytes] | None = None,
    ) -> bytes:
        """Sign and encode; `mangle` then replaces old by new in bytes that hold old once."""
        body = alipay_sign.form_body(params, self.key, charset)
        if mangle is None:
            return body
        old, new = mangle
        assert body.count(old) == 1, f"{old!r} must be in the body once"
        return body.replace(old, new)

    def body(self, **changes: str | None) -> bytes:
        """Sign and encode the base payment with changes."""
        return self.encode(self.base(**changes))

    def accept(self, **changes: str | None) -> Result:
        """Verify the base payment with changes, and accept it as the notify function does."""
        keys = [self.key.public_key()]
        notice = verify_and_parse(
            self.body(**changes), keys, self.app_id, frozenset({self.seller_id})
        )
        return accept(notice)

    def notify(self, **changes: str | None) -> dict[str, Any]:
        """Send the base payment with changes as AWS delivers it; the function's answer."""
        return answer(http_event(self.body(**changes)))

    def configure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the notify function know this app, payee and key."""
        monkeypatch.setenv("ALIPAY_APP_ID", self.app_id)
        monkeypatch.setenv("ALIPAY_SELLER_IDS", self.seller_id)
        monkeypatch.setenv("ALIPAY_PUBLIC_KEY", alipay_sign.public_key_base64(self.key))
        forget_settings()
        alipay_notify._alipay_keys.cache_clear()


# --- what the base notice becomes: changes to it, with a notify_id of their own -------------------


def refunded(fee: str, **changes: str | None) -> Changes:
    """`fee` yuan have gone back in all, and something of the payment is left."""
    return {
        "notify_id": f"N-refunded-{fee}",
        "trade_status": "TRADE_SUCCESS",
        "refund_fee": fee,
        "gmt_refund": "2026-10-25 09:00:00.123",
        "out_biz_no": f"R-{fee}",
    } | changes


def refunded_in_full(fee: str = "9.90", **changes: str | None) -> Changes:
    """All of it has gone back, at last `fee` in all: the status is that of an unpaid close."""
    closed = {"trade_status": "TRADE_CLOSED", "gmt_close": "2026-10-25 09:00:00"}
    return refunded(fee, **(closed | changes))


def closed_unpaid(**changes: str | None) -> Changes:
    """Nobody paid in time, or somebody closed the trade."""
    return {
        "notify_id": "N-closed",
        "trade_status": "TRADE_CLOSED",
        "gmt_payment": None,
        "gmt_close": "2026-10-24 10:30:00",
    } | changes


def finished(**changes: str | None) -> Changes:
    """The refund window is over."""
    return {
        "notify_id": "N-finished",
        "trade_status": "TRADE_FINISHED",
        "gmt_close": "2027-01-24 10:00:05",
    } | changes


# --- the order that notices speak of, and what they leave ----------------------------------------


def the_order(database: Database, order_no: str = "O1", lines: dict[int, int] | None = None) -> int:
    """Place an order and call it `order_no`, as notices do; its id. Its SKUs must be there."""
    order_id = an_order(lines).id
    database.execute("UPDATE oms_order SET order_no = %s WHERE id = %s", (order_no, order_id))
    return order_id


def an_attempt(
    database: Database, order_id: int, out_trade_no: str, state: str = "OPEN", amount: str = "9.90"
) -> None:
    """A payment page that was opened for an order."""
    database.execute(
        "INSERT INTO oms_payment_attempt "
        "(order_id, out_trade_no, product, amount, state, expires_at) "
        "VALUES (%s, %s, 'page', %s, %s, TIMESTAMPADD(MINUTE, 30, NOW(3)))",
        (order_id, out_trade_no, Decimal(amount), state),
    )


def attempt_state(database: Database, out_trade_no: str) -> str:
    state = database.value(
        "SELECT state FROM oms_payment_attempt WHERE out_trade_no = %s", (out_trade_no,)
    )
    return str(state)


def notice_rows(database: Database) -> list[tuple[str, str, str | None]]:
    """(notify_id, state, reason) of the inbox, oldest first."""
    rows = database.rows("SELECT notify_id, state, reason FROM oms_notice ORDER BY id")
    return [(row["notify_id"], row["state"], row["reason"]) for row in rows]


def payment_row(database: Database, trade_no: str = "T1") -> Row:
    """What is known of a payment but its id and the time it was recorded at."""
    row = database.one("SELECT * FROM oms_order_payment WHERE trade_no = %s", (trade_no,))
    return {name: value for name, value in row.items() if name not in {"id", "created_at"}}


def payment_state(database: Database, trade_no: str = "T1") -> tuple[str, str | None]:
    """(state, reason) of a payment."""
    row = payment_row(database, trade_no)
    return row["state"], row["reason"]


def order_row(database: Database, order_no: str = "O1") -> tuple[str, str | None, Decimal, Decimal]:
    """(status, close_reason, paid_amount, refunded_amount) of an order."""
    row = database.one(
        "SELECT status, close_reason, paid_amount, refunded_amount "
        "FROM oms_order WHERE order_no = %s",
        (order_no,),
    )
    return row["status"], row["close_reason"], row["paid_amount"], row["refunded_amount"]


def trail(database: Database, order_id: int) -> list[tuple[str, str, str, str]]:
    """(from, to, actor, reason) of an order's events after its placing, oldest first."""
    rows = database.rows(
        "SELECT from_status, to_status, actor, reason FROM oms_order_event "
        "WHERE order_id = %s AND from_status <> 'NONE' ORDER BY id",
        (order_id,),
    )
    return [(r["from_status"], r["to_status"], r["actor"], r["reason"]) for r in rows]


def staged(database: Database) -> list[str]:
    """The queues of all commands ever staged, oldest first."""
    return [row["queue"] for row in database.rows("SELECT queue FROM outbox ORDER BY id")]


# What another run draws anew, or reads from its own clock.
_PASSING = {
    *("id", "order_id", "reservation_id", "request_hash", "applied_to"),
    *("created_at", "updated_at", "expires_at"),
    *("asks", "next_ask_at"),
}


def _lasting(rows: list[Row]) -> list[Row]:
    for row in rows:
        if "paid_at" in row:
            row["paid_at"] = row["paid_at"] is not None
    return [{name: row[name] for name in row if name not in _PASSING} for row in rows]


def books(database: Database) -> dict[str, list[Row]]:
    """All that two histories of one order must have in common: every column of orders, payments,
    inbox, holds, stock, and events in the order they were written, except ids that are drawn anew
    and our own clock (paid_at: whether it is set); and which commands were staged."""
    return {
        "orders": _lasting(database.rows("SELECT * FROM oms_order")),
        "events": _lasting(database.rows("SELECT * FROM oms_order_event ORDER BY id")),
        "payments": _lasting(database.rows("SELECT * FROM oms_order_payment ORDER BY trade_no")),
        "inbox": _lasting(database.rows("SELECT * FROM oms_notice ORDER BY content_hash")),
        "holds": _lasting(database.rows("SELECT * FROM ims_reservation")),
        "stock": database.rows("SELECT * FROM ims_sku_stock"),
        "commands": database.rows("SELECT DISTINCT queue FROM outbox ORDER BY queue"),
    }


# --- through the function ------------------------------------------------------------------------

SUCCESS = {
    "statusCode": 200,
    "headers": {"content-type": "text/plain; charset=utf-8"},
    "isBase64Encoded": False,
    "body": "success",
}
FAILURE = SUCCESS | {"body": "failure"}

# As Alipay sends it, which strict parsers of media types refuse.
CONTENT_TYPE = "application/x-www-form-urlencoded; text/html; charset=UTF-8"


def http_event(
    body: bytes, *, is_base64: bool = True, content_type: str = CONTENT_TYPE, query: str = ""
) -> dict[str, Any]:
    """Word the HTTP API's event (payload 2.0): base64 as AWS sends a form, or text."""
    return {
        "version": "2.0",
        "routeKey": "POST /alipay/notify",
        "rawPath": "/alipay/notify",
        "rawQueryString": query,
        "headers": {
            "content-length": str(len(body)),
            "content-type": content_type,
            "user-agent": "Mozilla/4.0",
        },
        "requestContext": {
            "http": {"method": "POST", "path": "/alipay/notify", "sourceIp": "203.0.113.7"},
            "requestId": "request-of-a-test",
            "stage": "$default",
        },
        "body": base64.b64encode(body).decode() if is_base64 else body.decode("ascii"),
        "isBase64Encoded": is_base64,
    }


def answer(event: dict[str, Any]) -> dict[str, Any]:
    """What the function answers to an event."""
    return alipay_notify.handler(event, Context())
