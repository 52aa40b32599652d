"""A channel that answers what a test scripted, and remembers what it was asked."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from lockstep.alipay.answers import Outcome, RefundFound, Refused, Trade, TradeStatus
from tests.support.notices import PAID_AT

NOT_EXIST = Refused("ACQ.TRADE_NOT_EXIST")


def a_trade(status: str = "TRADE_SUCCESS", **changes: Any) -> Trade:
    """What the channel says of the base notice's trade; changed."""
    said: dict[str, Any] = {
        "trade_no": "T1",
        "out_trade_no": "O1",
        "status": TradeStatus(status),
        "total_amount": Decimal("9.90"),
        "paid_at": PAID_AT,
        "is_settled": True,
    }
    return Trade(**(said | changes))


class AskedChannel:
    """Answers the next of ``answers`` to each call, and the last one for ever.

    An answer may be a fault, which is raised. ``calls`` are the keys that were asked for;
    ``while_asked`` runs in the middle of each.
    """

    def __init__(self, *answers: Outcome[Trade] | Outcome[RefundFound] | Exception) -> None:
        self.calls: list[dict[str, str | None]] = []
        self.while_asked: Callable[[], object] = lambda: None
        self._answers = list(answers)

    def connect(self) -> Any:
        return self

    def query(self, **asked: str | None) -> Any:
        return self._answer(asked)

    def query_refund(self, **asked: str | None) -> Any:
        return self._answer(asked)

    def _answer(self, asked: dict[str, str | None]) -> Any:
        self.calls.append(asked)
        self.while_asked()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def nobody() -> Any:
    """A channel that must not be needed."""
    raise AssertionError("the channel was connected to")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
