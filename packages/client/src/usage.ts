import type { CallOptions } from './client-options.ts'
import { followCursors, sendJson } from './json.ts'
import type { SendSettings } from './send.ts'
import { arrayOf, type Check, count, flag, objectOf, parse, text, textOrNull } from './shape.ts'
import { type Endpoints, withParameters } from './urls.ts'

interface Amount {
  readonly items: number
  readonly bytes: number
}

/** The usage of a bucket on one day, as on the wire. */
export interface Usage {
  /** The day (UTC), such as `2026-11-29`. */
  readonly day: string
  /** Whether the day has not ended, so that its figures still change. */
  readonly is_partial: boolean
  /** At the end of the day, without those in the trash. */
  readonly items: number
  /** At the end of the day, with those in the trash. */
  readonly bytes: number
  /** What uploads and restored items have added. */
  readonly added: Amount
  /** What was deleted or has expired. */
  readonly removed: Amount
  /** Bytes of items and variants that were sent. */
  readonly downloaded_bytes: number
  /** Requests by kind. Those of the last minute may be missing, as may their downloads. */
  readonly requests: {
    readonly list: number
    readonly download: number
    readonly upload: number
    readonly other: number
  }
}

/** The usage of one of all buckets. */
export interface BucketUsage extends Usage {
  readonly bucket: string
  /** RFC 3339, UTC; null for a bucket that exists. */
  readonly deleted_at: string | null
}

export interface UsageOptions extends CallOptions {
  /** The first day (UTC), such as `2026-11-01`, 399 days ago at the earliest. Default: 29 days before `to`. */
  readonly from?: string | undefined
  /** The last day. Default: today. */
  readonly to?: string | undefined
}

export interface DayOptions extends CallOptions {
  /** The day (UTC), such as `2026-11-01`, 399 days ago at the earliest. Default: today. */
  readonly day?: string | undefined
}

const amount: Check<Amount> = objectOf<Amount>({ items: count, bytes: count })

const usageMembers = {
  day: text,
  is_partial: flag,
  items: count,
  bytes: count,
  added: amount,
  removed: amount,
  downloaded_bytes: count,
  requests: objectOf<Usage['requests']>({ list: count, download: count, upload: count, other: count }),
}

export const usageShape: Check<Usage> = objectOf<Usage>(usageMembers)

const daysShape = objectOf<{ readonly data: readonly Usage[] }>({ data: arrayOf(usageShape) })
const bucketUsageShape: Check<BucketUsage> = objectOf<BucketUsage>({
  bucket: text,
  deleted_at: textOrNull,
  ...usageMembers,
})

const what = 'a usage'

/** Fetches the usage of a bucket by day, the earliest day first. */
export async function fetchUsage(
  settings: SendSettings,
  bucketUrl: string,
  { from, to, signal }: UsageOptions,
): Promise<readonly Usage[]> {
  const { data } = await sendJson(settings, {
    url: withParameters(`${bucketUrl}/usage`, { from, to }),
    signal,
    what,
    read: (value) => parse(what, daysShape, value),
  })
  return data
}

/** Iterates over the usage of all buckets on a day, by name. */
export const iterateUsage = (
  settings: SendSettings,
  endpoints: Pick<Endpoints, 'usage'>,
  { day, signal }: DayOptions,
): AsyncGenerator<BucketUsage, void, undefined> =>
  followCursors(settings, {
    url: withParameters(endpoints.usage, { day }),
    what,
    item: bucketUsageShape,
    signal,
  })
