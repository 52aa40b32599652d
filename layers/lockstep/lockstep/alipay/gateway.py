"""Stands here until the client is merged: its interface, for the types."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Literal

from lockstep.alipay.answers import Outcome, Trade


class Gateway:
    """Alipay's gateway. No method raises for what the network or the gateway does."""

    def page_url(
        self,
        product: Literal["page", "wap"],
        *,
        out_trade_no: str,
        amount: Decimal,
        subject: str,
        expires_at: datetime,
        notify_url: str,
        return_url: str | None,
    ) -> str:
        raise NotImplementedError

    def precreate(
        self,
        *,
        out_trade_no: str,
        amount: Decimal,
        subject: str,
        expires_at: datetime,
        notify_url: str,
    ) -> Outcome[str]:
        raise NotImplementedError

    def query(
        self,
        *,
        out_trade_no: str | None = None,
        trade_no: str | None = None,
        timeout_seconds: float = 5,
    ) -> Outcome[Trade]:
        raise NotImplementedError

    def close(self, out_trade_no: str, *, timeout_seconds: float = 5) -> Outcome[None]:
        raise NotImplementedError


connect: Callable[[], Gateway] = Gateway
