-- The channel is asked: about attempts, about notices that only it can decide, and for refunds.

-- next_ask_at says when somebody owes a question or what follows from its answer; NULL: nobody does.
ALTER TABLE oms_payment_attempt
    ADD COLUMN asks        INT         NOT NULL DEFAULT 0 AFTER expires_at,
    ADD COLUMN next_ask_at DATETIME(3) NULL AFTER asks,
    ADD KEY ix_attempt_ask (next_ask_at, id);

UPDATE oms_payment_attempt
SET next_ask_at = NOW(3)
WHERE state IN ('OPEN', 'CLOSING');

ALTER TABLE oms_notice
    ADD COLUMN asks        INT         NOT NULL DEFAULT 0 AFTER reason,
    ADD COLUMN next_ask_at DATETIME(3) NULL AFTER asks,
    ADD KEY ix_notice_ask (next_ask_at, id);

UPDATE oms_notice
SET next_ask_at = NOW(3)
WHERE state IN ('QUERY_DUE', 'UNMATCHED', 'CONFLICT');

-- request_hash is NULL where no person asked for the refund. called_at is when the channel was last asked
-- to do it, code why it would not.
ALTER TABLE oms_refund
    ADD COLUMN reason       VARCHAR(200) NULL AFTER requested_by,
    ADD COLUMN request_hash CHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NULL AFTER reason,
    ADD COLUMN tries        INT          NOT NULL DEFAULT 0 AFTER next_try_at,
    ADD COLUMN called_at    DATETIME(3)  NULL AFTER tries,
    ADD COLUMN code         VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NULL AFTER called_at,
    ADD COLUMN done_at      DATETIME(3)  NULL AFTER code,
    ADD CONSTRAINT ck_refund_next_try CHECK (
        state NOT IN ('DUE', 'CALLING', 'UNKNOWN') OR next_try_at IS NOT NULL);

-- The largest total of refunds that the channel told: every refund up to it is counted.
ALTER TABLE oms_order_payment
    ADD COLUMN told_amount DECIMAL(18, 2) NOT NULL DEFAULT 0.00 AFTER refunded_amount;

UPDATE oms_order_payment
SET told_amount = refunded_amount
WHERE refunded_amount > 0;

-- What went back so far was told by cumulative notices only: one row stands for all of it.
INSERT INTO oms_refund (payment_id, out_request_no, amount, state, requested_by, reason, done_at)
SELECT id, CONCAT('X', CAST(refunded_amount * 100 AS SIGNED)), refunded_amount, 'DONE', 'alipay',
       'told by a notice', NOW(3)
FROM oms_order_payment
WHERE refunded_amount > 0;

INSERT INTO oms_money_entry (order_id, payment_id, kind, amount, source)
SELECT order_id, id, 'PAYMENT', amount, CONCAT('payment:', provider, ':', trade_no)
FROM oms_order_payment;

INSERT INTO oms_money_entry (order_id, payment_id, kind, amount, source)
SELECT p.order_id, p.id, 'REFUND', -r.amount,
       CONCAT('refund:', p.provider, ':', p.trade_no, ':', r.out_request_no)
FROM oms_refund AS r
JOIN oms_order_payment AS p ON p.id = r.payment_id
WHERE r.state = 'DONE';

ALTER TABLE oms_money_entry
    ADD KEY ix_money_payment (payment_id),
    ADD CONSTRAINT ck_money_kind CHECK (
        (kind = 'PAYMENT' AND amount > 0) OR (kind = 'REFUND' AND amount < 0)),
    DROP CHECK ck_money_amount;
