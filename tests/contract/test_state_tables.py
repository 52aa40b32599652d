"""One story of states in three places: the tables in the models, the statements in the stores, and
what the engine lets in."""

import re
from collections.abc import Mapping
from enum import StrEnum

import pytest

from infra.migrate import MIGRATIONS
from lockstep.inventory import store as inventory
from lockstep.inventory.model import RESERVATION_TRANSITIONS, ReservationState
from lockstep.orders import refund_store as order_refunds
from lockstep.orders import reinstate_store as revived
from lockstep.orders import request_store as requests
from lockstep.orders import store as orders
from lockstep.orders import turn_store as turns
from lockstep.orders import unpaid_store as unpaid
from lockstep.orders.model import (
    OPEN_STATUSES,
    ORDER_TRANSITIONS,
    PAID_STATUSES,
    CloseReason,
    OrderStatus,
    RequestState,
)
from lockstep.payments import attempt_store as attempts
from lockstep.payments import refund_store as refunds
from lockstep.payments import refundable_store as refundable
from lockstep.payments import reinstate_store as late
from lockstep.payments import store as payments
from lockstep.payments.model import (
    ATTEMPT_TRANSITIONS,
    PAYMENT_TRANSITIONS,
    AttemptState,
    NoticeState,
    PaymentState,
)
from lockstep.payments.refund_model import REFUND_TRANSITIONS, RefundState

DDL = "\n".join(path.read_text(encoding="utf-8") for path in sorted(MIGRATIONS.glob("*.sql")))

# start, and what nothing leads out of
ENDS: Mapping[type[StrEnum], tuple[str, set[str]]] = {
    OrderStatus: ("NONE", {"REFUNDED"}),
    ReservationState: ("INIT", {"CONFIRMED", "RELEASED"}),
    PaymentState: ("RECEIVED", {"APPLIED", "REFUNDED"}),
}
TABLES: Mapping[type[StrEnum], Mapping[str, frozenset[str]]] = {
    OrderStatus: {str(state): frozenset(to) for state, to in ORDER_TRANSITIONS.items()},
    ReservationState: {str(state): frozenset(to) for state, to in RESERVATION_TRANSITIONS.items()},
    PaymentState: {str(state): frozenset(to) for state, to in PAYMENT_TRANSITIONS.items()},
}
ATTEMPT = {str(state): frozenset(to) for state, to in ATTEMPT_TRANSITIONS.items()}
REFUND = {str(state): frozenset(to) for state, to in REFUND_TRANSITIONS.items()}

type Edges = set[tuple[str, str]]


def quoted(text: str) -> list[str]:
    return re.findall(r"'(\w+)'", text)


def check_of(constraint: str, column: str = "state") -> set[str]:
    """The values that a CHECK lets in: the newest migration that has it counts."""
    [*_, listed] = re.findall(rf"{constraint}\s+CHECK \(.*?{column} IN \((.*?)\)", DDL, re.DOTALL)
    return set(quoted(listed))


def updates(module: object, table: str, column: str) -> dict[str, tuple[str, str]]:
    """The UPDATEs of ``table`` that set ``column``: by name, what they set and their condition."""
    found = {}
    for name, sql in vars(module).items():
        if isinstance(sql, str) and re.search(rf"UPDATE {table}( FORCE INDEX .*)?\n", sql):
            change, _, condition = sql.partition("WHERE")
            if re.search(rf"\b{column} = (?!{column}\b)", change.replace(f"prev_{column}", "")):
                found[name] = (change, condition)
    return found


def edges(module: object, table: str, column: str) -> dict[str, Edges]:
    """The edges that each statement can take; %s stands for what is decided elsewhere."""
    taken = {}
    for name, (change, condition) in updates(module, table, column).items():
        target = re.search(rf"(?<!prev_){column} = (?:'(\w+)'|(%(?:\(\w+\))?s))", change)
        source = re.search(rf"\b{column} (?:IN \((.*?)\)|= ('\w+'))", condition)
        assert target, name
        assert source, f"{name} names no from-state"
        taken[name] = {(state, target[1] or target[2]) for state in quoted(source[1] or source[2])}
    return taken


@pytest.mark.parametrize("states", TABLES)
def test_every_state_is_in_the_table_and_can_be_reached(states):
    table, (start, _) = TABLES[states], ENDS[states]
    assert table.keys() == {str(state) for state in states}
    reached, left = {start}, [start]
    while left:
        new = table[left.pop()] - reached
        reached |= new
        left += new
    assert reached == table.keys()


@pytest.mark.parametrize("states", TABLES)
def test_only_the_final_states_are_final_and_nothing_leads_back_to_the_start(states):
    table, (start, final) = TABLES[states], ENDS[states]
    assert {state for state, targets in table.items() if not targets} == final
    assert start not in {target for targets in table.values() for target in targets}
    assert all(state not in targets for state, targets in table.items())


def test_the_orders_table_is_the_one_in_the_database():
    pairs = re.findall(r"INSERT INTO oms_order_transition .*?VALUES(.*?);", DDL, re.DOTALL)
    in_database = set(re.findall(r"\('(\w+)',\s*'(\w+)'\)", "".join(pairs)))
    in_code = {
        (source, target) for source, targets in TABLES[OrderStatus].items() for target in targets
    }
    assert in_database == in_code


def test_open_orders_are_those_that_can_be_closed_and_paid_ones_those_that_were_paid():
    table = TABLES[OrderStatus]
    assert {state for state in table if "CLOSED" in table[state]} == OPEN_STATUSES
    others = {OrderStatus.NONE, OrderStatus.CLOSED}
    assert set(OrderStatus) - OPEN_STATUSES - others == PAID_STATUSES


def test_the_database_knows_the_states_of_the_code_and_no_other():
    assert check_of("ck_reservation_state") == set(ReservationState)
    assert check_of("ck_payment_state") == set(PaymentState)
    assert check_of("ck_notice_state") == set(NoticeState)
    assert check_of("ck_attempt_state") == set(AttemptState) == ATTEMPT.keys()
    assert check_of("ck_refund_state") == set(RefundState) == REFUND.keys()
    assert check_of("ck_order_close_reason", "close_reason") == set(CloseReason)
    # UNKNOWN is what is said of a request that has no row.
    assert check_of("ck_request_state") == set(RequestState) - {RequestState.UNKNOWN}


def edges_of_an_order() -> dict[str, Edges]:
    return {
        name: pairs
        for store in (orders, unpaid, order_refunds, turns)
        for name, pairs in edges(store, "oms_order", "status").items()
    }


def test_every_change_of_an_orders_status_is_an_edge():
    taken = edges_of_an_order()
    # Back to where it came from, which the row itself says.
    assert taken.pop("GIVE_UP_REFUND") == {("REFUNDING", "%(back_to)s")}
    assert {"PAID", "SHIPPED", "FINISHED"} <= TABLES[OrderStatus]["REFUNDING"]
    assert taken.keys() == {
        "MARK_PROCESSING",
        "MARK_HELD",
        "CLOSE_ORDER",
        "EXPIRE_ORDER",
        "GIVE_UP_ORDER",
        "MARK_SOLD_OUT",
        "MARK_PAID",
        "MARK_REFUNDING",
        "MARK_REFUNDED",
        "BEGIN_REFUND",
    }
    for name, pairs in taken.items():
        assert pairs, name
        assert {pair for pair in pairs if pair[1] not in TABLES[OrderStatus][pair[0]]} == set()


def test_every_change_of_an_orders_status_tells_the_engine_where_it_came_from():
    found = {
        name: one
        for store in (orders, unpaid, order_refunds, revived, turns)
        for name, one in updates(store, "oms_order", "status").items()
    }
    for name, (change, _) in found.items():
        # MySQL assigns from left to right: after `status = …` it would be the new one.
        assert change.index("prev_status = status") < change.index("    status = "), name


def test_a_closed_order_stays_closed_for_every_statement_but_the_one_that_revives_it():
    taken = edges_of_an_order()
    assert {source for pairs in taken.values() for source, _ in pairs}.isdisjoint({"CLOSED"})
    assert edges(revived, "oms_order", "status") == {"REINSTATE_ORDER": {("CLOSED", "PAID")}}
    assert "AND close_reason = 'EXPIRED'" in revived.REINSTATE_ORDER


def test_every_change_of_a_reservation_is_an_edge():
    taken = edges(inventory, "ims_reservation", "state")
    assert taken == {
        "MARK_CONFIRMED": {("RESERVED", "CONFIRMED")},
        "MARK_RELEASED": {("RESERVED", "RELEASED")},
    }
    for [(source, target)] in taken.values():
        assert target in TABLES[ReservationState][source]


def test_a_reservation_is_born_in_a_state_that_follows_init():
    born = [quoted(sql)[-1] for sql in (inventory.INSERT_RESERVATION, inventory.INSERT_TOMBSTONE)]
    assert born == ["RESERVED", "RELEASED"]
    assert set(born) == TABLES[ReservationState]["INIT"]


def test_every_change_of_a_payment_is_an_edge():
    taken = edges(payments, "oms_order_payment", "state")
    taken |= edges(refundable, "oms_order_payment", "state")
    table = TABLES[PaymentState]
    # Matched to its order, the money is applied, goes back, or may revive it.
    assert taken.pop("MATCH_PAYMENT") == {("UNMATCHED", "%s")}
    assert {"APPLIED", "REFUND_PENDING", "REINSTATE_PENDING"} <= table["UNMATCHED"]
    assert edges(late, "oms_order_payment", "state") == {
        "SETTLE_LATE_PAYMENT": {("REINSTATE_PENDING", "%s")}
    }
    assert {"APPLIED", "REFUND_PENDING"} == table["REINSTATE_PENDING"]
    assert taken.keys() == {
        "MARK_PAYMENT_REFUNDING",
        "MARK_PAYMENT_REFUNDED",
        "MARK_PAYMENT_FAILED",
        "GIVE_UNMATCHED_BACK",
    }
    for pairs in taken.values():
        assert {pair for pair in pairs if pair[1] not in table[pair[0]]} == set()


def test_every_change_of_a_refund_is_an_edge_or_none():
    """UNKNOWN stays so as long as nobody can say more."""
    taken = edges(refunds, "oms_refund", "state")
    assert taken.keys() == {
        "ASK_AGAIN",
        "CLAIM_CALL",
        "CLAIM_QUERY",
        "MARK_DONE",
        "MARK_UNKNOWN",
        "MARK_DUE",
        "MARK_FAILED",
    }
    for pairs in taken.values():
        changes = pairs - {("UNKNOWN", "UNKNOWN")}
        assert changes
        assert {pair for pair in changes if pair[1] not in REFUND[pair[0]]} == set()


def test_every_change_of_an_attempt_is_an_edge():
    taken = edges(attempts, "oms_payment_attempt", "state")
    assert taken == {
        "MARK_ATTEMPT_PAID": {("OPEN", "PAID"), ("CLOSING", "PAID")},
        "CLOSE_OPEN_ATTEMPT": {("OPEN", "CLOSED")},
        "CLOSE_ASKED_ATTEMPT": {("CLOSING", "CLOSED")},
        "BEGIN_CLOSING": {("OPEN", "CLOSING")},
        "CLOSE_ATTEMPT": {("OPEN", "CLOSED"), ("CLOSING", "CLOSED")},
    }
    for pairs in taken.values():
        assert {pair for pair in pairs if pair[1] not in ATTEMPT[pair[0]]} == set()


def test_a_request_is_completed_once():
    assert edges(requests, "oms_order_request", "state") == {
        "COMPLETE_REQUEST": {("PROCESSING", "SUCCESS")}
    }


def test_no_other_statement_changes_a_notice():
    """Its row is locked by whoever decides it, so FINISH_NOTICE needs no from-state."""
    assert updates(payments, "oms_notice", "state").keys() == {"FINISH_NOTICE"}
