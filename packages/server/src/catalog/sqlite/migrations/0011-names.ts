/**
 * The index of names (docs/architecture/listing.md, Search by name). The chunks of a segment have ids from 4096 times its id. A block of 4,096
 * numbers has marks if its items were deleted or renamed. A claim prevents two processes from indexing the same block.
 */
export const names = `
CREATE TABLE name_segments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  first INTEGER NOT NULL,
  size INTEGER NOT NULL,
  bits INTEGER NOT NULL,
  times BLOB NOT NULL,
  UNIQUE (bucket_id, first)
) STRICT;

CREATE TABLE name_chunks (
  id INTEGER PRIMARY KEY,
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE name_marks (
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  block INTEGER NOT NULL,
  removed BLOB NOT NULL,
  changed BLOB NOT NULL,
  PRIMARY KEY (bucket_id, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE name_claims (
  bucket_id INTEGER PRIMARY KEY REFERENCES buckets (id),
  until INTEGER NOT NULL
) STRICT;
`
