"""Reading notices in unit tests: one signer whose key, app and payee are the configured ones."""

from collections.abc import Sequence

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from lockstep.alipay.model import Notice, NoticeRefused, Refusal, TradeNotice
from lockstep.alipay.notice import verify_and_parse
from tests.support.notices import APP_ID, SELLER_ID, NoticeSigner

SIGNER = NoticeSigner()
KEY = SIGNER.key.public_key()


def read(
    body: bytes,
    *,
    keys: Sequence[RSAPublicKey] = (KEY,),
    app_id: str = APP_ID,
    seller_ids: frozenset[str] = frozenset({SELLER_ID}),
) -> Notice:
    """Read a body as the notify function would."""
    return verify_and_parse(body, keys, app_id, seller_ids)


def read_trade(body: bytes) -> TradeNotice:
    """Read a body that must be a notice about a trade."""
    notice = read(body)
    assert isinstance(notice, TradeNotice)
    return notice


def refusal(
    body: bytes,
    *,
    keys: Sequence[RSAPublicKey] = (KEY,),
    app_id: str = APP_ID,
    seller_ids: frozenset[str] = frozenset({SELLER_ID}),
) -> Refusal:
    """Read a body that must be refused, and tell why it is."""
    with pytest.raises(NoticeRefused) as refused:
        read(body, keys=keys, app_id=app_id, seller_ids=seller_ids)
    return refused.value.code


def full_width(text: str) -> str:
    """Write ASCII in the full-width forms that an East Asian keyboard gives, digits among them."""
    return "".join(chr(ord(character) + 0xFEE0) for character in text)
