import type { Client, Media } from '@mediabucket/client'
import type { Connection } from '../service/connection.ts'

/** Others that were uploaded at the same time may be between the items. */
const maxOthers = 5

/**
 * Requests items that follow another one in the order of their upload, with one request, and passes on those that it finds:
 * the list is in the order of the times (docs/interface.md, K9). Rejects if the request fails.
 */
export async function readFrom(
  client: Pick<Client, 'items'>,
  connection: Pick<Connection, 'watch'>,
  start: Media,
  ids: readonly string[],
  onFound: (media: Media) => void,
): Promise<void> {
  const wanted = new Set(ids)
  const batchSize = ids.length + 1 + maxOthers
  const items = client.items({ from: new Date(start.created_at), batchSize, urls: 'signed' })
  for (let read = 0; read < batchSize && wanted.size > 0; read += 1) {
    const { value, done } = await connection.watch(() => items.next())
    if (done) return
    if (wanted.delete(value.id)) onFound(value)
  }
}
