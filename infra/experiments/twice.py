"""Paid and closed at once: two sessions meet at every order, one to pay it, one to close it."""

from collections.abc import Callable, Sequence
from typing import Final

from infra.experiments import orders
from infra.experiments.threads import in_rounds
from infra.measuring.ground import Ground, Session
from infra.measuring.table import Table, Way
from lockstep.orders.model import Order

SKU: Final = 910_001
PLAIN: Final = (
    "DROP TABLE IF EXISTS plain_order",
    "CREATE TABLE plain_order (id BIGINT PRIMARY KEY, status VARCHAR(8) NOT NULL, "
    "paid_at DATETIME(3), closed_at DATETIME(3))",
)
FILL: Final = "INSERT INTO plain_order (id, status) VALUES (%s, 'CREATED')"
LOOK: Final = "SELECT status FROM plain_order WHERE id = %s"
WRITE: Final = {
    "PAID": "UPDATE plain_order SET status = 'PAID', paid_at = NOW(3) WHERE id = %s",
    "CLOSED": "UPDATE plain_order SET status = 'CLOSED', closed_at = NOW(3) WHERE id = %s",
}
BOTH: Final = "SELECT COUNT(*) FROM plain_order WHERE paid_at IS NOT NULL AND closed_at IS NOT NULL"
BOTH_OF_OURS: Final = """
SELECT COUNT(*)
FROM oms_order AS o
WHERE (o.paid_at IS NOT NULL AND o.close_reason IS NOT NULL)
   OR (SELECT COUNT(*)
       FROM oms_order_event AS e
       WHERE e.order_id = o.id
         AND e.to_status IN ('PAID', 'CLOSED')) <> 1
"""


def measure(ground: Ground, rounds: int) -> Table:
    naive = _on_plain(ground, rounds, _looking_first)
    guarded = _on_plain(ground, rounds, _guarded)
    ours = _on_ours(ground, rounds)
    return Table(
        f"Paid and closed at once: {rounds:,} orders, two sessions that meet at each",
        ("paid", "closed", "both"),
        (
            Way("look, then write", naive, (992, 998, 990)),
            Way("guarded update", guarded, (523, 477, 0)),
            Way("ours: payment notice against cancel", ours),
        ),
        f"Looking first, {naive[2]:,} of {rounds:,} orders were both paid and closed; with the "
        f"state in the update's condition {guarded[2]}, and of ours {ours[2]}.",
    )


def _on_plain(
    ground: Ground, rounds: int, move: Callable[[Session, int, str], bool]
) -> Sequence[int]:
    numbers = range(1, rounds + 1)
    ground.execute(*PLAIN)
    ground.fill(FILL, [(number,) for number in numbers])
    paid, closed = in_rounds(
        ground,
        numbers,
        lambda session, number: move(session, number, "PAID"),
        lambda session, number: move(session, number, "CLOSED"),
    )
    return sum(paid), sum(closed), ground.row(BOTH)[0]


def _looking_first(session: Session, number: int, status: str) -> bool:
    with session.cursor() as cursor:
        cursor.execute(LOOK, (number,))
        if cursor.fetchone() != ("CREATED",):
            return False
        cursor.execute(WRITE[status], (number,))
        return True


def _guarded(session: Session, number: int, status: str) -> bool:
    with session.cursor() as cursor:
        return cursor.execute(f"{WRITE[status]} AND status = 'CREATED'", (number,)) == 1


def _on_ours(ground: Ground, rounds: int) -> Sequence[int]:
    orders.add_skus(ground, SKU, 1, stock=rounds)
    placed = [_placed(member) for member in range(1, rounds + 1)]
    paid, closed = in_rounds(
        ground, placed, lambda _, order: orders.pay(order), lambda _, order: orders.close(order)
    )
    return sum(paid), sum(closed), ground.row(BOTH_OF_OURS)[0]


def _placed(member_id: int) -> Order:
    order = orders.buy(SKU, member_id, "twice")
    if order is None:
        raise RuntimeError("there is stock for every order of this experiment")
    return order
