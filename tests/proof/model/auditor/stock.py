"""Stock: no more is held than is there, and each hold ends once."""

from tests.proof.model.auditor.books import Books, Hold, Lines, Order, Said, Sku

GRACE = 600
TTL = 600


class Stock(Books):
    def short_of(self, lines: Lines) -> dict[int, int]:
        """What is available of each SKU of which there is too little."""
        return {
            sku: self.skus[sku].available
            for sku, wanted in lines.items()
            if self.skus[sku].available < wanted
        }

    def take_hold(self, order: Order, until: int) -> None:
        for sku, quantity in order.lines.items():
            self.skus[sku].locked += quantity
        self.holds[order.hold] = Hold(order.name, "RESERVED", dict(order.lines), until)

    def free_hold(self, hold: Hold) -> None:
        hold.state = "RELEASED"
        for sku, quantity in hold.items.items():
            self.skus[sku].locked -= quantity

    def sell_hold(self, hold: Hold) -> None:
        hold.state = "CONFIRMED"
        for sku, quantity in hold.items.items():
            self.skus[sku].locked -= quantity
            self.skus[sku].stock -= quantity

    # --- what the queues deliver -----------------------------------------------------------------

    def deliver_confirm(self, name: str) -> str:
        hold = self.holds.get(name)
        if hold is not None and hold.state == "CONFIRMED":
            return "repeated"
        if hold is not None and hold.state == "RESERVED":
            self.sell_hold(hold)
            return "sold"
        self.refused.add((name, "RESERVATION_NOT_RESERVED"))
        return "refused"

    def deliver_release(self, name: str) -> str:
        hold = self.holds.get(name)
        if hold is None:
            self.holds[name] = Hold(name.partition("-")[0], "RELEASED", {})
            return "tombstone"
        if hold.state == "RELEASED":
            return "repeated"
        if hold.state == "RESERVED":
            self.free_hold(hold)
            return "freed"
        self.refused.add((name, "RESERVATION_CANNOT_RELEASE"))
        return "refused"

    # --- the catalogue ---------------------------------------------------------------------------

    def load(self, sku: int, wanted: Sku) -> Said:
        """A catalogue of one row: ``stock`` of ``wanted`` is what is to be on hand, held pieces
        among it."""
        known = self.skus.get(sku)
        if known is None:
            self.skus[sku] = wanted
            return Said(200, None, {"loaded": 1})
        if wanted.stock < known.locked:
            return Said(409, "STOCK_BELOW_HELD")
        marks = (wanted.price, wanted.hot, wanted.on_sale)
        repriced = marks != (known.price, known.hot, known.on_sale)
        restocked = wanted.stock != known.stock
        known.price, known.hot, known.on_sale = marks
        known.stock = wanted.stock
        return Said(200, None, {"repriced": int(repriced), "restocked": int(restocked)})
