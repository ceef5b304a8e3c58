import type { BucketManager, Usage } from '@mediabucket/client'
import { type Signal, signal } from '@preact/signals'
import type { Connection } from '../service/connection.ts'

/** The usage of the last days of many buckets. */
export interface Usages {
  /** Null until it is loaded. */
  of(bucket: string): Signal<readonly Usage[] | null>
  /** Loads the usage of these buckets, in this order, a few at a time. Those that were wanted before and have not begun are left out. */
  want(buckets: readonly string[]): void
  /** Forgets all, so that it is loaded again. */
  clear(): void
  close(): void
}

/** Requests at a time. */
const atOnce = 4

/** Of the lines in the list. */
const shownDays = 30

/** The day (UTC) that is so many days before today. */
export const daysAgo = (count: number): string =>
  new Date(Date.now() - count * 86_400_000).toISOString().slice(0, 10)

export function createUsages(buckets: Pick<BucketManager, 'usage'>, connection: Connection): Usages {
  const closing = new AbortController()
  const known = new Map<string, Signal<readonly Usage[] | null>>()
  const begun = new Set<string>()
  let wanted: readonly string[] = []
  let running = 0

  function of(bucket: string): Signal<readonly Usage[] | null> {
    const found = known.get(bucket) ?? signal(null)
    known.set(bucket, found)
    return found
  }

  async function load(bucket: string): Promise<void> {
    begun.add(bucket)
    running += 1
    try {
      of(bucket).value = await buckets.usage(bucket, { from: daysAgo(shownDays - 1), signal: closing.signal })
    } catch {
      // The row is shown without it, and it is requested again when the row is shown again.
      begun.delete(bucket)
      wanted = wanted.filter((name) => name !== bucket)
    }
    running -= 1
    next()
  }

  function next(): void {
    if (closing.signal.aborted || connection.lost.peek()) return
    for (const bucket of wanted) {
      if (running >= atOnce) return
      if (!begun.has(bucket)) void load(bucket)
    }
  }

  return {
    of,
    want(names) {
      wanted = names
      next()
    },
    clear() {
      begun.clear()
      next()
    },
    close: () => closing.abort(),
  }
}
