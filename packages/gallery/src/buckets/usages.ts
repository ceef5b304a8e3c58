import type { Usage } from '@mediabucket/client'
import { type Signal, signal } from '@preact/signals'
import type { LoadUsage } from '../service/bucket-usage.ts'
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

/** The days (UTC) from the first of `count` days to today. */
export function lastDays(count: number, now = Date.now()): readonly [from: string, to: string] {
  const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10)
  return [dayOf(now - (count - 1) * 86_400_000), dayOf(now)]
}

export function createUsages(loadUsage: LoadUsage, connection: Connection, days = 30): Usages {
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
      of(bucket).value = await loadUsage(bucket, ...lastDays(days), closing.signal)
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
