import { changeKinds } from '../item-changes.ts'
import { kindExpression } from '../item-kinds.ts'
import { rankFunctions } from './ranks.ts'

/** The functions of a catalog, which `schema` contains. One call takes one round trip, and its plans are prepared once for each connection. */
const functions = `
${rankFunctions}

-- The step of a revision is random, so that a failover that loses commits does not repeat a revision for another state.
CREATE FUNCTION revision_step() RETURNS int8
LANGUAGE sql VOLATILE AS $$ SELECT 1 + floor(random() * 1048576)::int8 $$;

-- Numbers of contents have 16 random bits for the same reason.
CREATE FUNCTION new_content_id() RETURNS int8
LANGUAGE sql VOLATILE AS $$ SELECT nextval('content_numbers') * 65536 + floor(random() * 65536)::int8 $$;

-- Appends items to a bucket whose row the transaction has locked. The arrays have an element for each item. Returns the number of the first.
CREATE FUNCTION append_items(
  _bucket int8, _ids text[], _extensions text[], _filenames text[], _types text[], _sizes int8[],
  _hashes bytea[], _widths int4[], _heights int4[], _times int8[], _contents bytea[], _expiries int8[],
  _name_lines text[], _now int8, _labels text[], _paths text[]
) RETURNS int8
LANGUAGE plpgsql AS $$
DECLARE
  _count int8 := cardinality(_ids);
  _next int8;
  _total int8;
  _revision int8;
BEGIN
  UPDATE buckets SET revision = revision + revision_step() + _count - 1, total = total + _count,
    bytes = bytes + (SELECT sum(size) FROM unnest(_sizes) AS size)::int8, next_seq = next_seq + _count,
    next_expiry = least(next_expiry, (SELECT min(expiry) FROM unnest(_expiries) AS expiry))
  WHERE id = _bucket RETURNING next_seq, total - _count, revision INTO STRICT _next, _total, _revision;

  WITH item AS MATERIALIZED (
    SELECT *, CASE WHEN content IS NOT NULL THEN new_content_id() END AS content_id
    FROM unnest(_ids, _extensions, _filenames, _types, _sizes, _hashes, _widths, _heights, _times, _contents, _expiries,
        _labels, _paths)
      WITH ORDINALITY
      AS item (id, extension, filename, type, size, hash, width, height, created_at, content, expiry, labels, path, number)
  ), stored AS (
    INSERT INTO contents (id, bucket_id, bytes)
    SELECT content_id, _bucket, content FROM item WHERE content IS NOT NULL
  ), changed AS (
    INSERT INTO changes (bucket_id, number, kind, item_id, time)
    SELECT _bucket, _revision - _count + number, ${changeKinds.added}, id, _now FROM item
  )
  INSERT INTO items
    (bucket_id, seq, id, extension, filename, content_type, size, sha256, width, height, created_at, content_id, item_expires_at,
      labels, path)
  SELECT _bucket, _next - _count + number - 1, id, extension, filename, type, size, hash, width, height,
    created_at, content_id, expiry, labels, path
  FROM item;

  -- The padding stands for the lines that the row has already, or had before its items were removed.
  INSERT INTO item_names AS present (bucket_id, slot, names)
  SELECT _bucket, seq / 32, repeat(E'\\n', (min(seq) % 32)::int4) || string_agg(line, E'\\n' ORDER BY seq)
  FROM (
    SELECT line, _next - _count + number - 1 AS seq FROM unnest(_name_lines) WITH ORDINALITY AS named (line, number)
  ) AS added
  GROUP BY seq / 32
  ON CONFLICT (bucket_id, slot) DO UPDATE
  SET names = present.names || E'\\n' || substr(excluded.names, 1 + ((_next - _count) % 32)::int4);

  -- After the insertion, whose lock retire_ids waits for.
  IF EXISTS (SELECT 1 FROM retired WHERE id = ANY (_ids)) THEN
    RAISE EXCEPTION 'the bytes of this item were set aside by a check';
  END IF;
  DELETE FROM intents WHERE id = ANY (_ids);
  PERFORM grow_ranks(_bucket, _total, _next - _count, _next);
  RETURN _next - _count;
END $$;

-- Removes the rows with the names of items whose rows no item is left of, after these items were removed.
CREATE FUNCTION clear_names(_bucket int8, _seqs int8[]) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM item_names
  WHERE bucket_id = _bucket AND slot IN (SELECT seq / 32 FROM unnest(_seqs) AS seq)
    AND NOT EXISTS (SELECT FROM items WHERE items.bucket_id = _bucket AND seq >= slot * 32 AND seq < slot * 32 + 32)
$$;

-- Completes the removal of items whose rows the transaction has deleted.
CREATE FUNCTION forget_items(_bucket int8, _seqs int8[], _bytes int8, _contents int8[], _tombstones text[])
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _next int8;
BEGIN
  UPDATE buckets SET revision = revision + revision_step(), total = total - cardinality(_seqs),
    bytes = bytes - _bytes
  WHERE id = _bucket RETURNING next_seq INTO STRICT _next;
  DELETE FROM contents WHERE id = ANY (_contents);
  INSERT INTO tombstones (id) SELECT unnest(_tombstones);
  PERFORM change_ranks(_bucket, _next, _seqs, -1);
  PERFORM clear_names(_bucket, _seqs);
END $$;

-- Moves items of a bucket whose row the transaction has locked to its trash. Returns their ids in the order of their numbers, and what
-- their labels are indexed by.
CREATE FUNCTION trash_items(_bucket int8, _ids text[], _now int8, _expiry int8)
RETURNS TABLE (item_id text, item_seq int8, item_type text, item_time int8, item_labels text)
LANGUAGE plpgsql AS $$
DECLARE
  _found text[];
  _seqs int8[];
  _bytes int8;
  _next int8;
  _trash_total int8;
  _trash_next int8;
BEGIN
  SELECT array_agg(id ORDER BY seq), array_agg(seq ORDER BY seq), sum(size)::int8 INTO _found, _seqs, _bytes
  FROM items WHERE bucket_id = _bucket AND id = ANY (_ids);
  IF _found IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO buckets (id, name, created_at) OVERRIDING SYSTEM VALUE VALUES (-_bucket, _bucket || '/trash', _now)
  ON CONFLICT (id) DO NOTHING;
  UPDATE buckets SET revision = revision + revision_step(), total = total + cardinality(_seqs), bytes = bytes + _bytes,
    next_seq = next_seq + cardinality(_seqs)
  WHERE id = -_bucket RETURNING total - cardinality(_seqs), next_seq INTO STRICT _trash_total, _trash_next;
  UPDATE items SET bucket_id = -_bucket, seq = _trash_next - cardinality(_seqs) + number - 1, home_seq = seq,
    deleted_at = _now, expires_at = least(_expiry, item_expires_at)
  FROM unnest(_found) WITH ORDINALITY AS found (found_id, number) WHERE items.id = found_id;
  UPDATE buckets SET revision = revision + revision_step(), total = total - cardinality(_seqs)
  WHERE id = _bucket RETURNING next_seq INTO STRICT _next;
  PERFORM change_ranks(_bucket, _next, _seqs, -1);
  PERFORM clear_names(_bucket, _seqs);
  PERFORM grow_ranks(-_bucket, _trash_total, _trash_next - cardinality(_seqs), _trash_next);
  RETURN QUERY SELECT id, home_seq, content_type, created_at, labels FROM items WHERE id = ANY (_found) ORDER BY home_seq;
END $$;

-- The reverse, for these items of the trash.
CREATE FUNCTION restore_items(_bucket int8, _ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  _seqs int8[];
  _homes int8[];
  _bytes int8;
  _next int8;
BEGIN
  SELECT array_agg(seq ORDER BY seq), array_agg(home_seq ORDER BY home_seq), sum(size)::int8 INTO _seqs, _homes, _bytes
  FROM items WHERE bucket_id = -_bucket AND id = ANY (_ids);
  UPDATE items SET bucket_id = _bucket, seq = home_seq, home_seq = NULL, deleted_at = NULL, expires_at = NULL
  WHERE bucket_id = -_bucket AND id = ANY (_ids);
  UPDATE buckets SET revision = revision + revision_step(), total = total + cardinality(_seqs)
  WHERE id = _bucket RETURNING next_seq INTO STRICT _next;
  PERFORM change_ranks(_bucket, _next, _homes, 1);
  UPDATE buckets SET revision = revision + revision_step(), total = total - cardinality(_seqs), bytes = bytes - _bytes
  WHERE id = -_bucket RETURNING next_seq INTO STRICT _next;
  PERFORM change_ranks(-_bucket, _next, _seqs, -1);
END $$;

-- Ids that no item, tombstone or unfinished upload has.
CREATE FUNCTION unreferenced_ids(_ids text[]) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
  SELECT id FROM unnest(_ids) WITH ORDINALITY AS wanted (id, number)
  WHERE NOT EXISTS (SELECT 1 FROM items WHERE items.id = wanted.id)
    AND NOT EXISTS (SELECT 1 FROM tombstones WHERE tombstones.id = wanted.id)
    AND NOT EXISTS (SELECT 1 FROM uploads WHERE item_id = wanted.id AND finished = 0)
  ORDER BY number
$$;

-- Permanently reserves those ids. The lock waits for transactions that have added items and delays others, so that no item gets an
-- id between the check and the commit. It fails soon, because all additions queue behind its wait, for example for a VACUUM.
CREATE FUNCTION retire_ids(_ids text[]) RETURNS SETOF text
LANGUAGE plpgsql SET lock_timeout = '500ms' AS $$
DECLARE
  _retired text[];
BEGIN
  LOCK TABLE items IN SHARE MODE;
  _retired := ARRAY(SELECT unreferenced_ids(_ids));
  INSERT INTO retired (id) SELECT unnest(_retired) ON CONFLICT DO NOTHING;
  RETURN QUERY SELECT unnest(_retired);
END $$;

-- As retire_ids, of those ids whose intents have expired.
CREATE FUNCTION retire_intents(_ids text[]) RETURNS SETOF text
LANGUAGE sql AS $$
  SELECT retire_ids(ARRAY(
    SELECT id FROM unnest(_ids) WITH ORDINALITY AS wanted (id, number) JOIN intents USING (id)
    WHERE expires_at <= clock_timestamp() ORDER BY number))
$$;

-- Fails on a replica, where a token may still be valid that was revoked.
CREATE FUNCTION require_primary() RETURNS bool
LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE read_only_sql_transaction USING MESSAGE = 'the server is a replica';
  END IF;
  RETURN true;
END $$;
`

/**
 * The tables of a new catalog, and its functions. Times are milliseconds since 1970, sizes are bytes, durations are milliseconds, flags are 0
 * or 1. Text is compared byte by byte (`C`), as SQLite does. Tables that belong to a bucket have its id, so that they can be distributed by
 * it. From the first release on, a change is a migration as well (`migrate` of database.ts).
 */
export const schema = `
CREATE TABLE meta (
  key text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

INSERT INTO meta (key, value) VALUES ('epoch', replace(gen_random_uuid()::text, '-', ''));

-- The trash of the bucket n is the bucket -n, in which items are in the order of their deletion (catalog/trash.ts). item_days is the
-- default lifetime of new items. next_expiry is when the next item of the bucket expires; null if none does. changes_start is the number of
-- the last change that was removed from the feed.
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
  next_expiry int8,
  changes_start int8 NOT NULL DEFAULT 0
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
  revoked_at int8,
  note text,
  limited_by text COLLATE "C"
) WITH (fillfactor = 70);

CREATE INDEX tokens_by_bucket ON tokens (bucket_id);

-- The limits of a token (core/token-limits.ts), and what was uploaded with it and with the tokens that replaced it: their limited_by is
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

-- A webhook reads the feed of its bucket (catalog/webhooks.ts). position is the number of the last change that it has delivered, null if it is
-- not a number of this catalog; pending is the last change of the delivery that failed. kinds are separated by spaces, and empty for all.
-- state is 1 for on, 2 for off, 3 for gone, 4 for failed. The owner delivers until owned_until.
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

-- thumbhash and duration are what the first render of an item's variants has found. renamed is 1 if the filename has changed: responses that
-- are in memory have the earlier one. An item expires at item_expires_at. In the trash, home_seq is the number that an item had before its
-- deletion, and it leaves the trash at expires_at, which is not after item_expires_at. labels is a JSON object, null for none. path is
-- where the file was within an uploaded folder, null for most items.
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
  labels text,
  path text COLLATE "C",
  PRIMARY KEY (bucket_id, seq)
);

-- For lists of items with filters (storage/catalog/item-lists.ts).
CREATE INDEX items_by_kind ON items (bucket_id, ${kindExpression}, created_at, seq);
-- For searches by bytes and by path (storage/catalog/file-search.ts). A hash is random, so that its first bytes nearly identify it.
CREATE INDEX items_by_hash ON items (bucket_id, substr(sha256, 1, 8), seq);
CREATE INDEX items_by_path ON items (bucket_id, path, seq) WHERE path IS NOT NULL;
CREATE INDEX items_renamed ON items (id) WHERE renamed IS NOT NULL;
CREATE INDEX items_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX items_item_expiry ON items (bucket_id, item_expires_at) WHERE item_expires_at IS NOT NULL;

-- The names of items, as searches compare them: a line for each of 32 sequence numbers (core/names.ts). In the row and not compressed, because
-- a search reads all of them.
CREATE TABLE item_names (
  bucket_id int8 NOT NULL,
  slot int8 NOT NULL,
  names text COLLATE "C" NOT NULL,
  PRIMARY KEY (bucket_id, slot)
) WITH (toast_tuple_target = 8160);

ALTER TABLE item_names ALTER COLUMN names SET STORAGE EXTERNAL;

-- The labels of a bucket that items have, with the number of these items, and the items of each label (catalog/labels.ts). Both are derived
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

-- The feed (catalog/feed.ts). The number of a change is a revision of its bucket, which is locked until the commit, so numbers become visible
-- in their order.
CREATE TABLE changes (
  bucket_id int8 NOT NULL,
  number int8 NOT NULL,
  kind int4 NOT NULL,
  item_id text COLLATE "C" NOT NULL,
  time int8 NOT NULL,
  PRIMARY KEY (bucket_id, number)
);

-- Committed transactions, and those that can no longer commit (is_cancelled): see storage/catalog/postgres/writer.ts.
CREATE TABLE batches (
  id uuid PRIMARY KEY,
  is_cancelled bool NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX batches_by_time ON batches (created_at);

${functions}`
