import type { AuditEvent } from '../catalog/audit-log/events.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { service } from '../core/actor.ts'

/** Events of downloads, which are stored some time after their response began (docs/interface.md Y8). */
export interface DownloadLog {
  /** Adds an event of this moment. Takes no time of the request, and never fails. */
  record(event: AuditEvent): void
  /** Stores what is waiting, once no request is in progress. Returns the number of events that could not be stored. */
  close(): Promise<number>
}

/** Milliseconds that an event waits at the most, while the catalog can be written. */
const longestWait = 1_000
/** Events in one transaction. It takes some milliseconds, during which uploads wait. */
const batchLength = 500
/** Events in memory, at about 500 bytes each. Further ones are lost. */
const maxWaiting = 20_000

/**
 * Stores events in batches: each second, and at once when there are enough for a batch. A failed batch is repeated a second later. Beyond
 * `limit` events, and while there is no room, events are counted instead, and an event with their number is stored as soon as that is
 * possible.
 */
export function createDownloadLog(parts: {
  readonly catalog: Pick<Catalog, 'recordEvents'>
  readonly now: () => number
  readonly limit?: number
  /** Whether the disk of the catalog has space for downloads. */
  readonly hasRoom: () => boolean
  /** Receives the number of events that are lost, each event once. */
  readonly onLoss: (count: number) => void
  /** Receives the error of each batch that could not be stored. */
  readonly onFailure: (error: unknown) => void
}): DownloadLog {
  const { catalog, now, limit = maxWaiting, hasRoom, onLoss, onFailure } = parts
  let waiting: AuditEvent[] = []
  let lostCount = 0
  let timer: NodeJS.Timeout | null = null
  let storing: Promise<void> | null = null

  function lose(count: number): void {
    lostCount += count
    onLoss(count)
  }

  async function storeBatch(): Promise<void> {
    if (!hasRoom()) {
      if (waiting.length > 0) lose(waiting.length)
      waiting = []
      return
    }
    const [batch, lost] = [waiting.slice(0, batchLength), lostCount]
    await catalog.recordEvents(lost === 0 ? batch : [...batch, lossEvent(lost, now())])
    waiting = waiting.slice(batch.length)
    lostCount -= lost
  }

  /** Stores what is waiting; while further events arrive, only complete batches, so that transactions are not small. */
  async function storeBatches(): Promise<void> {
    do await storeBatch()
    while (waiting.length >= batchLength)
  }

  function store(): Promise<void> {
    storing ??= storeBatches()
      .catch(onFailure)
      .finally(() => {
        storing = null
        if (waiting.length + lostCount > 0) startTimer()
      })
    return storing
  }

  function startTimer(): void {
    timer ??= setTimeout(() => {
      timer = null
      void store()
    }, longestWait)
  }

  return {
    record(event) {
      if (waiting.length >= limit) {
        lose(1)
        return
      }
      waiting.push({ ...event, time: now() })
      if (waiting.length === batchLength) void store()
      else startTimer()
    },

    async close() {
      for (let left = Infinity; waiting.length > 0 && waiting.length < left; ) {
        left = waiting.length
        await storing
        if (waiting.length > 0) await store()
      }
      if (timer) clearTimeout(timer)
      return waiting.length + lostCount
    },
  }
}

const lossEvent = (count: number, time: number): AuditEvent => ({
  action: 'downloads-lost',
  by: service,
  bucketId: null,
  target: null,
  detail: { count },
  time,
})
