import type { Client, Media, MediaChanges, TaggedMedia } from '@mediabucket/client'
import type { Connection } from './connection.ts'
import { isPreconditionFailed } from './errors.ts'

/** Edits of items. */
export interface Edits {
  /** Loads an item with its entity tag. */
  load(id: string): Promise<TaggedMedia>
  /** Changes an item if its texts are still those that were loaded, and returns it. */
  save(before: TaggedMedia, changes: MediaChanges): Promise<Media>
}

export function createEdits(client: Client, connection: Connection): Edits {
  const load = (id: string) => connection.watch(() => client.describeTagged(id))
  const update = ({ media, etag }: TaggedMedia, changes: MediaChanges) =>
    connection.watch(() => client.update(media.id, changes, etag === null ? {} : { ifMatch: etag }))

  return {
    load,
    async save(before, changes) {
      try {
        return await update(before, changes)
      } catch (error) {
        if (!isPreconditionFailed(error)) throw error
        // The first variant also changes the entity tag (docs/interface.md, M6).
        const now = await load(before.media.id)
        if (!haveSameTexts(now.media, before.media)) throw error
        return await update(now, changes)
      }
    },
  }
}

const haveSameTexts = (a: Media, b: Media): boolean =>
  a.filename === b.filename && a.alt_text === b.alt_text && a.caption === b.caption
