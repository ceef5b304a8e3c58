import { publicNamesOf, sizeEntriesOf } from '../../../core/bucket-settings.ts'
import { isObject, parseJson } from '../../../core/json.ts'
import { isNote, isTypes, readLimits } from '../../../core/quotas.ts'
import { dayOf, lastTime, maxDays } from '../../../core/times.ts'
import { isServiceScope } from '../../../core/token-rules.ts'
import { isCrop } from '../../../core/variants.ts'
import { isWebhookId, maxBatch, parseWebhookUrl, webhookStates } from '../../../core/webhook-rules.ts'
import { actorKinds, auditActions } from '../audit/audit-events.ts'
import { isItemChangeKind } from '../items/item-changes.ts'
import { type ItemColumn, itemTable } from '../items/item-columns.ts'
import {
  bucket,
  bytes,
  type ColumnCheck,
  counter,
  flag,
  int4,
  integer,
  isItemList,
  itemId,
  laterTime,
  ofBucket,
  only,
  optional,
  sequence,
  shape,
  shortText,
  type TableCheck,
  text,
  time,
  tokenId,
  uploadId,
} from './cell-checks.ts'
import { objectChecks } from './object-checks.ts'

// What the columns of the catalog contain, as far as the service depends on it. A test compares the tables and columns with the schemas.

const bucketName = shape(/^(?:[a-z0-9-]{1,63}|\d+\/(?:trash|deleted))$/)
const usageDay = integer(0, dayOf(lastTime))
const secret = shape(/^whsec_[\w+/]{43}=$/)

function itemCheck({ type, accepts, range = [0, Number.MAX_SAFE_INTEGER] }: ItemColumn): ColumnCheck {
  if (accepts !== undefined) return text(accepts)
  if (type === 'flag') return flag
  if (type === 'bytes') return bytes(...range)
  return type === 'int4' || type === 'int8' ? integer(...range) : shortText(range[1])
}

const itemChecks: TableCheck['columns'] = Object.fromEntries(
  Object.values(itemTable).map((column) => {
    const check = column.constraint === undefined ? optional(itemCheck(column)) : itemCheck(column)
    return [column.column, column.only === undefined ? check : only(column.only, check)]
  }),
)

export const tableChecks: Readonly<Record<string, TableCheck>> = {
  meta: {
    key: ['key'],
    // The values are checked by meta.ts, which corrects them. A later version may have written other keys.
    columns: { key: shape(/^[a-z][a-z0-9_-]{0,39}(?: \d{1,16})?$/), value: text() },
  },
  buckets: {
    key: ['id'],
    columns: {
      id: bucket,
      name: bucketName,
      created_at: time,
      revision: integer(),
      total: counter,
      bytes: counter,
      next_seq: sequence,
      max_items: optional(integer()),
      max_bytes: optional(integer()),
      max_file_size: optional(integer(1)),
      types: optional(text((types) => isTypes(types.split(' ')))),
      reserved_items: counter,
      reserved_bytes: counter,
      trash_days: int4(),
      private: integer(0, 2),
      signed_pages: flag,
      public_keys: flag,
      public_list: flag,
      url_uploads: flag,
      variants: optional(text((entries) => sizeEntriesOf(entries.split(' ')) !== undefined)),
      public_variants: optional(text((names) => publicNamesOf(names.split(' ')) != null)),
      crop: optional(text(isCrop)),
      remove_metadata: integer(0, 2),
      item_days: optional(integer(1, maxDays)),
      next_expiry: optional(laterTime),
      changes_start: integer(),
      renewed: integer(),
      counted_expiry: integer(-1),
      counted_seq: integer(-1),
      counted_items: counter,
      counted_bytes: counter,
      creation_key: optional(bytes(32, 32)),
      creation: optional(bytes(64, 64)),
      usage_day: usageDay,
      added_items: counter,
      added_bytes: counter,
      removed_items: counter,
      removed_bytes: counter,
    },
    references: {
      // Of a trash. Its name has the number of its bucket, which no other bucket has.
      id: `buckets.id > 0 OR (EXISTS (SELECT 1 FROM buckets AS home WHERE home.id = -buckets.id)
        AND name = CAST(-buckets.id AS text) || '/trash')`,
      name: `buckets.id < 0 OR (name NOT LIKE '%/trash'
        AND (name NOT LIKE '%/deleted' OR name = CAST(buckets.id AS text) || '/deleted'))`,
      private: "(private = 2) = (name LIKE '%/deleted')",
      changes_start: 'changes_start <= revision',
      renewed: 'renewed <= revision',
    },
  },
  bucket_usage: {
    key: ['day', 'bucket_id'],
    columns: {
      day: usageDay,
      bucket_id: bucket,
      added_items: counter,
      added_bytes: counter,
      removed_items: counter,
      removed_bytes: counter,
      downloaded_bytes: integer(),
      list_requests: integer(),
      download_requests: integer(),
      upload_requests: integer(),
      other_requests: integer(),
    },
    references: {
      bucket_id: `EXISTS (SELECT 1 FROM buckets WHERE buckets.id = bucket_usage.bucket_id)
        OR EXISTS (SELECT 1 FROM deleted_buckets WHERE deleted_buckets.id = bucket_usage.bucket_id)`,
    },
    dependsOn: 'bucket_id',
  },
  deleted_buckets: {
    key: ['id'],
    columns: { id: integer(1), name: bucketName, created_at: time, deleted_at: time },
    references: {
      id: 'NOT EXISTS (SELECT 1 FROM buckets WHERE buckets.id = deleted_buckets.id AND private < 2)',
    },
  },
  tokens: {
    key: ['id'],
    columns: {
      id: tokenId,
      number: integer(1),
      bucket_id: optional(bucket),
      name: text((name) => name.length <= 255 && !/\p{Cc}/u.test(name)),
      hash: bytes(32, 32),
      scopes: text((scopes) => scopes === '' || scopes.split(' ').every(isServiceScope)),
      created_at: time,
      expires_at: optional(time),
      last_used_at: optional(time),
      revoked_at: optional(time),
      note: optional(text(isNote)),
      limited_by: optional(tokenId),
      replaced_by: optional(tokenId),
    },
    references: {
      // Service tokens, and no others, have no bucket.
      bucket_id: `CASE WHEN bucket_id IS NULL THEN id LIKE 'svc%' ELSE id NOT LIKE 'svc%' AND ${ofBucket('tokens')} END`,
      scopes: `bucket_id IS NULL OR scopes NOT LIKE '%buckets:manage%'`,
      // The deletion of a bucket revokes its tokens first.
      limited_by: `limited_by IS NULL OR revoked_at IS NOT NULL OR EXISTS (SELECT 1 FROM token_limits
        WHERE token_limits.id = limited_by AND token_limits.bucket_id = tokens.bucket_id)`,
      replaced_by: `replaced_by IS NULL OR revoked_at IS NOT NULL OR EXISTS (SELECT 1 FROM tokens AS successor
        WHERE successor.id = tokens.replaced_by AND successor.bucket_id IS NOT DISTINCT FROM tokens.bucket_id)`,
    },
  },
  token_limits: {
    key: ['id'],
    columns: {
      id: tokenId,
      bucket_id: bucket,
      limits: text((json) => readLimits(parseJson(json)).limits !== null),
      items: integer(),
      bytes: integer(),
      reserved_items: counter,
      reserved_bytes: counter,
    },
    references: { bucket_id: ofBucket('token_limits') },
  },
  keyed_requests: {
    key: ['token_id', 'bucket_id', 'key'],
    columns: {
      token_id: tokenId,
      bucket_id: bucket,
      key: text((key) => key !== '' && key.length <= 255),
      fingerprint: bytes(32, 32),
      items: text(isItemList),
      bytes: optional(integer()),
      expires_at: time,
    },
    references: {
      token_id: 'EXISTS (SELECT 1 FROM tokens WHERE tokens.id = token_id)',
      bucket_id: `EXISTS (SELECT 1 FROM buckets WHERE buckets.id = keyed_requests.bucket_id) AND NOT EXISTS
        (SELECT 1 FROM tokens WHERE tokens.id = token_id AND tokens.bucket_id <> keyed_requests.bucket_id)`,
    },
  },
  signing_keys: {
    key: ['number'],
    columns: {
      number: integer(1),
      id: shape(/^[0-9a-z]{1,64}$/),
      secret: bytes(32, 32),
      created_at: time,
    },
  },
  webhooks: {
    key: ['number'],
    columns: {
      number: integer(1),
      id: text(isWebhookId),
      bucket_id: bucket,
      url: text((url) => parseWebhookUrl(url) !== null),
      kinds: text((kinds) => kinds === '' || kinds.split(' ').every(isItemChangeKind)),
      batch: integer(1, maxBatch),
      secret,
      earlier_secret: optional(secret),
      earlier_until: optional(laterTime),
      state: integer(1, webhookStates.length),
      created_at: time,
      position: optional(integer()),
      pending: optional(integer()),
      failures: integer(),
      failing_since: optional(time),
      next_attempt: optional(time),
      attempted_at: optional(time),
      failing_for: integer(),
      owner: optional(shortText(200)),
      owned_until: optional(laterTime),
      deliveries: integer(),
    },
    references: {
      bucket_id: ofBucket('webhooks'),
      earlier_until: 'earlier_secret IS NULL OR earlier_until IS NOT NULL',
      owned_until: 'owner IS NULL OR owned_until IS NOT NULL',
      // Deliveries are numbered by it.
      deliveries: `NOT EXISTS (SELECT 1 FROM webhook_deliveries
        WHERE webhook = webhooks.number AND webhook_deliveries.number > deliveries)`,
    },
  },
  webhook_deliveries: {
    key: ['webhook', 'number'],
    columns: {
      webhook: integer(1),
      number: integer(1),
      message_id: shape(/^\S{1,200}$/),
      type: shape(/^[a-z.]{1,100}$/),
      time,
      duration: integer(),
      changes: integer(),
      first_position: optional(integer()),
      last_position: optional(integer()),
      status: optional(integer(100, 999)),
      reason: optional(shortText(10_000)),
      response: shortText(10_000),
      manual: flag,
    },
    references: {
      webhook: 'EXISTS (SELECT 1 FROM webhooks WHERE webhooks.number = webhook)',
      last_position: '(first_position IS NULL) = (last_position IS NULL)',
    },
    dependsOn: 'webhook',
  },
  items: {
    key: ['bucket_id', 'seq'],
    columns: itemChecks,
    references: {
      bucket_id: ofBucket('items'),
      // In a trash. Each of these columns is needed to leave it.
      home_seq: `CASE WHEN items.bucket_id > 0 THEN home_seq IS NULL ELSE home_seq IS NOT NULL
        AND EXISTS (SELECT 1 FROM buckets WHERE buckets.id = -items.bucket_id AND next_seq > home_seq)
        AND NOT EXISTS (SELECT 1 FROM items AS other WHERE other.bucket_id = -items.bucket_id AND other.seq = items.home_seq) END`,
      deleted_at: '(items.bucket_id < 0) = (deleted_at IS NOT NULL)',
      expires_at: '(items.bucket_id < 0) = (items.expires_at IS NOT NULL)',
      height: '(width IS NULL) = (height IS NULL)',
      taken_offset: 'taken_offset IS NULL OR taken_at IS NOT NULL',
    },
  },
  item_names: {
    key: ['bucket_id', 'slot'],
    columns: { bucket_id: bucket, slot: sequence, names: text() },
    references: { bucket_id: ofBucket('item_names') },
    dependsOn: 'bucket_id',
  },
  labels: {
    key: ['id'],
    columns: { id: integer(1), bucket_id: bucket, key: text(), value: text(), items: integer(1) },
    references: { bucket_id: ofBucket('labels') },
    dependsOn: 'bucket_id',
  },
  item_labels: {
    key: ['bucket_id', 'label_id', 'kind', 'created_at', 'seq'],
    columns: {
      bucket_id: bucket,
      label_id: integer(),
      kind: int4(),
      created_at: integer(),
      seq: sequence,
    },
    references: { bucket_id: ofBucket('item_labels') },
    dependsOn: 'bucket_id',
  },
  contents: {
    key: ['id'],
    columns: { id: integer(1), bucket_id: only('postgres', bucket), bytes: bytes() },
  },
  ranks: {
    key: ['bucket_id', 'level', 'slot'],
    columns: {
      bucket_id: bucket,
      level: integer(0, 20),
      slot: sequence,
      counts: only('sqlite', bytes(1, 65_536)),
      sums: only('postgres', text()),
    },
    references: { bucket_id: ofBucket('ranks') },
    dependsOn: 'bucket_id',
  },
  expired_counts: {
    key: ['bucket_id', 'level', 'slot'],
    columns: { bucket_id: bucket, level: integer(0, 20), slot: sequence, items: integer() },
    references: { bucket_id: ofBucket('expired_counts') },
    dependsOn: 'bucket_id',
  },
  uploads: {
    key: ['id'],
    columns: {
      id: uploadId,
      bucket_id: bucket,
      length: optional(integer()),
      received: integer(),
      // It is sent as a header.
      metadata: optional(shape(/^[\t\x20-\x7e]{0,65536}$/)),
      filename: optional(shortText(65_536)),
      declared_type: optional(shortText(65_536)),
      item_id: itemId,
      finished: flag,
      expires_at: laterTime,
      multipart: optional(shortText(10_000)),
      token_id: optional(tokenId),
      limited_by: optional(tokenId),
    },
    references: {
      bucket_id: ofBucket('uploads'),
      item_id: `finished = 0 OR NOT EXISTS (SELECT 1 FROM items
        WHERE items.id = item_id AND abs(items.bucket_id) <> uploads.bucket_id)`,
      length: 'finished = 0 OR length IS NOT NULL',
      received: 'length IS NULL OR received <= length',
      limited_by: `finished = 1 OR limited_by IS NULL OR EXISTS (SELECT 1 FROM token_limits
        WHERE token_limits.id = limited_by AND token_limits.bucket_id = uploads.bucket_id)
        OR EXISTS (SELECT 1 FROM meta WHERE key LIKE 'deleting%')`,
    },
  },
  upload_parts: {
    key: ['upload_id', 'number'],
    columns: {
      upload_id: uploadId,
      number: integer(1, 10_000),
      size: integer(1),
      etag: shape(/^[\x21-\x7e]{1,1000}$/),
    },
    references: { upload_id: 'EXISTS (SELECT 1 FROM uploads WHERE uploads.id = upload_id AND finished = 0)' },
    dependsOn: 'upload_id',
  },
  upload_pieces: {
    key: ['upload_id', 'number'],
    columns: { upload_id: uploadId, number: integer(), bytes: bytes() },
    references: { upload_id: 'EXISTS (SELECT 1 FROM uploads WHERE uploads.id = upload_id AND finished = 0)' },
    dependsOn: 'upload_id',
  },
  ...objectChecks,
  // The ids of these two are checked by `checkIds` of upkeep/fsck.ts, which repairs them.
  tombstones: { key: ['id'], columns: { id: text() } },
  intents: { key: ['id'], columns: { id: text(), expires_at: text() } },
  damaged: {
    key: ['id'],
    columns: { id: itemId },
    references: { id: 'EXISTS (SELECT 1 FROM items WHERE items.id = damaged.id)' },
    dependsOn: 'id',
  },
  retired: {
    key: ['id'],
    columns: { id: itemId },
    // An item of the catalog's bytes may have a retired id: it has no bytes in the store.
    references: { id: 'NOT EXISTS (SELECT 1 FROM items WHERE items.id = retired.id AND content_id IS NULL)' },
  },
  audit_events: {
    key: { sqlite: ['id'], postgres: ['time', 'number'] },
    columns: {
      id: only('sqlite', integer()),
      number: only('postgres', integer()),
      tx: only('postgres', integer()),
      time,
      action: integer(1, Math.max(...Object.values(auditActions)) + 1_000),
      bucket_id: optional(bucket),
      target: optional(shortText(10_000)),
      name: optional(shortText(10_000)),
      size: optional(integer()),
      detail: optional(text((json) => isObject(parseJson(json)))),
      actor: integer(1, Math.max(...Object.values(actorKinds)) + 1_000),
      token_id: optional(shortText(10_000)),
      subject: optional(shortText(10_000)),
      address: optional(shortText(10_000)),
      request_id: optional(shortText(10_000)),
    },
  },
  changes: {
    key: ['bucket_id', 'number'],
    // Of any kind: a later version may have written it (docs/interface.md FE1).
    columns: { bucket_id: bucket, number: integer(1), kind: int4(), item_id: itemId, time },
    references: { bucket_id: ofBucket('changes') },
    dependsOn: 'bucket_id',
  },
  batches: {
    key: ['id'],
    only: 'postgres',
    columns: { id: text(), is_cancelled: text(), fence: optional(int4()), created_at: text() },
  },
}
