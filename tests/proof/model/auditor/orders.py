"""Orders: one for each key, a page to pay at, and one end."""

from tests.proof.model.auditor.books import OPEN, UNPAID, Lines, Order, Page, Said
from tests.proof.model.auditor.refunds import Refunds
from tests.proof.model.auditor.stock import GRACE, TTL

MARGIN = 90
OVER_AFTER = 60


class Orders(Refunds):
    # --- members ---------------------------------------------------------------------------------

    def place(self, member: int, key: str, lines: Lines, expected: int | None) -> Said:
        content = (tuple(sorted(lines.items())), expected)
        if (member, key) in self.keys:
            known, name = self.keys[member, key]
            if known != content:
                return Said(409, "IDEMPOTENCY_KEY_REUSED")
            return Said(200, None, self._shown(self.orders[name], created=False))
        if any(sku not in self.skus or not self.skus[sku].on_sale for sku in lines):
            return Said(422, "SKU_UNKNOWN")
        pay = sum(self.skus[sku].price * quantity for sku, quantity in lines.items())
        if expected is not None and expected != pay:
            return Said(409, "AMOUNT_CHANGED", {"pay_amount": pay})
        order = Order(f"{len(self.orders) + 1}", member, lines, pay, self.now)
        hot = [self.skus[sku] for sku in lines if self.skus[sku].hot]
        if hot and all(sku.available > 0 for sku in hot):
            order.turn = min(sku for sku in lines if self.skus[sku].hot)
            order.become("RESERVING")
            self.stage("reserve", order.hold)
        elif short := self.short_of(lines):
            own = sorted(other.name for other in self._holders(member, short))
            return Said(409, "OUT_OF_STOCK", {"short": short, "own_orders": own})
        else:
            self._hold(order)
        self.orders[order.name] = order
        self.keys[member, key] = content, order.name
        return Said(201, None, self._shown(order, created=True))

    def start(self, member: int, name: str, product: str) -> Said:
        order = self.orders[name]
        if order.member != member:
            return Said(404, "ORDER_NOT_FOUND")
        if order.status == "RESERVING":
            return Said(409, "STOCK_NOT_HELD")
        live = self.live_pages(order)
        if order.status not in UNPAID or order.wish or any(p.state == "CLOSING" for p in live):
            return Said(409, "ORDER_NOT_PAYABLE")
        assert order.expires is not None
        if order.expires <= self.now:
            return Said(409, "ORDER_EXPIRED")
        for page in live:
            if page.product == product:
                return self._shown_page(page, 200)
        if order.expires - self.now < MARGIN:
            return Said(409, "ORDER_EXPIRED")
        nth = len(self.pages_of(order)) + 1
        page = Page(name if nth == 1 else f"{name}_{nth}", name, product, order.expires)
        self.pages[page.number] = page
        return self._shown_page(page, 201)

    def _shown_page(self, page: Page, status: int) -> Said:
        trade = self.trade_of(page.number)
        if page.product == "qr":
            fault = self.goes_wrong("alipay.trade.precreate", page.number)
            is_used = trade is not None and trade.state != "WAIT"
            page.asked = page.asked or (fault != "unknown_before" and not is_used)
            if fault is not None:
                return Said(503, "TRY_AGAIN")
            if is_used and trade is not None and trade.paid_at is not None:
                return Said(409, "ORDER_NOT_PAYABLE")
            if is_used:
                page.state = "CLOSED"
                return Said(503, "TRY_AGAIN")
        page.asked = True
        return Said(status, None, {"out_trade_no": page.number})

    def cancel(self, member: int, name: str) -> Said:
        order = self.orders[name]
        if order.member != member:
            return Said(404, "ORDER_NOT_FOUND")
        if order.status == "CLOSED":
            return Said(200)
        if order.status not in OPEN:
            return Said(409, "ORDER_NOT_CANCELLABLE")
        if not self.live_pages(order):
            self.close(order, "CANCELLED")
            return Said(200)
        return self._cancel_with_pages(order, self.live_pages(order))

    def _cancel_with_pages(self, order: Order, live: list[Page]) -> Said:
        order.wish = True
        for page in live:
            page.state = "CLOSING"
        for page in live:
            self.ask_about(page, closing=True, may_appear=False)
            if order.status == "CLOSED":
                return Said(200)
            if order.status not in OPEN:
                return Said(409, "ORDER_NOT_CANCELLABLE")
        return Said(202)

    def look(self, name: str) -> Said:
        return Said(200, None, self._shown(self.orders[name]))

    # --- what follows from the channel's answer --------------------------------------------------

    def ask_about(self, page: Page, *, closing: bool, may_appear: bool) -> str:
        order = self.orders[page.order]
        answer = self.converse(page, closing=closing, may_appear=may_appear)
        trade = self.trade_of(page.number)
        if answer in {"paid", "closed"} and trade is not None:
            self.hear(trade)
        if answer == "paid" and page.state in {"OPEN", "CLOSING"}:
            page.state = "PAID"
        if answer in {"closed", "closed by us", "never begun"} and page.state != "PAID":
            page.state = "CLOSED"
        if answer == "unknown" and closing:
            if order.status == "PENDING_PAYMENT":
                order.become("PAYMENT_PROCESSING")
            return answer
        self.end(order)
        return answer

    def end(self, order: Order) -> bool:
        """Close an order that nothing keeps open any more."""
        if order.status not in OPEN or self.live_pages(order):
            return False
        if order.wish:
            self.close(order, "CANCELLED")
        elif order.status in UNPAID and order.expires is not None and order.expires <= self.now:
            self.close(order, "EXPIRED")
        else:
            return False
        return True

    def is_over(self, page: Page) -> bool:
        return page.expires + OVER_AFTER <= self.now

    # --- the turn of a hot SKU -------------------------------------------------------------------

    def deliver_reserve(self, name: str) -> str:
        """One message decides all that wait at its order's turn, late money first."""
        order = self.orders[name.partition("-")[0]]
        if order.turn is None or not self._waits(order):
            return self.reinstate(order)
        at_turn = [other for other in self.orders.values() if other.turn == order.turn]
        came_to = {other.name: self.reinstate(other) for other in at_turn if self.is_late(other)}
        for other in at_turn:
            if other.status == "RESERVING":
                came_to[other.name] = self._decide(other)
        return came_to[order.name]

    def _waits(self, order: Order) -> bool:
        return order.status == "RESERVING" or self.is_late(order)

    def _decide(self, order: Order) -> str:
        if not self.short_of(order.lines):
            self._hold(order)
            return "held"
        order.become("CLOSED")  # it never had a hold: there is nothing to release
        order.close_reason = "OUT_OF_STOCK"
        return "sold out"

    def _hold(self, order: Order) -> None:
        order.become("PENDING_PAYMENT")
        order.expires = self.now + TTL
        self.take_hold(order, order.expires + GRACE)

    def _holders(self, member: int, short: dict[int, int]) -> list[Order]:
        return [
            order
            for order in self.orders.values()
            if order.member == member
            and order.status in UNPAID
            and self.holds[order.hold].state == "RESERVED"
            and short.keys() & order.lines.keys()
        ]

    def _shown(self, order: Order, **more: object) -> dict[str, object]:
        return more | {
            "order": order.name,
            "status": order.status,
            "close_reason": order.close_reason,
            "pay_amount": order.pay,
            "paid_amount": order.paid,
            "refunded_amount": order.back,
        }
