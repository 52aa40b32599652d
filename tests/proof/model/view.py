"""What is so, told twice in the same words: by the auditor, and by the database, the queues and the
channel. A step holds where the two are equal."""

from collections import Counter
from typing import Any

from infra.local.alipay_gateway.shapes import Status, Trade
from tests.proof.model.auditor.minutes import Auditor, Due
from tests.proof.model.names import Names
from tests.proof.model.still_world import BEGAN, fen
from tests.support.database import Row

type View = dict[str, Any]

_TRADE_STATES = {
    Status.WAIT_BUYER_PAY: "WAIT",
    Status.TRADE_SUCCESS: "SUCCESS",
    Status.TRADE_CLOSED: "CLOSED",
    Status.TRADE_FINISHED: "FINISHED",
}


def told_by(auditor: Auditor) -> View:
    return {
        "stock": {
            sku: (it.stock, it.locked, it.price, it.hot, it.on_sale)
            for sku, it in auditor.skus.items()
        },
        "orders": {
            o.name: (o.status, o.close_reason, o.pay, o.paid, o.back, o.wish, o.hold, o.expires)
            for o in auditor.orders.values()
        },
        "trails": {o.name: o.trail for o in auditor.orders.values()},
        "requests": {key: name for key, (_, name) in auditor.keys.items()},
        "holds": {name: (hold.state, hold.items) for name, hold in auditor.holds.items()},
        "pages": {p.number: (p.product, p.state) for p in auditor.pages.values()},
        "payments": {
            p.trade: (p.order, p.amount, p.state, p.reason, p.back)
            for p in auditor.payments.values()
        },
        "refunds": {r.name: (r.amount, r.state) for r in auditor.refunds.values()},
        "inbox": {n.name: n.state for n in auditor.notices.values()},
        "refused": auditor.refused,
        "waiting": +auditor.waiting,
        "unsent": Counter(message for message, _ in auditor.unsent),
        "channel": {t.name: (t.number, t.amount, t.state, t.back) for t in auditor.trades.values()},
        "faults to come": sum(len(each) for each in auditor.faults.values()),
    }


class Observer(Names):
    """Sees the world by the auditor's names."""

    def due(self) -> Due:
        rows = self._rows(
            "SELECT out_trade_no FROM oms_payment_attempt WHERE next_ask_at <= %s "
            "ORDER BY next_ask_at, id",
            self.still.clock(),
        )
        inbox = self._rows(
            "SELECT notify_id FROM oms_notice WHERE next_ask_at <= %s ORDER BY next_ask_at, id",
            self.still.clock(),
        )
        names = {n.id: self._name_of_notice(n) for n in self.still.told}
        return Due(
            [self._name_of_number(row["out_trade_no"]) for row in rows],
            [names[row["notify_id"]] for row in inbox],
            self._refunds_due(),
        )

    # --- the whole -------------------------------------------------------------------------------

    def look(self) -> View:
        wire = self.still.world.wire
        return {
            "stock": {
                r["sku_id"]: (
                    *(r["stock"], r["lock_stock"], fen(r["price"])),
                    *(bool(r["hot"]), bool(r["on_sale"])),
                )
                for r in self._rows("SELECT * FROM ims_sku_stock")
            },
            "orders": {self._order(r["order_no"]): self._seen(r) for r in self._orders()},
            "trails": self._trails(),
            "requests": {
                (r["member_id"], r["idempotency_key"]): self._order(r["order_no"])
                for r in self._rows(
                    "SELECT q.*, o.order_no FROM oms_order_request AS q "
                    "JOIN oms_order AS o ON o.id = q.order_id"
                )
            },
            "holds": self._holds(),
            "pages": {
                self._name_of_number(r["out_trade_no"]): (r["product"], r["state"])
                for r in self._rows("SELECT * FROM oms_payment_attempt")
            },
            "payments": self._payments(),
            "refunds": {
                name: (fen(r["amount"]), r["state"]) for name, r in self._refunds().items()
            },
            "inbox": self._inbox(),
            "refused": {
                (self._hold(r["reservation_id"]), r["code"])
                for r in self._rows("SELECT * FROM message_refusal")
            },
            "waiting": Counter(self._subject_of(m) for m in wire.waiting()),
            "unsent": Counter(
                self._subject(r["queue"], r["group_key"], r["refund_id"])
                for r in self._rows(
                    "SELECT queue, group_key, payload->>'$.refund_id' AS refund_id FROM outbox "
                    "WHERE sent_at IS NULL"
                )
            ),
            "channel": {
                f"t{n}": self._at_the_channel(trade) for n, trade in enumerate(self._books, 1)
            },
            "faults to come": len(self.still.world.alipay.faults.report()["rules"]),
        }

    def _orders(self) -> list[Row]:
        return self._rows(
            "SELECT *, TIMESTAMPDIFF(SECOND, %s, expires_at) AS expires FROM oms_order", BEGAN
        )

    def _seen(self, r: Row) -> tuple[Any, ...]:
        amounts = (fen(r[name]) for name in ("pay_amount", "paid_amount", "refunded_amount"))
        wish = r["cancel_requested_at"] is not None
        hold = self._hold(r["reservation_id"])
        return r["status"], r["close_reason"], *amounts, wish, hold, r["expires"]

    def _trails(self) -> dict[str, list[str]]:
        trails: dict[str, list[str]] = {}
        for r in self._rows(
            "SELECT o.order_no, e.to_status FROM oms_order_event AS e "
            "JOIN oms_order AS o ON o.id = e.order_id ORDER BY e.id"
        ):
            trails.setdefault(self._order(r["order_no"]), []).append(r["to_status"])
        return trails

    def _holds(self) -> View:
        holds: View = {}
        for r in self._rows(
            "SELECT r.reservation_id, r.state, i.sku_id, i.quantity FROM ims_reservation AS r "
            "LEFT JOIN ims_reservation_item AS i USING (reservation_id)"
        ):
            _, items = holds.setdefault(self._hold(r["reservation_id"]), (r["state"], {}))
            if r["sku_id"] is not None:
                items[r["sku_id"]] = r["quantity"]
        return holds

    def _payments(self) -> View:
        rows = self._rows(
            "SELECT p.*, o.order_no FROM oms_order_payment AS p "
            "LEFT JOIN oms_order AS o ON o.id = p.order_id"
        )
        return {
            self._trade(r["trade_no"]): (
                *(r["order_no"] and self._order(r["order_no"]), fen(r["amount"]), r["state"]),
                *(r["reason"], fen(r["refunded_amount"])),
            )
            for r in rows
        }

    def _inbox(self) -> View:
        known = {r["notify_id"]: r["state"] for r in self._rows("SELECT * FROM oms_notice")}
        return {self._name_of_notice(n): known.get(n.id) for n in self.still.told}

    def _refunds_due(self) -> dict[str, int]:
        return {
            name: r["next_try"]
            for name, r in self._refunds().items()
            if r["next_try"] is not None and r["next_try"] <= self.still.clock.seconds
        }

    def _at_the_channel(self, trade: Trade) -> tuple[Any, ...]:
        number = self._name_of_number(trade.out_trade_no)
        return number, fen(trade.amount), _TRADE_STATES[trade.status], fen(trade.refunded)
