import { itemDefinitions } from '../../items/item-columns.ts'
import { isTakenUnread, kindExpression, listExpression } from '../../items/item-kinds.ts'
import { functions } from './functions.ts'

/**
 * The tables of a new catalog, and its functions. Times are milliseconds since 1970, sizes are bytes, durations are milliseconds, flags are 0
 * or 1. Text is compared byte by byte (`C`), as SQLite does. Tables that belong to a bucket have its id, so that they can be distributed by
 * it. From the first release on, a change is a migration as well (`migrate` of postgres-database.ts).
 */
export const schema = `
CREATE TABLE meta (
  key text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

INSERT INTO meta (key, value) VALUES ('epoch', replace(gen_random_uuid()::text, '-', '')), ('place', '');

-- The trash of the bucket n is the bucket -n, in which items are in the order of their deletion (catalog/items/trash.ts). item_days is the
-- default lifetime of new items. next_expiry is when the next item of the bucket expires; null if none does. changes_start is the number of
-- the last change that was removed from the feed, and renewed the revision at the last renewal of the history (catalog/feed/history.ts). The expired
-- items up to counted_expiry and counted_seq are counted (catalog/items/expired-items.ts). What was added and removed on usage_day is not in
-- bucket_usage yet (catalog/usage.ts); a trash has no usage.
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
  max_file_size int8,
  types text,
  reserved_items int8 NOT NULL DEFAULT 0 CHECK (reserved_items >= 0),
  reserved_bytes int8 NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0),
  trash_days int4 NOT NULL DEFAULT 0,
  private int4 NOT NULL DEFAULT 0,
  signed_pages int4 NOT NULL DEFAULT 0,
  public_keys int4 NOT NULL DEFAULT 0,
  public_list int4 NOT NULL DEFAULT 0,
  url_uploads int4 NOT NULL DEFAULT 1,
  variants text,
  public_variants text,
  crop text,
  remove_metadata int4 NOT NULL DEFAULT 0,
  item_days int4,
  next_expiry int8,
  changes_start int8 NOT NULL DEFAULT 0,
  renewed int8 NOT NULL DEFAULT 0,
  counted_expiry int8 NOT NULL DEFAULT -1,
  counted_seq int8 NOT NULL DEFAULT -1,
  counted_items int8 NOT NULL DEFAULT 0 CHECK (counted_items >= 0),
  counted_bytes int8 NOT NULL DEFAULT 0 CHECK (counted_bytes >= 0),
  usage_day int8 NOT NULL DEFAULT 0,
  added_items int8 NOT NULL DEFAULT 0,
  added_bytes int8 NOT NULL DEFAULT 0,
  removed_items int8 NOT NULL DEFAULT 0,
  removed_bytes int8 NOT NULL DEFAULT 0,
  creation_key bytea,
  creation bytea
) WITH (fillfactor = 25);

-- private is 2 of a bucket that is deleted, until what it held is removed (catalog/bucket-removal.ts).
CREATE INDEX buckets_deleted ON buckets (id) WHERE private = 2;

-- The request with an idempotency key that created the bucket (catalog/bucket-creation.ts).
CREATE UNIQUE INDEX buckets_by_creation ON buckets (creation_key) WHERE creation_key IS NOT NULL;

-- The usage of a bucket on a day, in days since 1970 (catalog/usage.ts). By day first, so that the rows that a process adds to each minute are on few
-- pages. The day 0 has the sum of all that are no longer kept.
CREATE TABLE bucket_usage (
  day int8 NOT NULL,
  bucket_id int8 NOT NULL,
  added_items int8 NOT NULL DEFAULT 0,
  added_bytes int8 NOT NULL DEFAULT 0,
  removed_items int8 NOT NULL DEFAULT 0,
  removed_bytes int8 NOT NULL DEFAULT 0,
  downloaded_bytes int8 NOT NULL DEFAULT 0,
  list_requests int8 NOT NULL DEFAULT 0,
  download_requests int8 NOT NULL DEFAULT 0,
  upload_requests int8 NOT NULL DEFAULT 0,
  other_requests int8 NOT NULL DEFAULT 0,
  PRIMARY KEY (day, bucket_id)
) WITH (fillfactor = 70);

-- With what sums of many days read. Requests and downloads, which are added each minute, do not change it.
CREATE INDEX usage_by_bucket ON bucket_usage (bucket_id, day) INCLUDE (added_items, added_bytes, removed_items, removed_bytes);

-- The names of deleted buckets whose usage is kept.
CREATE TABLE deleted_buckets (
  id int8 PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  created_at int8 NOT NULL,
  deleted_at int8 NOT NULL
);

CREATE INDEX deleted_buckets_by_name ON deleted_buckets (name, id);

-- The tokens of buckets; service tokens, whose ids begin with svc_ and whose bucket_id is null; and the users of an issuer, whose ids begin with usr_: the
-- next request of a user whose row is missing adds one, so the row of a revoked user stays. replaced_by is the id of the token that replaced this one: a
-- token has one successor at most. The rows that replaced_by and limited_by name stay until the token is revoked, and limits until its uploads have ended
-- (catalog/checks/column-checks.ts).
CREATE TABLE tokens (
  id text COLLATE "C" PRIMARY KEY,
  number int8 GENERATED ALWAYS AS IDENTITY,
  bucket_id int8 REFERENCES buckets (id),
  name text NOT NULL,
  hash bytea NOT NULL UNIQUE,
  scopes text NOT NULL,
  created_at int8 NOT NULL,
  expires_at int8,
  last_used_at int8,
  revoked_at int8,
  note text,
  limited_by text COLLATE "C",
  replaced_by text COLLATE "C"
) WITH (fillfactor = 70);

CREATE INDEX tokens_by_bucket ON tokens (bucket_id);

-- The limits of a token (core/quotas.ts), and what was uploaded with it and with the tokens that replaced it: their limited_by is
-- this id. Tokens without limits have no row. A row is changed with the lock of its bucket.
CREATE TABLE token_limits (
  id text COLLATE "C" PRIMARY KEY,
  bucket_id int8 NOT NULL REFERENCES buckets (id),
  limits text NOT NULL,
  items int8 NOT NULL DEFAULT 0,
  bytes int8 NOT NULL DEFAULT 0,
  reserved_items int8 NOT NULL DEFAULT 0 CHECK (reserved_items >= 0),
  reserved_bytes int8 NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0)
) WITH (fillfactor = 50);

-- bucket_id is that of the token, or one to which a service token has uploaded. bytes is the size of the files as they were sent, null if it is not known.
CREATE TABLE keyed_requests (
  token_id text COLLATE "C" NOT NULL REFERENCES tokens (id),
  bucket_id int8 NOT NULL,
  key text COLLATE "C" NOT NULL,
  fingerprint bytea NOT NULL,
  items json NOT NULL,
  bytes int8,
  expires_at int8 NOT NULL,
  PRIMARY KEY (token_id, bucket_id, key)
);

CREATE INDEX keyed_requests_by_expiry ON keyed_requests (expires_at);

-- A key with a higher number is newer. A secret has 32 bytes.
CREATE TABLE signing_keys (
  number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  secret bytea NOT NULL,
  created_at int8 NOT NULL
);

-- A webhook reads the feed of its bucket (catalog/feed/webhooks.ts). position is the number of the last change that it has delivered, null if it is
-- not a number of this catalog; pending is the last change of the delivery that failed. kinds are separated by spaces, and empty for all.
-- state is 1 for on, 2 for off, 3 for gone, 4 for failed. attempted_at is when the last attempt failed, and failing_for the time between the attempts
-- that have failed. The owner delivers until owned_until.
CREATE TABLE webhooks (
  number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  bucket_id int8 NOT NULL REFERENCES buckets (id),
  url text NOT NULL,
  kinds text NOT NULL,
  batch int4 NOT NULL,
  secret text NOT NULL,
  earlier_secret text,
  earlier_until int8,
  state int4 NOT NULL,
  created_at int8 NOT NULL,
  position int8,
  pending int8,
  failures int8 NOT NULL DEFAULT 0,
  failing_since int8,
  next_attempt int8,
  attempted_at int8,
  failing_for int8 NOT NULL DEFAULT 0,
  owner text,
  owned_until int8,
  deliveries int8 NOT NULL DEFAULT 0
);

CREATE INDEX webhooks_by_bucket ON webhooks (bucket_id);

-- The last deliveries of each webhook. manual is 1 for those that somebody asked for.
CREATE TABLE webhook_deliveries (
  webhook int8 NOT NULL REFERENCES webhooks (number),
  number int8 NOT NULL,
  message_id text NOT NULL,
  type text NOT NULL,
  time int8 NOT NULL,
  duration int8 NOT NULL,
  changes int8 NOT NULL,
  first_position int8,
  last_position int8,
  status int4,
  reason text,
  response text NOT NULL,
  manual int4 NOT NULL,
  PRIMARY KEY (webhook, number)
);

-- storage/catalog/items/item-columns.ts describes the columns.
CREATE TABLE items (
${itemDefinitions('postgres')},
  PRIMARY KEY (bucket_id, seq)
);

-- For lists of items with filters (storage/catalog/lists/item-lists.ts).
CREATE INDEX items_by_kind ON items (bucket_id, ${listExpression}, created_at, seq);
CREATE INDEX items_by_taken ON items (bucket_id, ${kindExpression}, taken_at, seq) WHERE taken_at IS NOT NULL;
CREATE INDEX items_by_name ON items (bucket_id, ${kindExpression}, name_key, seq);
CREATE INDEX items_unread ON items (bucket_id, seq) WHERE ${isTakenUnread};
-- For searches by bytes and by path. A hash is random, so that its first bytes nearly identify it.
CREATE INDEX items_by_hash ON items (bucket_id, substr(sha256, 1, 8), seq);
CREATE INDEX items_by_path ON items (bucket_id, path, seq) WHERE path IS NOT NULL;
CREATE INDEX items_renamed ON items (id) WHERE renamed IS NOT NULL;
CREATE INDEX items_expiry ON items (bucket_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX items_item_expiry ON items (bucket_id, item_expires_at, seq) WHERE item_expires_at IS NOT NULL;

-- The names of items, as searches compare them: a line for each of 32 sequence numbers (core/names.ts). In the row and not compressed, because
-- a search reads all of them.
CREATE TABLE item_names (
  bucket_id int8 NOT NULL,
  slot int8 NOT NULL,
  names text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket_id, slot)
) WITH (toast_tuple_target = 8160);

ALTER TABLE item_names ALTER COLUMN names SET STORAGE EXTERNAL;

-- The labels of a bucket that items have, with the number of these items, and the items of each label (catalog/items/labels.ts). Both are derived
-- from items.labels. Items in a trash are not in them.
CREATE TABLE labels (
  id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  bucket_id int8 NOT NULL,
  key text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  items int8 NOT NULL CHECK (items > 0),
  UNIQUE (bucket_id, key, value)
) WITH (fillfactor = 70);

CREATE INDEX labels_by_items ON labels (bucket_id, key, items DESC, value);

CREATE TABLE item_labels (
  bucket_id int8 NOT NULL,
  label_id int8 NOT NULL,
  kind int4 NOT NULL,
  created_at int8 NOT NULL,
  seq int8 NOT NULL,
  PRIMARY KEY (bucket_id, label_id, kind, created_at, seq)
);

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

-- Expired items of a bucket that are counted and not removed yet, in each block of a level of the ranks that has some.
CREATE TABLE expired_counts (
  bucket_id int8 NOT NULL,
  level int4 NOT NULL,
  slot int8 NOT NULL,
  items int8 NOT NULL,
  PRIMARY KEY (bucket_id, level, slot)
) WITH (fillfactor = 70);

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
  multipart text,
  token_id text COLLATE "C",
  limited_by text COLLATE "C"
) WITH (fillfactor = 70);

CREATE INDEX uploads_by_bucket ON uploads (bucket_id);
CREATE INDEX uploads_by_expiry ON uploads (expires_at, id);

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

-- The keys of items (catalog/objects/object-keys.ts), compared byte by byte. item_size is the size of the item, so that lists read no items. parts is a JSON list of the sizes of the parts of which the object was made,
-- null for others, headers a JSON object, and public whether everybody may read the object. Items in a trash have no key.
CREATE TABLE object_keys (
  bucket_id int8 NOT NULL,
  key bytea NOT NULL CHECK (length(key) BETWEEN 1 AND 1024),
  item_id text COLLATE "C" NOT NULL UNIQUE,
  item_size int8 NOT NULL,
  etag text NOT NULL,
  parts text,
  public int4 NOT NULL,
  headers text NOT NULL,
  modified_at int8 NOT NULL,
  PRIMARY KEY (bucket_id, key)
);

-- How many items of a block of 8,192 numbers have a key, so that lists of items without one pass by blocks in which all have one
-- (catalog/objects/keyed-counts.ts).
CREATE TABLE keyed_counts (
  bucket_id int8 NOT NULL,
  slot int8 NOT NULL,
  items int8 NOT NULL,
  PRIMARY KEY (bucket_id, slot)
) WITH (fillfactor = 70);

-- Objects that are uploaded in parts (catalog/objects/multipart-uploads.ts). item, etag and parts are those of the object that the upload has become, null
-- before; the row then stays for a day. Each part is a blob of its own, whose id is item_id.
CREATE TABLE object_uploads (
  id text COLLATE "C" PRIMARY KEY,
  bucket_id int8 NOT NULL REFERENCES buckets (id),
  key bytea NOT NULL,
  headers text NOT NULL,
  public int4 NOT NULL,
  checksum text,
  created_at int8 NOT NULL,
  expires_at int8 NOT NULL,
  token_id text COLLATE "C",
  limited_by text COLLATE "C",
  item text,
  etag text,
  parts text
) WITH (fillfactor = 70);

CREATE INDEX object_uploads_by_key ON object_uploads (bucket_id, key, id);
CREATE INDEX object_uploads_by_expiry ON object_uploads (expires_at, id);

CREATE TABLE object_parts (
  upload_id text COLLATE "C" NOT NULL REFERENCES object_uploads (id) ON DELETE CASCADE,
  number int4 NOT NULL,
  item_id text COLLATE "C" NOT NULL UNIQUE,
  size int8 NOT NULL,
  etag text NOT NULL,
  checksum text,
  stored_at int8 NOT NULL,
  PRIMARY KEY (upload_id, number)
);

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

-- The feed (catalog/feed/feed.ts). The number of a change is a revision of its bucket, which is locked until the commit, so numbers become visible
-- in their order.
CREATE TABLE changes (
  bucket_id int8 NOT NULL,
  number int8 NOT NULL,
  kind int4 NOT NULL,
  item_id text COLLATE "C" NOT NULL,
  time int8 NOT NULL,
  PRIMARY KEY (bucket_id, number)
);

-- Committed transactions, and those that can no longer commit (is_cancelled): see storage/catalog/engines/postgres/postgres-writer.ts.
CREATE TABLE batches (
  id uuid PRIMARY KEY,
  is_cancelled bool NOT NULL DEFAULT false,
  -- Of the process (storage/catalog/moved-data.ts).
  fence int4,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX batches_by_time ON batches (created_at);

${functions}`
