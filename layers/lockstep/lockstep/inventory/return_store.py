"""The SQL of goods that come back: RETURN entries, and the stock that they add."""

from collections.abc import Iterable, Sequence
from typing import Final

from lockstep.db.transaction import Reader, Tx

READ_RETURNED: Final = """
SELECT sku_id, CAST(SUM(delta) AS SIGNED) AS quantity
FROM ims_stock_entry
WHERE source IN %s
GROUP BY sku_id
"""


def read_returned(reader: Reader, sources: Iterable[str]) -> dict[int, int]:
    """How much of each SKU these entries brought back."""
    rows = reader.all(READ_RETURNED, (tuple(sources),))
    return {row["sku_id"]: row["quantity"] for row in rows}


INSERT_RETURNS: Final = """
INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason)
VALUES (%s, 'RETURN', %s, %s, %s, %s)
"""


def insert_returns(tx: Tx, rows: Sequence[tuple[int, int, str, str, str]]) -> None:
    """(sku_id, quantity, source, actor, reason) each. Raises DuplicateKey for a source that was
    booked before."""
    tx.insert_many(INSERT_RETURNS, rows)


ADD_STOCK: Final = """
UPDATE ims_sku_stock
SET stock = stock + %s
WHERE sku_id = %s
"""


def add_stock(tx: Tx, sku_id: int, quantity: int) -> bool:
    """False: there is no such SKU."""
    return tx.execute(ADD_STOCK, (quantity, sku_id)) == 1
