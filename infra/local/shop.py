"""A shop's view of a running stack: members who order, Alipay that notifies, an eye on the tables.

For the demo and for the tests that run on the deployed template.
"""

import contextlib
import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pymysql

from infra.local import alipay_sign, cloud, invariants, tokens

TIMEOUT_SECONDS = 30
# A queue's way through the local cloud takes a second or two.
PATIENCE_SECONDS = 30

INSERT_SKU = """
    INSERT INTO ims_sku_stock (sku_id, title, price, stock, hot)
    SELECT GREATEST(COALESCE(MAX(sku_id), 0), 900000) + 1, %s, %s, %s, %s
    FROM ims_sku_stock
"""
INSERT_INITIAL = """
    INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason)
    VALUES (%s, 'INITIAL', %s, %s, 'system:shop', 'made for a demonstration')
"""


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    document: dict[str, Any]


@dataclass
class Shop:
    """``stack`` is what stack.json says, ``home`` the folder it lies in."""

    home: Path
    stack: Mapping[str, Any]
    session: "pymysql.Connection[pymysql.cursors.DictCursor]" = field(init=False)

    def __post_init__(self) -> None:
        at = self.stack["mysql"]
        self.session = pymysql.connect(
            host=at["host"],
            port=at["port"],
            user=at["user"],
            password=at["password"],
            database=at["database"],
            autocommit=True,
            init_command="SET time_zone = '+00:00', transaction_isolation = 'READ-COMMITTED'",
            cursorclass=pymysql.cursors.DictCursor,
        )

    def __enter__(self) -> "Shop":
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    # --- members ---------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        member: int,
        *,
        key: str | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Reply:
        """One request with a token of ``member``."""
        headers = {"Authorization": f"Bearer {tokens.mint(self.home, str(member))}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        status, reply_headers, text = self._send(method, path, headers, data)
        return Reply(status, reply_headers, json.loads(text))

    def order(
        self, member: int, lines: Mapping[int, int], *, key: str | None = None, **more: Any
    ) -> Reply:
        """POST /orders for ``lines``, sku_id to quantity."""
        body = {"lines": [{"sku_id": i, "quantity": q} for i, q in lines.items()], **more}
        return self.call("POST", "/orders", member, key=key or secrets.token_hex(8), body=body)

    # --- Alipay ----------------------------------------------------------------------------------

    def pay(self, out_trade_no: str, amount: str) -> str:
        """Pay as a person at the cashier would, whatever the sum and however late; the trade_no.

        The notice follows by itself: wait for what it does."""
        paid = self.control("/pay", {"out_trade_no": out_trade_no, "amount": amount})
        return str(paid["trade_no"])

    def control(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """One request to the local Alipay's control routes."""
        request = urllib.request.Request(  # noqa: S310 - loopback
            self.stack["alipay"]["control_url"] + path, json.dumps(document).encode()
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:  # noqa: S310
            answer: dict[str, Any] = json.load(reply)
        return answer

    def notice(self, order_no: str, amount: str, *, trade_no: str | None = None) -> dict[str, str]:
        """The words of a payment notice, not sent yet."""
        payee = self.stack["alipay"]
        trade = trade_no or f"{datetime.now(UTC):%Y%m%d}22001{secrets.randbelow(10**15):015d}"
        return alipay_sign.payment_notice(
            payee["app_id"], payee["seller_id"], order_no, trade, Decimal(amount)
        )

    def notify(self, notice: Mapping[str, str]) -> str:
        """Sign ``notice`` and deliver it; the word that comes back."""
        key = alipay_sign.load_key(Path(self.stack["alipay"]["signing_key_file"]))
        # Alipay's own header, which is malformed.
        content_type = "application/x-www-form-urlencoded; text/html; charset=UTF-8"
        headers = {"Content-Type": content_type}
        body = alipay_sign.form_body(notice, key)
        return self._send("POST", "/alipay/notify", headers, body)[2]

    # --- the schedules ---------------------------------------------------------------------------

    def invoke(self, function: str) -> Any:
        """Call a function as its schedule does, now; what it returns."""
        lambdas = cloud.session().client("lambda", endpoint_url=self.stack["aws_endpoint_url"])
        reply = lambdas.invoke(FunctionName=self.stack["functions"][function], Payload=b"{}")
        return json.loads(reply["Payload"].read())

    def end_time_of(self, order_no: str) -> None:
        """Let an unpaid order's time be over."""
        self.rows(
            "UPDATE oms_order SET expires_at = NOW(3) - INTERVAL 1 SECOND WHERE order_no = %s",
            (order_no,),
        )

    # --- the tables ------------------------------------------------------------------------------

    def rows(self, sql: str, arguments: Sequence[object] = ()) -> list[dict[str, Any]]:
        with self.session.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return list(cursor.fetchall())

    def new_sku(self, title: str, price: str, stock: int, *, hot: bool = False) -> int:
        """A SKU that nobody has ordered from; its id."""
        with self.session.cursor() as cursor:
            cursor.execute(INSERT_SKU, (title, Decimal(price), stock, hot))
            cursor.execute("SELECT MAX(sku_id) AS sku_id FROM ims_sku_stock")
            [row] = cursor.fetchall()
            cursor.execute(INSERT_INITIAL, (row["sku_id"], stock, f"shop:{row['sku_id']}"))
        return int(row["sku_id"])

    def stock(self, sku_id: int) -> tuple[int, int]:
        """(on hand, locked)."""
        [row] = self.rows(
            "SELECT stock, lock_stock FROM ims_sku_stock WHERE sku_id = %s", (sku_id,)
        )
        return row["stock"], row["lock_stock"]

    def payments(self, order_no: str) -> list[dict[str, Any]]:
        """trade_no, amount, state and reason of each payment of an order, as they arrived."""
        return self.rows(
            "SELECT p.trade_no, p.amount, p.state, p.reason FROM oms_order_payment AS p "
            "JOIN oms_order AS o ON o.id = p.order_id WHERE o.order_no = %s ORDER BY p.id",
            (order_no,),
        )

    def wait_for_payments(self, order_no: str, count: int) -> float:
        """Wait until so many have arrived; the seconds that took."""
        return wait_until(
            lambda: len(self.payments(order_no)) >= count, f"{count} payments of {order_no}"
        )

    def hold(self, order_no: str) -> str | None:
        """The state of the hold that an order names."""
        found = self.rows(
            "SELECT r.state FROM ims_reservation AS r "
            "JOIN oms_order AS o ON o.reservation_id = r.reservation_id WHERE o.order_no = %s",
            (order_no,),
        )
        return found[0]["state"] if found else None

    def wait_for_hold(self, order_no: str, state: str) -> float:
        """Wait until the queue has done its work; the seconds that took."""
        return wait_until(lambda: self.hold(order_no) == state, f"{order_no} {state}")

    def status(self, order_no: str) -> str:
        [row] = self.rows("SELECT status FROM oms_order WHERE order_no = %s", (order_no,))
        return str(row["status"])

    def wait_for_status(self, order_no: str, status: str, seconds: float = 30) -> float:
        """Wait until the order is there; the seconds that took."""
        return wait_until(
            lambda: self.status(order_no) == status, f"{order_no} {status}", seconds=seconds
        )

    def wait_for_decision(self, order_no: str) -> float:
        """Wait until an order in line had its turn; the seconds that took."""
        return wait_until(lambda: self.status(order_no) != "RESERVING", f"{order_no}'s turn")

    def broken_invariants(self) -> dict[str, list[Mapping[str, Any]]]:
        """What does not hold though the queues were given time: the schedules are never at rest."""
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: not invariants.broken(self.rows), "the invariants")
        return invariants.broken(self.rows)

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], data: bytes | None
    ) -> tuple[int, Mapping[str, str], str]:
        request = urllib.request.Request(  # noqa: S310 - the stack's own loopback address
            self.stack["api_url"] + path, data=data, headers=dict(headers), method=method
        )
        try:
            reply = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)  # noqa: S310
        except urllib.error.HTTPError as refusal:
            reply = refusal
        with reply:
            lower = {name.lower(): value for name, value in reply.headers.items()}
            return reply.status, lower, reply.read().decode()


def wait_until(is_so: Callable[[], bool], what: str, *, seconds: float = PATIENCE_SECONDS) -> float:
    """Look until ``is_so``; the seconds that took. Raises TimeoutError naming ``what``."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.05)
    return time.monotonic() - began
