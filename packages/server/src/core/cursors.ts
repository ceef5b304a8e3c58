import { createHash } from 'node:crypto'

/** What a cursor is of: the bucket and the filters of a list. */
type ListKey = readonly unknown[]

/** Formats and parses the cursors that clients receive. Each has a place in a list, and a digest of both. */
export interface Cursors {
  format(list: ListKey, place: string): string
  /**
   * The place of a cursor, whose form the caller checks, and whether it is of this list and these data; null for what is no cursor at all.
   */
  parse(list: ListKey, cursor: string): { readonly place: string; readonly isOwn: boolean } | null
}

/** Part of every digest. Increment it when the meaning of a place changes. */
const formatVersion = 1
const digestLength = 9

/** `epoch` identifies the data: after a restore, an earlier place could be that of another item. */
export function createCursors(epoch: string): Cursors {
  /**
   * Recognizes changed cursors, and those of other lists and of other data. Only who knows the epoch can make a cursor, so clients must not get it:
   * a cursor of a lost change renews the history of all buckets (storage/catalog/feed/history.ts).
   */
  function format(list: ListKey, place: string): string {
    const digest = createHash('sha256')
      .update(JSON.stringify([formatVersion, epoch, ...list, place]))
      .digest()
      .subarray(0, digestLength)
    return Buffer.concat([digest, Buffer.from(place)]).toString('base64url')
  }

  return {
    format,
    parse(list, cursor) {
      const bytes = Buffer.from(cursor, 'base64url')
      if (bytes.toString('base64url') !== cursor) return null
      const place = bytes.toString('utf8', digestLength)
      return { place, isOwn: format(list, place) === cursor }
    },
  }
}
