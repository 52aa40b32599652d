"""Encounters with what nobody asks for: relays, sweeps and purges."""

import functools
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from lockstep.alipay.answers import Done
from lockstep.inventory.confirm import confirm
from lockstep.messaging.relay import relay
from lockstep.payments.accept import accept
from lockstep.upkeep.purge import Retention, purge
from tests.proof.interleavings.encounters import (
    CANCELLED,
    EXPIRED,
    PAID,
    Encounters,
    Given,
    Rest,
    a_paid_order,
    alike,
    an_unpaid_order,
    in_any_order,
    overdue,
    pay,
    release_of,
    to,
    told_by,
    trade_of,
)
from tests.proof.interleavings.sides import Side, Work, stop_here
from tests.support.builders import a_sku, a_trade_notice, an_attempt, an_order
from tests.support.channel import ScriptedChannel, cancel, paid, sweep, waiting

UPKEEP: Final = Encounters()


class _Queue:
    """Takes what a relay sends, and a step of the side that sends it."""

    def __init__(self, sent: Counter[str]) -> None:
        self._sent = sent

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803
        stop_here(f"send to {QueueUrl}")
        self._sent.update(entry["Id"] for entry in Entries)
        return {"Successful": Entries}


def _queue(given: Given, name: str) -> None:
    given.patch.setattr("lockstep.messaging.sqs.client", lambda: _Queue(given.sent))
    given.patch.setenv(f"{name.upper()}_QUEUE_URL", name)


def _relay(_: Side) -> str:
    relayed = relay(lambda: True)
    return f"sent {relayed.sent}, failed {relayed.failed}"


@UPKEEP.ending(
    in_any_order(
        Rest("CLOSED/CANCELLED, CLOSED/CANCELLED", (10, 0), "0.00", ""),
        "sent 2, failed 0",
        "sent 0, failed 0",
    )
)
def relay_relay(given: Given) -> Sequence[Work]:
    a_sku(given.database)
    for order in (an_order(), an_order()):
        cancel(order.member_id, order.order_no)
    given.database.execute("UPDATE outbox SET next_at = NOW(3) - INTERVAL 1 SECOND")
    _queue(given, "release")
    return alike(_relay)


def _sweep(side: Side, says: object = waiting) -> str:
    channel = ScriptedChannel(query=says, close=Done(None), while_asked=told_by(side))
    swept = sweep(lambda: True, channel)
    counts = {
        "closed": swept.orders_closed,
        "settled": swept.holds_settled,
        "restaged": swept.restaged,
        "failed": len(swept.failed),
    }
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count) or "nothing"


@UPKEEP.ending(in_any_order(EXPIRED, "closed 1", "nothing"))
def sweep_sweep(given: Given) -> Sequence[Work]:
    an_unpaid_order(given)
    overdue(given)
    return alike(_sweep)


@UPKEEP.ending(in_any_order(EXPIRED, "closed 1", "nothing"))
def sweep_sweep_asking(given: Given) -> Sequence[Work]:
    _with_a_page(given)
    given.database.execute("UPDATE oms_order SET expires_at = NOW(3) - INTERVAL 2 MINUTE")
    given.database.execute("UPDATE oms_payment_attempt SET expires_at = NOW(3) - INTERVAL 2 MINUTE")
    return alike(_sweep)


@UPKEEP.ending(to(PAID, ("APPLIED", "nothing"), ("REPLAYED", "nothing")))
def pay_sweep_asking(given: Given) -> Sequence[Work]:
    """Nobody told of the payment; while the channel is asked, its notice comes."""
    order = _with_a_page(given)
    sweeps = functools.partial(_sweep, says=paid)
    return pay(order, trade_no=trade_of(order)), sweeps


@UPKEEP.ending(in_any_order(PAID, "restaged 1", "nothing"))
def restage_restage(given: Given) -> Sequence[Work]:
    _confirm_was_lost(given)
    return alike(_sweep)


@UPKEEP.ending(
    to(PAID, ("Confirmed", "restaged 1"), ("Confirmed", "nothing")),
)
def confirm_restage(given: Given) -> Sequence[Work]:
    order = _confirm_was_lost(given)
    return (lambda _: confirm(f"{order.order_no}-1", order.id)), _sweep


@UPKEEP.ending(
    to(
        PAID,
        ("Confirmed", "nothing"),
        ("Confirmed again", "settled 1"),
    ),
)
def confirm_settle(given: Given) -> Sequence[Work]:
    order = _confirm_was_lost(given)
    _hold_is_over(given)
    return (lambda _: confirm(f"{order.order_no}-1", order.id)), _sweep


@UPKEEP.ending(
    to(CANCELLED, ("Released", "nothing"), ("Released again", "settled 1")),
)
def release_settle(given: Given) -> Sequence[Work]:
    order = an_unpaid_order(given)
    cancel(order.member_id, order.order_no)
    _hold_is_over(given)
    return release_of(order), _sweep


@UPKEEP.ending(to(PAID, ("notices 1", "REPLAYED")), may_deadlock=True)
def purge_pay(given: Given) -> Sequence[Work]:
    """A notice that is decided and old comes once more. The one deletes its row and then its key,
    the other finds the key and then the row: no order of tables keeps these two apart."""
    order = an_unpaid_order(given)
    notice = a_trade_notice(order)
    accept(notice)
    given.database.execute("UPDATE oms_notice SET created_at = NOW(3) - INTERVAL 40 DAY")

    def purges(_: Side) -> str:
        return f"notices {purge(Retention(), lambda: True).notices}"

    return purges, (lambda _: accept(notice))


def _with_a_page(given: Given) -> Any:
    """Whose turn to be asked about has come."""
    order = an_unpaid_order(given)
    an_attempt(given.database, order)
    given.database.execute("UPDATE oms_payment_attempt SET next_ask_at = NOW(3)")
    return order


def _hold_is_over(given: Given) -> None:
    given.database.execute("UPDATE ims_reservation SET expires_at = NOW(3) - INTERVAL 1 SECOND")


def _confirm_was_lost(given: Given) -> Any:
    order = a_paid_order(given, confirmed=False)
    given.database.execute(
        "UPDATE outbox SET sent_at = NOW(3), created_at = NOW(3) - INTERVAL 1 DAY"
    )
    return order
