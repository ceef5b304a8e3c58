/** A key with a higher number is newer. `secret` has 32 bytes; `created_at` is in milliseconds since 1970. */
export const privateBuckets = `
ALTER TABLE buckets ADD COLUMN private INTEGER NOT NULL DEFAULT 0;
ALTER TABLE buckets ADD COLUMN signed_pages INTEGER NOT NULL DEFAULT 0;

CREATE TABLE signing_keys (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  secret BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
`
