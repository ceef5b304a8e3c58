import { createHash, randomUUID } from 'node:crypto'
import { urlsOfBucket } from '../core/bucket-pictures.ts'
import type { LinkSigner, UrlSettings } from '../core/item-urls.ts'
import { mediaObjectOf } from '../items/item-operations.ts'
import type { ItemChange } from '../storage/catalog/feed/feed.ts'
import type { WebhookReader } from '../storage/catalog/feed/webhooks.ts'

/** What one delivery says, before it is signed. */
export interface Message {
  readonly id: string
  readonly type: string
  readonly body: string
  /** How many changes it has. */
  readonly changes: number
  readonly range: { readonly first: number; readonly last: number } | null
}

type Receiver = Pick<
  WebhookReader,
  'id' | 'bucket' | 'batch' | 'position' | 'renewed' | 'isPrivate' | 'pictures'
>

/**
 * The message about changes, of which there is at least one (docs/interface.md WH4). Its id is the same for the same changes, so that
 * receivers recognize a repetition, also by another process. `epoch` is that of the catalog: after a restore, other changes may have the same
 * numbers.
 */
export function messageOf(
  receiver: Receiver,
  changes: readonly ItemChange[],
  {
    epoch,
    urls: settings,
    signer,
  }: {
    readonly epoch: string
    readonly urls: UrlSettings
    readonly signer: LinkSigner | null
  },
): Message {
  const { id, bucket, batch } = receiver
  const urls = urlsOfBucket(settings, receiver)
  const described = changes.map(({ kind, time, number, itemId, item }) => ({
    type: `item.${kind}`,
    timestamp: new Date(time).toISOString(),
    data: {
      number,
      bucket,
      item_id: itemId,
      item: item === null ? null : mediaObjectOf(urls, item, signer),
    },
  }))
  const [first] = described
  const numbers = changes.map(({ number }) => number)
  const [from, to] = [numbers[0], numbers.at(-1)]
  if (first === undefined || from === undefined || to === undefined)
    throw new RangeError('a message has at least one change')
  const message =
    batch === 1
      ? first
      : { type: 'items.changed', timestamp: first.timestamp, data: { bucket, changes: described } }
  return {
    id: idOf([epoch, id, ...changes.flatMap(({ number, kind, itemId }) => [number, kind, itemId])]),
    type: message.type,
    body: JSON.stringify(message),
    changes: changes.length,
    range: { first: from, last: to },
  }
}

/** The feed no longer has changes that the webhook has not delivered, or the data have gone back (docs/interface.md WH8). */
export const lostMessageOf = (
  { id, bucket, position, renewed }: Receiver,
  epoch: string,
  now: number,
): Message =>
  plainMessage(idOf([epoch, id, 'lost', position ?? `renewed ${renewed}`]), 'changes.lost', { bucket }, now)

export const testMessageOf = ({ id, bucket }: Receiver, now: number): Message =>
  plainMessage(idOf([randomUUID()]), 'webhook.test', { bucket, webhook: id }, now)

const plainMessage = (id: string, type: string, data: object, now: number): Message => ({
  id,
  type,
  body: JSON.stringify({ type, timestamp: new Date(now).toISOString(), data }),
  changes: 0,
  range: null,
})

const idOf = (parts: readonly (string | number)[]): string =>
  `msg_${createHash('sha256').update(parts.join(' ')).digest('hex').slice(0, 32)}`

/** Whether a webhook of these kinds delivers a change of this one. */
export const isWanted = (kinds: readonly string[], kind: string): boolean =>
  kinds.length === 0 || kinds.includes(kind)
