"""Wait for a state that the engine itself reports, never for a length of time."""

import threading
import time
from collections.abc import Callable

from tests.support.database import Database

_GIVE_UP_SECONDS = 10


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return once ``is_so``; fail the test where it never comes true."""
    deadline = time.monotonic() + _GIVE_UP_SECONDS
    between_looks = threading.Event()
    while not is_so():
        assert time.monotonic() < deadline, "the awaited state never came"
        between_looks.wait(0.002)


def until_someone_waits_for_a_row(database: Database) -> None:
    """Wait until a transaction in this schema waits for another's lock."""
    wait_until(
        lambda: (
            database.value(
                "SELECT COUNT(*) FROM performance_schema.data_locks "
                "WHERE object_schema = %s AND lock_status = 'WAITING'",
                (database.name,),
            )
            > 0
        )
    )
