"""Every way a call can end, and what it comes to.

Goal: Done and Refused only on Alipay's own signature; whatever else happens is Unknown or, where a
signed answer says that nothing was done, NotExecuted; and never an exception.
Method: the whole table of codes, signed, unsigned and signed by a stranger, then a network that
misbehaves in each way that a network can.
"""

import contextlib
import json
import logging
import socket
import ssl
import threading
import time

import pytest

from infra.local import alipay_sign, certificates
from lockstep.alipay import gateway as gateway_module
from lockstep.alipay import transport
from lockstep.alipay.answers import Done, NotExecuted, Refused, Unknown
from lockstep.observability import logger
from tests.support.gateway_server import (
    a_gateway,
    alipay_key,
    answering,
    app_key,
    running,
    sending,
    sent,
    strangers_key,
)

METHOD = "alipay.trade.close"


@pytest.fixture
def server():
    with running() as server:
        yield server


@pytest.fixture
def counted(monkeypatch):
    names = []
    monkeypatch.setattr(gateway_module, "count", lambda *words: names.append("".join(words)))
    return names


def closed(server, **options):
    return server.gateway().close("O1", **options)


# --- the codes ------------------------------------------------------------------------------------

REFUSALS = (
    *("ACQ.TRADE_NOT_EXIST", "ACQ.TRADE_STATUS_ERROR", "ACQ.REASON_TRADE_STATUS_INVALID"),
    *("ACQ.REASON_ILLEGAL_STATUS", "ACQ.INVALID_PARAMETER", "ACQ.DISCORDANT_REPEAT_REQUEST"),
    *("ACQ.SELLER_BALANCE_NOT_ENOUGH", "ACQ.TRADE_HAS_FINISHED", "ACQ.TRADE_NOT_ALLOW_REFUND"),
    *(
        "ACQ.REASON_TRADE_BEEN_FREEZEN",
        "ACQ.REFUND_AMT_NOT_EQUAL_TOTAL",
        "ACQ.CONTEXT_INCONSISTENT",
    ),
    *("ACQ.REASON_TRADE_REFUND_FEE_ERR", "ACQ.REFUND_FEE_ERROR", "ACQ.TRADE_HAS_SUCCESS"),
    *("ACQ.TRADE_HAS_CLOSE", "BILL_NOT_EXIST", "isp.bill_not_exist", "ACQ.SOMETHING_NEW"),
)
OURS = True
TABLE = [
    ("10000", None, Done(None)),
    *(("40004", sub_code, Refused(sub_code)) for sub_code in REFUSALS),
    ("40005", "isv.app-call-limited", NotExecuted("isv.app-call-limited", not OURS)),
    ("40005", None, NotExecuted("40005", not OURS)),
    ("20001", "aop.invalid-auth-token", NotExecuted("aop.invalid-auth-token", OURS)),
    ("40001", "isv.missing-timestamp", NotExecuted("isv.missing-timestamp", OURS)),
    ("40002", "isv.invalid-timestamp", NotExecuted("isv.invalid-timestamp", OURS)),
    ("40002", None, NotExecuted("40002", OURS)),
    (
        "40003",
        "isv.missing-signature-config",
        NotExecuted("isv.missing-signature-config", OURS),
    ),
    (
        "40006",
        "isv.insufficient-isv-permissions",
        NotExecuted("isv.insufficient-isv-permissions", OURS),
    ),
    ("20000", "isp.unknow-error", None),
    ("20000", "aop.unknow-error", None),
    ("20000", None, None),
    ("40004", "ACQ.SYSTEM_ERROR", None),
    ("40004", "aop.ACQ.SYSTEM_ERROR", None),
    ("20000", "ACQ.SYSTEM_ERROR", None),
    ("40004", "ACQ.REFUND_CHARGE_ERROR", None),
    ("40004", None, None),  # refused, and nobody says why
    ("40004", "a b", None),
    ("10003", None, None),  # a code that nobody told us
    (None, None, None),
    (10000, None, Done(None)),  # a number is the same text
    (True, None, None),
]


@pytest.mark.parametrize(("code", "sub_code", "outcome"), TABLE)
def test_a_signed_answer_comes_to_what_its_code_means(server, counted, code, sub_code, outcome):
    server.answers(code=code, sub_code=sub_code, msg="…", sub_msg="说明")
    actual = closed(server)
    if outcome is None:
        assert isinstance(actual, Unknown)
    else:
        assert actual == outcome
    is_ours = isinstance(outcome, NotExecuted) and outcome.is_our_fault
    assert counted == (["GatewayMisconfigured"] if is_ours else [])


@pytest.mark.parametrize(("code", "sub_code"), [each[:2] for each in TABLE])
@pytest.mark.parametrize("signed_by", ["nobody", "a stranger", "ourselves"])
def test_no_code_counts_without_alipays_signature(server, counted, code, sub_code, signed_by):
    fields = {"code": code, "sub_code": sub_code}
    if signed_by == "nobody":
        server.behaviour = sending(json.dumps({"alipay_trade_close_response": fields}).encode())
    else:
        key = strangers_key() if signed_by == "a stranger" else app_key()
        server.behaviour = answering(fields, key)
    outcome = closed(server)
    assert isinstance(outcome, Unknown)
    assert ("unsigned" if signed_by == "nobody" else "not signed by Alipay's key") in outcome.why
    assert counted == ["GatewayUnsigned"]


def test_what_is_wrong_with_our_settings_is_logged_by_its_code(server, caplog, monkeypatch):
    logged = []
    monkeypatch.setattr(logger, "error", lambda text, **named: logged.append((text, named)))
    server.answers(code="40002", sub_code="isv.invalid-signature", sub_msg="app_id=2021…&sign=…")
    assert closed(server) == NotExecuted("isv.invalid-signature", is_our_fault=True)
    assert logged == [
        ("the gateway does not accept our requests", {"code": "isv.invalid-signature"})
    ]
    assert not caplog.records or max(r.levelno for r in caplog.records) < logging.ERROR


# --- answers that are none ------------------------------------------------------------------------

SIGNED = alipay_sign.sign_response(METHOD, {"code": "10000", "msg": "Success"}, alipay_key())


def with_sign(sign):
    members = json.loads(SIGNED)
    return json.dumps(members | {"sign": sign} if sign is not None else members).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{}",
        b"[]",
        b"<html>502</html>",
        b"\xff\xfe\x00",
        SIGNED[:-1],
        SIGNED[:40],
        SIGNED + b"x",
        SIGNED + SIGNED,
        SIGNED.replace(b"10000", b"10001"),
        SIGNED.replace(b'"code":"10000"', b'"code": "10000"'),  # the same object, other bytes
        SIGNED.replace(b"alipay_trade_close", b"alipay_trade_query"),
        SIGNED.replace(b"alipay_trade_close_response", b"error_response"),
        SIGNED.replace(b'{"alipay', b'{"alipay_trade_close_response":{"code":"10000"},"alipay'),
        SIGNED.replace(b'"code"', b'"code":"40004","code"'),
        with_sign(""),
        with_sign("AAAA"),
        with_sign("no base64!"),
        with_sign(5),
        with_sign(["AAAA"]),
        alipay_sign.sign_response("alipay.trade.query", {"code": "10000"}, alipay_key()),
        b'{"alipay_trade_close_response":"10000","sign":"AAAA"}',
        b'{"alipay_trade_close_response":{"code":NaN},"sign":"AAAA"}',
        b'{"error_response":{"code":"20000","msg":"Service Currently Unavailable"}}',
        b'{"error_response":null}',
        b"[" * 200_000,
        b'{"alipay_trade_close_response":' + b'{"a":' * 40_000,
        b'{"alipay_trade_close_response":{"code":' + b"1" * 100_000 + b'},"sign":"AAAA"}',
    ],
    ids=range(29),
)
def test_a_body_that_is_no_answer_is_unknown(server, body):
    server.behaviour = sending(body)
    assert isinstance(closed(server), Unknown)


def test_the_signed_body_that_those_were_made_from_is_one(server):
    server.behaviour = sending(SIGNED)
    assert closed(server) == Done(None)


def test_why_is_short_whatever_came(server):
    error = {"code": "4" * 9000, "sub_code": "x" * 9000}
    for name in ("error_response", "alipay_trade_close_response"):
        server.behaviour = sending(json.dumps({name: error}).encode())
        outcome = closed(server)
        assert isinstance(outcome, Unknown)
        assert len(outcome.why) < 250


def test_why_names_the_gateways_own_code(server):
    server.behaviour = sending(
        b'{"error_response":{"code":"40002","sub_code":"isv.invalid-app-id"}}'
    )
    outcome = closed(server)
    assert isinstance(outcome, Unknown)
    assert "isv.invalid-app-id" in outcome.why


@pytest.mark.parametrize(
    "status", [100, 201, 204, 206, 301, 302, 307, 400, 403, 404, 429, 500, 502, 503]
)
def test_only_http_200_is_an_answer(server, status):
    server.behaviour = sending(SIGNED if status not in {100, 204} else b"", status)
    assert isinstance(closed(server, timeout_seconds=0.3), Unknown)


def test_a_redirect_is_not_followed(server):
    with running() as elsewhere:
        server.behaviour = sending(b"", 302, Location=elsewhere.url)
        assert isinstance(closed(server), Unknown)
        assert elsewhere.asked == []


# --- a network that misbehaves --------------------------------------------------------------------


def hangs(handler, _):
    handler.server_closing.wait(10)


def drips(handler, _):
    """A byte in each tenth of a second: every read is answered in time."""
    for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000:
        if handler.server_closing.wait(0.1):
            return
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()


def drips_its_body(handler, _):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _byte in range(1000):
        if handler.server_closing.wait(0.1):
            return
        handler.wfile.write(b"x")
        handler.wfile.flush()


def drips_chunks(handler, _):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not handler.server_closing.wait(0.1):
        handler.wfile.write(b"1\r\nx\r\n")
        handler.wfile.flush()


def continues_for_ever(handler, _):
    while not handler.server_closing.wait(0.05):
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        handler.wfile.flush()


@pytest.mark.parametrize(
    "behaviour", [hangs, drips, drips_its_body, drips_chunks, continues_for_ever]
)
def test_no_server_outlasts_the_time_it_was_given(server, behaviour):
    def behave(handler, asked):
        handler.server_closing = server.closing
        behaviour(handler, asked)

    server.behaviour = behave
    began = time.monotonic()
    outcome = closed(server, timeout_seconds=0.5)
    assert 0.4 < time.monotonic() - began < 5
    assert isinstance(outcome, Unknown)


@pytest.mark.parametrize(
    "sends",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + SIGNED[:100],
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(SIGNED) + 1) + SIGNED,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(SIGNED) + SIGNED,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + SIGNED,
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" + SIGNED[:50],
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x00" * 200_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000,
    ],
    ids=range(10),
)
def test_an_answer_that_breaks_off_or_is_none_is_unknown(server, sends):
    server.behaviour = lambda handler, _: handler.wfile.write(sends)
    assert isinstance(closed(server), Unknown)


def test_an_answer_without_a_length_ends_where_the_connection_does(server):
    server.behaviour = lambda handler, _: handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + SIGNED)
    assert closed(server) == Done(None)


@pytest.mark.parametrize("length", [True, False])
def test_ten_megabytes_are_not_read(server, length):
    def floods(handler, _):
        header = b"Content-Length: 10485760\r\n" if length else b""
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n")
        for _block in range(160):
            handler.wfile.write(b"x" * 65536)

    server.behaviour = floods
    outcome = closed(server)
    assert isinstance(outcome, Unknown)
    assert "more than" in outcome.why


def test_whoever_is_not_there_is_unknown():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
    assert isinstance(a_gateway(url).close("O1"), Unknown)


@pytest.mark.parametrize(
    "url", ["", "gateway.do", "ftp://127.0.0.1/", "http:///x", "http://127.0.0.1:x/", "http://[::1"]
)
def test_an_address_that_is_none_is_unknown_and_no_fault(url):
    assert isinstance(a_gateway(url).close("O1"), Unknown)


@pytest.mark.parametrize("seconds", [0, -1])
def test_without_time_nothing_is_asked(server, seconds):
    assert isinstance(closed(server, timeout_seconds=seconds), Unknown)
    assert server.asked == []


def test_a_plain_server_is_not_talked_to_where_https_was_said(server):
    url = server.url.replace("http://", "https://")
    assert isinstance(a_gateway(url).close("O1"), Unknown)
    assert server.asked == []


def test_certificate_and_name_are_verified(tmp_path, monkeypatch):
    files = certificates.ensure(tmp_path / "tls")
    with running(tls=files) as server:
        assert isinstance(closed(server), Unknown)  # no authority of the system's knows it
        vouched = ssl.create_default_context(cafile=files.ca)
        vouched.verify_flags &= ~ssl.VERIFY_X509_STRICT  # that authority is a plain one
        monkeypatch.setattr(transport, "_trusting", lambda: vouched)
        assert closed(server) == Done(None)
        other_name = server.url.replace("127.0.0.1", "localhost")
        assert isinstance(a_gateway(other_name).close("O1"), Unknown)
        assert len(server.asked) == 1


def test_a_handshake_that_nobody_answers_ends_in_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        assert isinstance(a_gateway(url).close("O1", timeout_seconds=0.3), Unknown)
        assert time.monotonic() - began < 5


def test_a_host_of_many_addresses_is_given_no_more_time(monkeypatch):
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        # With its queue full, the kernel answers nobody any more.
        with socket.create_connection(address), contextlib.ExitStack() as waiting:
            for _ in range(4):
                queued = waiting.enter_context(socket.socket())
                queued.setblocking(False)
                queued.connect_ex(address)
            found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)] * 5
            monkeypatch.setattr(transport, "getaddrinfo", lambda *_, **__: found)
            began = time.monotonic()
            url = f"http://127.0.0.1:{address[1]}/"
            assert isinstance(a_gateway(url).close("O1", timeout_seconds=0.4), Unknown)
            assert 0.3 < time.monotonic() - began < 1.8  # a time for each would be 2 s


def test_the_next_address_is_tried_where_one_refuses(server, monkeypatch):
    port = int(server.url.split(":")[2].split("/")[0])
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", p)) for p in (1, port)]
    monkeypatch.setattr(transport, "getaddrinfo", lambda *_, **__: found)
    assert closed(server) == Done(None)
    monkeypatch.setattr(transport, "getaddrinfo", lambda *_, **__: [])
    assert isinstance(closed(server), Unknown)


def test_threads_share_one_gateway(server):
    """Each answer goes to whoever asked."""
    gateway = server.gateway()
    refused = {f"O{n}": f"ACQ.CODE_{n}" for n in range(24)}

    def behave(handler, asked):
        answer = {"code": "40004", "sub_code": refused[asked.content["out_trade_no"]]}
        sent(handler, alipay_sign.sign_response(METHOD, answer, alipay_key()))

    server.behaviour = behave
    outcomes = {}
    threads = [
        threading.Thread(target=lambda no=no: outcomes.update({no: gateway.close(no)}))
        for no in refused
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {no: Refused(code) for no, code in refused.items()}
