import { bucketDeleted, Fault } from '../../core/faults.ts'
import type { Actor } from '../../core/tokens.ts'
import {
  keptDeliveries,
  maxWebhooks,
  originOf,
  type WebhookId,
  type WebhookState,
  webhookStates,
} from '../../core/webhooks.ts'
import type { AuditAction, AuditEvent, Audited } from './audit-events.ts'
import { type ItemChangeKind, isChangeKind } from './item-changes.ts'
import type { BucketId } from './records.ts'
import {
  all,
  bucketIdOf,
  change,
  databaseTime,
  type EngineName,
  eachEngine,
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
} from './statements.ts'

/** What can be changed of a webhook. */
export interface WebhookSettings {
  readonly url: string
  /** The kinds of changes that it delivers; empty for all. */
  readonly kinds: readonly ItemChangeKind[]
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
}

export interface NewWebhook extends WebhookSettings {
  readonly id: WebhookId
  readonly bucketId: BucketId
  readonly secret: string
  readonly createdAt: number
}

/** One attempt to deliver. */
export interface WebhookDelivery {
  /** The same for each attempt to deliver the same changes. */
  readonly messageId: string
  readonly type: string
  /** Milliseconds since 1970. */
  readonly time: number
  /** Milliseconds. */
  readonly duration: number
  readonly changes: number
  /** The positions of the changes; null for a message about none. */
  readonly range: { readonly first: number; readonly last: number } | null
  /** Of the response; null if there was none. */
  readonly status: number | null
  /** Why it failed; null if it succeeded. */
  readonly reason: string | null
  readonly response: string
  /** Whether somebody asked for it: a test, or a repetition. */
  readonly isManual: boolean
}

export interface StoredDelivery extends WebhookDelivery {
  /** Increases with each delivery of the webhook. */
  readonly number: number
}

/** What an attempt of the deliverer changes: it has delivered up to a position, or has failed. */
type AttemptOutcome =
  | { readonly position: number }
  | {
      readonly failedAt: number
      /** The last change of the delivery. */
      readonly pending: number | null
      readonly nextAttempt: number
      /** Switches the webhook off. */
      readonly state: WebhookState
    }

/** The webhooks of the catalog. */
export interface WebhookCatalog {
  /** Those of a bucket, or all, in the order of their creation. */
  webhooks(bucketId?: BucketId): Promise<readonly Webhook[]>

  webhook(id: WebhookId): Promise<WebhookReader | null>

  /** Adds a webhook that delivers the changes after this one. Throws Fault `webhooks-too-many`. */
  addWebhook(webhook: NewWebhook, by?: Actor): Promise<void>

  /** Changes the given settings. Switching a webhook on ends its failures. False if the bucket has no such webhook. */
  setWebhook(
    bucketId: BucketId,
    id: WebhookId,
    settings: Partial<WebhookSettings> & { readonly state?: 'on' | 'off' },
    by?: Actor,
  ): Promise<boolean>

  /** Replaces the secret. The replaced one signs too, until a time. False if the bucket has no such webhook. */
  rotateWebhookSecret(
    bucketId: BucketId,
    id: WebhookId,
    secret: string,
    replacedUntil: number,
    by?: Actor,
  ): Promise<boolean>

  /** False if the bucket has no such webhook. */
  removeWebhook(bucketId: BucketId, id: WebhookId, by?: Actor): Promise<boolean>

  /** The last deliveries of a webhook, latest first. */
  webhookDeliveries(id: WebhookId): Promise<readonly StoredDelivery[]>

  /** The buckets with webhooks that are switched on. */
  webhookBuckets(): Promise<readonly BucketId[]>

  /** Up to `limit` webhooks with an attempt to make, for which no other owner has a lease: new attempts first, then the least recently claimed. */
  dueWebhooks(owner: string, now: number, limit: number): Promise<readonly WebhookId[]>

  /** Takes the lease of a webhook for some milliseconds. Null if another owner has it, or if the webhook is not switched on. */
  claimWebhook(id: WebhookId, owner: string, lifetime: number): Promise<WebhookReader | null>

  /** Ends all leases of an owner. */
  releaseWebhooks(owner: string): Promise<void>

  /** Stores an attempt of the owner of the lease, and what it changes. False if the lease has ended or the webhook has changed. */
  recordAttempt(attempt: WebhookAttempt): Promise<boolean>

  /**
   * Stores a delivery that somebody asked for, and returns its number. If it succeeded, the next attempt is made at once. Null if there is no
   * such webhook.
   */
  recordManualDelivery(id: WebhookId, delivery: WebhookDelivery): Promise<number | null>
}

export interface WebhookAttempt {
  readonly id: WebhookId
  readonly owner: string
  /** The position before the attempt. */
  readonly from: number | null
  readonly outcome: AttemptOutcome
  /** Null if no change was to be delivered. */
  readonly delivery: WebhookDelivery | null
}

/** The most milliseconds for which a lease is taken. */
export const longestLease = 30_000

const states = new Map(webhookStates.map((state, index) => [index + 1, state]))
const numberOf = (state: WebhookState): number => webhookStates.indexOf(state) + 1
const on = numberOf('on')

const columns = `webhooks.id, webhooks.bucket_id, buckets.name, url, kinds, batch, state, webhooks.created_at, failing_since, failures,
  next_attempt, secret, earlier_secret, earlier_until, position, pending, private & signed_pages`

const source = 'webhooks JOIN buckets ON buckets.id = webhooks.bucket_id'

const readWebhook = (row: Row): Webhook => ({
  id: webhookIdOf(row, 0),
  bucketId: bucketIdOf(row, 1),
  bucket: text(row, 2),
  url: text(row, 3),
  kinds: text(row, 4).split(' ').filter(isChangeKind),
  batch: integer(row, 5),
  state: states.get(integer(row, 6)) ?? 'off',
  createdAt: integer(row, 7),
  failingSince: integerOrNull(row, 8),
  failures: integer(row, 9),
  nextAttempt: integerOrNull(row, 10),
})

const webhookIdOf = (row: Row, column: number): WebhookId => text(row, column) as WebhookId

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
    }
  }

export const listWebhooks = (bucketId: BucketId | null): Query<Webhook[]> =>
  all(
    readWebhook,
    `SELECT ${columns} FROM ${source} WHERE $1::int8 IS NULL OR webhooks.bucket_id = $1 ORDER BY webhooks.number`,
    bucketId,
  )

export const findWebhook = (id: WebhookId, now: number): Query<WebhookReader | null> =>
  first(readerOf(now), `SELECT ${columns} FROM ${source} WHERE webhooks.id = $1`, id)

/** As WebhookCatalog.addWebhook. */
export function* addWebhook({
  webhook: { id, bucketId, url, kinds, batch, secret, createdAt },
  by,
}: Audited & { readonly webhook: NewWebhook }): Work<undefined> {
  // The lock makes changes of the items wait, and another request that adds a webhook. The revision is the number of the last change.
  const position = yield* first(
    (row) => integer(row, 0),
    'SELECT revision FROM buckets WHERE id = $1 AND id > 0 FOR NO KEY UPDATE',
    bucketId,
  )
  if (position === null) throw bucketDeleted()
  const count = yield* first(
    (row) => integer(row, 0),
    'SELECT count(*) FROM webhooks WHERE bucket_id = $1',
    bucketId,
  )
  if ((count ?? 0) >= maxWebhooks)
    throw new Fault(
      'webhooks-too-many',
      `The bucket has ${maxWebhooks} webhooks, which is the limit. Delete one of them.`,
    )
  yield* change(
    `INSERT INTO webhooks (id, bucket_id, url, kinds, batch, secret, created_at, position, state)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, ${on})`,
    ...[id, bucketId, url, kinds.join(' '), batch, secret, createdAt, position],
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

/** As WebhookCatalog.setWebhook. */
export function* setWebhook({
  ofBucket,
  id,
  settings: { url, kinds, batch, state },
  by,
}: Audited & {
  readonly ofBucket: BucketId
  readonly id: WebhookId
  readonly settings: Partial<WebhookSettings> & { readonly state?: 'on' | 'off' }
}): Work<boolean> {
  const webhook = yield* hold(ofBucket, id)
  if (webhook === null) return false
  const assign = (column: string, value: SqlValue) =>
    change(`UPDATE webhooks SET ${column} = $1 WHERE id = $2`, value, id)
  if (url !== undefined) yield* assign('url', url)
  if (kinds !== undefined) yield* assign('kinds', kinds.join(' '))
  if (batch !== undefined) yield* assign('batch', batch)
  if (state !== undefined) yield* assign('state', numberOf(state))
  // The next attempt has the new settings, also while the present ones wait after a failure.
  if (state !== 'off')
    yield* change(
      'UPDATE webhooks SET failing_since = NULL, failures = 0, next_attempt = NULL, pending = NULL WHERE id = $1',
      id,
    )
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

/** As WebhookCatalog.rotateWebhookSecret. */
export function* rotateWebhookSecret({
  ofBucket,
  id,
  secret,
  replacedUntil,
  by,
}: Audited & {
  readonly ofBucket: BucketId
  readonly id: WebhookId
  readonly secret: string
  readonly replacedUntil: number
}): Work<boolean> {
  const webhook = yield* hold(ofBucket, id)
  if (webhook === null) return false
  yield* change(
    'UPDATE webhooks SET earlier_secret = secret, earlier_until = $1, secret = $2 WHERE id = $3',
    ...[replacedUntil, secret, id],
  )
  yield* record(by, (by) =>
    webhookEvent('webhook-rotate', webhook, by, { replaced_until: new Date(replacedUntil).toISOString() }),
  )
  return true
}

/** As WebhookCatalog.removeWebhook. */
export function* removeWebhook({
  ofBucket,
  id,
  by,
}: Audited & { readonly ofBucket: BucketId; readonly id: WebhookId }): Work<boolean> {
  const webhook = yield* hold(ofBucket, id)
  if (webhook === null) return false
  yield* change(
    'DELETE FROM webhook_deliveries WHERE webhook = (SELECT number FROM webhooks WHERE id = $1)',
    id,
  )
  yield* change('DELETE FROM webhooks WHERE id = $1', id)
  yield* record(by, (by) => webhookEvent('webhook-delete', webhook, by, {}))
  return true
}

const deliveryColumns =
  'message_id, type, time, duration, changes, first_position, last_position, status, reason, response, manual'

function readDelivery(row: Row): StoredDelivery {
  const first = integerOrNull(row, 6)
  return {
    number: integer(row, 0),
    messageId: text(row, 1),
    type: text(row, 2),
    time: integer(row, 3),
    duration: integer(row, 4),
    changes: integer(row, 5),
    range: first === null ? null : { first, last: integer(row, 7) },
    status: integerOrNull(row, 8),
    reason: textOrNull(row, 9),
    response: text(row, 10),
    isManual: integer(row, 11) === 1,
  }
}

export const listDeliveries = (id: WebhookId): Query<StoredDelivery[]> =>
  all(
    readDelivery,
    `SELECT webhook_deliveries.number, ${deliveryColumns} FROM webhook_deliveries
    JOIN webhooks ON webhooks.number = webhook WHERE webhooks.id = $1 ORDER BY webhook_deliveries.number DESC`,
    id,
  )

/** Whether the feed has something after the position, or no longer has what was after it. */
const hasChanges = `EXISTS (SELECT 1 FROM changes WHERE changes.bucket_id = webhooks.bucket_id AND changes.number > position)
  OR EXISTS (SELECT 1 FROM buckets WHERE buckets.id = webhooks.bucket_id AND changes_start > position)`

/**
 * Leases are counted by the clock of the database: those of the processes may differ. A lease that ends after more than twice its length was
 * taken before the clock was set back.
 */
const isFree = (owner: string, engine: EngineName) =>
  `(owner IS NULL OR owner = ${owner} OR owned_until NOT BETWEEN ${databaseTime[engine]} + 1
    AND ${databaseTime[engine]} + ${2 * longestLease})`

const dueSelection = eachEngine(
  (engine) => `SELECT id FROM webhooks WHERE state = ${on} AND ${isFree('$1', engine)}
    AND coalesce(next_attempt <= $2, true) AND (position IS NULL OR ${hasChanges})
  ORDER BY next_attempt IS NOT NULL, coalesce(owned_until, 0), number LIMIT $3`,
)

const claim = eachEngine(
  (engine) => `UPDATE webhooks SET owner = $2, owned_until = ${databaseTime[engine]} + $3::int8
  WHERE id = $1 AND state = ${on} AND ${isFree('$2', engine)}`,
)

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
  yield* change('DELETE FROM webhook_deliveries')
  yield* change('DELETE FROM webhooks')
  for (const { id, bucketId, url, kinds, batch, state, createdAt, ...secrets } of webhooks)
    yield* change(
      `INSERT INTO webhooks (id, bucket_id, url, kinds, batch, state, created_at, secret, earlier_secret, earlier_until)
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      ...[id, bucketId, url, kinds.join(' '), batch, numberOf(state), createdAt],
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
    `SELECT coalesce(sum(CASE WHEN state = ${on} AND failing_since IS NOT NULL THEN 1 ELSE 0 END), 0)::int8,
      coalesce(sum(CASE WHEN state IN (${numberOf('gone')}, ${numberOf('failed')}) THEN 1 ELSE 0 END), 0)::int8
    FROM webhooks`,
  )
  return counts ?? { failingWebhooks: 0, stoppedWebhooks: 0 }
}

export const listWebhookBuckets = (): Query<BucketId[]> =>
  all((row) => bucketIdOf(row, 0), `SELECT DISTINCT bucket_id FROM webhooks WHERE state = ${on}`)

/** As WebhookCatalog.dueWebhooks. */
export const dueWebhooks = (owner: string, now: number, limit: number): Query<WebhookId[]> =>
  all((row) => webhookIdOf(row, 0), dueSelection, owner, now, limit)

/** As WebhookCatalog.claimWebhook. */
export function* claimWebhook({
  id,
  owner,
  lifetime,
}: {
  readonly id: WebhookId
  readonly owner: string
  readonly lifetime: number
}): Work<WebhookReader | null> {
  const claimed = yield* change(claim, id, owner, lifetime)
  return claimed === 1 ? yield* findWebhook(id, Date.now()) : null
}

export function* releaseWebhooks({ owner }: { readonly owner: string }): Work<undefined> {
  yield* change('UPDATE webhooks SET owner = NULL, owned_until = NULL WHERE owner = $1', owner)
}

/** As WebhookCatalog.recordAttempt. */
export function* recordAttempt({
  id,
  owner,
  from,
  outcome,
  delivery,
  by,
}: Audited & WebhookAttempt): Work<boolean> {
  const isOwned = `id = $1 AND owner = $2 AND state = ${on} AND position IS NOT DISTINCT FROM $3::int8`
  if ('position' in outcome) {
    const moved = yield* change(
      `UPDATE webhooks SET position = $4, pending = NULL, failing_since = NULL, failures = 0, next_attempt = NULL
      WHERE ${isOwned}`,
      ...[id, owner, from, outcome.position],
    )
    if (moved !== 1) return false
  } else {
    const { failedAt, pending, nextAttempt, state } = outcome
    const failed = yield* change(
      `UPDATE webhooks SET pending = $4, failing_since = coalesce(failing_since, $5), failures = failures + 1,
        next_attempt = $6, state = $7 WHERE ${isOwned}`,
      ...[id, owner, from, pending, failedAt, nextAttempt, numberOf(state)],
    )
    if (failed !== 1) return false
    if (state !== 'on') {
      const webhook = yield* findWebhook(id, failedAt)
      if (webhook !== null) yield* record(by, (by) => webhookEvent('webhook-set', webhook, by, { state }))
    }
  }
  if (delivery !== null) yield* storeDelivery(id, delivery)
  return true
}

/** As WebhookCatalog.recordManualDelivery. */
export function* recordManualDelivery({
  id,
  delivery,
}: {
  readonly id: WebhookId
  readonly delivery: WebhookDelivery
}): Work<number | null> {
  const isFound = yield* first(() => true, 'SELECT 1 FROM webhooks WHERE id = $1 FOR UPDATE', id)
  if (isFound === null) return null
  if (delivery.reason === null)
    yield* change('UPDATE webhooks SET next_attempt = NULL WHERE id = $1 AND next_attempt IS NOT NULL', id)
  return yield* storeDelivery(id, delivery)
}

/** Only the last deliveries stay. Returns the number of the delivery. */
function* storeDelivery(id: WebhookId, delivery: WebhookDelivery): Work<number | null> {
  const numbers = yield* first(
    (row) => ({ webhook: integer(row, 0), number: integer(row, 1) }),
    'UPDATE webhooks SET deliveries = deliveries + 1 WHERE id = $1 RETURNING number, deliveries',
    id,
  )
  if (numbers === null) return null
  const { webhook, number } = numbers
  const { messageId, type, time, duration, changes, range, status, reason, response, isManual } = delivery
  yield* change(
    `INSERT INTO webhook_deliveries (webhook, number, ${deliveryColumns})
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    ...[webhook, number, messageId, type, time, duration, changes, range?.first ?? null, range?.last ?? null],
    ...[status, reason, response, Number(isManual)],
  )
  yield* change(
    'DELETE FROM webhook_deliveries WHERE webhook = $1 AND number <= $2',
    ...[webhook, number - keptDeliveries],
  )
  return number
}

/** The rest of the URL may be a secret. */
const webhookEvent = (
  action: AuditAction & `webhook-${string}`,
  { id, bucketId, url }: Pick<Webhook, 'id' | 'bucketId' | 'url'>,
  by: Actor,
  detail: NonNullable<AuditEvent['detail']>,
): AuditEvent => ({ action, by, bucketId, target: id, name: originOf(url), detail })
