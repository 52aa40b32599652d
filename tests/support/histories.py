"""Two histories compared by what they left: every row, without what differs from run to run.

Ids and numbers become names in order of birth, times become "there" or "not there", random numbers
and hashes over ids go. Of the outbox it counts which commands there are: the same one twice is
harmless, since consumers decide by state, and a repeated payment notice stages its confirm again.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from operator import itemgetter
from typing import Any, Final

from tests.support.database import Database, Row

type Rows = Mapping[str, list[Row]]
type Told = Mapping[str, list[str]]

# How many tries or questions it took is no part of what came of them.
# told_amount: an answer that was lost tells no total.
DROPPED: Final = frozenset(
    {"id", "message_id", "order_no", "updated_at", "asks", "tries", "told_amount"}
)
_HASH_OVER_IDS: Final = {("ims_reservation", "request_hash"), ("oms_notice", "content_hash")}


def what_is_left(
    database: Database,
    dropped: Collection[str] = DROPPED,
    named: Mapping[str, str] | None = None,
) -> dict[str, list[str]]:
    """The rows of every table that has some, as text, in an order that does not depend on ids."""
    rows = database.dump([name for name in database.filled() if name != "oms_order_transition"])
    return retold(rows, dropped, named)


def retold(
    rows: Rows,
    dropped: Collection[str] = DROPPED,
    named: Mapping[str, str] | None = None,
) -> dict[str, list[str]]:
    """The text of rows, without the columns that are ``dropped``; ``named`` are numbers of others
    and their names."""
    orders, payments, refunds = (
        sorted(rows.get(table, ()), key=itemgetter("id"))
        for table in ("oms_order", "oms_order_payment", "oms_refund")
    )
    order_names = {row["id"]: f"order {n}" for n, row in enumerate(orders, 1)}
    names: dict[str, dict[Any, str]] = {
        "order_id": order_names,
        "applied_to": order_names,
        "payment_id": {row["id"]: f"payment {n}" for n, row in enumerate(payments, 1)},
        "refund_id": {row["id"]: f"refund {n}" for n, row in enumerate(refunds, 1)},
        # The line of a refund.
        "group_key": {str(row["id"]): f"payment {n}" for n, row in enumerate(payments, 1)},
    }
    numbers = {row["order_no"]: f"number {n}" for n, row in enumerate(orders, 1)}
    numbers |= {row["out_request_no"]: f"request {n}" for n, row in enumerate(refunds, 1)}
    numbers |= named or {}

    def told(table: str, column: str, value: Any) -> Any:
        if column.endswith("_at") or column.startswith("gmt_"):
            return value is not None
        if column == "payload":
            said = json.loads(value).items()
            return {name: told(table, name, part) for name, part in said if name not in dropped}
        if value in names.get(column, {}):
            return names[column][value]
        if isinstance(value, str):
            for number, name in numbers.items():
                value = value.replace(number, name)
        return value

    def line(table: str, row: Row) -> str:
        kept = {
            column: told(table, column, value)
            for column, value in row.items()
            if column not in dropped and (table, column) not in _HASH_OVER_IDS
        }
        return json.dumps(kept, sort_keys=True, default=str)

    lines = {table: sorted(line(table, row) for row in found) for table, found in rows.items()}
    lines["outbox"] = sorted(set(lines.get("outbox", ())))
    return lines


def differences(expected: Told, found: Told) -> list[str]:
    """The rows that only one of both has, as often as it has them more: missing (-) or more (+)."""
    lines = []
    for table in sorted(expected.keys() | found.keys()):
        ours, theirs = Counter(expected.get(table)), Counter(found.get(table))
        lines += [f"- {table}: {row}" for row in (ours - theirs).elements()]
        lines += [f"+ {table}: {row}" for row in (theirs - ours).elements()]
    return lines
