"""Looking first: the stock is read, decided on, and written back, in one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final

from infra.bench import seed_tables
from infra.bench.crowd import Client, Outcome, Seat
from infra.bench.seeds import ADD_ITEM
from infra.bench.way import PLENTY, Session, Verdict, ask, peer_session
from infra.measuring.ground import Ground

LOOK: Final = "SELECT stock, lock_stock FROM pms_sku_stock WHERE id = %s"
WRITE: Final = "UPDATE pms_sku_stock SET lock_stock = %s WHERE id = %s"
SOLD: Final = """
SELECT (SELECT COALESCE(SUM(quantity), 0) FROM ims_reservation_item),
       (SELECT SUM(lock_stock) FROM pms_sku_stock),
       (SELECT COALESCE(SUM(GREATEST(i.sold - s.stock, 0)), 0)
        FROM pms_sku_stock AS s
        JOIN (SELECT sku_id, SUM(quantity) AS sold
              FROM ims_reservation_item GROUP BY sku_id) AS i ON i.sku_id = s.id)
"""


@dataclass(frozen=True)
class CheckThenUpdate:
    skus: int = 1
    stock: int = PLENTY

    name: ClassVar[str] = "check, then update"
    may_lose: ClassVar[bool] = True

    def prepare(self, ground: Ground) -> None:
        seed_tables.make_stock(ground, self.skus, self.stock)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        numbers = count(seat.number + 1, seat.clients)
        with peer_session() as session:
            yield Client(lambda: self._take(session, next(numbers)))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        """What was sold and is in no counter, or was not there to be sold: whichever is more."""
        sold, locked, over = map(int, ask(ground, SOLD))
        broken = () if sold == outcome.done else (f"{sold} items for {outcome.done} orders",)
        return Verdict(sold, max(sold - locked, over), broken)

    def _take(self, session: Session, n: int) -> int | None:
        sku_id = 1 + n % self.skus
        with session.cursor() as cursor:
            cursor.execute(LOOK, (sku_id,))
            [stock, locked] = cursor.fetchone() or ()
            if stock - locked < 1:
                session.rollback()
                return None
            cursor.execute(WRITE, (locked + 1, sku_id))
            cursor.execute(ADD_ITEM, (f"r{n}", sku_id, 1))
        session.commit()
        return 1
