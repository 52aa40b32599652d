"""A life of the system, step by step, each a line of words that can be read and done again:

    place 42 a 1001:2         start 42 1 page         pay 1         tell PAID:t1
    deliver confirm 1-1       go 61                   sweep         rest

Each step asks the auditor what must come of it, does it, and compares: what was answered, and then
everything that is so.
"""

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from infra.local import invariants
from infra.local.alipay_gateway.shapes import Refused
from lockstep.inventory.catalogue import load_catalogue
from tests.proof.auditor.books import Lines, Said, Sku
from tests.proof.auditor.minutes import Auditor
from tests.proof.model_view import Eye, fen, told_by
from tests.proof.model_world import SKUS, StillWorld
from tests.support import api, http_events
from tests.support.http_events import Answer

REST_MAX: Final = 40
# All but the last hold while messages are in flight, too. In one round trip: whether any is broken.
_IS_ANY_BROKEN: Final = "SELECT " + " OR ".join(
    f"EXISTS ({invariant.query})" for invariant in invariants.INVARIANTS[:-1]
)


class Life:
    """``seen`` counts each verb with what it came to; ``steps`` are those that were done."""

    def __init__(self, still: StillWorld, policy: str) -> None:
        self.still, self.eye = still, Eye(still)
        skus = {
            sku: Sku(fen(price), stock, 0, hot, on_sale)
            for sku, (price, stock, hot, on_sale) in SKUS.items()
        }
        self.auditor = Auditor(policy, skus)
        self.seen: Counter[str] = Counter()
        self.steps: list[str] = []

    def do(self, step: str) -> None:
        self.steps.append(step)
        verb, *words = step.split()
        came_to = getattr(self, f"_{verb}")(*words)
        self.seen[f"{verb} {came_to}"] += 1
        self.check()

    def check(self) -> None:
        expected, found = told_by(self.auditor), self.eye.look()
        differing = [
            f"{name}: the auditor has {expected[name]}, there is {found[name]}"
            for name in expected
            if expected[name] != found[name]
        ]
        assert not differing, "\n".join(differing)
        database = self.still.world.database
        assert not database.value(_IS_ANY_BROKEN), invariants.broken(database.rows)

    # --- members ---------------------------------------------------------------------------------

    def _place(self, member: str, key: str, lines: str, expected: str | None = None) -> str:
        said = self.auditor.place(int(member), key, _lines(lines), _fen(expected))
        body = {"lines": _listed(lines)} | ({"expected_amount": expected} if expected else {})
        answer = api.ask(http_events.post_order(body, member=member, key=key))
        if said.status == 201:
            self.eye.order_nos[said.more["order"]] = answer.document["order"]["order_no"]
        return self._compare(said, answer)

    def _start(self, member: str, order: str, product: str) -> str:
        said = self.auditor.start(int(member), order, product)
        order_no = self.eye.order_nos[order]
        return self._compare(said, self.still.world.start(order_no, product, int(member)))

    def _cancel(self, member: str, order: str) -> str:
        said = self.auditor.cancel(int(member), order)
        return self._compare(said, self.still.world.cancel(self.eye.order_nos[order], int(member)))

    def _look(self, order: str) -> str:
        member = self.auditor.orders[order].member
        event = http_events.get(f"/orders/{self.eye.order_nos[order]}", member=member)
        answer = api.ask(event)
        document = {"order": answer.document}
        return self._compare_document(self.auditor.look(order), answer, document)

    # --- buyers, and the merchant's console ------------------------------------------------------

    def _open(self, number: str) -> str:
        self.auditor.open_trade(number)
        self._books.open(self.eye.number(number))
        return "opened"

    def _pay(self, number: str, amount: str | None = None) -> str:
        self.auditor.pay_trade(number, _fen(amount))
        self.still.world.pay(self.eye.number(number), Decimal(amount) if amount else None)
        return "paid" if amount is None else "paid anyway"

    def _console(self, trade: str, amount: str) -> str:
        it = self.auditor.trades[trade]
        number = f"console_{len(it.refunds)}"
        self.auditor.refund_trade(it, fen(amount), number)
        real = self._books.find(trade_no=self.eye.trade_no(trade))
        self._books.refund(real, Decimal(amount), number)
        return "all" if it.back == it.amount else "a part"

    def _finish(self, trade: str) -> str:
        self.auditor.finish_trade(self.auditor.trades[trade])
        self._books.finish(self.eye.trade_no(trade))
        return "finished"

    # --- operators -------------------------------------------------------------------------------

    def _refund(self, order: str, key: str, amount: str, restock: str | None = None) -> str:
        """``amount`` or `rest`."""
        wanted = None if amount == "rest" else amount
        said = self.auditor.ask_refund(order, key, _fen(wanted), _lines(restock or ""))
        body: dict[str, Any] = {"reason": "broken"} | ({"amount": wanted} if wanted else {})
        body |= {"restock": _listed(restock)} if restock else {}
        event = http_events.refund_order(self.eye.order_nos[order], body, key=key)
        return self._compare(said, api.ask(event))

    def _attach(self, trade: str, order: str) -> str:
        said = self.auditor.attach(trade, order)
        event = http_events.attach(self.eye.trade_no(trade), self.eye.order_nos[order])
        return self._compare(said, api.ask(event))

    def _giveback(self, trade: str) -> str:
        said = self.auditor.give_back(trade)
        return self._compare(said, api.ask(http_events.give_back(self.eye.trade_no(trade))))

    def _load(self, sku: str, stock: str, price: str, hot: str, on_sale: str) -> str:
        number, is_hot, sells = int(sku), hot == "hot", on_sale == "sells"
        said = self.auditor.load(number, Sku(fen(price), int(stock), 0, is_hot, sells))
        row = f"{sku},SKU {sku},{price},{stock},{str(is_hot).lower()},{str(sells).lower()}"
        report = load_catalogue(
            f"sku_id,title,price,stock,hot,on_sale\n{row}\n", "operator:alice", f"{len(self.steps)}"
        )
        assert [error.code for error in report.errors] == ([said.code] if said.code else [])
        assert {name: getattr(report, name) for name in said.more} == said.more
        return _label(said)

    # --- what happens by itself ------------------------------------------------------------------

    def _tell(self, notice: str) -> str:
        before = self.auditor.notices[notice].state
        expected = self.auditor.tell(notice)
        assert self.still.tell(self.eye.notice(notice)) == expected
        after = self.auditor.notices[notice].state
        return f"{notice.partition(':')[0]} {before} {after}"

    def _deliver(self, queue: str, subject: str, again: str = "") -> str:
        message = self.eye.message(queue, subject)
        if queue == "refund":
            is_due = subject in self.eye.due().refunds
            came_to = self.auditor.deliver_refund(subject, is_due=is_due)
        else:
            came_to = getattr(self.auditor, f"deliver_{queue}")(subject)
        if not again:
            self.auditor.waiting[queue, subject] -= 1
        self.still.world.wire.hand_over(message, again=bool(again))
        return f"{queue} {came_to}"

    def _relay(self) -> str:
        expected = self.auditor.relay()
        assert self.still.world.relay()["sent"] == expected
        return "some" if expected else "none"

    def _sweep(self) -> str:
        before = Counter(order.status for order in self.auditor.orders.values())
        self.auditor.sweep(self.eye.due())
        swept = self.still.world.sweep()
        assert swept["failed"] == []
        after = Counter(order.status for order in self.auditor.orders.values())
        return " ".join(sorted((after - before).keys()) or ["nothing"])

    def _go(self, seconds: str) -> str:
        self.auditor.now += int(seconds)
        self.auditor.close_due_trades()
        self.still.go(int(seconds))
        return seconds

    # --- what goes wrong -------------------------------------------------------------------------

    def _fault(self, method: str, number: str, action: str) -> str:
        self.auditor.faults[method, number].append(action)
        faults = self.still.world.alipay.faults
        faults.add(method, action, out_trade_no=self.eye.number(number))
        return f"{method} {action}"

    def _queues(self, state: str) -> str:
        self.auditor.is_down = self.still.world.wire.is_down = state == "down"
        return state

    # --- the end ---------------------------------------------------------------------------------

    def _rest(self) -> str:
        """Nobody does anything any more, nothing goes wrong, and hours pass: everything ends."""
        self._queues("up")
        self.auditor.faults.clear()
        self.still.world.alipay.faults.clear()
        for _ in range(REST_MAX):
            self._an_hour()
            if not self.auditor.open_ends():
                break
        assert self.auditor.open_ends() == []
        assert invariants.broken(self.still.world.database.rows) == {}
        return "over"

    def _an_hour(self) -> None:
        hour = int(timedelta(hours=1).total_seconds())
        for step in (f"_go {hour}", "_sweep", "_go 15", "_relay"):
            self._quietly(step)
        for queue, subject in list((+self.auditor.waiting).elements()):
            self._quietly(f"_deliver {queue} {subject}")
        for name, notice in list(self.auditor.notices.items()):
            if notice.state is None:
                self._quietly(f"_tell {name}")

    def _quietly(self, step: str) -> None:
        verb, *words = step.split()
        with suppress(Refused):
            getattr(self, verb)(*words)
        self.check()

    # --- below -----------------------------------------------------------------------------------

    @property
    def _books(self) -> Any:
        return self.still.world.alipay.service.books

    def _compare(self, said: Said, answer: Answer) -> str:
        document = answer.document
        return self._compare_document(said, answer, document)

    def _compare_document(self, said: Said, answer: Answer, document: Any) -> str:
        assert (answer.status, answer.code) == (said.status, said.code), answer.text
        found = {name: self._found(name, document) for name in said.more}
        assert found == said.more, answer.text
        return _label(said)

    def _found(self, name: str, document: Any) -> Any:
        """What ``document`` says under the auditor's ``name``."""
        order = document.get("order", {})
        match name:
            case "order":
                return self.eye._order(order["order_no"])
            case "status" | "close_reason":
                return order[name]
            case "paid_amount" | "refunded_amount" | "pay_amount" | "refundable":
                return fen(order.get(name, document.get(name)))
            case "short":
                return {line["sku_id"]: line["available"] for line in document["lines"]}
            case "own_orders":
                return sorted(self.eye._order(no) for no in document.get(name, []))
            case "out_trade_no":
                return self.eye._name_of_number(document[name])
            case _:
                return document[name]


def _label(said: Said) -> str:
    return f"{said.status} {said.code}" if said.code else f"{said.status}"


def _fen(amount: str | None) -> int | None:
    return None if amount is None else fen(amount)


def _lines(text: str) -> Lines:
    pairs = (pair.split(":") for pair in text.split(",") if pair)
    return {int(sku): int(quantity) for sku, quantity in pairs}


def _listed(text: str) -> list[dict[str, int]]:
    return [{"sku_id": sku, "quantity": quantity} for sku, quantity in _lines(text).items()]
