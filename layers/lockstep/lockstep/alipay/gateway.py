"""The channel's gateway."""

from decimal import Decimal

from lockstep.alipay.answers import Outcome, RefundFound, Trade


class Gateway:
    """A stand-in for the client."""

    def query(
        self, *, out_trade_no: str | None = None, trade_no: str | None = None
    ) -> Outcome[Trade]:
        raise NotImplementedError

    def query_refund(self, *, trade_no: str, out_request_no: str) -> Outcome[RefundFound]:
        raise NotImplementedError

    def refund(
        self, *, trade_no: str, out_request_no: str, amount: Decimal, reason: str
    ) -> Outcome[object]:
        raise NotImplementedError


def connect() -> Gateway:
    raise NotImplementedError
