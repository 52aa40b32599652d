"""Where the parts of a local Alipay are."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class Addresses:
    base_url: str

    @property
    def gateway_url(self) -> str:
        return f"{self.base_url}/gateway.do"

    @property
    def cashier_url(self) -> str:
        """The list of orders; `/<out_trade_no>` below it is one of them."""
        return f"{self.base_url}/cashier"

    @property
    def control_url(self) -> str:
        return f"{self.base_url}/control"

    @property
    def merchant_url(self) -> str:
        """A notify_url that stands for wherever the seller is now: a stack that is started again
        has another address, and it knows its own only after it has been deployed."""
        return f"{self.base_url}/merchant/notify"
