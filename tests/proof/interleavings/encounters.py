"""What an encounter of operations is: how it begins, who takes part, and how it may end."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from enum import Enum
from itertools import permutations
from typing import Final, NamedTuple

import pytest

from infra.local import invariants
from lockstep.inventory.release import release
from lockstep.orders.model import Order
from lockstep.orders.place import place
from lockstep.payments.accept import accept
from tests.proof.interleavings.sides import Side, Work, stop_here
from tests.support.builders import (
    a_sku,
    a_trade_notice,
    an_order,
    deliver_outbox,
    place_command,
)
from tests.support.channel import cancel, sweep
from tests.support.database import Database
from tests.support.refund_channel import RefundChannel


class Rest(NamedTuple):
    """All there is when everything was delivered: the orders' statuses, stock and locked stock of
    SKU 1001, what the ledger has of all money, refunds and payment pages. None where an encounter
    is not about these."""

    orders: str
    stock: tuple[int, int]
    money: str = "0.00"
    refunds: str | None = None
    pages: str | None = None

    def allows(self, found: "Rest") -> bool:
        return all(wanted in (None, its) for wanted, its in zip(self, found, strict=True))


# One order of one piece, ten of which there were.
PAID: Final = Rest("PAID", (9, 0), "9.90", "")
PAID_TWICE: Final = PAID._replace(refunds="9.90 DONE")
CANCELLED: Final = Rest("CLOSED/CANCELLED", (10, 0), "0.00", "")
EXPIRED: Final = Rest("CLOSED/EXPIRED", (10, 0), "0.00", "")
UNPAID: Final = Rest("PENDING_PAYMENT", (10, 1), "0.00", "")
# Nothing happened to the ten.
NO_ORDER: Final = Rest("", (10, 0), "0.00", "")


# No order is paid twice, or closed twice.
_TWICE: Final = """
SELECT order_id, to_status
FROM oms_order_event
WHERE to_status IN ('PAID', 'CLOSED')
GROUP BY order_id, to_status
HAVING COUNT(*) > 1
"""


@dataclass
class Given:
    """What a case has beside the database. ``patch`` is undone after it."""

    database: Database
    patch: pytest.MonkeyPatch
    channel: RefundChannel = field(default_factory=RefundChannel)
    sent: Counter[str] = field(default_factory=Counter)


type Prepare = Callable[[Given], Sequence[Work]]
type End = tuple[str, ...]
type Ends = Mapping[End, Rest]


@dataclass(frozen=True)
class Encounter:
    """``prepare`` builds the state and answers with the sides' work. ``ends`` is the model: what
    the sides may come to together, and the one rest that this leads to; each must be seen where
    all orders of steps are tried. ``may_deadlock`` where the design does not rule it out;
    ``victim_varies`` where two run into it at once, so that the engine's choice is part of it."""

    name: str
    prepare: Prepare
    ends: Ends
    may_deadlock: bool = False
    victim_varies: bool = False

    @property
    def sides(self) -> str:
        return "ABC"[: len(next(iter(self.ends)))]


class Encounters(list[Encounter]):
    def ending(
        self, *ends: Ends, may_deadlock: bool = False, victim_varies: bool = False
    ) -> Callable[[Prepare], Prepare]:
        """Add the encounter that the decorated function prepares, under that one's name."""

        def add(prepare: Prepare) -> Prepare:
            name = prepare.__name__.replace("_", "-")
            allowed = {end: rest for some in ends for end, rest in some.items()}
            self.append(Encounter(name, prepare, allowed, may_deadlock, victim_varies))
            return prepare

        return add


def judge(encounter: Encounter, given: Given, outcomes: Sequence[object]) -> End:
    """Hold what the sides came to against the model; it, in words."""
    end = _end(outcomes)
    assert end in encounter.ends, f"no end that is allowed: {end}"
    _assert_rest([encounter.ends[end]], given, end)
    return end


def judge_rest(encounter: Encounter, given: Given, outcomes: Sequence[object]) -> End:
    """The same where reads may be older than locks: an answer may be too, and what then waits is
    left to the sweep. The rest has to be one that the model knows all the same."""
    end = _end(outcomes)
    given.database.execute("UPDATE oms_notice SET next_ask_at = NOW(3) WHERE state = 'QUERY_DUE'")
    if given.database.count("oms_notice", state="QUERY_DUE"):
        sweep(lambda: True)
    _assert_rest(list(encounter.ends.values()), given, end)
    return end


def _end(outcomes: Sequence[object]) -> End:
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return tuple(map(in_words, outcomes))


def _assert_rest(expected: Sequence[Rest], given: Given, end: End) -> None:
    found = _at_rest(given)
    assert any(rest.allows(found) for rest in expected), f"{end} led to {found}"


def in_words(outcome: object) -> str:
    """``Closed again``, ``NotCancellable PAID``, ``APPLIED``."""
    if isinstance(outcome, Enum):
        return str(outcome.value)
    if not is_dataclass(outcome):
        return str(outcome)
    words = [type(outcome).__name__]
    words += [str(getattr(outcome, name)) for name in ("code", "status") if hasattr(outcome, name)]
    return " ".join(words + ["again"] * bool(getattr(outcome, "repeated", False)))


def _at_rest(given: Given) -> Rest:
    """Deliver what is staged, and pay back what is owed, until nothing is."""
    database, channel = given.database, given.channel
    assert set(given.sent.values()) <= {1}, f"sent twice: {given.sent}"
    for message_id in given.sent:
        database.execute("UPDATE outbox SET sent_at = NULL WHERE message_id = %s", (message_id,))
    for row in database.rows("SELECT trade_no, amount FROM oms_order_payment"):
        if row["trade_no"] not in channel.trades:
            channel.paid(row["trade_no"], str(row["amount"]))
    while deliver_outbox(database) + len(channel.work_off(database)):
        pass
    assert invariants.broken(database.rows) == {}
    assert database.rows(_TWICE) == []
    return Rest(
        _line(database, "SELECT CONCAT_WS('/', status, close_reason) AS it FROM oms_order"),
        database.stock(1001),
        str(database.value("SELECT COALESCE(SUM(amount), 0.00) FROM oms_money_entry")),
        _line(database, "SELECT CONCAT(amount, ' ', state) AS it FROM oms_refund"),
        _line(database, "SELECT state AS it FROM oms_payment_attempt"),
    )


def _line(database: Database, sql: str) -> str:
    return ", ".join(sorted(row["it"] for row in database.rows(sql)))


def to(rest: Rest, *outcomes: End) -> Ends:
    """All of them lead to ``rest``."""
    return dict.fromkeys(outcomes, rest)


def in_any_order(rest: Rest, *outcomes: str) -> Ends:
    """Sides that do the same: one of them is first."""
    return to(rest, *permutations(outcomes))


# --- short ways to a beginning -------------------------------------------------------------------


def an_unpaid_order(given: Given, *, stock: int = 10, hot: bool = False) -> Order:
    a_sku(given.database, stock=stock, hot=hot)
    return an_order()


def a_paid_order(given: Given, *, confirmed: bool = True) -> Order:
    """By trade ``trade-<order_no>``."""
    order = an_unpaid_order(given)
    accept(a_trade_notice(order, trade_no=trade_of(order)))
    given.channel.paid(trade_of(order))
    given.channel.during = lambda: stop_here("the channel")
    if confirmed:
        deliver_outbox(given.database)
    return order


def trade_of(order: Order) -> str:
    """The number that the scripted channel has for it as well."""
    return f"trade-{order.order_no}"


def overdue(given: Given) -> None:
    given.database.execute("UPDATE oms_order SET expires_at = NOW(3) - INTERVAL 1 SECOND")


def pay(order: Order, **changes: object) -> Work:
    notice = a_trade_notice(order, **changes)
    return lambda _: accept(notice)


def buy(lines: Mapping[int, int] | None = None, *, key: str | None = None, note: str = "") -> Work:
    command = place_command(dict(lines or {1001: 1}), key=key, note=note or None)
    return lambda _: place(command)


def call_off(order: Order) -> Work:
    return lambda _: cancel(order.member_id, order.order_no)


def release_of(order: Order) -> Work:
    """Of its first hold."""
    return lambda _: release(f"{order.order_no}-1", order.id)


def alike(work: Work, times: int = 2) -> list[Work]:
    return [work] * times


def told_by(side: Side) -> Callable[[], None]:
    """The channel's answer is a step of ``side``, whichever of its threads asks."""
    return lambda: side.stop("the channel")


def a_new_name() -> str:
    """A name that no case had before: what was deleted leaves its mark in an index for a while."""
    return place_command().idempotency_key
