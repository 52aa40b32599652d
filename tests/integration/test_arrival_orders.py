"""Whatever order notices arrive in, and however often, they end in the same rows.

Goal: nothing is lost, doubled or left half-way because a notice was late, repeated or overtaken.
Method: a trade's whole life as notices, delivered in every order, the confirm or release that they
stage carried out somewhere in between; then all of them once more. Each time the books must be
those of the natural order, and a second telling must change nothing at all.

Compared is what `books` reads. It leaves out how many times a command was staged: a repeated
payment stages another confirm while the hold is not sold yet. Where the channel is asked as well,
who told of the payment is left out too, what its own notice came to, and when its window ended.
"""

import random
from collections.abc import Mapping
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest

from lockstep.alipay.answers import Done, Trade
from lockstep.alipay.model import Notice
from lockstep.payments.accept import accept
from lockstep.payments.model import Result
from lockstep.upkeep.sweep import sweep
from tests.support.builders import a_sku, assert_at_rest, deliver_outbox
from tests.support.channel import ScriptedChannel, cancel, the_trade
from tests.support.database import Database
from tests.support.notices import books, finished, refunded, refunded_in_full, the_order
from tests.support.reading import SIGNER, read

PAYMENT = read(SIGNER.body())
PART = read(SIGNER.body(**refunded("3.00")))
MORE = read(SIGNER.body(**refunded("5.00")))
WHOLE = read(SIGNER.body(**refunded_in_full()))
END = read(SIGNER.body(**finished()))
REPEATED = read(SIGNER.body(notify_time="2026-10-24 10:04:06"))

type Notices = tuple[Notice, ...]
NATURAL: Notices = (PAYMENT, REPEATED, PART, MORE, WHOLE, END)


def live(database: Database, notices: Notices, deliver_before: int, *, closed: bool) -> None:
    """One history, from an empty database: an order, maybe closed, then these notices."""
    database.empty()
    a_sku(database)
    the_order(database)
    if closed:
        cancel(42, "O1")
    for position, notice in enumerate(notices):
        if position == deliver_before:
            deliver_outbox(database)
        accept(notice)
    deliver_outbox(database)


def every_order_of(notices: Notices) -> list[Notices]:
    """Each once: deliveries of one notice are equal."""
    return list(dict.fromkeys(permutations(notices)))


def told(notices: Notices) -> list[str]:
    return [f"{notice.kind} {getattr(notice, 'refund_fee', None)}" for notice in notices]


def check_every_order_of(
    database: Database, natural: Notices, *, closed: bool
) -> Mapping[str, Any]:
    """Live every order of arrival, each told a second time; the books that all of them end in."""
    live(database, natural, 1, closed=closed)
    expected = books(database)
    assert {row["state"] for row in expected["inbox"]} == {"DONE"}
    for run, arrival in enumerate(every_order_of(natural)):
        live(database, arrival, run % (len(natural) + 1), closed=closed)
        assert books(database) == expected, told(arrival)
        assert {accept(notice) for notice in arrival} == {Result.REPLAYED}
        assert books(database) == expected, f"{told(arrival)} once more"
    assert_at_rest(database)
    return expected


def test_every_order_of_arrival_ends_in_the_same_rows(database):
    assert len(every_order_of(NATURAL)) == 360
    [order] = check_every_order_of(database, NATURAL, closed=False)["orders"]
    assert (order["status"], order["refunded_amount"]) == ("REFUNDED", Decimal("9.90"))


def test_every_order_of_arrival_ends_alike_where_the_money_came_too_late(database):
    natural = (PAYMENT, REPEATED, PART, WHOLE, END)
    final = check_every_order_of(database, natural, closed=True)
    assert (final["orders"][0]["status"], final["payments"][0]["state"]) == ("CLOSED", "REFUNDED")


def test_every_order_of_arrival_ends_alike_where_a_part_went_back(database):
    natural = (PAYMENT, REPEATED, PART, MORE)
    [order] = check_every_order_of(database, natural, closed=False)["orders"]
    assert (order["status"], order["refunded_amount"]) == ("PAID", Decimal("5.00"))


@pytest.mark.parametrize("confirmed_at", range(4))
def test_a_confirm_may_come_anywhere_among_the_notices(database, confirmed_at):
    notices = (PAYMENT, PART, WHOLE)
    live(database, notices, 4, closed=False)
    expected = books(database)
    for arrival in every_order_of(notices):
        live(database, arrival, confirmed_at, closed=False)
        assert books(database) == expected, told(arrival)


def test_notices_that_all_come_many_times_end_in_the_same_rows(database):
    live(database, NATURAL, 1, closed=False)
    expected = books(database)
    for seed in range(20):
        arrival = random.Random(seed).sample(NATURAL * 3, 18)
        live(database, tuple(arrival), seed, closed=False)
        assert books(database) == expected, told(tuple(arrival))


def test_notices_that_come_before_their_order_end_in_the_same_rows(database):
    """A part only: money that went back in whole while no order was known stays without one."""
    notices = (PAYMENT, PART, MORE, END)
    live(database, notices, 1, closed=False)
    expected = books(database)
    for arrival in every_order_of(notices):
        database.empty()
        for notice in arrival:
            accept(notice)
        a_sku(database)
        the_order(database)
        for notice in arrival:
            accept(notice)
        deliver_outbox(database)
        assert books(database) == expected, told(arrival)


# --- the channel is asked as well ----------------------------------------------------------------

# What came, in its natural order, and what the channel says of the trade whenever it is asked.
ASKED = [
    ((PAYMENT, PART, MORE), the_trade()),
    ((PAYMENT, PART, END), the_trade("TRADE_FINISHED")),
    ((PAYMENT, PART, WHOLE), the_trade("TRADE_CLOSED")),
    ((PAYMENT, END), the_trade("TRADE_FINISHED")),
]


def ask_about(database: Database, trade: Trade) -> None:
    """A sweep, while the channel says so of the trade: whatever waits is due."""
    database.execute(
        "UPDATE oms_notice SET next_ask_at = NOW(3) - INTERVAL 1 SECOND "
        "WHERE next_ask_at IS NOT NULL"
    )
    assert sweep(lambda: True, ScriptedChannel(query=Done(trade))).failed == []


def but_for_who_told(found: dict[str, Any]) -> dict[str, Any]:
    for event in found["events"]:
        event["evidence"] = None
    for notice in found["inbox"]:
        notice["reason"] = None
    for payment in found["payments"]:
        payment["finished_at"] = payment["finished_at"] is not None
    return found


def live_and_ask(
    database: Database, notices: Notices, ask_before: int, trade: Trade, *, closed: bool
) -> dict[str, Any]:
    """One history in which the channel is asked before one of the notices, and at the end."""
    database.empty()
    a_sku(database)
    the_order(database)
    if closed:
        cancel(42, "O1")
    for position, notice in enumerate(notices):
        if position == ask_before:
            ask_about(database, trade)
        accept(notice)
    ask_about(database, trade)
    deliver_outbox(database)
    assert {row["state"] for row in books(database)["inbox"]} == {"DONE"}
    return but_for_who_told(books(database))


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize(("natural", "trade"), ASKED, ids=["part", "finished", "whole", "end"])
def test_it_does_not_matter_when_the_channel_is_asked(database, natural, trade, closed):
    expected = live_and_ask(database, natural, 0, trade, closed=closed)
    for arrival in every_order_of(natural):
        for ask_before in range(len(natural)):
            found = live_and_ask(database, arrival, ask_before, trade, closed=closed)
            assert found == expected, (told(arrival), ask_before)
    assert_at_rest(database)


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize(("natural", "trade"), ASKED, ids=["part", "finished", "whole", "end"])
def test_a_payment_whose_notice_never_came_ends_as_if_it_had_p4(database, natural, trade, closed):
    """P4: only what followed the payment is told; the channel says the rest."""
    whole = live_and_ask(database, natural, 0, trade, closed=closed)
    expected = {name: rows for name, rows in whole.items() if name != "inbox"}
    followed = natural[1:]
    for arrival in every_order_of(followed):
        for ask_before in range(1, len(followed) + 1):
            found = live_and_ask(database, arrival, ask_before, trade, closed=closed)
            inbox = found.pop("inbox")
            assert (found, len(inbox)) == (expected, len(followed)), (told(arrival), ask_before)
