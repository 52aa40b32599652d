"""Alipay's gateway, as far as refunds need it."""

from decimal import Decimal

from lockstep.alipay.answers import Outcome, RefundFound, RefundReply, Trade


class Gateway:
    def refund(
        self,
        *,
        trade_no: str,
        out_request_no: str,
        amount: Decimal,
        reason: str,
        timeout_seconds: int = 5,
    ) -> Outcome[RefundReply]:
        raise NotImplementedError

    def query_refund(
        self, *, trade_no: str, out_request_no: str, timeout_seconds: int = 5
    ) -> Outcome[RefundFound]:
        raise NotImplementedError

    def query(
        self,
        *,
        out_trade_no: str | None = None,
        trade_no: str | None = None,
        timeout_seconds: int = 5,
    ) -> Outcome[Trade]:
        raise NotImplementedError


def connect() -> Gateway:
    raise NotImplementedError
