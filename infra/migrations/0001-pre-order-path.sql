-- Orders, payments and stock: the tables of the order path.
--
-- Ids that others choose (keys, trade numbers, queue names) are ascii_bin: 'Abc' is not 'abc'. They are
-- checked at the edge, and strict mode refuses what is too long. Money is DECIMAL(18,2) yuan. Times are
-- UTC. Counters are signed: an unsigned `stock - lock_stock` raises 1690 instead of failing its guard.
-- No foreign key points at oms_order or ims_sku_stock: the child's insert would share-lock the parent row
-- and its later update would deadlock two orders of one SKU.

-- The order's state machine as data. oms_order and oms_order_event both refer to it, so that a change
-- that is not an edge is refused by the engine, whoever makes it.
CREATE TABLE oms_order_transition (
    from_status VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    to_status   VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (from_status, to_status)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

INSERT INTO oms_order_transition (from_status, to_status)
VALUES ('NONE', 'RESERVING'),
       ('NONE', 'PENDING_PAYMENT'),
       ('RESERVING', 'PENDING_PAYMENT'),
       ('RESERVING', 'CLOSED'),
       ('PENDING_PAYMENT', 'PAYMENT_PROCESSING'),
       ('PENDING_PAYMENT', 'PAID'),
       ('PENDING_PAYMENT', 'CLOSED'),
       ('PAYMENT_PROCESSING', 'PENDING_PAYMENT'),
       ('PAYMENT_PROCESSING', 'PAID'),
       ('PAYMENT_PROCESSING', 'CLOSED'),
       ('PAID', 'SHIPPED'),
       ('PAID', 'REFUNDING'),
       ('SHIPPED', 'FINISHED'),
       ('SHIPPED', 'REFUNDING'),
       ('FINISHED', 'REFUNDING'),
       ('REFUNDING', 'REFUNDED'),
       ('REFUNDING', 'PAID'),
       ('REFUNDING', 'SHIPPED'),
       ('REFUNDING', 'FINISHED'),
       ('CLOSED', 'PAID');

CREATE TABLE oms_order (
    id                  BIGINT         NOT NULL AUTO_INCREMENT,
    order_no            VARCHAR(32)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    member_id           BIGINT         NOT NULL,
    status              VARCHAR(20)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    prev_status         VARCHAR(20)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'NONE',
    close_reason        VARCHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    cancel_requested_at DATETIME(3)    NULL,
    total_amount        DECIMAL(18, 2) NOT NULL,
    pay_amount          DECIMAL(18, 2) NOT NULL,
    paid_amount         DECIMAL(18, 2) NOT NULL DEFAULT 0,
    refunded_amount     DECIMAL(18, 2) NOT NULL DEFAULT 0,
    note                VARCHAR(200)   NULL,
    reservation_id      VARCHAR(40)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    expires_at          DATETIME(3)    NULL,
    paid_at             DATETIME(3)    NULL,
    created_at          DATETIME(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (id),
    UNIQUE KEY uk_order_no (order_no),
    KEY ix_order_member (member_id, id),
    KEY ix_order_member_status (member_id, status, id),
    KEY ix_order_expiry (status, expires_at),
    CONSTRAINT fk_order_transition
        FOREIGN KEY (prev_status, status) REFERENCES oms_order_transition (from_status, to_status),
    CONSTRAINT ck_order_close_reason CHECK (
        (status = 'CLOSED') = (close_reason IS NOT NULL)
        AND (close_reason IS NULL
             OR close_reason IN ('CANCELLED', 'EXPIRED', 'OUT_OF_STOCK', 'GATEWAY_CLOSED'))),
    CONSTRAINT ck_order_amounts CHECK (
        total_amount >= 0 AND pay_amount > 0
        AND refunded_amount BETWEEN 0 AND paid_amount AND paid_amount <= pay_amount)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE oms_order_item (
    order_id BIGINT         NOT NULL,
    sku_id   BIGINT         NOT NULL,
    title    VARCHAR(200)   NOT NULL,
    quantity INT            NOT NULL,
    price    DECIMAL(18, 2) NOT NULL,
    amount   DECIMAL(18, 2) NOT NULL,
    PRIMARY KEY (order_id, sku_id),
    CONSTRAINT ck_order_item CHECK (
        quantity BETWEEN 1 AND 1000000 AND price >= 0 AND amount = price * quantity)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- One row per (member, idempotency key), in the same transaction as its order: both exist or neither.
CREATE TABLE oms_order_request (
    member_id       BIGINT      NOT NULL,
    idempotency_key VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    request_hash    CHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    state           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    order_id        BIGINT      NULL,
    created_at      DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (member_id, idempotency_key),
    UNIQUE KEY uk_request_order (order_id),
    CONSTRAINT ck_request_state CHECK (
        state IN ('PROCESSING', 'SUCCESS') AND (state = 'SUCCESS') = (order_id IS NOT NULL))
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- The trail that operators read: one row per change of an order's status.
CREATE TABLE oms_order_event (
    id          BIGINT      NOT NULL AUTO_INCREMENT,
    order_id    BIGINT      NOT NULL,
    from_status VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    to_status   VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    actor       VARCHAR(80) NOT NULL,
    reason      VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    evidence    JSON        NULL,
    created_at  DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (id),
    KEY ix_event_order (order_id, id),
    CONSTRAINT fk_event_transition
        FOREIGN KEY (from_status, to_status) REFERENCES oms_order_transition (from_status, to_status)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- One row per real payment. order_id is NULL only while the money fits no order.
-- applied_to makes "at most one payment is applied to an order" a unique key.
CREATE TABLE oms_order_payment (
    id              BIGINT         NOT NULL AUTO_INCREMENT,
    provider        VARCHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    trade_no        VARCHAR(128)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    out_trade_no    VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    order_id        BIGINT         NULL,
    amount          DECIMAL(18, 2) NOT NULL,
    state           VARCHAR(20)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason          VARCHAR(24)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    refunded_amount DECIMAL(18, 2) NOT NULL DEFAULT 0,
    gateway_paid_at DATETIME(3)    NULL,
    finished_at     DATETIME(3)    NULL COMMENT 'the channel takes no refund after this',
    created_at      DATETIME(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    applied_to      BIGINT         AS (IF(state = 'APPLIED', order_id, NULL)) VIRTUAL,
    PRIMARY KEY (id),
    UNIQUE KEY uk_payment_trade (provider, trade_no),
    UNIQUE KEY uk_payment_applied (applied_to),
    KEY ix_payment_order (order_id, id),
    KEY ix_payment_state (state, created_at),
    CONSTRAINT ck_payment_state CHECK (
        state IN ('RECEIVED', 'APPLIED', 'REFUND_PENDING', 'REFUNDING', 'REFUNDED', 'REFUND_FAILED',
                  'REINSTATE_PENDING', 'UNMATCHED')),
    CONSTRAINT ck_payment_order CHECK (
        order_id IS NOT NULL
        OR state IN ('UNMATCHED', 'REFUND_PENDING', 'REFUNDING', 'REFUNDED', 'REFUND_FAILED')),
    CONSTRAINT ck_payment_amounts CHECK (amount > 0 AND refunded_amount BETWEEN 0 AND amount)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE oms_payment_attempt (
    id           BIGINT         NOT NULL AUTO_INCREMENT,
    order_id     BIGINT         NOT NULL,
    out_trade_no VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    product      VARCHAR(8)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    amount       DECIMAL(18, 2) NOT NULL,
    state        VARCHAR(8)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    expires_at   DATETIME(3)    NOT NULL,
    created_at   DATETIME(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (id),
    UNIQUE KEY uk_attempt_out_trade_no (out_trade_no),
    KEY ix_attempt_order (order_id, state),
    CONSTRAINT ck_attempt_state CHECK (state IN ('OPEN', 'CLOSING', 'CLOSED', 'PAID')),
    CONSTRAINT ck_attempt_amount CHECK (amount > 0)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE oms_refund (
    id             BIGINT         NOT NULL AUTO_INCREMENT,
    payment_id     BIGINT         NOT NULL,
    out_request_no VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    amount         DECIMAL(18, 2) NOT NULL,
    state          VARCHAR(8)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    requested_by   VARCHAR(80)    NOT NULL,
    next_try_at    DATETIME(3)    NULL,
    created_at     DATETIME(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (id),
    UNIQUE KEY uk_refund_request (payment_id, out_request_no),
    KEY ix_refund_due (state, next_try_at),
    CONSTRAINT ck_refund_state CHECK (state IN ('DUE', 'CALLING', 'DONE', 'UNKNOWN', 'FAILED')),
    CONSTRAINT ck_refund_amount CHECK (amount > 0)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- Append-only: one signed entry per payment and refund. Never updated. Its first writer fills in what
-- came before it.
CREATE TABLE oms_money_entry (
    id         BIGINT         NOT NULL AUTO_INCREMENT,
    order_id   BIGINT         NULL,
    payment_id BIGINT         NOT NULL,
    kind       VARCHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    amount     DECIMAL(18, 2) NOT NULL,
    source     VARCHAR(160)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at DATETIME(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (id),
    UNIQUE KEY uk_money_source (source),
    KEY ix_money_order (order_id),
    CONSTRAINT ck_money_amount CHECK (amount <> 0)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- The inbox: every genuine notice once, with what is needed to process it again. A channel repeats
-- notify_id with each delivery of one notice; content_hash keeps one with other content from being
-- taken for a repeat. Times are UTC, whatever the channel sends.
CREATE TABLE oms_notice (
    id           BIGINT         NOT NULL AUTO_INCREMENT,
    provider     VARCHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    notify_id    VARCHAR(128)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    content_hash CHAR(64)       CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    kind         VARCHAR(12)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    notify_type  VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    app_id       VARCHAR(32)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    seller_id    VARCHAR(32)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    trade_no     VARCHAR(128)   CHARACTER SET ascii COLLATE ascii_bin NULL,
    out_trade_no VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    trade_status VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    total_amount DECIMAL(18, 2) NULL,
    refund_fee   DECIMAL(18, 2) NULL COMMENT 'cumulative over the trade',
    out_biz_no   VARCHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    gmt_payment  DATETIME(3)    NULL,
    gmt_refund   DATETIME(3)    NULL,
    gmt_close    DATETIME(3)    NULL,
    state        VARCHAR(12)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reason       VARCHAR(40)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    created_at   DATETIME(3)    NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (id),
    UNIQUE KEY uk_notice (provider, notify_id, content_hash),
    KEY ix_notice_trade (trade_no, state),
    KEY ix_notice_state (state, created_at),
    CONSTRAINT ck_notice_state CHECK (
        state IN ('STORED', 'QUERY_DUE', 'UNMATCHED', 'CONFLICT', 'DONE'))
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE ims_sku_stock (
    sku_id     BIGINT         NOT NULL,
    title      VARCHAR(200)   NOT NULL,
    price      DECIMAL(18, 2) NOT NULL,
    stock      INT            NOT NULL COMMENT 'on hand',
    lock_stock INT            NOT NULL DEFAULT 0 COMMENT 'held by RESERVED reservations',
    hot        BOOLEAN        NOT NULL DEFAULT FALSE,
    on_sale    BOOLEAN        NOT NULL DEFAULT TRUE,
    PRIMARY KEY (sku_id),
    CONSTRAINT ck_sku_stock CHECK (0 <= lock_stock AND lock_stock <= stock),
    CONSTRAINT ck_sku_price CHECK (price >= 0),
    CONSTRAINT ck_sku_id CHECK (sku_id BETWEEN 1 AND 9007199254740991)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- Append-only: why a SKU's stock on hand is what it is, apart from confirmed sales.
CREATE TABLE ims_stock_entry (
    id         BIGINT       NOT NULL AUTO_INCREMENT,
    sku_id     BIGINT       NOT NULL,
    kind       VARCHAR(12)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    delta      INT          NOT NULL,
    source     VARCHAR(120) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    actor      VARCHAR(80)  NOT NULL,
    reason     VARCHAR(200) NOT NULL,
    created_at DATETIME(3)  NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (id),
    UNIQUE KEY uk_stock_source (source),
    KEY ix_stock_sku (sku_id, id),
    CONSTRAINT ck_stock_kind CHECK (kind IN ('INITIAL', 'RESTOCK', 'CORRECTION', 'RETURN'))
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- Whose stock is held. request_hash is NULL only on a tombstone: released before it was reserved.
CREATE TABLE ims_reservation (
    id             BIGINT      NOT NULL AUTO_INCREMENT,
    reservation_id VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    order_id       BIGINT      NOT NULL,
    n              INT         NOT NULL,
    request_hash   CHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NULL,
    state          VARCHAR(9)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    expires_at     DATETIME(3) NULL,
    created_at     DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    updated_at     DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
    PRIMARY KEY (id),
    UNIQUE KEY uk_reservation (reservation_id),
    UNIQUE KEY uk_reservation_order (order_id, n),
    KEY ix_reservation_expiry (state, expires_at),
    CONSTRAINT ck_reservation_state CHECK (
        state IN ('INIT', 'RESERVED', 'CONFIRMED', 'RELEASED')),
    CONSTRAINT ck_reservation_hash CHECK (request_hash IS NOT NULL OR state = 'RELEASED'),
    CONSTRAINT ck_reservation_n CHECK (n >= 1)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

CREATE TABLE ims_reservation_item (
    reservation_id VARCHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    sku_id         BIGINT      NOT NULL,
    quantity       INT         NOT NULL,
    PRIMARY KEY (reservation_id, sku_id),
    KEY ix_reservation_item_sku (sku_id),
    CONSTRAINT ck_reservation_item CHECK (quantity BETWEEN 1 AND 1000000)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- The truth about what must be sent. message_id is random and is the deduplication id: an AUTO_INCREMENT
-- id would repeat on a rebuilt database, and the queue would drop it without a word.
CREATE TABLE outbox (
    id         BIGINT      NOT NULL AUTO_INCREMENT,
    message_id CHAR(32)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    queue      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    group_key  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    payload    JSON        NOT NULL,
    created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    sent_at    DATETIME(3) NULL,
    attempts   INT         NOT NULL DEFAULT 0,
    next_at    DATETIME(3) NOT NULL,
    PRIMARY KEY (id),
    UNIQUE KEY uk_outbox_message (message_id),
    KEY ix_outbox_due (sent_at, next_at, id),
    KEY ix_outbox_group (queue, group_key, id),
    CONSTRAINT ck_outbox_attempts CHECK (attempts >= 0)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- Commands that were refused for good and acknowledged, once each however often they were delivered.
CREATE TABLE message_refusal (
    id             BIGINT       NOT NULL AUTO_INCREMENT,
    message_id     VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    type           VARCHAR(24)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    reservation_id VARCHAR(40)  CHARACTER SET ascii COLLATE ascii_bin NULL,
    code           VARCHAR(40)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    created_at     DATETIME(3)  NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (id),
    UNIQUE KEY uk_refusal_message (message_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
