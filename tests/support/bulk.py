"""Tables with rows enough for the optimizer to mind which way it goes, in a few seconds."""

from tests.support.database import Database

# Numbers 1 … n as a table expression; the session allows that deep a recursion below.
_NUMBERS = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
"""
# In a hundred orders two are open, one expired and open, the others paid or closed long ago.
_FILL = (
    """
INSERT INTO oms_order (
    id, order_no, member_id, status, prev_status, close_reason, total_amount, pay_amount,
    paid_amount, reservation_id, created_at, expires_at)
{numbers}
SELECT i, CONCAT('20261130', LPAD(i, 16, '0')), i % 500,
       CASE WHEN i % 100 < 3 THEN 'PENDING_PAYMENT' WHEN i % 2 = 0 THEN 'PAID' ELSE 'CLOSED' END,
       IF(i % 100 < 3, 'NONE', 'PENDING_PAYMENT'),
       IF(i % 100 >= 3 AND i % 2 = 1, 'EXPIRED', NULL), 9.90, 9.90,
       IF(i % 100 >= 3 AND i % 2 = 0, 9.90, 0),
       CONCAT('20261130', LPAD(i, 16, '0'), '-1'), NOW(3) - INTERVAL 30 DAY,
       NOW(3) + INTERVAL IF(i % 100 = 1, -1, IF(i % 100 < 3, 1, -30)) HOUR
FROM n
""",
    """
INSERT INTO oms_order_item (order_id, sku_id, title, quantity, price, amount)
{numbers}
SELECT i, 1000 + i % 200, 'a thing', 1, 9.90, 9.90 FROM n
""",
    """
INSERT INTO oms_order_request (member_id, idempotency_key, request_hash, state, order_id)
{numbers}
SELECT i % 500, CONCAT('k', i), SHA2(i, 256), 'SUCCESS', i FROM n
""",
    """
INSERT INTO oms_order_event (order_id, from_status, to_status, actor, reason)
{numbers}
SELECT i, 'NONE', 'PENDING_PAYMENT', 'member:1', 'PLACED' FROM n
UNION ALL
SELECT i, 'PENDING_PAYMENT', 'PAID', 'alipay', 'PAID' FROM n
""",
    """
INSERT INTO oms_order_payment (provider, trade_no, out_trade_no, order_id, amount, state)
{numbers}
SELECT 'alipay', CONCAT('T', i), CONCAT('20261130', LPAD(i, 16, '0'), '_2'), i, 9.90, 'APPLIED'
FROM n
""",
    """
INSERT INTO oms_payment_attempt (
    order_id, out_trade_no, product, amount, state, expires_at, next_ask_at)
{numbers}
SELECT i, CONCAT('20261130', LPAD(i, 16, '0'), '_2'), 'page', 9.90,
       IF(i % 100 < 3, 'OPEN', 'PAID'), NOW(3),
       IF(i % 100 < 3, NOW(3) + INTERVAL IF(i % 100 = 1, -1, 1) MINUTE, NULL)
FROM n
""",
    """
INSERT INTO oms_notice (
    provider, notify_id, content_hash, kind, app_id, trade_no, out_trade_no, state, next_ask_at)
{numbers}
SELECT 'alipay', CONCAT('N', i), SHA2(i, 256), 'PAYMENT', 'A', CONCAT('T', i), CONCAT('O', i),
       IF(i % 100 = 0, 'QUERY_DUE', 'DONE'), IF(i % 100 = 0, NOW(3), NULL)
FROM n
""",
    """
INSERT INTO ims_reservation (reservation_id, order_id, n, request_hash, state, expires_at)
{numbers}
SELECT CONCAT('20261130', LPAD(i, 16, '0'), '-1'), i, 1, SHA2(i, 256),
       CASE WHEN i % 100 < 3 THEN 'RESERVED' WHEN i % 2 = 0 THEN 'CONFIRMED' ELSE 'RELEASED' END,
       NOW(3) + INTERVAL IF(i % 100 = 1, -1, 1) HOUR
FROM n
""",
    """
INSERT INTO ims_reservation_item (reservation_id, sku_id, quantity)
{numbers}
SELECT CONCAT('20261130', LPAD(i, 16, '0'), '-1'), 1000 + i % 200, 1 FROM n
""",
    """
INSERT INTO ims_sku_stock (sku_id, title, price, stock, lock_stock)
{numbers}
SELECT 1000 + i, 'a thing', 9.90, 1000, 10 FROM n WHERE i <= 2000
""",
    """
INSERT INTO ims_hot_turn (sku_id)
{numbers}
SELECT 1000 + i FROM n WHERE i <= 200
""",
    """
INSERT INTO outbox (message_id, queue, group_key, payload, sent_at, attempts, next_at)
{numbers}
SELECT LEFT(SHA2(i, 256), 32),
       IF(i % 2 = 0, 'confirm', 'release'), CONCAT('20261130', LPAD(i, 16, '0'), '-1'),
       '{{}}', IF(i % 100 = 0, NULL, NOW(3)), 1, NOW(3) + INTERVAL IF(i % 200 = 0, -1, 1) MINUTE
FROM n
""",
    """
INSERT INTO oms_refund (payment_id, out_request_no, amount, state, requested_by, next_try_at)
{numbers}
SELECT i, CONCAT('R', i), 9.90,
       CASE i % 100 WHEN 0 THEN 'DUE' WHEN 1 THEN 'UNKNOWN' WHEN 2 THEN 'CALLING'
                    WHEN 3 THEN 'FAILED' ELSE 'DONE' END,
       'operator:alice', IF(i % 100 < 3, NOW(3) - INTERVAL 1 MINUTE, NULL)
FROM n
""",
    """
INSERT INTO ims_stock_entry (sku_id, kind, delta, source, actor, reason)
{numbers}
SELECT 1000 + i % 200, 'RETURN', 1, CONCAT('return:R', i, ':1001'), 'operator:alice', 'back' FROM n
""",
    """
INSERT INTO message_refusal (message_id, type, reservation_id, code)
{numbers}
SELECT LEFT(SHA2(i, 256), 32),
       'ConfirmStock', CONCAT('20261130', LPAD(i, 16, '0'), '-1'), 'X' FROM n
""",
)
TABLES = (
    "oms_order, oms_order_item, oms_order_request, oms_order_event, oms_order_payment, "
    "oms_payment_attempt, oms_notice, oms_refund, ims_stock_entry, ims_reservation, "
    "ims_reservation_item, ims_sku_stock, outbox, message_refusal"
)


def fill(database: Database) -> None:
    """Some 20 000 rows in each table, and statistics that know of them."""
    database.execute("SET SESSION cte_max_recursion_depth = 20000")
    for statement in _FILL:
        database.execute(statement.format(numbers=_NUMBERS))
    database.rows(f"ANALYZE TABLE {TABLES}")
