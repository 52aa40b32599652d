-- A hot SKU is decided in turns: one transaction for all the orders that wait for it.

-- The turn that an order waits at while it is RESERVING, or while late money of it waits to revive it: its
-- lowest hot SKU. NULL where no SKU was hot when it was placed. It stays for the order's life.
ALTER TABLE oms_order
    ADD COLUMN turn_sku_id BIGINT NULL AFTER reservation_id,
    ADD KEY ix_order_turn (turn_sku_id, status, id);

-- Orders that wait already. Whose SKU is no longer hot waits at its lowest.
UPDATE oms_order AS o
SET o.turn_sku_id = (
    SELECT COALESCE(MIN(IF(s.hot, i.sku_id, NULL)), MIN(i.sku_id))
    FROM oms_order_item AS i
    LEFT JOIN ims_sku_stock AS s ON s.sku_id = i.sku_id
    WHERE i.order_id = o.id)
WHERE o.status = 'RESERVING';

-- Whoever holds a turn's row, until its transaction ends, decides for that SKU. Rows are made on first use.
CREATE TABLE ims_hot_turn (
    sku_id BIGINT NOT NULL,
    PRIMARY KEY (sku_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;
