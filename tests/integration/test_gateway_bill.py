"""The bill of a day: asked for, then fetched at once, whole or not at all."""

import io
import json
import time
import zipfile
from datetime import date

import pytest

from infra.local import alipay_sign
from lockstep.alipay import bill as bill_module
from lockstep.alipay.answers import Done, Refused, Unknown
from lockstep.alipay.transport import NoAnswer, Received
from tests.support.gateway_server import alipay_key, running, sent

DAY = date(2026, 10, 24)


def zipped(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("20880000000000010156_20261024_业务明细.csv", text.encode("gb18030"))
    return file.getvalue()


BILL = zipped("#支付宝业务明细查询\r\n" * 200)


@pytest.fixture
def server():
    with running() as server:
        yield server


def billed(server, download, **fields):
    """The gateway names an address of the same server; what it sends there is ``download``."""

    def behave(handler, asked):
        if asked.verb == "POST":
            method = asked.params["method"]
            url = f"{server.url.removesuffix('gateway.do')}bill.zip?token=a%2Fb&id=1"
            answer = {"code": "10000", "bill_download_url": url} | fields
            sent(handler, alipay_sign.sign_response(method, answer, alipay_key()))
        else:
            download(handler)

    server.behaviour = behave
    return server.gateway().bill(DAY)


def test_a_bill_is_the_bytes_of_its_zip(server):
    assert billed(server, lambda handler: sent(handler, BILL)) == Done(BILL)
    _, got = server.asked
    assert (got.verb, got.path, got.query) == ("GET", "/bill.zip", {"token": "a/b", "id": "1"})


def test_a_file_that_says_that_it_spans_disks_is_no_bill(server):
    body = b"PK\x06\x07" + b"\x01" * 16 + b"PK\x05\x06" + bytes(18)
    assert isinstance(billed(server, lambda handler: sent(handler, body)), Unknown)


def test_an_empty_bill_is_a_bill(server):
    fields = {"bill_file_code": "EMPTY_DATA_WITH_BILL_FILE"}
    outcome = billed(server, lambda handler: sent(handler, zipped("")), **fields)
    assert isinstance(outcome, Done)


@pytest.mark.parametrize("code", ["BILL_NOT_EXIST", "isp.bill_not_exist"])
def test_a_bill_that_is_not_there_yet_is_refused_by_name(server, code):
    outcome = billed(server, lambda _: None, code="40004", sub_code=code)
    assert outcome == Refused(code)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "download",
    [
        lambda handler: sent(handler, BILL[:-1]),
        lambda handler: sent(handler, b"<html>expired</html>"),
        lambda handler: sent(handler, b""),
        lambda handler: sent(handler, BILL, 404),
        lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + BILL[:100]),
        lambda handler: handler.wfile.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + BILL
        ),
    ],
    ids=range(6),
)
def test_half_a_bill_is_none(server, download):
    assert isinstance(billed(server, download), Unknown)


def test_a_download_leads_nowhere_else(server):
    with running() as elsewhere:
        outcome = billed(server, lambda h: sent(h, b"", 302, Location=elsewhere.url))
        assert isinstance(outcome, Unknown)
        assert elsewhere.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "bill.zip",
        "http://",
        "http://[",
        "http://a:99999/",
    ],
)
def test_an_address_that_is_not_http_is_not_read(server, url):
    assert isinstance(billed(server, lambda _: None, bill_download_url=url), Unknown)


def test_a_bill_without_an_address_is_unknown(server):
    assert isinstance(billed(server, lambda _: None, bill_download_url=None), Unknown)


def test_a_bill_is_no_larger_than_it_may_be(server, monkeypatch):
    monkeypatch.setattr(bill_module, "ZIP_BYTES_MAX", len(BILL) - 1)
    assert isinstance(billed(server, lambda handler: sent(handler, BILL)), Unknown)
    monkeypatch.setattr(bill_module, "ZIP_BYTES_MAX", len(BILL))
    assert billed(server, lambda handler: sent(handler, BILL)) == Done(BILL)


def test_question_and_download_share_one_time_limit(server):
    def behave(handler, asked):
        if asked.verb == "GET":
            server.closing.wait(10)
            return
        server.closing.wait(0.9)
        url = server.url
        answer = {"code": "10000", "bill_download_url": url}
        sent(handler, alipay_sign.sign_response(asked.params["method"], answer, alipay_key()))

    server.behaviour = behave
    began = time.monotonic()
    assert isinstance(server.gateway().bill(DAY, timeout_seconds=1), Unknown)
    assert 0.9 < time.monotonic() - began < 1.8  # a time for each would be 1.9 s


def test_a_question_that_nobody_answers_leaves_nothing_to_download(server):
    server.behaviour = lambda *_: server.closing.wait(10)
    began = time.monotonic()
    assert isinstance(server.gateway().bill(DAY, timeout_seconds=0.3), Unknown)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("url", "tried"),
    [
        ("http://dwbillcenter.alipay.com/a?b=1", ["https://dwbillcenter.alipay.com/a?b=1"]),
        ("https://dwbillcenter.alipay.com/a", ["https://dwbillcenter.alipay.com/a"]),
        ("http://127.0.0.1/a", ["http://127.0.0.1/a"]),
        ("http://localhost/a", ["http://localhost/a"]),
    ],
)
def test_https_is_tried_first_where_alipay_says_http(monkeypatch, url, tried):
    asked = []

    def exchange(address, form, **_):
        asked.append(address)
        return Received(BILL, None)

    monkeypatch.setattr(bill_module, "exchange", exchange)
    assert bill_module.fetch(url, time.monotonic() + 1) == Done(BILL)
    assert asked == tried


def test_plain_http_is_tried_where_nobody_speaks_https(monkeypatch):
    def exchange(address, form, **_):
        if address.startswith("https"):
            raise NoAnswer("refused")
        return Received(BILL, None)

    monkeypatch.setattr(bill_module, "exchange", exchange)
    url = "http://dwbillcenter.alipay.com/a"
    assert bill_module.fetch(url, time.monotonic() + 1) == Done(BILL)


def test_the_answer_of_a_bill_is_held_to_alipays_signature(server):
    def behave(handler, asked):
        fields = {"code": "10000", "bill_download_url": server.url}
        name = f"{asked.params['method'].replace('.', '_')}_response"
        sent(handler, json.dumps({name: fields}).encode())

    server.behaviour = behave
    assert isinstance(server.gateway().bill(DAY), Unknown)
    assert len(server.asked) == 1
