"""A shop's view of a running stack: members who order and pay, operators, Alipay that notifies.

For the demo and for the tests that run on the deployed template.
"""

import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from infra.local import alipay_sign, cloud, tokens
from infra.local.tables import Tables

TIMEOUT_SECONDS = 30
OPERATOR = "alice"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    document: dict[str, Any]


@dataclass(kw_only=True)
class Shop(Tables):
    """``home`` is the folder that stack.json lies in."""

    home: Path

    def __enter__(self) -> "Shop":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- members and operators -------------------------------------------------------------------

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
        return self._ask(method, path, tokens.mint(self.home, str(member)), key, body)

    def order(
        self, member: int, lines: Mapping[int, int], *, key: str | None = None, **more: Any
    ) -> Reply:
        """POST /orders for ``lines``, sku_id to quantity."""
        body = {"lines": [{"sku_id": i, "quantity": q} for i, q in lines.items()], **more}
        return self.call("POST", "/orders", member, key=key or secrets.token_hex(8), body=body)

    def start_payment(self, member: int, order_no: str, product: str = "page") -> Reply:
        """POST /orders/{order_no}/payments."""
        return self.call("POST", f"/orders/{order_no}/payments", member, body={"product": product})

    def operate(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Reply:
        """One request with an operator's token."""
        token = tokens.mint(self.home, OPERATOR, scope=tokens.OPERATOR_SCOPE)
        return self._ask(method, path, token, key, body)

    def refund(self, order_no: str, reason: str, **more: Any) -> Reply:
        """POST /ops/orders/{order_no}/refunds: all that is left, without an ``amount``."""
        path = f"/ops/orders/{order_no}/refunds"
        return self.operate("POST", path, key=secrets.token_hex(8), body={"reason": reason} | more)

    # --- Alipay ----------------------------------------------------------------------------------

    def pay(self, out_trade_no: str, amount: str) -> str:
        """Pay as a person at the cashier would, whatever the sum and however late; the trade_no.

        The notice follows by itself: wait for what it does."""
        paid = self.control("/pay", {"out_trade_no": out_trade_no, "amount": amount})
        return str(paid["trade_no"])

    def refunds_made(self, out_trade_no: str) -> list[str]:
        """What Alipay's own books say went back of the trades of a number."""
        made = self.control(f"/refunds?out_trade_no={out_trade_no}")["refunds"]
        return [str(one["amount"]) for one in made]

    def control(self, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One request to the local Alipay's control routes: a question, or with a document an
        act."""
        request = urllib.request.Request(  # noqa: S310 - loopback
            self.stack["alipay"]["control_url"] + path,
            None if document is None else json.dumps(document).encode(),
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:  # noqa: S310
            answer: dict[str, Any] = json.load(reply)
        return answer

    def disturb(self, out_trade_no: str, method: str, action: str) -> None:
        """Let that go wrong once."""
        self.control("/faults", {"method": method, "action": action, "out_trade_no": out_trade_no})

    def notice(self, order_no: str, amount: str) -> dict[str, str]:
        """The words of a payment notice, not sent yet."""
        payee = self.stack["alipay"]
        trade = f"{datetime.now(UTC):%Y%m%d}22001{secrets.randbelow(10**15):015d}"
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

    # --- HTTP ------------------------------------------------------------------------------------

    def _ask(
        self, method: str, path: str, token: str, key: str | None, body: Mapping[str, Any] | None
    ) -> Reply:
        headers = {"Authorization": f"Bearer {token}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        status, reply_headers, text = self._send(method, path, headers, data)
        return Reply(status, reply_headers, json.loads(text))

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
