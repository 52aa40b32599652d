"""Accept a verified notice of the channel: record it once, and let it do what its order allows.

    inbox -> order -> attempt -> payment -> the order's transition -> outbox: one transaction

A notice never touches a stock row. What our own books cannot decide is stored QUERY_DUE: only the
gateway can say. Notices may come in any order: one about a payment that is not known yet waits in
the inbox and is decided together with that payment.
"""

import time
from functools import partial
from typing import Final

from lockstep.alipay.model import Notice, NoticeKind, TradeNotice
from lockstep.db.errors import Contended
from lockstep.db.transaction import RollBack, Tx, in_transaction
from lockstep.payments import store
from lockstep.payments.decide import decide
from lockstep.payments.model import PROVIDER, NoticeState, Result
from lockstep.payments.settle import confirm_again

# Alipay waits for some 3 s. No statement starts after this; one may still wait 1 s for a lock, as
# the notify function sets it. The send after the commit comes on top: should it make us late, the
# next delivery is a replay.
WITHIN_SECONDS: Final = 1.9


def accept(notice: Notice) -> Result:
    """Record ``notice`` and act on it, once however often and in whatever order it is delivered.

    Lock order: inbox, order, attempt, payment. Repeat: REPLAYED, except that a notice whose stored
    state is not final is decided again. Raises TryAgain when the time is over: nothing is stored
    then, and the channel sends it again.
    """
    deadline = time.monotonic() + WITHIN_SECONDS
    result = in_transaction(partial(_first_delivery, notice=notice), within_seconds=WITHIN_SECONDS)
    if result is None:
        result = in_transaction(
            partial(_later_delivery, notice=notice), within_seconds=deadline - time.monotonic()
        )
    return result


def _first_delivery(tx: Tx, notice: Notice) -> Result | None:
    notice_id = store.insert_notice(tx, PROVIDER, notice)
    if notice_id is not None:
        return _decide(tx, notice, notice_id, NoticeState.DONE)
    if store.read_notice_state(tx, PROVIDER, notice) is NoticeState.DONE:
        return _replay(tx, notice)
    # Deciding it again needs an exclusive lock, which this transaction's shared one must not grow
    # into.
    raise RollBack(None)


def _later_delivery(tx: Tx, notice: Notice) -> Result:
    locked = store.lock_notice(tx, PROVIDER, notice)
    if locked is None:
        raise Contended("the stored notice is gone")
    notice_id, state = locked
    return (
        _replay(tx, notice) if state is NoticeState.DONE else _decide(tx, notice, notice_id, state)
    )


def _replay(tx: Tx, notice: Notice) -> Result:
    if notice.kind is NoticeKind.PAYMENT and notice.trade_no is not None:
        confirm_again(tx, notice.trade_no)
    return Result.REPLAYED


def _decide(tx: Tx, notice: Notice, notice_id: int, stored: NoticeState) -> Result:
    if not isinstance(notice, TradeNotice):
        return Result.NOTED
    return decide(tx, notice, notice_id, stored)
