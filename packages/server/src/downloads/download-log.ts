import type { IncomingMessage } from 'node:http'
import { type Actor, service } from '../core/token-rules.ts'
import type { Variant } from '../core/variants.ts'
import type { Exchange } from '../http/route.ts'
import type { AuditDetail, AuditEvent } from '../storage/catalog/audit/audit-events.ts'
import type { Catalog } from '../storage/catalog/catalog.ts'
import type { Item } from '../storage/catalog/records.ts'
import type { PrivateAccess } from './private-access.ts'

/** Milliseconds that an event waits at the most, while the catalog can be written. */
const longestWait = 1_000
/** Events in one transaction. It takes some milliseconds, during which uploads wait. */
const batchLength = 500
/** Events in memory, at about 500 bytes each. Further ones are lost. */
const maxWaiting = 20_000

interface LogParts {
  readonly catalog: Pick<Catalog, 'recordEvents'>
  readonly now: () => number
  readonly limit?: number
  /** Whether the disk of the catalog has space for downloads. */
  readonly hasRoom: () => boolean
  /** Receives the number of events that are lost, each event once. */
  readonly onLoss: (count: number) => void
  /** Receives the error of each batch that could not be stored. */
  readonly onFailure: (error: unknown) => void
}

/**
 * Events of downloads, which are stored some time after their response began (docs/interface.md Y8), in batches: each second, and at once
 * when there are enough for a batch. A failed batch is repeated a second later. Beyond `limit` events, and while there is no room, events
 * are counted instead, and an event with their number is stored as soon as that is possible.
 */
export class DownloadLog {
  readonly #parts: LogParts
  readonly #limit: number
  #waiting: AuditEvent[] = []
  #lostCount = 0
  #timer: NodeJS.Timeout | null = null
  #storing: Promise<void> | null = null

  constructor(parts: LogParts) {
    this.#parts = parts
    this.#limit = parts.limit ?? maxWaiting
  }

  /** Adds an event of this moment. Takes no time of the request, and never fails. */
  record(event: AuditEvent): void {
    if (this.#waiting.length >= this.#limit) {
      this.#lose(1)
      return
    }
    this.#waiting.push({ ...event, time: this.#parts.now() })
    if (this.#waiting.length === batchLength) void this.#store()
    else this.#startTimer()
  }

  /** Stores what is waiting, once no request is in progress. Returns the number of events that could not be stored. */
  async close(): Promise<number> {
    for (let left = Infinity; this.#waiting.length > 0 && this.#waiting.length < left; ) {
      left = this.#waiting.length
      await this.#storing
      if (this.#waiting.length > 0) await this.#store()
    }
    if (this.#timer) clearTimeout(this.#timer)
    return this.#waiting.length + this.#lostCount
  }

  #store(): Promise<void> {
    this.#storing ??= this.#storeBatches()
      .catch((error: unknown) => this.#parts.onFailure(error))
      .finally(() => {
        this.#storing = null
        if (this.#waiting.length + this.#lostCount > 0) this.#startTimer()
      })
    return this.#storing
  }

  /** Stores what is waiting; while further events arrive, only complete batches, so that transactions are not small. */
  async #storeBatches(): Promise<void> {
    do await this.#storeBatch()
    while (this.#waiting.length >= batchLength)
  }

  async #storeBatch(): Promise<void> {
    const { catalog, now, hasRoom } = this.#parts
    if (!hasRoom()) {
      if (this.#waiting.length > 0) this.#lose(this.#waiting.length)
      this.#waiting = []
      return
    }
    const [batch, lost] = [this.#waiting.slice(0, batchLength), this.#lostCount]
    await catalog.recordEvents(lost === 0 ? batch : [...batch, lossEvent(lost, now())])
    this.#waiting = this.#waiting.slice(batch.length)
    this.#lostCount -= lost
  }

  #lose(count: number): void {
    this.#lostCount += count
    this.#parts.onLoss(count)
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      void this.#store()
    }, longestWait)
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
    log: Pick<DownloadLog, 'record'>,
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
    log.record({
      action: 'download',
      by,
      bucketId,
      target: id,
      name: filename,
      size,
      ...(detail && { detail }),
    })
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
