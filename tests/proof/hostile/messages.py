"""Messages that nobody here has sent, to each queue's function, among good ones."""

import base64
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from infra.local import invariants
from tests.proof.hostile.shop import CLOSED, MEGABYTE, PAID
from tests.proof.world import World
from tests.support.batches import a_record, batch, failed_ids
from tests.support.lambda_context import Context
from tests.support.wire import CONSUMERS

MESSAGES: Final[Mapping[str, str]] = {
    "nothing": "",
    "null": "null",
    "a list": "[]",
    "a string": '"x"',
    "no version": '{"type":"TYPE","reservation_id":"OPEN1-1","order_id":1,"refund_id":1}',
    "1 MB": '{"v":1,"type":"TYPE","x":"' + "x" * MEGABYTE,
    "brackets": "[" * 200_000,
    "NUL": "\x00",
    "half a surrogate pair": '{"v":1,"type":"\ud800"}',
    "base64": base64.b64encode(b'{"v":1}').decode(),
    **{
        f"version {version}": f'{{"v":{version},"type":"TYPE","reservation_id":"OPEN1-1",'
        '"order_id":1,"refund_id":1}'
        for version in ("0", "2", "1.0", "true", '"1"', "null", "9" * 5_000)
    },
    **{
        f"an id of {number[:8]}": f'{{"v":1,"type":"TYPE","reservation_id":"OPEN1-1",'
        f'"order_id":{number},"refund_id":{number}}}'
        for number in ("0", "-1", "1.5", '"1"', "true", "null", "[1]", "1e0", "9" * 5_000)
    },
    "another type": '{"v":1,"type":"type","reservation_id":"OPEN1-1","order_id":1,"refund_id":1}',
    "a long correlation": '{"v":1,"type":"TYPE","reservation_id":"OPEN1-1","order_id":1,'
    f'"refund_id":1,"correlation_id":"{"c" * 129}"}}',
}
_TYPES: Final = {
    "reserve": "ReserveStock",
    "confirm": "ConfirmStock",
    "release": "ReleaseStock",
    "refund": "RefundPayment",
}
_DONE_WITH: Final = {"reserve": PAID, "confirm": PAID, "release": CLOSED, "refund": PAID}


def messages() -> dict[str, Callable[[World], object]]:
    return {
        f"{queue}, {name}": partial(_try_message, queue, body.replace("TYPE", kind))
        for queue, kind in _TYPES.items()
        for name, body in MESSAGES.items()
    }


def _try_message(queue: str, body: str, world: World) -> None:
    """It comes again, and ends as a dead letter; those before and behind it are done with."""
    good = _good_message(queue, world)
    records = [
        a_record(name, text, group=name) for name, text in (("a", good), ("bad", body), ("c", good))
    ]
    del records[1]["attributes"]["MessageDeduplicationId"]
    answer = CONSUMERS[queue](batch(*records), Context(milliseconds=60_000))
    assert failed_ids(answer) == ["bad"]
    assert invariants.broken(world.database.rows) == {}


def _good_message(queue: str, world: World) -> str:
    """One that was carried out before: to do so again changes nothing."""
    order = world.database.one(
        "SELECT id, reservation_id FROM oms_order WHERE order_no = %s", (_DONE_WITH[queue],)
    )
    ids = {"reservation_id": order["reservation_id"], "order_id": order["id"]}
    return json.dumps(
        {"v": 1, "type": _TYPES[queue]} | ({"refund_id": 10**9} if queue == "refund" else ids)
    )
