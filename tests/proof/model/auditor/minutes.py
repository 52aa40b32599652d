"""What happens by itself: the relay sends what the queues did not take, and each minute the sweep
ends what is over, says again what was lost, and asks the channel what nobody told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.proof.model.auditor.books import LIVE, OPEN, UNPAID, Hold, Message
from tests.proof.model.auditor.money import PAID
from tests.proof.model.auditor.orders import Orders

RELAY_AFTER = 10
RESERVING_LIMIT = 300
PAUSE, PAUSE_MAX = 60, 3600


@dataclass
class Due:
    """What the product chose to do now: pages and notices to ask about, in their order, and when
    each refund is to be tried."""

    pages: Sequence[str] = ()
    notices: Sequence[str] = ()
    refunds: Mapping[str, int] = field(default_factory=dict)


class Auditor(Orders):
    def relay(self) -> int:
        due = [message for message, at in self.unsent if self.now - at >= RELAY_AFTER]
        self.unsent = [(m, at) for m, at in self.unsent if self.now - at < RELAY_AFTER]
        self.waiting.update(due)
        return len(due)

    def sweep(self, due: Due) -> None:
        for status in ("PENDING_PAYMENT", "PAYMENT_PROCESSING"):
            self._expire(status)
        self._give_up_waiting()
        self._settle_overdue_holds()
        self._say_holds_again()
        self._say_reserves_again()
        self._say_refunds_again(due.refunds)
        for number in due.pages:
            self._ask_page(number)
        for name in due.notices:
            self._ask_notice(name)

    # --- what is over ----------------------------------------------------------------------------

    def _expire(self, status: str) -> None:
        for order in self.orders.values():
            if order.status == status and (order.expires or 0) <= self.now:
                self.end(order)

    def _give_up_waiting(self) -> None:
        for order in self.orders.values():
            if order.status == "RESERVING" and self.now - order.created >= RESERVING_LIMIT:
                self.close(order, "OUT_OF_STOCK")

    def _settle_overdue_holds(self) -> None:
        for name, hold in self.holds.items():
            if hold.state == "RESERVED" and hold.until <= self.now:
                says = self._what_becomes_of_hold(name, hold)
                if says == "confirm":
                    self.sell_hold(hold)
                elif says == "release":
                    self.free_hold(hold)

    # --- what may have been lost -----------------------------------------------------------------

    def _say_holds_again(self) -> None:
        for name, hold in self.holds.items():
            says = self._what_becomes_of_hold(name, hold)
            if hold.state == "RESERVED" and says is not None and self._is_due((says, name)):
                self.stage(says, name)

    def _say_reserves_again(self) -> None:
        first = {o.turn: o for o in reversed(self.orders.values()) if o.status == "RESERVING"}
        for order in sorted(first.values(), key=lambda order: int(order.name)):
            message = ("reserve", order.hold)
            if self.now - order.created >= PAUSE and self._is_due(message):
                self.stage(*message)
        for payment in self.payments.values():
            if payment.state == "REINSTATE_PENDING" and self.now - payment.created >= PAUSE:
                order = self.orders[payment.order or ""]
                message = ("reserve", f"{order.name}-{order.n + 1}")
                if self._is_due(message):
                    self.stage(*message)

    def _say_refunds_again(self, due: Mapping[str, int]) -> None:
        for name, at in due.items():
            if at <= self.now and self._is_due(("refund", name), since=at):
                self.stage("refund", name)

    def _is_due(self, message: Message, since: int | None = None) -> bool:
        """60 s after the newest one, then 2, 4, 8 ... 60 minutes."""
        said = self.said[message]
        times = sum(1 for at in said if since is None or at >= since)
        pause = min(PAUSE * 2 ** max(0, times - 1), PAUSE_MAX)
        return not said or self.now - said[-1] >= pause

    def _what_becomes_of_hold(self, name: str, hold: Hold) -> str | None:
        order = self.orders[hold.order]
        if order.status == "CLOSED" or order.hold != name:
            return "release"
        return "confirm" if order.status in PAID else None

    # --- what only the channel knows -------------------------------------------------------------

    def _ask_page(self, number: str) -> None:
        page = self.pages[number]
        order = self.orders[page.order]
        was_live = page.state in LIVE
        if not was_live and (self.end(order) or page.state == "PAID"):
            return
        given_up = order.status in OPEN and order.wish
        over = self.is_over(page)
        if page.state == "OPEN" and (over or order.status not in OPEN or given_up):
            page.state = "CLOSING"
        self.ask_about(
            page,
            closing=page.state != "OPEN",
            may_appear=was_live and not over and not given_up,
        )

    def _ask_notice(self, name: str) -> None:
        notice = self.notices[name]
        trade = self.trades[notice.trade]
        if notice.state == "DONE":
            return
        is_asked = notice.state == "QUERY_DUE" and trade.name not in self.payments
        if is_asked and self.goes_wrong("alipay.trade.query", trade.number) is None:
            self.hear(trade)
        self.decide(notice)
        payment = self.payments.get(trade.name)
        if notice.state == "DONE" and payment is not None and payment.state == "UNMATCHED":
            notice.state = "UNMATCHED"

    # --- the whole of it -------------------------------------------------------------------------

    def open_ends(self) -> list[str]:
        """What must still end by itself."""
        return [
            *(o.name for o in self.orders.values() if o.status in OPEN | {"REFUNDING"}),
            *(p.number for p in self.pages.values() if p.state in LIVE),
            *(r.name for r in self.refunds.values() if r.state not in {"DONE", "FAILED"}),
            *(p.trade for p in self.payments.values() if p.state in MOVING),
            *(n for n, notice in self.notices.items() if notice.state in {None, "QUERY_DUE"}),
            *(m for m, hold in self.holds.items() if self._is_forgotten(m, hold)),
            *(f"{queue} {subject}" for queue, subject in self.waiting.elements()),
            *(f"{message}" for message, _ in self.unsent),
        ]

    def _is_forgotten(self, name: str, hold: Hold) -> bool:
        return hold.state == "RESERVED" and self._what_becomes_of_hold(name, hold) is not None


MOVING = frozenset({"REFUND_PENDING", "REFUNDING", "REINSTATE_PENDING"})
assert UNPAID < OPEN
