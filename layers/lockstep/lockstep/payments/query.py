"""What members may see of an order's payments."""

from functools import partial

from lockstep.db.transaction import read
from lockstep.payments import read_store
from lockstep.payments.model import PaymentView


def payments_of(order_id: int) -> list[PaymentView]:
    """The order's payments, in order of arrival."""
    return read(partial(read_store.read_payments, order_id=order_id))
