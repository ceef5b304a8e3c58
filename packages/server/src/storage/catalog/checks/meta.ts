import { randomBytes } from 'node:crypto'
import { locationKey, renewHistory } from '../feed/history.ts'
import { fenceKey, fencePattern, raiseFence } from '../moved-data.ts'
import { type Query, type Work, write } from '../statements.ts'
import { dataKey, identityPattern, readMeta, writeMeta } from '../upkeep.ts'

// What the table `meta` contains: one row for each fact about the whole catalog.

/** A row of `meta` that is missing, or whose value the service did not write. */
export interface MetaFault {
  readonly key: string
  /** Null if it is missing. */
  readonly value: string | null
}

interface MetaCheck {
  readonly pattern: RegExp
  readonly isRequired?: boolean
  /** Writes another value. Left out if the row is removed, because the service writes it again. */
  readonly correct?: () => Work<unknown>
}

/** Ids of buckets that a correction passes by, because deleted ones may have had them. */
const bucketIdLeap = 2 ** 20

/** A valid epoch of a catalog. */
export const epochPattern = /^[0-9a-f]{32}$/

const checks: Readonly<Record<string, MetaCheck>> = {
  // With another one, no cursor and no entity tag of before is valid.
  epoch: {
    pattern: epochPattern,
    isRequired: true,
    correct: () => writeMeta('epoch', randomBytes(16).toString('hex')),
  },
  // The data may have been copied, which the next start cannot notice any more.
  [locationKey]: {
    pattern: /^(?:\d+(?:\/\d+){1,2})?$/,
    isRequired: true,
    *correct() {
      yield* renewHistory([])
      yield* writeMeta(locationKey, '')
    },
  },
  blobs: { pattern: identityPattern },
  [dataKey]: { pattern: identityPattern },
  last_bucket_id: {
    pattern: /^\d{1,15}$/,
    correct: () =>
      write({
        sqlite: `UPDATE meta SET value = CAST((SELECT coalesce(max(id), 0) + ${bucketIdLeap} FROM buckets) AS TEXT)
        WHERE key = 'last_bucket_id'`,
        postgres: null,
      }),
  },
  audit_ahead: {
    pattern: /^\d{1,16}$/,
    correct: () =>
      write({
        sqlite: `UPDATE meta SET value = CAST((SELECT coalesce(max(id), 0) FROM audit_events) AS TEXT)
        WHERE key = 'audit_ahead'`,
        postgres: null,
      }),
  },
  audit: { pattern: /^(?:on|off)$/ },
  'last-backup': { pattern: /^\d+ \d+$/ },
  'last-fsck': { pattern: /^\d+ \d+$/ },
  failed_commits: { pattern: /^\d+$/ },
  write_check: { pattern: /^\d+$/ },
  variant_sizes: { pattern: identityPattern },
  [fenceKey]: { pattern: fencePattern, correct: raiseFence },
}

/** The rows of `meta` that are missing or wrong. A database whose version is wrong cannot be opened. */
export function* metaFaults(): Query<MetaFault[]> {
  const faults: MetaFault[] = []
  for (const [key, { pattern, isRequired = false }] of Object.entries(checks)) {
    const value = yield* readMeta(key)
    if (value === null ? isRequired : !pattern.test(value)) faults.push({ key, value })
  }
  return faults
}

/** Also corrects them, in the transaction of the caller. */
export function* correctMeta(): Work<MetaFault[]> {
  const faults = yield* metaFaults()
  for (const { key } of faults)
    yield* checks[key]?.correct?.() ?? write('DELETE FROM meta WHERE key = $1', key)
  return faults
}
