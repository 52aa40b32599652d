"""SQS on a bad day, inside the process: it refuses, loses, repeats and reorders from a seed.

``Wire`` stands where the product's SQS client does. ``deliver`` hands messages to the real
functions; what they report as failed comes again, and after five times is a dead letter.
"""

import json
import random
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from functions import confirm_stock, refund_payment, release_stock, reserve_stock
from lockstep.messaging.contracts import QUEUE_OF
from tests.support.batches import a_record, batch, failed_ids
from tests.support.dying import outlive
from tests.support.lambda_context import Context

DELIVERIES_MAX: Final = 5
CONSUMERS: Final[Mapping[str, Callable[..., Any]]] = {
    "reserve": reserve_stock.handler,
    "confirm": confirm_stock.handler,
    "release": release_stock.handler,
    "refund": refund_payment.handler,
}


@dataclass
class Message:
    queue: str
    group: str
    dedup_id: str
    body: str
    deliveries: int = 0


class Wire:
    """``seen`` counts what became of the messages, ``confused`` are those with another's number;
    ``taken`` names all that the queues ever took.
    One that ``is_kind`` takes each once, one that ``is_down`` none. Threads may use it at once."""

    def __init__(self, seed: int) -> None:
        self.seen: Counter[str] = Counter()
        self.taken: set[str] = set()
        self._bodies: dict[str, Any] = {}
        self.is_kind = False
        self.is_down = False
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._messages: list[Message] = []

    def addresses(self) -> dict[str, str]:
        """The environment by which the product finds the queues here."""
        return {f"{queue.upper()}_QUEUE_URL": queue for queue in QUEUE_OF.values()}

    # --- what the product calls --------------------------------------------------------------

    def send_message(self, **sent: Any) -> None:
        if not self._accept(sent["QueueUrl"], sent):
            raise ConnectionError("the queue does not answer")

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803
        taken = [entry["Id"] for entry in Entries if self._accept(QueueUrl, entry)]
        return {"Successful": [{"Id": taken_id} for taken_id in taken]}

    def change_message_visibility_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803
        with self._lock:
            self.seen["hurried"] += len(Entries)
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def _accept(self, queue: str, sent: Mapping[str, str]) -> bool:
        with self._lock:
            fate = "refused" if self.is_down else "kept" if self.is_kind else self._fate()
            self.seen[fate] += 1
            if fate == "refused":
                return False
            message = Message(
                queue, sent["MessageGroupId"], sent["MessageDeduplicationId"], sent["MessageBody"]
            )
            self.taken.add(message.dedup_id)
            # SQS would drop the second of two that bear one number.
            body = json.loads(message.body)  # a relay writes it in another order
            self.seen["confused"] += self._bodies.setdefault(message.dedup_id, body) != body
            for _ in range({"lost": 0, "repeated": 2}.get(fate, 1)):
                # Somewhere among those that wait: late, or before what was sent earlier.
                self._messages.insert(self._random.randint(0, len(self._messages)), message)
            return True

    def _fate(self) -> str:
        return self._random.choices(["kept", "refused", "lost", "repeated"], weights=[80, 6, 6, 8])[
            0
        ]

    # --- what delivers -----------------------------------------------------------------------

    def waiting(self, queue: str | None = None) -> list[Message]:
        """The messages that wait, in one queue or in all."""
        with self._lock:
            return [message for message in self._messages if queue in {None, message.queue}]

    def lose(self) -> None:
        """Every message that waits: purged, or kept for too long."""
        self._messages.clear()

    def deliver(self, at_most: int = 10, only: str | None = None) -> int:
        """Give some messages, or those of one queue only, to their functions, one queue's in a
        batch; how many there were."""
        with self._lock:
            ready = [one for one in reversed(self._messages) if only in {None, one.queue}]
            some = ready[:at_most]
            for one in some:
                self._messages.remove(one)
        for queue, consumer in CONSUMERS.items():
            # Never one message twice in a batch: they are the same object.
            ours = {id(message): message for message in some if message.queue == queue}
            if ours:
                self._deliver(list(ours.values()), consumer)
        return len(some)

    def hand_over(self, message: Message, *, again: bool = False) -> None:
        """Deliver this one, out of its turn; ``again``: it stays, and comes once more."""
        with self._lock:
            if not again:
                self._messages.remove(message)
        self._deliver([message], CONSUMERS[message.queue])

    def _deliver(self, messages: list[Message], consumer: Callable[..., Any]) -> None:
        names = [secrets.token_hex(4) for _ in messages]
        records = [
            a_record(name, message.body, group=message.group, dedup_id=message.dedup_id)
            for name, message in zip(names, messages, strict=True)
        ]
        failed = outlive(
            lambda: failed_ids(consumer(batch(*records), Context(milliseconds=60_000))),
            otherwise=names,  # nobody acknowledged anything
        )
        with self._lock:
            for name, message in zip(names, messages, strict=True):
                self.seen["failed" if name in failed else "handled"] += 1
                if name in failed:
                    message.deliveries += 1
                    if message.deliveries < DELIVERIES_MAX:
                        self._messages.insert(0, message)
                    else:
                        self.seen["dead"] += 1
