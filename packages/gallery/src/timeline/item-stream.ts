import type { Client, ItemOptions, Media } from '@mediabucket/client'
import type { Connection } from '../service/connection.ts'

/** The items of a list from one place on, in chunks. */
export interface ItemStream {
  /** Returns up to `count` items that `skip` refuses not. Fewer only at the end. Rejects if a request fails. */
  take(count: number, skip?: (item: Media) => boolean): Promise<readonly Media[]>
  /** Whether the last item was returned. */
  readonly ended: boolean
}

/** The request of the next chunk is sent when its first item is taken. */
export function openItemStream(client: Client, connection: Connection, options: ItemOptions): ItemStream {
  const items = client.items({ ...options, urls: 'signed' })
  let ended = false
  return {
    get ended() {
      return ended
    },
    async take(count, skip = () => false) {
      const taken: Media[] = []
      while (taken.length < count && !ended) {
        const next = await connection.watch(() => items.next())
        if (next.done) ended = true
        else if (!skip(next.value)) taken.push(next.value)
      }
      return taken
    },
  }
}
