import { type Check, count, flag, objectOf, text } from './shape.ts'

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

const amount: Check<Amount> = objectOf<Amount>({ items: count, bytes: count })

export const usageMembers = {
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
