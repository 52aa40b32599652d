"""What the words of a `money_plan` mean: each a method, which says in a word what it came to."""

from datetime import timedelta
from decimal import Decimal
from typing import Final

from infra.local.alipay_gateway.books import REFUND_GAP, Books
from infra.local.alipay_gateway.faults import Action
from infra.local.alipay_gateway.shapes import Trade
from lockstep.alipay.gateway import Gateway
from lockstep.errors import TryAgain
from lockstep.messaging.relay import relay
from lockstep.orders.model import Order, Placed, Replayed
from lockstep.orders.place import place
from lockstep.payments.ask_refund import Asked, AskRefund, ask_refund
from lockstep.payments.attach import attach
from lockstep.payments.cancel import cancel
from lockstep.payments.give_back import GiveBack, give_back
from lockstep.payments.model import Started, StartPayment, StockNotHeld
from lockstep.payments.start import start
from lockstep.upkeep.sweep import sweep
from tests.support import passing_time
from tests.support.local_alipay import LocalAlipay, PassingClock
from tests.support.money_plan import Act
from tests.support.wire import Wire

FEN: Final = Decimal("0.01")
PATIENCE: Final = 4


class NothingThere(Exception):
    """No order, page or trade yet, or ever: what came before did not succeed."""


class Acts:
    """``strays`` are the trades of numbers that nobody knows, ``seen_to`` those of them that an
    operator attached or gave back."""

    def __init__(self, alipay: LocalAlipay, clock: PassingClock, wire: Wire) -> None:
        self.alipay, self.clock, self.wire = alipay, clock, wire
        self.strays: set[str] = set()
        self.seen_to: set[str] = set()
        self._gateway = alipay.gateway()

    def connect(self) -> Gateway:
        return self._gateway

    @property
    def _books(self) -> Books:
        return self.alipay.service.books

    # --- members ---------------------------------------------------------------------------------

    def place(self, act: Act) -> str:
        outcome = place(act.member.command)
        if isinstance(outcome, Placed | Replayed):
            act.member.order = outcome.order
        return type(outcome).__name__

    def start(self, act: Act) -> str:
        """As often as it takes a patient member: until it is the order's turn for its stock, and
        until the channel has made a code to scan."""
        order, to = _order(act), self.alipay.service.merchant_url
        command = StartPayment(order.member_id, order.order_no, act.product, to)
        for _ in range(PATIENCE):
            try:
                outcome = start(command, self.connect)
            except TryAgain:
                continue
            if isinstance(outcome, Started):
                self._see(act, outcome)
            if not isinstance(outcome, StockNotHeld):
                return type(outcome).__name__
            self.deliver(act)
        return "gave up"

    def _see(self, act: Act, started: Started) -> None:
        if act.product != "qr":
            self.alipay.follow(started.link)
        if started.attempt.out_trade_no not in act.member.numbers:
            act.member.numbers.append(started.attempt.out_trade_no)

    def open(self, act: Act) -> str:
        return self._books.open(_page(act)).status

    def pay(self, act: Act) -> str:
        return self._pay(act, _page(act))

    def pay_first(self, act: Act) -> str:
        return self._pay(act, _page(act, 0))

    def untold(self, act: Act) -> str:
        """No notice tells. The page is opened before: from then on, who closes it closes a trade at
        the channel, and nothing is paid that a query does not find."""
        number = _page(act)
        self._books.open(number)
        self.alipay.faults.add("notice", Action.NEVER, out_trade_no=number)
        return self._pay(act, number)

    def untold_cancel(self, act: Act) -> str:
        self.untold(act)
        return self.cancel(act)

    def again(self, act: Act) -> str:
        return self._pay_anyway(act, _order(act).pay_amount)

    late = again

    def wrong(self, act: Act) -> str:
        return self._pay_anyway(act, _order(act).pay_amount + FEN)

    def in_time(self, act: Act) -> str:
        """By the channel's clock before the order was over, which it is since."""
        with self.clock.back(passing_time.OVER_SINCE + timedelta(minutes=3)):
            return self.late(act)

    def cancel(self, act: Act) -> str:
        order = _order(act)
        return type(cancel(order.member_id, order.order_no, self.connect)).__name__

    def cancel_in_the_dark(self, act: Act) -> str:
        """The channel says nothing just now."""
        fault = ("alipay.trade.query", Action.UNKNOWN_BEFORE)
        self.alipay.faults.add(*fault, out_trade_no=_page(act))
        return self.cancel(act)

    def stray(self, act: Act) -> str:
        """Money for a number that nobody knows."""
        order = act.member.order
        amount = order.pay_amount if order else Decimal("19.80")
        trade = self._books.pay_anyway(f"nobody_{act.member.n}", amount)
        self.strays.add(trade.trade_no)
        return _took(act, trade)

    def _pay(self, act: Act, number: str) -> str:
        return _took(act, self._books.pay(self._books.open(number).trade_no))

    def _pay_anyway(self, act: Act, amount: Decimal) -> str:
        number = act.member.numbers[-1] if act.member.numbers else _order(act).order_no
        return _took(act, self._books.pay_anyway(number, amount))

    # --- operators -------------------------------------------------------------------------------

    def refund_part(self, act: Act) -> str:
        return self._ask_refund(act, _part(_order(act).pay_amount))

    def refund_rest(self, act: Act) -> str:
        return self._ask_refund(act, None)

    def give_back(self, act: Act) -> str:
        outcome = type(give_back(GiveBack(_trade_no(act), "alice", "nobody claims it"))).__name__
        return self._see_to(act, outcome)

    def attach(self, act: Act) -> str:
        order_no = _order(act).order_no
        outcome = attach(_trade_no(act), order_no, "operator:alice", "it is hers")
        return self._see_to(act, type(outcome).__name__)

    def _ask_refund(self, act: Act, amount: Decimal | None) -> str:
        key = f"{act.member.n}-{act.what}"
        outcome = ask_refund(AskRefund(_order(act).order_no, key, "alice", "broken", amount))
        is_repeated = isinstance(outcome, Asked) and outcome.repeated
        return "repeated" if is_repeated else type(outcome).__name__

    def _see_to(self, act: Act, outcome: str) -> str:
        if outcome in {"Attached", "GivenBack"}:
            self.seen_to.add(_trade_no(act))
        return outcome

    # --- the merchant's console ------------------------------------------------------------------

    def console_part(self, act: Act) -> str:
        return self._console_refund(act, _part(self._trade(act).amount))

    def console_rest(self, act: Act) -> str:
        trade = self._trade(act)
        return self._console_refund(act, trade.amount - trade.refunded)

    def finish(self, act: Act) -> str:
        return self._books.finish(_trade_no(act)).status

    def _trade(self, act: Act) -> Trade:
        return self._books.find(trade_no=_trade_no(act))

    def _console_refund(self, act: Act, amount: Decimal) -> str:
        with self.clock.back(-REFUND_GAP):  # somebody who waits until the channel takes another
            self._books.refund(self._trade(act), amount or FEN, f"console_{act.member.n}")
        return "refunded"

    def empty_the_account(self, _: Act) -> str:
        self._books.set_balance(Decimal(0))
        return "empty"

    def fill_the_account(self, _: Act) -> str:
        self._books.set_balance(None)
        return "full"

    # --- the system, and time --------------------------------------------------------------------

    def deliver(self, _: Act) -> str:
        return "some" if self.wire.deliver() else "none"

    def relay(self, _: Act) -> str:
        return "some" if relay(lambda: True).sent else "none"

    def sweep(self, _: Act) -> str:
        swept = sweep(lambda: True, self.connect)
        # Somebody else held the row: it has its turn with the next sweep.
        assert all(failed.endswith(": TryAgain") for failed in swept.failed), swept.failed
        return "asked" if swept.asked else "nobody asked"

    def a_minute(self, _: Act) -> str:
        passing_time.a_minute_for_refunds()
        return "passed"

    def expire(self, act: Act) -> str:
        passing_time.until_over(_order(act).id)
        return "over"

    def poll(self, act: Act) -> str:
        passing_time.until_asked(_order(act).id)
        return "due"


def _order(act: Act) -> Order:
    if act.member.order is None:
        raise NothingThere
    return act.member.order


def _page(act: Act, which: int = -1) -> str:
    if not act.member.numbers:
        raise NothingThere
    return act.member.numbers[which]


def _trade_no(act: Act) -> str:
    if not act.member.trades:
        raise NothingThere
    return act.member.trades[0]


def _took(act: Act, trade: Trade) -> str:
    act.member.trades.append(trade.trade_no)
    return "paid"


def _part(amount: Decimal) -> Decimal:
    """A third, to the fen; of a fen there are no parts."""
    return max((amount / 3).quantize(FEN), FEN)
