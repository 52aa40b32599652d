-- The sweep looks for orders that wait too long at a hot SKU.
ALTER TABLE oms_order ADD KEY ix_order_waiting (status, created_at);
