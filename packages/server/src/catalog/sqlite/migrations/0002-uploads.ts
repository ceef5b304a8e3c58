/** Quotas, resumable uploads, repeatable requests. Times are milliseconds since 1970, sizes are bytes. */
export const uploads = `
ALTER TABLE buckets ADD COLUMN max_items INTEGER;
ALTER TABLE buckets ADD COLUMN max_bytes INTEGER;
ALTER TABLE buckets ADD COLUMN reserved_items INTEGER NOT NULL DEFAULT 0 CHECK (reserved_items >= 0);
ALTER TABLE buckets ADD COLUMN reserved_bytes INTEGER NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0);

CREATE TABLE uploads (
  id TEXT PRIMARY KEY NOT NULL,
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  length INTEGER,
  received INTEGER NOT NULL DEFAULT 0 CHECK (received >= 0 AND (length IS NULL OR received <= length)),
  metadata TEXT,
  filename TEXT,
  declared_type TEXT,
  media_id TEXT NOT NULL UNIQUE,
  finished INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX uploads_by_expiry ON uploads (expires_at);

CREATE TABLE keyed_requests (
  token_id TEXT NOT NULL REFERENCES tokens (id),
  key TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  items TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (token_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX keyed_requests_by_expiry ON keyed_requests (expires_at);
`
