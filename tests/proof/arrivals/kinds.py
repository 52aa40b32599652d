"""What may arrive in an order's life: a queue's message, a notice of Alipay's, or a person's act.

Each is delivered to the real function as often as wanted, and has a name that is the same in every
run: `confirm-1` is the command on the order's first hold, `refund-2` that on the second trade,
`refunded-1-3.00` the notice that 3.00 have gone back of the first trade in all.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol
from urllib.parse import parse_qsl

from infra.local.alipay_gateway.shapes import Status, Trade
from tests.proof.arrivals.snapshots import Snapshot
from tests.proof.world import World
from tests.support import notices
from tests.support.batches import a_record, batch, failed_ids
from tests.support.database import Row
from tests.support.histories import Rows
from tests.support.lambda_context import Context
from tests.support.wire import CONSUMERS

# Of a refund that is not there (yet): a message may name one.
NOBODYS = 2**40
_SOLD_STATUSES = {"PAID", "SHIPPED", "FINISHED", "REFUNDING", "REFUNDED"}


class Arrival(Protocol):
    @property
    def name(self) -> str: ...

    def arrive(self, world: World) -> bool:
        """Deliver it; False where it must come again."""

    def was_sent(self, snapshot: Snapshot) -> bool:
        """Whether it could arrive now, had nobody sent it before its time."""

    def broken(self, rows: Rows, *, just_now: bool) -> str | None:
        """What does not hold of it, now that it was acknowledged: just now, or before."""


@dataclass(frozen=True)
class Act:
    """What a person does, or what comes back from elsewhere; often, if need be."""

    name: str
    do: Callable[[World], object]

    def arrive(self, world: World) -> bool:
        self.do(world)
        return True

    def was_sent(self, _: Snapshot) -> bool:
        return True

    def broken(self, _: Rows, *, just_now: bool) -> str | None:
        return None


@dataclass(frozen=True)
class Told:
    """A notice, in Alipay's bytes. A refund that is told of has happened: perhaps by our own call,
    whose answer was lost together with its caller."""

    name: str
    body: bytes
    refund: Decimal | None
    """What the refund that it names gave back."""

    @property
    def words(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode(), keep_blank_values=True))

    def arrive(self, world: World) -> bool:
        books = world.books
        trade = books.find(trade_no=self.words["trade_no"])
        if self.refund is not None and not self._is_in(trade):
            books.refund(trade, self.refund, self.words["out_biz_no"])
        return bool(notices.answer(notices.http_event(self.body))["body"] == "success")

    def was_sent(self, snapshot: Snapshot) -> bool:
        return self.refund is None or self._is_in(snapshot.trades[self.words["trade_no"]])

    def broken(self, rows: Rows, *, just_now: bool) -> str | None:
        is_known = any(row["notify_id"] == self.words["notify_id"] for row in rows["oms_notice"])
        return None if is_known else "answered success, and is not stored"

    def _is_in(self, trade: Trade) -> bool:
        return trade.refund(self.words["out_biz_no"]) is not None


@dataclass(frozen=True)
class Message:
    """A command on stock, as the outbox holds it."""

    name: str
    queue: str
    payload: str

    @property
    def command(self) -> dict[str, Any]:
        return dict(json.loads(self.payload))

    def arrive(self, _: World) -> bool:
        return _deliver(self.queue, self.command["reservation_id"], self.name, self.payload)

    def was_sent(self, snapshot: Snapshot) -> bool:
        of_it = (self.queue, self.command["reservation_id"])
        return any((row["queue"], row["group_key"]) == of_it for row in snapshot.rows["outbox"])

    def broken(self, rows: Rows, *, just_now: bool) -> str | None:
        """It is done, or it was refused by name, which nothing may be that a paid order needs."""
        [order] = [row for row in rows["oms_order"] if row["id"] == self.command["order_id"]] or [
            {}
        ]
        if self._is_done(rows, order):
            return None
        if all(row["message_id"] != self.name for row in rows["message_refusal"]):
            return "acknowledged, and neither done nor refused"
        is_needed = self.queue == "confirm" and order.get("status") in _SOLD_STATUSES
        return "a paid order's confirm was refused for good" if just_now and is_needed else None

    def _is_done(self, rows: Rows, order: Row) -> bool:
        state = self._state(rows)
        match self.queue:
            case "release":
                return state == "RELEASED"
            case "confirm":
                return state == "CONFIRMED"
            case _:
                return state is not None or order.get("status") != "RESERVING"

    def _state(self, rows: Rows) -> str | None:
        name = self.command["reservation_id"]
        holds = [row for row in rows["ims_reservation"] if row["reservation_id"] == name]
        return holds[0]["state"] if holds else None


@dataclass(frozen=True)
class RefundMessage:
    """The command to try a refund. Its row has another id in each history; the number stays."""

    name: str
    payload: str
    trade_no: str
    out_request_no: str

    def arrive(self, world: World) -> bool:
        rows = world.database.rows(
            "SELECT id, payment_id FROM oms_refund WHERE out_request_no = %s",
            (self.out_request_no,),
        )
        [row] = rows or [{"id": NOBODYS, "payment_id": NOBODYS}]
        payload = json.dumps(json.loads(self.payload) | {"refund_id": row["id"]})
        return _deliver("refund", str(row["payment_id"]), self.name, payload)

    def was_sent(self, snapshot: Snapshot) -> bool:
        numbers = {row["out_request_no"] for row in snapshot.rows["oms_refund"]}
        return self.out_request_no in numbers

    def broken(self, _: Rows, *, just_now: bool) -> str | None:
        return None


def _deliver(queue: str, group: str, dedup_id: str, body: str) -> bool:
    record = a_record(f"m-{dedup_id}", body, group=group, dedup_id=dedup_id)
    return not failed_ids(CONSUMERS[queue](batch(record), Context(milliseconds=60_000)))


# --- what was sent -------------------------------------------------------------------------------


def _each_once[A: Arrival](found: Iterable[A]) -> dict[str, A]:
    first: dict[str, A] = {}
    for one in found:
        first.setdefault(one.name, one)
    return first


def commands_sent(world: World, rows: Rows, after: int = 0) -> dict[str, Message | RefundMessage]:
    """What the outbox holds that is younger than ``after``, each command once."""
    staged = [row for row in rows["outbox"] if row["id"] > after]
    found = [_command(world, rows, row) for row in sorted(staged, key=lambda row: row["id"])]
    return _each_once(found)


def _command(world: World, rows: Rows, staged: Row) -> Message | RefundMessage:
    said = json.loads(staged["payload"])
    if staged["queue"] != "refund":
        n = said["reservation_id"].rpartition("-")[2]
        return Message(f"{staged['queue']}-{n}", staged["queue"], staged["payload"])
    [refund] = [row for row in rows["oms_refund"] if row["id"] == said["refund_id"]]
    [payment] = [row for row in rows["oms_order_payment"] if row["id"] == refund["payment_id"]]
    name = f"refund-{_nth_trade(world, payment['trade_no'])}"
    return RefundMessage(name, staged["payload"], payment["trade_no"], refund["out_request_no"])


def notices_sent(world: World, bodies: Sequence[bytes]) -> dict[str, Told]:
    return _each_once([_told(world, body) for body in bodies])


def _told(world: World, body: bytes) -> Told:
    words = dict(parse_qsl(body.decode(), keep_blank_values=True))
    trade = world.books.find(trade_no=words["trade_no"])
    nth = _nth_trade(world, trade.trade_no)
    number = words.get("out_biz_no")
    if number is not None:
        refund = trade.refund(number)
        amount = None if refund is None else refund.amount
        return Told(f"refunded-{nth}-{words['refund_fee']}", body, amount)
    kind = {
        Status.TRADE_SUCCESS: "paid",
        Status.TRADE_CLOSED: "closed",
        Status.TRADE_FINISHED: "finished",
        Status.WAIT_BUYER_PAY: "waiting",
    }[Status(words["trade_status"])]
    return Told(f"{kind}-{nth}", body, None)


def _nth_trade(world: World, trade_no: str) -> int:
    trades = [trade.trade_no for trade in world.books.trades()]
    return trades.index(trade_no) + 1
