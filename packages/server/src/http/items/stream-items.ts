import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { BucketId, ItemDetails, TokenId } from '../../catalog/records.ts'
import { Fault } from '../../core/fault.ts'
import type { ItemsQuery } from '../../core/items-query.ts'
import type { Turns } from '../../core/turns.ts'
import type { ListItems } from '../../media/items/list-items.ts'

/** Items of one piece of work: they are read, verified and sent together. */
const batchSize = 50
/** Bytes that a stream holds for its client, besides those of the connection. */
const maxUnsent = 16 * 1024
/** Streams of one token at a time, in each process. */
const maxStreams = 16

/** What a stream lists, and for whom. */
export interface ItemStream {
  readonly tokenId: TokenId
  readonly bucketId: BucketId
  readonly query: ItemsQuery
  /** Returns the lines of a batch. Throws Fault if the token is no longer valid. */
  readonly format: (items: readonly ItemDetails[]) => Promise<string>
}

/**
 * Returns the rest of a list, which is read as the client receives it (docs/interface.md K10). Throws Fault `streams-too-many` and those
 * of the list.
 */
export type OpenItemStream = (response: ServerResponse, stream: ItemStream) => Promise<Readable>

export function createItemStreams({
  listItems,
  turns,
}: {
  readonly listItems: ListItems
  readonly turns: Turns
}): OpenItemStream {
  const counts = new Map<TokenId, number>()

  /** Counts a stream of a token until its response has ended. The client may have closed the connection already. */
  function count(response: ServerResponse, tokenId: TokenId): void {
    if (response.closed) return
    const others = counts.get(tokenId) ?? 0
    if (others >= maxStreams)
      throw new Fault(
        'streams-too-many',
        `This token has ${maxStreams} streams of items that have not ended. Read them to their end, or close their connections.`,
      )
    counts.set(tokenId, others + 1)
    response.once('close', () => {
      const left = (counts.get(tokenId) ?? 0) - 1
      if (left > 0) counts.set(tokenId, left)
      else counts.delete(tokenId)
    })
  }

  /** The lines of one batch; they are all that a stream holds, besides its place in the list. */
  async function read(stream: ItemStream, after: string | null): Promise<Lines> {
    await turns.next(stream.tokenId)
    const { items, next } = await readBatch(listItems, stream, after)
    return { text: await stream.format(items), next }
  }

  async function* linesOf(stream: ItemStream, first: Lines): AsyncGenerator<string> {
    let lines = first
    for (;;) {
      yield lines.text
      if (lines.next === null) return
      lines = await read(stream, lines.next)
    }
  }

  return async (response, stream) => {
    count(response, stream.tokenId)
    // The first read is before the head is sent, so that the response can report a malformed cursor or another error.
    const first = await read(stream, stream.query.after)
    return Readable.from(linesOf(stream, first), { objectMode: false, highWaterMark: maxUnsent })
  }
}

interface Lines {
  readonly text: string
  /** The cursor of the next batch; null after the last one. */
  readonly next: string | null
}

/** Reads the items of a batch, and the cursor of the next one. */
export async function readBatch(
  listItems: ListItems,
  { bucketId, query }: Pick<ItemStream, 'bucketId' | 'query'>,
  after: string | null,
): Promise<{ readonly items: readonly ItemDetails[]; readonly next: string | null }> {
  const { items, next } = await listItems(bucketId, { ...query, limit: batchSize, after })
  // Items may have expired since the stream began (E2).
  const now = Date.now()
  return { items: items.filter(({ expiresAt }) => expiresAt == null || expiresAt > now), next }
}
