"""What anybody may see of a SKU."""

from functools import partial

from lockstep.db.transaction import read
from lockstep.inventory import store
from lockstep.inventory.model import Sku


def find(sku_id: int) -> Sku | None:
    """The SKU with its counters as they are now, or None. The next moment they may differ."""
    return read(partial(store.read_skus, sku_ids=(sku_id,))).get(sku_id)
