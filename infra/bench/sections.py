"""What is measured beside what: the cases of each part, and how often they are repeated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from infra.bench.crowd import Crowd
from infra.bench.limits import BareMerge, OneUpdate
from infra.bench.mall import MallCreate, MallFinish
from infra.bench.naive import CheckThenUpdate
from infra.bench.oscar import OscarAllocate
from infra.bench.our_notice import OurNotice
from infra.bench.our_reserve import DEPLOYED, OurReserve
from infra.bench.ours import OurFinish, OurPlace
from infra.bench.rows import Case, Row, interleaved
from infra.bench.seed_orders import SeedNotice, SeedPlace
from infra.bench.seeds import SeedFinish, SeedReserve
from infra.bench.way import NUMBERS
from infra.measuring.ground import Ground

CLIENTS: Final = (1, 8, 64)
WAITS: Final = (0, 1)
BATCHES: Final = tuple(sorted({10, 50, 100, 500, 1000, 2000, DEPLOYED}))
RECORDS: Final = (10, 50, 100)
BUCKETS: Final = (8, 16, 32)
MANY: Final = 1000
# Merged by two workers, since SQS gives a FIFO queue's batches to more than one.
WORKERS: Final = 2


@dataclass
class Bench:
    """``repeats`` is for what is held to a threshold; what only stands beside it has fewer."""

    ground: Ground
    crowd: Crowd
    repeats: int
    seconds: float
    say: Callable[[str], None]
    rows: list[Row] = field(default_factory=list)

    def measure(self, section: str, cases: Iterable[Case], repeats: int) -> list[Row]:
        """In rounds; the rows are shown together at the end."""
        cases = list(cases)
        self.say(f"  {section}: {len(cases)} ways, {repeats} rounds …")
        rows = interleaved(self.ground, self.crowd, section, cases, repeats, self.seconds)
        self.rows += rows
        return rows

    @property
    def fewer(self) -> int:
        return max(1, self.repeats // 2)


def hot(bench: Bench) -> None:
    """Holds on one hot SKU."""
    scan = bench.measure("scan", [_ours(b, wait) for wait in WAITS for b in BATCHES], 1)
    bench.measure("workers", [_ours(DEPLOYED, wait, WORKERS) for wait in WAITS], 1)
    for wait in WAITS:
        # Chosen by a run of its own, so that luck does not count twice.
        best = max((r for r in scan if r.case.wait_ms == wait), key=lambda row: row.per_second)
        batches = sorted({100, DEPLOYED, best.case.batch or DEPLOYED})
        seeds = [Case("reserve", SeedReserve(), clients, wait) for clients in CLIENTS]
        bench.measure("hot", [*(_ours(b, wait) for b in batches), *seeds], bench.repeats)


def beside(bench: Bench) -> None:
    """The same SKU, other ways."""
    cases = [
        *(Case("reserve", CheckThenUpdate(), clients, 0) for clients in (8, 64)),
        *(Case("place", MallCreate(), clients, 0) for clients in (8, 64)),
        *(Case("reserve", SeedReserve(buckets=k), 64, 0) for k in BUCKETS),
        *(Case("reserve", OneUpdate(), clients, 0) for clients in CLIENTS),
        *(Case("reserve", BareMerge(batch), WORKERS, 0, batch) for batch in (100, 1000)),
        Case("reserve", CheckThenUpdate(), 64, 1),
        Case("place", MallCreate(), 64, 1),
        *(Case("reserve", SeedReserve(buckets=k), 64, 1) for k in BUCKETS),
        Case("reserve", OneUpdate(), 64, 1),
        *(Case("reserve", BareMerge(batch), WORKERS, 1, batch) for batch in (100, 1000)),
        *(Case("reserve", OscarAllocate(), 8, wait) for wait in WAITS),
    ]
    bench.measure("beside", cases, 1)


def thousand(bench: Bench) -> None:
    """Holds on a thousand SKUs."""
    cases = [
        case
        for wait in WAITS
        for case in (
            *(Case("reserve", OurReserve(8000, skus=MANY), c, wait, DEPLOYED) for c in CLIENTS),
            *(Case("reserve", SeedReserve(skus=MANY), clients, wait) for clients in CLIENTS),
            Case("reserve", CheckThenUpdate(skus=MANY), 64, wait),
            Case("place", MallCreate(skus=MANY), 64, wait),
            Case("reserve", OneUpdate(skus=MANY), 64, wait),
            Case("reserve", BareMerge(100, skus=MANY), WORKERS, wait, 100),
            Case("reserve", OscarAllocate(skus=MANY), 8, wait),
            Case("confirm", OurFinish("confirm", 6000, 10, MANY), WORKERS, wait, 10),
            Case("release", OurFinish("release", 6000, 10, MANY), WORKERS, wait, 10),
        )
    ]
    bench.measure("thousand", cases, 1)


def scarce(bench: Bench) -> None:
    """More buyers than stock: 200 pieces of one SKU."""
    stock = 200
    cases = [
        Case("reserve", OurReserve(2000, stock=stock), WORKERS, 0, DEPLOYED),
        Case("reserve", OurReserve(2000, batch_max=10, stock=stock), WORKERS, 0, 10),
        Case("reserve", SeedReserve(stock=stock), 64),
        Case("reserve", SeedReserve(stock=stock - stock % 16, buckets=16), 64),
        Case("place", MallCreate(stock=stock), 64),
        Case("reserve", CheckThenUpdate(stock=stock), 64),
        Case("reserve", OscarAllocate(stock=stock), 8),
    ]
    bench.measure("scarce", cases, 1)


def orders(bench: Bench) -> None:
    """Place with an inline hold, over a thousand SKUs."""
    cases = [
        case
        for wait, crowds in ((0, (8, 64)), (1, (8,)))
        for clients in crowds
        for case in (
            Case("place", OurPlace(MANY), clients, wait),
            Case("place", SeedPlace(MANY), clients, wait),
        )
    ]
    bench.measure("place", cases, bench.repeats)
    in_line = [
        Case("place_hot", OurPlace(1, hot=True), clients, w) for w in WAITS for clients in (8, 64)
    ]
    bench.measure("in line", in_line, 1)


def notices(bench: Bench) -> None:
    """Payment notices."""
    cases = [
        case
        for wait in WAITS
        for clients in (8, 64)
        for case in (
            Case("notice", OurNotice(4000), clients, wait),
            Case("notice", SeedNotice(6000), clients, wait),
            Case("notice", MallFinish("pay", 6000, MANY), clients, wait),
        )
    ]
    bench.measure("notice", cases, bench.fewer)


def confirms(bench: Bench) -> None:
    """Confirm on one hot SKU."""
    _finish(bench, "confirm", bench.repeats)


def releases(bench: Bench) -> None:
    """Release on one hot SKU, and what a cancel costs elsewhere."""
    _finish(bench, "release", bench.fewer)
    cases = [Case("cancel", MallFinish("cancel", 6000), 8, wait) for wait in WAITS]
    bench.measure("cancel", cases, 1)


def _finish(bench: Bench, verb: str, repeats: int) -> None:
    seeds = [Case(verb, SeedFinish(verb, 6000), clients) for clients in CLIENTS]
    bench.measure(verb, [_finishing(verb, 100, 0), *seeds], repeats)
    smaller = [_finishing(verb, records, 0) for records in RECORDS if records != 100]
    far = [_finishing(verb, records, 1) for records in RECORDS]
    seeds = [Case(verb, SeedFinish(verb, 6000), clients, 1) for clients in (8, 64)]
    bench.measure(verb, [*smaller, *far, *seeds], 1)


def _finishing(verb: str, records: int, wait: float) -> Case:
    return Case(verb, OurFinish(verb, 10_000, records), WORKERS, wait, records)


def _ours(batch: int, wait: float, workers: int = 1) -> Case:
    """One worker: the turn of a SKU is one transaction's at a time, and a second worker would
    wait for it. The larger the batch, the more orders there have to be for some batches."""
    waiting = min(NUMBERS, 4000 + 8 * batch)
    return Case("reserve", OurReserve(waiting, batch), workers, wait, batch)


SECTIONS: Final[Mapping[str, Callable[[Bench], None]]] = {
    "hot": hot,
    "confirm": confirms,
    "place": orders,
    "release": releases,
    "notice": notices,
    "beside": beside,
    "thousand": thousand,
    "scarce": scarce,
}


def of(rows: Sequence[Row], section: str, wait: float, name: str) -> list[Row]:
    """The rows of a section at one round-trip time whose way is called so."""
    return [
        row
        for row in rows
        if row.section == section
        and row.case.wait_ms == wait
        and row.case.way.name.startswith(name)
    ]
