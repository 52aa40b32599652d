"""Whose turn it is to decide for a hot SKU: one transaction at a time."""

import random
import time
from typing import Final

from lockstep.db.errors import DuplicateKey, LockNotAvailable
from lockstep.db.transaction import Tx
from lockstep.errors import TryAgain
from lockstep.orders import turn_store

# Whoever has the turn decides for everybody, so there is little to gain from waiting longer.
PATIENCE_SECONDS: Final = 1
_PAUSE_MS_MAX: Final = 20
_CHANCE: Final = random.SystemRandom()


class TurnTaken(TryAgain):
    """Somebody else decides for this SKU, and will look at every order that waits for it."""


def take_turn(tx: Tx, sku_id: int) -> None:
    """Decide alone for ``sku_id`` until this transaction ends. Lock order: before any order.

    It is asked for again and again, never waited for: the engine's patience with locks cannot be
    changed behind a proxy without pinning the connection. Raises TurnTaken after a second.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not _took(tx, sku_id):
        if time.monotonic() >= deadline:
            raise TurnTaken(f"the turn of SKU {sku_id} is taken")
        time.sleep(_CHANCE.uniform(1, _PAUSE_MS_MAX) / 1000)


def take_turn_of(tx: Tx, order_id: int) -> None:
    """The same for the turn that an order stands at, if it stands at one."""
    for place in turn_store.read_places(tx, [order_id]):
        if place.sku_id is not None:
            take_turn(tx, place.sku_id)


def _took(tx: Tx, sku_id: int) -> bool:
    try:
        if not turn_store.lock_turn(tx, sku_id):
            turn_store.insert_turn(tx, sku_id)
    except (LockNotAvailable, DuplicateKey):
        return False
    return True
