"""What the local Alipay tells the seller, and when: on Alipay's schedule, by a clock of ours."""

import http.server
import threading
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import pytest

from infra.local.alipay_gateway.post import HEADERS, WAITS_SECONDS, post_to
from infra.local.alipay_gateway.shapes import Request
from lockstep.alipay.notice import verify_and_parse
from tests.support.local_alipay import FakeClock, a_service, key_of, local_alipay
from tests.support.notices import APP_ID, SELLER_ID

MINUTE, HOUR = 60, 3600


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def alipay(clock):
    return a_service(clock=clock, factor=Fraction(1))


@pytest.fixture
def books(alipay):
    return alipay.service.books


def sent(alipay):
    """Send what is due, and what that said."""
    before = len(alipay.notices)
    while alipay.service.post.send_due():
        pass
    return alipay.words()[before:]


def opened(alipay, clock, notify_url="http://seller.example/notify"):
    asked = Request(
        out_trade_no="O1",
        amount=Decimal("9.90"),
        subject="钢笔 & ink",
        product="alipay.trade.page.pay",
        expires_at=clock() + timedelta(minutes=30),
        notify_url=notify_url,
    )
    alipay.service.books.ask(asked)
    return alipay.service.books.open("O1")


# --- what they say -------------------------------------------------------------------------------


def test_a_payment_is_told_in_words_that_the_product_takes(alipay, clock):
    trade = alipay.pay("O1", "9.90")
    [words] = sent(alipay)
    assert words["trade_status"] == "TRADE_SUCCESS"
    assert words["gmt_payment"] == words["notify_time"] == "2026-10-24 10:00:00"
    assert (words["total_amount"], words["refund_fee"]) == ("9.90", "0.00")
    assert "gmt_refund" not in words
    assert words["notify_id"].isdigit()
    assert len(words["notify_id"]) == 34
    keys = [key_of("alipay").public_key()]
    notice = verify_and_parse(alipay.notices[0], keys, APP_ID, frozenset({SELLER_ID}))
    assert (notice.trade_no, notice.out_trade_no) == (trade.trade_no, "O1")


def test_a_part_that_goes_back_leaves_the_trade_paid(alipay, books, clock):
    trade = alipay.pay("O1", "9.90")
    sent(alipay)
    clock.go(days=1, milliseconds=123)
    books.refund(trade, Decimal("3.00"), "R1")
    clock.go(seconds=3)
    books.refund(trade, Decimal("2.00"), "R2")
    first, second = sent(alipay)
    assert first["trade_status"] == second["trade_status"] == "TRADE_SUCCESS"
    assert first["gmt_refund"] == "2026-10-25 10:00:00.123"
    assert [one["refund_fee"] for one in (first, second)] == ["3.00", "5.00"]
    assert [one["out_biz_no"] for one in (first, second)] == ["R1", "R2"]
    assert "gmt_close" not in second
    assert first["gmt_payment"] == "2026-10-24 10:00:00"


def test_when_all_went_back_the_trade_is_closed(alipay, books):
    books.refund(alipay.pay("O1", "9.90"), Decimal("9.90"), "R1")
    _, words = sent(alipay)
    assert (words["trade_status"], words["refund_fee"]) == ("TRADE_CLOSED", "9.90")
    assert words["gmt_refund"].startswith(words["gmt_close"])
    assert words["out_biz_no"] == "R1"


def test_an_unpaid_close_knows_of_no_payment(alipay, books, clock):
    opened(alipay, clock)
    books.close(out_trade_no="O1")
    [words] = sent(alipay)
    assert (words["trade_status"], words["subject"]) == ("TRADE_CLOSED", "钢笔 & ink")
    assert words["gmt_close"] == "2026-10-24 10:00:00"
    assert not {"gmt_payment", "gmt_refund", "refund_fee", "buyer_pay_amount"} & words.keys()


def test_time_that_is_over_is_told_with_its_time(alipay, books, clock):
    opened(alipay, clock)
    clock.go(minutes=31)
    books.close_due()
    [words] = sent(alipay)
    assert (words["trade_status"], words["gmt_close"]) == ("TRADE_CLOSED", "2026-10-24 10:30:00")
    assert words["notify_time"] == "2026-10-24 10:31:00"


def test_the_end_of_the_refund_window_is_told(alipay, books, clock):
    trade = alipay.pay("O1", "9.90")
    clock.go(days=90)
    books.finish(trade.trade_no)
    _, words = sent(alipay)
    assert (words["trade_status"], words["refund_fee"]) == ("TRADE_FINISHED", "0.00")
    assert words["gmt_close"] == "2027-01-22 10:00:00"


def test_an_opened_page_is_not_told(alipay, clock):
    opened(alipay, clock)
    assert sent(alipay) == []


# --- when they are sent --------------------------------------------------------------------------


def test_an_unanswered_notice_comes_again_on_alipays_schedule(alipay, clock):
    alipay.sink = lambda _: "failure"
    alipay.pay("O1", "9.90")
    at, first = [], clock()
    for _ in range(40 * 60):
        at += [(clock() - first).total_seconds()] * len(sent(alipay))
        clock.go(minutes=1)
    waits = [later - earlier for earlier, later in pairwise(at)]
    assert waits == [
        *(0, 0, 0),
        *(4 * MINUTE, 10 * MINUTE, 10 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 15 * HOUR),
    ]
    assert waits == list(WAITS_SECONDS)
    assert alipay.service.post.waiting() == 0, "after the last try nothing comes"


def test_a_factor_scales_the_schedule(clock):
    alipay = a_service(clock=clock, factor=Fraction(1, 60), sink=lambda _: "failure")
    alipay.pay("O1", "9.90")
    assert len(sent(alipay)) == 4
    clock.go(seconds=3.9)
    assert sent(alipay) == []
    clock.go(seconds=0.1)
    assert len(sent(alipay)) == 1


def test_one_notice_keeps_its_id_and_has_its_time_anew(alipay, clock):
    answers = iter(["failure"] * 4 + ["success"])
    alipay.sink = lambda _: next(answers)
    alipay.pay("O1", "9.90")
    sent(alipay)
    clock.go(minutes=4)
    sent(alipay)
    words = alipay.words()
    assert len(words) == 5
    assert len({one["notify_id"] for one in words}) == 1
    assert words[-1]["notify_time"] == "2026-10-24 10:04:00"
    assert words[-1]["sign"] != words[0]["sign"]
    clock.go(days=2)
    assert sent(alipay) == []


@pytest.mark.parametrize(
    "said", ["", "failure", "success\n", "SUCCESS", "\ufeffsuccess", "success "]
)
def test_only_the_very_word_ends_it(alipay, said):
    alipay.sink = lambda _: said
    alipay.pay("O1", "9.90")
    sent(alipay)
    assert alipay.service.post.waiting() == 1


def test_what_was_not_taken_is_sent_after_the_next_start(tmp_path, clock):
    file = tmp_path / "books.jsonl"
    before = a_service(clock=clock, journal=file)
    before.pay("O1", "1.00")
    sent(before)
    before.sink = lambda _: "failure"
    before.pay("O2", "2.00")
    first, *_ = sent(before)

    after = a_service(clock=clock, journal=file, factor=Fraction(1), sink=lambda _: "failure")
    again = sent(after)
    assert [(one["out_trade_no"], one["notify_id"]) for one in again] == [
        ("O2", first["notify_id"])
    ], "four tries were made before, so the next is minutes away"


# --- where they are sent -------------------------------------------------------------------------


@pytest.fixture
def to(alipay):
    """The addresses that notices go to."""
    addresses = []

    def send(url, _):
        addresses.append(url)
        return "success"

    alipay.service.post.send = send
    return addresses


def test_they_go_where_the_pay_link_said(alipay, to, clock):
    opened(alipay, clock)
    alipay.pay("O1", "9.90")
    alipay.service.post.find_merchant_at("http://127.0.0.1:7/alipay/notify")
    alipay.pay("O2", "9.90")
    sent(alipay)
    assert to == ["http://seller.example/notify", "http://127.0.0.1:7/alipay/notify"]


def test_a_seller_that_moved_is_found(alipay, to, clock):
    opened(alipay, clock, alipay.service.merchant_url)
    alipay.service.post.find_merchant_at("http://127.0.0.1:8/alipay/notify")
    alipay.pay("O1", "9.90")
    sent(alipay)
    assert to == ["http://127.0.0.1:8/alipay/notify"]


def test_a_pay_link_without_an_address_has_no_notices(alipay, to, clock):
    opened(alipay, clock, notify_url=None)
    alipay.pay("O1", "9.90")
    assert sent(alipay) == to == []


def test_until_the_seller_is_there_nothing_is_tried_in_vain(tmp_path, clock):
    file = tmp_path / "books.jsonl"
    a_service(clock=clock, journal=file).pay("O1", "9.90")
    after = a_service(clock=clock, journal=file, merchant=None)
    assert sent(after) == []
    after.service.post.find_merchant_at("http://127.0.0.1:8/alipay/notify")
    assert len(sent(after)) == 1


class Seller(http.server.BaseHTTPRequestHandler):
    """Answers by its address; keeps what it was sent."""

    seen: ClassVar[list[tuple[dict[str, str], bytes]]] = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((dict(self.headers), body))
        self.send_response(302 if self.path == "/moved" else 500 if self.path == "/bad" else 200)
        self.end_headers()
        self.wfile.write(b"success")

    def log_message(self, *_):
        pass


def test_over_http_it_is_worded_as_alipay_words_it():
    with http.server.HTTPServer(("127.0.0.1", 0), Seller) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        at = f"http://127.0.0.1:{server.server_port}"
        try:
            said = [post_to(f"{at}/{path}", b"a=1") for path in ("notify", "moved", "bad")]
        finally:
            server.shutdown()
            thread.join()
    assert said == ["success", "", ""], "no redirect and no error is a success"
    headers, body = Seller.seen[0]
    assert headers.items() >= HEADERS.items()
    assert body == b"a=1"
    assert post_to(f"{at}/notify", b"a=1") == "", "nobody is there any more"


def test_as_time_goes_by_they_go_out_by_themselves():
    arrived = threading.Semaphore(0)

    def take(_):
        arrived.release()
        return "success"

    with local_alipay(sink=take) as alipay:
        for number in range(20):
            alipay.pay(f"O{number}", "1.00")
        assert all(arrived.acquire(timeout=10) for _ in range(20))
    assert len({one["notify_id"] for one in alipay.words()}) == 20
