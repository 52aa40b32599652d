"""What goes wrong on purpose: what was done all the same, and what the caller learns."""

import threading
import time
from decimal import Decimal

import pytest

from lockstep.alipay.answers import Done, Refused, Unknown
from tests.support.local_alipay import FakeClock, a_service, local_alipay

REFUND, QUERY = "alipay.trade.refund", "alipay.trade.query"


@pytest.fixture(scope="module")
def served():
    with local_alipay() as alipay:
        yield alipay


@pytest.fixture
def alipay(served):
    yield served
    served.faults.clear()


@pytest.fixture
def paid(alipay, request):
    return alipay.pay(f"O{abs(hash(request.node.nodeid))}", "9.90")


def refund(alipay, trade, timeout_seconds=5):
    return alipay.gateway().refund(
        trade_no=trade.trade_no,
        out_request_no="R1",
        amount=Decimal("3.00"),
        reason="late",
        timeout_seconds=timeout_seconds,
    )


def refunded(alipay, trade):
    return alipay.service.books.find(trade_no=trade.trade_no).refunded


# --- calls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["lose_response", "unknown_after", "unsigned"])
def test_it_was_done_and_the_caller_cannot_know(alipay, paid, action):
    alipay.faults.add(REFUND, action)
    assert isinstance(refund(alipay, paid), Unknown)
    assert refunded(alipay, paid) == Decimal("3.00")
    again = refund(alipay, paid)
    assert isinstance(again, Done)
    assert not again.value.fund_changed, "the fault is spent, and the refund was done before"


def test_it_was_not_done_and_the_caller_cannot_know(alipay, paid):
    alipay.faults.add(REFUND, "unknown_before")
    assert isinstance(refund(alipay, paid), Unknown)
    assert refunded(alipay, paid) == 0


def test_it_was_done_and_the_answer_is_late(alipay, paid):
    alipay.faults.add(REFUND, "delay", seconds=4)
    began = time.monotonic()
    assert isinstance(refund(alipay, paid, timeout_seconds=0.3), Unknown)
    assert time.monotonic() - began < 3
    assert refunded(alipay, paid) == Decimal("3.00")


def test_an_answer_is_held_until_it_is_released(alipay, paid):
    alipay.faults.add(REFUND, "hold")
    outcomes = []
    asking = threading.Thread(target=lambda: outcomes.append(refund(alipay, paid)))
    asking.start()
    assert alipay.faults.wait_until_held()
    assert refunded(alipay, paid) == Decimal("3.00")
    assert outcomes == []
    assert alipay.service.release() == 1
    asking.join(10)
    assert isinstance(outcomes[0], Done)


def test_a_refund_can_fail_for_want_of_money(alipay, paid):
    alipay.faults.add(REFUND, "no_balance")
    assert refund(alipay, paid) == Refused("ACQ.SELLER_BALANCE_NOT_ENOUGH")
    assert refunded(alipay, paid) == 0


def test_a_rule_is_about_one_order_and_so_many_times(alipay, paid):
    alipay.faults.add(QUERY, "unsigned", out_trade_no=paid.out_trade_no, count=2)
    other = alipay.pay(f"{paid.out_trade_no}x", "1.00")
    gateway = alipay.gateway()
    assert isinstance(gateway.query(trade_no=other.trade_no), Done)
    asked = [gateway.query(trade_no=paid.trade_no) for _ in range(3)]
    assert [type(one) for one in asked] == [Unknown, Unknown, Done]


@pytest.mark.parametrize(
    ("method", "action"),
    [("notice", "lose_response"), (QUERY, "twice"), (QUERY, "no_balance"), (QUERY, "explode")],
)
def test_what_cannot_happen_is_refused(alipay, method, action):
    with pytest.raises(ValueError, match=action):
        alipay.faults.add(method, action)


# --- notices -------------------------------------------------------------------------------------


@pytest.fixture
def quiet():
    """Without threads: what is due is sent when a test says so."""
    return a_service(clock=FakeClock())


def sent(alipay):
    before = len(alipay.notices)
    while alipay.service.post.send_due():
        pass
    return [(one["out_trade_no"], one["trade_status"]) for one in alipay.words()[before:]]


def test_a_notice_can_fail_to_come_at_all(quiet):
    quiet.faults.add("notice", "never")
    quiet.pay("O1", "9.90")
    quiet.pay("O2", "9.90")
    assert sent(quiet) == [("O2", "TRADE_SUCCESS")]
    assert quiet.service.post.waiting() == 0


def test_a_notice_can_come_twice(quiet):
    quiet.faults.add("notice", "twice")
    quiet.pay("O1", "9.90")
    assert sent(quiet) == [("O1", "TRADE_SUCCESS")] * 2
    assert len({one["notify_id"] for one in quiet.words()}) == 1


def test_a_notice_can_come_after_a_later_one(quiet):
    quiet.faults.add("notice", "late", out_trade_no="O1")
    trade = quiet.pay("O1", "9.90")
    quiet.pay("O2", "9.90")
    assert sent(quiet) == [("O2", "TRADE_SUCCESS")], "another order's is no later one"
    quiet.service.books.refund(trade, Decimal("9.90"), "R1")
    assert sent(quiet) == [("O1", "TRADE_CLOSED"), ("O1", "TRADE_SUCCESS")]


def test_a_notice_can_be_held_until_it_is_released(quiet):
    quiet.faults.add("notice", "hold")
    quiet.pay("O1", "9.90")
    assert sent(quiet) == []
    quiet.service.release()
    assert sent(quiet) == [("O1", "TRADE_SUCCESS")]


def test_a_release_sends_nothing_that_is_on_its_way(quiet):
    def answer(_):
        quiet.service.release()
        assert quiet.service.post.send_due() == 0
        return "success"

    quiet.sink = answer
    quiet.pay("O1", "9.90")
    assert sent(quiet) == [("O1", "TRADE_SUCCESS")]


def test_a_notice_can_be_delayed(quiet):
    quiet.faults.add("notice", "delay", seconds=5)
    quiet.pay("O1", "9.90")
    assert sent(quiet) == []
    quiet.service.clock.go(seconds=5)
    assert sent(quiet) == [("O1", "TRADE_SUCCESS")]


# --- from a seed ---------------------------------------------------------------------------------

RATES = {
    REFUND: {"lose_response": 0.2, "unknown_before": 0.2},
    "notice": {"never": 0.1, "twice": 0.3},
}


def drawn(faults, seed, calls=200):
    faults.draw(seed, RATES)
    return [[faults.take(method, None) for _ in range(calls)] for method in (REFUND, "notice")]


def test_one_seed_has_one_history(quiet):
    assert drawn(quiet.faults, 7) == drawn(quiet.faults, 7)
    assert drawn(quiet.faults, 7) != drawn(quiet.faults, 8)


def test_another_methods_calls_do_not_change_it(quiet):
    alone = drawn(quiet.faults, 7)
    quiet.faults.draw(7, RATES)
    mixed = [
        (quiet.faults.take(REFUND, None), quiet.faults.take("notice", None)) for _ in range(200)
    ]
    assert [list(one) for one in zip(*mixed, strict=True)] == alone


def test_accidents_are_as_frequent_as_asked_for(quiet):
    calls, notices = drawn(quiet.faults, 7, calls=2000)
    struck = sum(fault is not None for fault in calls)
    assert struck / 2000 == pytest.approx(0.4, abs=0.05)
    doubled = sum(fault is not None and fault.action == "twice" for fault in notices)
    assert doubled / 2000 == pytest.approx(0.3, abs=0.05)
    assert quiet.faults.report()["struck"][f"{REFUND} lose_response"] > 0


def test_nothing_is_held_by_accident(quiet):
    with pytest.raises(ValueError, match="hold"):
        quiet.faults.draw(7, {REFUND: {"hold": 0.1}})
