"""One history: arrivals delivered one after the other to a world that stands where its life began.

After each delivery nothing that was acknowledged may be undone, and stock is exact. When all have
come, whatever was staged or told meanwhile and did not arrive since arrives, and what failed comes
again; then the rows are compared with those of the natural order, once before any time has passed,
so that no sweep can have mended anything, and once at rest.

Left out of the comparison is what tells of the order itself: which early commands were refused, and
in whose name a command was staged; whether a refund of ours was told of before our own call; and
when and under which id Alipay told of one that this order had it make anew.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from infra.local.alipay_gateway.shapes import Trade
from tests.proof.arrivals.kinds import Arrival, Told, commands_sent, notices_sent
from tests.proof.arrivals.lives import Life
from tests.proof.arrivals.snapshots import Snapshot, Snapshots
from tests.proof.world import World
from tests.support import histories
from tests.support.histories import DROPPED, Rows, retold
from tests.support.money_storm import ROUND

# An SQS message comes five times at most; nothing here needs more.
ROUNDS_MAX: Final = 5
_LEFT_OUT: Final = {"message_refusal"}
_APART: Final = DROPPED | {
    *("correlation_id", "called_at"),
    *("notify_id", "gmt_refund", "gmt_close"),
}


@dataclass(frozen=True)
class Moment:
    """Where a history has come to: ``pending`` was staged or told in it and has not arrived since,
    or failed; ``kept`` was acknowledged."""

    snapshot: Snapshot
    pending: Mapping[str, Arrival]
    kept: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Begun:
    """A life at its first message. ``before`` is the last row of the outbox that is not its own."""

    life: Life
    world: World
    snapshots: Snapshots
    start: Moment
    arrivals: Mapping[str, Arrival]
    before: int


@dataclass(frozen=True)
class Left:
    """What a history left: rows as text, and what went back at Alipay's."""

    rows: Mapping[str, Any]
    refunds: Mapping[str, Any]


def begin(world: World, snapshots: Snapshots, life: Life) -> Begun:
    """Live ``life`` once, to see what it sends; then let the world stand at its beginning."""
    bystander = world.place("bystander", member=7)
    assert bystander.status == 201, bystander.text
    before = world.database.value("SELECT COALESCE(MAX(id), 0) FROM outbox")
    life.begin(world)
    start = snapshots.take()
    acts = {act.name: act for act in life.acts}
    for act in life.acts:
        act.arrive(world)
    while world.deliver() or world.tell():  # a queue is faster than Alipay
        pass
    lived = snapshots.take()
    sent = commands_sent(world, lived.rows, before)
    told = notices_sent(world, world.alipay.notices)
    arrivals = {
        name: one for name, one in {**acts, **sent, **told}.items() if name not in life.lost
    }
    start = replace(start, messages=(), letters=())
    return Begun(life, world, snapshots, Moment(start, {}), arrivals, before)


def go_on(begun: Begun, moment: Moment, arrival: Arrival) -> Moment:
    """Let the world stand at ``moment`` and deliver ``arrival``. Raises where a promise broke."""
    begun.snapshots.restore(moment.snapshot)
    begun.world.clock.ahead += ROUND  # or Alipay would refuse a second refund for coming too soon
    is_kept = arrival.arrive(begun.world)
    snapshot = begun.snapshots.take()
    pending = {name: one for name, one in moment.pending.items() if name != arrival.name}
    pending |= _newly_sent(begun, moment, snapshot, arrival)
    if not is_kept:
        pending[arrival.name] = arrival
    kept = moment.kept | {arrival.name} if is_kept else moment.kept
    after = Moment(replace(snapshot, messages=(), letters=()), pending, kept)
    _check(begun, after, arrival.name)
    return after


def _newly_sent(
    begun: Begun, moment: Moment, snapshot: Snapshot, delivered: Arrival
) -> dict[str, Arrival]:
    """What a delivery staged, and what Alipay has to tell since: not what it was just heard to
    tell."""
    youngest = max((row["id"] for row in moment.snapshot.rows["outbox"]), default=begun.before)
    encode = begun.world.alipay.service.post.encode
    told = notices_sent(begun.world, [encode(one.notice.words) for one in snapshot.letters])
    new: dict[str, Arrival] = {**commands_sent(begun.world, snapshot.rows, youngest), **told}
    if isinstance(delivered, Told):
        new.pop(delivered.name, None)
    return {name: begun.arrivals.get(name, one) for name, one in new.items()}


def _check(begun: Begun, moment: Moment, came: str) -> None:
    rows = moment.snapshot.rows
    for name in moment.kept & begun.arrivals.keys():
        why = begun.arrivals[name].broken(rows, just_now=name == came)
        assert why is None, f"{name}: {why}"
    _check_stock(rows)


def _check_stock(rows: Rows) -> None:
    held, sold = _quantities(rows, "RESERVED"), _quantities(rows, "CONFIRMED")
    came: dict[int, int] = defaultdict(int)
    for entry in rows["ims_stock_entry"]:
        came[entry["sku_id"]] += entry["delta"]
    for sku in rows["ims_sku_stock"]:
        number = sku["sku_id"]
        exact = (came[number] - sold[number], held[number])
        assert (sku["stock"], sku["lock_stock"]) == exact, f"stock of SKU {number}"


def _quantities(rows: Rows, state: str) -> dict[int, int]:
    in_state = {row["reservation_id"] for row in rows["ims_reservation"] if row["state"] == state}
    sums: dict[int, int] = defaultdict(int)
    for item in rows["ims_reservation_item"]:
        if item["reservation_id"] in in_state:
            sums[item["sku_id"]] += item["quantity"]
    return sums


# --- the end -------------------------------------------------------------------------------------


def settle(begun: Begun, moment: Moment) -> Moment:
    """No time passes: what is pending arrives, and what comes of that."""
    for _ in range(ROUNDS_MAX):
        for name in sorted(moment.pending):
            moment = go_on(begun, moment, moment.pending[name])
        if not moment.pending:
            return moment
    raise AssertionError(f"comes again and again: {sorted(moment.pending)}")


def ends(begun: Begun, moment: Moment) -> tuple[Left, Left]:
    """What is left before any time has passed, and at rest."""
    settled = settle(begun, moment)
    begun.snapshots.restore(settled.snapshot)
    begun.world.come_to_rest()
    return _left(begun, settled.snapshot), _left(begun, begun.snapshots.take())


def _left(begun: Begun, snapshot: Snapshot) -> Left:
    rows = {table: found for table, found in snapshot.rows.items() if table not in _LEFT_OUT}
    refunds = {trade.trade_no: sorted(refunds_of(trade)) for trade in snapshot.trades.values()}
    return Left(retold(rows, _APART | begun.life.apart), refunds)


def differences(natural: Left, found: Left) -> list[str]:
    """Which lines are missing (-) and which are there instead (+)."""
    lines = histories.differences(natural.rows, found.rows)
    if found.refunds != natural.refunds:
        lines.append(f"refunds at Alipay's: {natural.refunds}, not {found.refunds}")
    return lines


def refunds_of(trade: Trade) -> tuple[tuple[str, Decimal], ...]:
    """By whatever name and of how much, in the order in which they were done."""
    return tuple((refund.out_request_no, refund.amount) for refund in trade.refunds)
