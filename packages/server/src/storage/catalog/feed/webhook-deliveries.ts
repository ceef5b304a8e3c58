import { type Actor, service } from '../../../core/token-rules.ts'
import { keptDeliveries, type WebhookId, type WebhookState } from '../../../core/webhook-rules.ts'
import { auditedWritesOf, writesOf } from '../declarations.ts'
import { itemChangeKinds } from '../items/item-changes.ts'
import type { BucketId } from '../records.ts'
import {
  all,
  bucketIdOf,
  databaseTime,
  type EngineName,
  eachEngine,
  first,
  integer,
  integerOrNull,
  type Query,
  type Row,
  record,
  text,
  textOrNull,
  type Work,
  webhookIdOf,
  write,
} from '../statements.ts'
import {
  findWebhook,
  noFailures,
  stateNumber,
  stateOn,
  type WebhookReader,
  type WebhookSettings,
  webhookEvent,
} from './webhooks.ts'

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
      /** As WebhookReader.failingFor. */
      readonly failingFor: number
      /** The last change of the delivery. */
      readonly pending: number | null
      readonly nextAttempt: number
      /** Switches the webhook off. */
      readonly state: WebhookState
      /** Those of the attempt: its failure says nothing about others that were set in the meantime. */
      readonly settings: WebhookSettings
    }

interface DueWebhook {
  readonly id: WebhookId
  readonly bucketId: BucketId
}

/** Webhooks of one bucket that are served at the same time. */
export const servedPerBucket = 4

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

/** A webhook that delivers some kinds passes by changes of others at once if there are more than this many. */
export const passedAtOnce = 100

/** Milliseconds after which it passes by fewer. */
export const passInterval = 10_000

const kindName = `CASE kind ${Object.entries(itemChangeKinds)
  .map(([name, kind]) => `WHEN ${kind} THEN '${name}'`)
  .join(' ')} END`

const following = 'FROM changes WHERE changes.bucket_id = webhooks.bucket_id AND changes.number > position'

/**
 * Whether the feed has something to deliver after the position, or something to pass by, or no longer has what was after the position. The
 * rows that are read are few: a position is passed on before many changes of other kinds follow it.
 */
const hasWork = `EXISTS (SELECT 1 ${following} AND (kinds = '' OR ' ' || kinds || ' ' LIKE '% ' || ${kindName} || ' %'))
  OR (SELECT time ${following} ORDER BY number LIMIT 1) <= $2::int8 - ${passInterval}
  OR EXISTS (SELECT 1 ${following} ORDER BY number LIMIT 1 OFFSET ${passedAtOnce})
  OR EXISTS (SELECT 1 FROM buckets WHERE buckets.id = webhooks.bucket_id AND changes_start > position)`

/**
 * Leases are counted by the clock of the database: those of the processes may differ. A lease that ends after more than twice its length was
 * taken before the clock was set back.
 */
const isFree = (owner: string, engine: EngineName) =>
  `(owner IS NULL OR owner = ${owner} OR owned_until NOT BETWEEN ${databaseTime[engine]} + 1
    AND ${databaseTime[engine]} + ${2 * longestLease})`

/** Milliseconds by which the clocks of two servers may differ. */
const clockDifference = 60_000

/** A wait ends before its time if the clock was set back behind the attempt that has failed. */
const isWaiting = `(next_attempt > $2::int8 AND attempted_at <= $2::int8 + ${clockDifference})`

/** As `isWaiting`, of a webhook that was read. */
export const isWebhookWaiting = (
  { nextAttempt, attemptedAt }: Pick<WebhookReader, 'nextAttempt' | 'attemptedAt'>,
  now: number,
): boolean =>
  nextAttempt !== null && nextAttempt > now && attemptedAt !== null && attemptedAt <= now + clockDifference

/** Since when a webhook waits: for a retry its time, otherwise its last turn. */
const waitsSince = 'coalesce(next_attempt, owned_until, 0)'

const dueSelection = eachEngine(
  (engine) => `SELECT id, bucket_id FROM (
    SELECT id, bucket_id, number, ${waitsSince} AS since,
      row_number() OVER (PARTITION BY bucket_id ORDER BY ${waitsSince}, number) AS place
    FROM webhooks WHERE state = ${stateOn} AND ${isFree('$1', engine)} AND NOT (id = ANY ($4::text[]))
      AND NOT coalesce(${isWaiting}, false) AND (position IS NULL OR ${hasWork})
  ) AS due WHERE place <= ${servedPerBucket} ORDER BY since, number LIMIT $3`,
)

const claim = eachEngine(
  (engine) => `UPDATE webhooks SET owner = $2, owned_until = ${databaseTime[engine]} + $3::int8
  WHERE id = $1 AND state = ${stateOn} AND ${isFree('$2', engine)}`,
)

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

/** The last deliveries of a webhook, latest first. */
export const listWebhookDeliveries = (id: WebhookId): Query<StoredDelivery[]> =>
  all(
    readDelivery,
    `SELECT webhook_deliveries.number, ${deliveryColumns} FROM webhook_deliveries
    JOIN webhooks ON webhooks.number = webhook WHERE webhooks.id = $1 ORDER BY webhook_deliveries.number DESC`,
    id,
  )

/** The buckets with webhooks that are switched on. */
export const listWebhookBuckets = (): Query<BucketId[]> =>
  all((row) => bucketIdOf(row, 0), `SELECT DISTINCT bucket_id FROM webhooks WHERE state = ${stateOn}`)

/**
 * Up to `limit` webhooks with a delivery to make or changes to pass by, for which no other owner has a lease: the one that waits longest
 * first. Of each bucket at most four, and none of those in `except`.
 */
export const dueWebhooks = (
  owner: string,
  now: number,
  limit: number,
  except: readonly WebhookId[] = [],
): Query<DueWebhook[]> =>
  all(
    (row) => ({ id: webhookIdOf(row, 0), bucketId: bucketIdOf(row, 1) }),
    dueSelection,
    ...[owner, now, limit, except],
  )

/** Takes the lease of a webhook for some milliseconds. Null if another owner has it, or if the webhook is not switched on. */
export function* claimWebhook(id: WebhookId, owner: string, lifetime: number): Work<WebhookReader | null> {
  const claimed = yield* write(claim, id, owner, lifetime)
  return claimed === 1 ? yield* findWebhook(id) : null
}

/** Ends all leases of an owner. */
export function* releaseWebhooks(owner: string): Work<undefined> {
  yield* write('UPDATE webhooks SET owner = NULL, owned_until = NULL WHERE owner = $1', owner)
}

/**
 * Stores an attempt of the owner of the lease, and what it changes. False if the lease has ended or the webhook has changed. In the audit log the
 * service does it.
 */
export function* recordAttempt(
  { id, owner, from, outcome, delivery }: WebhookAttempt,
  by?: Actor,
): Work<boolean> {
  const isOwned = `id = $1 AND owner = $2 AND state = ${stateOn} AND position IS NOT DISTINCT FROM $3::int8`
  if ('position' in outcome) {
    const moved = yield* write(
      `UPDATE webhooks SET position = $4, ${noFailures} WHERE ${isOwned}`,
      ...[id, owner, from, outcome.position],
    )
    if (moved !== 1) return false
  } else {
    const { failedAt, failingFor, pending, nextAttempt, state, settings } = outcome
    const { url, kinds, batch } = settings
    const failed = yield* write(
      `UPDATE webhooks SET pending = $4, failing_since = coalesce(failing_since, $5), failures = failures + 1,
        attempted_at = $5, next_attempt = $6, state = $7, failing_for = $8
      WHERE ${isOwned} AND url = $9 AND kinds = $10 AND batch = $11`,
      ...[id, owner, from, pending, failedAt, nextAttempt, stateNumber(state), failingFor],
      ...[url, kinds.join(' '), batch],
    )
    if (failed !== 1) return false
    if (state !== 'on') {
      const webhook = yield* findWebhook(id, failedAt)
      if (webhook !== null) yield* record(by, () => webhookEvent('webhook-set', webhook, service, { state }))
    }
  }
  if (delivery !== null) yield* storeDelivery(id, delivery)
  return true
}

/**
 * Stores a delivery that somebody asked for, and returns its number. If it succeeded, the next attempt is made at once. Null if there is no
 * such webhook.
 */
export function* recordManualDelivery(id: WebhookId, delivery: WebhookDelivery): Work<number | null> {
  const isFound = yield* first(() => true, 'SELECT 1 FROM webhooks WHERE id = $1 FOR UPDATE', id)
  if (isFound === null) return null
  if (delivery.reason === null)
    yield* write('UPDATE webhooks SET next_attempt = NULL WHERE id = $1 AND next_attempt IS NOT NULL', id)
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
  yield* write(
    `INSERT INTO webhook_deliveries (webhook, number, ${deliveryColumns})
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    ...[webhook, number, messageId, type, time, duration, changes, range?.first ?? null, range?.last ?? null],
    ...[status, reason, response, Number(isManual)],
  )
  yield* write(
    'DELETE FROM webhook_deliveries WHERE webhook = $1 AND number <= $2',
    ...[webhook, number - keptDeliveries],
  )
  return number
}

export const reads = { listWebhookDeliveries, listWebhookBuckets, dueWebhooks }

export const writes = {
  ...writesOf({ claimWebhook, releaseWebhooks, recordManualDelivery }),
  ...auditedWritesOf({ recordAttempt }),
}
