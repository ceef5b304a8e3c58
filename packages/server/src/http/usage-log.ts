import { dayOf } from '../core/times.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { BucketId } from '../storage/catalog/records.ts'
import type { CountedRequests } from '../storage/catalog/usage.ts'

/** What a request asks for, in the usage of its bucket (docs/interface.md US4). */
export type RequestKind = 'list' | 'download' | 'upload' | 'other'

/** Milliseconds that counts wait at the most, while the catalog can be written. */
const longestWait = 40_000
/** Rows in one transaction. It takes some milliseconds, during which uploads wait. */
const batchLength = 200

interface UsageParts {
  readonly catalog: Pick<Catalog, 'addUsage'>
  readonly now: () => number
  /** Whether the disk of the catalog has space. */
  readonly hasRoom: () => boolean
  /** Receives the error of each batch that could not be stored. */
  readonly onFailure: (error: unknown) => void
}

/** What was counted of one bucket. */
interface Counts {
  bytes: number
  list: number
  download: number
  upload: number
  other: number
}

type Day = Map<BucketId, Counts>

/** Where requests are counted. */
export type UsageCounter = Pick<UsageLog, 'countRequest' | 'countBytes'>

/**
 * Counts the requests and downloads of each bucket in memory, and adds them to its usage within a minute, in batches. A failed batch is repeated
 * later: what waits has a row for each bucket and day at the most. Counting never fails.
 */
export class UsageLog {
  readonly #parts: UsageParts
  #today = 0
  /** Of today. A new map for each batch: V8 keeps the entries of a cleared one (core/slab.ts). */
  #counts: Day = new Map()
  /** Of earlier days, and of batches that failed. */
  #earlier = new Map<number, Day>()
  #timer: NodeJS.Timeout | null = null
  #storing: Promise<void> | null = null

  constructor(parts: UsageParts) {
    this.#parts = parts
  }

  /** Counts a request whose bucket is known, and bytes of an item that are sent at once. */
  countRequest(bucketId: BucketId, kind: RequestKind, bytes = 0): void {
    const counts = this.#countsOf(bucketId)
    counts[kind] += 1
    counts.bytes += bytes
  }

  /** Counts bytes of items that were sent. */
  countBytes(bucketId: BucketId, bytes: number): void {
    this.#countsOf(bucketId).bytes += bytes
  }

  /** Stores what is waiting, once no request is in progress. Returns the number of buckets and days that could not be stored. */
  async close(): Promise<number> {
    await this.#storing
    await this.#store()
    if (this.#timer) clearTimeout(this.#timer)
    return this.#rows().length
  }

  #countsOf(bucketId: BucketId): Counts {
    const day = dayOf(this.#parts.now())
    if (day !== this.#today) this.#begin(day)
    const found = this.#counts.get(bucketId)
    if (found !== undefined) return found
    this.#startTimer()
    return addCounts(this.#counts, bucketId)
  }

  #begin(day: number): void {
    if (this.#counts.size > 0) this.#earlier.set(this.#today, this.#counts)
    this.#today = day
    this.#counts = this.#earlier.get(day) ?? new Map()
    this.#earlier.delete(day)
  }

  #rows(): CountedRequests[] {
    const days = [...this.#earlier, [this.#today, this.#counts] as const]
    return days.flatMap(([day, counts]) => [...counts].map(([bucketId, one]) => rowOf(bucketId, day, one)))
  }

  #store(): Promise<void> {
    this.#storing ??= this.#storeRows()
      .catch((error: unknown) => this.#parts.onFailure(error))
      .finally(() => {
        this.#storing = null
        if (this.#counts.size + this.#earlier.size > 0) this.#startTimer()
      })
    return this.#storing
  }

  async #storeRows(): Promise<void> {
    const { catalog, hasRoom } = this.#parts
    if (!hasRoom()) return
    const rows = this.#rows()
    this.#counts = new Map()
    this.#earlier = new Map()
    let done = 0
    try {
      for (; done < rows.length; done += batchLength)
        await catalog.addUsage(rows.slice(done, done + batchLength))
    } finally {
      for (const row of rows.slice(done)) this.#putBack(row)
    }
  }

  #putBack({ bucketId, day, ...row }: CountedRequests): void {
    const days = day === this.#today ? this.#counts : (this.#earlier.get(day) ?? new Map<BucketId, Counts>())
    if (day !== this.#today) this.#earlier.set(day, days)
    const counts = days.get(bucketId) ?? addCounts(days, bucketId)
    counts.bytes += row.downloadedBytes
    counts.list += row.listRequests
    counts.download += row.downloadRequests
    counts.upload += row.uploadRequests
    counts.other += row.otherRequests
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      void this.#store()
    }, longestWait)
  }
}

function addCounts(counts: Day, bucketId: BucketId): Counts {
  const added = { bytes: 0, list: 0, download: 0, upload: 0, other: 0 }
  counts.set(bucketId, added)
  return added
}

const rowOf = (bucketId: BucketId, day: number, counts: Counts): CountedRequests => ({
  ...{ bucketId, day, downloadedBytes: counts.bytes, listRequests: counts.list },
  ...{ downloadRequests: counts.download, uploadRequests: counts.upload, otherRequests: counts.other },
})
