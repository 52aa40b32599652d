"""The sold-out gate: nobody lines up for a hot SKU of which nothing is left.

Most who come to a flash sale come too late. They are told at once, from a plain read, and leave no
row, no message and no lock behind. The gate may only refuse: who it lets in may still find nothing
when the turn comes, and an order that waits already may still take what comes back.
"""

from collections.abc import Mapping

from lockstep.db.transaction import Reader
from lockstep.inventory.model import ShortLine, Sku
from lockstep.orders import read_store
from lockstep.orders.model import OutOfStock, PlaceOrder


def is_shut(skus: Mapping[int, Sku]) -> bool:
    """Whether nothing is left of some hot SKU, as ``skus`` were read. What is there but too little
    for an order is for its turn to say, since orders before it may leave something."""
    return any(sku.hot and sku.available <= 0 for sku in skus.values())


def shortage(reader: Reader, command: PlaceOrder, skus: Mapping[int, Sku]) -> OutOfStock | None:
    """Every line that is short as ``skus`` were read, hot or not; None if none is."""
    short = tuple(
        ShortLine(sku_id, wanted, skus[sku_id].available)
        for sku_id, wanted in command.lines.items()
        if sku_id in skus and skus[sku_id].available < wanted
    )
    if not short:
        return None
    own_orders = read_store.read_own_holds(
        reader, command.member_id, [line.sku_id for line in short]
    )
    return OutOfStock(short, own_orders)
