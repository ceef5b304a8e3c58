import { kindExpression } from '../item-kinds.ts'
import { functions } from './functions.ts'

/**
 * The tables of a new catalog, and its functions. Times are milliseconds since 1970, sizes are bytes, durations are milliseconds, flags are 0
 * or 1. Text is compared byte by byte (`C`), as SQLite does. Tables that belong to a bucket have its id, so that they can be distributed by
 * it. From the first release on, a change is a migration as well (migrate.ts).
 */
export const schema = `
CREATE TABLE meta (
  key text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

INSERT INTO meta (key, value) VALUES ('epoch', replace(gen_random_uuid()::text, '-', ''));

-- The trash of the bucket n is the bucket -n, in which items are in the order of their deletion (catalog/trash.ts). item_days is the
-- default lifetime of new items. next_expiry is when the next item of the bucket expires; null if none does.
CREATE TABLE buckets (
  id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  created_at int8 NOT NULL,
  revision int8 NOT NULL DEFAULT 0,
  total int8 NOT NULL DEFAULT 0 CHECK (total >= 0),
  bytes int8 NOT NULL DEFAULT 0 CHECK (bytes >= 0),
  next_seq int8 NOT NULL DEFAULT 0,
  max_items int8,
  max_bytes int8,
  reserved_items int8 NOT NULL DEFAULT 0 CHECK (reserved_items >= 0),
  reserved_bytes int8 NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0),
  trash_days int4 NOT NULL DEFAULT 0,
  private int4 NOT NULL DEFAULT 0,
  signed_pages int4 NOT NULL DEFAULT 0,
  remove_metadata int4 NOT NULL DEFAULT 0,
  item_days int4,
  next_expiry int8
) WITH (fillfactor = 25);

CREATE TABLE tokens (
  id text COLLATE "C" PRIMARY KEY,
  number int8 GENERATED ALWAYS AS IDENTITY,
  bucket_id int8 NOT NULL REFERENCES buckets (id),
  name text NOT NULL,
  hash bytea NOT NULL UNIQUE,
  scopes text NOT NULL,
  created_at int8 NOT NULL,
  expires_at int8,
  last_used_at int8,
  revoked_at int8
) WITH (fillfactor = 70);

CREATE INDEX tokens_by_bucket ON tokens (bucket_id);

CREATE TABLE keyed_requests (
  token_id text COLLATE "C" NOT NULL REFERENCES tokens (id),
  key text COLLATE "C" NOT NULL,
  fingerprint bytea NOT NULL,
  items json NOT NULL,
  expires_at int8 NOT NULL,
  PRIMARY KEY (token_id, key)
);

CREATE INDEX keyed_requests_by_expiry ON keyed_requests (expires_at);

-- A key with a higher number is newer. A secret has 32 bytes.
CREATE TABLE signing_keys (
  number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  secret bytea NOT NULL,
  created_at int8 NOT NULL
);

-- thumbhash and duration are what the first render of an item's variants has found. renamed is 1 if the filename has changed: responses that
-- are in memory have the earlier one. An item expires at item_expires_at. In the trash, home_seq is the number that an item had before its
-- deletion, and it leaves the trash at expires_at, which is not after item_expires_at. folded_name is the filename as searches compare it
-- (core/name-search.ts). They read all names of a bucket from the index of the primary key alone, as far as VACUUM has marked pages of the
-- table as visible to all, so it runs early.
CREATE TABLE items (
  bucket_id int8 NOT NULL,
  seq int8 NOT NULL,
  id text COLLATE "C" NOT NULL UNIQUE,
  extension text,
  filename text,
  content_type text NOT NULL,
  size int8 NOT NULL,
  sha256 bytea NOT NULL,
  width int4,
  height int4,
  created_at int8 NOT NULL,
  content_id int8,
  thumbhash bytea,
  duration int8,
  alt_text text,
  caption text,
  renamed int4,
  home_seq int8,
  deleted_at int8,
  expires_at int8,
  item_expires_at int8,
  folded_name text COLLATE "C",
  PRIMARY KEY (bucket_id, seq) INCLUDE (folded_name)
) WITH (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000);

-- For lists of items with filters (catalog/item-statements.ts).
CREATE INDEX items_by_kind ON items (bucket_id, ${kindExpression}, created_at, seq);
CREATE INDEX items_renamed ON items (id) WHERE renamed IS NOT NULL;
CREATE INDEX items_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX items_item_expiry ON items (bucket_id, item_expires_at) WHERE item_expires_at IS NOT NULL;

-- Apart from the rows of items, so that a listing does not read them. Not compressed: most items are compressed already.
CREATE TABLE contents (
  id int8 PRIMARY KEY,
  bucket_id int8 NOT NULL,
  bytes bytea NOT NULL
);

ALTER TABLE contents ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE SEQUENCE content_numbers;

CREATE TABLE ranks (
  bucket_id int8 NOT NULL,
  level int4 NOT NULL,
  slot int8 NOT NULL,
  sums int8[] NOT NULL,
  PRIMARY KEY (bucket_id, level, slot)
) WITH (fillfactor = 50);

CREATE TABLE uploads (
  id text COLLATE "C" PRIMARY KEY,
  bucket_id int8 NOT NULL REFERENCES buckets (id),
  length int8,
  received int8 NOT NULL DEFAULT 0 CHECK (received >= 0 AND (length IS NULL OR received <= length)),
  metadata text,
  filename text,
  declared_type text,
  item_id text COLLATE "C" NOT NULL UNIQUE,
  finished int4 NOT NULL DEFAULT 0,
  expires_at int8 NOT NULL,
  multipart text
) WITH (fillfactor = 70);

CREATE INDEX uploads_by_bucket ON uploads (bucket_id);
CREATE INDEX uploads_by_expiry ON uploads (expires_at);

-- The bytes of unfinished uploads that are in a remote store, as parts, or too few for a part, as pieces.
CREATE TABLE upload_parts (
  upload_id text COLLATE "C" NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
  number int8 NOT NULL,
  size int8 NOT NULL,
  etag text NOT NULL,
  PRIMARY KEY (upload_id, number)
);

CREATE TABLE upload_pieces (
  upload_id text COLLATE "C" NOT NULL REFERENCES uploads (id) ON DELETE CASCADE,
  number int8 NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (upload_id, number)
);

ALTER TABLE upload_pieces ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE tombstones (
  id text COLLATE "C" PRIMARY KEY
);

CREATE TABLE intents (
  id text COLLATE "C" PRIMARY KEY,
  expires_at timestamptz NOT NULL
);

CREATE TABLE damaged (
  id text COLLATE "C" PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE
);

-- Ids that no item can have.
CREATE TABLE retired (
  id text COLLATE "C" PRIMARY KEY
);

-- The audit log (docs/architecture/storage.md, Audit log). Events are in the order of their times and numbers. tx is the transaction that
-- added the event: numbers do not become visible in their order, so a reader that follows the log compares snapshots. Nearly all events are
-- uploads, so the index by action has only the others.
CREATE TABLE audit_events (
  time int8 NOT NULL,
  number int8 GENERATED ALWAYS AS IDENTITY,
  tx int8 NOT NULL DEFAULT pg_current_xact_id()::text::int8,
  action int4 NOT NULL,
  bucket_id int8,
  target text COLLATE "C",
  name text,
  size int8,
  detail text,
  actor int4 NOT NULL,
  token_id text COLLATE "C",
  subject text,
  address text,
  request_id text,
  PRIMARY KEY (time, number)
);

CREATE INDEX audit_by_target ON audit_events (target, time, number) WHERE target IS NOT NULL;
CREATE INDEX audit_by_token ON audit_events (token_id, time, number) WHERE token_id IS NOT NULL;
CREATE INDEX audit_by_bucket ON audit_events (bucket_id, time, number) WHERE bucket_id IS NOT NULL;
CREATE INDEX audit_by_action ON audit_events (action, time, number) WHERE action > 1;
CREATE INDEX audit_by_transaction ON audit_events USING brin (tx) WITH (pages_per_range = 16, autosummarize = on);

-- Committed transactions, and those that can no longer commit (is_cancelled): see resolve-commit.ts.
CREATE TABLE batches (
  id uuid PRIMARY KEY,
  is_cancelled bool NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX batches_by_time ON batches (created_at);

${functions}`
