/** The tables of objects, for programs that speak S3, in a new catalog. */
export const objectTables = `-- The keys of items (catalog/objects/object-keys.ts), compared byte by byte. item_size is the size of the item, so that lists read no items. parts is a JSON list of the sizes of the parts of which the object was made,
-- null for others, headers a JSON object, and public whether everybody may read the object. Items in a trash have no key.
CREATE TABLE object_keys (
  bucket_id INTEGER NOT NULL,
  key BLOB NOT NULL CHECK (length(key) BETWEEN 1 AND 1024),
  item_id TEXT NOT NULL UNIQUE,
  item_size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  parts TEXT,
  public INTEGER NOT NULL,
  headers TEXT NOT NULL,
  modified_at INTEGER NOT NULL,
  PRIMARY KEY (bucket_id, key)
) STRICT, WITHOUT ROWID;

-- Items with a key in each block of 8,192 numbers, so that lists pass by blocks in which all have one (catalog/objects/keyed-counts.ts).
CREATE TABLE keyed_counts (
  bucket_id INTEGER NOT NULL, slot INTEGER NOT NULL, items INTEGER NOT NULL, PRIMARY KEY (bucket_id, slot)
) STRICT, WITHOUT ROWID;

-- Objects that are uploaded in parts (catalog/objects/multipart-uploads.ts). item, etag and parts are those of the object that the upload has become, null
-- before; the row then stays for a day. Each part is a blob of its own, whose id is item_id.
CREATE TABLE object_uploads (
  id TEXT PRIMARY KEY NOT NULL,
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  key BLOB NOT NULL,
  headers TEXT NOT NULL,
  public INTEGER NOT NULL,
  checksum TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  token_id TEXT,
  limited_by TEXT,
  item TEXT,
  etag TEXT,
  parts TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX object_uploads_by_key ON object_uploads (bucket_id, key, id);
CREATE INDEX object_uploads_by_expiry ON object_uploads (expires_at, id);

CREATE TABLE object_parts (
  upload_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  item_id TEXT NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  checksum TEXT,
  stored_at INTEGER NOT NULL,
  PRIMARY KEY (upload_id, number)
) STRICT, WITHOUT ROWID;`
