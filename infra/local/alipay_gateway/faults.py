"""What goes wrong on purpose: rules that a test sets, and accidents drawn from a seed.

A rule is about one method of the gateway, or about "notice"; about one out_trade_no or any; and
holds for so many times. The accidents of a method are drawn in the order of its calls: one seed
gives the same accidents to the first, second … call of each method.
"""

import random
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

NOTICE = "notice"
QUERY = "alipay.trade.query"
REFUND = "alipay.trade.refund"


class Action(StrEnum):
    LOSE_RESPONSE = "lose_response"  # do it, and drop the connection
    DELAY = "delay"  # do it, and answer (or send the notice) so many seconds later
    HOLD = "hold"  # do it, and answer (or send the notice) once released
    UNKNOWN_BEFORE = "unknown_before"  # 20000, and do nothing
    UNKNOWN_AFTER = "unknown_after"  # do it, and answer 20000
    UNSIGNED = "unsigned"  # do it, and leave the signature out
    NO_BALANCE = "no_balance"  # refuse a refund: the seller has too little
    NEVER = "never"  # the notice is not sent
    TWICE = "twice"  # it is sent twice at once
    LATE = "late"  # it is sent after the next one about the same out_trade_no


OF_NOTICES = {Action.DELAY, Action.HOLD, Action.NEVER, Action.TWICE, Action.LATE}
OF_CALLS = {*Action} - {Action.NEVER, Action.TWICE, Action.LATE}


@dataclass(frozen=True, slots=True)
class Fault:
    action: Action
    seconds: float = 0


@dataclass(slots=True)
class Rule:
    id: int
    method: str
    action: Action
    out_trade_no: str | None
    count: int
    seconds: float


class Faults:
    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._rules: list[Rule] = []
        self._made = 0
        self._seed: int | None = None
        self._rates: dict[str, dict[Action, float]] = {}
        self._calls: Counter[str] = Counter()
        self._struck: Counter[str] = Counter()
        # Held answers wait for the next release; each release has a number.
        self._releases = 0
        self._holding = 0

    # --- set them --------------------------------------------------------------------------------

    def add(
        self,
        method: str,
        action: str,
        *,
        out_trade_no: str | None = None,
        count: int = 1,
        seconds: float = 0,
    ) -> int:
        """A rule from now on; its number. Raises ValueError where there is no such action."""
        rule = Rule(0, method, _known(method, action), out_trade_no, count, seconds)
        with self._lock:
            self._made += 1
            rule.id = self._made
            self._rules.append(rule)
        return rule.id

    def draw(self, seed: int, rates: Mapping[str, Mapping[str, float | str]]) -> None:
        """Accidents from a seed: `{"alipay.trade.refund": {"lose_response": 0.1}}`. Raises
        ValueError for what is no rate or does not happen to the method."""
        checked = {
            method: {_known(method, action): _rate(rate) for action, rate in actions.items()}
            for method, actions in rates.items()
        }
        if any(Action.HOLD in actions for actions in checked.values()):
            raise ValueError("hold is no accident: somebody has to release it")
        with self._lock:
            self._seed, self._rates = seed, checked
            self._calls.clear()

    def clear(self) -> None:
        """No rules, no accidents, and what is held goes on."""
        with self._lock:
            self._rules.clear()
            self._rates.clear()
        self.release()

    # --- meet them -------------------------------------------------------------------------------

    def take(self, method: str, out_trade_no: str | None) -> Fault | None:
        """What goes wrong with this call or notice, if anything."""
        with self._lock:
            fault = self._by_rule(method, out_trade_no) or self._by_accident(method)
            if fault is not None:
                self._struck[f"{method} {fault.action}"] += 1
            return fault

    def wait_for_release(self, seconds: float = 60) -> None:
        """Hold an answer back."""
        with self._lock:
            self._holding += 1
            self._lock.notify_all()
            before = self._releases
            self._lock.wait_for(lambda: self._releases > before, seconds)
            self._holding -= 1

    def wait_until_held(self, seconds: float = 10) -> bool:
        """For a test: until an answer is being held back."""
        with self._lock:
            return self._lock.wait_for(lambda: self._holding > 0, seconds)

    def release(self) -> int:
        """Let everything go that is held; how many answers that were."""
        with self._lock:
            self._releases += 1
            self._lock.notify_all()
            return self._holding

    def report(self) -> dict[str, Any]:
        """The rules that are left, what has struck so far, and how many answers are held."""
        with self._lock:
            return {
                "rules": [asdict(rule) for rule in self._rules],
                "seed": self._seed,
                "struck": dict(self._struck),
                "holding": self._holding,
            }

    def _by_rule(self, method: str, out_trade_no: str | None) -> Fault | None:
        for rule in self._rules:
            if rule.method == method and rule.out_trade_no in {None, out_trade_no}:
                rule.count -= 1
                if rule.count == 0:
                    self._rules.remove(rule)
                return Fault(rule.action, rule.seconds)
        return None

    def _by_accident(self, method: str) -> Fault | None:
        rates = self._rates.get(method)
        if rates is None:
            return None
        self._calls[method] += 1
        drawn = random.Random(f"{self._seed}/{method}/{self._calls[method]}")  # noqa: S311
        at = drawn.random()
        for action, rate in rates.items():
            if at < rate:
                # An accident is short: nobody is there to end it.
                return Fault(action, drawn.random())
            at -= rate
        return None


def _rate(given: float | str) -> float:
    rate = float(given)
    if not 0 <= rate <= 1:
        raise ValueError(f"{given} is no rate")
    return rate


def _known(method: str, action: str) -> Action:
    known = Action(action)
    fitting = OF_NOTICES if method == NOTICE else OF_CALLS
    if known not in fitting or (known is Action.NO_BALANCE and method != REFUND):
        raise ValueError(f"{action} does not happen to {method}")
    return known
