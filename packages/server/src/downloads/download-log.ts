import type { IncomingMessage } from 'node:http'
import { type Actor, service } from '../core/token-rules.ts'
import type { Variant } from '../core/variants.ts'
import type { Exchange } from '../http/route.ts'
import type { AuditDetail, AuditEvent } from '../storage/catalog/audit/audit-events.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Item } from '../storage/catalog/records.ts'
import type { PrivateAccess } from './private-access.ts'

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

/** What an event has of the item. */
export type DownloadedItem = Pick<Item, 'id' | 'bucketId' | 'filename' | 'size'>

/** Who sends the bytes of a response: this service, the reverse proxy in front of it, or the S3 store. */
export type Sender = 'service' | 'proxy' | 'store'

interface Download {
  readonly variant: Variant | null
  /** Null for public items. */
  readonly access: PrivateAccess | null
  readonly range?: string
  readonly sentBy?: Sender
}

/** Records a response with bytes in the audit log (docs/interface.md Y8). Call it when the response begins. */
export type DownloadRecorder = (
  exchange: Pick<Exchange, 'id' | 'request'>,
  item: DownloadedItem,
  download: Download,
) => void

export const createDownloadRecorder =
  (
    { record }: Pick<DownloadLog, 'record'>,
    /** Null if the address is unknown. */
    addressOf: (request: IncomingMessage) => string | null,
  ): DownloadRecorder =>
  ({ id: requestId, request }, { id, bucketId, filename, size }, download) => {
    const { access } = download
    const by: Actor =
      access?.by === 'token'
        ? access.actor
        : { kind: 'client', tokenId: null, subject: null, address: addressOf(request), requestId }
    const detail = detailOf(download)
    record({ action: 'download', by, bucketId, target: id, name: filename, size, ...(detail && { detail }) })
  }

/** Undefined for all bytes of a public item, or with a token, that the service sends itself: most downloads. */
function detailOf({ variant, access, range, sentBy = 'service' }: Download): AuditDetail | undefined {
  const isLink = access?.by === 'link'
  if (variant === null && !isLink && range === undefined && sentBy === 'service') return undefined
  return {
    ...(variant && { variant: variant.name }),
    ...(range !== undefined && { range }),
    ...(isLink && { key: access.keyId, expires_at: new Date(access.expires * 1000).toISOString() }),
    ...(sentBy !== 'service' && { sent_by: sentBy }),
  }
}
