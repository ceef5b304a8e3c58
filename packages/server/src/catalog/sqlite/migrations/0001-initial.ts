/** Times are milliseconds since 1970, sizes are bytes. Never edited once released: a change is a new migration. */
export const initial = `
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (key, value) VALUES ('epoch', lower(hex(randomblob(16))));

CREATE TABLE buckets (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  revision INTEGER NOT NULL DEFAULT 0,
  total INTEGER NOT NULL DEFAULT 0 CHECK (total >= 0),
  bytes INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
  next_seq INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE tokens (
  id TEXT PRIMARY KEY NOT NULL,
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  name TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  last_used_at INTEGER,
  revoked_at INTEGER
) STRICT;

CREATE INDEX tokens_by_bucket ON tokens (bucket_id);

CREATE TABLE media (
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  seq INTEGER NOT NULL,
  id TEXT NOT NULL UNIQUE,
  extension TEXT,
  filename TEXT,
  content_type TEXT NOT NULL,
  size INTEGER NOT NULL,
  sha256 BLOB,
  width INTEGER,
  height INTEGER,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (bucket_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE ranks (
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  level INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  counts BLOB NOT NULL,
  PRIMARY KEY (bucket_id, level, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE tombstones (
  id TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;
`
