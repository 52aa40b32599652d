"""The auditor's names for what is in the world: orders and their pages, holds, trades, refunds,
messages and notices; and the way back."""

import json
from collections import Counter
from dataclasses import dataclass, field

from infra.local.alipay_gateway.shapes import Trade
from infra.local.alipay_gateway.wording import Notice
from tests.proof.model.still_world import BEGAN, StillWorld, fen
from tests.support.database import Row
from tests.support.wire import Message


@dataclass
class Names:
    """``order_nos`` by order."""

    still: StillWorld
    order_nos: dict[str, str] = field(default_factory=dict)

    def number(self, name: str) -> str:
        """The out_trade_no of a page, or of nobody's."""
        order, _, nth = name.partition("_")
        return "_".join(filter(None, (self.order_nos.get(order, order), nth)))

    def trade_no(self, name: str) -> str:
        return self._books[int(name[1:]) - 1].trade_no

    def notice(self, name: str) -> Notice:
        return next(n for n in self.still.told if self._name_of_notice(n) == name)

    def message(self, queue: str, subject: str) -> Message:
        return next(
            m for m in self.still.world.wire.waiting() if self._subject_of(m) == (queue, subject)
        )

    def _refunds(self) -> dict[str, Row]:
        """Ours, by name."""
        found: dict[str, Row] = {}
        counts: Counter[str] = Counter()
        for r in self._rows(
            "SELECT r.*, p.trade_no, TIMESTAMPDIFF(SECOND, %s, r.next_try_at) AS next_try "
            "FROM oms_refund AS r JOIN oms_order_payment AS p ON p.id = r.payment_id "
            "WHERE r.requested_by <> 'alipay' ORDER BY r.id",
            BEGAN,
        ):
            trade = self._trade(r["trade_no"])
            counts[trade] += 1
            found[f"{trade}#{counts[trade]}"] = r
        return found

    @property
    def _books(self) -> list[Trade]:
        return self.still.world.books.trades()

    def _rows(self, sql: str, *arguments: object) -> list[Row]:
        return self.still.world.database.rows(sql, arguments)

    def _order(self, order_no: str) -> str:
        return next((name for name, no in self.order_nos.items() if no == order_no), order_no)

    def _name_of_number(self, out_trade_no: str) -> str:
        order_no, _, nth = out_trade_no.partition("_")
        return "_".join(filter(None, (self._order(order_no), nth)))

    def _hold(self, reservation_id: str) -> str:
        order_no, _, n = reservation_id.partition("-")
        return f"{self._order(order_no)}-{n}"

    def _trade(self, trade_no: str) -> str:
        return next(f"t{n}" for n, trade in enumerate(self._books, 1) if trade.trade_no == trade_no)

    def _subject_of(self, message: Message) -> tuple[str, str]:
        return self._subject(
            message.queue, message.group, json.loads(message.body).get("refund_id")
        )

    def _subject(self, queue: str, group: str, refund_id: object) -> tuple[str, str]:
        if queue != "refund":
            return queue, self._hold(group)
        return queue, next(n for n, r in self._refunds().items() if str(r["id"]) == str(refund_id))

    def _name_of_notice(self, notice: Notice) -> str:
        words = notice.words
        trade, back = self._trade(words["trade_no"]), fen(words.get("refund_fee", "0"))
        if words["trade_status"] == "TRADE_FINISHED":
            return f"{'BACK' if back else 'FINISHED'}:{trade}:finish"
        if back:
            return f"BACK:{trade}:{back}"
        return f"{'PAID' if words['trade_status'] == 'TRADE_SUCCESS' else 'CLOSED'}:{trade}"
