import type { Client, Media, MediaChanges } from '@mediabucket/client'
import type { Connection } from './connection.ts'

/** Edits of items. */
export interface Edits {
  /** Loads an item with its entity tag. */
  load(id: string): Promise<{ readonly media: Media; readonly etag: string | null }>
  /** Changes an item if it still has the entity tag, and returns it. */
  save(id: string, changes: MediaChanges, etag: string | null): Promise<Media>
}

export const createEdits = (client: Client, connection: Connection): Edits => ({
  load: (id) => connection.watch(() => client.describeTagged(id)),
  save: (id, changes, etag) =>
    connection.watch(() => client.update(id, changes, etag === null ? {} : { ifMatch: etag })),
})
