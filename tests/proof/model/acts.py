"""What people do, in words: members, buyers, operators, and the merchant at the channel's console.

Each asks the auditor what must come of it, does it, compares the answer, and says what it came to.
"""

from collections import Counter
from decimal import Decimal
from typing import Any

from lockstep.inventory.catalogue import load_catalogue
from tests.proof.model.auditor.books import Lines, Said, Sku
from tests.proof.model.auditor.minutes import Auditor
from tests.proof.model.still_world import SKUS, StillWorld, fen
from tests.proof.model.view import Observer
from tests.support import api, http_events
from tests.support.http_events import Answer


class Acts:
    """``seen`` counts each verb with what it came to; ``steps`` are those that were done,
    ``repeats`` how many notices were told again."""

    def __init__(self, still: StillWorld, policy: str) -> None:
        self.still, self.observer = still, Observer(still)
        skus = {
            sku: Sku(fen(price), stock, 0, hot, on_sale)
            for sku, (price, stock, hot, on_sale) in SKUS.items()
        }
        self.auditor = Auditor(policy, skus)
        self.seen: Counter[str] = Counter()
        self.steps: list[str] = []
        self.repeats = 0

    # --- members ---------------------------------------------------------------------------------

    def _place(self, member: str, key: str, lines: str, expected: str | None = None) -> str:
        said = self.auditor.place(int(member), key, _lines(lines), _fen(expected))
        body = {"lines": _listed(lines)} | ({"expected_amount": expected} if expected else {})
        answer = api.ask(http_events.post_order(body, member=member, key=key))
        if said.status == 201:
            self.observer.order_nos[said.more["order"]] = answer.document["order"]["order_no"]
        return self._compare(said, answer)

    def _start(self, member: str, order: str, product: str) -> str:
        said = self.auditor.start(int(member), order, product)
        order_no = self.observer.order_nos[order]
        return self._compare(said, self.still.world.start(order_no, product, int(member)))

    def _cancel(self, member: str, order: str) -> str:
        said = self.auditor.cancel(int(member), order)
        return self._compare(
            said, self.still.world.cancel(self.observer.order_nos[order], int(member))
        )

    def _look(self, order: str) -> str:
        member = self.auditor.orders[order].member
        event = http_events.get(f"/orders/{self.observer.order_nos[order]}", member=member)
        answer = api.ask(event)
        document = {"order": answer.document}
        return self._compare_document(self.auditor.look(order), answer, document)

    # --- buyers, and the merchant's console ------------------------------------------------------

    def _open(self, number: str) -> str:
        self.auditor.open_trade(number)
        self._books.open(self.observer.number(number))
        return "opened"

    def _pay(self, number: str, amount: str | None = None) -> str:
        self.auditor.pay_trade(number, _fen(amount))
        self.still.world.pay(self.observer.number(number), Decimal(amount) if amount else None)
        return "paid" if amount is None else "paid anyway"

    def _console(self, trade: str, amount: str) -> str:
        it = self.auditor.trades[trade]
        number = f"console_{len(it.refunds)}"
        self.auditor.refund_trade(it, fen(amount), number)
        real = self._books.find(trade_no=self.observer.trade_no(trade))
        self._books.refund(real, Decimal(amount), number)
        return "all" if it.back == it.amount else "a part"

    def _finish(self, trade: str) -> str:
        self.auditor.finish_trade(self.auditor.trades[trade])
        self._books.finish(self.observer.trade_no(trade))
        return "finished"

    # --- operators -------------------------------------------------------------------------------

    def _refund(self, order: str, key: str, amount: str, restock: str | None = None) -> str:
        """``amount`` or `rest`."""
        wanted = None if amount == "rest" else amount
        said = self.auditor.ask_refund(order, key, _fen(wanted), _lines(restock or ""))
        body: dict[str, Any] = {"reason": "broken"} | ({"amount": wanted} if wanted else {})
        body |= {"restock": _listed(restock)} if restock else {}
        event = http_events.refund_order(self.observer.order_nos[order], body, key=key)
        return self._compare(said, api.ask(event))

    def _attach(self, trade: str, order: str) -> str:
        said = self.auditor.attach(trade, order)
        event = http_events.attach(self.observer.trade_no(trade), self.observer.order_nos[order])
        return self._compare(said, api.ask(event))

    def _giveback(self, trade: str) -> str:
        said = self.auditor.give_back(trade)
        return self._compare(said, api.ask(http_events.give_back(self.observer.trade_no(trade))))

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

    # --- below -----------------------------------------------------------------------------------

    @property
    def _books(self) -> Any:
        return self.still.world.books

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
                return self.observer._order(order["order_no"])
            case "status" | "close_reason":
                return order[name]
            case "paid_amount" | "refunded_amount" | "pay_amount" | "refundable":
                return fen(order.get(name, document.get(name)))
            case "short":
                return {line["sku_id"]: line["available"] for line in document["lines"]}
            case "own_orders":
                return sorted(self.observer._order(no) for no in document.get(name, []))
            case "out_trade_no":
                return self.observer._name_of_number(document[name])
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
