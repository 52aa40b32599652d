"""Links to bills: for a day that is over, good for half a minute."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from infra.local.alipay_gateway import bill
from infra.local.alipay_gateway.books import Books
from infra.local.alipay_gateway.shapes import Clock, Refused
from infra.local.alipay_sign import BEIJING

LINK_LIFE = timedelta(seconds=30)


@dataclass
class Bills:
    """`is_today_ready`: do not make a test wait for tomorrow."""

    books: Books
    seller_id: str
    base_url: str
    clock: Clock
    is_today_ready: bool = False
    _links: dict[str, tuple[datetime, date]] = field(default_factory=dict)

    def link(self, day: date) -> Mapping[str, object]:
        """The fields of the gateway's answer. Raises Refused where there is no bill yet."""
        now = self.clock()
        today = now.astimezone(BEIJING).date()
        if day > today or (day == today and not self.is_today_ready):
            raise Refused("BILL_NOT_EXIST")
        name = secrets.token_urlsafe(16)
        self._links[name] = (now + LINK_LIFE, day)
        fields = {"bill_download_url": f"{self.base_url}/bill/{name}"}
        if not bill.rows_of(self.books.trades(), day):
            fields["bill_file_code"] = "EMPTY_DATA_WITH_BILL_FILE"
        return fields

    def fetch(self, name: str) -> bytes | None:
        """The zip, while its link lives."""
        until, day = self._links.get(name, (None, None))
        if until is None or day is None or self.clock() >= until:
            return None
        rows = bill.rows_of(self.books.trades(), day)
        return bill.archive(rows, day, self.seller_id, self.clock())
