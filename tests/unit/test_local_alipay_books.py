"""The local Alipay's rules, as Alipay's: what each refusal is called, and what happens once."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from infra.local.alipay_gateway.shapes import Refused, Request, Status, amount_of
from tests.support.local_alipay import FakeClock, a_service

NINE_NINETY = Decimal("9.90")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def alipay(clock):
    return a_service(clock=clock)


@pytest.fixture
def books(alipay):
    return alipay.service.books


@pytest.fixture
def request_(clock):
    """What a pay link of half an hour asks for."""
    return Request(
        out_trade_no="O1",
        amount=NINE_NINETY,
        subject="Two pens",
        product="alipay.trade.page.pay",
        expires_at=clock() + timedelta(minutes=30),
        notify_url="http://seller.example/notify",
    )


@pytest.fixture
def waiting(books, request_):
    """A trade that its buyer has opened."""
    books.ask(request_)
    return books.open("O1")


@pytest.fixture
def paid(books, waiting):
    return books.pay(waiting.trade_no)


def refusal(act, *arguments, **more):
    with pytest.raises(Refused) as refused:
        act(*arguments, **more)
    return refused.value.sub_code


# --- the buyer -----------------------------------------------------------------------------------


def test_a_pay_link_alone_is_no_trade(books, request_):
    books.ask(request_)
    assert refusal(books.find, out_trade_no="O1") == "ACQ.TRADE_NOT_EXIST"
    assert refusal(books.close, out_trade_no="O1") == "ACQ.TRADE_NOT_EXIST"


def test_that_a_close_found_no_trade_stops_no_buyer(books, request_):
    books.ask(request_)
    refusal(books.close, out_trade_no="O1")
    assert books.pay(books.open("O1").trade_no).status is Status.TRADE_SUCCESS


def test_a_trade_waits_from_when_its_page_is_opened(books, waiting):
    assert books.find(out_trade_no="O1") == waiting
    assert waiting.status is Status.WAIT_BUYER_PAY
    assert books.open("O1") == waiting, "opened again, it is the same trade"


def test_a_page_that_nobody_asked_for_cannot_be_opened(books):
    assert refusal(books.open, "O9") == "ACQ.TRADE_NOT_EXIST"


def test_a_paid_trade_is_paid_once(books, paid, clock):
    assert paid.paid_at == clock()
    assert refusal(books.pay, paid.trade_no) == "ACQ.TRADE_HAS_SUCCESS"


@pytest.mark.parametrize("is_opened", [True, False])
def test_time_over_is_time_over(books, request_, clock, is_opened):
    books.ask(request_)
    if is_opened:
        trade = books.open("O1")
    clock.go(minutes=30)
    if is_opened:
        assert refusal(books.pay, trade.trade_no) == "ACQ.TRADE_HAS_CLOSE"
        assert books.find(out_trade_no="O1").status is Status.TRADE_CLOSED
        assert books.find(out_trade_no="O1").closed_at == request_.expires_at
    else:
        assert refusal(books.open, "O1") == "ACQ.TRADE_HAS_CLOSE"
        assert refusal(books.find, out_trade_no="O1") == "ACQ.TRADE_NOT_EXIST"


def test_a_moment_before_its_time_it_can_be_paid(books, waiting, clock):
    clock.go(minutes=29, seconds=59)
    assert books.pay(waiting.trade_no).status is Status.TRADE_SUCCESS


def test_a_link_whose_time_is_over_asks_for_nothing(books, request_, clock):
    assert refusal(books.ask, replace(request_, expires_at=clock())) == "ACQ.INVALID_PARAMETER"


def test_a_paid_trade_has_no_time_to_be_over(books, paid, clock):
    clock.go(minutes=31)
    assert books.find(out_trade_no="O1") == paid


def test_a_trade_ends_though_nobody_looks(books, alipay, waiting, clock):
    clock.go(minutes=31)
    books.close_due()
    alipay.service.post.send_due()
    assert [words["trade_status"] for words in alipay.words()] == ["TRADE_CLOSED"]


# --- a number that was used ----------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"amount": Decimal("9.91")}, {"subject": "Three pens"}])
def test_a_number_in_use_is_for_nothing_else(books, request_, waiting, change):
    assert refusal(books.ask, replace(request_, **change)) == "ACQ.CONTEXT_INCONSISTENT"


def test_before_there_is_a_trade_the_last_link_counts(books, request_):
    books.ask(request_)
    books.ask(replace(request_, amount=Decimal("1.00")))
    assert books.open("O1").amount == Decimal("1.00")


def test_the_same_link_may_come_again(books, request_, waiting):
    books.ask(request_)
    assert books.open("O1") == waiting


def test_a_paid_number_is_used_up(books, request_, paid):
    assert refusal(books.ask, request_) == "ACQ.TRADE_HAS_SUCCESS"


def test_a_closed_number_is_used_up(books, request_, waiting):
    books.close(out_trade_no="O1")
    assert refusal(books.ask, request_) == "ACQ.TRADE_HAS_CLOSE"


# --- money that arrives whatever the books say ---------------------------------------------------


def test_money_comes_for_a_number_that_nobody_knows(books):
    trade = books.pay_anyway("never-heard-of", Decimal("3.00"))
    assert books.find(out_trade_no="never-heard-of") == trade
    assert (trade.status, trade.amount) == (Status.TRADE_SUCCESS, Decimal("3.00"))


def test_a_trade_that_waits_is_the_one_that_is_paid(books, waiting):
    assert books.pay_anyway("O1", NINE_NINETY).trade_no == waiting.trade_no


def test_of_a_wrong_sum_that_is_the_sum_of_the_trade(books, waiting):
    paid = books.pay_anyway("O1", Decimal("0.01"))
    assert (paid.trade_no, paid.amount) == (waiting.trade_no, Decimal("0.01"))


def test_twice_makes_two_trades_and_the_first_is_found(books, waiting):
    one, two = (books.pay_anyway("O1", NINE_NINETY) for _ in range(2))
    assert one.trade_no != two.trade_no
    assert books.find(out_trade_no="O1") == one
    assert books.find(trade_no=two.trade_no) == two


def test_late_money_is_found_though_its_number_was_closed(books, waiting):
    books.close(out_trade_no="O1")
    late = books.pay_anyway("O1", NINE_NINETY)
    assert late.trade_no != waiting.trade_no
    assert books.find(out_trade_no="O1") == late


# --- close ---------------------------------------------------------------------------------------


def test_what_waits_can_be_closed_once(books, waiting, clock):
    closed = books.close(out_trade_no="O1")
    assert (closed.status, closed.closed_at, closed.paid_at) == ("TRADE_CLOSED", clock(), None)
    assert refusal(books.close, out_trade_no="O1") == "ACQ.TRADE_STATUS_ERROR"


def test_what_is_paid_cannot_be_closed(books, paid):
    assert refusal(books.close, out_trade_no="O1") == "ACQ.TRADE_STATUS_ERROR"
    books.finish(paid.trade_no)
    assert refusal(books.close, out_trade_no="O1") == "ACQ.TRADE_STATUS_ERROR"


# --- refund --------------------------------------------------------------------------------------


def test_a_part_goes_back_and_the_trade_stays(books, paid):
    trade, is_new = books.refund(paid, Decimal("3.00"), "R1")
    assert is_new
    assert (trade.status, trade.refunded) == (Status.TRADE_SUCCESS, Decimal("3.00"))


def test_all_of_it_closes_the_trade_which_stays_a_paid_one(books, paid, clock):
    books.refund(paid, Decimal("3.00"), "R1")
    clock.go(seconds=3)
    trade, _ = books.refund(paid, Decimal("6.90"), "R2")
    assert (trade.status, trade.refunded) == (Status.TRADE_CLOSED, NINE_NINETY)
    assert (trade.paid_at, trade.closed_at) == (paid.paid_at, clock())


def test_a_number_is_refunded_once(books, paid):
    first, _ = books.refund(paid, NINE_NINETY, "R1")
    assert books.refund(paid, NINE_NINETY, "R1") == (first, False)


def test_a_number_is_for_one_sum(books, paid):
    books.refund(paid, Decimal("3.00"), "R1")
    assert refusal(books.refund, paid, Decimal("3.01"), "R1") == "ACQ.DISCORDANT_REPEAT_REQUEST"


def test_no_more_goes_back_than_is_left(books, paid, clock):
    books.refund(paid, Decimal("3.00"), "R1")
    clock.go(seconds=3)
    assert refusal(books.refund, paid, Decimal("6.91"), "R2") == "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL"


def test_a_part_needs_a_number_and_the_whole_does_not(books, paid):
    assert refusal(books.refund, paid, Decimal("3.00")) == "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL"
    trade, _ = books.refund(paid, NINE_NINETY)
    assert trade.refund("O1") is not None


def test_two_refunds_of_a_trade_are_three_seconds_apart(books, paid, clock):
    books.refund(paid, Decimal("3.00"), "R1")
    clock.go(seconds=2.999)
    with pytest.raises(Refused) as refused:
        books.refund(paid, Decimal("1.00"), "R2")
    assert (refused.value.code, refused.value.sub_code) == ("40005", "isv.app-call-limited")
    clock.go(seconds=0.001)
    assert books.refund(paid, Decimal("1.00"), "R2")[1]


def test_what_the_seller_has_not_got_does_not_go_back(books, paid):
    books.set_balance(Decimal("9.89"))
    assert refusal(books.refund, paid, NINE_NINETY, "R1") == "ACQ.SELLER_BALANCE_NOT_ENOUGH"
    books.pay_anyway("O2", Decimal("0.01"))
    assert books.refund(paid, NINE_NINETY, "R1")[1], "what comes in can go out"
    two = [books.pay_anyway(number, Decimal("0.01")) for number in ("O3", "O4")]
    books.set_balance(Decimal("0.01"))
    assert books.refund(two[0], Decimal("0.01"), "R1")[1]
    assert refusal(books.refund, two[1], Decimal("0.01"), "R1") == "ACQ.SELLER_BALANCE_NOT_ENOUGH"


def test_only_paid_trades_are_refunded(books, waiting):
    assert refusal(books.refund, waiting, NINE_NINETY, "R1") == "ACQ.TRADE_STATUS_ERROR"
    books.close(out_trade_no="O1")
    assert refusal(books.refund, waiting, NINE_NINETY, "R1") == "ACQ.TRADE_STATUS_ERROR"


def test_when_the_window_is_over_nothing_goes_back(books, paid):
    assert books.finish(paid.trade_no).status is Status.TRADE_FINISHED
    assert refusal(books.refund, paid, NINE_NINETY, "R1") == "ACQ.TRADE_HAS_FINISHED"
    assert refusal(books.finish, paid.trade_no) == "ACQ.TRADE_STATUS_ERROR"


def test_at_once_it_is_paid_once_and_a_number_is_refunded_once(books, waiting):
    def pay(_):
        try:
            return books.pay(waiting.trade_no)
        except Refused as refused:
            return refused.sub_code

    with ThreadPoolExecutor(8) as eight:
        [paid], refusals = split(list(eight.map(pay, range(8))))
        assert refusals == ["ACQ.TRADE_HAS_SUCCESS"] * 7
        done = eight.map(lambda _: books.refund(paid, Decimal("3.00"), "R1"), range(8))
        assert sorted(is_new for _, is_new in done) == [False] * 7 + [True]
    assert books.find(out_trade_no="O1").refunded == Decimal("3.00")


def split(outcomes):
    """(trades, sub_codes)"""
    codes = [outcome for outcome in outcomes if isinstance(outcome, str)]
    return [outcome for outcome in outcomes if outcome not in codes], codes


# --- kept on disk --------------------------------------------------------------------------------


def test_the_books_outlive_their_process(tmp_path, clock, request_):
    file = tmp_path / "alipay" / "books.jsonl"
    before = a_service(clock=clock, journal=file).service.books
    before.ask(request_)
    paid = before.pay(before.open("O1").trade_no)
    before.refund(paid, Decimal("3.00"), "R1")
    before.ask(replace(request_, out_trade_no="O2"))
    before.open("O2")
    before.set_balance(Decimal("5.00"))

    after = a_service(clock=clock, journal=file).service.books
    assert after.trades() == before.trades()
    assert after.requests() == before.requests()
    clock.go(seconds=3)
    assert refusal(after.refund, paid, Decimal("6.00"), "R2") == "ACQ.SELLER_BALANCE_NOT_ENOUGH"
    clock.go(minutes=30)
    assert after.find(out_trade_no="O2").status is Status.TRADE_CLOSED


def test_a_line_that_a_kill_cut_short_is_dropped(tmp_path, clock, request_):
    file = tmp_path / "books.jsonl"
    a_service(clock=clock, journal=file).service.books.ask(request_)
    with file.open("ab") as journal:
        journal.write(b'{"trade":{"trade_no":"2026')
    books = a_service(clock=clock, journal=file).service.books
    trade = books.open("O1")
    assert a_service(clock=clock, journal=file).service.books.trades() == [trade]


@pytest.mark.parametrize("text", ["0.01", "1", "19.9", "100000000", "100000000.00"])
def test_these_are_amounts(text):
    assert amount_of(text) == Decimal(text)


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "0.00",
        "-1",
        "1.234",
        "1.",
        ".5",
        "1e1",
        "NaN",
        "",
        "\uff19.\uff10",
        "100000000.01",
        " 1",
    ],
)
def test_these_are_none(text):
    assert amount_of(text) is None
