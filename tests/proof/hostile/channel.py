"""What Alipay sends, as targets of the fuzzer: notices, the gateway's answers, bills.

A signature is made and checked by a keyed hash where Alipay has RSA, which would take all the time
and is not what is looked at here.
"""

import base64
import hashlib
import hmac
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, cast
from unittest.mock import patch
from urllib.parse import parse_qsl, urlencode

from cryptography.exceptions import InvalidSignature

from lockstep.alipay import bill, gateway
from lockstep.alipay.answers import Done, NotExecuted, Refused, Unknown
from lockstep.alipay.envelope import AnswerUnreadable, read_answer
from lockstep.alipay.form import body_bytes
from lockstep.alipay.keys import Keys, PublicKey
from lockstep.alipay.model import Notice, NoticeRefused, TradeNotice
from lockstep.alipay.notice import verify_and_parse
from lockstep.alipay.transport import Received
from lockstep.settings import AlipayAppSettings
from tests.support.notices import APP_ID, SELLER_ID


class HashKey:
    """Both halves of a pair, for the product and for who sends to it."""

    def sign(self, content: bytes) -> str:
        return base64.b64encode(self._of(content)).decode()

    def verify(self, signature: bytes, content: bytes, *_: object) -> None:
        if not hmac.compare_digest(signature, self._of(content)):
            raise InvalidSignature

    def is_alipays(self, content: bytes, signature: str) -> bool:
        return hmac.compare_digest(
            signature.encode("utf-8", "replace"), self.sign(content).encode()
        )

    @staticmethod
    def _of(content: bytes) -> bytes:
        return hashlib.sha256(b"a key" + content).digest()


KEY: Final = HashKey()


# --- notices -------------------------------------------------------------------------------------


def notice(form: bytes) -> None:
    """``form`` as it comes, and signed."""
    assert _noticed(form) is None, "taken unsigned"
    _check_body(form)
    with suppress(ValueError):
        pairs = parse_qsl(form.decode("ascii"), True, encoding="latin-1", max_num_fields=100)
        pairs = [(name, value) for name, value in pairs if name != "sign"]
        params = dict(pairs)
        signed = KEY.sign(_signed_text(params))
        taken = _noticed(_written([*pairs, ("sign", signed)]))
        if taken is not None:
            _check_notice(taken, params, signed)


def _check_notice(taken: Notice, params: Mapping[str, str], signed: str) -> None:
    for name in ("app_id", "out_trade_no", "trade_no", "trade_status"):
        told = getattr(taken, name)
        assert told is None or told == params[name], name
    if isinstance(taken, TradeNotice):
        assert taken.total_amount == Decimal(params["total_amount"]) > 0
    backwards = list(reversed([*params.items(), ("sign", signed)]))
    assert _noticed(_written(backwards)) == taken, "the order of the parameters decided something"
    for name in params.keys() - {"sign_type"}:
        changed = dict(params) | {name: params[name] + "0", "sign": signed}
        assert _noticed(_written(list(changed.items()))) is None, f"{name} was changed"


def _noticed(body: bytes) -> Notice | None:
    with suppress(NoticeRefused):
        return verify_and_parse(body, [cast(PublicKey, KEY)], APP_ID, frozenset({SELLER_ID}))
    return None


def _signed_text(params: Mapping[str, str]) -> bytes:
    names = sorted(params.keys() - {"sign_type"})
    return "&".join(f"{name}={params[name]}" for name in names).encode("latin-1")


def _written(pairs: Sequence[tuple[str, str]]) -> bytes:
    return written([(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs])


def written(pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    return urlencode(pairs).encode()


def _check_body(sent: bytes) -> None:
    """As it comes, and as base64: the very bytes, or a refusal."""
    text = sent.decode("utf-8", errors="surrogateescape")
    with suppress(NoticeRefused):
        assert body_bytes(text, is_base64=False) == sent
    with suppress(NoticeRefused):
        # Not character by character: the last one may have bits that are of no byte.
        encoded = base64.b64encode(body_bytes(text, is_base64=True))
        assert len(encoded) == len(sent), "something was passed over"
    assert body_bytes(base64.b64encode(sent).decode(), is_base64=True) == sent


# --- the gateway's answers -----------------------------------------------------------------------

type Numbers = Mapping[str, str]
type Ask = Callable[[gateway.Gateway, Any], object]

_OF_A_REFUND: Final = {"trade_no": "T1", "out_request_no": "R1"}
# Each method's answer, what it is asked by, and how.
_ASKED: Final[Sequence[tuple[str, Numbers, Ask]]] = (
    ("alipay_trade_query", {"trade_no": "T1"}, lambda its, numbers: its.query(**numbers)),
    ("alipay_trade_close", {"out_trade_no": "O1"}, lambda its, numbers: its.close(**numbers)),
    (
        "alipay_trade_refund",
        _OF_A_REFUND,
        lambda its, numbers: its.refund(**numbers, amount=Decimal(1), reason=""),
    ),
    (
        "alipay_trade_fastpay_refund_query",
        _OF_A_REFUND,
        lambda its, numbers: its.query_refund(**numbers),
    ),
    (
        "alipay_trade_precreate",
        {"out_trade_no": "O1"},
        lambda its, numbers: its.precreate(
            **numbers,
            amount=Decimal(1),
            subject="",
            expires_at=datetime(2026, 10, 24, tzinfo=UTC),
            notify_url="https://shop.example.com",
        ),
    ),
)
_APP: Final = AlipayAppSettings(APP_ID, "https://gateway.example.com", (), "", None, None)


def answer(sent: bytes) -> None:
    """``sent`` is what comes, or the signed object in it; its first byte says to which question."""
    which, said = sent[:1] or b"0", sent[1:]
    name, numbers, ask = _ASKED[which[0] % len(_ASKED)]
    with suppress(AnswerUnreadable):
        read_answer(said, name.replace("_", "."))
    assert not isinstance(_outcome(ask, numbers, said), Done), "done, and unsigned"
    signed = KEY.sign(said).encode()
    found = _outcome(ask, numbers, _enclosed(name, said, signed))
    if isinstance(found, Done):
        _check_answer(said, numbers)
    for changed in (said[:-1] + b" }", said[:-1], said.replace(b"1", b"2", 1)):
        if changed != said:
            outcome = _outcome(ask, numbers, _enclosed(name, changed, signed))
            assert not isinstance(outcome, Done), "done, and changed"


def _enclosed(name: str, said: bytes, signed: bytes) -> bytes:
    return b'{"%s_response":%s,"sign":"%s"}' % (name.encode(), said, signed)


def _check_answer(said: bytes, numbers: Numbers) -> None:
    try:
        told = json.loads(said.decode("utf-8"))
    except UnicodeDecodeError:
        told = json.loads(said.decode("gb18030"))
    assert str(told["code"]) == "10000"
    for name in told.keys() & numbers.keys():
        is_said = isinstance(told[name], str) and told[name]
        assert not is_said or told[name] == numbers[name], f"about another {name}"


def _outcome(ask: Ask, numbers: Numbers, body: bytes) -> object:
    """Never an exception."""
    with patch.object(gateway, "exchange", lambda *_, **__: Received(body, None)):
        outcome = ask(gateway.Gateway(_APP, cast(Keys, KEY)), numbers)
    assert isinstance(outcome, Done | Refused | NotExecuted | Unknown)
    return outcome


def a_bill(sent: bytes) -> None:
    """``sent`` is the file, and its address."""
    with patch.object(bill, "exchange", lambda *_, **__: Received(sent, None)):
        for url in ("https://bill.example.com/", sent.decode("latin-1")):
            assert isinstance(bill.fetch(url, 0), Done | Unknown)


# --- what the fuzzer begins with ------------------------------------------------------------------


def _zip() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("bill.csv"), "no,amount\n1,9.90\n")
    return file.getvalue()


_PAYMENT: Final = {
    "app_id": APP_ID,
    "seller_id": SELLER_ID,
    "notify_id": "N1",
    "notify_type": "trade_status_sync",
    "notify_time": "2026-10-24 10:00:06",
    "charset": "utf-8",
    "sign_type": "RSA2",
    "subject": "a",
    "out_trade_no": "O1",
    "trade_no": "T1",
    "trade_status": "TRADE_SUCCESS",
    "total_amount": "9.90",
    "gmt_payment": "2026-10-24 10:00:05",
}
_REFUND: Final = {"refund_fee": "1.00", "gmt_refund": "2026-10-25 09:00:00", "out_biz_no": "R1"}
_QUERIED: Final = {
    "code": "10000",
    "trade_status": "TRADE_SUCCESS",
    "total_amount": "9.90",
    "send_pay_date": "2026-10-24 10:00:05",
    "fund_change": "Y",
    "refund_fee": "9.90",
    "refund_status": "REFUND_SUCCESS",
    "qr_code": "https://qr.example.com/1",
}

NOTICES: Final = (urlencode(_PAYMENT).encode(), urlencode(_PAYMENT | _REFUND).encode(), b"a=b&c")
ANSWERS: Final = (
    *(
        b"%d" % n + json.dumps(_QUERIED | dict(numbers)).encode()
        for n, (_, numbers, _) in enumerate(_ASKED)
    ),
    b'0{"code":"40004","sub_code":"ACQ.TRADE_NOT_EXIST"}',
    b'0{"error_response":{"code":"40002"},"sign":"x"}',
)
BILLS: Final = (
    _zip(),
    b"PK\x06\x07" + bytes(15) + b"\x01PK\x05\x06" + bytes(18),
    b"PK\x05\x06" + bytes(8) + b"\xff\xff" + bytes(8),
    b"http://[::1]:80/",
)
