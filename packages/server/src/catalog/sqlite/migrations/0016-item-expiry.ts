/**
 * Items that expire, and the default lifetime of new items in days. `next_expiry` is when the next item of the bucket expires; null if none
 * does. Times are milliseconds since 1970. An item in the trash keeps its expiry, and leaves the trash by then (`expires_at`).
 */
export const itemExpiry = `
ALTER TABLE buckets ADD COLUMN item_days INTEGER;
ALTER TABLE buckets ADD COLUMN next_expiry INTEGER;
ALTER TABLE media ADD COLUMN item_expires_at INTEGER;
CREATE INDEX media_item_expiry ON media (bucket_id, item_expires_at) WHERE item_expires_at IS NOT NULL;
CREATE INDEX media_expiring ON media (id, item_expires_at) WHERE item_expires_at IS NOT NULL;
`
