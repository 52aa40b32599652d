"""What MySQL itself says of open transactions and row locks in a test's schema.

Not information_schema.innodb_trx: the engine renews that at most ten times a second, so it can show
a moment that is over, or miss the one that is looked at.
"""

from tests.support.database import Database

OPEN_TRANSACTIONS = """
SELECT COUNT(*)
FROM performance_schema.events_transactions_current AS x
JOIN performance_schema.threads AS t ON t.thread_id = x.thread_id
WHERE x.state = 'ACTIVE'
  AND t.processlist_db = %s
  AND t.processlist_id <> CONNECTION_ID()
"""
ROW_LOCKS = "SELECT COUNT(*) FROM performance_schema.data_locks WHERE object_schema = %s"


def held(database: Database) -> tuple[int, int]:
    """(open transactions, row and table locks) of all sessions but the one that looks."""
    name = (database.name,)
    return database.value(OPEN_TRANSACTIONS, name), database.value(ROW_LOCKS, name)
