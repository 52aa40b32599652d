"""When a notice is sent, and sent again until the seller says `success`: Alipay's schedule, scaled.

The rules need no threads: `send_due` sends whatever is due, one after the other. `start` lets a few
threads do that as time goes by.
"""

import http.client
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Final
from urllib.parse import urlsplit

from infra.local.alipay_gateway.faults import NOTICE, Action, Fault, Faults
from infra.local.alipay_gateway.journal import Journal
from infra.local.alipay_gateway.wording import Notice

MINUTE, HOUR = 60, 3600
# After the first try: three at once, then seven over 25 hours, then never again.
WAITS_SECONDS: Final = (
    *(0, 0, 0),
    *(4 * MINUTE, 10 * MINUTE, 10 * MINUTE),
    *(1 * HOUR, 2 * HOUR, 6 * HOUR, 15 * HOUR),
)
THREADS = 4
ANSWER_SECONDS = 10
# As Alipay really words them; the media type is malformed.
HEADERS = {
    "Content-Type": "application/x-www-form-urlencoded; text/html; charset=UTF-8",
    "User-Agent": "Mozilla/4.0",
}

type Send = Callable[[str, bytes], str]
type Encode = Callable[[Mapping[str, str]], bytes]


@dataclass(eq=False)
class Letter:
    """A notice on its way: due at a time, being sent (None), or put aside by a fault."""

    notice: Notice
    due_at: datetime | None
    aside: Action | None = None
    tries: int = 0


@dataclass(eq=False, kw_only=True)
class PostOffice:
    """`merchant_url` stands for wherever the seller is now; until that is known, what goes there
    waits."""

    send: Send
    encode: Encode
    clock: Callable[[], datetime]
    faults: Faults
    journal: Journal
    factor: Fraction
    merchant_url: str
    _merchant: str | None = None
    _letters: list[Letter] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _threads: ThreadPoolExecutor | None = None
    _is_open: bool = False

    def take(self, notice: Notice) -> None:
        """Send it soon, unless a fault has it otherwise."""
        fault = self.faults.take(NOTICE, notice.out_trade_no)
        with self._changed:
            now = self.clock()
            match fault:
                case None:
                    self._letters.append(Letter(notice, now))
                case Fault(Action.TWICE):
                    self._letters += [Letter(notice, now), Letter(notice, now)]
                case Fault(Action.DELAY, seconds):
                    self._letters.append(Letter(notice, now + timedelta(seconds=seconds)))
                case Fault(Action.LATE | Action.HOLD as aside):
                    self._letters.append(Letter(notice, None, aside))
                case _:
                    self.journal.write(over=notice.id)
            self._changed.notify_all()

    def find_merchant_at(self, url: str) -> None:
        """The seller has moved, or is there for the first time."""
        with self._changed:
            self._merchant = url
            self._changed.notify_all()

    def release(self) -> None:
        """Send what was put aside."""
        with self._changed:
            self._bring_back(self._letters)

    def replay(self, entry: Mapping[str, Any]) -> None:
        """Take over a line of the journal: what was not answered `success` is still to be sent."""
        if "notice" in entry:
            self._letters.append(Letter(Notice.read(entry["notice"]), self.clock()))
        if "tried" in entry:
            for letter in self._letters:
                if letter.notice.id == entry["tried"]:
                    letter.tries += 1
        if "over" in entry:
            self._letters = [one for one in self._letters if one.notice.id != entry["over"]]

    def waiting(self) -> int:
        """How many notices are not over: to be sent, put aside, or between two tries."""
        with self._changed:
            return len(self._letters)

    # --- one step --------------------------------------------------------------------------------

    def send_due(self) -> int:
        """Send everything that is due, in this thread; how many that was."""
        due = self._claim()
        for letter in due:
            self._deliver(letter)
        return len(due)

    def _claim(self) -> list[Letter]:
        """What is due; nobody else gets it until its next time is known."""
        with self._changed:
            now = self.clock()
            due = [
                letter
                for letter in self._letters
                if letter.due_at is not None and letter.due_at <= now and self._address(letter)
            ]
            for letter in due:
                letter.due_at = None
            return due

    def _deliver(self, letter: Letter) -> None:
        notice = letter.notice
        said = self.send(self._address(letter), self.encode(notice.words))
        with self._changed:
            before = self._letters[: self._letters.index(letter)]
            self._bring_back(
                other
                for other in before
                if other.aside is Action.LATE and other.notice.out_trade_no == notice.out_trade_no
            )
            letter.tries += 1
            is_over = said == "success" or letter.tries > len(WAITS_SECONDS)
            self.journal.write(**{"over" if is_over else "tried": notice.id})
            if is_over:
                self._letters.remove(letter)
            else:
                wait = float(WAITS_SECONDS[letter.tries - 1] * self.factor)
                letter.due_at = self.clock() + timedelta(seconds=wait)
            self._changed.notify_all()

    def _address(self, letter: Letter) -> str:
        url = letter.notice.notify_url
        return self._merchant or "" if url == self.merchant_url else url

    def _bring_back(self, letters: Iterable[Letter]) -> None:
        for letter in letters:
            if letter.aside is not None:
                letter.aside, letter.due_at = None, self.clock()
        self._changed.notify_all()

    # --- threads ---------------------------------------------------------------------------------

    def start(self) -> None:
        self._is_open = True
        self._threads = ThreadPoolExecutor(THREADS + 1, thread_name_prefix="post")
        self._threads.submit(self._run)

    def stop(self) -> None:
        """What is not sent yet stays for the next start."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _run(self) -> None:
        while self._is_open:
            for letter in self._claim():
                if self._threads is not None and self._is_open:
                    self._threads.submit(self._deliver, letter)
            with self._changed:
                self._changed.wait(self._seconds_to_wait())

    def _seconds_to_wait(self) -> float:
        due = [one.due_at for one in self._letters if one.due_at and self._address(one)]
        return max(0.0, min(1.0, (min(due) - self.clock()).total_seconds())) if due else 1.0


def post_to(url: str, body: bytes) -> str:
    """One try over HTTP: what was answered, or nothing where that does not count."""
    address = urlsplit(url)
    is_tls = address.scheme == "https"
    kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
    connection = kind(address.netloc, timeout=ANSWER_SECONDS)
    try:
        connection.request("POST", address.path or "/", body, HEADERS)
        reply = connection.getresponse()
        said = reply.read(100).decode("latin-1")
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
    # No other success, and no redirect, counts.
    return said if reply.status == 200 else ""
