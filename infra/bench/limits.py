"""What the engine itself can do: one row changed by statements that commit themselves, and the
bare merged transaction, many holds at once with nothing of an order."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final

from infra.bench import seed_tables
from infra.bench.crowd import Client, Outcome, Seat
from infra.bench.seeds import ADD_ITEM, HELD, HOLD
from infra.bench.way import Session, Verdict, WentWrong, ask, peer_session
from infra.measuring.ground import Ground

INSERT_HELD: Final = (
    "INSERT INTO ims_reservation (reservation_id, order_id, request_hash, state, expires_at) "
    "VALUES (%s, %s, %s, %s, %s)"
)
LOCKED: Final = "SELECT SUM(lock_stock) FROM pms_sku_stock"
HASH: Final = "0" * 64
UNTIL: Final = "2030-01-01"


@dataclass(frozen=True)
class OneUpdate:
    skus: int = 1

    name: ClassVar[str] = "limit: one update that commits itself"
    may_lose: ClassVar[bool] = False

    def prepare(self, ground: Ground) -> None:
        seed_tables.make_stock(ground, self.skus)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        numbers = count(seat.number + 1, seat.clients)
        with peer_session() as session, session.cursor() as cursor:
            session.autocommit(True)
            yield Client(lambda: cursor.execute(HOLD, (1, 1 + next(numbers) % self.skus, 1)))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        [locked] = ask(ground, LOCKED)
        return Verdict(int(locked), abs(int(locked) - outcome.done))


@dataclass(frozen=True)
class BareMerge:
    """``batch`` holds in one transaction: reservations, items, an update a SKU, commit."""

    batch: int
    skus: int = 1

    name: ClassVar[str] = "limit: the bare merged transaction"
    may_lose: ClassVar[bool] = False

    def prepare(self, ground: Ground) -> None:
        seed_tables.make_stock(ground, self.skus)

    @contextmanager
    def client(self, seat: Seat) -> Iterator[Client]:
        numbers = count(seat.number, seat.clients)
        with peer_session() as session:
            yield Client(lambda: self._merge(session, next(numbers) * self.batch))

    def judge(self, ground: Ground, outcome: Outcome) -> Verdict:
        reservations, held, locked, over = map(int, ask(ground, HELD))
        lost = abs(locked - held) + abs(held - outcome.done) + over
        return Verdict(reservations, lost)

    def _merge(self, session: Session, first: int) -> int:
        orders = [(n, 1 + n % self.skus) for n in range(first + 1, first + self.batch + 1)]
        taken: dict[int, int] = {}
        for _, sku_id in orders:
            taken[sku_id] = taken.get(sku_id, 0) + 1
        with session.cursor() as cursor:
            # The driver joins rows only where all of their values are arguments.
            rows = [(f"r{n}", n, HASH, "RESERVED", UNTIL) for n, _ in orders]
            cursor.executemany(INSERT_HELD, rows)
            cursor.executemany(ADD_ITEM, [(f"r{n}", sku_id, 1) for n, sku_id in orders])
            for sku_id, quantity in sorted(taken.items()):
                if cursor.execute(HOLD, (quantity, sku_id, quantity)) != 1:
                    raise WentWrong("there is stock for every order")
        session.commit()
        return self.batch
