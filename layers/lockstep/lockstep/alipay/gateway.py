"""Alipay's gateway: what it is asked, signed, and what each answer comes to.

A call never raises for what the network or the gateway does. It is `Done` or `Refused` only where
an answer came whose signature is Alipay's; whatever else came, or nothing, is `Unknown`, since the
gateway may have done it. Nothing is sent twice: whoever asks decides what an unknown outcome means.

Importing this loads no cryptography and no key; `connect` does.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from lockstep import beijing, settings
from lockstep.alipay import replies
from lockstep.alipay.answers import (
    Done,
    NotExecuted,
    Outcome,
    RefundFound,
    RefundReply,
    Trade,
    Unknown,
)
from lockstep.alipay.envelope import (
    CHARSET,
    SIGN_TYPE,
    Answer,
    as_json,
    content_to_sign,
    read_answer,
)
from lockstep.alipay.orders import PAGES, QR_PRODUCT, Product, order_content
from lockstep.alipay.transport import NoAnswer, Seconds, exchange
from lockstep.money import show_yuan
from lockstep.observability import count, logger

if TYPE_CHECKING:
    from lockstep.alipay.keys import Keys

# Three questions fit into a request of the HTTP API.
TIMEOUT_SECONDS: Final = 5
# A day's file, and what little time its address lives.
BILL_TIMEOUT_SECONDS: Final = 25
ANSWER_BYTES_MAX: Final = 256 * 1024


class Gateway:
    """One app of Alipay's. Holds nothing that changes, so that threads may share it."""

    def __init__(self, app: settings.AlipayAppSettings, keys: "Keys") -> None:
        self._url = app.gateway_url
        self._keys = keys
        self._common = {
            "app_id": app.app_id,
            "format": "JSON",
            "charset": CHARSET,
            "sign_type": SIGN_TYPE,
            "version": "1.0",
        }
        if app.app_cert_sn and app.alipay_root_cert_sn:
            self._common["app_cert_sn"] = app.app_cert_sn
            self._common["alipay_root_cert_sn"] = app.alipay_root_cert_sn

    def page_url(
        self,
        product: Product,
        *,
        out_trade_no: str,
        amount: Decimal,
        subject: str,
        expires_at: datetime,
        notify_url: str,
        return_url: str | None,
    ) -> str:
        """The signed address of a page to pay on. Calls nobody: Alipay knows of no trade before the
        buyer has come there."""
        method, product_code = PAGES[product]
        content = order_content(out_trade_no, amount, subject, expires_at, product_code)
        links = {"notify_url": notify_url} | ({"return_url": return_url} if return_url else {})
        return f"{self._url}?{urlencode(self._request(method, content, links))}"

    def precreate(
        self,
        *,
        out_trade_no: str,
        amount: Decimal,
        subject: str,
        expires_at: datetime,
        notify_url: str,
        timeout_seconds: Seconds = TIMEOUT_SECONDS,
    ) -> Outcome[str]:
        """What a QR code to pay by is to hold. Its trade begins when a buyer scans it."""
        return self._ask(
            "alipay.trade.precreate",
            order_content(out_trade_no, amount, subject, expires_at, QR_PRODUCT),
            replies.qr_code,
            timeout_seconds,
            {"notify_url": notify_url},
        )

    def query(
        self,
        *,
        out_trade_no: str | None = None,
        trade_no: str | None = None,
        timeout_seconds: Seconds = TIMEOUT_SECONDS,
    ) -> Outcome[Trade]:
        """How a trade stands. Refused(ACQ.TRADE_NOT_EXIST): nobody has begun to pay, yet."""
        asked = {"out_trade_no": out_trade_no, "trade_no": trade_no}
        content = {name: value for name, value in asked.items() if value}
        return self._ask("alipay.trade.query", content, replies.trade, timeout_seconds)

    def close(
        self, out_trade_no: str, *, timeout_seconds: Seconds = TIMEOUT_SECONDS
    ) -> Outcome[None]:
        """End an unpaid trade. One that nobody has begun cannot be ended: Refused."""
        content = {"out_trade_no": out_trade_no}
        return self._ask("alipay.trade.close", content, lambda _: None, timeout_seconds)

    def refund(
        self,
        *,
        trade_no: str,
        out_request_no: str,
        amount: Decimal,
        reason: str,
        timeout_seconds: Seconds = TIMEOUT_SECONDS,
    ) -> Outcome[RefundReply]:
        """Give money back, once for each out_request_no. Done is not refunded: see the reply."""
        content = {
            "trade_no": trade_no,
            "out_request_no": out_request_no,
            "refund_amount": show_yuan(amount),
            "refund_reason": reason,
        }
        return self._ask("alipay.trade.refund", content, replies.refund_reply, timeout_seconds)

    def query_refund(
        self, *, trade_no: str, out_request_no: str, timeout_seconds: Seconds = TIMEOUT_SECONDS
    ) -> Outcome[RefundFound]:
        """Whether a refund is done. Not done is no promise within ten seconds of the call."""
        content = {"trade_no": trade_no, "out_request_no": out_request_no}
        return self._ask(
            "alipay.trade.fastpay.refund.query", content, replies.refund_found, timeout_seconds
        )

    def bill(
        self, day: date, kind: str = "trade", *, timeout_seconds: Seconds = BILL_TIMEOUT_SECONDS
    ) -> Outcome[bytes]:
        """The zip of a day of Beijing's, fetched at once: its address lives for 30 seconds."""
        from lockstep.alipay.bill import fetch  # noqa: PLC0415 - zipfile, for whoever reads bills

        content = {"bill_type": kind, "bill_date": day.isoformat()}
        method = "alipay.data.dataservice.bill.downloadurl.query"
        deadline = time.monotonic() + timeout_seconds
        found = self._ask(method, content, replies.bill_url, min(timeout_seconds, TIMEOUT_SECONDS))
        return fetch(found.value, deadline) if isinstance(found, Done) else found

    def _ask[T](
        self,
        method: str,
        content: Mapping[str, str],
        read: Callable[[Answer], T],
        timeout_seconds: Seconds,
        links: Mapping[str, str] | None = None,
    ) -> Outcome[T]:
        url, form = self.prepared(method, content, links)
        try:
            received = exchange(
                url, form, timeout_seconds=timeout_seconds, bytes_max=ANSWER_BYTES_MAX
            )
            answer = read_answer(received.body, method)
            if not self.is_alipays(answer):
                count("GatewayUnsigned")
                return Unknown(f"{method}: {_unsigned(answer)}")
            if answer.code == replies.DONE:
                replies.check_subject(answer, content)
                return Done(read(answer))
        except (NoAnswer, ValueError) as fault:
            return Unknown(f"{method}: {fault}")
        refusal = replies.refusal(answer)
        if isinstance(refusal, NotExecuted) and refusal.is_our_fault:
            count("GatewayMisconfigured")
            logger.error("the gateway does not accept our requests", code=refusal.code)
        return refusal

    def prepared(
        self, method: str, content: Mapping[str, str], links: Mapping[str, str] | None = None
    ) -> tuple[str, bytes]:
        """The address and the form of a call."""
        request = self._request(method, content, links or {})
        # The gateway takes the charset from the address: named in the form alone, it is GBK.
        url = f"{self._url}?{urlencode({'charset': request.pop('charset')})}"
        return url, urlencode(request).encode("ascii")

    def is_alipays(self, answer: Answer) -> bool:
        """Whether Alipay signed it."""
        return any(self._keys.is_alipays(text, answer.signature) for text in answer.signed_texts)

    def _request(
        self, method: str, content: Mapping[str, str], links: Mapping[str, str]
    ) -> dict[str, str]:
        """Every parameter of a request, signed."""
        params = {
            **self._common,
            **links,
            "method": method,
            # The gateway's own clock is what this is held to, and nothing of ours is decided by it.
            "timestamp": beijing.written(datetime.now(UTC)),
            "biz_content": as_json(content),
        }
        return {**params, "sign": self._keys.sign(content_to_sign(params))}


@cache
def connect() -> Gateway:
    """The gateway that the settings name. Raises SettingMissing, ValueError (a key), and what
    reading the secret raises."""
    from lockstep.alipay.keys import load_keys  # noqa: PLC0415 - for whoever does call

    app = settings.alipay_app()
    return Gateway(app, load_keys(app.private_key, app.public_keys))


def _unsigned(answer: Answer) -> str:
    fault = "unsigned" if not answer.signature else "not signed by Alipay's key"
    return f"{fault}: {answer.code:.40} {answer.sub_code:.80}"
