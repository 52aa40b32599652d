"""The local Alipay as a whole: what a request to the gateway comes to, faults included."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa

from infra.local import alipay_sign
from infra.local.alipay_gateway import calls, cashier, envelope
from infra.local.alipay_gateway.addresses import Addresses
from infra.local.alipay_gateway.bill_links import Bills
from infra.local.alipay_gateway.books import Books
from infra.local.alipay_gateway.faults import Action, Fault, Faults
from infra.local.alipay_gateway.journal import Journal
from infra.local.alipay_gateway.post import PostOffice, Send, post_to
from infra.local.alipay_gateway.replies import JSON, Reply, redirect
from infra.local.alipay_gateway.shapes import Clock, Refused, utc_now

UNKNOWN: Final = Refused("aop.unknow-error", code="20000")


@dataclass(kw_only=True)
class Service(Addresses):
    """`app` may call; `key` is Alipay's own. `send` delivers notices, by default over HTTP."""

    app: envelope.App
    seller_id: str
    key: rsa.RSAPrivateKey
    send: Send = post_to
    clock: Clock = utc_now
    journal: Journal = field(default_factory=Journal)
    factor: Fraction = Fraction(1)
    faults: Faults = field(default_factory=Faults)

    def __post_init__(self) -> None:
        self.post = PostOffice(
            send=self.send,
            encode=self._encode,
            clock=self.clock,
            faults=self.faults,
            journal=self.journal,
            factor=self.factor,
            merchant_url=self.merchant_url,
        )
        self.books = Books(
            self.app.app_id,
            self.seller_id,
            self.merchant_url,
            tell=self.post.take,
            clock=self.clock,
            journal=self.journal,
        )
        self.bills = Bills(self.books, self.seller_id, self.base_url, self.clock)
        for entry in self.journal.entries():
            self.books.replay(entry)
            self.post.replay(entry)

    def release(self) -> int:
        """Let every held answer and every notice that was put aside go."""
        self.post.release()
        return self.faults.release()

    # --- the gateway -----------------------------------------------------------------------------

    def call(self, query: str, body: bytes, language: str) -> Reply | None:
        """Answer a request; None where the connection is to be dropped instead."""
        method = None
        try:
            params = envelope.read(query, body)
            method = params.get("method")
            envelope.check(params, self.app, self.clock())
            if method in calls.PAGES:
                return self._to_the_cashier(params)
            return self._answer(params["method"], params)
        except Refused as refused:
            if method in calls.PAGES:
                return cashier.refusal(refused, language)
            key = None if isinstance(refused, envelope.Untrusted) else self.key
            return self._reply(method, envelope.refusal(refused), key)

    def _to_the_cashier(self, params: Mapping[str, str]) -> Reply:
        request = calls.pay_request(params, calls.biz_content(params), self.clock())
        self.books.ask(request)
        return redirect(f"{self.cashier_url}/{request.out_trade_no}")

    def _answer(self, method: str, params: Mapping[str, str]) -> Reply | None:
        execute = calls.METHODS.get(method)
        if execute is None:
            raise Refused("isv.invalid-method", method, code="40002")
        biz = calls.biz_content(params)
        fault = self.faults.take(method, self._number_of(biz))
        match fault:
            case Fault(Action.UNKNOWN_BEFORE):
                return self._reply(method, envelope.refusal(UNKNOWN), self.key)
            case Fault(Action.NO_BALANCE):
                raise Refused("ACQ.SELLER_BALANCE_NOT_ENOUGH")
        try:
            fields = envelope.success(execute(self, params, biz))
        except Refused as refused:
            fields = envelope.refusal(refused)
        return self._disturbed(method, fields, fault)

    def _disturbed(
        self, method: str, fields: Mapping[str, object], fault: Fault | None
    ) -> Reply | None:
        """What becomes of the answer to a call that was executed."""
        match fault:
            case Fault(Action.LOSE_RESPONSE):
                return None
            case Fault(Action.UNKNOWN_AFTER):
                return self._reply(method, envelope.refusal(UNKNOWN), self.key)
            case Fault(Action.UNSIGNED):
                return self._reply(method, fields, None)
            case Fault(Action.DELAY, seconds):
                time.sleep(seconds)
            case Fault(Action.HOLD):
                self.faults.wait_for_release()
        return self._reply(method, fields, self.key)

    def _reply(
        self, method: str | None, fields: Mapping[str, object], key: rsa.RSAPrivateKey | None
    ) -> Reply:
        return Reply(200, envelope.answer(method, fields, key), JSON)

    def _number_of(self, biz: calls.Json) -> str | None:
        """The out_trade_no that a call is about, also where it names the trade_no only."""
        try:
            if biz.get("trade_no"):
                return self.books.find(trade_no=str(biz["trade_no"])).out_trade_no
        except Refused:
            pass
        return str(biz["out_trade_no"]) if biz.get("out_trade_no") else None

    # --- notices ---------------------------------------------------------------------------------

    def _encode(self, words: Mapping[str, str]) -> bytes:
        now = alipay_sign.beijing_text(self.clock())
        return alipay_sign.form_body({**words, "notify_time": now}, self.key)
