"""The local Alipay over HTTP: who is let in, what is signed, and what the product's own client,
which was written apart from it, makes of the answers."""

import base64
import http.client
import json
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from infra.local import alipay_sign
from lockstep.alipay.answers import Done, NotExecuted, Refused, TradeStatus, Unknown
from tests.support.local_alipay import key_of, local_alipay
from tests.support.notices import APP_ID

NINE_NINETY = Decimal("9.90")
QUERY = "alipay.trade.query"


@pytest.fixture(scope="module")
def served():
    with local_alipay() as alipay:
        yield alipay


@pytest.fixture
def alipay(served):
    yield served
    served.faults.clear()
    served.service.books.set_balance(None)


@pytest.fixture
def gateway(alipay):
    return alipay.gateway()


@pytest.fixture
def number(request):
    """An out_trade_no of the test's own: the books are shared."""
    return f"O{abs(hash(request.node.nodeid))}"


def signed(method=QUERY, biz=None, **changes):
    """A request as the gateway wants it; `changes` replace or drop (None) before it is signed."""
    params = {
        "app_id": APP_ID,
        "method": method,
        "format": "JSON",
        "charset": "utf-8",
        "sign_type": "RSA2",
        "timestamp": alipay_sign.beijing_text(datetime.now(UTC)),
        "version": "1.0",
        "biz_content": json.dumps(biz or {"out_trade_no": "O1"}, ensure_ascii=False),
    }
    params = {name: value for name, value in (params | changes).items() if value is not None}
    content = "&".join(f"{name}={value}" for name, value in sorted(params.items()) if value)
    signature = key_of("app").sign(content.encode(), PKCS1v15(), SHA256())
    return {**params, "sign": base64.b64encode(signature).decode()}


def post(alipay, params):
    """The text that comes back: charset in the URL, the rest as a form."""
    form = {name: value for name, value in params.items() if name != "charset"}
    charset = {name: value for name, value in params.items() if name == "charset"}
    url = f"{alipay.service.gateway_url}?{urlencode(charset)}"
    return send(url, form)[2]


def answer(alipay, params):
    """(code, sub_code, whether it is signed)"""
    document = json.loads(post(alipay, params))
    [fields] = [value for name, value in document.items() if name.endswith("_response")]
    return fields["code"], fields.get("sub_code"), "sign" in document


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def send(url, form=None, **headers):
    """(status, headers, text) of a GET or of a form, without following a redirect."""
    body = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(url, body, headers)
    try:
        reply = urllib.request.build_opener(NoRedirect).open(request, timeout=10)
    except urllib.error.HTTPError as other:
        reply = other
    with reply:
        return reply.status, reply.headers, reply.read().decode()


# --- who is let in -------------------------------------------------------------------------------


def test_an_answer_is_signed_over_its_very_text(alipay):
    text = post(alipay, signed())
    begin, end = text.index(":{") + 1, text.index("}") + 1
    signature = base64.b64decode(json.loads(text)["sign"])
    key_of("alipay").public_key().verify(signature, text[begin:end].encode(), PKCS1v15(), SHA256())
    assert json.loads(text[begin:end])["sub_code"] == "ACQ.TRADE_NOT_EXIST"


@pytest.mark.parametrize(
    ("name", "sub_code"),
    [
        ("method", "isv.missing-method"),
        ("app_id", "isv.missing-app-id"),
        ("sign_type", "isv.missing-signature-type"),
        ("timestamp", "isv.missing-timestamp"),
        ("version", "isv.missing-version"),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_signed(alipay, name, sub_code):
    assert answer(alipay, signed(**{name: None})) == ("40001", sub_code, False)


def test_without_a_signature_nothing_is_signed(alipay):
    params = signed()
    del params["sign"]
    assert answer(alipay, params) == ("40001", "isv.missing-signature", False)


def test_a_signature_over_something_else_is_refused_unsigned(alipay):
    changed = signed() | {"biz_content": '{"out_trade_no":"O2"}'}
    assert answer(alipay, changed) == ("40002", "isv.invalid-signature", False)
    assert answer(alipay, signed() | {"sign": "abc"}) == ("40002", "isv.invalid-signature", False)


def test_another_app_is_refused_unsigned(alipay):
    params = signed(app_id="2021000999999999")
    assert answer(alipay, params) == ("40002", "isv.invalid-app-id", False)


def test_sha1_is_refused(alipay):
    assert answer(alipay, signed(sign_type="RSA"))[1] == "isv.invalid-signature-type"


@pytest.mark.parametrize("hours", [-8, 8, 0.26, -0.26])
def test_a_clock_that_is_not_beijings_is_refused(alipay, hours):
    at = alipay_sign.beijing_text(datetime.now(UTC) + timedelta(hours=hours))
    assert answer(alipay, signed(timestamp=at)) == ("40002", "isv.invalid-timestamp", True)


def test_ten_minutes_apart_will_do(alipay):
    at = alipay_sign.beijing_text(datetime.now(UTC) - timedelta(minutes=10))
    assert answer(alipay, signed(timestamp=at))[1] == "ACQ.TRADE_NOT_EXIST"


def test_a_charset_outside_of_the_url_does_not_count(alipay):
    assert "isv.invalid-charset" in send(alipay.service.gateway_url, signed())[2]


def test_an_unknown_method_is_refused(alipay):
    assert answer(alipay, signed("alipay.trade.cancel")) == ("40002", "isv.invalid-method", True)


@pytest.mark.parametrize("biz", ["[]", "{", '"text"'])
def test_an_unreadable_content_is_refused(alipay, biz):
    params = signed(biz_content=biz)
    assert answer(alipay, params) == ("40002", "isv.invalid-parameter", True)


# --- pay links -----------------------------------------------------------------------------------


def a_link(gateway, number, product="page", **changes):
    asked = {
        "out_trade_no": number,
        "amount": NINE_NINETY,
        "subject": "钢笔 pens",
        "expires_at": datetime.now(UTC) + timedelta(minutes=30),
        "notify_url": "http://127.0.0.1:1/alipay/notify",
        "return_url": None,
    }
    return gateway.page_url(product, **(asked | changes))


@pytest.mark.parametrize("product", ["page", "wap"])
def test_a_pay_link_leads_to_the_cashier_and_only_there_becomes_a_trade(
    alipay, gateway, number, product
):
    status, headers, _ = send(a_link(gateway, number, product))
    assert (status, headers["Location"]) == (302, f"{alipay.service.cashier_url}/{number}")
    assert gateway.query(out_trade_no=number) == Refused("ACQ.TRADE_NOT_EXIST")
    assert "钢笔 pens" in send(headers["Location"])[2]
    found = gateway.query(out_trade_no=number)
    assert isinstance(found, Done)
    assert (found.value.status, found.value.total_amount) == ("WAIT_BUYER_PAY", NINE_NINETY)
    assert found.value.paid_at is None


def test_a_pay_link_that_was_changed_leads_to_no_cashier(alipay, gateway, number):
    url = a_link(gateway, number).replace("9.90", "0.01")
    status, _, page = send(url)
    assert status == 400
    assert "isv.invalid-signature" in page


@pytest.mark.parametrize(
    "change",
    [
        {"total_amount": "9.901"},
        {"total_amount": "0"},
        {"out_trade_no": "O-1"},
        {"out_trade_no": "O" * 65},
        {"subject": "a=b"},
        {"subject": ""},
        {"product_code": "QUICK_WAP_WAY"},
        {"time_expire": "2026-10-24"},
        {"time_expire": "2000-01-01 00:00:00"},
        {"time_expire": "2999-01-01 00:00:00"},
    ],
)
def test_what_alipay_would_not_create_is_refused(alipay, number, change):
    biz = {
        "out_trade_no": number,
        "total_amount": "9.90",
        "subject": "Pens",
        "product_code": "FAST_INSTANT_TRADE_PAY",
    }
    query = urlencode(signed("alipay.trade.page.pay", biz | change))
    status, _, page = send(f"{alipay.service.gateway_url}?{query}")
    assert status == 400
    assert "ACQ.INVALID_PARAMETER" in page


def test_a_notify_url_with_a_query_is_refused(alipay, gateway, number):
    status, _, page = send(a_link(gateway, number, notify_url="http://127.0.0.1/notify?id=1"))
    assert status == 400
    assert "ACQ.INVALID_PARAMETER" in page


def test_a_qr_code_leads_to_the_cashier(alipay, gateway, number):
    asked = {
        "out_trade_no": number,
        "amount": NINE_NINETY,
        "subject": "Pens",
        "expires_at": datetime.now(UTC) + timedelta(minutes=30),
        "notify_url": "http://127.0.0.1:1/alipay/notify",
    }
    made = gateway.precreate(**asked)
    assert made == Done(f"{alipay.service.cashier_url}/{number}")
    send(made.value)
    inconsistent = gateway.precreate(**asked | {"amount": Decimal("1.00")})
    assert inconsistent == Refused("ACQ.CONTEXT_INCONSISTENT")
    alipay.pay(number, "9.90")
    assert gateway.precreate(**asked) == Refused("ACQ.TRADE_HAS_SUCCESS")


# --- the product's client ------------------------------------------------------------------------


def test_a_payment_is_found_with_its_time(alipay, gateway, number):
    paid = alipay.pay(number, "9.90")
    found = gateway.query(out_trade_no=number)
    assert isinstance(found, Done)
    assert found.value.trade_no == paid.trade_no
    assert found.value.status is TradeStatus.TRADE_SUCCESS
    assert found.value.paid_at == paid.paid_at.replace(microsecond=0)
    assert found.value.is_settled


def test_an_unpaid_trade_is_closed_and_a_paid_one_is_not(alipay, gateway, number):
    assert gateway.close(number) == Refused("ACQ.TRADE_NOT_EXIST")
    send(a_link(gateway, number))
    send(f"{alipay.service.cashier_url}/{number}")
    assert gateway.close(number) == Done(None)
    assert gateway.close(number) == Refused("ACQ.TRADE_STATUS_ERROR")


def test_a_refund_is_done_once_and_found(alipay, gateway, number):
    trade_no = alipay.pay(number, "9.90").trade_no
    asked = {"trade_no": trade_no, "out_request_no": "R1"}
    missing = gateway.query_refund(**asked)
    assert isinstance(missing, Done)
    assert not missing.value.is_done
    first, again = (
        gateway.refund(**asked, amount=Decimal("3.00"), reason="late") for _ in range(2)
    )
    assert isinstance(first, Done)
    assert isinstance(again, Done)
    assert (first.value.fund_changed, first.value.refunded) == (True, Decimal("3.00"))
    assert (again.value.fund_changed, again.value.refunded) == (False, Decimal("3.00"))
    found = gateway.query_refund(**asked)
    assert isinstance(found, Done)
    assert (found.value.is_done, found.value.amount) == (True, Decimal("3.00"))
    other = gateway.refund(**asked, amount=Decimal("3.01"), reason="late")
    assert not isinstance(other, Done)


def test_two_refunds_in_a_row_are_not_executed(alipay, gateway, number):
    trade_no = alipay.pay(number, "9.90").trade_no
    for name, kind in (("R1", Done), ("R2", NotExecuted)):
        outcome = gateway.refund(
            trade_no=trade_no, out_request_no=name, amount=Decimal("1.00"), reason="late"
        )
        assert isinstance(outcome, kind)


def test_a_refund_of_a_trade_that_nobody_knows_is_refused(gateway):
    asked = {"trade_no": "2026102422001400000000000000", "out_request_no": "R1"}
    outcome = gateway.refund(**asked, amount=NINE_NINETY, reason="late")
    assert outcome == Refused("ACQ.TRADE_NOT_EXIST")
    assert gateway.query_refund(**asked) == Refused("ACQ.TRADE_NOT_EXIST")


# --- control is for this machine -----------------------------------------------------------------


def test_a_page_of_another_site_has_no_control(alipay):
    url = f"{alipay.service.control_url}/trades"
    assert send(url)[0] == 200
    assert send(url, Origin="http://evil.example")[0] == 404
    assert send(url, Host="evil.example")[0] == 404


def test_what_is_not_there_is_404_and_a_flood_is_refused(alipay):
    assert send(f"{alipay.service.base_url}/elsewhere")[0] == 404
    address = urlsplit(alipay.service.base_url)
    connection = http.client.HTTPConnection(address.netloc, timeout=10)
    connection.request("POST", "/gateway.do", headers={"Content-Length": "2000000"})
    assert connection.getresponse().status == 413
    connection.close()


def test_a_buyer_is_sent_back_with_what_happened(alipay, gateway, number):
    url = a_link(gateway, number, return_url="http://127.0.0.1:1/back?from=alipay")
    send(url)
    status, headers, _ = send(f"{alipay.service.cashier_url}/{number}", {"action": "pay"})
    back = urlsplit(headers["Location"])
    assert status == 303
    told = {name: value for name, [value] in parse_qs(back.query).items()}
    assert (back.netloc, back.path, told["from"]) == ("127.0.0.1:1", "/back", "alipay")
    assert (told["out_trade_no"], told["total_amount"]) == (number, "9.90")
    assert told["method"] == "alipay.trade.page.pay.return"


def test_an_unsigned_refusal_is_unknown_to_the_client(alipay, gateway, number):
    alipay.faults.add(QUERY, "unsigned")
    alipay.pay(number, "9.90")
    assert isinstance(gateway.query(out_trade_no=number), Unknown)
    assert isinstance(gateway.query(out_trade_no=number), Done)
