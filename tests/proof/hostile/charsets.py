"""Every charset that Python knows, as what a notice says of itself, as what its bytes are in, and
as what an order's bytes are in: each is read right or refused.
"""

import codecs
import encodings.aliases
import json
import pkgutil
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, cast

from lockstep.alipay.keys import PublicKey
from lockstep.alipay.model import NoticeRefused, Refusal, TradeNotice
from lockstep.alipay.notice import verify_and_parse
from tests.proof.hostile.channel import KEY, written
from tests.proof.hostile.shop import carried
from tests.proof.world import World
from tests.support import api, http_events, notices
from tests.support.local_alipay import key_of

_SUBJECTS: Final = ("Tea", "茶 测试", "é ü ß", "заказ", "注文テスト", "주문", "שלום", "€", "🍵")
_TAKEN: Final = frozenset({"utf-8", "gb2312", "gbk", "gb18030"})


def charsets() -> dict[str, Callable[[World], object]]:
    return {
        **{f"said, {name}": partial(_try_charset, name) for name in _charset_names()},
        **{f"written, {name}": partial(_try_encoding, name) for name in _text_codecs()},
        **{f"body, {name}": partial(_try_body_encoding, name) for name in _text_codecs()},
    }


def _charset_names() -> list[str]:
    """Every name that Python knows a codec by, and some that it takes for one of them."""
    modules = {found.name for found in pkgutil.iter_modules(encodings.__path__)}
    names = (
        modules | encodings.aliases.aliases.keys() | _TAKEN | {"UTF8", "utf-8 ", " gbk", "cp-936"}
    )
    return sorted(names | {name.replace("_", "-") for name in names})


def _text_codecs() -> list[str]:
    found = []
    for name in _charset_names():
        try:
            is_text = codecs.lookup(name)._is_text_encoding
            "a".encode(name)
        except (LookupError, UnicodeError, ValueError):
            continue
        if is_text:
            found.append(name)
    return found


def _try_charset(name: str, _: World) -> None:
    """A notice that says this charset and is written in it: taken for what it is, or not."""
    for subject in _SUBJECTS:
        try:
            encoded = subject.encode(name)
        except (LookupError, UnicodeError, ValueError, TypeError, AssertionError):
            if name.lower() in _TAKEN:
                continue
            encoded = subject.encode()
        for said in {name, name.upper()}:
            taken = _noticed({"charset": said.encode(), "subject": encoded})
            if said.lower() in _TAKEN:
                assert isinstance(taken, TradeNotice)
                assert taken.subject == subject, (said, subject, taken.subject)
            else:
                assert taken is Refusal.CHARSET_REFUSED


def _try_encoding(name: str, _: World) -> None:
    """A notice whose every byte is in this charset, whichever it says: what decides is read right,
    or nothing is."""
    for said in ("", *_TAKEN):
        params = {key: value.decode() for key, value in _payment().items()} | {"charset": said}
        encoded = {key.encode(name): value.encode(name) for key, value in params.items()}
        taken = _read(encoded)
        if isinstance(taken, TradeNotice):
            assert (taken.out_trade_no, taken.trade_no) == ("O1", "T1")
            assert str(taken.total_amount) == "9.90"


def _try_body_encoding(name: str, _: World) -> None:
    """An order in this charset: read where its bytes are JSON in UTF-8, or refused."""
    for note in _SUBJECTS:
        try:
            sent = json.dumps({"lines": [], "note": note}, ensure_ascii=False).encode(name)
        except (UnicodeError, ValueError):
            continue
        answer = api.ask(http_events.post_order() | carried(sent, is_base64=True))
        # Without lines it is never an order; whoever reads it says no more than that.
        is_read = answer.code == "BODY_INVALID"
        assert is_read == (_is_utf8(sent) and sent.startswith(b"{")), (note, answer)


def _is_utf8(sent: bytes) -> bool:
    try:
        json.loads(sent.decode("utf-8"))
    except ValueError:
        return False
    return True


def _payment() -> dict[str, bytes]:
    base = notices.NoticeSigner(key_of("alipay")).base()
    return {name: value.encode() for name, value in base.items() if name != "sign"}


def _noticed(changes: Mapping[str, bytes]) -> object:
    return _read({name.encode(): value for name, value in (_payment() | dict(changes)).items()})


def _read(params: Mapping[bytes, bytes]) -> object:
    """The notice of these bytes, signed; or why it is none."""
    signed = sorted(params.keys() - {b"sign_type"})
    sign = KEY.sign(b"&".join(name + b"=" + params[name] for name in signed))
    body = written([*params.items(), (b"sign", sign.encode())])
    ours = notices.APP_ID, frozenset({notices.SELLER_ID})
    try:
        return verify_and_parse(body, [cast(PublicKey, KEY)], *ours)
    except NoticeRefused as refused:
        return refused.code
