"""A life of the system, step by step, each a line of words that can be read and done again:

    place 42 a 1001:2         start 42 1 page         pay 1         tell PAID:t1
    deliver confirm 1-1       go 61                   sweep         rest

Each step asks the auditor what must come of it, does it, and compares: what was answered, and then
everything that is so.
"""

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Final

from infra.local import invariants
from infra.local.alipay_gateway.shapes import Refused
from tests.proof.model.acts import Acts
from tests.proof.model.view import told_by

REST_MAX: Final = 40
# All but the last hold while messages are in flight, too. In one round trip: whether any is broken.
_IS_ANY_BROKEN: Final = "SELECT " + " OR ".join(
    f"EXISTS ({invariant.query})" for invariant in invariants.INVARIANTS[:-1]
)


class Life(Acts):
    """Steps in words, and what is so after each."""

    def do(self, step: str) -> None:
        self.steps.append(step)
        verb, *words = step.split()
        came_to = getattr(self, f"_{verb}")(*words)
        self.seen[f"{verb} {came_to}"] += 1
        self.check()

    def check(self) -> None:
        expected, found = told_by(self.auditor), self.observer.look()
        differing = [
            f"{name}: the auditor has {expected[name]}, there is {found[name]}"
            for name in expected
            if expected[name] != found[name]
        ]
        assert not differing, "\n".join(differing)
        database = self.still.world.database
        assert not database.value(_IS_ANY_BROKEN), invariants.broken(database.rows)

    # --- what happens by itself ------------------------------------------------------------------

    def _tell(self, notice: str) -> str:
        before = self.auditor.notices[notice].state
        expected = self.auditor.tell(notice)
        assert self.still.tell(self.observer.notice(notice)) == expected
        after = self.auditor.notices[notice].state
        return f"{notice.partition(':')[0]} {before} {after}"

    def _deliver(self, queue: str, subject: str, again: str = "") -> str:
        message = self.observer.message(queue, subject)
        if queue == "refund":
            is_due = subject in self.observer.due().refunds
            came_to = self.auditor.deliver_refund(subject, is_due=is_due)
        else:
            came_to = getattr(self.auditor, f"deliver_{queue}")(subject)
        if not again:
            self.auditor.waiting[queue, subject] -= 1
        self.still.world.wire.hand_over(message, again=bool(again))
        return f"{queue} {came_to}"

    def _relay(self) -> str:
        expected = self.auditor.relay()
        assert self.still.world.relay()["sent"] == expected
        return "some" if expected else "none"

    def _sweep(self) -> str:
        before = Counter(order.status for order in self.auditor.orders.values())
        self.auditor.sweep(self.observer.due())
        swept = self.still.world.sweep()
        assert swept["failed"] == []
        after = Counter(order.status for order in self.auditor.orders.values())
        return " ".join(sorted((after - before).keys()) or ["nothing"])

    def _go(self, seconds: str) -> str:
        self.auditor.now += int(seconds)
        self.auditor.close_due_trades()
        self.still.go(int(seconds))
        return seconds

    # --- what goes wrong -------------------------------------------------------------------------

    def _fault(self, method: str, number: str, action: str) -> str:
        self.auditor.faults[method, number].append(action)
        faults = self.still.world.alipay.faults
        faults.add(method, action, out_trade_no=self.observer.number(number))
        return f"{method} {action}"

    def _queues(self, state: str) -> str:
        self.auditor.is_down = self.still.world.wire.is_down = state == "down"
        return state

    # --- the end ---------------------------------------------------------------------------------

    def _rest(self) -> str:
        """Nobody does anything any more, nothing goes wrong, and hours pass: everything ends."""
        self._queues("up")
        self.auditor.faults.clear()
        self.still.world.alipay.faults.clear()
        for _ in range(REST_MAX):
            self._an_hour()
            if not self.auditor.open_ends():
                break
        assert self.auditor.open_ends() == []
        assert invariants.broken(self.still.world.database.rows) == {}
        return "over"

    def _an_hour(self) -> None:
        hour = int(timedelta(hours=1).total_seconds())
        for step in (f"_go {hour}", "_sweep", "_go 15", "_relay"):
            self._quietly(step)
        for queue, subject in list((+self.auditor.waiting).elements()):
            self._quietly(f"_deliver {queue} {subject}")
        for name, notice in list(self.auditor.notices.items()):
            if notice.state is None:
                self._quietly(f"_tell {name}")

    def _quietly(self, step: str) -> None:
        verb, *words = step.split()
        with suppress(Refused):
            getattr(self, verb)(*words)
        self.check()
