-- A catalogue file that was loaded: once per id, in the transaction that changed the SKUs.
CREATE TABLE ims_catalogue_load (
    load_id      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    content_hash CHAR(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    actor        VARCHAR(80) NOT NULL,
    loaded       INT         NOT NULL,
    repriced     INT         NOT NULL,
    restocked    INT         NOT NULL,
    unchanged    INT         NOT NULL,
    created_at   DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
    PRIMARY KEY (load_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4;

-- The purge looks for refusals by their age; its other tables have a key that serves.
ALTER TABLE message_refusal ADD KEY ix_refusal_created (created_at);
