import type { DatabaseSync } from 'node:sqlite'
import { CatalogVersionError, developmentText } from '../../catalog.ts'
import { itemDefinitions } from '../../items/item-columns.ts'
import { isTakenUnread, kindExpression, listExpression } from '../../items/item-kinds.ts'
import { hashBlock } from '../../lists/hash-source.ts'
import { otherTablesText } from '../../schema-text.ts'
import { integer } from '../../statements.ts'
import { one, prepareSnapshots, runTransaction } from './sqlite-database.ts'
import { objectTables } from './sqlite-object-schema.ts'
import { schemaDifference } from './sqlite-schema-check.ts'

/**
 * The tables of a new catalog. Times are milliseconds since 1970, sizes are bytes, durations are milliseconds, flags are 0 or 1. From the
 * first release on, a change is a migration as well (`released`).
 */
const schema = `
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (key, value) VALUES ('epoch', lower(hex(randomblob(16)))), ('place', '');

-- The trash of the bucket n is the bucket -n, in which items are in the order of their deletion (catalog/items/trash.ts). item_days is the
-- default lifetime of new items. next_expiry is when the next item of the bucket expires; null if none does. changes_start is the number of
-- the last change that was removed from the feed, and renewed the revision at the last renewal of the history (catalog/feed/history.ts). The expired
-- items up to counted_expiry and counted_seq are counted (catalog/items/expired-items.ts). What was added and removed on usage_day is not in
-- bucket_usage yet (catalog/usage.ts); a trash has no usage.
CREATE TABLE buckets (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  revision INTEGER NOT NULL DEFAULT 0,
  total INTEGER NOT NULL DEFAULT 0 CHECK (total >= 0),
  bytes INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
  next_seq INTEGER NOT NULL DEFAULT 0,
  max_items INTEGER,
  max_bytes INTEGER,
  max_file_size INTEGER,
  types TEXT,
  reserved_items INTEGER NOT NULL DEFAULT 0 CHECK (reserved_items >= 0),
  reserved_bytes INTEGER NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0),
  trash_days INTEGER NOT NULL DEFAULT 0,
  private INTEGER NOT NULL DEFAULT 0,
  signed_pages INTEGER NOT NULL DEFAULT 0,
  public_keys INTEGER NOT NULL DEFAULT 0,
  public_list INTEGER NOT NULL DEFAULT 0,
  url_uploads INTEGER NOT NULL DEFAULT 1,
  variants TEXT,
  public_variants TEXT,
  crop TEXT,
  remove_metadata INTEGER NOT NULL DEFAULT 0,
  item_days INTEGER,
  next_expiry INTEGER,
  changes_start INTEGER NOT NULL DEFAULT 0,
  renewed INTEGER NOT NULL DEFAULT 0,
  counted_expiry INTEGER NOT NULL DEFAULT -1,
  counted_seq INTEGER NOT NULL DEFAULT -1,
  counted_items INTEGER NOT NULL DEFAULT 0 CHECK (counted_items >= 0),
  counted_bytes INTEGER NOT NULL DEFAULT 0 CHECK (counted_bytes >= 0),
  usage_day INTEGER NOT NULL DEFAULT 0,
  added_items INTEGER NOT NULL DEFAULT 0,
  added_bytes INTEGER NOT NULL DEFAULT 0,
  removed_items INTEGER NOT NULL DEFAULT 0,
  removed_bytes INTEGER NOT NULL DEFAULT 0,
  creation_key BLOB,
  creation BLOB
) STRICT;

-- private is 2 of a bucket that is deleted, until what it held is removed (catalog/bucket-removal.ts).
CREATE INDEX buckets_deleted ON buckets (id) WHERE private = 2;

-- The request with an idempotency key that created the bucket (catalog/bucket-creation.ts).
CREATE UNIQUE INDEX buckets_by_creation ON buckets (creation_key) WHERE creation_key IS NOT NULL;

-- The usage of a bucket on a day, in days since 1970 (catalog/usage.ts). By day first, so that the rows that a process adds to each minute are on few
-- pages. The day 0 has the sum of all that are no longer kept.
CREATE TABLE bucket_usage (
  day INTEGER NOT NULL,
  bucket_id INTEGER NOT NULL,
  added_items INTEGER NOT NULL DEFAULT 0,
  added_bytes INTEGER NOT NULL DEFAULT 0,
  removed_items INTEGER NOT NULL DEFAULT 0,
  removed_bytes INTEGER NOT NULL DEFAULT 0,
  downloaded_bytes INTEGER NOT NULL DEFAULT 0,
  list_requests INTEGER NOT NULL DEFAULT 0,
  download_requests INTEGER NOT NULL DEFAULT 0,
  upload_requests INTEGER NOT NULL DEFAULT 0,
  other_requests INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (day, bucket_id)
) STRICT, WITHOUT ROWID;

-- With what sums of many days read. Requests and downloads, which are added each minute, do not change it.
CREATE INDEX usage_by_bucket ON bucket_usage (bucket_id, day, added_items, added_bytes, removed_items, removed_bytes);

-- The names of deleted buckets whose usage is kept.
CREATE TABLE deleted_buckets (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  deleted_at INTEGER NOT NULL
) STRICT;

CREATE INDEX deleted_buckets_by_name ON deleted_buckets (name, id);

-- The tokens of buckets; service tokens, whose ids begin with svc_ and whose bucket_id is null; and the users of an issuer, whose ids begin with usr_: the
-- next request of a user whose row is missing adds one, so the row of a revoked user stays. replaced_by is the id of the token that replaced this one: a
-- token has one successor at most. The rows that replaced_by and limited_by name stay until the token is revoked, and limits until its uploads have ended
-- (catalog/checks/column-checks.ts).
CREATE TABLE tokens (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  bucket_id INTEGER REFERENCES buckets (id),
  name TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  last_used_at INTEGER,
  revoked_at INTEGER,
  note TEXT,
  limited_by TEXT,
  replaced_by TEXT
) STRICT;

CREATE INDEX tokens_by_bucket ON tokens (bucket_id);

-- The limits of a token (core/quotas.ts), and what was uploaded with it and with the tokens that replaced it: their limited_by is
-- this id. Tokens without limits have no row.
CREATE TABLE token_limits (
  id TEXT PRIMARY KEY NOT NULL,
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  limits TEXT NOT NULL,
  items INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0,
  reserved_items INTEGER NOT NULL DEFAULT 0 CHECK (reserved_items >= 0),
  reserved_bytes INTEGER NOT NULL DEFAULT 0 CHECK (reserved_bytes >= 0)
) STRICT, WITHOUT ROWID;

-- bucket_id is that of the token, or one to which a service token has uploaded. bytes is the size of the files as they were sent, null if it is not known.
CREATE TABLE keyed_requests (
  token_id TEXT NOT NULL REFERENCES tokens (id),
  bucket_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  fingerprint BLOB NOT NULL,
  items TEXT NOT NULL,
  bytes INTEGER,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (token_id, bucket_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX keyed_requests_by_expiry ON keyed_requests (expires_at);

-- A key with a higher number is newer. A secret has 32 bytes.
CREATE TABLE signing_keys (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  secret BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- A webhook reads the feed of its bucket (catalog/feed/webhooks.ts). position is the number of the last change that it has delivered, null if it is
-- not a number of this catalog; pending is the last change of the delivery that failed. kinds are separated by spaces, and empty for all.
-- state is 1 for on, 2 for off, 3 for gone, 4 for failed. attempted_at is when the last attempt failed, and failing_for the time between the attempts
-- that have failed. The owner delivers until owned_until.
CREATE TABLE webhooks (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  url TEXT NOT NULL,
  kinds TEXT NOT NULL,
  batch INTEGER NOT NULL,
  secret TEXT NOT NULL,
  earlier_secret TEXT,
  earlier_until INTEGER,
  state INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  position INTEGER,
  pending INTEGER,
  failures INTEGER NOT NULL DEFAULT 0,
  failing_since INTEGER,
  next_attempt INTEGER,
  attempted_at INTEGER,
  failing_for INTEGER NOT NULL DEFAULT 0,
  owner TEXT,
  owned_until INTEGER,
  deliveries INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX webhooks_by_bucket ON webhooks (bucket_id);

-- The last deliveries of each webhook. manual is 1 for those that somebody asked for.
CREATE TABLE webhook_deliveries (
  webhook INTEGER NOT NULL REFERENCES webhooks (number),
  number INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  type TEXT NOT NULL,
  time INTEGER NOT NULL,
  duration INTEGER NOT NULL,
  changes INTEGER NOT NULL,
  first_position INTEGER,
  last_position INTEGER,
  status INTEGER,
  reason TEXT,
  response TEXT NOT NULL,
  manual INTEGER NOT NULL,
  PRIMARY KEY (webhook, number)
) STRICT, WITHOUT ROWID;

-- storage/catalog/items/item-columns.ts describes the columns. edited is the revision of the bucket at the last change of the row, null for a
-- row that never changed: a backup reads the rows that changed while it ran.
CREATE TABLE items (
${itemDefinitions('sqlite')},
  PRIMARY KEY (bucket_id, seq)
) STRICT, WITHOUT ROWID;

-- For lists of items with filters (storage/catalog/lists/item-lists.ts).
CREATE INDEX items_by_kind ON items (bucket_id, ${listExpression}, created_at, seq);
CREATE INDEX items_by_taken ON items (bucket_id, ${kindExpression}, taken_at, seq) WHERE taken_at IS NOT NULL;
CREATE INDEX items_by_name ON items (bucket_id, ${kindExpression}, name_key, seq);
CREATE INDEX items_unread ON items (bucket_id, seq) WHERE ${isTakenUnread};
-- For searches by bytes (storage/catalog/lists/hash-source.ts) and by path. A hash is random, so that its first bytes nearly identify it.
CREATE INDEX items_by_hash ON items (bucket_id, ${hashBlock}, substr(sha256, 1, 8), seq);
CREATE INDEX items_by_path ON items (bucket_id, path, seq) WHERE path IS NOT NULL;
CREATE INDEX items_edited ON items (bucket_id, edited) WHERE edited IS NOT NULL;
CREATE INDEX items_renamed ON items (id) WHERE renamed IS NOT NULL;
CREATE INDEX items_focused ON items (id) WHERE focus IS NOT NULL;
CREATE INDEX items_expiry ON items (bucket_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX items_item_expiry ON items (bucket_id, item_expires_at, seq) WHERE item_expires_at IS NOT NULL;
CREATE INDEX items_expiring ON items (id, item_expires_at) WHERE item_expires_at IS NOT NULL;

-- The names of items, as searches compare them: a line for each of 32 sequence numbers (core/names.ts).
CREATE TABLE item_names (
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  slot INTEGER NOT NULL,
  names TEXT NOT NULL,
  PRIMARY KEY (bucket_id, slot)
) STRICT, WITHOUT ROWID;

-- The labels of a bucket that items have, with the number of these items, and the items of each label (catalog/items/labels.ts). Both are derived
-- from items.labels. Items in a trash are not in them.
CREATE TABLE labels (
  id INTEGER PRIMARY KEY,
  bucket_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  items INTEGER NOT NULL CHECK (items > 0),
  UNIQUE (bucket_id, key, value)
) STRICT;

CREATE INDEX labels_by_items ON labels (bucket_id, key, items DESC, value);

CREATE TABLE item_labels (
  bucket_id INTEGER NOT NULL,
  label_id INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (bucket_id, label_id, kind, created_at, seq)
) STRICT, WITHOUT ROWID;

-- The bytes of small items. Rows are apart from those of items, so that a listing does not read them. AUTOINCREMENT: an id is never reused,
-- so a read by id never returns the bytes of another item. There is no foreign key, because it would need an index on items.content_id.
CREATE TABLE contents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  bytes BLOB NOT NULL
) STRICT;

CREATE TABLE ranks (
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  level INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  counts BLOB NOT NULL,
  PRIMARY KEY (bucket_id, level, slot)
) STRICT, WITHOUT ROWID;

-- Expired items of a bucket that are counted and not removed yet, in each block of a level of the ranks that has some.
CREATE TABLE expired_counts (
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  level INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  items INTEGER NOT NULL,
  PRIMARY KEY (bucket_id, level, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE uploads (
  id TEXT PRIMARY KEY NOT NULL,
  bucket_id INTEGER NOT NULL REFERENCES buckets (id),
  length INTEGER,
  received INTEGER NOT NULL DEFAULT 0 CHECK (received >= 0 AND (length IS NULL OR received <= length)),
  metadata TEXT,
  filename TEXT,
  declared_type TEXT,
  item_id TEXT NOT NULL UNIQUE,
  finished INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL,
  multipart TEXT,
  token_id TEXT,
  limited_by TEXT
) STRICT;

CREATE INDEX uploads_by_expiry ON uploads (expires_at, id);

-- The bytes of unfinished uploads that are in a remote store, as parts, or too few for a part, as pieces.
CREATE TABLE upload_parts (
  upload_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  size INTEGER NOT NULL,
  etag TEXT NOT NULL,
  PRIMARY KEY (upload_id, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE upload_pieces (
  upload_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (upload_id, number)
) STRICT;

${objectTables}

CREATE TABLE tombstones (
  id TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;

-- Ids of blobs that are being committed. The transaction that adds the item removes its intent. A sweep may remove the blob after
-- expires_at.
CREATE TABLE intents (
  id TEXT PRIMARY KEY NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Items whose bytes a check found changed.
CREATE TABLE damaged (
  id TEXT PRIMARY KEY NOT NULL REFERENCES items (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Ids that a check took from bytes without an item: such an id never becomes an item's, so that an upload which commits too late fails
-- instead of naming bytes that were moved away. item-table.ts refuses them. A trigger would make SQLite copy each page that an insert
-- changes, because the trigger may fail.
CREATE TABLE retired (
  id TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;

-- The audit log (docs/architecture/storage.md, Audit log). The number of an event is at least 2048 times its time, and increases with each
-- event, so that numbers are both the order of the events and an index by time. Numbers are not reused. Nearly all events are uploads,
-- so the index by action has only the others.
CREATE TABLE audit_events (
  id INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,
  action INTEGER NOT NULL,
  bucket_id INTEGER,
  target TEXT,
  name TEXT,
  size INTEGER,
  detail TEXT,
  actor INTEGER NOT NULL,
  token_id TEXT,
  subject TEXT,
  address TEXT,
  request_id TEXT
) STRICT;

CREATE INDEX audit_by_target ON audit_events (target) WHERE target IS NOT NULL;
CREATE INDEX audit_by_token ON audit_events (token_id) WHERE token_id IS NOT NULL;
CREATE INDEX audit_by_bucket ON audit_events (bucket_id) WHERE bucket_id IS NOT NULL;
CREATE INDEX audit_by_action ON audit_events (action) WHERE action > 1;

-- The feed (catalog/feed/feed.ts). The number of a change is a revision of its bucket, so numbers are in the order of the commits. The table has no
-- index and no foreign key, because each upload adds a row.
CREATE TABLE changes (
  bucket_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  item_id TEXT NOT NULL,
  time INTEGER NOT NULL,
  PRIMARY KEY (bucket_id, number)
) STRICT, WITHOUT ROWID;
`

/** The version of the schema of the first release. Development versions have lower ones. */
export const firstVersion = 20
/** The last development version, whose tables have earlier names. Commit 661e7aee writes it. */
const lastDevelopment = 19

/**
 * The migration at index n leads from version 20 + n, which is stored in PRAGMA user_version, to the next one. It is not edited once
 * released. `schema` has the result of all of them; version 20 has no release yet, and is edited there.
 */
const released: readonly string[] = []

/** 'mbkt' in ASCII; `file catalog.db` prints it. */
const applicationId = 0x6d626b74

/** Creates the catalog, or migrates it to this program's version; several processes may call it at the same time. */
export function migrate(db: DatabaseSync, migrations = released): void {
  const newest = firstVersion + migrations.length
  if (requireVersion(db, migrations) === newest) return
  runTransaction(db, () => {
    // Read again under the lock: another process may have migrated it.
    const present = readVersion(db, newest)
    for (const statements of present === 0 ? [schema] : migrations.slice(present - firstVersion))
      db.exec(statements)
    db.exec(`PRAGMA user_version = ${newest}; PRAGMA application_id = ${applicationId}`)
  })
}

/** The version of the catalog, 0 for an empty file. Changes nothing. Throws CatalogVersionError if this program cannot open it. */
export function requireVersion(db: DatabaseSync, migrations = released): number {
  const newest = firstVersion + migrations.length
  // One snapshot, because another process may migrate it between two reads.
  const present = prepareSnapshots(db).run(() => readVersion(db, newest))
  // A migration that changes a table also changes the text that SQLite keeps of it: compare what `schema` has then.
  if (present === newest && migrations === released) requireSchema(db, newest)
  return present
}

/** Throws CatalogVersionError unless the tables are those of `schema`. */
function requireSchema(db: DatabaseSync, version: number): void {
  const difference = schemaDifference(db, schema)
  if (difference !== null)
    throw new CatalogVersionError(otherTablesText(String(db.location()), version, difference))
}

/** Whether a catalog of the version of this program has its tables. */
export const hasSchema = (db: DatabaseSync): boolean => schemaDifference(db, schema) === null

/** The version of the catalog, 0 for an empty file. Throws CatalogVersionError if this program must not change it. */
function readVersion(db: DatabaseSync, newest: number): number {
  const number = (sql: string) => integer(one(db.prepare(sql)) ?? [], 0)
  const present = number('PRAGMA user_version')
  const owner = number('PRAGMA application_id')
  const tables = number('SELECT count(*) FROM sqlite_schema')
  if (owner !== applicationId && (owner !== 0 || present !== 0 || tables !== 0)) {
    throw new CatalogVersionError(
      `${db.location()} is a database of another program. Set MEDIABUCKET_DATA to another directory.`,
    )
  }
  if (present <= 0 && tables > 0)
    throw new CatalogVersionError(
      `${db.location()} is damaged: its user_version is ${present}. If this version of mediabucket wrote it, run PRAGMA user_version = ${newest} in it; otherwise restore a backup with mediabucket restore.`,
    )
  if (present > newest) {
    throw new CatalogVersionError(
      `${db.location()} has version ${present}, and this mediabucket supports versions up to ${newest}. ` +
        'It was written by a newer mediabucket: run that one, or restore a backup made before the upgrade.',
    )
  }
  if (present > 0 && present < firstVersion)
    throw new CatalogVersionError(
      developmentText(String(db.location()), present === lastDevelopment ? '661e7aee' : '7ac0c5b8'),
    )
  return present
}
