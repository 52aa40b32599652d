"""Go through what is due, page by page."""

from collections.abc import Callable, Iterator
from typing import Protocol

from lockstep.db.transaction import Reader, read
from lockstep.upkeep import store
from lockstep.upkeep.store import Mark


class Due(Protocol):
    """A row of a page."""

    @property
    def name(self) -> str: ...

    @property
    def mark(self) -> Mark: ...


def each_due[R: Due](
    page: Callable[[Reader, Mark], list[R]], has_time: Callable[[], bool]
) -> Iterator[R]:
    """Each row once, the one that is due longest first, until ``has_time`` says no. A row that the
    caller leaves as it is never comes again."""
    mark = Mark()
    while has_time():
        rows = _look(page, mark)
        for row in rows:
            if not has_time():
                return
            yield row
        if len(rows) < store.PAGE_SIZE:
            return
        mark = rows[-1].mark


def _look[R](page: Callable[[Reader, Mark], list[R]], after: Mark) -> list[R]:
    return read(lambda reader: page(reader, after))
