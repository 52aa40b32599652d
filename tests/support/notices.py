"""Notices as Alipay sends them: one base payment, changed by what a test is about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from infra.local import alipay_sign

APP_ID = "2021000100000001"
SELLER_ID = "2088000000000001"
PAID_AT = datetime(2026, 10, 24, 2, 0, 5, tzinfo=UTC)


@dataclass(frozen=True)
class NoticeSigner:
    """A sender of notices with a key of its own, one app and one payee."""

    key: RSAPrivateKey = field(default_factory=alipay_sign.new_key)
    app_id: str = APP_ID
    seller_id: str = SELLER_ID

    def base(self, **changes: str | None) -> dict[str, str]:
        """Word a payment of 9.90 for order O1; `changes` replace, add, or drop (None)."""
        notice = alipay_sign.payment_notice(
            self.app_id,
            self.seller_id,
            "O1",
            "T1",
            Decimal("9.90"),
            notify_id="N1",
            paid_at=PAID_AT,
        )
        return {name: value for name, value in (notice | changes).items() if value is not None}

    def encode(
        self,
        params: Mapping[str, str],
        charset: str = "utf-8",
        *,
        mangle: tuple[bytes, bytes] | None = None,
    ) -> bytes:
        """Sign and encode; `mangle` then replaces old by new in bytes that hold old once."""
        body = alipay_sign.form_body(params, self.key, charset)
        if mangle is None:
            return body
        old, new = mangle
        assert body.count(old) == 1, f"{old!r} must be in the body once"
        return body.replace(old, new)

    def body(self, **changes: str | None) -> bytes:
        """Sign and encode the base payment with changes."""
        return self.encode(self.base(**changes))
