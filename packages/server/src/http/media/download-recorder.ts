import type { IncomingMessage } from 'node:http'
import type { AuditDetail } from '../../catalog/audit-log/events.ts'
import type { Item } from '../../catalog/records.ts'
import type { Actor } from '../../core/actor.ts'
import type { Variant } from '../../core/variant.ts'
import type { DownloadLog } from '../../media/download-log.ts'
import type { Exchange } from '../routing/route.ts'
import type { PrivateAccess } from './private-access.ts'

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
