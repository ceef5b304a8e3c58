import { dayOf, formatDay } from '../core/times.ts'
import type { DayUsage } from '../storage/catalog/usage.ts'
import type { ValueOf } from './openapi/schemas.ts'
import type { UsageObject } from './openapi/usage-schemas.ts'

/** The usage of a day as the API represents it (docs/interface.md US1). `now` is milliseconds since 1970. */
export const usageObject = (usage: DayUsage, now: number): ValueOf<typeof UsageObject> => ({
  day: formatDay(usage.day),
  is_partial: usage.day >= dayOf(now),
  // Where the clock was ahead, items are removed on a day before they were added.
  items: Math.max(usage.items, 0),
  bytes: Math.max(usage.bytes, 0),
  added: { items: usage.addedItems, bytes: usage.addedBytes },
  removed: { items: usage.removedItems, bytes: usage.removedBytes },
  downloaded_bytes: usage.downloadedBytes,
  requests: {
    list: usage.listRequests,
    download: usage.downloadRequests,
    upload: usage.uploadRequests,
    other: usage.otherRequests,
  },
})
