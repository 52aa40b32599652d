"""What requests queue for, or are turned away from."""


class Bucket:
    """A token bucket: so many a second, and a burst on top that fills up again at that rate."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._tokens = burst
        self._filled_at = 0.0

    def take(self, now: float) -> bool:
        gained = (now - self._filled_at) * self._per_second
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Copies:
    """The copies of one function: each serves one request at a time, new ones start as fast as
    ``starts`` lets them. A copy that was started stays."""

    def __init__(self, limit: int, starts: Bucket, warm: int = 0) -> None:
        self._limit = limit
        self._starts = starts
        self.started = min(warm, limit)
        self.busy = 0
        self.busy_seconds = 0.0
        self.busy_max = 0
        self._since = 0.0

    def enter(self, now: float) -> bool | None:
        """Whether a copy had to be started for this request; None where there is none for it."""
        cold = self.busy == self.started
        if cold:
            if self.started >= self._limit or not self._starts.take(now):
                return None
            self.started += 1
        self._count(now, +1)
        return cold

    def leave(self, now: float) -> None:
        self._count(now, -1)

    def _count(self, now: float, change: int) -> None:
        self.busy_seconds += self.busy * (now - self._since)
        self._since = now
        self.busy += change
        self.busy_max = max(self.busy_max, self.busy)


class Database:
    """One server that works off what it is given in order of arrival, ``speed`` seconds of the
    measured machine's work a second.

    Its cores are one quick server here, so throughput and waiting under load are right and the
    time of a transaction alone is not: that is added by whoever asks (its round trips). Work that
    is known at arrival makes each wait a sum (Lindley's recursion), and needs no event. A real one
    shares itself among its sessions: the same mean, but overloaded it is unkinder to the one that
    decides for all, so what is found above ``busy_max`` is the best case.
    """

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._free_at = 0.0
        self.busy_seconds = 0.0

    def backlog(self, now: float) -> float:
        """How long something that comes now waits before it is begun."""
        return max(0.0, self._free_at - now)

    def finish(self, now: float, work: float) -> float:
        """When ``work`` that comes now will be done."""
        seconds = work / self._speed
        self.busy_seconds += seconds
        self._free_at = max(self._free_at, now) + seconds
        return self._free_at
