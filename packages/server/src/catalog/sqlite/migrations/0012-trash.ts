/**
 * The trash of the bucket n is the bucket -n, in which items are in the order of their deletion (catalog/trash.ts). `home_seq` is the
 * number of an item before its deletion. Times are milliseconds since 1970.
 */
export const trash = `
ALTER TABLE buckets ADD COLUMN trash_days INTEGER NOT NULL DEFAULT 0;
ALTER TABLE media ADD COLUMN home_seq INTEGER;
ALTER TABLE media ADD COLUMN deleted_at INTEGER;
ALTER TABLE media ADD COLUMN expires_at INTEGER;
CREATE INDEX media_expiry ON media (expires_at) WHERE expires_at IS NOT NULL;
`
