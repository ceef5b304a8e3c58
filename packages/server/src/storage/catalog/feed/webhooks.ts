import type { StoredPictures } from '../../../core/bucket-pictures.ts'
import { bucketDeleted, Fault } from '../../../core/faults.ts'
import type { Actor } from '../../../core/token-rules.ts'
import {
  maxWebhooks,
  originOf,
  type WebhookId,
  type WebhookState,
  webhookStates,
} from '../../../core/webhook-rules.ts'
import type { AuditAction, AuditEvent } from '../audit/audit-events.ts'
import { isNotDeleted, picturesColumn } from '../buckets.ts'
import { auditedWritesOf } from '../declarations.ts'
import type { BucketId } from '../records.ts'
import {
  all,
  bucketIdOf,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  record,
  type SqlValue,
  text,
  textOrNull,
  type Work,
  webhookIdOf,
  write,
} from '../statements.ts'
import { readChanges } from './feed.ts'

/** What can be changed of a webhook. */
export interface WebhookSettings {
  readonly url: string
  /** The kinds of changes that it delivers, also those that only a newer version knows; empty for all. */
  readonly kinds: readonly string[]
  /** The most changes in one delivery. With more than 1, every delivery is a list. */
  readonly batch: number
}

/** A webhook, without its secrets. Times are milliseconds since 1970. */
export interface Webhook extends WebhookSettings {
  readonly id: WebhookId
  readonly bucketId: BucketId
  readonly bucket: string
  readonly state: WebhookState
  readonly createdAt: number
  /** When the first of the present failures was; null if the last attempt succeeded. */
  readonly failingSince: number | null
  /** Attempts that failed since. */
  readonly failures: number
  /** No attempt is made before; null if the next one is made with the next change. */
  readonly nextAttempt: number | null
}

/** A webhook with what a delivery needs. */
export interface WebhookReader extends Webhook {
  /** The current secret, and the replaced one as long as it is valid. */
  readonly secrets: readonly string[]
  /** The position of the last change that was delivered or passed by; null if it is not known in this catalog. */
  readonly position: number | null
  /** The last change of the delivery that failed: it is repeated with the same changes. */
  readonly pending: number | null
  /** Whether URLs in lists of the bucket are signed. */
  readonly signsUrls: boolean
  readonly isPrivate: boolean
  /** The options of the bucket about pictures. */
  readonly pictures: StoredPictures
  /** The revision of the bucket at the last renewal of the history (history.ts). */
  readonly renewed: number
  /** When the last attempt failed; null if it has succeeded. */
  readonly attemptedAt: number | null
  /** For how long attempts have failed: the sum of the waits between them. Milliseconds. */
  readonly failingFor: number
}

export interface NewWebhook extends WebhookSettings {
  readonly id: WebhookId
  readonly bucketId: BucketId
  readonly secret: string
  readonly createdAt: number
}

const states = new Map(webhookStates.map((state, index) => [index + 1, state]))
export const stateNumber = (state: WebhookState): number => webhookStates.indexOf(state) + 1
export const stateOn = stateNumber('on')

const columns = `webhooks.id, webhooks.bucket_id, buckets.name, url, kinds, batch, state, webhooks.created_at, failing_since, failures,
  next_attempt, secret, earlier_secret, earlier_until, position, pending, private & signed_pages, renewed, attempted_at, failing_for,
  private, ${picturesColumn}`

/** Assignments that end the failures of a webhook. */
export const noFailures =
  'pending = NULL, failing_since = NULL, failures = 0, next_attempt = NULL, attempted_at = NULL, failing_for = 0'

const source = `webhooks JOIN buckets ON buckets.id = webhooks.bucket_id AND ${isNotDeleted}`

const readWebhook = (row: Row): Webhook => ({
  id: webhookIdOf(row, 0),
  bucketId: bucketIdOf(row, 1),
  bucket: text(row, 2),
  url: text(row, 3),
  kinds: text(row, 4)
    .split(' ')
    .filter((kind) => kind !== ''),
  batch: integer(row, 5),
  state: states.get(integer(row, 6)) ?? 'off',
  createdAt: integer(row, 7),
  failingSince: integerOrNull(row, 8),
  failures: integer(row, 9),
  nextAttempt: integerOrNull(row, 10),
})

const readerOf =
  (now: number) =>
  (row: Row): WebhookReader => {
    const earlier = textOrNull(row, 12)
    return {
      ...readWebhook(row),
      secrets: earlier !== null && integer(row, 13) > now ? [text(row, 11), earlier] : [text(row, 11)],
      position: integerOrNull(row, 14),
      pending: integerOrNull(row, 15),
      signsUrls: integer(row, 16) === 1,
      renewed: integer(row, 17),
      attemptedAt: integerOrNull(row, 18),
      failingFor: integer(row, 19),
      isPrivate: integer(row, 20) === 1,
      pictures: textOrNull(row, 21),
    }
  }

/** Those of a bucket, or all, in the order of their creation. */
export const listWebhooks = (bucketId: BucketId | null = null): Query<Webhook[]> =>
  all(
    readWebhook,
    `SELECT ${columns} FROM ${source} WHERE $1::int8 IS NULL OR webhooks.bucket_id = $1 ORDER BY webhooks.number`,
    bucketId,
  )

export const findWebhook = (id: WebhookId, now = Date.now()): Query<WebhookReader | null> =>
  first(readerOf(now), `SELECT ${columns} FROM ${source} WHERE webhooks.id = $1`, id)

/** Adds a webhook that delivers the changes after this one. Throws Fault `webhooks-too-many`. */
export function* addWebhook(
  { id, bucketId, url, kinds, batch, secret, createdAt }: NewWebhook,
  by?: Actor,
): Work<undefined> {
  // The lock makes changes of the items wait, and another request that adds a webhook.
  const lock = `SELECT 1 FROM buckets WHERE id = $1 AND id > 0 AND ${isNotDeleted} FOR NO KEY UPDATE`
  if ((yield* first(() => true, lock, bucketId)) === null) throw bucketDeleted()
  const end = yield* readChanges(bucketId, 'now', 0)
  const count = yield* first(
    (row) => integer(row, 0),
    'SELECT count(*) FROM webhooks WHERE bucket_id = $1',
    bucketId,
  )
  if ((count ?? 0) >= maxWebhooks)
    throw new Fault(
      'webhooks-too-many',
      `The bucket has ${maxWebhooks} webhooks, which is the limit. Delete one of them.`,
      { members: { maximum: maxWebhooks } },
    )
  yield* write(
    `INSERT INTO webhooks (id, bucket_id, url, kinds, batch, secret, created_at, position, state)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, ${stateOn})`,
    ...[id, bucketId, url, kinds.join(' '), batch, secret, createdAt, end?.next ?? null],
  )
  yield* record(by, (by) => webhookEvent('webhook-create', { id, bucketId, url }, by, { kinds, batch }))
}

/** The rows of a webhook of a bucket, locked until the end of the transaction; null if the bucket has none. */
const hold = (bucketId: BucketId, id: WebhookId): Query<Pick<Webhook, 'id' | 'bucketId' | 'url'> | null> =>
  first(
    (row) => ({ id, bucketId, url: text(row, 0) }),
    'SELECT url FROM webhooks WHERE id = $1 AND bucket_id = $2 FOR UPDATE',
    ...[id, bucketId],
  )

/** Changes the given settings. Switching a webhook on ends its failures. False if the bucket has no such webhook. */
export function* setWebhook(
  bucketId: BucketId,
  id: WebhookId,
  { url, kinds, batch, state }: Partial<WebhookSettings> & { readonly state?: 'on' | 'off' },
  by?: Actor,
): Work<boolean> {
  const webhook = yield* hold(bucketId, id)
  if (webhook === null) return false
  const assign = (column: string, value: SqlValue) =>
    write(`UPDATE webhooks SET ${column} = $1 WHERE id = $2`, value, id)
  if (url !== undefined) yield* assign('url', url)
  if (kinds !== undefined) yield* assign('kinds', kinds.join(' '))
  if (batch !== undefined) yield* assign('batch', batch)
  if (state !== undefined) yield* assign('state', stateNumber(state))
  // The next attempt has the new settings, also while the present ones wait after a failure.
  if (state !== 'off') yield* write(`UPDATE webhooks SET ${noFailures} WHERE id = $1`, id)
  const detail = {
    ...(kinds && { kinds }),
    ...(batch !== undefined && { batch }),
    ...(state !== undefined && { state }),
  }
  yield* record(by, (by) =>
    webhookEvent('webhook-set', { ...webhook, ...(url !== undefined && { url }) }, by, detail),
  )
  return true
}

/** Replaces the secret. The replaced one signs too, until a time. False if the bucket has no such webhook. */
export function* rotateWebhookSecret(
  bucketId: BucketId,
  id: WebhookId,
  secret: string,
  replacedUntil: number,
  by?: Actor,
): Work<boolean> {
  const webhook = yield* hold(bucketId, id)
  if (webhook === null) return false
  yield* write(
    'UPDATE webhooks SET earlier_secret = secret, earlier_until = $1, secret = $2 WHERE id = $3',
    ...[replacedUntil, secret, id],
  )
  yield* record(by, (by) =>
    webhookEvent('webhook-rotate', webhook, by, { replaced_until: new Date(replacedUntil).toISOString() }),
  )
  return true
}

/** False if the bucket has no such webhook. */
export function* removeWebhook(bucketId: BucketId, id: WebhookId, by?: Actor): Work<boolean> {
  const webhook = yield* hold(bucketId, id)
  if (webhook === null) return false
  yield* write(
    'DELETE FROM webhook_deliveries WHERE webhook = (SELECT number FROM webhooks WHERE id = $1)',
    id,
  )
  yield* write('DELETE FROM webhooks WHERE id = $1', id)
  yield* record(by, (by) => webhookEvent('webhook-delete', webhook, by, {}))
  return true
}

/** A webhook that is copied to another catalog. Its position is not valid there, and its deliveries stay. */
export interface TransferredWebhook extends NewWebhook {
  readonly state: WebhookState
  readonly earlierSecret: string | null
  readonly earlierUntil: number | null
}

export const listTransferredWebhooks = (): Query<TransferredWebhook[]> =>
  all((row) => {
    const { id, bucketId, url, kinds, batch, state, createdAt } = readWebhook(row)
    const [secret, earlierSecret, earlierUntil] = [text(row, 11), textOrNull(row, 12), integerOrNull(row, 13)]
    return { id, bucketId, url, kinds, batch, state, createdAt, secret, earlierSecret, earlierUntil }
  }, `SELECT ${columns} FROM ${source} ORDER BY webhooks.number`)

/** Replaces all webhooks. */
export function* replaceWebhooks(webhooks: readonly TransferredWebhook[]): Work<void> {
  yield* write('DELETE FROM webhook_deliveries')
  yield* write('DELETE FROM webhooks')
  for (const { id, bucketId, url, kinds, batch, state, createdAt, ...secrets } of webhooks)
    yield* write(
      `INSERT INTO webhooks (id, bucket_id, url, kinds, batch, state, created_at, secret, earlier_secret, earlier_until)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      ...[id, bucketId, url, kinds.join(' '), batch, stateNumber(state), createdAt],
      ...[secrets.secret, secrets.earlierSecret, secrets.earlierUntil],
    )
}

/** Those that fail, and those that were switched off because of their receivers. */
export function* countWebhooks(): Query<{
  readonly failingWebhooks: number
  readonly stoppedWebhooks: number
}> {
  const counts = yield* first(
    (row) => ({ failingWebhooks: integer(row, 0), stoppedWebhooks: integer(row, 1) }),
    `SELECT coalesce(sum(CASE WHEN state = ${stateOn} AND failing_since IS NOT NULL THEN 1 ELSE 0 END), 0)::int8,
      coalesce(sum(CASE WHEN state IN (${stateNumber('gone')}, ${stateNumber('failed')}) THEN 1 ELSE 0 END), 0)::int8
    FROM webhooks`,
  )
  return counts ?? { failingWebhooks: 0, stoppedWebhooks: 0 }
}

/** The rest of the URL may be a secret. */
export const webhookEvent = (
  action: AuditAction & `webhook-${string}`,
  { id, bucketId, url }: Pick<Webhook, 'id' | 'bucketId' | 'url'>,
  by: Actor,
  detail: NonNullable<AuditEvent['detail']>,
): AuditEvent => ({ action, by, bucketId, target: id, name: originOf(url), detail })

export const reads = { listWebhooks, findWebhook }

export const writes = auditedWritesOf({ addWebhook, setWebhook, rotateWebhookSecret, removeWebhook })
